//! Sentences about flaws of a process's files: each once, at the process's end.
//!
//! Sentences hold no counts, so processes with equal flaws share one sentence in a recording.
//! [`Poll::lost`] counts lost code.

use vmscope_process::{Poll, ProcessView};

use super::{FileAdapter, MAX_DUMPS};
use crate::dump::DumpFlaw;
use crate::find;
use crate::perf_map::MapFlaw;

/// Whether a flaw hides code.
pub(super) fn loses_code(flaw: DumpFlaw) -> bool {
    matches!(
        flaw,
        DumpFlaw::Misfit
            | DumpFlaw::EndlessName
            | DumpFlaw::NoRange
            | DumpFlaw::Torn
            | DumpFlaw::OtherProcess
    )
}

/// Whether a flaw hides an entry of a perf map; a cut-off line keeps its entry.
pub(super) fn loses_entry(flaw: MapFlaw) -> bool {
    flaw != MapFlaw::CutLine
}

/// Whether a flaw hides lines of code, but no names.
fn loses_lines(flaw: DumpFlaw) -> bool {
    matches!(
        flaw,
        DumpFlaw::BadDebugInfo | DumpFlaw::TooManyLines | DumpFlaw::NoFile | DumpFlaw::Unclaimed
    )
}

impl FileAdapter {
    /// Reports flaws of the files.
    pub(super) fn report_flaws(&mut self, process: &ProcessView, poll: &mut Poll) {
        let mut texts = Vec::new();
        for (flaw, _) in self.dumps.iter().flat_map(|dump| dump.file.flaws().iter()) {
            let effect = match flaw {
                _ if loses_lines(flaw) => ": some source lines are missing",
                _ if loses_code(flaw) => ": some JIT code has no names",
                _ => "",
            };
            texts.push(format!("a VM's jitdump has {flaw}{effect}"));
        }
        for (flaw, _) in self.map.iter().flat_map(|map| map.file.flaws().iter()) {
            texts.push(format!("a VM's perf map has {flaw}"));
        }
        if self.live.disordered > 0 {
            let text = "a VM's reports of new code are out of time order: vmscope keeps their \
                        written order";
            texts.push(text.to_owned());
        }
        if self.live.without_method > 0 {
            let text = "too many functions in a VM: further functions have names, but no lines";
            texts.push(text.to_owned());
        }
        // The process also maps the dumps that vmscope reads.
        let markers = find::dump_markers(process);
        let own = markers
            .iter()
            .filter(|marker| marker.is_of(process))
            .count();
        if own > MAX_DUMPS {
            texts.push(format!(
                "a process writes more than {MAX_DUMPS} jitdumps: further jitdumps are not read"
            ));
        }
        for text in texts {
            self.limit(text, "", poll);
        }
    }
}
