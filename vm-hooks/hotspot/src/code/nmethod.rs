//! An nmethod and its debug data, copied from the VM.

use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use super::Blob;
use super::layout::{CodeLayout, Entries, Sections};
use crate::layout::encodings::INVOCATION_ENTRY_BCI;

/// Maximum plausible size of a method's debug data.
const MAX_IMMUTABLE: u64 = 64 << 20;

/// Maximum plausible number of relocations, oops and metadata.
const MAX_MUTABLE: u64 = 16 << 20;

const WHAT: &str = "compiled method";

/// Identity of an nmethod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NmethodId {
    /// Address of the blob.
    pub blob: Avma,
    /// Compilation number.
    pub compile_id: i32,
    /// Whether compiled for on-stack replacement (OSR), which may have separate numbers.
    pub osr: bool,
}

/// A PcDesc; [`Nmethod::chain`] resolves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcDesc {
    /// Offset from the code's begin.
    pub pc: i32,
    /// Offset of the scope; 0 for none.
    pub scope: u32,
    /// Offset of the object descriptions.
    pub objects: u32,
    /// `PCDESC_reexecute` = 1, `PCDESC_is_method_handle_invoke` = 2, `PCDESC_return_oop` = 4.
    pub flags: u32,
}

/// An nmethod (compiled method or native wrapper), as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nmethod {
    /// Its identity.
    pub id: NmethodId,
    /// Its blob.
    pub blob: Blob,
    /// Its `Method*`; null after unloading.
    pub method: Avma,
    /// Compilation level: 0 (native wrapper) to 4.
    pub level: i8,
    /// Bytecode index of the OSR entry; [`INVOCATION_ENTRY_BCI`] for none.
    pub entry_bci: i32,
    /// `nmethod::_state`; the numbers depend on the version ([`crate::layout::Encodings`]).
    pub state: i8,
    /// Offset of the unverified entry in the code: the check of the receiver's class.
    pub entry: Option<u32>,
    /// Offset of the verified entry in the code.
    pub verified_entry: Option<u32>,
    /// Offset of the out-of-line stubs in the code.
    pub stubs: u32,
    /// Machine code, out-of-line stubs included.
    pub code: Box<[u8]>,
    /// Constants in front of the code.
    pub constants: Box<[u8]>,
    /// PcDescs, ascending by pc, without the sentinels at both ends.
    pub pcs: Box<[PcDesc]>,
    /// Scopes data.
    pub scopes: Box<[u8]>,
    /// Metadata of the code: `Method*`, `Klass*`.
    pub metadata: Box<[u64]>,
    /// Objects of the code (oops).
    pub oops: Box<[u64]>,
    /// The relocations (`relocInfo`, 16 bits each).
    pub relocations: Box<[u8]>,
    /// Implicit exceptions: offsets of the faulting instruction and of the continuation.
    pub implicit: Box<[(u32, u32)]>,
    /// Encoding of numbers in `scopes`.
    pub unsigned5_excess: u32,
    /// Whether `pcs` and `scopes` are complete.
    pub is_whole: bool,
}

/// `CompLevel_full_optimization`.
const C2: i8 = 4;

/// Name of a compilation level (`CompLevel`): compiler and profiling.
#[must_use]
pub fn tier(level: i64) -> &'static str {
    match level {
        0 => "native",
        1 => "C1",
        2 => "C1 counting",
        3 => "C1 profiling",
        4 => "C2",
        _ => "",
    }
}

impl Nmethod {
    /// Whether C2 compiled the method.
    #[must_use]
    pub fn is_by_c2(&self) -> bool {
        self.level == C2
    }

    /// Whether the nmethod is for on-stack replacement.
    #[must_use]
    pub fn is_osr(&self) -> bool {
        self.id.osr
    }

    /// Identity of the nmethod in a blob; reads nothing else.
    pub(super) fn identify(layout: &CodeLayout, blob: &Blob, bytes: &[u8]) -> Option<NmethodId> {
        let field = |of: crate::layout::Scalar, absent| {
            if of.is_absent() {
                Some(absent)
            } else {
                of.of(bytes)
            }
        };
        let entry_bci = field(layout.nmethod.entry_bci, INVOCATION_ENTRY_BCI)?;
        Some(NmethodId {
            blob: blob.at,
            compile_id: i32::try_from(field(layout.nmethod.compile_id, 0)?).ok()?,
            osr: entry_bci != INVOCATION_ENTRY_BCI,
        })
    }

    /// Current state.
    pub(super) fn state_of(layout: &CodeLayout, bytes: &[u8]) -> i8 {
        let state = layout.nmethod.state.of(bytes).unwrap_or_default();
        i8::try_from(state).unwrap_or_default()
    }

