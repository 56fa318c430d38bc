//! Code heaps and their blocks in use.

use vmscope_process::{AdapterError, Memory, MemoryError};
use vmscope_records::Avma;

use super::layout::{CodeLayout, HeapsLayout};

/// A segmented code cache has three heaps.
pub const MAX_HEAPS: i64 = 16;

/// Maximum plausible size of a code heap: `ReservedCodeCacheSize` is at most 2 GB.
const MAX_HEAP_BYTES: u64 = 2 << 30;

/// Maximum number of segments, each with a byte in the heap's map: 2 GB in segments of 64
/// bytes.
const MAX_SEGMENTS: usize = 32 << 20;

/// `CodeCacheSegmentSize` is 64 or 128.
const MAX_LOG2_SEGMENT: i64 = 12;

/// Maximum plausible number of blocks in use, over all heaps.
const MAX_BLOCKS: usize = 1 << 20;

const WHAT: &str = "code heaps";

/// A code heap; its blocks lie in `[low, used_end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapBounds {
    /// First address.
    pub low: Avma,
    /// End of the committed memory (exclusive).
    pub high: Avma,
    /// End of the reserved memory (exclusive), up to which the heap may grow.
    pub reserved_end: Avma,
    /// End of the last block in use (exclusive).
    pub used_end: Avma,
    /// Bytes per segment.
    pub segment: u64,
    /// Address of the segment map.
    pub map: Avma,
}

impl HeapBounds {
    /// Bytes up to the end of the last block.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used_end.0.saturating_sub(self.low.0)
    }
}

/// A block in use; its blob begins at `at` in the copy of a piece of the heap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub at: usize,
    pub end: usize,
}

/// Reads the bounds of the heaps, and each heap's used part by its segment map.
pub(super) fn read_heaps(
    layout: &CodeLayout,
    memory: &dyn Memory,
) -> Result<Vec<HeapBounds>, AdapterError> {
    let heaps = &layout.heaps;
    let reading = AdapterError::reading(WHAT);
    let array = Avma(memory.read_u64(heaps.heaps).map_err(&reading)?);
    if array.0 == 0 {
        return Err(AdapterError::NotReady { what: WHAT });
    }
    let length = heaps.length.read(memory, array, WHAT)?;
    let data = heaps.data.read_address(memory, array, WHAT)?;
    if !(0..=MAX_HEAPS).contains(&length) {
        return Err(AdapterError::Implausible {
            what: "number of code heaps",
            value: length.cast_unsigned(),
            at: array,
        });
    }
    let pointers = memory
        .read_u64s(data, length.cast_unsigned(), 64)
        .map_err(&reading)?;
    let read = |heap| read_heap(heaps, memory, Avma(heap));
    let found: Vec<HeapBounds> = pointers.into_iter().map(read).collect::<Result<_, _>>()?;
    let all = found.iter().map(HeapBounds::used);
    let bytes = all.fold(0, u64::saturating_add);
    if bytes > MAX_HEAP_BYTES {
        return Err(AdapterError::Implausible {
            what: "size of the code heaps",
            value: bytes,
            at: array,
        });
    }
    Ok(found)
}

fn read_heap(
    layout: &HeapsLayout,
    memory: &dyn Memory,
    heap: Avma,
) -> Result<HeapBounds, AdapterError> {
    let number = |field: crate::layout::Scalar| field.read(memory, heap, WHAT);
    let low = number(layout.low)?.cast_unsigned();
    let high = number(layout.high)?.cast_unsigned();
    let implausible = |value| AdapterError::Implausible {
        what: "code heap",
        value,
        at: heap,
    };
    let bytes = high.checked_sub(low).ok_or_else(|| implausible(high))?;
    let reserved_end = number(layout.reserved_end)?.cast_unsigned().max(high);
    let log2 = number(layout.log2_segment)?;
    if reserved_end - low > MAX_HEAP_BYTES || !(4..=MAX_LOG2_SEGMENT).contains(&log2) {
        return Err(implausible(reserved_end - low));
    }
    let segment = 1_u64 << log2;
    let map_low = number(layout.segmap_low)?.cast_unsigned();
    let map_high = number(layout.segmap_high)?.cast_unsigned();
    let segments = map_high.saturating_sub(map_low).min(bytes / segment);
    let map = (Avma(map_low), segments.min(MAX_SEGMENTS as u64));
    let used = used_segments(memory, map)?.saturating_mul(segment);
    Ok(HeapBounds {
        low: Avma(low),
        high: Avma(high),
        reserved_end: Avma(reserved_end),
        used_end: Avma(low + used.min(bytes)),
        segment,
        map: Avma(map_low),
    })
}

