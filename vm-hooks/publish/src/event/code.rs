//! Events about code: constituents of the code zone, methods and classes.

use std::borrow::Cow;

use super::map::PcMap;
use super::wire::{
    DecodeError, Item, Sink, Text, Wire, Words, pair, unpair, wire_enum, wire_struct,
};

wire_enum! {
    /// Type of an entry of the code zone, as in `vmscope_records::ConstituentKind`.
    pub enum ConstituentKind {
        /// Another type, in the VM's own word ([`Constituent::kind_word`]).
        Other = 0,
        /// A compiled method.
        Method = 1,
        /// A compiled block or closure.
        Block = 2,
        /// A polymorphic inline cache with a bounded number of cases.
        ClosedPic = 3,
        /// Lookup code of a megamorphic send site.
        OpenPic = 4,
        /// Generated run-time code called from generated code.
        Trampoline = 5,
        /// Generated run-time code that enters generated code from the VM.
        Enilopmart = 6,
        /// Another generated run-time routine.
        Stub = 7,
        /// Generated interpreter code, such as one bytecode's handler, whose name begins with
        /// the bytecode's name.
        Interpreter = 8,
        /// An adapter between calling conventions.
        Adapter = 9,
        /// A regular expression compiled to machine code.
        RegExp = 10,
        /// A method's bytecodes in memory: data, never sampled.
        Bytecodes = 11,
        /// The VM's method object: data.
        MethodObject = 12,
        /// Free space.
        Free = 13,
    }
}

wire_struct! {
    /// An entry of the code zone. Publish a constituent at its creation, and again with the same id
    /// when its pc map becomes known.
    ///
    /// Change your own table first, then publish: only this order makes snapshots exact.
    pub struct Constituent<'a> {
        /// Unique id, never reused.
        pub id: u64,
        /// First address.
        pub start: u64,
        /// First address after the code.
        pub end: u64,
        /// Creation time in nanoseconds of `CLOCK_MONOTONIC`. `None` means the event's time, or an
        /// unknown time in a snapshot.
        pub since: Option<u64>,
        /// Type.
        pub kind: ConstituentKind,
        /// The VM's word for the type [`ConstituentKind::Other`].
        pub kind_word: Text<'a>,
        /// Compiler or level, in the VM's words; empty for VMs with one compiler.
        pub tier: Text<'a>,
        /// Name as the VM's users write it.
        pub name: Text<'a>,
        /// Id of the constituent's method; 0 without a method.
        pub method: u64,
        /// Cases of a PIC.
        pub cases: Cow<'a, [PicCase<'a>]>,
        /// Maps machine code to bytecodes.
        pub map: PcMap<'a>,
    }
}

wire_struct! {
    /// One case of a polymorphic inline cache.
    pub struct PicCase<'a> {
        /// The receiver's class; empty if unknown.
        pub class: Text<'a>,
        /// Id of the target method; 0 if unknown.
        pub method: u64,
        /// Name of the target; empty if unknown.
        pub target: Text<'a>,
    }
}

impl Item for PicCase<'_> {}

wire_struct! {
    /// All cases of a changed PIC.
    pub struct Cases<'a> {
        /// The constituent.
        pub id: u64,
        /// All cases.
        pub cases: Cow<'a, [PicCase<'a>]>,
    }
}

wire_enum! {
    /// Reason of a constituent's removal, as in `vmscope_records::GoneReason`.
    pub enum GoneReason {
        /// An unknown reason.
        Unknown = 0,
        /// Freed space.
        Freed = 1,
        /// Another constituent uses the space.
        Recycled = 2,
        /// Flushed with others.
        Flushed = 3,
        /// Its method was unloaded or deoptimised.
        Unloaded = 4,
    }
}

wire_struct! {
    /// A removed constituent.
    pub struct Gone {
        /// The constituent.
        pub id: u64,
        /// Reason.
        pub reason: GoneReason,
    }
}

wire_struct! {
    /// A constituent moved by a compaction of the code zone. The size stays.
    pub struct Moved {
        /// The constituent.
        pub id: u64,
        /// New first address.
        pub to: u64,
    }
}

wire_struct! {
    /// A method.
    pub struct Method<'a> {
        /// Unique id, never reused; not 0.
        pub id: u64,
        /// Class, script or module; empty if none.
        pub class: Text<'a>,
        /// Selector or name, with a signature if the VM has overloading.
        pub name: Text<'a>,
        /// Source file; empty if unknown.
        pub file: Text<'a>,
        /// First source line, 1-based; 0 if unknown.
        pub line: u32,
        /// Line table, ascending.
        pub lines: Cow<'a, [LineEntry]>,
        /// Bytecodes; may be empty.
        pub bytecodes: Cow<'a, [u8]>,
        /// Listing of the bytecodes: each entry's text ends at an offset in `listing_text`.
        pub listing: Cow<'a, [ListingEntry]>,
        /// Concatenated texts of the listing.
        pub listing_text: Cow<'a, [u8]>,
    }
}

impl Method<'_> {
    /// The listing: bytecode pcs with their texts. Entries out of order have empty texts.
    pub fn listing_lines(&self) -> impl Iterator<Item = (u32, Cow<'_, str>)> {
        let mut start = 0;
        self.listing.iter().map(move |entry| {
            let end = usize::try_from(entry.end).unwrap_or(usize::MAX);
            let text = self.listing_text.get(start..end).unwrap_or_default();
            start = end.max(start);
            (entry.bytecode, String::from_utf8_lossy(text))
        })
    }
}

/// First bytecode of a source line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LineEntry {
    /// Bytecode pc.
    pub bytecode: u32,
    /// Line, 1-based.
    pub line: u32,
}

/// A bytecode in a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ListingEntry {
    /// Bytecode pc.
    pub bytecode: u32,
    /// End of the entry's text in [`Method::listing_text`], in bytes. The text starts at the
    /// previous entry's end.
    pub end: u32,
}

impl Wire for LineEntry {
    const LEAST: usize = 1;

    fn encode<S: Sink>(&self, sink: &mut S) {
        sink.word(pair(self.bytecode, self.line));
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        let (bytecode, line) = unpair(words.take()?);
        Ok(Self { bytecode, line })
    }
}

impl Wire for ListingEntry {
    const LEAST: usize = 1;

    fn encode<S: Sink>(&self, sink: &mut S) {
        sink.word(pair(self.bytecode, self.end));
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        let (bytecode, end) = unpair(words.take()?);
        Ok(Self { bytecode, end })
    }
}

impl Item for LineEntry {}
impl Item for ListingEntry {}

wire_struct! {
    /// A class. Published before the first birth that names it.
    pub struct Class<'a> {
        /// Unique id, never reused.
        pub id: u64,
        /// Name as users write it.
        pub name: Text<'a>,
    }
}
