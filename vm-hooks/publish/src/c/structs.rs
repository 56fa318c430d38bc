//! Structs of `include/vmscope_publish.h`, with their conversions to events.

use super::lists::list;
use crate::event::wire::Text;
use crate::event::{Boundary, ChainFrame, Cover, LineEntry, ListingEntry};
use crate::event::{
    BoundaryRule, CollectionBegin, CollectionScope, CompilationBegin, Constituent, ConstituentKind,
    Counter, CounterMeaning, Exactness, InterpreterSource, InterpreterValue, Method, PcMap,
    PhaseBegin, PicCase, Region, RegionRule, SamplePlace, SpaceUse, ThreadRole,
};

/// No number (`VMSCOPE_NONE`).
pub(super) const NONE: u32 = u32::MAX;
/// No number (`VMSCOPE_UNKNOWN`).
pub(super) const UNKNOWN: u64 = u64::MAX;

/// A text from C.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct CText {
    pub(super) bytes: *const u8,
    pub(super) length: usize,
}

impl CText {
    /// # Safety
    ///
    /// The bytes stay unchanged for `'a`.
    pub(super) unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: as promised by the caller.
        unsafe { list(self.bytes, self.length) }
    }

    /// # Safety
    ///
    /// The bytes stay unchanged for `'a`.
    pub(super) unsafe fn get<'a>(self) -> Text<'a> {
        // SAFETY: as promised by the caller.
        Text::from(unsafe { self.bytes() })
    }
}

/// A struct with its size in the first field.
///
/// # Safety
///
/// Implementors begin with a `usize`. Every other field accepts any bytes, except pointers.
pub(super) unsafe trait Sized_ {}

/// A struct from C. `None` for null or misaligned pointers, and for structs smaller than the first
/// version's.
///
/// # Safety
///
/// `given` is null, or points to a struct whose first field holds the struct's size. The struct
/// stays unchanged for `'a`.
pub(super) unsafe fn sized<'a, T: Sized_>(given: *const T) -> Option<&'a T> {
    if given.is_null() || !given.is_aligned() {
        return None;
    }
    // SAFETY: the struct begins with its size.
    let size = unsafe { given.cast::<usize>().read() };
    if size < size_of::<T>() {
        return None;
    }
    // SAFETY: the pointer is aligned and not null, and the struct is large enough; the caller
    // promises the rest.
    unsafe { given.as_ref() }
}

/// Declares structs of C that begin with their size.
macro_rules! sized_structs {
    ($($name:ident { $($field:ident: $type:ty,)* })*) => {
        $(#[repr(C)]
        pub(super) struct $name {
            pub(super) size: usize,
            $(pub(super) $field: $type,)*
        }

        // SAFETY: it begins with its size, and holds numbers and pointers.
        unsafe impl Sized_ for $name {})*
    };
}

sized_structs! {
    COptions {
        name: CText,
        version: CText,
        stream_bytes: u64,
        sample_bytes: u64,
        snapshot_patience_ns: u64,
    }
    CConstituent {
        id: u64,
        start: u64,
        end: u64,
        since: u64,
        kind: u32,
        map: u32,
        kind_word: CText,
        tier: CText,
        name: CText,
        method: u64,
        cases: *const CCase,
        case_count: usize,
        boundaries: *const Boundary,
        boundary_count: usize,
        boundary_rule: u32,
        boundary_exactness: u32,
        covers: *const Cover,
        cover_count: usize,
        frames: *const ChainFrame,
        frame_count: usize,
    }
    CMethod {
        id: u64,
        class_name: CText,
        name: CText,
        file: CText,
        lines: *const LineEntry,
        line_count: usize,
        bytecodes: *const u8,
        bytecode_count: usize,
        listing: *const ListingEntry,
        listing_count: usize,
        listing_text: CText,
        line: u32,
        reserved: u32,
    }
    CCompilation {
        number: u64,
        method: u64,
        name: CText,
        tier: CText,
        tid: u32,
        osr_bytecode: u32,
    }
    CCollected {
        id: u64,
        spaces: *const CSpace,
        space_count: usize,
        survived_bytes: u64,
        tenured_bytes: u64,
        survived_objects: u64,
        cpu_ns: u64,
    }
    CCollection {
        id: u64,
        collector: CText,
        kind: CText,
        cause: CText,
        spaces: *const CSpace,
        space_count: usize,
        scope: u32,
        reserved: u32,
    }
    CPhase {
        collection: u64,
        name: CText,
        phase: u32,
        within: u32,
        stop_the_world: u32,
        tid: u32,
    }
    CCounter {
        section: CText,
        name: CText,
        unit: CText,
        value: f64,
        meaning: u32,
        reserved: u32,
    }
}

