//! A JVM's collections across polls.

use vmscope_process::Poll;
use vmscope_records::{SpaceUse, TimeNs};

use super::counted::{Counted, MOST_COLLECTORS, Seen};
use super::name::Kind;
use crate::perf_data::{PerfData, Slot};
use crate::vm_clock::VmClock;

/// Maximum number of generations and of spaces.
const MOST_GENERATIONS: u32 = 4;
const MOST_SPACES: u32 = 8;

/// The VM's text for the cause outside collections.
const NO_CAUSE: &str = "No GC";

/// Collections of a JVM.
#[derive(Debug, Default)]
pub struct Collections {
    collectors: Vec<Counted>,
    spaces: Vec<Space>,
    cause: Option<Slot>,
    last_cause: Option<Slot>,
    /// Begin of the last poll.
    looked_at: Option<TimeNs>,
}

/// A heap space.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// Names of the generation and the space.
    pub name: String,
    pub used: Slot,
    pub capacity: Option<Slot>,
    pub max: Option<Slot>,
}

/// Causes from the VM.
struct Causes {
    now: String,
    last: String,
}

impl Causes {
    fn is_idle(&self) -> bool {
        self.now.is_empty() || self.now == NO_CAUSE
    }

    /// Cause of the newest collection. Outside collections, the cause belongs to the last one;
    /// during a collection, to this collection only. Empty if neither is certain.
    fn of(&self, kind: Kind, is_collecting: bool) -> String {
        let cause = if !self.is_idle() && (is_collecting || !kind.is_whole()) {
            &self.now
        } else if self.is_idle() && !is_collecting {
            &self.last
        } else {
            return String::new();
        };
        let known = !cause.is_empty() && cause != NO_CAUSE;
        if known { cause.clone() } else { String::new() }
    }
}

impl Collections {
    /// Finds the slots of the figures; repeat this after new entries.
    pub fn find(&mut self, data: &PerfData) {
        self.cause = data.layout().slot("sun.gc.cause");
        self.last_cause = data.layout().slot("sun.gc.lastCause");
        for number in 0..MOST_COLLECTORS {
            if !self.collectors.iter().any(|known| known.number == number) {
                self.collectors.extend(Counted::find(number, data));
            }
        }
        self.spaces = spaces_of(data);
    }

    /// Whether any collector's figures have changed since the last poll. Then read the data
    /// twice, and use them only if both [`Collections::stamp`]s are equal.
    #[must_use]
    pub fn is_news(&self, data: &PerfData) -> bool {
        self.collectors
            .iter()
            .any(|one| one.open.is_some() || !one.is_known(one.seen(data)))
    }

    /// Figures used for reports of collections.
    #[must_use]
    pub fn stamp(&self, data: &PerfData) -> impl PartialEq + use<> {
        let all = self.collectors.iter();
        let text = |slot: Option<Slot>| slot.and_then(|slot| slot.text(data.bytes()));
        let seen: Vec<Seen> = all.map(|one| one.seen(data)).collect();
        (seen, text(self.cause), text(self.last_cause))
    }

