//! A set of overlapping ranges: counts the ranges around an address, and finds a single range.
//!
//! All possible ranges are known beforehand, so their ends are numbered. A binary indexed tree
//! (Fenwick, 1994) over the ends sums the beginnings and ends up. Adding, removing and lookup
//! take logarithmic time, whatever the overlaps.

use super::history::PlacementId;
use crate::ids::Id;

/// A set of ranges.
#[derive(Debug, Default)]
pub(super) struct Overlaps {
    /// All ends, ascending, without duplicates.
    ends: Vec<u64>,
    /// The tree: `tree[i]` is the sum over the ends `i - (i & -i) .. i`, 1-based.
    tree: Vec<Sum>,
    /// The number of ranges in the set.
    len: usize,
}

/// A number of ranges, and the sum of their indices. One range: its index.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    placements: u64,
}

/// The ranges around an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cover {
    Nobody,
    One(PlacementId),
    Several,
}

impl Overlaps {
    /// An empty set for ranges with these ends.
    pub fn new(mut ends: Vec<u64>) -> Self {
        ends.sort_unstable();
        ends.dedup();
        ends.shrink_to_fit();
        let tree = vec![Sum::default(); ends.len() + 1];
        Overlaps { ends, tree, len: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn add(&mut self, start: u64, end: u64, placement: PlacementId) {
        let one = Sum {
            count: 1,
            placements: u64::from(placement.number()),
        };
        self.put(start, one);
        self.put(end, one.negated());
        self.len += 1;
    }

    /// Removes a range of the set.
    pub fn remove(&mut self, start: u64, end: u64, placement: PlacementId) {
        let one = Sum {
            count: 1,
            placements: u64::from(placement.number()),
        };
        self.put(start, one.negated());
        self.put(end, one);
        self.len = self.len.saturating_sub(1);
    }

    pub fn at(&self, address: u64) -> Cover {
        if self.is_empty() {
            return Cover::Nobody;
        }
        let mut index = self.ends.partition_point(|&end| end <= address);
        let mut sum = Sum::default();
        while let Some(part) = self.tree.get(index).filter(|_| index > 0) {
            sum = sum.plus(*part);
            index &= index - 1;
        }
        match (sum.count, usize::try_from(sum.placements)) {
            (0, _) => Cover::Nobody,
            (1, Ok(placement)) => Cover::One(PlacementId::of(placement)),
            _ => Cover::Several,
        }
    }

    fn put(&mut self, end: u64, what: Sum) {
        let Ok(place) = self.ends.binary_search(&end) else {
            return;
        };
        let mut index = place + 1;
        while let Some(part) = self.tree.get_mut(index) {
            *part = part.plus(what);
            index += index & index.wrapping_neg();
        }
    }
}

impl Sum {
    fn plus(self, other: Sum) -> Sum {
        Sum {
            count: self.count.wrapping_add(other.count),
            placements: self.placements.wrapping_add(other.placements),
        }
    }

    fn negated(self) -> Sum {
        Sum {
            count: self.count.wrapping_neg(),
            placements: self.placements.wrapping_neg(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cover, Overlaps, PlacementId};
    use crate::ids::Id;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_agrees_with_scanning(
            ranges in prop::collection::vec((0u64..50, 1u64..20), 1..40),
            placements in prop::collection::vec(any::<bool>(), 40),
        ) {
            let ends = |&(start, size): &(u64, u64)| [start, start + size];
            let mut set = Overlaps::new(ranges.iter().flat_map(ends).collect());
            for (&(start, size), number) in ranges.iter().zip((0..).map(PlacementId::of)) {
                set.add(start, start + size, number);
            }
            for ((&(start, size), number), placement) in ranges.iter().zip((0..).map(PlacementId::of)).zip(&placements) {
                if !placement {
                    set.remove(start, start + size, number);
                }
            }
            let left = || ranges.iter().zip((0..).map(PlacementId::of)).zip(&placements).filter(|(_, placement)| **placement);
            prop_assert_eq!(set.is_empty(), left().count() == 0);
            for address in 0..80 {
                let covering: Vec<PlacementId> = left()
                    .filter(|((range, _), _)| range.0 <= address && address < range.0 + range.1)
                    .map(|((_, number), _)| number)
                    .collect();
                let wanted = match covering.as_slice() {
                    [] => Cover::Nobody,
                    [one] => Cover::One(*one),
                    _ => Cover::Several,
                };
                prop_assert_eq!(set.at(address), wanted, "at {}", address);
            }
        }
    }
}
