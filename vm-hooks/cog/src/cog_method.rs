//! Headers of methods in the code zone.

use vmscope_process::AdapterError;
use vmscope_records::Avma;

/// Bytes of the header of a block inside a method.
const BLOCK_HEADER: usize = 12;

/// Number of a block's type in the classic layout.
const BLOCK: u8 = 3;

/// Types of methods in the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Five types; methods contain blocks.
    Classic,
    /// Four types, as in Pharo since 2023; blocks are methods of their own.
    Pharo,
}

/// Type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// Freed in place; selector and size remain until the next code compaction.
    Free,
    /// A method or a full block.
    Method,
    /// An inline cache with at most six cases.
    ClosedPic,
    /// Code of a send that looks up its method.
    OpenPic,
}

impl EntryKind {
    /// Kinds whose code runs.
    pub const WITH_CODE: [Self; 3] = [Self::Method, Self::ClosedPic, Self::OpenPic];
}

/// An entry of the code zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CogMethod {
    /// Address of its header.
    pub at: Avma,
    /// Bytes with header and map.
    pub size: u16,
    /// Type.
    pub kind: EntryKind,
    /// Number of arguments.
    pub arguments: u8,
    /// Use counter, 0 to 7; code compaction frees rarely used code first.
    pub usage: u8,
    /// May refer to young objects.
    pub refers_to_young: bool,
    /// A full block: its bytecodes are a separate object.
    pub is_full_block: bool,
    /// Offset behind the stack check, 0 without a frame; of a closed PIC the number of its cases.
    pub stack_check: u16,
    /// Offset of the code that enters the blocks inside the method; 0 without blocks.
    pub block_entry: u16,
    /// The compiled method or block (an object pointer).
    pub method: Avma,
    /// The compiled method's header, untagged: low 15 bits number of literals, bit 16 has a primitive,
    /// negative for the second set of bytecodes.
    pub header: i64,
    /// The selector (an object pointer), `nil` for some methods.
    pub selector: Avma,
    /// Blocks inside the method, ascending.
    pub blocks: Vec<BlockMethod>,
}

/// A block inside a method, with a header of 12 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMethod {
    /// Offset of its header from the method's start.
    pub offset: u16,
    /// Its first bytecode: zero-based offset in the method object.
    pub start: u16,
    /// Number of arguments.
    pub arguments: u8,
    /// Offset behind the stack check from the block's header; 0 without a frame.
    pub stack_check: u16,
}

impl Layout {
    /// The type with this number.
    fn kind(self, number: u8) -> Option<EntryKind> {
        Some(match (self, number) {
            (_, 1) => EntryKind::Free,
            (_, 2) => EntryKind::Method,
            (Layout::Classic, 4) | (Layout::Pharo, 3) => EntryKind::ClosedPic,
            (Layout::Classic, 5) | (Layout::Pharo, 4) => EntryKind::OpenPic,
            _ => return None,
        })
    }
}

impl CogMethod {
    /// First address after the entry.
    #[must_use]
    pub fn end(&self) -> Avma {
        Avma(self.at.0.saturating_add(u64::from(self.size)))
    }
}

/// Field offsets of a method's header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    word: usize,
    bits: usize,
    size: usize,
    block_entry: usize,
    method: usize,
    header: usize,
    selector: usize,
    /// Bytes of the header.
    pub bytes: usize,
}

impl Fields {
    /// Offsets in a VM with words of `word` bytes, 8 or 4.
    #[must_use]
    pub fn of(word: usize) -> Self {
        Fields {
            word,
            bits: 8,
            size: 12,
            block_entry: 14,
            method: 16,
            header: 16 + word,
            selector: 16 + 2 * word,
            bytes: 16 + 3 * word,
        }
    }

    /// Size of an entry with this header.
    pub fn size_in(&self, header: &[u8]) -> u16 {
        half(header, self.size)
    }
}

/// An impossible value in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The field.
    pub what: &'static str,
    /// Its value.
    pub value: u64,
    /// The entry.
    pub at: Avma,
}

impl From<Damage> for AdapterError {
    fn from(Damage { what, value, at }: Damage) -> Self {
        AdapterError::Implausible { what, value, at }
    }
}

/// An entry without interpretation.
#[derive(Clone, Copy)]
pub(crate) struct RawEntry<'b> {
    /// Number of its type, which the layout interprets.
    pub kind: u8,
    pub size: u16,
    bits: Bits,
    bytes: &'b [u8],
}

