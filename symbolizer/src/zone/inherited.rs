//! Code that a forked process inherits from its parent.
//!
//! Children share one snapshot of the parent's code until the parent's code changes. Each
//! child keeps its own list of ended ranges.

use super::history::PlacementId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Code at a range of addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    pub placement: PlacementId,
}

/// A process's code at a fork.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// Ascending, not overlapping.
    pieces: Vec<Piece>,
    /// The number of pieces in all live snapshots.
    living: Arc<AtomicUsize>,
}

impl Snapshot {
    /// Merges two sets of pieces, each ascending, without overlaps. `living` counts the pieces
    /// while the snapshot is alive.
    pub fn of_both(
        left: impl Iterator<Item = Piece>,
        right: impl Iterator<Item = Piece>,
        living: &Arc<AtomicUsize>,
    ) -> Self {
        let (mut left, mut right) = (left.peekable(), right.peekable());
        let mut pieces = Vec::with_capacity(left.size_hint().0 + right.size_hint().0);
        loop {
            let is_left = match (left.peek(), right.peek()) {
                (Some(one), Some(other)) => one.start < other.start,
                (Some(_), None) => true,
                (None, _) => false,
            };
            let next = if is_left { left.next() } else { right.next() };
            let Some(piece) = next else { break };
            pieces.push(piece);
        }
        pieces.shrink_to_fit();
        living.fetch_add(pieces.len(), Ordering::Relaxed);
        let living = Arc::clone(living);
        Snapshot { pieces, living }
    }

    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The piece around `address`.
    fn at(&self, address: u64) -> Option<&Piece> {
        let after = self.pieces.partition_point(|piece| piece.start <= address);
        let piece = self.pieces.get(after.checked_sub(1)?)?;
        (address < piece.end).then_some(piece)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.living.fetch_sub(self.pieces.len(), Ordering::Relaxed);
    }
}

/// Code still inherited from a parent.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    all: Option<Arc<Snapshot>>,
    /// Ranges of ended pieces, start to end, disjoint and not adjacent.
    ended: BTreeMap<u64, u64>,
}

impl Inherited {
    pub fn new(all: Arc<Snapshot>) -> Self {
        let (all, ended) = (Some(all), BTreeMap::new());
        Inherited { all, ended }
    }

    /// The whole snapshot, if no piece has ended.
    pub fn whole(&self) -> Option<&Arc<Snapshot>> {
        self.all.as_ref().filter(|_| self.ended.is_empty())
    }

    /// The number of inherited pieces.
    pub fn len(&self) -> usize {
        self.all.as_ref().map_or(0, |all| all.len())
    }

    /// All inherited placements.
    pub fn placements(&self) -> impl Iterator<Item = PlacementId> + '_ {
        let all = self.all.iter().flat_map(|all| &all.pieces);
        all.map(|piece| piece.placement)
    }

    /// The pieces that have not ended.
    pub fn left(&self) -> impl Iterator<Item = Piece> + '_ {
        let all = self.all.iter().flat_map(|all| &all.pieces);
        all.filter(|piece| !self.has_ended(piece.start)).copied()
    }

    /// The placement at `address`.
    pub fn find(&self, address: u64) -> Option<PlacementId> {
        let piece = self.all.as_ref()?.at(address)?;
        (!self.has_ended(address)).then_some(piece.placement)
    }

    /// Ends all pieces that overlap `[start, end)`, whole and for ever. Returns the changed
    /// range of addresses.
    pub fn end(&mut self, start: u64, end: u64) -> (u64, u64) {
        let Some(all) = self.all.as_ref().filter(|_| start < end) else {
            return (start, end);
        };
        let last = all.at(end - 1).map_or(end, |piece| piece.end);
        let start = all.at(start).map_or(start, |piece| piece.start);
        let end = end.max(last);
        let (mut from, mut to) = (start, end);
        while let Some((&other, &until)) = self.ended.range(..=to).next_back() {
            if until < from {
                break;
            }
            self.ended.remove(&other);
            (from, to) = (from.min(other), to.max(until));
        }
        self.ended.insert(from, to);
        (start, end)
    }

    fn has_ended(&self, address: u64) -> bool {
        let before = self.ended.range(..=address).next_back();
        before.is_some_and(|(_, &end)| address < end)
    }
}