    /// Reads the nmethod in the blob `bytes` (a copy), and its data elsewhere.
    ///
    /// # Errors
    ///
    /// [`AdapterError::Implausible`] for parts outside their bounds; errors of reads.
    pub(super) fn read(
        layout: &CodeLayout,
        blob: Blob,
        bytes: &[u8],
        memory: &dyn Memory,
    ) -> Result<Self, AdapterError> {
        let implausible = || AdapterError::Implausible {
            what: WHAT,
            value: u64::from(blob.size),
            at: blob.at,
        };
        let fields = &layout.nmethod;
        if (bytes.len() as u64) < fields.bytes.max(layout.blob.bytes) {
            return Err(implausible());
        }
        let id = Self::identify(layout, &blob, bytes).ok_or_else(implausible)?;
        let code_begin = offset_in(&blob, blob.code_begin);
        let code_end = offset_in(&blob, blob.code_end);
        let from_code = |offset: i64| {
            let within = offset.checked_sub(i64::from(code_begin))?;
            u32::try_from(within).ok()
        };
        let stubs = fields.stub_offset.of(bytes).and_then(from_code);
        let (entry, verified_entry) = match fields.entries {
            None => (None, None),
            Some(Entries::Offsets { any, verified }) => {
                let offset = |of: crate::layout::Scalar| u32::try_from(of.of(bytes)?).ok();
                (offset(any), offset(verified))
            }
            Some(Entries::Addresses { any, verified }) => {
                let offset = |of: crate::layout::Scalar| {
                    let address = of.unsigned_of(bytes)?;
                    u32::try_from(address.checked_sub(blob.code_begin.0)?).ok()
                };
                (offset(any), offset(verified))
            }
        };
        let code = slice(bytes, code_begin.into(), code_end.into());
        let constants = slice(bytes, blob.content.into(), code_begin.into());
        let mut nmethod = Nmethod {
            id,
            method: Avma(fields.method.unsigned_of(bytes).unwrap_or_default()),
            level: i8::try_from(fields.level.of(bytes).unwrap_or(-1)).unwrap_or(-1),
            entry_bci: i32::try_from(fields.entry_bci.of(bytes).unwrap_or(-1)).unwrap_or(-1),
            state: Self::state_of(layout, bytes),
            entry,
            verified_entry,
            stubs: stubs.unwrap_or(code_end - code_begin),
            code: code.ok_or_else(implausible)?.into(),
            constants: constants.unwrap_or_default().into(),
            pcs: Box::default(),
            scopes: Box::default(),
            metadata: Box::default(),
            oops: Box::default(),
            relocations: Box::default(),
            implicit: Box::default(),
            unsigned5_excess: layout.encodings.unsigned5_excess,
            is_whole: true,
            blob,
        };
        match fields.sections {
            Sections::Unknown => nmethod.is_whole = false,
            Sections::InBlob { .. } => nmethod.read_in_blob(layout, bytes),
            Sections::Immutable { .. } => nmethod.read_elsewhere(layout, bytes, memory)?,
        }
        Ok(nmethod)
    }

    /// Parts of the nmethod up to JDK 22, all inside the blob.
    fn read_in_blob(&mut self, layout: &CodeLayout, bytes: &[u8]) {
        let Sections::InBlob {
            oops,
            metadata,
            scopes_data,
            scopes_pcs,
            dependencies,
            implicit,
            end,
        } = layout.nmethod.sections
        else {
            return;
        };
        let begin = self.blob.at.0;
        let place = |field: crate::layout::Scalar| field.unsigned_of(bytes).unwrap_or(u64::MAX);
        let scopes_at = place(scopes_data).wrapping_sub(begin);
        // An absent field has no offset, so the part that it bounds is left out.
        let all_there =
            |fields: &[crate::layout::Scalar]| !fields.iter().any(|one| one.is_absent());
        let part_of = |fields: &[crate::layout::Scalar], from, to| {
            let part = slice(bytes, from, to);
            part.or_else(|| (!all_there(fields)).then_some(&[][..]))
        };
        let relocations = part_of(
            &[layout.blob.header_size],
            if all_there(&[layout.blob.header_size]) {
                self.blob.header_size.into()
            } else {
                u64::MAX
            },
            self.blob.content.into(),
        );
        let parts = [
            part_of(&[oops], place(oops), place(metadata)),
            slice(bytes, place(metadata), scopes_at),
            slice(bytes, scopes_at, place(scopes_pcs)),
            slice(bytes, place(scopes_pcs), place(dependencies)),
            part_of(&[implicit, end], place(implicit), place(end)),
            relocations,
        ];
        self.is_whole = parts.iter().all(Option::is_some);
        let [oops, metadata, scopes, pcs, implicit, relocations] =
            parts.map(Option::unwrap_or_default);
        self.oops = words(oops);
        self.metadata = words(metadata);
        self.scopes = scopes.into();
        self.pcs = pc_descs(layout, pcs);
        self.implicit = implicit_exceptions(implicit);
        self.relocations = relocations.into();
    }

