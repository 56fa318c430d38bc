//! The one vocabulary: what regions, kinds of code, threads and their roles are called. Names
//! that the JSON schema has too are part of it (docs/report-json.md).

use std::borrow::Cow;
use vmscope_records::{ConstituentKind, SymbolSource, Thread, ThreadRole};
use vmscope_symbolizer::Region;
use vmscope_symbolizer::profile::EntryKind;

/// One letter for a region.
pub const fn region_letter(region: Region) -> char {
    match region {
        Region::Generated => 'G',
        Region::Interpreter => 'I',
        Region::Gc => 'C',
        Region::Compiler => 'J',
        Region::Vm => 'V',
        Region::Library => 'L',
        Region::Kernel => 'K',
        Region::Idle => '.',
        Region::Unknown => '?',
    }
}

/// A region's name for people.
pub const fn region_name(region: Region) -> &'static str {
    match region {
        Region::Generated => "generated",
        Region::Interpreter => "interpreter",
        Region::Gc => "collector",
        Region::Compiler => "compiler",
        Region::Vm => "VM",
        Region::Library => "libraries",
        Region::Kernel => "kernel",
        Region::Idle => "idle",
        Region::Unknown => "unknown",
    }
}

/// What a region is called in a legend.
pub fn region_title(region: Region, native: bool) -> &'static str {
    match region {
        Region::Generated => "Generated code",
        Region::Interpreter => "Interpreter",
        Region::Gc => "Garbage collector",
        Region::Compiler => "Compiler",
        Region::Vm if native => "Program",
        Region::Vm => "VM",
        Region::Library => "Libraries",
        Region::Kernel => "Kernel",
        Region::Idle => "Not running",
        Region::Unknown => "Unknown",
    }
}

/// A region's name in the table of a VM's parts.
pub fn region_part(region: Region) -> &'static str {
    match region {
        Region::Gc => "collector",
        Region::Vm => "the rest of the VM",
        _ => region.name(),
    }
}

/// What an entry is, as the schema names it.
pub fn kind_name(kind: &EntryKind) -> &str {
    match kind {
        EntryKind::Code(kind) => match kind {
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
        },
        EntryKind::Function(SymbolSource::Plt) => "plt",
        EntryKind::Function(_) => "function",
        EntryKind::Unnamed => "unnamed",
        EntryKind::Doubtful => "doubtful",
    }
}

/// A thread's name, or its tid where it has none.
pub fn thread_name(thread: &Thread) -> Cow<'_, str> {
    if thread.name.is_empty() {
        Cow::Owned(format!("tid {}", thread.tid))
    } else {
        Cow::Borrowed(&thread.name)
    }
}

/// The same with its tid: threads may be called alike.
pub fn thread_label(thread: &Thread) -> String {
    if thread.name.is_empty() {
        thread_name(thread).into_owned()
    } else {
        format!("{} ({})", thread.name, thread.tid)
    }
}

/// A thread's role, as reports and the JSON schema name it.
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
