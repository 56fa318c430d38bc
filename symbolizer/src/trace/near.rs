//! Which constituent was found near an address: most addresses lie near another one.

use crate::zone::{CodeIndex, Near};
use vmscope_records::{Avma, ProcessKey};

/// Addresses that one constituent is kept for: 2^9 bytes. What voids one of them voids all.
const GRAIN_BITS: u32 = 9;

/// Slots: 2^19, 32 bytes each. Only what is written of them takes memory.
const BITS: u32 = 19;

/// A process's key has fewer bits, and so has an address without those of its grain: else
/// nothing is kept.
const PROCESS_BITS: u32 = 15;

/// The newest of each slot.
#[derive(Debug)]
pub(super) struct Nearby {
    /// Tag, start, end, and how many changes there had been beside the constituent: as
    /// numbers, of which zeros take no memory before they are written. Changes count from
    /// 1 on.
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

    /// The constituent at an address, where nothing has changed since `void` changes.
    pub fn find(&self, process: ProcessKey, address: Avma, void: u32) -> Option<(CodeIndex, u32)> {
        let tag = tag(process, address)?;
        let [known, start, end, both] = *self.slots.get(super::known::slot(tag, BITS))?;
        let [at, code] = halves(both);
        if known != tag || at < void || at == 0 || !(start..end).contains(&address.0) {
            return None;
        }
        Some((code, u32::try_from(address.0 - start).ok()?))
    }

    /// Keeps what was found at an address, after so many changes.
    pub fn put(&mut self, process: ProcessKey, address: Avma, near: Near, at: u32) {
        if let Some(tag) = tag(process, address)
            && let Some(slot) = self.slots.get_mut(super::known::slot(tag, BITS))
        {
            let both = u64::from(at) << 32 | u64::from(near.code);
            *slot = [tag, near.start, near.end, both];
        }
    }
}

fn tag(process: ProcessKey, address: Avma) -> Option<u64> {
    let grain = address.0 >> GRAIN_BITS;
    let fits = process.0 >> PROCESS_BITS == 0 && grain >> (u64::BITS - PROCESS_BITS) == 0;
    fits.then_some(grain << PROCESS_BITS | u64::from(process.0))
}

#[expect(clippy::cast_possible_truncation, reason = "the halves of 64 bits")]
fn halves(both: u64) -> [u32; 2] {
    [(both >> 32) as u32, both as u32]
}
