//! Numbers that V8 does not tell, by version (of others: [`crate::fit`]); checked on Node.js 18.20.8 (V8 10.2), 20.20.2 (11.3),
//! 22.23.3 (12.4), 24.21.0 (13.6) and 26.12.1 (14.6) on x86-64. Constants of the binary ([`struct@Debug`]) take precedence.
//!
//! Offsets are in bytes, from the object's first byte.

use crate::debug::Debug;
use crate::deopt::DeoptForm;
use crate::positions::EntryForm;

/// Main version and release of V8: `(12, 4)` for 12.4.254.
pub type Version = (u32, u32);

/// Where V8 keeps its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Machine code with its header.
    pub stream: StreamFields,
    /// The object that describes machine code.
    pub code: CodeFields,
    /// Kinds of code.
    pub kinds: Kinds,
    /// Bytecodes of a function.
    pub bytecodes: BytecodeFields,
    /// Form of source positions.
    pub positions: EntryForm,
    /// A function without its context (`SharedFunctionInfo`).
    pub function: FunctionFields,
    /// The names of a function.
    pub scope: ScopeFields,
    /// Indices in the data of optimised code.
    pub optimised: OptimisedFields,
    /// A script.
    pub script: ScriptFields,
    /// Strings.
    pub string: StringFields,
    /// All machine code, where V8 has a list of it; its pages otherwise.
    pub registry: Registry,
    /// Places at which V8 can leave Maglev's code; `None` in versions whose form is unknown, or that have source
    /// positions of all code.
    pub deopt: Option<DeoptForm>,
    /// Collections; `None` in a V8 of an unknown version.
    pub collector: Option<CollectorFields>,
    /// Used bytes of spaces; `None` in a V8 of an unknown version.
    pub spaces: Option<SpaceFields>,
    /// WebAssembly.
    pub wasm: WasmFields,
}

/// Fields of an `InstructionStream` (V8 10: a `Code`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFields {
    /// Its `Code`; `None` if it is one itself.
    pub code: Option<u64>,
    /// The first instruction.
    pub start: u64,
}

/// Fields of a `Code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeFields {
    /// Data for deoptimisation; the bytecodes for Sparkplug.
    pub data: u64,
    /// Source positions; offsets of bytecodes for Sparkplug.
    pub positions: u64,
    /// Its instruction stream; `None` in V8 10.
    pub stream: Option<u64>,
    /// Address of its first instruction; `None` in V8 10.
    pub start: Option<u64>,
    /// Flags; the kind is in the last four bits.
    pub flags: u64,
    /// Bytes of instructions (32 bits).
    pub size: u64,
}

/// Numbers of kinds of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// Builtins. Regular expressions follow.
    pub builtin: u64,
    /// Sparkplug. Maglev and TurboFan follow.
    pub baseline: u64,
}

/// Fields of a `BytecodeArray`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BytecodeFields {
    /// Constant pool.
    pub constants: u64,
    /// Source positions.
    pub positions: u64,
    /// The first bytecode.
    pub first: u64,
    /// Number of the register `r0`: its distance from the frame pointer in words.
    pub first_register: i64,
}

/// Fields of a `SharedFunctionInfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionFields {
    /// Name, or scope.
    pub name: u64,
    /// Script.
    pub script: u64,
    /// Bytecodes, or code that leads to them.
    pub data: u64,
}

/// Contents of a `ScopeInfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopeFields {
    /// Whether the start position precedes the names.
    pub position_is_first: bool,
    /// Number of module scopes among types of scopes, whose first word counts variables; `None` if
    /// modules have no such word.
    pub counting_type: Option<u64>,
}

/// Contents of the array that describes optimised code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptimisedFields {
    /// Index of the function.
    pub function: u64,
    /// Whether a wrapper holds the function.
    pub is_wrapped: bool,
    /// Index of the array with inlined functions.
    pub literals: u64,
    /// Index of the array with inlining positions.
    pub inlining: u64,
}

/// Fields of a `Script`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptFields {
    /// Text.
    pub source: u64,
    /// Name: path or URL.
    pub name: u64,
    /// Number of lines before its text.
    pub line_offset: u64,
    /// Number, unique in its isolate.
    pub id: u64,
    /// List of its functions.
    pub functions: u64,
}

/// Fields of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringFields {
    /// Type, in a map.
    pub instance_type: u64,
    /// Number of characters.
    pub length: u64,
    /// Characters of a sequential string; first field of other strings.
    pub first: u64,
    /// Second field: second part, offset, or address of external characters.
    pub second: u64,
    /// First type that is no string.
    pub not_string: u64,
}