#[repr(C)]
pub(super) struct CCase {
    pub(super) class_name: CText,
    pub(super) method: u64,
    pub(super) target: CText,
}

#[repr(C)]
pub(super) struct CSpace {
    pub(super) name: CText,
    pub(super) used: u64,
    pub(super) capacity: u64,
}

#[repr(C)]
pub(super) struct CSource {
    pub(super) place: u32,
    pub(super) reg: u32,
    pub(super) offset: i32,
    pub(super) holds: u32,
}

#[repr(C)]
pub(super) struct CRegionRule {
    pub(super) module: CText,
    pub(super) identifiers: CText,
    pub(super) prefix: CText,
    pub(super) contains: CText,
    pub(super) suffix: CText,
    pub(super) part: CText,
    pub(super) role: u32,
    pub(super) region: u32,
    pub(super) strip: u32,
    pub(super) reserved: u32,
}

pub(super) fn known(number: u64) -> Option<u64> {
    (number != UNKNOWN).then_some(number)
}

fn some(number: u32) -> Option<u32> {
    (number != NONE).then_some(number)
}

impl CConstituent {
    /// # Safety
    ///
    /// All data behind the struct's pointers stays unchanged for `'a`.
    pub(super) unsafe fn get<'a>(&self, cases: &'a [PicCase<'a>]) -> Constituent<'a> {
        let map = match self.map {
            1 => PcMap::Boundary {
                rule: BoundaryRule::from_number(self.boundary_rule.into()),
                exactness: Exactness::from_number(self.boundary_exactness.into()),
                // SAFETY: as promised by the caller.
                entries: unsafe { list(self.boundaries, self.boundary_count) }.into(),
            },
            2 => PcMap::Covers {
                // SAFETY: as promised by the caller.
                covers: unsafe { list(self.covers, self.cover_count) }.into(),
                // SAFETY: as promised by the caller.
                frames: unsafe { list(self.frames, self.frame_count) }.into(),
            },
            _ => PcMap::None,
        };
        Constituent {
            id: self.id,
            start: self.start,
            end: self.end,
            since: (self.since != 0).then_some(self.since),
            kind: ConstituentKind::from_number(self.kind.into()),
            // SAFETY: as promised by the caller.
            kind_word: unsafe { self.kind_word.get() },
            // SAFETY: as promised by the caller.
            tier: unsafe { self.tier.get() },
            // SAFETY: as promised by the caller.
            name: unsafe { self.name.get() },
            method: self.method,
            cases: cases.into(),
            map,
        }
    }
}

impl CMethod {
    /// # Safety
    ///
    /// All data behind the struct's pointers stays unchanged for `'a`.
    pub(super) unsafe fn get<'a>(&self) -> Method<'a> {
        Method {
            id: self.id,
            // SAFETY: as promised by the caller.
            class: unsafe { self.class_name.get() },
            // SAFETY: as promised by the caller.
            name: unsafe { self.name.get() },
            // SAFETY: as promised by the caller.
            file: unsafe { self.file.get() },
            line: self.line,
            // SAFETY: as promised by the caller.
            lines: unsafe { list(self.lines, self.line_count) }.into(),
            // SAFETY: as promised by the caller.
            bytecodes: unsafe { list(self.bytecodes, self.bytecode_count) }.into(),
            // SAFETY: as promised by the caller.
            listing: unsafe { list(self.listing, self.listing_count) }.into(),
            // SAFETY: as promised by the caller.
            listing_text: unsafe { self.listing_text.bytes() }.into(),
        }
    }
}

impl CCompilation {
    /// # Safety
    ///
    /// All data behind the struct's pointers stays unchanged for `'a`.
    pub(super) unsafe fn get<'a>(&self) -> CompilationBegin<'a> {
        CompilationBegin {
            tid: self.tid,
            number: self.number,
            method: self.method,
            // SAFETY: as promised by the caller.
            name: unsafe { self.name.get() },
            // SAFETY: as promised by the caller.
            tier: unsafe { self.tier.get() },
            osr_bytecode: some(self.osr_bytecode),
        }
    }
}

impl CCollection {
    /// # Safety
    ///
    /// All data behind the struct's pointers stays unchanged for `'a`.
    pub(super) unsafe fn get<'a>(&self, spaces: &'a [SpaceUse<'a>]) -> CollectionBegin<'a> {
        CollectionBegin {
            id: self.id,
            scope: CollectionScope::from_number(self.scope.into()),
            // SAFETY: as promised by the caller.
            collector: unsafe { self.collector.get() },
            // SAFETY: as promised by the caller.
            kind: unsafe { self.kind.get() },
            // SAFETY: as promised by the caller.
            cause: unsafe { self.cause.get() },
            spaces: spaces.into(),
        }
    }
}

impl CPhase {
    /// # Safety
    ///
    /// All data behind the struct's pointers stays unchanged for `'a`.
    pub(super) unsafe fn get<'a>(&self) -> PhaseBegin<'a> {
        PhaseBegin {
            collection: self.collection,
            phase: self.phase,
            // SAFETY: as promised by the caller.
            name: unsafe { self.name.get() },
            within: some(self.within),
            stop_the_world: self.stop_the_world != 0,
            tid: self.tid,
        }
    }
}

impl CCounter {
    /// # Safety
    ///
    /// All data behind the struct's pointers stays unchanged for `'a`.
    pub(super) unsafe fn get<'a>(&self) -> Counter<'a> {
        Counter {
            // SAFETY: as promised by the caller.
            section: unsafe { self.section.get() },
            // SAFETY: as promised by the caller.
            name: unsafe { self.name.get() },
            // SAFETY: as promised by the caller.
            unit: unsafe { self.unit.get() },
            meaning: CounterMeaning::from_number(self.meaning.into()),
            value: self.value,
        }
    }
}

impl CSource {
    pub(super) fn get(&self) -> InterpreterSource {
        InterpreterSource {
            place: SamplePlace::from_number(self.place.into()),
            register: self.reg,
            offset: self.offset,
            holds: InterpreterValue::from_number(self.holds.into()),
        }
    }
}

impl CRegionRule {
    /// # Safety
    ///
    /// All data behind the struct's pointers stays unchanged for `'a`.
    pub(super) unsafe fn get<'a>(&self) -> RegionRule<'a> {
        RegionRule {
            // SAFETY: as promised by the caller.
            module: unsafe { self.module.get() },
            role: some(self.role).map(|role| ThreadRole::from_number(role.into())),
            // SAFETY: as promised by the caller.
            identifiers: unsafe { self.identifiers.get() },
            // SAFETY: as promised by the caller.
            prefix: unsafe { self.prefix.get() },
            // SAFETY: as promised by the caller.
            contains: unsafe { self.contains.get() },
            // SAFETY: as promised by the caller.
            suffix: unsafe { self.suffix.get() },
            region: Region::from_number(self.region.into()),
            // SAFETY: as promised by the caller.
            part: unsafe { self.part.get() },
            strip: self.strip != 0,
        }
    }
}
