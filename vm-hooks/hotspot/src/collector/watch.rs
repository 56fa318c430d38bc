//! The collections of a JVM from look to look.

use vmscope_process::Poll;
use vmscope_records::{SpaceUse, TimeNs};

use super::counted::{Counted, MOST_COLLECTORS, Seen};
use super::name::Kind;
use crate::perf_data::{PerfData, Slot};
use crate::vm_clock::VmClock;

/// More generations and spaces than these are not asked for.
const MOST_GENERATIONS: u32 = 4;
const MOST_SPACES: u32 = 8;

/// What the VM says is the cause while it collects nothing.
const NO_CAUSE: &str = "No GC";

/// The collections of a JVM.
#[derive(Debug, Default)]
pub struct Collections {
    collectors: Vec<Counted>,
    spaces: Vec<Space>,
    cause: Option<Slot>,
    last_cause: Option<Slot>,
    /// When the last poll began.
    looked_at: Option<TimeNs>,
}

/// A space of the heap.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// The generation's and the space's names.
    pub name: String,
    pub used: Slot,
    pub capacity: Option<Slot>,
    pub max: Option<Slot>,
}

/// The causes that the VM tells.
struct Causes {
    now: String,
    last: String,
}

impl Causes {
    fn is_idle(&self) -> bool {
        self.now.is_empty() || self.now == NO_CAUSE
    }

    /// The cause of the newest collection. While none is under way it is the last one;
    /// while one is, it is that one's only. Empty where neither is certain.
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
    /// Polls up where the figures are; again when entries have come.
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

    /// Whether a collector's figures are others than at the last poll: then the data
    /// should be read twice, and count only if both [`Collections::stamp`]s are alike.
    #[must_use]
    pub fn is_news(&self, data: &PerfData) -> bool {
        self.collectors
            .iter()
            .any(|one| one.open.is_some() || !one.is_known(one.seen(data)))
    }

    /// The figures that are told of collections.
    #[must_use]
    pub fn stamp(&self, data: &PerfData) -> impl PartialEq + use<> {
        let all = self.collectors.iter();
        let text = |slot: Option<Slot>| slot.and_then(|slot| slot.text(data.bytes()));
        let seen: Vec<Seen> = all.map(|one| one.seen(data)).collect();
        (seen, text(self.cause), text(self.last_cause))
    }

    /// Tells what is new in `data`, which was read between `from` and `to`. Of
    /// collectors that do not tell pauses apart, `is_pause` says whether the world
    /// stands still.
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
            // The spaces' figures are brought up to date at the end, while the VM still
            // says that it collects.
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

    /// Whether the VM tells single collections at all: JDK 11 does not with Z, nor does
    /// any with Epsilon, which collects nothing.
    #[must_use]
    pub fn are_told(&self) -> bool {
        !self.collectors.is_empty()
    }

    /// How many collections began and ended between two polls, since the first one.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.collectors.iter().map(Counted::missed).sum()
    }

    /// Tells the totals of all collectors; a tick is `per_tick` nanoseconds.
    pub fn tell_totals(&self, data: &PerfData, per_tick: f64, poll: &mut Poll) {
        for one in &self.collectors {
            one.tell_totals(data, per_tick, poll);
        }
    }

    /// The spaces of the heap.
    pub(crate) fn spaces(&self) -> &[Space] {
        &self.spaces
    }
}

/// A number of bytes. G1 before JDK 18 adds 8 bytes to capacities, or 24, so that none is
/// zero; no capacity but those is odd.
fn bytes_at(slot: Slot, data: &PerfData) -> Option<u64> {
    let bytes = u64::try_from(slot.long(data.bytes())?).ok()?;
    Some(match bytes % 4096 {
        8 | 24 => bytes - bytes % 4096,
        _ => bytes,
    })
}

impl Space {
    /// How much it may ever hold.
    pub fn maximum(&self, data: &PerfData) -> Option<u64> {
        bytes_at(self.max?, data)
    }

    /// How full it is, as the VM has it.
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
                // G1 and Z call the only space of a generation so.
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