/// Where an isolate tells its collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectorFields {
    /// The heap, in an isolate of the checked release. Other patch releases have it some words away.
    pub heap: u64,
    /// Address of the `GCTracer`, in the heap.
    pub tracer: u64,
    /// The previous event, in a tracer; the current event is at 0.
    pub previous: u64,
    /// Begin of an event. Its end and its sizes follow.
    pub begin: u64,
    /// Whether times are milliseconds in floating point, else microseconds.
    pub has_milliseconds: bool,
    /// Numbers of mark-compacts and of all collections (32 bits each), in the heap; `None` in a V8 of an
    /// unknown version.
    pub counts: Option<u64>,
    /// Likewise.
    pub figures: Option<FigureFields>,
}

/// Figures that no check can tell from other numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FigureFields {
    /// Number of the isolate in its process (32 bits), from the heap's begin.
    pub number: u64,
    /// Durations of pauses.
    pub pauses: PauseFields,
    /// Bytes of surviving young objects, in an event.
    pub survived: u64,
    /// Begin of incremental marking.
    pub marking: MarkingField,
}

/// Where V8 keeps durations of pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseFields {
    /// Microseconds of all pauses, in the heap.
    Sum(u64),
    /// Rings of the ten newest pauses (bytes and milliseconds each), in the tracer: of scavenges, of
    /// incremental mark-compacts, of other mark-compacts.
    Rings([u64; 3]),
}

/// Where V8 keeps the begin of incremental marking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkingField {
    /// In the tracer: the newest begin.
    Tracer(u64),
    /// In the event of its mark-compact.
    Event(u64),
}

/// Fields with used bytes, in a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceFields {
    /// Of a space with pages of equal size. Contains areas that allocations have reserved.
    pub paged: u64,
    /// Of a space of large objects.
    pub large: u64,
}

/// Where WebAssembly keeps its code ([`crate::wasm`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WasmFields {
    /// The map of regions, in the `WasmCodeManager`.
    pub modules: u64,
    /// The map of code, in a module.
    pub code: u64,
    /// Address of the vector with the module's bytes, in a module.
    pub bytes: u64,
    /// Address of the tables of code, in a `WasmCode`.
    pub tables: usize,
    /// Bytes of instructions (32 bits), in a `WasmCode`; bytes of its tables follow.
    pub size: usize,
    /// Number of the function (32 bits), in a `WasmCode`.
    pub index: usize,
    /// Flags (8 bits), in a `WasmCode`: its use, then two bits for its compiler.
    pub flags: usize,
    /// Number of flags for its use.
    pub use_bits: u32,
    /// Its use, if it is a jump table.
    pub jump_table: u8,
}

/// Where all machine code can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registry {
    /// Trees of pages and pieces of code (`ThreadIsolation`): offset of the map in a `JitPage`.
    Trees {
        /// Offset of the tree in a page's entry.
        allocations: u64,
    },
    /// Pages of code: 256 KiB aligned, with a header.
    Pages {
        /// Size in the first word of a page, header included.
        size: u64,
        /// First address of objects.
        area_start: u64,
        /// First address after the objects.
        area_end: u64,
    },
}

/// Layout of V8 12.4; other versions differ in parts.
const COMMON: Layout = Layout {
    stream: StreamFields {
        code: Some(8),
        start: 32,
    },
    code: CodeFields {
        data: 8,
        positions: 16,
        stream: Some(32),
        start: Some(40),
        flags: 48,
        size: 52,
    },
    kinds: Kinds {
        builtin: 2,
        baseline: 10,
    },
    bytecodes: BytecodeFields {
        constants: 40,
        positions: 24,
        first: 64,
        first_register: -7,
    },
    positions: EntryForm::Signed,
    function: FunctionFields {
        name: 16,
        script: 32,
        data: 8,
    },
    scope: ScopeFields {
        position_is_first: false,
        counting_type: Some(3),
    },
    optimised: OptimisedFields {
        function: 6,
        is_wrapped: false,
        literals: 2,
        inlining: 7,
    },
    script: ScriptFields {
        source: 8,
        name: 16,
        line_offset: 24,
        id: 64,
        functions: 88,
    },
    string: StringFields {
        instance_type: 12,
        length: 12,
        first: 16,
        second: 24,
        not_string: 0x80,
    },
    deopt: None,
    registry: Registry::Trees { allocations: 40 },
    collector: Some(CollectorFields {
        heap: 0xdea0,
        tracer: 0x6c8,
        previous: 0x600,
        begin: 32,
        has_milliseconds: false,
        counts: Some(0x1b0),
        figures: Some(FigureFields {
            number: 0xc90,
            pauses: PauseFields::Sum(0x6b8),
            survived: 112,
            marking: MarkingField::Event(0x88),
        }),
    }),
    spaces: Some(SpaceFields {
        paged: 0x70,
        large: 0x60,
    }),
    wasm: WasmFields {
        modules: 0x40,
        code: 0x188,
        bytes: 0xc8,
        tables: 0x10,
        size: 0x18,
        index: 0x2c,
        flags: 0x50,
        use_bits: 2,
        jump_table: 3,
    },
};

