//! Vocabulary: names of regions, kinds of code, threads, roles. Names in the JSON schema are part
//! of it (docs/report-json.md).

use std::borrow::Cow;
use vmscope_records::{
    ConstituentKind, Exactness, Pid, Process, ProcessKey, SymbolSource, Thread, ThreadRole,
};
use vmscope_symbolizer::Region;
use vmscope_symbolizer::profile::EntryKind;
use vmscope_symbolizer::trace::Trace;

/// Names of a region.
struct RegionWords {
    letter: char,
    name: &'static str,
    title: &'static str,
    /// In the table of a VM's parts; `None`: the schema's name.
    part: Option<&'static str>,
    phrase: &'static str,
}

const fn words(region: Region) -> RegionWords {
    let (letter, name, title, part, phrase) = match region {
        Region::Generated => ('G', "generated", "Generated code", None, "generated code"),
        Region::Interpreter => ('I', "interpreter", "Interpreter", None, "the interpreter"),
        Region::Gc => {
            let (title, phrase) = ("Garbage collector", "the garbage collector");
            ('C', "collector", title, Some("collector"), phrase)
        }
        Region::Compiler => ('J', "compiler", "Compiler", None, "JIT compilers"),
        Region::Vm => {
            let rest = "the rest of the VM";
            ('V', "VM", "VM", Some(rest), rest)
        }
        Region::Library => ('L', "libraries", "Libraries", None, "shared libraries"),
        Region::Kernel => ('K', "kernel", "Kernel", None, "the kernel"),
        Region::Idle => ('.', "idle", "Not running", None, "waiting"),
        Region::Unknown => ('?', "unknown", "Unknown", None, "unknown code"),
    };
    RegionWords {
        letter,
        name,
        title,
        part,
        phrase,
    }
}

/// A native program's own code.
const PROGRAM: &str = "program";

pub const fn region_letter(region: Region, is_native: bool) -> char {
    match region {
        Region::Vm if is_native => 'P',
        region => words(region).letter,
    }
}

/// Name in a column.
pub const fn region_name(region: Region, is_native: bool) -> &'static str {
    match region {
        Region::Vm if is_native => PROGRAM,
        region => words(region).name,
    }
}

/// Name in JSON and exports.
pub const fn region_key(region: Region, is_native: bool) -> &'static str {
    match region {
        Region::Vm if is_native => PROGRAM,
        region => region.name(),
    }
}

/// Name in a legend.
pub fn region_title(region: Region, is_native: bool) -> &'static str {
    match region {
        Region::Vm if is_native => "Program",
        region => words(region).title,
    }
}

/// Name in the table of a VM's parts.
pub fn region_part(region: Region) -> &'static str {
    words(region).part.unwrap_or(region.name())
}

/// Name in a sentence: `3 samples in the kernel`.
pub const fn region_phrase(region: Region, is_native: bool) -> &'static str {
    match region {
        Region::Vm if is_native => "the program",
        region => words(region).phrase,
    }
}

/// Kind of an entry in the JSON schema.
pub fn kind_name(kind: &EntryKind) -> &str {
    match kind {
        EntryKind::Code(kind) => code_kind_name(kind),
        EntryKind::Function(SymbolSource::Plt) => "plt",
        EntryKind::Function(_) => "function",
        EntryKind::Unnamed => "unnamed",
        EntryKind::Doubtful => "doubtful",
    }
}

/// Kind of a constituent.
pub fn code_kind_name(kind: &ConstituentKind) -> &str {
    match kind {
        ConstituentKind::Method => "method",
        ConstituentKind::Block => "block",
        ConstituentKind::ClosedPic => "closed pic",
        ConstituentKind::OpenPic => "open pic",
        ConstituentKind::Trampoline => "trampoline",
        ConstituentKind::Enilopmart => "enilopmart",
        ConstituentKind::Stub => "stub",
        ConstituentKind::Interpreter => "interpreter",
        ConstituentKind::Adapter => "adapter",
        ConstituentKind::RegExp => "regexp",
        ConstituentKind::Free => "free",
        ConstituentKind::Bytecodes => "bytecodes",
        ConstituentKind::MethodObject => "method object",
        ConstituentKind::Other(name) => name,
        _ => "other",
    }
}

/// Reliability of a range in the JSON schemas.
pub const fn exactness_name(exactness: Exactness) -> &'static str {
    match exactness {
        Exactness::Exact => "exact",
        Exactness::Approximate => "approximate",
        Exactness::MethodOnly => "method only",
    }
}

/// A thread's name, or its tid.
pub fn thread_name(thread: &Thread) -> Cow<'_, str> {
    if thread.name.is_empty() {
        Cow::Owned(format!("tid {}", thread.tid))
    } else {
        Cow::Borrowed(&thread.name)
    }
}

/// Name and tid: names may repeat.
pub fn thread_label(thread: &Thread) -> String {
    if thread.name.is_empty() {
        thread_name(thread).into_owned()
    } else {
        format!("{} ({})", thread.name, thread.tid)
    }
}

/// A process's name and pid.
pub fn process_label(process: &Process) -> String {
    format!("{} (pid {})", process.name, process.pid)
        .trim_start()
        .to_owned()
}

/// Pids in a recording's head.
const MAX_PIDS: usize = 4;

/// The attached processes, or the launched one: `pid 4711` or `pids 4711, 4712`.
pub fn pids(trace: &Trace) -> String {
    let pids = attached(trace);
    if pids == [Pid(0)] {
        return "pid unknown".to_owned();
    }
    let shown: Vec<String> = pids
        .iter()
        .take(MAX_PIDS)
        .map(ToString::to_string)
        .collect();
    let noun = if pids.len() == 1 { "pid" } else { "pids" };
    match pids.len().saturating_sub(MAX_PIDS) {
        0 => format!("{noun} {}", shown.join(", ")),
        more => format!("{noun} {} and {more} more", shown.join(", ")),
    }
}

/// Pids of the attached processes in the order of the command line, or the launched process's.
pub fn attached(trace: &Trace) -> Vec<Pid> {
    let Some(session) = &trace.session else {
        return Vec::new();
    };
    if session.launched {
        return vec![session.pid];
    }
    let roots = trace.processes.values().filter(|one| one.parent.is_none());
    let mut roots: Vec<(ProcessKey, Pid)> = roots.map(|one| (one.key, one.pid)).collect();
    roots.sort_unstable();
    let mut pids = vec![session.pid];
    for (_, pid) in roots {
        if !pids.contains(&pid) {
            pids.push(pid);
        }
    }
    pids
}

/// A thread's role, in reports and in the JSON schema.
pub fn role_name(role: ThreadRole) -> &'static str {
    match role {
        ThreadRole::Mutator => "mutator",
        ThreadRole::Collector => "collector",
        ThreadRole::Compiler => "compiler",
        ThreadRole::Heartbeat => "heartbeat",
        ThreadRole::Vm => "vm",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_of_one_region() {
        for is_native in [false, true] {
            let letters = Region::ALL.map(|region| region_letter(region, is_native));
            let different: std::collections::BTreeSet<char> = letters.into_iter().collect();
            assert_eq!(different.len(), letters.len(), "{letters:?}");
        }
    }
}