impl<'b> RawEntry<'b> {
    /// The entry at the start of `rest`, at address `at`.
    pub fn of(rest: &'b [u8], at: Avma, fields: &Fields) -> Result<Self, Damage> {
        let damage = |what, value| Damage { what, value, at };
        let header = rest.get(..fields.bytes);
        let header = header.ok_or_else(|| damage("rest of the code zone", rest.len() as u64))?;
        let size = half(header, fields.size);
        let bytes = rest.get(..usize::from(size));
        let bytes = bytes.filter(|bytes| bytes.len() >= fields.bytes);
        let bytes = bytes.ok_or_else(|| damage("size of a method", u64::from(size)))?;
        let bits = header.get(fields.bits..).and_then(|bits| bits.get(..4));
        let bits = Bits(u32::try_from(number(bits.unwrap_or_default())).unwrap_or(0));
        Ok(RawEntry {
            kind: bits.kind(),
            size,
            bits,
            bytes,
        })
    }

    /// The entry in this layout.
    pub fn interpret(
        &self,
        at: Avma,
        layout: Layout,
        fields: &Fields,
    ) -> Result<CogMethod, Damage> {
        let (what, value) = ("type of a method", u64::from(self.kind));
        let kind = layout.kind(self.kind).ok_or(Damage { what, value, at })?;
        let pointer = |from: usize| {
            let word = self
                .bytes
                .get(from..)
                .and_then(|rest| rest.get(..fields.word));
            Avma(number(word.unwrap_or_default()))
        };
        let header = pointer(fields.header).0;
        let has_blocks = kind == EntryKind::Method && layout == Layout::Classic;
        // In Pharo's layout, these bytes count the uses of inline caches.
        let block_entry = match has_blocks {
            true => half(self.bytes, fields.block_entry),
            false => 0,
        };
        if block_entry > self.size {
            let (what, value) = ("block entry of a method", u64::from(block_entry));
            return Err(Damage { what, value, at });
        }
        let bits = self.bits;
        Ok(CogMethod {
            at,
            size: self.size,
            kind,
            arguments: bits.arguments(),
            usage: bits.usage(),
            refers_to_young: bits.refers_to_young(),
            is_full_block: kind == EntryKind::Method && bits.is_full_block(),
            stack_check: bits.stack_check(),
            block_entry,
            method: pointer(fields.method),
            header: untagged(header, fields.word),
            selector: pointer(fields.selector),
            blocks: blocks(self.bytes, usize::from(block_entry), fields.bytes),
        })
    }
}

/// The value of a tagged integer, whose tag bits are not checked.
pub(crate) fn untagged(word: u64, bytes: usize) -> i64 {
    match bytes {
        4 => i64::from(u32::try_from(word).unwrap_or(0).cast_signed() >> 1),
        _ => word.cast_signed() >> 3,
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    let half = bytes.get(at..).and_then(|rest| rest.first_chunk::<2>());
    half.map_or(0, |half| u16::from_le_bytes(*half))
}

pub(crate) fn number(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().rev();
    bytes.fold(0, |value, byte| (value << 8) | u64::from(*byte))
}

/// Contents of the word with type, flags and counts, lowest bits first.
#[derive(Clone, Copy)]
struct Bits(u32);

impl Bits {
    fn arguments(self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    fn kind(self) -> u8 {
        u8::try_from((self.0 >> 8) & 7).unwrap_or(0)
    }

    fn refers_to_young(self) -> bool {
        self.0 & (1 << 11) != 0
    }

    fn is_full_block(self) -> bool {
        self.0 & (1 << 12) != 0
    }

    fn usage(self) -> u8 {
        u8::try_from((self.0 >> 13) & 7).unwrap_or(0)
    }

    fn stack_check(self) -> u16 {
        u16::try_from(self.0 >> 20).unwrap_or(0)
    }
}

/// The blocks inside a method, in front of the code that enters them. A block's header begins with its
/// own offset from the method; a 32-bit word of zeros follows.
fn blocks(code: &[u8], until: usize, from: usize) -> Vec<BlockMethod> {
    let mut blocks = Vec::new();
    let mut offset = from.next_multiple_of(4);
    while offset + BLOCK_HEADER <= until {
        match block(code, offset) {
            Some(block) => {
                blocks.push(block);
                offset += BLOCK_HEADER;
            }
            None => offset += 4,
        }
    }
    blocks
}

fn block(code: &[u8], offset: usize) -> Option<BlockMethod> {
    let header = code.get(offset..offset + BLOCK_HEADER)?;
    let (own, rest) = header.split_at_checked(2)?;
    let (start, rest) = rest.split_at_checked(2)?;
    let (padding, bits) = rest.split_at_checked(4)?;
    let bits = Bits(u32::try_from(number(bits)).ok()?);
    let is_block = number(own) == offset as u64 && number(padding) == 0 && bits.kind() == BLOCK;
    is_block.then_some(BlockMethod {
        offset: u16::try_from(offset).ok()?,
        start: u16::try_from(number(start)).ok()?,
        arguments: bits.arguments(),
        stack_check: bits.stack_check(),
    })
}
