//! Merges the records of all rings into time order.
//!
//! The kernel stamps a record, reserves its place in the CPU's ring, and publishes it, with
//! preemption off and mostly in an interrupt. A record stamped before a round of reading is thus
//! readable in the next round at the latest. Records older than the *start of the previous round*
//! are therefore complete, if rounds are further apart than stamp and publication
//! ([`MIN_ROUND_NS`]).
//!
//! A later record (host stopped a virtual CPU in between) gets the time of the last released record
//! and is counted: the order always holds, its time is off.

use super::decode::Decoded;

/// Shortest distance of rounds. Publication takes some 1 µs, an interrupt in between some 10 µs; 1
/// ms is far above both.
const MIN_ROUND_NS: u64 = 1_000_000;

/// Holds records until no older record can follow.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    pending: Vec<Decoded>,
    /// Start of the last counted round.
    round: u64,
    /// Records before this time were released.
    horizon: u64,
    late: u64,
}

impl Sorter {
    /// Starts a round of reading all rings.
    pub fn begin_round(&mut self, now: u64) {
        if now.saturating_sub(self.round) >= MIN_ROUND_NS {
            self.horizon = self.horizon.max(self.round);
            self.round = now;
        }
    }

    pub fn push(&mut self, mut record: Decoded, released: u64) {
        if record.time < released {
            record.time = released;
            self.late += 1;
        }
        self.pending.push(record);
    }

    /// Records before this time are released in this round at the latest.
    pub fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Records moved because of late arrival.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Ends the order at `now`: no writer remains.
    pub fn close(&mut self, now: u64) {
        self.horizon = now.saturating_add(1);
        if let Some(last) = self.pending.iter().map(|record| record.time).max() {
            self.horizon = self.horizon.max(last.saturating_add(1));
        }
    }

    /// Releases records before the horizon, in order.
    pub fn ready(&mut self) -> impl Iterator<Item = Decoded> + '_ {
        // Stable: equal times in a ring keep their order. Fast: each ring is a sorted run.
        self.pending.sort_by_key(|record| record.time);
        let end = self
            .pending
            .partition_point(|record| record.time < self.horizon);
        self.pending.drain(..end)
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::Body;
    use super::*;
    use proptest::prelude::*;

    fn record(time: u64) -> Decoded {
        Decoded {
            time,
            event: 0,
            pid: 0,
            tid: 0,
            body: Body::Nothing,
        }
    }

    #[test]
    fn what_may_be_overtaken_waits() {
        let ms = MIN_ROUND_NS;
        let mut sorter = Sorter::default();
        sorter.begin_round(10 * ms);
        sorter.push(record(9 * ms), 0);
        assert_eq!(sorter.ready().count(), 0);
        sorter.begin_round(20 * ms);
        sorter.push(record(8 * ms), 0);
        sorter.push(record(15 * ms), 0);
        let times: Vec<u64> = sorter.ready().map(|record| record.time).collect();
        assert_eq!(times, vec![8 * ms, 9 * ms]);
    }

    #[test]
    fn rounds_in_quick_succession_are_one() {
        let mut sorter = Sorter::default();
        sorter.begin_round(10 * MIN_ROUND_NS);
        sorter.begin_round(10 * MIN_ROUND_NS + 1);
        assert_eq!(sorter.horizon(), 0);
    }

    #[test]
    fn a_late_one_is_moved_and_counted() {
        let mut sorter = Sorter::default();
        sorter.push(record(5), 7);
        sorter.close(100);
        assert_eq!(
            sorter.ready().map(|record| record.time).collect::<Vec<_>>(),
            vec![7]
        );
        assert_eq!(sorter.late(), 1);
    }

    proptest! {
        #[test]
        fn the_order_holds_whatever_comes(rounds in prop::collection::vec(
            (0u64..5_000_000, prop::collection::vec(0u64..10_000_000, 0..20)), 1..20)) {
            let mut sorter = Sorter::default();
            let mut now = 10_000_000;
            let mut out = Vec::new();
            let mut pushed = 0;
            for (step, ages) in rounds {
                now += step;
                let released = sorter.horizon();
                sorter.begin_round(now);
                for age in ages {
                    sorter.push(record(now - age.min(now)), released);
                    pushed += 1;
                }
                out.extend(sorter.ready().map(|record| record.time));
            }
            sorter.close(now);
            out.extend(sorter.ready().map(|record| record.time));
            prop_assert!(out.is_sorted());
            prop_assert_eq!(out.len(), pushed);
        }
    }
}