/// Number of segments up to the last block's end. A byte of the map is the distance to the
/// begin of the segment's block, or 0xff for a segment without block. Reads the map backwards,
/// since blocks fill a large heap from its begin.
fn used_segments(memory: &dyn Memory, (map, segments): (Avma, u64)) -> Result<u64, AdapterError> {
    const PIECE: u64 = 1 << 20;
    let mut end = segments;
    while end > 0 {
        let begin = end.saturating_sub(PIECE);
        let at = Avma(map.0.wrapping_add(begin));
        let piece = memory
            .read_vec(at, end - begin, usize::try_from(PIECE).unwrap_or(0))
            .map_err(AdapterError::reading(WHAT))?;
        if let Some(last) = piece.iter().rposition(|&back| back != 0xff) {
            return Ok(begin + last as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

/// Maximum number of steps in the segment map to the begin of a block.
const MAX_HOPS: usize = 1 << 12;

/// Bytes of the segment map per read: for most addresses, the block begins within this many segments.
const WINDOW: u64 = 512;
const MAX_WINDOW: usize = 512;

/// Begin of the block that contains `at`, by the segment map; `None` for memory without a block. A
/// byte of the map is the distance in segments to the block's begin, or to another byte that leads
/// there.
pub(super) fn block_begin(
    heap: &HeapBounds,
    at: Avma,
    memory: &dyn Memory,
) -> Result<Option<Avma>, MemoryError> {
    let Some(offset) = at.0.checked_sub(heap.low.0) else {
        return Ok(None);
    };
    let mut segment = offset / heap.segment;
    let (mut first, mut window) = (0, Vec::new());
    for _ in 0..MAX_HOPS {
        if window.is_empty() || segment < first {
            first = (segment + 1).saturating_sub(WINDOW);
            let at = Avma(heap.map.0.wrapping_add(first));
            window = memory.read_vec(at, segment + 1 - first, MAX_WINDOW)?;
        }
        let byte = usize::try_from(segment - first).ok();
        match byte.and_then(|byte| window.get(byte)) {
            Some(0) => return Ok(Some(Avma(heap.low.0.wrapping_add(segment * heap.segment)))),
            None | Some(0xff) => break,
            Some(back) => match segment.checked_sub((*back).into()) {
                Some(before) => segment = before,
                None => break,
            },
        }
    }
    Ok(None)
}

/// Address and length in bytes of the used block that contains `at`; `None` for free memory.
pub(super) fn block_at(
    layout: &HeapsLayout,
    heap: &HeapBounds,
    at: Avma,
    memory: &dyn Memory,
) -> Result<Option<(Avma, u64)>, MemoryError> {
    let Some(begin) = block_begin(heap, at, memory)? else {
        return Ok(None);
    };
    let header = memory.read_vec(begin, layout.block_bytes, MAX_HEADER)?;
    let bytes = layout.used_bytes(&header, heap);
    let holds = |bytes: &u64| at.0 - begin.0 < *bytes;
    Ok(bytes.filter(holds).map(|bytes| (begin, bytes)))
}

/// A block's header.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockHeader {
    /// Length of the block, its header included.
    pub segments: u64,
    pub is_used: bool,
}

impl HeapsLayout {
    /// The header at the begin of a block's bytes; `None` if they are too few.
    pub(super) fn block(&self, bytes: &[u8]) -> Option<BlockHeader> {
        Some(BlockHeader {
            segments: self.block_length.unsigned_of(bytes)?,
            is_used: self.block_used.of(bytes)? & 0xff != 0,
        })
    }

    /// Length in bytes of the used block with this header; `None` for a free block.
    pub(super) fn used_bytes(&self, header: &[u8], heap: &HeapBounds) -> Option<u64> {
        let block = self.block(header).filter(|block| block.is_used)?;
        block.segments.checked_mul(heap.segment)
    }
}

/// Maximum bytes of a block's header: twice its size in JDK 11 to 25.
const MAX_HEADER: usize = 32;

/// Position of a walk over a heap's blocks.
#[derive(Debug)]
pub(super) struct BlockWalk {
    /// Offset of the next block in the heap.
    pub next: u64,
    /// Number of blocks so far, previous heaps included.
    pub blocks: usize,
}

/// Blocks of a piece of a heap.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Blocks in use; offsets from the piece's begin.
    pub found: Vec<Block>,
    /// Whether all block headers are plausible; otherwise further block begins are unknown.
    pub is_sound: bool,
    /// Size in bytes of a used block cut off at the piece's end; 0 for none.
    pub wants: u64,
}

impl BlockWalk {
    /// Finds the used blocks in `piece`, a copy of the heap from [`BlockWalk::next`] on, and
    /// advances. Free blocks have a valid length too.
    pub fn blocks(&mut self, layout: &HeapsLayout, heap: &HeapBounds, piece: &[u8]) -> Blocks {
        let begin = self.next;
        let left = heap.used().saturating_sub(begin);
        let header = usize::try_from(layout.block_bytes).unwrap_or(usize::MAX);
        let mut blocks = Blocks {
            found: Vec::new(),
            is_sound: true,
            wants: 0,
        };
        let mut at = 0_u64;
        while at < left {
            let from = usize::try_from(at).unwrap_or(usize::MAX);
            let Some(whole) = piece.get(from..).filter(|rest| rest.len() > header) else {
                break;
            };
            let Some(block) = layout.block(whole) else {
                break;
            };
            let bytes = block.segments.checked_mul(heap.segment);
            let end = bytes.and_then(|bytes| at.checked_add(bytes));
            let Some(end) = end.filter(|&end| end > at && end <= left) else {
                blocks.is_sound = false;
                break;
            };
            if block.is_used {
                let within = usize::try_from(end).ok();
                let Some(within) = within.filter(|end| *end <= piece.len()) else {
                    blocks.wants = end - at;
                    break;
                };
                if self.blocks >= MAX_BLOCKS {
                    blocks.is_sound = false;
                    break;
                }
                if from.saturating_add(header) < within {
                    self.blocks += 1;
                    blocks.found.push(Block {
                        at: from + header,
                        end: within,
                    });
                }
            }
            at = end;
        }
        self.next = begin.saturating_add(at);
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Scalar;

    fn layout() -> HeapsLayout {
        let field = |offset, width| Scalar {
            offset,
            width,
            signed: false,
        };
        HeapsLayout {
            heaps: Avma(0),
            length: Scalar::ABSENT,
            data: Scalar::ABSENT,
            low: Scalar::ABSENT,
            high: Scalar::ABSENT,
            reserved_end: Scalar::ABSENT,
            segmap_low: Scalar::ABSENT,
            segmap_high: Scalar::ABSENT,
            log2_segment: Scalar::ABSENT,
            block_bytes: 16,
            block_length: field(0, 8),
            block_used: field(8, 1),
        }
    }

    /// A heap with 64-byte segments; per block: number of segments, whether in use.
    fn heap(blocks: &[(u64, bool)]) -> (HeapBounds, Vec<u8>) {
        let mut bytes = Vec::new();
        for (segments, used) in blocks {
            let mut block = segments.to_le_bytes().to_vec();
            block.push(u8::from(*used));
            block.resize(64 * usize::try_from(*segments).unwrap(), 0);
            bytes.extend(block);
        }
        let end = Avma(0x1000 + bytes.len() as u64);
        let bounds = HeapBounds {
            low: Avma(0x1000),
            high: end,
            reserved_end: end,
            used_end: end,
            segment: 64,
            map: Avma(0),
        };
        (bounds, bytes)
    }

    /// Used blocks, read in pieces of so many bytes, or as long as a block needs.
    fn in_pieces(bounds: &HeapBounds, bytes: &[u8], size: usize) -> Vec<(u64, u64)> {
        let (mut walk, mut all) = (BlockWalk { next: 0, blocks: 0 }, Vec::new());
        let mut piece = size;
        while walk.next < bounds.used() {
            let begin = walk.next;
            let from = usize::try_from(begin).unwrap();
            let end = bytes.len().min(from + piece);
            let blocks = walk.blocks(&layout(), bounds, &bytes[from..end]);
            assert!(blocks.is_sound);
            let place = |block: &Block| (begin + block.at as u64, begin + block.end as u64);
            all.extend(blocks.found.iter().map(place));
            piece = size.max(usize::try_from(blocks.wants).unwrap());
        }
        all
    }

    #[test]
    fn a_heap_is_the_same_in_pieces() {
        let (bounds, bytes) = heap(&[
            (1, true),
            (7, false),
            (30, true),
            (2, true),
            (90, false),
            (1, true),
        ]);
        let whole = in_pieces(&bounds, &bytes, bytes.len());
        let begins = [0, 8, 38, 130].map(|segment| segment * 64 + 16);
        assert_eq!(
            whole.iter().map(|block| block.0).collect::<Vec<_>>(),
            begins
        );
        for size in [64, 100, 128, 700, 5000] {
            assert_eq!(in_pieces(&bounds, &bytes, size), whole, "{size}");
        }
    }

    #[test]
    fn what_can_t_be_a_block_ends_the_walk() {
        for segments in [0, 1 << 20, u64::MAX] {
            let (bounds, mut bytes) = heap(&[(2, true), (3, true)]);
            bytes[128..136].copy_from_slice(&u64::to_le_bytes(segments));
            let mut walk = BlockWalk { next: 0, blocks: 0 };
            let blocks = walk.blocks(&layout(), &bounds, &bytes);
            assert_eq!((blocks.found.len(), blocks.is_sound), (1, false));
        }
    }
}
