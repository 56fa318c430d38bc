//! Mappings of one address space during a time window.

use crate::{Avma, FileOffset, Mapping, ModuleKey, ProcessKey, Ranges, TimeNs};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The present mappings, and those replaced in the window.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    /// Present mappings, or their remaining parts.
    present: Ranges<Arc<Mapping>>,
    /// Replaced parts, by time.
    gone: VecDeque<Gone>,
    /// The last replacement of each module.
    left: BTreeMap<ModuleKey, TimeNs>,
}

#[derive(Debug)]
struct Gone {
    time: TimeNs,
    start: u64,
    end: u64,
    mapping: Arc<Mapping>,
}

impl Mappings {
    /// Adds a mapping; replaces overlapping ones, except newer ones.
    pub fn map(&mut self, mapping: Mapping) {
        let (start, end) = (mapping.start.0, mapping.end.0);
        let newer = self.cut(start, end, mapping.time);
        self.present.put(start, end, Arc::new(mapping));
        for (start, end, mapping) in newer {
            self.replace(start, end, mapping);
        }
    }

    /// Removes `[start, end)` at `time`, except newer mappings.
    pub fn unmap(&mut self, start: u64, end: u64, time: TimeNs) {
        for (start, end, mapping) in self.cut(start, end, time) {
            self.replace(start, end, mapping);
        }
    }

    /// Removes `[start, end)` at `time`. Returns the removed parts of newer mappings.
    fn cut(&mut self, start: u64, end: u64, time: TimeNs) -> Vec<(u64, u64, Arc<Mapping>)> {
        let mut newer = self.present.cut(start, end);
        for (start, end, mapping) in newer.extract_if(.., |(.., mapping)| mapping.time <= time) {
            self.bury(start, end, mapping, time);
        }
        newer
    }

    fn replace(&mut self, start: u64, end: u64, mapping: Arc<Mapping>) {
        let time = mapping.time;
        for (start, end, older) in self.present.put(start, end, mapping) {
            self.bury(start, end, older, time);
        }
    }

    fn bury(&mut self, start: u64, end: u64, mapping: Arc<Mapping>, time: TimeNs) {
        // A late replacement does not go before earlier ones.
        let last = self.gone.back().map(|gone| gone.time);
        let time = last.unwrap_or_default().max(time);
        if let Some(module) = mapping.module {
            self.left.insert(module, time);
        }
        self.gone.push_back(Gone {
            time,
            start,
            end,
            mapping,
        });
    }

    /// Initial mappings of a forked process.
    pub fn forked(&self, child: ProcessKey, time: TimeNs) -> Mappings {
        let mut copy = Mappings::default();
        for (start, end, mapping) in self.present.iter() {
            let process = child;
            let mapping = Mapping {
                process,
                time,
                ..mapping.piece(start, end)
            };
            copy.present.put(start, end, Arc::new(mapping));
        }
        copy
    }

    /// Drops mappings replaced before `horizon`.
    pub fn forget_before(&mut self, horizon: TimeNs) {
        let past = self.gone.partition_point(|gone| gone.time < horizon);
        self.gone.drain(..past);
        self.left.retain(|_, time| *time >= horizon);
    }

    /// Approximate memory of replaced mappings in bytes.
    pub fn gone_bytes(&self) -> usize {
        self.gone.len() * (size_of::<Gone>() + size_of::<Mapping>())
    }

    /// All mappings, replaced ones first.
    pub fn iter(&self) -> impl Iterator<Item = Mapping> {
        let gone = self.gone.iter();
        let gone = gone.map(|gone| gone.mapping.piece(gone.start, gone.end));
        let present = self.present.iter();
        gone.chain(present.map(|(start, end, mapping)| mapping.piece(start, end)))
    }

    /// Referenced modules.
    pub fn modules(&self) -> impl Iterator<Item = ModuleKey> {
        let present = self.present.iter();
        let present = present.filter_map(|(.., mapping)| mapping.module);
        present.chain(self.left.keys().copied())
    }
}

