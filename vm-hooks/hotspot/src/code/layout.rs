//! Field offsets of the code cache's structures, from the JVM's own tables.

use vmscope_process::AdapterError;
use vmscope_records::Avma;

use super::cache::DeoptimisedFrames;
use crate::layout::{Encodings, Missing, Scalar, VmStructs, Wanted};

/// Field offsets of the code cache's structures.
#[derive(Clone, Debug)]
pub struct CodeLayout {
    /// Encoding of numbers.
    pub encodings: Encodings,
    pub(super) heaps: HeapsLayout,
    pub(super) blob: BlobLayout,
    pub(super) nmethod: NmethodLayout,
    pub(super) pc_desc: PcDescLayout,
    /// Optional fields missing from the tables.
    pub missing: Vec<Missing>,
}

/// Consequences of missing fields.
mod cost {
    pub const RECORDS: &str = "JIT code has no bytecodes";
    pub const FRAMES: &str = "frame sizes of JIT code are unknown";
    pub const CONSTANTS: &str =
        "bytecodes of JIT code are less certain (its constants are unknown)";
    pub const FAULTS: &str =
        "bytecodes of JIT code are less certain (its implicit exceptions are unknown)";
    pub const TIERS: &str = "the compiler (C1, C2) of JIT code is unknown";
    pub const LIVES: &str = "JIT code may get the name of older code at the same address";
    pub const OSR: &str = "on-stack replacement code is not marked";
    pub const STATES: &str = "unfinished JIT code may be reported too early";
    pub const NAMES: &str = "JIT code has no names";
    pub const STUBS: &str = "out-of-line parts of JIT code are not marked";
    pub const DEOPTIMISED: &str = "inlined callers in deoptimised JIT code are missing";
}

#[derive(Clone, Debug)]
pub(super) struct HeapsLayout {
    /// `CodeCache::_heaps`: a pointer to a `GrowableArray`.
    pub heaps: Avma,
    pub length: Scalar,
    pub data: Scalar,
    /// In `CodeHeap`: bounds of its memory and of its segment map.
    pub low: Scalar,
    pub high: Scalar,
    /// End of the reserved memory; [`HeapsLayout::high`] in VMs without this value.
    pub reserved_end: Scalar,
    pub segmap_low: Scalar,
    pub segmap_high: Scalar,
    pub log2_segment: Scalar,
    /// Header of each block.
    pub block_bytes: u64,
    pub block_length: Scalar,
    pub block_used: Scalar,
}

#[derive(Clone, Debug)]
pub(super) struct BlobLayout {
    pub bytes: u64,
    pub name: Scalar,
    pub size: Scalar,
    pub frame_size: Scalar,
    pub frame_complete: Scalar,
    pub data_offset: Scalar,
    pub code: CodeBounds,
    /// Begin of the constants in front of the code; offset in the blob.
    pub content: Option<Scalar>,
    /// From JDK 23 on, data from before and behind the code lie elsewhere.
    pub mutable: Option<MutableData>,
}

/// Fields with the bounds of a blob's code.
#[derive(Clone, Copy, Debug)]
pub(super) enum CodeBounds {
    /// Addresses (up to JDK 22).
    Addresses { begin: Scalar, end: Scalar },
    /// Offset of the code; the code ends at the data's begin.
    Offset(Scalar),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MutableData {
    pub at: Scalar,
    pub size: Scalar,
    pub relocation_size: Scalar,
}

#[derive(Clone, Debug)]
pub(super) struct NmethodLayout {
    pub bytes: u64,
    pub method: Scalar,
    pub compile_id: Scalar,
    pub level: Scalar,
    pub entry_bci: Scalar,
    pub state: Scalar,
    pub stub_offset: Scalar,
    pub deopt: Option<DeoptLayout>,
    pub sections: Sections,
}

/// What the VM needs to deoptimise a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeoptLayout {
    handler: DeoptHandler,
    original_pc: Scalar,
}

/// Place of the code to which a deoptimised frame returns.
#[derive(Clone, Copy, Debug)]
enum DeoptHandler {
    /// Up to JDK 22: its address.
    Address(Scalar),
    /// JDK 23 on: its offset in the blob.
    Offset(Scalar),
}

/// Fields of an nmethod's metadata and debug data.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sections {
    /// Unreadable, since fields are missing.
    Unknown,
    /// Up to JDK 22: in the blob, behind the code.
    InBlob {
        metadata: Scalar,
        /// A pointer.
        scopes_data: Scalar,
        scopes_pcs: Scalar,
        dependencies: Scalar,
        implicit: Scalar,
        end: Scalar,
    },
    /// JDK 23 on: in a separate memory block.
    Immutable {
        at: Scalar,
        size: Scalar,
        implicit: Scalar,
        scopes_pcs: Scalar,
        scopes_data: Scalar,
    },
}

