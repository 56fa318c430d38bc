//! The known pieces of code, shared with the unwinder, which runs in another thread.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Known pieces of code. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces(Arc<Mutex<All>>);

#[derive(Debug, Default)]
struct All {
    by_start: BTreeMap<u64, Piece>,
    count: u64,
}

#[derive(Debug)]
struct Piece {
    end: u64,
    number: u64,
}

impl Pieces {
    pub fn put(&self, code: Range<u64>) {
        let mut all = self.lock();
        all.count += 1;
        let number = all.count;
        let end = code.end;
        all.by_start.insert(code.start, Piece { end, number });
    }

    pub fn take(&self, start: u64) {
        self.lock().by_start.remove(&start);
    }

    /// The piece around an address, and its number, which no other piece ever has.
    pub fn at(&self, address: u64) -> Option<(Range<u64>, u64)> {
        let all = self.lock();
        let (start, piece) = all.by_start.range(..=address).next_back()?;
        let code = *start..piece.end;
        code.contains(&address).then_some((code, piece.number))
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