    /// From JDK 23 on, two other memory blocks have the data; the VM may have freed them.
    fn read_elsewhere(
        &mut self,
        layout: &CodeLayout,
        bytes: &[u8],
        memory: &dyn Memory,
    ) -> Result<(), AdapterError> {
        let reading = AdapterError::reading(WHAT);
        let block = |at: crate::layout::Scalar, size: crate::layout::Scalar, cap: u64| {
            let size = size.unsigned_of(bytes).unwrap_or_default();
            let at = Avma(at.unsigned_of(bytes).unwrap_or_default());
            if size == 0 || at.0 == 0 {
                return Ok(Vec::new());
            }
            memory.read_vec(at, size, usize::try_from(cap).unwrap_or(0))
        };
        if let Sections::Immutable {
            at,
            size,
            implicit,
            scopes_pcs,
            scopes_data,
        } = layout.nmethod.sections
        {
            let data = block(at, size, MAX_IMMUTABLE).map_err(&reading)?;
            let place = |field: crate::layout::Scalar| field.unsigned_of(bytes).unwrap_or(u64::MAX);
            let end = data.len() as u64;
            let parts = [
                slice(&data, place(scopes_pcs), place(scopes_data)),
                slice(&data, place(scopes_data), end),
                if implicit.is_absent() {
                    Some(&[][..])
                } else {
                    slice(&data, place(implicit), place(scopes_pcs))
                },
            ];
            self.is_whole = parts.iter().all(Option::is_some);
            let [pcs, scopes, implicit] = parts.map(Option::unwrap_or_default);
            self.pcs = pc_descs(layout, pcs);
            self.scopes = scopes.into();
            self.implicit = implicit_exceptions(implicit);
        }
        if let Some(mutable) = layout.blob.mutable {
            let data = block(mutable.at, mutable.size, MAX_MUTABLE).map_err(&reading)?;
            let relocations = mutable.relocation_size.unsigned_of(bytes).unwrap_or(0);
            let split = usize::try_from(relocations).unwrap_or(0).min(data.len());
            let (relocations, metadata) = data.split_at(split);
            self.relocations = relocations.into();
            self.metadata = words(metadata);
        }
        // The objects stayed behind the code.
        let objects = slice(bytes, self.blob.data.into(), self.blob.size.into());
        self.oops = words(objects.unwrap_or_default());
        Ok(())
    }
}

fn offset_in(blob: &Blob, address: Avma) -> u32 {
    u32::try_from(address.0.wrapping_sub(blob.at.0)).unwrap_or(u32::MAX)
}

fn slice(bytes: &[u8], from: u64, to: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)
}

fn words(bytes: &[u8]) -> Box<[u64]> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// The PcDesc table without its sentinels: pc -1 in front, and a pc beyond the code behind.
fn pc_descs(layout: &CodeLayout, bytes: &[u8]) -> Box<[PcDesc]> {
    let layout = &layout.pc_desc;
    let Some(size) = usize::try_from(layout.bytes).ok().filter(|&size| size > 0) else {
        return Box::default();
    };
    let field = |value: Option<i64>| u32::try_from(value.unwrap_or_default()).unwrap_or_default();
    let parse = |entry: &[u8]| PcDesc {
        pc: i32::try_from(layout.pc.of(entry).unwrap_or(-1)).unwrap_or(-1),
        scope: field(layout.scope.of(entry)),
        objects: field(layout.objects.of(entry)),
        flags: field(layout.flags.of(entry)),
    };
    let all = bytes.chunks_exact(size).map(parse);
    all.filter(|desc| desc.pc >= 0 && desc.scope != 0).collect()
}

/// The implicit-exception table: a count and pairs of offsets.
fn implicit_exceptions(bytes: &[u8]) -> Box<[(u32, u32)]> {
    let (numbers, _) = bytes.as_chunks::<4>();
    let mut numbers = numbers.iter().map(|four| u32::from_le_bytes(*four));
    let Some(count) = numbers.next() else {
        return Box::default();
    };
    let mut pairs = Vec::new();
    for _ in 0..count {
        match (numbers.next(), numbers.next()) {
            (Some(at), Some(goes_on)) => pairs.push((at, goes_on)),
            _ => break,
        }
    }
    pairs.into()
}