const V8_14: Layout = Layout {
    deopt: None,
    positions: EntryForm::Flags,
    kinds: Kinds {
        builtin: 3,
        baseline: 11,
    },
    collector: Some(CollectorFields {
        heap: 0xf3c0,
        tracer: 0x780,
        previous: 0x6c8,
        begin: 40,
        has_milliseconds: false,
        counts: Some(0x240),
        figures: Some(FigureFields {
            number: 0xc18,
            pauses: PauseFields::Sum(0x770),
            survived: 192,
            marking: MarkingField::Event(0xe0),
        }),
    }),
    spaces: Some(SpaceFields {
        paged: 0x68,
        large: 0x58,
    }),
    wasm: WasmFields {
        code: 0x130,
        bytes: 0xe8,
        flags: 0x78,
        use_bits: 3,
        jump_table: 4,
        ..V8_13.wasm
    },
    ..V8_13
};

const PAGES: Registry = Registry::Pages {
    size: 0,
    area_start: 24,
    area_end: 32,
};

const OLD_SCOPE: ScopeFields = ScopeFields {
    position_is_first: false,
    counting_type: None,
};

const V8_10: Layout = Layout {
    stream: StreamFields {
        code: None,
        start: 128,
    },
    code: CodeFields {
        data: 16,
        positions: 24,
        stream: None,
        start: None,
        flags: 48,
        size: 40,
    },
    kinds: Kinds {
        baseline: 11,
        ..COMMON.kinds
    },
    bytecodes: BytecodeFields {
        constants: 16,
        positions: 32,
        first: 56,
        first_register: -6,
    },
    scope: OLD_SCOPE,
    registry: PAGES,
    collector: Some(CollectorFields {
        heap: 0xc638,
        tracer: 0x918,
        previous: 0x588,
        begin: 32,
        has_milliseconds: true,
        counts: Some(0x268),
        figures: Some(FigureFields {
            number: 0xeb8,
            pauses: PauseFields::Rings([0xcb8, 0xeb0, 0xf58]),
            survived: 112,
            marking: MarkingField::Tracer(0xb38),
        }),
    }),
    spaces: Some(SpaceFields {
        paged: 0x110,
        large: 0xd8,
    }),
    wasm: WasmFields {
        modules: 0x48,
        code: 0x1a0,
        bytes: 0x138,
        tables: 0x18,
        size: 0x20,
        index: 0x30,
        flags: 0x10,
        ..COMMON.wasm
    },
    ..COMMON
};

const V8_11: Layout = Layout {
    stream: StreamFields {
        code: Some(8),
        start: 16,
    },
    code: CodeFields {
        data: 16,
        positions: 24,
        size: 56,
        ..COMMON.code
    },
    kinds: Kinds {
        baseline: 11,
        ..COMMON.kinds
    },
    bytecodes: BytecodeFields {
        constants: 16,
        positions: 32,
        first: 54,
        first_register: -6,
    },
    scope: OLD_SCOPE,
    registry: PAGES,
    collector: Some(CollectorFields {
        heap: 0xd2c0,
        tracer: 0x8f8,
        previous: 0x5b0,
        begin: 32,
        has_milliseconds: true,
        counts: Some(0x240),
        figures: Some(FigureFields {
            number: 0xe58,
            pauses: PauseFields::Rings([0xcf0, 0xee8, 0xf90]),
            survived: 112,
            marking: MarkingField::Tracer(0xb88),
        }),
    }),
    spaces: Some(SpaceFields {
        paged: 0x98,
        large: 0x60,
    }),
    wasm: WasmFields {
        code: 0x130,
        ..COMMON.wasm
    },
    ..COMMON
};

const V8_13: Layout = Layout {
    deopt: Some(DeoptForm {
        operands: &[
            6, 4, 3, 3, 2, 1, 3, 4, 3, 3, 3, 1, 0, 0, 3, 3, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1,
            1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 2, 1,
        ],
    }),
    code: CodeFields {
        flags: 52,
        size: 56,
        ..COMMON.code
    },
    function: FunctionFields {
        name: 24,
        script: 40,
        data: 8,
    },
    scope: ScopeFields {
        position_is_first: true,
        counting_type: Some(5),
    },
    optimised: OptimisedFields {
        function: 7,
        is_wrapped: true,
        literals: 3,
        inlining: 8,
    },
    registry: Registry::Trees { allocations: 8 },
    collector: Some(CollectorFields {
        heap: 0xeff8,
        tracer: 0x750,
        previous: 0x658,
        begin: 40,
        has_milliseconds: false,
        counts: Some(0x238),
        figures: Some(FigureFields {
            number: 0xba8,
            pauses: PauseFields::Sum(0x740),
            survived: 120,
            marking: MarkingField::Event(0x98),
        }),
    }),
    spaces: Some(SpaceFields {
        paged: 0x78,
        large: 0x68,
    }),
    wasm: WasmFields {
        modules: 0x20,
        code: 0x138,
        bytes: 0xf0,
        tables: 0x18,
        size: 0x20,
        index: 0x38,
        flags: 0x60,
        ..COMMON.wasm
    },
    ..COMMON
};

