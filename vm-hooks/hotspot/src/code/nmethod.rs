//! An nmethod and its debug data, copied from the VM.

use vmscope_process::{AdapterError, Memory};
use vmscope_records::Avma;

use super::Blob;
use super::layout::{CodeLayout, Sections};
use crate::layout::Scalar;
use crate::layout::encodings::INVOCATION_ENTRY_BCI;

/// Maximum plausible size of a method's debug data.
const MAX_IMMUTABLE: u64 = 64 << 20;

/// Maximum plausible size of relocations and metadata.
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
    /// Code offset of the out-of-line stubs.
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
    /// Implicit exceptions: offsets of the faulting instruction and of the continuation.
    pub implicit: Box<[(u32, u32)]>,
    /// Encoding of numbers in `scopes`.
    pub unsigned5_excess: u32,
}

/// `CompLevel_full_optimization`.
const C2: i8 = 4;

/// `CompLevel_full_profile`.
const C1_COUNTING: i8 = 3;

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

    /// Whether this code has no samples of inlined methods at calls without a count in the VM's profile. C1 counts
    /// inlined calls at this level. C2 inlines no call with a count of 0 outside of the first block
    /// (`InlineTree::is_not_reached`). Exceptions are getters, constructors and methods with `@ForceInline`; mostly a
    /// trap stands before such a call. The rule needs an interpreter (`UseInterpreter`), and C2 as the compiler
    /// (`UseJVMCICompiler` is off).
    #[must_use]
    pub fn counts_calls(&self) -> bool {
        matches!(self.level, C1_COUNTING | C2)
    }

    /// Whether compiled for on-stack replacement.
    #[must_use]
    pub fn is_osr(&self) -> bool {
        self.id.osr
    }

    /// Bytecode index at which the code begins.
    #[must_use]
    pub fn entry(&self) -> u32 {
        u32::try_from(self.entry_bci).unwrap_or(0)
    }

    /// Identity of the nmethod in a blob; reads nothing else.
    pub(super) fn identify(layout: &CodeLayout, blob: &Blob, bytes: &[u8]) -> Option<NmethodId> {
        let field = |of: Scalar, absent| {
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
        let code = slice(bytes, code_begin.into(), code_end.into());
        let constants = slice(bytes, blob.content.into(), code_begin.into());
        let mut nmethod = Nmethod {
            id,
            method: Avma(fields.method.unsigned_of(bytes).unwrap_or_default()),
            level: i8::try_from(fields.level.of(bytes).unwrap_or(-1)).unwrap_or(-1),
            entry_bci: i32::try_from(fields.entry_bci.of(bytes).unwrap_or(-1)).unwrap_or(-1),
            state: Self::state_of(layout, bytes),
            stubs: stubs.unwrap_or(code_end - code_begin),
            code: code.ok_or_else(implausible)?.into(),
            constants: constants.unwrap_or_default().into(),
            pcs: Box::default(),
            scopes: Box::default(),
            metadata: Box::default(),
            implicit: Box::default(),
            unsigned5_excess: layout.encodings.unsigned5_excess,
            blob,
        };
        match fields.sections {
            Sections::Unknown => {}
            Sections::InBlob { .. } => nmethod.read_in_blob(layout, bytes),
            Sections::Immutable { .. } => nmethod.read_elsewhere(layout, bytes, memory)?,
        }
        Ok(nmethod)
    }

    /// Parts of the nmethod up to JDK 22, all inside the blob.
    fn read_in_blob(&mut self, layout: &CodeLayout, bytes: &[u8]) {
        let Sections::InBlob {
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
        // An absent field has no offset: its part is empty.
        let place = |field: Scalar| field.unsigned_of(bytes).unwrap_or(u64::MAX);
        let part = |from, to| slice(bytes, from, to).unwrap_or_default();
        let scopes_at = place(scopes_data).wrapping_sub(self.blob.at.0);
        self.metadata = words(part(place(metadata), scopes_at));
        self.scopes = part(scopes_at, place(scopes_pcs)).into();
        self.pcs = pc_descs(layout, part(place(scopes_pcs), place(dependencies)));
        self.implicit = implicit_exceptions(part(place(implicit), place(end)));
    }

    /// From JDK 23 on, two other memory blocks have the data; the VM may have freed them.
    fn read_elsewhere(
        &mut self,
        layout: &CodeLayout,
        bytes: &[u8],
        memory: &dyn Memory,
    ) -> Result<(), AdapterError> {
        let reading = AdapterError::reading(WHAT);
        let block = |at: Scalar, size: Scalar, cap: u64| {
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
            let place = |field: Scalar| field.unsigned_of(bytes).unwrap_or(u64::MAX);
            let part = |from, to| slice(&data, from, to).unwrap_or_default();
            self.pcs = pc_descs(layout, part(place(scopes_pcs), place(scopes_data)));
            self.scopes = part(place(scopes_data), data.len() as u64).into();
            self.implicit = implicit_exceptions(part(place(implicit), place(scopes_pcs)));
        }
        if let Some(mutable) = layout.blob.mutable {
            let data = block(mutable.at, mutable.size, MAX_MUTABLE).map_err(&reading)?;
            let relocations = mutable.relocation_size.unsigned_of(bytes).unwrap_or(0);
            let split = usize::try_from(relocations).unwrap_or(0).min(data.len());
            self.metadata = words(data.get(split..).unwrap_or_default());
        }
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
    let parse = |entry: &[u8]| PcDesc {
        pc: i32::try_from(layout.pc.of(entry).unwrap_or(-1)).unwrap_or(-1),
        scope: u32::try_from(layout.scope.of(entry).unwrap_or(0)).unwrap_or(0),
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