impl Mapping {
    /// Part `[start, end)` of this mapping, with its old time: a later mapping would end VM code in
    /// it.
    fn piece(&self, start: u64, end: u64) -> Mapping {
        Mapping {
            start: Avma(start),
            end: Avma(end),
            offset: FileOffset(self.base().wrapping_add(start)),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mapping(time: u64, start: u64, end: u64, module: Option<u32>) -> Mapping {
        Mapping {
            process: ProcessKey(1),
            time: TimeNs(time),
            start: Avma(start),
            end: Avma(end),
            // Files begin at address 0, so that each address has one offset.
            offset: FileOffset(start),
            module: module.map(ModuleKey),
            name: String::new(),
            executable: true,
        }
    }

    /// A mapping, or an unmapping (`None`).
    #[derive(Clone, Debug)]
    struct Change {
        time: u64,
        start: u64,
        end: u64,
        mapping: Option<Option<u32>>,
    }

    fn change() -> impl Strategy<Value = Change> {
        let module = prop::option::of(0..3_u32);
        let mapping = prop::option::weighted(0.8, module);
        (0..4_u64, 0..20_u64, 1..10_u64, mapping).prop_map(|(late, start, size, mapping)| Change {
            time: late,
            start,
            end: start + size,
            mapping,
        })
    }

    /// Each address's mapping after all `changes` up to `time`, by a scan of all changes.
    fn scanned(changes: &[Change], time: u64) -> Vec<Option<Option<u32>>> {
        let mut changes: Vec<&Change> = changes.iter().filter(|one| one.time <= time).collect();
        changes.sort_by_key(|one| one.time);
        let at = |address: u64| {
            let last = changes.iter().rev();
            let mut last = last.filter(|one| (one.start..one.end).contains(&address));
            last.next()?.mapping
        };
        (0..30).map(at).collect()
    }

    proptest! {
        /// A reader of the kept mappings and of all unmappings sees at any time of the window
        /// what a reader of everything sees.
        #[test]
        fn what_is_kept_says_what_everything_says(
            changes in prop::collection::vec(change(), 0..40),
            horizon in 0..200_u64,
        ) {
            let mut mappings = Mappings::default();
            let mut all = Vec::new();
            for (index, change) in (0..).zip(changes) {
                // Up to three places late; no two have one time.
                let time = (index + 3_u64 - change.time) * 4 + index % 4;
                let change = Change { time, ..change };
                match change.mapping {
                    Some(module) => mappings.map(mapping(time, change.start, change.end, module)),
                    None => mappings.unmap(change.start, change.end, TimeNs(time)),
                }
                all.push(change);
            }
            mappings.forget_before(TimeNs(horizon));
            let mut kept: Vec<Change> = mappings.iter().map(|one| Change {
                time: one.time.0,
                start: one.start.0,
                end: one.end.0,
                mapping: Some(one.module.map(|module| module.0)),
            }).collect();
            let known: Vec<ModuleKey> = mappings.modules().collect();
            prop_assert!(mappings.iter().all(|m| m.module.is_none_or(|key| known.contains(&key))));
            kept.extend(all.iter().filter(|change| change.mapping.is_none()).cloned());
            for time in horizon..200 {
                prop_assert_eq!(scanned(&kept, time), scanned(&all, time), "at {}", time);
            }
        }
    }

    #[test]
    fn a_storm_leaves_what_is_present_and_what_left_in_the_window() {
        let mut mappings = Mappings::default();
        for time in 0..1_000_000 {
            let (start, module) = (time % 64 * 2, (time / 64 % 2) as u32);
            mappings.map(mapping(time, start, start + 1, Some(module)));
            if time % 1000 == 0 {
                mappings.forget_before(TimeNs(time.saturating_sub(10_000)));
            }
        }
        assert_eq!(mappings.present.len(), 64);
        let gone = mappings.gone.len();
        assert!((10_000..=11_000).contains(&gone), "{gone}");
        mappings.forget_before(TimeNs(2_000_000));
        assert_eq!((mappings.gone.len(), mappings.left.len()), (0, 0));
    }
}