/// Whether the layout of this version is known.
#[must_use]
pub fn is_known(version: Version) -> bool {
    layout_of(version).is_some()
}

/// Versions with their layouts, oldest first.
const KNOWN: [(Version, Layout); 5] = [
    ((10, 2), V8_10),
    ((11, 3), V8_11),
    ((12, 4), COMMON),
    ((13, 6), V8_13),
    ((14, 6), V8_14),
];

fn layout_of(version: Version) -> Option<Layout> {
    let known = KNOWN.iter().find(|(known, _)| *known == version);
    known.map(|(_, layout)| *layout)
}

/// Whether vmscope reads the V8 of this main version of Node.js.
#[must_use]
pub fn reads_node(major: u32) -> bool {
    matches!(major, 18 | 20 | 22 | 24 | 26)
}

impl Layout {
    /// The layout of a version with the binary's own constants; `None` for unknown versions.
    #[must_use]
    pub fn new(version: Version, debug: &Debug) -> Option<Self> {
        Some(layout_of(version)?.with(debug))
    }

    /// All known layouts, that of the version next to `version` first, with the binary's own constants. Without
    /// forms of deoptimisation, which no check tells.
    #[must_use]
    pub fn nearest(version: Version, debug: &Debug) -> [Self; KNOWN.len()] {
        let number = |(major, minor): Version| u64::from(major) * 100 + u64::from(minor.min(99));
        let mut known = KNOWN;
        known.sort_by_key(|(other, _)| number(*other).abs_diff(number(version)));
        // Kinds of code have consecutive numbers: the constant tells which layouts have other ones.
        let baseline = debug.get("CodeKindBaseline");
        let has_kinds = |layout: &&Layout| {
            let own = layout.kinds.baseline;
            baseline.is_none_or(|baseline| baseline == own)
        };
        let mut layouts = known.iter().map(|(_, layout)| layout);
        let first = layouts.find(has_kinds);
        let with_kinds = |layout: &Layout| {
            let found = Some(layout).filter(has_kinds).or(first);
            let own = layout.with(debug);
            Layout {
                deopt: None,
                kinds: found.map_or(own.kinds, |found| found.kinds),
                ..own
            }
        };
        known.each_ref().map(|(_, layout)| with_kinds(layout))
    }

    /// With the binary's own constants.
    fn with(mut self, debug: &Debug) -> Self {
        let layout = &mut self;
        let known = |field: &mut u64, name: &str| *field = debug.get(name).unwrap_or(*field);
        known(&mut layout.code.flags, "class_Code__flags__");
        known(&mut layout.code.size, "class_Code__instruction_size__");
        known(&mut layout.kinds.baseline, "CodeKindBaseline");
        known(
            &mut layout.function.script,
            "class_SharedFunctionInfo__script",
        );
        let name = "class_SharedFunctionInfo__name_or_scope_info__";
        known(&mut layout.function.name, name);
        known(&mut layout.script.source, "class_Script__source__");
        known(&mut layout.script.name, "class_Script__name__");
        known(&mut layout.string.length, "class_String__length__");
        known(
            &mut layout.string.instance_type,
            "class_Map__instance_type__",
        );
        known(&mut layout.string.not_string, "FirstNonstringType");
        let optimised = &mut layout.optimised;
        for (name, is_wrapped) in [
            ("DeoptimizationDataSharedFunctionInfoIndex", false),
            ("DeoptimizationDataSharedFunctionInfoWrapperIndex", true),
            ("DeoptimizationDataWrappedSharedFunctionInfoIndex", true),
        ] {
            if let Some(index) = debug.get(name) {
                (optimised.function, optimised.is_wrapped) = (index, is_wrapped);
            }
        }
        let name = "DeoptimizationDataLiteralArrayIndex";
        known(&mut optimised.literals, name);
        let name = "DeoptimizationDataInliningPositionsIndex";
        known(&mut optimised.inlining, name);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_known_whole() {
        assert!(is_known((12, 4)) && !is_known((12, 5)) && !is_known((14, 1)));
        for major in [18, 20, 22, 24, 26] {
            assert!(reads_node(major));
        }
        assert!(!reads_node(16) && !reads_node(25));
        assert_eq!(Layout::new((9, 0), &Debug::default()), None);
    }
}