    /// Reports changes in `data`, read between `from` and `to`. For collectors that do not
    /// separate pauses, `is_pause` says whether the world is stopped.
    pub fn poll(
        &mut self,
        data: &PerfData,
        clock: &mut VmClock,
        (from, to): (TimeNs, TimeNs),
        is_pause: impl Fn() -> bool,
        poll: &mut Poll,
    ) {
        let before = self.looked_at.replace(from);
        let text = |slot: Option<Slot>| slot.and_then(|slot| slot.text(data.bytes()));
        let causes = Causes {
            now: text(self.cause).unwrap_or_default(),
            last: text(self.last_cause).unwrap_or_default(),
        };
        let entries = self.collectors.iter().map(|one| one.seen(data).entry);
        let latest = entries.max().unwrap_or_default();
        for one in &mut self.collectors {
            let seen = one.seen(data);
            if let Some(before) = before {
                one.observe(seen, clock, before, to);
            }
            let is_new = one.take(seen, poll);
            let Some(mut found) = one.open.take() else {
                continue;
            };
            let known = found.clone();
            let time_of = |ticks| {
                let latest = to.plus(clock.uncertainty().unwrap_or_default());
                clock.time_of(ticks).filter(|time| *time <= latest)
            };
            if is_new {
                found.begin = time_of(seen.entry);
            }
            let (is_latest, is_collecting) = (seen.entry == latest, seen.is_collecting());
            if is_collecting {
                found.stop_the_world |= is_pause();
            } else if found.end.is_none() {
                found.end = time_of(seen.exit);
            }
            if found.cause.is_empty() && is_latest && one.has_cause() {
                found.cause = causes.of(one.kind, is_collecting);
            }
            // The VM updates the spaces' figures at the end, when its cause still shows a
            // collection.
            let is_over = !is_collecting && (causes.is_idle() || !one.kind.is_whole());
            if is_over && is_latest && one.kind.is_whole() {
                found.spaces = self.spaces.iter().map(|space| space.now(data)).collect();
            }
            if is_new || found != known {
                found.time = to;
                poll.collection(found.clone());
            }
            let may_get_more = is_collecting || (is_latest && !is_over);
            one.open = may_get_more.then_some(found);
        }
    }

    /// Whether the VM publishes single collections. JDK 11 with Z does not; nor does any JDK
    /// with Epsilon, which collects nothing.
    #[must_use]
    pub fn are_told(&self) -> bool {
        !self.collectors.is_empty()
    }

    /// Number of collections since the first poll that began and ended between two polls.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.collectors.iter().map(Counted::missed).sum()
    }

    /// Reports the totals of all collectors; a tick is `per_tick` nanoseconds.
    pub fn tell_totals(&self, data: &PerfData, per_tick: f64, poll: &mut Poll) {
        for one in &self.collectors {
            one.tell_totals(data, per_tick, poll);
        }
    }

    /// Spaces of the heap.
    pub(crate) fn spaces(&self) -> &[Space] {
        &self.spaces
    }
}

/// A size in bytes. G1 before JDK 18 adds 8 or 24 bytes to capacities to keep them above zero;
/// no other capacity is odd.
fn bytes_at(slot: Slot, data: &PerfData) -> Option<u64> {
    let bytes = u64::try_from(slot.long(data.bytes())?).ok()?;
    Some(match bytes % 4096 {
        8 | 24 => bytes - bytes % 4096,
        _ => bytes,
    })
}

impl Space {
    /// Maximum capacity.
    pub fn maximum(&self, data: &PerfData) -> Option<u64> {
        bytes_at(self.max?, data)
    }

    /// Used bytes, as published by the VM.
    pub fn now(&self, data: &PerfData) -> SpaceUse {
        let used = self.used.long(data.bytes());
        SpaceUse {
            name: self.name.clone(),
            before: None,
            after: used.and_then(|used| u64::try_from(used).ok()),
            capacity: self.capacity.and_then(|slot| bytes_at(slot, data)),
        }
    }
}

fn spaces_of(data: &PerfData) -> Vec<Space> {
    let mut spaces = Vec::new();
    for generation in 0..MOST_GENERATIONS {
        let of_it = format!("sun.gc.generation.{generation}");
        let of_it_name = data.text(&format!("{of_it}.name")).unwrap_or_default();
        for space in 0..MOST_SPACES {
            let slot = |what: &str| {
                let name = format!("{of_it}.space.{space}.{what}");
                data.layout().slot(&name)
            };
            let Some(used) = slot("used") else { continue };
            let own = data.text(&format!("{of_it}.space.{space}.name"));
            let name = match own.as_deref() {
                // Name of the only space of a generation in G1 and Z.
                None | Some("space") => of_it_name.clone(),
                Some(own) => own.to_owned(),
            };
            spaces.push(Space {
                name,
                used,
                capacity: slot("capacity"),
                max: slot("maxCapacity"),
            });
        }
    }
    spaces
}
