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

impl All {
    fn put(&mut self, code: Range<u64>, has_frames: bool) {
        self.count += 1;
        let (start, number) = (code.start, self.count);
        let piece = Piece {
            code,
            number,
            has_frames,
        };
        self.by_start.insert(start, piece);
    }
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
        self.lock().put(code, has_frames);
    }

    /// Makes `codes` the only pieces, all with frames. Known pieces keep their numbers.
    pub fn replace(&self, codes: impl IntoIterator<Item = Range<u64>>) {
        let mut all = self.lock();
        let mut before = std::mem::take(&mut all.by_start);
        for code in codes {
            match before.remove(&code.start) {
                Some(piece) if piece.code == code => {
                    all.by_start.insert(code.start, piece);
                }
                _ => all.put(code, true),
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_stay_keep_their_numbers() {
        let pieces = Pieces::default();
        let number = |at| pieces.at(at).map(|piece| piece.number);
        pieces.replace([0x10..0x20, 0x30..0x40]);
        assert_eq!([0x1f, 0x20, 0x30].map(number), [Some(1), None, Some(2)]);
        pieces.replace([0x30..0x40, 0x50..0x60]);
        assert_eq!([0x1f, 0x30, 0x50].map(number), [None, Some(2), Some(3)]);
        pieces.replace(std::iter::once(0x30..0x38));
        assert_eq!([0x30, 0x38, 0x50].map(number), [Some(4), None, None]);
    }
}
