//! Where things lie in the code cache's structures, by the JVM's own tables.

use vmscope_records::Avma;
use vmscope_target::AdapterError;

use crate::layout::{Encodings, Scalar, VmStructs};

/// Where things lie in the code cache's structures.
#[derive(Clone, Debug)]
pub struct CodeLayout {
    /// How numbers are encoded.
    pub encodings: Encodings,
    pub(super) heaps: HeapsLayout,
    pub(super) blob: BlobLayout,
    pub(super) nmethod: NmethodLayout,
    pub(super) pc_desc: PcDescLayout,
}

#[derive(Clone, Debug)]
pub(super) struct HeapsLayout {
    /// `CodeCache::_heaps`: a pointer to a `GrowableArray`.
    pub heaps: Avma,
    pub length: Scalar,
    pub data: Scalar,
    /// In a `CodeHeap`: the bounds of its memory and of its segment map.
    pub low: Scalar,
    pub high: Scalar,
    pub segmap_low: Scalar,
    pub segmap_high: Scalar,
    pub log2_segment: Scalar,
    /// In front of each block.
    pub block_bytes: u64,
    pub block_length: Scalar,
    pub block_used: Scalar,
}

#[derive(Clone, Debug)]
pub(super) struct BlobLayout {
    pub bytes: u64,
    pub name: Scalar,
    pub size: Scalar,
    pub header_size: Scalar,
    pub frame_size: Scalar,
    pub frame_complete: Scalar,
    pub data_offset: Scalar,
    pub code: CodeBounds,
    /// Where what comes before the code begins (constants); from the blob.
    pub content: Option<Scalar>,
    /// JDK 23 on: what was in front of and behind the code is elsewhere.
    pub mutable: Option<MutableData>,
}

/// How a blob tells where its code is.
#[derive(Clone, Copy, Debug)]
pub(super) enum CodeBounds {
    /// By addresses (up to JDK 22).
    Addresses { begin: Scalar, end: Scalar },
    /// By its offset; it ends where data begins.
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
    pub entries: Option<Entries>,
    pub stub_offset: Scalar,
    pub sections: Sections,
}

/// Where a method is entered with and without a check of the receiver's class.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entries {
    Addresses { any: Scalar, verified: Scalar },
    Offsets { any: Scalar, verified: Scalar },
}

/// Where an nmethod's metadata and debug records are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sections {
    /// Up to JDK 22: in the blob, behind the code.
    InBlob {
        oops: Scalar,
        metadata: Scalar,
        /// A pointer.
        scopes_data: Scalar,
        scopes_pcs: Scalar,
        dependencies: Scalar,
        implicit: Scalar,
        end: Scalar,
    },
    /// JDK 23 on: in a block of its own.
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
    pub objects: Scalar,
    pub flags: Scalar,
}

impl CodeLayout {
    /// Looks everything up.
    ///
    /// # Errors
    ///
    /// [`AdapterError::MissingField`]: without any of them no code can be read.
    pub fn of(structs: &VmStructs, encodings: Encodings) -> Result<Self, AdapterError> {
        Ok(CodeLayout {
            encodings,
            heaps: HeapsLayout::of(structs)?,
            blob: BlobLayout::of(structs)?,
            nmethod: NmethodLayout::of(structs)?,
            pc_desc: PcDescLayout {
                bytes: structs.size_of("PcDesc")?,
                pc: structs.scalar("PcDesc", "_pc_offset")?,
                scope: structs.scalar("PcDesc", "_scope_decode_offset")?,
                objects: structs.scalar("PcDesc", "_obj_decode_offset")?,
                flags: structs.scalar("PcDesc", "_flags")?,
            },
        })
    }
}

/// A field of a structure that lies in another.
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
        Ok(HeapsLayout {
            heaps: structs.static_at("CodeCache", "_heaps")?,
            length: structs
                .optional_scalar("GrowableArrayBase", "_len")
                .map_or_else(|| structs.scalar("GenericGrowableArray", "_len"), Ok)?,
            data: structs.scalar("GrowableArray<int>", "_data")?,
            low: space("_memory", "_low")?,
            high: space("_memory", "_high")?,
            segmap_low: space("_segmap", "_low")?,
            segmap_high: space("_segmap", "_high")?,
            log2_segment: structs.scalar("CodeHeap", "_log2_segment_size")?,
            block_bytes: structs.size_of("HeapBlock")?,
            block_length: block("_length")?,
            block_used: block("_used")?,
        })
    }
}

impl BlobLayout {
    fn of(structs: &VmStructs) -> Result<Self, AdapterError> {
        let field = |name| structs.scalar("CodeBlob", name);
        let optional = |name| structs.optional_scalar("CodeBlob", name);
        let code = match optional("_code_offset") {
            Some(offset) => CodeBounds::Offset(offset),
            None => CodeBounds::Addresses {
                begin: field("_code_begin")?,
                end: field("_code_end")?,
            },
        };
        let mutable = optional("_mutable_data").and_then(|at| {
            Some(MutableData {
                at,
                size: optional("_mutable_data_size")?,
                relocation_size: optional("_relocation_size")?,
            })
        });
        Ok(BlobLayout {
            bytes: structs.size_of("CodeBlob")?,
            name: field("_name")?,
            size: field("_size")?,
            header_size: field("_header_size")?,
            frame_size: field("_frame_size")?,
            frame_complete: field("_frame_complete_offset")?,
            data_offset: field("_data_offset")?,
            code,
            content: optional("_content_offset").or_else(|| optional("_content_begin")),
            mutable,
        })
    }
}

impl NmethodLayout {
    fn of(structs: &VmStructs) -> Result<Self, AdapterError> {
        // Up to JDK 22 an nmethod is a CompiledMethod.
        let either = |name| {
            structs
                .optional_scalar("nmethod", name)
                .map_or_else(|| structs.scalar("CompiledMethod", name), Ok)
        };
        let field = |name| structs.scalar("nmethod", name);
        let optional = |name| structs.optional_scalar("nmethod", name);
        let sections = match optional("_immutable_data") {
            Some(at) => Sections::Immutable {
                at,
                size: field("_immutable_data_size")?,
                implicit: field("_nul_chk_table_offset")?,
                scopes_pcs: field("_scopes_pcs_offset")?,
                scopes_data: field("_scopes_data_offset")?,
            },
            None => Sections::InBlob {
                oops: field("_oops_offset")?,
                metadata: field("_metadata_offset")?,
                scopes_data: either("_scopes_data_begin")?,
                scopes_pcs: field("_scopes_pcs_offset")?,
                dependencies: field("_dependencies_offset")?,
                implicit: field("_nul_chk_table_offset")?,
                end: field("_nmethod_end_offset")?,
            },
        };
        let entries = match (
            optional("_entry_offset"),
            optional("_verified_entry_offset"),
        ) {
            (Some(any), Some(verified)) => Some(Entries::Offsets { any, verified }),
            _ => optional("_entry_point")
                .zip(optional("_verified_entry_point"))
                .map(|(any, verified)| Entries::Addresses { any, verified }),
        };
        Ok(NmethodLayout {
            bytes: structs.size_of("nmethod")?,
            method: either("_method")?,
            compile_id: field("_compile_id")?,
            level: field("_comp_level")?,
            entry_bci: field("_entry_bci")?,
            state: field("_state")?,
            entries,
            stub_offset: field("_stub_offset")?,
            sections,
        })
    }
}
