//! One collector of the perf data, and what is new of it.
//!
//! The VM counts a collection when it begins, then stores when that was; when it ends
//! it stores that. Only the last one's times are kept: of those that began and ended
//! between two polls all but the last are counted, and no more is known of them.

use vmscope_process::Poll;
use vmscope_records::{Collection, CounterMeaning, TimeNs};

use super::name::Kind;
use crate::perf_data::{PerfData, Slot};
use crate::vm_clock::VmClock;

/// More collectors than these are not asked for.
pub(super) const MOST_COLLECTORS: u32 = 8;

/// The section of the report for what is counted.
const SECTION: &str = "Collections";

/// What the perf data counts as one collector.
#[derive(Debug)]
pub(super) struct Counted {
    /// The VM's number of it.
    pub number: u32,
    pub kind: Kind,
    name: String,
    slots: Slots,
    /// What was found the last time.
    last: Option<Seen>,
    /// The collection that was told last, until all is known of it.
    pub open: Option<Collection>,
    /// How many were counted since the first poll, and how many of them were told.
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

/// A collector's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    invocations: u64,
    /// Ticks.
    pub entry: i64,
    /// Ticks; before `entry` while it collects.
    pub exit: i64,
}

impl Seen {
    pub fn is_collecting(&self) -> bool {
        self.entry > self.exit
    }
}

impl Counted {
    /// The collector `number`, if there is one.
    pub fn find(number: u32, data: &PerfData) -> Option<Self> {
        let slot = |what: &str| {
            let name = format!("sun.gc.collector.{number}.{what}");
            data.layout().slot(&name)
        };
        let name = match slot("name")?.text(data.bytes())?.as_str() {
            // It counts nothing, and the other one not only full collections.
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

    /// Its figures in `data`.
    pub fn seen(&self, data: &PerfData) -> Seen {
        let at = |slot| data.long_at(slot);
        Seen {
            invocations: u64::try_from(at(self.slots.invocations)).unwrap_or_default(),
            entry: at(self.slots.entry),
            exit: at(self.slots.exit),
        }
    }

    /// Whether `seen` is what was found the last time.
    pub fn is_known(&self, seen: Seen) -> bool {
        self.last == Some(seen)
    }

    /// Tells the clock which ticks are new since the last poll, which began at `from`.
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

    /// Takes note of `seen`. If a collection has begun since the last poll, it is in
    /// [`Counted::open`] afterwards, and the answer is whether one has.
    pub fn take(&mut self, mut seen: Seen, poll: &Poll) -> bool {
        let Some(last) = self.last else {
            self.last = Some(seen);
            return seen.is_collecting() && self.begin(seen, 1, poll);
        };
        let mut new = seen.invocations.saturating_sub(last.invocations);
        let has_begun = seen.entry != last.entry;
        if new > 0 && !has_begun {
            // It is counted, and when it began is stored next.
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

    /// Whether its collections have causes of their own in the perf data.
    pub fn has_cause(&self) -> bool {
        self.kind != Kind::CyclePause || self.name.starts_with('Z')
    }

    /// How many began since the first poll and were not told one by one.
    pub fn missed(&self) -> u64 {
        self.counted.saturating_sub(self.told)
    }

    /// Tells its totals; a tick is `per_tick` nanoseconds.
    #[expect(clippy::cast_precision_loss, reason = "figures for a report")]
    pub fn tell_totals(&self, data: &PerfData, per_tick: f64, poll: &mut Poll) {
        let count = self.seen(data).invocations as f64;
        let time = data.long_at(self.slots.time) as f64 * per_tick;
        poll.collector_totals(&self.name, self.kind.name(), count, Some(time));
        if self.missed() > 0 {
            let name = format!("{}, not seen singly", self.name);
            let missed = self.missed() as f64;
            // Since the first poll: a total's first value would count as there before.
            poll.counter(SECTION, &name, "", CounterMeaning::Gauge, missed);
        }
    }
}
