//! The code zone: its constituents as they come, go and move, and their methods.

use crate::{Avma, BytecodePc, ConstituentKey, MethodKey, PcMap, ProcessKey, TimeNs};

/// What an entry of the code zone is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConstituentKind {
    /// A compiled method.
    Method,
    /// A compiled block or closure.
    Block,
    /// A polymorphic inline cache with a bounded number of cases.
    ClosedPic,
    /// A megamorphic send site's lookup.
    OpenPic,
    /// Generated run-time code called from generated code.
    Trampoline,
    /// Generated run-time code by which the VM enters generated code.
    Enilopmart,
    /// Any other generated routine of the run time.
    Stub,
    /// Generated interpreter code, for instance one bytecode's handler: that is called as
    /// [`Method::listing`] calls the instruction; more may follow after a space.
    Interpreter,
    /// An adapter between calling conventions.
    Adapter,
    /// A regular expression compiled to machine code.
    RegExp,
    /// A method's bytecodes in the VM's memory: data, never sampled. Its start plus a
    /// position in the method is that bytecode's address.
    Bytecodes,
    /// The VM's object of a method: data too. Its start stands for the method.
    MethodObject,
    /// Free space of the zone.
    Free,
    /// Any other, in the VM's own word.
    Other(String),
}

/// One case of a polymorphic inline cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PicCase {
    /// The receiver's class; empty where it is not known.
    pub class: String,
    /// The method it leads to, where known by key.
    pub method: Option<MethodKey>,
    /// What it leads to, by name; empty where it is not known.
    pub target: String,
}

/// An entry of the code zone, from a time on. Written again with the same key when
/// more is known about it (a pc map read later, a PIC that gained a case).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constituent {
    /// Its key.
    pub key: ConstituentKey,
    /// Whose code zone.
    pub process: ProcessKey,
    /// When it is known to have been there: the poll that first saw it, or the
    /// VM's own time of making it.
    pub since: TimeNs,
    /// The last poll that did not see it yet: it came at some time between that and
    /// `since`. Samples of that time in its range are its, unless another
    /// constituent was there before: then they are doubtful. `None` where `since` is
    /// exact.
    pub absent_at: Option<TimeNs>,
    /// First address.
    pub start: Avma,
    /// First address after it.
    pub end: Avma,
    /// What it is.
    pub kind: ConstituentKind,
    /// Which compiler or level made it, in the VM's words (`C2`, `Sparkplug`);
    /// empty where there is one only.
    pub tier: String,
    /// Its name, as the VM's users write it; empty where it is not known what it is.
    pub name: String,
    /// Its method, where it has one.
    pub method: Option<MethodKey>,
    /// The cases of a PIC.
    pub cases: Vec<PicCase>,
    /// From its machine code to bytecodes.
    pub map: PcMap,
}

/// Why a constituent is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GoneReason {
    /// Its space was freed.
    Freed,
    /// Its space is used by another constituent.
    Recycled,
    /// It was flushed with others (Cog: at a full collection, by compaction).
    Flushed,
    /// Its method was unloaded or deoptimised.
    Unloaded,
    /// It was gone at the next poll; why is not known.
    Unknown,
}

/// A constituent is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstituentGone {
    /// Which.
    pub key: ConstituentKey,
    /// The last time it was known to be there.
    pub last_seen: TimeNs,
    /// When it was known to be gone. Samples in between are its, unless another
    /// constituent took its place meanwhile: then they are doubtful.
    pub time: TimeNs,
    /// Why.
    pub reason: GoneReason,
}

/// A constituent was moved by a code compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstituentMoved {
    /// Which.
    pub key: ConstituentKey,
    /// The last time it was known to be at its old place.
    pub last_seen: TimeNs,
    /// When it was known to be at its new place.
    pub time: TimeNs,
    /// Its new first address; its size stays.
    pub to: Avma,
}

/// What happened to a code zone between two looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeChange {
    /// A constituent came, or more is known about it.
    Seen(Constituent),
    /// A constituent went.
    Gone(ConstituentGone),
    /// A constituent moved.
    Moved(ConstituentMoved),
}

/// From a bytecode on, the source line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEntry {
    /// The first bytecode of the line.
    pub from: BytecodePc,
    /// The line, 1-based.
    pub line: u32,
}

/// A method of a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Method {
    /// Its key.
    pub key: MethodKey,
    /// When it was first seen.
    pub time: TimeNs,
    /// Its class (Java: the binary name with dots; Smalltalk: `Integer class`), or
    /// the script or module it is in; empty where it has none.
    pub class: String,
    /// Its selector or name, with the signature where the VM overloads names.
    pub name: String,
    /// Its source file as the VM names it; empty where it does not.
    pub file: String,
    /// The line it begins at; 0 where it is not known.
    pub line: u32,
    /// Its line table, ascending.
    pub lines: Vec<LineEntry>,
    /// Its bytecodes; empty where the VM has none or they could not be read.
    pub bytecodes: Vec<u8>,
    /// Its listing, line by line with the bytecode pc, as the adapter disassembled
    /// it (constant-pool names and all); empty where it did not.
    pub listing: Vec<(BytecodePc, String)>,
}

impl Method {
    /// About how much memory it takes beside its own size, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let listing = self.listing.iter();
        let listing = listing.map(|line| size_of_val(line) + line.1.len());
        let names = self.class.len() + self.name.len() + self.file.len();
        let lines = size_of_val(self.lines.as_slice());
        names + lines + self.bytecodes.len() + listing.sum::<usize>()
    }
}
