//! Bounds the memory of a trace: a small recording may ask for gigabytes.

use super::world::World;
use super::{Changes, Trace};

/// Any recording may take this much memory, in bytes.
const BASE: u64 = 64 << 20;

/// Larger recordings may take this many times their size. Real ones take 15 to 50 times.
const PER_BYTE: u64 = 256;

/// Memory of a sample in growing columns, in bytes.
const SAMPLE: u64 = 32;

/// Memory of a thread, in bytes.
const THREAD: u64 = 256;

/// Memory of a chain's node, with its place in the index, in bytes.
const CHAIN_NODE: u64 = 48;

/// Memory of a place and of what a profile keeps for it (site, time buckets), in bytes.
const PLACE: u64 = 320;

/// Memory of a waiting change of mappings, in bytes.
const CHANGE: u64 = 160;

/// The rest of a recording, unread for lack of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unread {
    /// File offset of the first chunk that was not read, or only in part.
    pub offset: u64,
    /// Bytes between `offset` and the end of the file, including bytes already read of that chunk.
    pub bytes: u64,
    /// The maximum memory, in bytes.
    pub max_memory: u64,
}

/// The maximum memory of a trace, in bytes, for a recording of `file_bytes`. No real recording
/// takes as much.
#[must_use]
pub const fn memory_for(file_bytes: u64) -> u64 {
    BASE.saturating_add(file_bytes.saturating_mul(PER_BYTE))
}

impl Trace {
    /// Approximate memory of all records and samples in bytes, rather too much than too little.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let counts = [
            (SAMPLE, self.samples.times.len()),
            (THREAD, self.threads.len()),
            (CHAIN_NODE, self.chains.len()),
            (PLACE, self.places.len()),
        ];
        let counted = counts.map(|(each, count)| each * count as u64);
        self.state_memory + counted.iter().sum::<u64>()
    }

    /// Whether another sample would exceed the memory.
    pub(super) fn is_full(&self, world: &World) -> bool {
        self.memory() + PLACE * world.places().len() as u64 >= self.max_memory
    }

    /// Whether there is no memory for another change of mappings.
    pub(super) fn is_full_of(&self, changes: &Changes) -> bool {
        self.memory() + CHANGE * changes.len() as u64 >= self.max_memory
    }

    /// Whether the state leaves no memory; a quarter is for samples.
    pub(super) fn is_state_full(&self) -> bool {
        self.state_memory >= self.max_memory / 4 * 3
    }

    /// Notes that a pass over the file ended at the chunk at `offset`.
    pub(super) fn note_unread(&mut self, offset: u64, file_bytes: u64) {
        let offset = self.unread.map_or(offset, |known| known.offset.min(offset));
        self.unread = Some(Unread {
            offset,
            bytes: file_bytes.saturating_sub(offset),
            max_memory: self.max_memory,
        });
    }
}
