//! Known pieces of generated code, shared with the unwinder, which runs in another thread.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Known pieces of code. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Pieces(Arc<Mutex<All>>);

#[derive(Debug, Default)]
struct All {
    by_start: BTreeMap<u64, Piece>,
    count: u64,
}

/// A piece of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its addresses.
    pub code: Range<u64>,
    /// Unique number, never reused.
    pub number: u64,
    /// Whether it makes frames: a method, not a routine that runs in its caller's frame.
    pub has_frames: bool,
}

impl Pieces {
    /// Adds a piece, in place of the piece with the same start.
    pub fn put(&self, code: Range<u64>, has_frames: bool) {
        let mut all = self.lock();
        all.count += 1;
        let (start, number) = (code.start, all.count);
        let piece = Piece {
            code,
            number,
            has_frames,
        };
        all.by_start.insert(start, piece);
    }

    /// Removes the piece with these addresses, unless another piece has taken its start.
    pub fn take(&self, code: &Range<u64>) {
        let mut all = self.lock();
        if all
            .by_start
            .get(&code.start)
            .is_some_and(|piece| piece.code == *code)
        {
            all.by_start.remove(&code.start);
        }
    }

    /// The piece around an address.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<Piece> {
        let all = self.lock();
        let (_, piece) = all.by_start.range(..=address).next_back()?;
        piece.code.contains(&address).then(|| piece.clone())
    }

    /// Number of pieces that were added, also those that are gone.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.lock().count
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
