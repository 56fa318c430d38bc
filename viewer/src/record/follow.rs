//! Watches a session until its end; then completes and reports the recording.

use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vmscope_records::EndReason;
use vmscope_records::recording::earlier;
use vmscope_sampler::session::{Outcome, Session};
use vmscope_sampler::{Favoured, promptly};

use super::live_line::{LiveLine, bytes};
use super::options::RecordOptions;
use crate::embed::{embed_symbols, embed_symbols_of};
use crate::memory::own_bytes;
use crate::print::{Printer, say};
use crate::report;
use crate::signals::Signals;

/// Interval of live-line updates and signal checks.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// Outcome of a watched session.
pub(super) struct Followed {
    /// Whether to end the target.
    pub(super) asked: bool,
    /// Whether the recording is complete.
    pub(super) complete: bool,
}

/// Watches a session until its end, makes its recording self-contained, and reports. A long report
/// takes its turn among the other programs.
pub(super) fn follow(
    session: Session,
    options: &RecordOptions,
    signals: &Signals,
    favoured: &Favoured,
    out: &mut Printer<'_>,
) -> Result<Followed> {
    let mut line = LiveLine::new(!options.quiet);
    let mut copies = 0;
    let max_memory = options.report.memory.max();
    while !session.progress().is_done() {
        if signals.end_asked() {
            session.stop(EndReason::Interrupted);
        }
        if own_bytes() > max_memory {
            session.stop(EndReason::MemoryFull);
        }
        if signals.take_save() {
            copies += 1;
            save_copy(&session, options, copies, &mut line);
        }
        line.draw(&session);
        std::thread::sleep(TICK);
    }
    line.clear();
    let outcome = session.finish()?;
    let asked = matches!(
        outcome.reason,
        EndReason::Interrupted | EndReason::DurationOver
    );
    let complete = finish(&outcome, options, favoured, out)?;
    Ok(Followed { asked, complete })
}

/// An earlier recording at `--output`, which a session renames.
pub(crate) struct EarlierRecording<'a> {
    output: &'a Path,
    is_there: bool,
    is_quiet: bool,
}

impl<'a> EarlierRecording<'a> {
    /// Call before the session begins.
    pub(crate) fn of(output: &'a Path, is_quiet: bool) -> Self {
        let file = std::fs::metadata(output);
        EarlierRecording {
            output,
            is_there: file.is_ok_and(|file| file.len() > 0),
            is_quiet,
        }
    }

    /// Prints the new name.
    pub(crate) fn tell_name(&self) {
        if self.is_there && !self.is_quiet {
            let name = earlier(self.output);
            say(&format!(
                "the earlier recording was renamed to {}",
                name.display()
            ));
        }
    }

    /// Renames it back: nothing was recorded.
    pub(super) fn restore(&self) {
        if self.is_there {
            // Otherwise it stays under its new name.
            let _ = std::fs::rename(earlier(self.output), self.output);
        }
    }
}

/// Embeds symbols, prints a summary, and reports.
fn finish(
    outcome: &Outcome,
    options: &RecordOptions,
    favoured: &Favoured,
    out: &mut Printer<'_>,
) -> Result<bool> {
    let path = &options.output;
    let mut complete = outcome.failure.is_none();
    if let Some(failure) = &outcome.failure {
        say(&format!("the recording ended early: {failure}"));
    }
    if outcome.reason == EndReason::MemoryFull {
        say("the recording ended early: vmscope reached its maximum memory (--max-memory)");
        complete = false;
    }
    // Older samples than the kept ones need no symbols.
    let embedded = match options.keep_last {
        None => embed_symbols_of(outcome, path, options.report.memory),
        Some(_) => embed_symbols(path, &outcome.modules, options.report.memory),
    };
    if let Err(error) = embedded {
        say(&format!("the recording has no symbols: {error:#}"));
        complete = false;
    }
    say(&format!(
        "{} samples in {:.1} s, {} lost; {} in {}",
        outcome.written.samples,
        outcome.took.as_secs_f64(),
        outcome.lost,
        bytes(std::fs::metadata(path).map_or(0, |metadata| metadata.len())),
        path.display(),
    ));
    if !options.quiet {
        promptly(|| favoured.pause(|| report::run(path, &options.report, out)))?;
        out.data().flush()?;
    }
    Ok(complete)
}

fn save_copy(session: &Session, options: &RecordOptions, number: u32, line: &mut LiveLine) {
    line.clear();
    if options.keep_last.is_none() {
        say(
            "no copy on SIGUSR1: this recording is already in its file (only --keep-last saves \
             copies)",
        );
        return;
    }
    let path = numbered(&options.output, number);
    match session.save_copy(&path) {
        Ok(saved) => {
            let embedded = embed_symbols(&path, &saved.modules, options.report.memory);
            let note = embedded
                .err()
                .map_or_else(String::new, |error| format!(" ({error:#})"));
            say(&format!(
                "saved {} samples in {}{note}",
                saved.written.samples,
                path.display()
            ));
        }
        Err(error) => say(&format!("the copy was not saved: {error}")),
    }
}

/// `out.vmscope` → `out.1.vmscope`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let name = match path.extension() {
        Some(extension) => format!("{stem}.{number}.{}", extension.to_string_lossy()),
        None => format!("{stem}.{number}"),
    };
    path.with_file_name(name)
}