#[derive(Clone, Debug)]
pub(super) struct PcDescLayout {
    pub bytes: u64,
    pub pc: Scalar,
    pub scope: Scalar,
}

impl CodeLayout {
    /// Finds all fields. [`CodeLayout::missing`] lists the optional fields that are absent.
    ///
    /// # Errors
    /// [`AdapterError::MissingField`] for a field essential to finding code.
    pub fn of(structs: &VmStructs, encodings: Encodings) -> Result<Self, AdapterError> {
        let mut wanted = Wanted::new(structs);
        let heaps = HeapsLayout::of(structs)?;
        let blob = BlobLayout::of(&mut wanted)?;
        let mut nmethod = NmethodLayout::of(&mut wanted);
        let pc_desc = PcDescLayout::of(&mut wanted);
        if pc_desc.bytes == 0 || pc_desc.pc.is_absent() || pc_desc.scope.is_absent() {
            nmethod.sections = Sections::Unknown;
        }
        Ok(CodeLayout {
            encodings,
            heaps,
            blob,
            nmethod,
            pc_desc,
            missing: wanted.missing,
        })
    }
}

impl CodeLayout {
    /// Whether nmethods have a readable `Method*`.
    #[must_use]
    pub fn tells_methods(&self) -> bool {
        !self.nmethod.method.is_absent()
    }
}

/// A field of a nested structure.
fn nested(
    structs: &VmStructs,
    outer: (&str, &str),
    inner: (&str, &str),
) -> Result<Scalar, AdapterError> {
    let begin = structs.offset(outer.0, outer.1)?;
    let scalar = structs.scalar(inner.0, inner.1)?;
    Ok(Scalar {
        offset: begin.saturating_add(scalar.offset),
        ..scalar
    })
}

impl HeapsLayout {
    fn of(structs: &VmStructs) -> Result<Self, AdapterError> {
        let space = |outer, inner| nested(structs, ("CodeHeap", outer), ("VirtualSpace", inner));
        let block = |name| {
            let within = structs.optional_offset("HeapBlock", "_header").unwrap_or(0);
            let scalar = structs.scalar("HeapBlock::Header", name)?;
            Ok::<_, AdapterError>(Scalar {
                offset: scalar.offset.saturating_add(within),
                ..scalar
            })
        };
        let high = space("_memory", "_high")?;
        Ok(HeapsLayout {
            heaps: structs.static_at("CodeCache", "_heaps")?,
            length: structs
                .optional_scalar("GrowableArrayBase", "_len")
                .map_or_else(|| structs.scalar("GenericGrowableArray", "_len"), Ok)?,
            data: structs.scalar("GrowableArray<int>", "_data")?,
            low: space("_memory", "_low")?,
            high,
            reserved_end: space("_memory", "_high_boundary").unwrap_or(high),
            segmap_low: space("_segmap", "_low")?,
            segmap_high: space("_segmap", "_high")?,
            log2_segment: structs.scalar("CodeHeap", "_log2_segment_size")?,
            block_bytes: structs.size_of("HeapBlock")?,
            block_length: block("_length")?,
            block_used: block("_used")?,
        })
    }
}

impl PcDescLayout {
    fn of(wanted: &mut Wanted<'_>) -> Self {
        let mut field = |name, cost| wanted.scalar("PcDesc", name, cost);
        PcDescLayout {
            pc: field("_pc_offset", cost::RECORDS),
            scope: field("_scope_decode_offset", cost::RECORDS),
            bytes: wanted.size_of("PcDesc", cost::RECORDS),
        }
    }
}

