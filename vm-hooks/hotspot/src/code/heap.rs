//! The code heaps: which blocks of them are in use.

use vmscope_records::Avma;
use vmscope_target::{AdapterError, Memory};

use super::layout::{CodeLayout, HeapsLayout};

/// A segmented code cache has three heaps.
pub const MAX_HEAPS: i64 = 16;

/// A code cache of more than this is not believed: `ReservedCodeCacheSize` is at most
/// 2 GB, and a quarter of that is more than anyone was seen to fill.
const MAX_HEAP_BYTES: u64 = 512 << 20;

/// `CodeCacheSegmentSize` is 64 or 128.
const MAX_LOG2_SEGMENT: i64 = 12;

/// More blocks than this are not believed.
const MAX_BLOCKS: usize = 1 << 20;

const WHAT: &str = "code heaps";

/// A code heap: `[low, used_end)` holds its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapBounds {
    /// Its first address.
    pub low: Avma,
    /// First address after what is committed.
    pub high: Avma,
    /// First address after the last block in use.
    pub used_end: Avma,
    /// Bytes in a segment.
    pub segment: u64,
}

impl HeapBounds {
    /// Bytes up to the last block.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used_end.0.saturating_sub(self.low.0)
    }
}

/// A block in use: the blob in it begins at `at` in the heap's copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub at: usize,
    pub end: usize,
}

/// Reads where the heaps are, and how far each is used by its segment map.
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
    pointers
        .into_iter()
        .map(|heap| read_heap(heaps, memory, Avma(heap)))
        .collect()
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
    let log2 = number(layout.log2_segment)?;
    if bytes > MAX_HEAP_BYTES || !(4..=MAX_LOG2_SEGMENT).contains(&log2) {
        return Err(implausible(bytes));
    }
    let segment = 1_u64 << log2;
    let map_low = number(layout.segmap_low)?.cast_unsigned();
    let map_high = number(layout.segmap_high)?.cast_unsigned();
    let segments = map_high.saturating_sub(map_low).min(bytes / segment);
    let map = memory
        .read_vec(
            Avma(map_low),
            segments,
            usize::try_from(segments).unwrap_or(0),
        )
        .map_err(AdapterError::reading(WHAT))?;
    // The map says how far back a segment's block begins; 0xff: it is in none.
    let used = map.iter().rposition(|&back| back != 0xff);
    let used = used.map_or(0, |last| last as u64 + 1) * segment;
    Ok(HeapBounds {
        low: Avma(low),
        high: Avma(high),
        used_end: Avma(low + used.min(bytes)),
        segment,
    })
}

/// Finds the blocks in use in the copy of a heap. Free ones have a valid length too,
/// so they are stepped over. What does not fit ends the walk: `false` then.
pub(super) fn blocks(layout: &CodeLayout, heap: &HeapBounds, copy: &[u8]) -> (Vec<Block>, bool) {
    let layout = &layout.heaps;
    let mut found = Vec::new();
    let mut at = 0_usize;
    let header = usize::try_from(layout.block_bytes).unwrap_or(usize::MAX);
    while at < copy.len() {
        let whole = copy.get(at..).unwrap_or_default();
        let (Some(length), Some(used)) = (
            layout.block_length.unsigned_of(whole),
            layout.block_used.of(whole),
        ) else {
            return (found, false);
        };
        let bytes = length
            .checked_mul(heap.segment)
            .and_then(|b| usize::try_from(b).ok());
        let end = bytes.and_then(|bytes| at.checked_add(bytes));
        let Some(end) = end.filter(|&end| end > at && end <= copy.len()) else {
            return (found, false);
        };
        if used & 0xff != 0 && at.saturating_add(header) < end {
            if found.len() >= MAX_BLOCKS {
                return (found, false);
            }
            found.push(Block {
                at: at + header,
                end,
            });
        }
        at = end;
    }
    (found, true)
}
