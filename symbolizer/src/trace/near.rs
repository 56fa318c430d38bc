//! A cache of constituents by address range: most addresses lie near a known one.

use crate::ids::Id;
use crate::zone::{CodeId, Near};
use vmscope_records::{Avma, ProcessKey};

/// Grain size: 2^9 bytes with one constituent. Changing one byte voids the whole grain.
const GRAIN_BITS: u32 = 9;

/// Blocks of 2^3 neighbouring grains have neighbouring slots, filled together.
const BLOCK_BITS: u32 = 3;

/// The number of slots: 2^19, 32 bytes each. Unwritten slots take no memory. A fuzzer makes a
/// cache for each input.
const BITS: u32 = if cfg!(fuzzing) { 8 } else { 19 };

/// Bits of process keys and of addresses without their grain; larger ones are not cached.
const PROCESS_BITS: u32 = 15;

/// The cache: the newest constituent of each slot.
#[derive(Debug)]
pub(super) struct Nearby {
    /// Tag, start, end, and the number of changes beside the constituent. Unwritten zeros take
    /// no memory. Changes count from 1 on.
    slots: Vec<[u64; 4]>,
}

impl Nearby {
    pub fn new() -> Self {
        Nearby {
            slots: vec![[0; 4]; 1 << BITS],
        }
    }

    pub fn clear(&mut self) {
        self.slots.fill([0; 4]);
    }

    /// The constituent at an address, if cached after `void` changes.
    pub fn find(&self, process: ProcessKey, address: Avma, void: u32) -> Option<(CodeId, u32)> {
        let grain = address.0 >> GRAIN_BITS;
        let tag = tag(process, grain)?;
        let [known, start, end, both] = *self.slots.get(slot_of(process, grain))?;
        let [at, code] = halves(both);
        if known != tag || at < void || at == 0 || !(start..end).contains(&address.0) {
            return None;
        }
        Some((
            CodeId::of(code as usize),
            u32::try_from(address.0 - start).ok()?,
        ))
    }

    /// Caches the constituent at an address, including its other grains within the address's
    /// block: lookups there mostly come next.
    pub fn put(&mut self, process: ProcessKey, address: Avma, near: Near, at: u32) {
        let block = address.0 >> GRAIN_BITS >> BLOCK_BITS << BLOCK_BITS;
        let first = block.max(near.start >> GRAIN_BITS);
        let last = (block | ((1 << BLOCK_BITS) - 1)).min(near.end.saturating_sub(1) >> GRAIN_BITS);
        let both = u64::from(at) << 32 | u64::from(near.code.number());
        for grain in first..=last {
            if let Some(tag) = tag(process, grain)
                && let Some(slot) = self.slots.get_mut(slot_of(process, grain))
            {
                *slot = [tag, near.start, near.end, both];
            }
        }
    }
}

fn tag(process: ProcessKey, grain: u64) -> Option<u64> {
    let fits = process.0 >> PROCESS_BITS == 0 && grain >> (u64::BITS - PROCESS_BITS) == 0;
    fits.then_some(grain << PROCESS_BITS | u64::from(process.0))
}

fn slot_of(process: ProcessKey, grain: u64) -> usize {
    let block = grain >> BLOCK_BITS << PROCESS_BITS | u64::from(process.0);
    let first = super::known::slot(block, BITS - BLOCK_BITS) << BLOCK_BITS;
    let within = grain & ((1 << BLOCK_BITS) - 1);
    first | usize::try_from(within).unwrap_or(0)
}

#[expect(clippy::cast_possible_truncation, reason = "the halves of 64 bits")]
fn halves(both: u64) -> [u32; 2] {
    [(both >> 32) as u32, both as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_the_constituent_that_it_lies_in_alone() {
        let mut nearby = Nearby::new();
        let process = ProcessKey(3);
        // Small constituents that share a grain, and some larger than a block.
        let sizes = [64, 320, 9_000, 700, 32, 1_500];
        let mut start = 0x7f00_0000_0123;
        let mut all = Vec::new();
        for (code, size) in (0..2_000).zip(sizes.into_iter().cycle()) {
            let near = Near {
                code: CodeId::of(code),
                start,
                end: start + size,
            };
            all.push(near);
            start += size;
        }
        let mut known = 0;
        for (near, at) in all.iter().zip(1..) {
            for offset in [0, near.end - near.start - 1] {
                let address = Avma(near.start + offset);
                if nearby.find(process, address, 1).is_none() {
                    nearby.put(process, address, *near, at);
                }
                let offset = u32::try_from(offset).unwrap();
                assert_eq!(nearby.find(process, address, at), Some((near.code, offset)));
                assert_eq!(nearby.find(process, address, at + 1), None);
                assert_eq!(nearby.find(ProcessKey(4), address, 1), None);
            }
        }
        for near in &all {
            for address in [near.start, near.end - 1] {
                if let Some((code, offset)) = nearby.find(process, Avma(address), 1) {
                    assert_eq!((code, u64::from(offset)), (near.code, address - near.start));
                    known += 1;
                }
            }
        }
        // Small constituents replace each other.
        assert!(known > 1_000, "{known}");
    }
}
