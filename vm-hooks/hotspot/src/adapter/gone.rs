//! Methods of unloaded classes, remembered for a while, since samples arrive late.

use vmscope_records::{Avma, TimeNs};

use super::index::{Entry, Times};

/// Detector of unobserved class deaths: a class may come and go between two walks, in the memory of
/// another class. The VM counts such classes only. An unobserved death stays hidden if a walk finds
/// another death early.
#[derive(Debug, Default)]
pub(super) struct Deaths {
    /// Deaths that the last walk found before the VM counted them.
    early: i64,
}

impl Deaths {
    /// Compares a walk's `found` dead classes with `counted`, the VM's unloadings from the
    /// begin of the previous walk to the begin of this one. Returns whether other classes died
    /// too.
    pub fn are_unseen(&mut self, counted: i64, found: usize) -> bool {
        let found = i64::try_from(found).unwrap_or(i64::MAX);
        let late = counted.saturating_sub(self.early).max(0);
        self.early = found.saturating_sub(late).max(0);
        late > found
    }
}

/// An unloaded method without a report during its lifetime.
#[derive(Debug)]
pub(super) struct Gone {
    pub entry: Entry,
    pub times: Times,
    pub last_seen: TimeNs,
    pub gone_at: TimeNs,
}

impl Gone {
    /// Whether its bytecodes or its object contain any of `values` (ascending).
    pub fn is_hit(&self, values: &[Avma]) -> bool {
        let Entry { start, end, .. } = self.entry;
        let first = values.partition_point(|value| value.0 < start);
        values.get(first).is_some_and(|value| value.0 < end)
            || values.binary_search(&self.entry.method).is_ok()
    }
}

/// Address ranges of methods; ranges of different methods may be equal.
#[derive(Debug, Default)]
pub(super) struct Spans(Vec<(u64, u64)>);

impl Spans {
    /// Address ranges of unloaded methods' bytecodes and objects.
    pub fn of<'g>(all: impl Iterator<Item = &'g Gone>) -> Self {
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for gone in all {
            let object = gone.entry.method.0;
            spans.push((gone.entry.start, gone.entry.end));
            spans.push((object, object.saturating_add(1)));
        }
        spans.sort_unstable();
        spans.dedup_by(|next, before| {
            let overlap = next.0 <= before.1;
            if overlap {
                before.1 = before.1.max(next.1);
            }
            overlap
        });
        Spans(spans)
    }

    /// Whether any range contains an address.
    pub fn hold(&self, value: Avma) -> bool {
        let after = self.0.partition_point(|(start, _)| *start <= value.0);
        let before = after.checked_sub(1).and_then(|one| self.0.get(one));
        before.is_some_and(|(_, end)| value.0 < *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(method: u64, start: u64, end: u64) -> Gone {
        let none = TimeNs(0);
        Gone {
            entry: Entry {
                method: Avma(method),
                pinned: None,
                told: None,
                start,
                end,
            },
            times: Times {
                absent_at: none,
                since: none,
            },
            last_seen: none,
            gone_at: none,
        }
    }

    #[test]
    fn deaths_that_no_walk_found_are_noticed() {
        let mut deaths = Deaths::default();
        assert!(!deaths.are_unseen(0, 0));
        assert!(!deaths.are_unseen(3, 3));
        assert!(deaths.are_unseen(3, 2));
        // Found between the VM's count and the walk: the next count includes them.
        assert!(!deaths.are_unseen(1, 3));
        assert!(!deaths.are_unseen(2, 0));
        assert!(deaths.are_unseen(1, 0));
        // These deaths hide no later ones.
        assert!(!deaths.are_unseen(0, 2));
        assert!(deaths.are_unseen(4, 1));
        // A counter reset.
        assert!(!deaths.are_unseen(i64::MIN, 0));
    }

    #[test]
    fn hits_are_those_that_comparing_each_with_each_finds() {
        let mut all = Vec::new();
        for number in 0..60_u64 {
            // Some ranges overlap, some are nested, some methods have no bytecodes.
            let start = number * 7919 % 1000;
            all.push(gone(
                2000 + number * 31 % 500,
                start,
                start + number % 13 * 3,
            ));
        }
        for step in 1..40_usize {
            let values: Vec<Avma> = (0..3000).step_by(step * 17).map(Avma).collect();
            let mut known = Vec::new();
            for one in &all {
                let is_it = |value: &&Avma| {
                    (one.entry.start..one.entry.end).contains(&value.0)
                        || one.entry.method == **value
                };
                let hits: Vec<Avma> = values.iter().filter(is_it).copied().collect();
                assert_eq!(one.is_hit(&values), !hits.is_empty());
                known.extend(hits);
            }
            let spans = Spans::of(all.iter().filter(|one| one.is_hit(&values)));
            for value in &values {
                assert_eq!(spans.hold(*value), known.contains(value), "{value:?}");
            }
        }
    }
}