impl BlobLayout {
    fn of(wanted: &mut Wanted<'_>) -> Result<Self, AdapterError> {
        let structs = wanted.structs;
        let field = |name| structs.scalar("CodeBlob", name);
        let optional = |name| structs.optional_scalar("CodeBlob", name);
        let code = match optional("_code_offset") {
            Some(offset) => CodeBounds::Offset(offset),
            None => CodeBounds::Addresses {
                begin: field("_code_begin")?,
                end: field("_code_end")?,
            },
        };
        let content = if matches!(code, CodeBounds::Offset(_)) {
            "_content_offset"
        } else {
            "_content_begin"
        };
        let content = wanted.or_none(field(content), cost::CONSTANTS);
        let parts = ["_mutable_data", "_mutable_data_size", "_relocation_size"].map(optional);
        let mutable = || {
            Ok(MutableData {
                at: field("_mutable_data")?,
                size: field("_mutable_data_size")?,
                relocation_size: field("_relocation_size")?,
            })
        };
        // Old versions have other names for two of the fields, and lack these two.
        let has_mutable = parts.iter().flatten().count() > 1;
        let mutable = has_mutable.then(|| wanted.or_none(mutable(), cost::RECORDS));
        Ok(BlobLayout {
            // Only a check.
            bytes: structs.optional_size_of("CodeBlob").unwrap_or(0),
            name: field("_name")?,
            size: field("_size")?,
            frame_size: wanted.scalar("CodeBlob", "_frame_size", cost::FRAMES),
            frame_complete: wanted.scalar("CodeBlob", "_frame_complete_offset", cost::FRAMES),
            data_offset: field("_data_offset")?,
            code,
            content,
            mutable: mutable.flatten(),
        })
    }
}

impl NmethodLayout {
    fn of(wanted: &mut Wanted<'_>) -> Self {
        let structs = wanted.structs;
        let sections = Sections::of(wanted);
        let sections = wanted.or_none(sections, cost::RECORDS);
        let mut field = |name, cost| wanted.scalar("nmethod", name, cost);
        NmethodLayout {
            compile_id: field("_compile_id", cost::LIVES),
            level: field("_comp_level", cost::TIERS),
            entry_bci: field("_entry_bci", cost::OSR),
            state: field("_state", cost::STATES),
            stub_offset: field("_stub_offset", cost::STUBS),
            deopt: wanted.or_none(DeoptLayout::of(structs), cost::DEOPTIMISED),
            method: wanted
                .or_none(either(structs, "_method"), cost::NAMES)
                .unwrap_or(Scalar::ABSENT),
            // Only a check.
            bytes: structs.optional_size_of("nmethod").unwrap_or(0),
            sections: sections.unwrap_or(Sections::Unknown),
        }
    }
}

impl DeoptLayout {
    fn of(structs: &VmStructs) -> Result<Self, AdapterError> {
        let handler = match structs.optional_scalar("nmethod", "_deopt_handler_offset") {
            Some(offset) => DeoptHandler::Offset(offset),
            None => DeoptHandler::Address(either(structs, "_deopt_handler_begin")?),
        };
        Ok(DeoptLayout {
            handler,
            original_pc: structs.scalar("nmethod", "_orig_pc_offset")?,
        })
    }

    /// Deoptimised frames of the nmethod at `begin`, from its first `bytes`.
    pub fn frames(&self, begin: Avma, bytes: &[u8]) -> Option<DeoptimisedFrames> {
        let handler = match self.handler {
            DeoptHandler::Address(at) => at.unsigned_of(bytes)?,
            DeoptHandler::Offset(at) => begin.0.checked_add(at.unsigned_of(bytes)?)?,
        };
        Some(DeoptimisedFrames {
            handler: Avma(handler),
            original_pc: self.original_pc.unsigned_of(bytes)?,
        })
    }
}

/// Up to JDK 22, `CompiledMethod` has some fields of nmethods.
fn either(structs: &VmStructs, name: &str) -> Result<Scalar, AdapterError> {
    let own = structs.scalar("nmethod", name);
    if structs.type_named("CompiledMethod").is_none() {
        return own;
    }
    own.or_else(|_| structs.scalar("CompiledMethod", name))
}

impl Sections {
    fn of(wanted: &mut Wanted<'_>) -> Result<Self, AdapterError> {
        let structs = wanted.structs;
        let field = |name| structs.scalar("nmethod", name);
        let implicit = wanted.scalar("nmethod", "_nul_chk_table_offset", cost::FAULTS);
        // The first is JDK 23's name, the others are older.
        Ok(
            match structs.optional_scalar("nmethod", "_immutable_data") {
                Some(at) => Sections::Immutable {
                    at,
                    size: field("_immutable_data_size")?,
                    implicit,
                    scopes_pcs: field("_scopes_pcs_offset")?,
                    scopes_data: field("_scopes_data_offset")?,
                },
                None => Sections::InBlob {
                    metadata: field("_metadata_offset")?,
                    scopes_data: either(structs, "_scopes_data_begin")?,
                    scopes_pcs: field("_scopes_pcs_offset")?,
                    dependencies: field("_dependencies_offset")?,
                    implicit,
                    end: wanted.scalar("nmethod", "_nmethod_end_offset", cost::FAULTS),
                },
            },
        )
    }
}
