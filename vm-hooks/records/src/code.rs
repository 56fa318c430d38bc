//! The code zone: constituents with their additions, removals and moves, and methods.

use crate::{Avma, BytecodePc, ConstituentKey, MethodKey, PcMap, ProcessKey, TimeNs};

/// Type of an entry of the code zone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConstituentKind {
    /// A compiled method.
    Method,
    /// A compiled block or closure.
    Block,
    /// A polymorphic inline cache with a bounded number of cases.
    ClosedPic,
    /// Lookup code of a megamorphic send site.
    OpenPic,
    /// Generated run-time code called from generated code.
    Trampoline,
    /// Generated run-time code that enters generated code from the VM.
    Enilopmart,
    /// Another generated run-time routine.
    Stub,
    /// Generated interpreter code, such as one bytecode's handler, whose name begins with the
    /// instruction's name in [`Method::listing`]; more may follow after a space.
    Interpreter,
    /// An adapter between calling conventions.
    Adapter,
    /// A regular expression compiled to machine code.
    RegExp,
    /// A method's bytecodes in VM memory: data, never sampled. Its start plus a bytecode pc is that
    /// bytecode's address.
    Bytecodes,
    /// The VM's method object: data. Its start identifies the method.
    MethodObject,
    /// Free space.
    Free,
    /// Another type, in the VM's own word.
    Other(String),
}

/// One case of a polymorphic inline cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PicCase {
    /// The receiver's class; empty if unknown.
    pub class: String,
    /// Key of the target method, if known.
    pub method: Option<MethodKey>,
    /// Name of the target; empty if unknown.
    pub target: String,
}

/// An entry of the code zone. Written again with the same key after later observations (a pc map, a
/// PIC with another case).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constituent {
    /// Key.
    pub key: ConstituentKey,
    /// The process of the code zone.
    pub process: ProcessKey,
    /// Earliest time at which it certainly existed: the first poll that saw it, or the VM's own
    /// creation time.
    pub since: TimeNs,
    /// Time of the last poll without it. Its creation happened between this time and `since`. Samples in
    /// this interval and its range belong to it, or are doubtful after another constituent at this
    /// place. `None` for an exact `since`.
    pub absent_at: Option<TimeNs>,
    /// First address.
    pub start: Avma,
    /// First address after the code.
    pub end: Avma,
    /// Type.
    pub kind: ConstituentKind,
    /// Compiler or level, in the VM's words (`C2`, `Sparkplug`); empty for VMs with one compiler.
    pub tier: String,
    /// Name as the VM's users write it; empty if unidentified.
    pub name: String,
    /// Its method, if any.
    pub method: Option<MethodKey>,
    /// Cases of a PIC.
    pub cases: Vec<PicCase>,
    /// Maps machine code to bytecodes.
    pub map: PcMap,
}

impl Constituent {
    /// Leaves out the map, then the cases; returns whether there was any.
    pub(crate) fn leave_out(&mut self) -> bool {
        let map = std::mem::take(&mut self.map);
        map != PcMap::None || !std::mem::take(&mut self.cases).is_empty()
    }

    /// Takes over a later record with the same key. Process, first time and first address stay.
    pub fn update(&mut self, later: Constituent) {
        *self = Constituent {
            process: self.process,
            since: self.since,
            absent_at: self.absent_at,
            start: self.start,
            end: self.end,
            ..later
        };
    }
}

/// Reason of a constituent's removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GoneReason {
    /// Freed space.
    Freed,
    /// Another constituent uses the space.
    Recycled,
    /// Flushed with others (Cog: by a full collection or compaction).
    Flushed,
    /// Its method was unloaded or deoptimised.
    Unloaded,
    /// Missing at a poll, for an unknown reason.
    Unknown,
}

/// A removed constituent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstituentGone {
    /// The constituent.
    pub key: ConstituentKey,
    /// Last time at which it certainly existed.
    pub last_seen: TimeNs,
    /// First time at which it certainly did not exist. Samples between both times belong to it, or
    /// are doubtful if another constituent took its place meanwhile.
    pub time: TimeNs,
    /// Reason.
    pub reason: GoneReason,
}

/// A constituent moved by code compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstituentMoved {
    /// The constituent.
    pub key: ConstituentKey,
    /// Last time at which it was certainly at the old address.
    pub last_seen: TimeNs,
    /// First time at which it was certainly at the new address.
    pub time: TimeNs,
    /// New first address; the size stays.
    pub to: Avma,
}

/// A change of a code zone between two polls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeChange {
    /// A new constituent, or later data about a known one.
    Seen(Constituent),
    /// A removed constituent.
    Gone(ConstituentGone),
    /// A moved constituent.
    Moved(ConstituentMoved),
}

/// Start of a source line in bytecodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEntry {
    /// First bytecode of the line.
    pub from: BytecodePc,
    /// Line number, 1-based.
    pub line: u32,
}

/// A method of a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Method {
    /// Key.
    pub key: MethodKey,
    /// Time of the first observation.
    pub time: TimeNs,
    /// Class (Java: binary name with dots; Smalltalk: `Integer class`), script or module; empty if
    /// none.
    pub class: String,
    /// Selector or name, with a signature if the VM has overloading.
    pub name: String,
    /// Source file as the VM names it; empty if unknown.
    pub file: String,
    /// First source line; 0 if unknown.
    pub line: u32,
    /// Line table, ascending.
    pub lines: Vec<LineEntry>,
    /// Bytecodes; empty if none or unreadable.
    pub bytecodes: Vec<u8>,
    /// Bytecode listing by the adapter (with constant-pool names), line by line with the bytecode
    /// pc; may be empty.
    pub listing: Vec<(BytecodePc, String)>,
}

impl Method {
    /// Cuts off half of the listing, then leaves out bytecodes, then lines; returns whether there was any.
    pub(crate) fn leave_out(&mut self) -> bool {
        let kept = self.listing.len() / 2;
        if kept < 2 {
            return !std::mem::take(&mut self.listing).is_empty()
                || !std::mem::take(&mut self.bytecodes).is_empty()
                || !std::mem::take(&mut self.lines).is_empty();
        }
        self.listing.truncate(kept + 1);
        if let Some((_, text)) = self.listing.last_mut() {
            "… (left out: the listing is too large for a recording)".clone_into(text);
        }
        true
    }

    /// Approximate heap memory in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let listing = self.listing.iter();
        let listing = listing.map(|line| size_of_val(line) + line.1.len());
        let names = self.class.len() + self.name.len() + self.file.len();
        let lines = size_of_val(self.lines.as_slice());
        names + lines + self.bytecodes.len() + listing.sum::<usize>()
    }
}
