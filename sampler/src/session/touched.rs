//! Sampled addresses in generated code, from the writer to the adapters' thread: adapters read
//! details of sampled code only. The lock is held for some thousand set operations at most.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashSet;
use vmscope_process::MAX_TOUCHED_OF_A_POLL;
use vmscope_records::{Avma, ProcessKey, TimeNs};

/// Addresses of all address spaces together: some 16 MiB.
const MAX_WAITING: usize = 1 << 20;

/// The addresses, by process.
#[derive(Clone, Debug, Default)]
pub(super) struct TouchedAddresses(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    spaces: HashMap<ProcessKey, FxHashSet<Avma>>,
    waiting: usize,
    missed: u64,
    until: TimeNs,
}

impl TouchedAddresses {
    pub fn add(&self, process: ProcessKey, addresses: impl Iterator<Item = Avma>) {
        let mut table = self.table();
        let Table {
            spaces,
            waiting,
            missed,
            ..
        } = &mut *table;
        let space = spaces.entry(process).or_default();
        for address in addresses {
            if space.len() < MAX_TOUCHED_OF_A_POLL && *waiting < MAX_WAITING {
                *waiting += usize::from(space.insert(address));
            } else {
                *missed += u64::from(!space.contains(&address));
            }
        }
    }

    /// The addresses sampled in `process` since the last call, ascending.
    pub fn take(&self, process: ProcessKey) -> Vec<Avma> {
        let Some(space) = self.remove(process) else {
            return Vec::new();
        };
        let mut addresses: Vec<Avma> = space.into_iter().collect();
        addresses.sort_unstable();
        addresses
    }

    /// Addresses sampled before `time` are complete.
    pub fn known_until(&self, time: TimeNs) {
        let mut table = self.table();
        table.until = table.until.max(time);
    }

    /// Addresses sampled before this time are complete.
    pub fn until(&self) -> TimeNs {
        self.table().until
    }

    /// Drops the addresses of `process`.
    pub fn forget(&self, process: ProcessKey) {
        drop(self.remove(process));
    }

    /// Counts dropped addresses.
    pub fn miss(&self, addresses: usize) {
        if addresses > 0 {
            self.table().missed += addresses as u64;
        }
    }

    /// Dropped addresses.
    pub fn missed(&self) -> u64 {
        self.table().missed
    }

    fn remove(&self, process: ProcessKey) -> Option<FxHashSet<Avma>> {
        let mut table = self.table();
        let space = table.spaces.remove(&process)?;
        table.waiting -= space.len();
        Some(space)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_touched_is_told_once_and_does_not_grow_without_end() {
        let touched = TouchedAddresses::default();
        let process = ProcessKey;
        let addresses = |range: std::ops::Range<u64>| range.map(Avma);
        touched.add(process(1), [Avma(7), Avma(3), Avma(7)].into_iter());
        assert_eq!(touched.take(process(2)), []);
        assert_eq!(touched.take(process(1)), [Avma(3), Avma(7)]);
        assert_eq!(touched.take(process(1)), [], "taken");

        let most = MAX_TOUCHED_OF_A_POLL as u64;
        touched.add(process(1), addresses(0..most + 10));
        touched.add(process(1), addresses(0..5));
        assert_eq!(touched.missed(), 10, "what is known is not missed");
        assert_eq!(touched.take(process(1)).len(), MAX_TOUCHED_OF_A_POLL);
        for key in 0..64 {
            touched.add(process(key), addresses(0..most));
        }
        let told: usize = (0..64).map(|key| touched.take(process(key)).len()).sum();
        assert_eq!(told, MAX_WAITING);
        let missed = 10 + 64 * most - MAX_WAITING as u64;
        assert_eq!(touched.missed(), missed);
        touched.add(process(1), addresses(0..1));
        touched.forget(process(1));
        assert_eq!(touched.take(process(1)), []);
    }
}
