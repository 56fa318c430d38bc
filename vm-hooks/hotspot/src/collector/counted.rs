//! One collector in the perf data, and its new collections.
//!
//! At begin, the VM counts a collection, then stores the time; at end, it stores the end time.
//! Only the times of the last collection remain. Of several collections between two polls, all
//! but the last are only counted.

use vmscope_process::Poll;
use vmscope_records::{COLLECTIONS_SECTION, CYCLE_PARTS_UNIT, Collection, CounterMeaning, TimeNs};

use super::name::Kind;
use crate::perf_data::{PerfData, Slot};
use crate::vm_clock::VmClock;

/// Maximum number of collectors.
pub(super) const MOST_COLLECTORS: u32 = 8;

/// A collector with an entry in the perf data.
#[derive(Debug)]
pub(super) struct Counted {
    /// The VM's number of the collector.
    pub number: u32,
    pub kind: Kind,
    name: String,
    slots: Slots,
    /// Figures at the last poll.
    last: Option<Seen>,
    /// Last reported collection, while its data are incomplete.
    pub open: Option<Collection>,
    /// Number of collections since the first poll; number of reported ones.
    counted: u64,
    told: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slots {
    invocations: Slot,
    time: Slot,
    entry: Slot,
    exit: Slot,
}

/// Figures of a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    invocations: u64,
    /// Begin of the last collection in ticks.
    pub entry: i64,
    /// End in ticks; before `entry` during a collection.
    pub exit: i64,
}

impl Seen {
    pub fn is_collecting(&self) -> bool {
        self.entry > self.exit
    }
}

impl Counted {
    /// Collector `number`, if the perf data have it.
    pub fn find(number: u32, data: &PerfData) -> Option<Self> {
        let slot = |what: &str| {
            let name = format!("sun.gc.collector.{number}.{what}");
            data.layout().slot(&name)
        };
        let name = match slot("name")?.text(data.bytes())?.as_str() {
            // Counts nothing; "Shenandoah full" counts all.
            "Shenandoah partial" => return None,
            "Shenandoah full" => "Shenandoah".to_owned(),
            name => name.to_owned(),
        };
        Some(Self {
            number,
            kind: Kind::of(&name),
            name,
            slots: Slots {
                invocations: slot("invocations")?,
                time: slot("time")?,
                entry: slot("lastEntryTime")?,
                exit: slot("lastExitTime")?,
            },
            last: None,
            open: None,
            counted: 0,
            told: 0,
        })
    }

    /// The collector's figures in `data`.
    pub fn seen(&self, data: &PerfData) -> Seen {
        let at = |slot| data.long_at(slot);
        Seen {
            invocations: u64::try_from(at(self.slots.invocations)).unwrap_or_default(),
            entry: at(self.slots.entry),
            exit: at(self.slots.exit),
        }
    }

    /// Whether `seen` equals the figures of the last poll.
    pub fn is_known(&self, seen: Seen) -> bool {
        self.last == Some(seen)
    }

    /// Passes new ticks to the clock: ticks since the last poll, which began at `from`.
    pub fn observe(&self, seen: Seen, clock: &mut VmClock, from: TimeNs, to: TimeNs) {
        let Some(last) = self.last else {
            return;
        };
        for (now, then) in [(seen.entry, last.entry), (seen.exit, last.exit)] {
            if now > then {
                clock.observe(now, from, to);
            }
        }
    }

    /// Stores `seen`. Returns whether a collection began since the last poll; [`Counted::open`]
    /// then has this collection.
    pub fn take(&mut self, mut seen: Seen, poll: &Poll) -> bool {
        let Some(last) = self.last else {
            self.last = Some(seen);
            return seen.is_collecting() && self.begin(seen, 1, poll);
        };
        let mut new = seen.invocations.saturating_sub(last.invocations);
        let has_begun = seen.entry != last.entry;
        if new > 0 && !has_begun {
            // Counted already; the begin time is missing.
            new -= 1;
            seen.invocations -= 1;
        }
        self.last = Some(seen);
        self.counted += new;
        if new == 0 || !has_begun {
            return false;
        }
        self.begin(seen, 0, poll)
    }

    fn begin(&mut self, seen: Seen, count: u64, poll: &Poll) -> bool {
        self.counted += count;
        self.told += 1;
        self.open = Some(Collection {
            key: poll.keys().collection(),
            process: poll.process(),
            collector: self.name.clone(),
            kind: self.kind.name().to_owned(),
            number: seen.invocations,
            stop_the_world: self.kind != Kind::PauseOrPhase,
            ..Collection::default()
        });
        true
    }

    /// Whether perf data have a cause for each of the collector's collections.
    pub fn has_cause(&self) -> bool {
        self.kind != Kind::CyclePause || self.name.starts_with('Z')
    }

    /// Number of collections since the first poll, minus reported ones.
    pub fn missed(&self) -> u64 {
        self.counted.saturating_sub(self.told)
    }

    /// Reports the totals; a tick is `per_tick` nanoseconds.
    #[expect(clippy::cast_precision_loss, reason = "figures for a report")]
    pub fn tell_totals(&self, data: &PerfData, per_tick: f64, poll: &mut Poll) {
        let count = self.seen(data).invocations as f64;
        let time = data.long_at(self.slots.time) as f64 * per_tick;
        let unit = match self.kind.is_whole() {
            true => "",
            false => CYCLE_PARTS_UNIT,
        };
        poll.collector_totals(&self.name, self.kind.name(), (count, unit), Some(time));
        if self.missed() > 0 {
            let name = format!("{}, not individually observed", self.name);
            let missed = self.missed() as f64;
            // Since the first poll only: a counter's first value would count as its initial
            // value.
            poll.counter(
                COLLECTIONS_SECTION,
                &name,
                "",
                CounterMeaning::Gauge,
                missed,
            );
        }
    }
}
