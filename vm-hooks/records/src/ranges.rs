//! Disjoint address ranges in order.

use std::collections::BTreeMap;

/// Disjoint address ranges, each with a value. A change or a look costs the logarithm of their
/// number, and the ranges that it removes.
#[derive(Clone, Debug)]
pub struct Ranges<V>(BTreeMap<u64, (u64, V)>);

impl<V> Default for Ranges<V> {
    fn default() -> Self {
        Ranges(BTreeMap::new())
    }
}

impl<V: Clone> Ranges<V> {
    /// Makes `[start, end)` a range of its own. Returns the replaced parts, as [`Ranges::cut`].
    pub fn put(&mut self, start: u64, end: u64, value: V) -> Vec<(u64, u64, V)> {
        let replaced = self.cut(start, end);
        if start < end {
            self.0.insert(start, (end, value));
        }
        replaced
    }

    /// Removes `[start, end)`; what lies outside of it stays. Returns the removed parts: start
    /// address, end address, value.
    pub fn cut(&mut self, start: u64, end: u64) -> Vec<(u64, u64, V)> {
        let mut removed = Vec::new();
        if start >= end {
            return removed;
        }
        while let Some((&from, &(to, _))) = self.0.range(..end).next_back() {
            if to <= start {
                break;
            }
            let Some((_, value)) = self.0.remove(&from) else {
                break;
            };
            if end < to {
                self.0.insert(end, (to, value.clone()));
            }
            if from < start {
                self.0.insert(from, (start, value.clone()));
            }
            removed.push((from.max(start), to.min(end), value));
        }
        removed
    }

    /// Value of the range that includes all of `[start, end)`.
    #[must_use]
    pub fn around(&self, start: u64, end: u64) -> Option<&V> {
        let (_, (to, value)) = self.0.range(..=start).next_back()?;
        (start < end && end <= *to).then_some(value)
    }

    /// The value at an address.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<&V> {
        self.range_at(address).map(|(.., value)| value)
    }

    /// The range at an address: start, end, value.
    #[must_use]
    pub fn range_at(&self, address: u64) -> Option<(u64, u64, &V)> {
        let (from, (to, value)) = self.0.range(..=address).next_back()?;
        (address < *to).then_some((*from, *to, value))
    }

    /// The values of the ranges that overlap `[start, end)`, descending.
    pub fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = &V> {
        let end = if start < end { end } else { 0 };
        let before_end = self.0.range(..end).rev();
        let overlapping = before_end.take_while(move |(_, (to, _))| *to > start);
        overlapping.map(|(_, (_, value))| value)
    }

    /// All ranges, ascending: start address, end address, value.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, &V)> {
        self.0.iter().map(|(&from, (to, value))| (from, *to, value))
    }

    /// The number of ranges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Lookups and the return values of changes equal those of a plain list of addresses.
        #[test]
        fn ranges_are_what_a_list_of_addresses_is(
            changes in prop::collection::vec((0..60_u64, 0..60_u64, any::<bool>()), 0..60),
        ) {
            let mut ranges = Ranges::default();
            let mut list = [None; 60];
            for (value, &(start, end, is_put)) in changes.iter().enumerate() {
                let mut removed = match is_put {
                    true => ranges.put(start, end, value),
                    false => ranges.cut(start, end),
                };
                removed.reverse();
                let addresses = start..end.max(start);
                let expected: Vec<_> = (addresses.clone())
                    .filter_map(|at| Some((at, list[at as usize]?)))
                    .collect();
                let removed = removed.into_iter().flat_map(|(from, to, v)| (from..to).map(move |at| (at, v)));
                prop_assert_eq!(removed.collect::<Vec<_>>(), expected);
                for at in addresses {
                    list[at as usize] = is_put.then_some(value);
                }
            }
            for (at, value) in (0..).zip(&list) {
                prop_assert_eq!(ranges.at(at), value.as_ref());
            }
            for &(start, end, _) in &changes {
                let inside = list.get(start as usize..end as usize).unwrap_or_default();
                let one = inside.first().filter(|first| inside.iter().all(|v| v == *first));
                prop_assert_eq!(ranges.around(start, end), one.and_then(Option::as_ref));
                let mut seen: Vec<_> = inside.iter().rev().flatten().collect();
                seen.dedup();
                let mut overlapping: Vec<_> = ranges.overlapping(start, end).collect();
                overlapping.dedup();
                prop_assert_eq!(overlapping, seen);
            }
            prop_assert!(ranges.iter().all(|(start, end, _)| start < end));
            // At most one more range with each change, however often addresses come again.
            prop_assert!(ranges.len() <= 60.min(changes.len() * 2));
        }
    }
}
