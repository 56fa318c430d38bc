//! Events about the VM itself: threads, compilers, figures, and rules for its native code.

use std::borrow::Cow;

use super::wire::{DecodeError, Item, Sink, Text, Wire, Words, wire_enum, wire_struct};

wire_struct! {
    /// Start or end of a snapshot.
    pub struct Snapshot {
        /// Number of the newest request answered by the snapshot.
        pub number: u64,
    }
}

wire_enum! {
    /// A thread's role, as in `vmscope_records::ThreadRole`.
    pub enum ThreadRole {
        /// Another role, or unknown.
        Other = 0,
        /// Runs the program.
        Mutator = 1,
        /// Works for the garbage collector.
        Collector = 2,
        /// Works for a compiler.
        Compiler = 3,
        /// The VM's timer thread.
        Heartbeat = 4,
        /// Other work of the VM.
        Vm = 5,
    }
}

wire_struct! {
    /// A thread, or its new name or role.
    pub struct Thread<'a> {
        /// Thread id (`gettid`).
        pub tid: u32,
        /// Role.
        pub role: ThreadRole,
        /// Name; empty to use the kernel's name.
        pub name: Text<'a>,
    }
}

wire_struct! {
    /// The end of a thread.
    pub struct ThreadEnd {
        /// Thread id.
        pub tid: u32,
    }
}

wire_struct! {
    /// The start of a compilation.
    pub struct CompilationBegin<'a> {
        /// Thread id of the compiling thread.
        pub tid: u32,
        /// The VM's number of the compilation; 0 if it has none.
        pub number: u64,
        /// Id of the method; 0 if unknown.
        pub method: u64,
        /// Method name, equal to the later constituent's name.
        pub name: Text<'a>,
        /// Tier, equal to the later constituent's tier.
        pub tier: Text<'a>,
        /// Entry bytecode of an on-stack replacement; `None` for other compilations.
        pub osr_bytecode: Option<u32>,
    }
}

wire_struct! {
    /// The end of a thread's compilation.
    pub struct CompilationEnd {
        /// Thread id of the compiling thread.
        pub tid: u32,
    }
}

wire_enum! {
    /// Relation of a counter's values over time, as in `vmscope_records::CounterMeaning`.
    pub enum CounterMeaning {
        /// A level: the newest value counts.
        Gauge = 0,
        /// A total since the VM's start: differences count.
        Total = 1,
    }
}

wire_struct! {
    /// A named figure.
    pub struct Counter<'a> {
        /// Section of the report (`Memory`).
        pub section: Text<'a>,
        /// Name.
        pub name: Text<'a>,
        /// Unit (`bytes`, `ns`); empty for plain counts.
        pub unit: Text<'a>,
        /// Meaning.
        pub meaning: CounterMeaning,
        /// Value.
        pub value: f64,
    }
}

wire_struct! {
    /// A constant property of the VM, for the report's header.
    pub struct Fact<'a> {
        /// Name (`eden size`).
        pub name: Text<'a>,
        /// Value, as printed.
        pub value: Text<'a>,
    }
}

wire_struct! {
    /// How the VM's interpreter shows its current bytecode, as in
    /// `vmscope_records::InterpreterRules`. Replaces earlier rules.
    pub struct Interpreter<'a> {
        /// Ranges of the interpreter's code; at most 64 count.
        pub ranges: Cow<'a, [AddressRange]>,
        /// Tried in order; at most 32 count.
        pub sources: Cow<'a, [InterpreterSource]>,
    }
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AddressRange {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
}

impl Wire for AddressRange {
    const LEAST: usize = 2;

    fn encode<S: Sink>(&self, sink: &mut S) {
        self.start.encode(sink);
        self.end.encode(sink);
    }

    fn decode(words: &mut Words<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            start: Wire::decode(words)?,
            end: Wire::decode(words)?,
        })
    }
}

impl Item for AddressRange {}

wire_struct! {
    /// The frames of interpreted methods, if interpreter and machine code share one stack with one
    /// chain of frame pointers: the word at a frame pointer is the caller's frame pointer, 0 in a
    /// stack's first frame; the return address follows.
    pub struct Frames {
        /// Return address from machine code to interpreted callers. The byte before the address
        /// must be machine code, too.
        pub interpreted_return: u64,
        /// Offset from an interpreted frame's frame pointer, in bytes, of the word with the address
        /// of the frame's next bytecode (inside a constituent of kind `Bytecodes`) or with the
        /// frame's return address in machine code.
        pub next: i32,
    }
}

wire_enum! {
    /// Where a value lies.
    pub enum SamplePlace {
        /// In the register [`InterpreterSource::register`].
        Register = 0,
        /// In a stack word, at the distance [`InterpreterSource::offset`] from that register.
        Stack = 1,
    }
}

wire_enum! {
    /// Meaning of a value.
    pub enum InterpreterValue {
        /// Address of the current bytecode, inside a constituent of kind `Bytecodes`.
        Bytecode = 0,
        /// Start of a constituent of kind `MethodObject`.
        Method = 1,
        /// Return address of frameless code.
        Caller = 2,
    }
}

wire_struct! {
    /// A possible source of the interpreter's position.
    pub struct InterpreterSource {
        /// Place of the value.
        pub place: SamplePlace,
        /// Register, in the kernel's numbering (`perf_regs.h`).
        pub register: u32,
        /// Offset from the register's value, in bytes.
        pub offset: i32,
        /// Meaning.
        pub holds: InterpreterValue,
    }
}

impl Item for InterpreterSource {}

wire_enum! {
    /// Region of the VM's code, as in `vmscope_records::Region`.
    pub enum Region {
        /// Unknown.
        Unknown = 0,
        /// Generated code.
        Generated = 1,
        /// The interpreter.
        Interpreter = 2,
        /// The garbage collector.
        Gc = 3,
        /// A compiler.
        Compiler = 4,
        /// Other code of the VM.
        Vm = 5,
        /// Shared libraries.
        Library = 6,
    }
}

wire_struct! {
    /// Rules that assign the VM's native functions to regions, as in
    /// `vmscope_records::RegionRules`. The first matching rule counts. New rules replace earlier
    /// rules.
    pub struct Regions<'a> {
        /// The rules.
        pub rules: Cow<'a, [RegionRule<'a>]>,
    }
}

wire_struct! {
    /// A rule for functions of one module. A function matches if every condition holds; empty
    /// conditions always hold.
    pub struct RegionRule<'a> {
        /// File name of the module, without its folder.
        pub module: Text<'a>,
        /// Role of the sampled thread, if it matters.
        pub role: Option<ThreadRole>,
        /// Whole identifiers of the function's qualified name.
        pub identifiers: Text<'a>,
        /// Prefix of the demangled name.
        pub prefix: Text<'a>,
        /// Substring of the name.
        pub contains: Text<'a>,
        /// Suffix of the name.
        pub suffix: Text<'a>,
        /// Region of matching functions.
        pub region: Region,
        /// Component of the region, in the VM's words.
        pub part: Text<'a>,
        /// Whether the name is shown without `prefix` and `suffix`.
        pub strip: bool,
    }
}

impl Item for RegionRule<'_> {}
