//! A JVM's collections across polls.

use vmscope_process::{LoadedModule, Memory, Poll, ProcessView};
use vmscope_records::{Avma, Collection, CollectionScope, SpaceUse, TimeNs};

use super::counted::{Counted, MOST_COLLECTORS, Seen, Source};
use super::manager;
use super::name::Kind;
use crate::layout::VmStructs;
use crate::perf_data::{PerfData, Slot};
use crate::vm_clock::VmClock;

/// Maximum number of generations and of spaces.
const MOST_GENERATIONS: u32 = 4;
const MOST_SPACES: u32 = 8;

/// The VM's text for the cause outside collections.
const NO_CAUSE: &str = "No GC";

/// Symbol of `GCId::_next_id`, the number of collections and concurrent cycles since the VM's start.
const NEXT_ID: &str = "_ZN4GCId8_next_idE";

/// Collections of a JVM.
#[derive(Debug, Default)]
pub struct Collections {
    collectors: Vec<Counted>,
    spaces: Vec<Space>,
    cause: Option<Slot>,
    last_cause: Option<Slot>,
    memory: InMemory,
    /// Number of collections and cycles at the last poll.
    ids: Option<u32>,
    /// Begin of the last poll.
    looked_at: Option<TimeNs>,
}

/// What perf data lack, in the VM's memory.
#[derive(Clone, Debug, Default)]
pub struct InMemory {
    collector: &'static str,
    /// The variable with the heap's address, while memory managers are missing.
    heap: Option<Avma>,
    /// First and last address of libjvm.
    libjvm: (Avma, Avma),
    /// The number of collections and cycles.
    ids: Option<Avma>,
}

impl InMemory {
    /// Finds these data of a JVM with this collector.
    #[must_use]
    pub fn find(
        process: &ProcessView,
        collector: Option<&'static str>,
        libjvm: Option<&LoadedModule>,
        structs: Option<&VmStructs>,
    ) -> Self {
        let is_any = |names: &[&str]| names.iter().any(|name| collector == Some(name));
        let has_managers = is_any(&["Shenandoah", "Z", "generational Z"]);
        let Some(libjvm) = libjvm.filter(|_| has_managers || is_any(&["G1", "CMS"])) else {
            return Self::default();
        };
        let symbols = process.symbols(libjvm, &[NEXT_ID]).ok();
        let next_id = symbols.and_then(|found| found.into_iter().flatten().next());
        let heap =
            structs.and_then(|structs| structs.optional_static("Universe", "_collectedHeap"));
        Self {
            collector: collector.unwrap_or_default(),
            heap: heap.filter(|_| has_managers),
            libjvm: (
                libjvm.start(),
                libjvm.mappings.last().map_or(Avma(0), |last| last.end),
            ),
            ids: next_id.map(|symbol| symbol.address),
        }
    }
}

/// Figures of one reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    seen: Vec<Option<Seen>>,
    causes: Causes,
    ids: Option<u32>,
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
#[derive(Clone, Debug, PartialEq, Eq)]
struct Causes {
    now: String,
    last: String,
}

impl Causes {
    fn is_idle(&self) -> bool {
        self.now.is_empty() || self.now == NO_CAUSE
    }

    /// Cause of the newest event of a scope: `now` while a collection or cycle lasts, `last` after
    /// it. Empty if uncertain.
    fn of(&self, scope: CollectionScope, lasts: bool) -> String {
        let cause = if !self.is_idle() && (lasts || scope == CollectionScope::CyclePause) {
            &self.now
        } else if self.is_idle() && !lasts {
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
            if !self.collectors.iter().any(|known| known.is_number(number)) {
                self.collectors.extend(Counted::find(number, data));
            }
        }
        self.spaces = spaces_of(data);
    }

    /// Sets the places of what perf data lack.
    pub fn look_in(&mut self, memory: InMemory) {
        self.memory = memory;
    }

    /// Finds the memory managers once the VM has made them.
    fn find_managers(&mut self, memory: &dyn Memory) {
        let heap = self.memory.heap.and_then(|at| memory.read_pointer(at).ok());
        let Some(heap) = heap.filter(|heap| heap.0 != 0) else {
            return;
        };
        for (manager, name, kind) in manager::find(memory, heap, self.memory.libjvm) {
            self.memory.heap = None;
            let source = Source::Manager(manager);
            self.collectors
                .push(Counted::new(kind, source, name.to_owned()));
        }
    }

    /// The current figures. The VM may be changing them: they are valid if a second reading is equal.
    pub fn figures(&mut self, data: &PerfData, memory: &dyn Memory) -> Figures {
        self.find_managers(memory);
        let text = |slot: Option<Slot>| slot.and_then(|slot| slot.text(data.bytes()));
        let all = self.collectors.iter();
        Figures {
            seen: all.map(|one| one.seen(data, memory)).collect(),
            causes: Causes {
                now: text(self.cause).unwrap_or_default(),
                last: text(self.last_cause).unwrap_or_default(),
            },
            ids: (self.memory.ids).and_then(|at| memory.read_u32(at).ok()),
        }
    }

    /// Whether any collector's figures have changed since the last poll.
    #[must_use]
    pub fn is_news(&self, figures: &Figures) -> bool {
        let both = self.collectors.iter().zip(&figures.seen);
        let mut both = both.map(|(one, seen)| one.is_known(*seen));
        both.any(|is_known| !is_known)
    }

    /// Reports changes in `figures` of `data`, read between `from` and `to`.
    pub fn poll(
        &mut self,
        (figures, data): (&Figures, &PerfData),
        clock: &mut VmClock,
        (from, to): (TimeNs, TimeNs),
        poll: &mut Poll,
    ) {
        let before = self.looked_at.replace(from);
        self.ids = figures.ids.or(self.ids);
        let causes = &figures.causes;
        let seen_of =
            |one: &Counted, seen: &Option<Seen>| Some((one.kind.scope.is_pause(), (*seen)?));
        let all = self.collectors.iter().zip(&figures.seen);
        let all: Vec<(bool, Seen)> = all.filter_map(|(one, seen)| seen_of(one, seen)).collect();
        let spaces = &self.spaces;
        for (one, seen) in self.collectors.iter_mut().zip(&figures.seen) {
            let Some(seen) = *seen else { continue };
            let Some(step) = one.advance(seen, clock, (before, to)) else {
                continue;
            };
            let time_of = |ticks| {
                let latest = to.plus(clock.uncertainty().unwrap_or_default());
                clock.time_of(ticks).filter(|time| *time <= latest)
            };
            let tell = |mut one: Collection, poll: &mut Poll| {
                one.time = to;
                poll.collection(one);
            };
            let mut open = one.open.take();
            let known = open.clone();
            if let Some(open) = &mut open {
                open.end = open.end.or(step.ended.and_then(time_of));
            }
            let mut found = if step.has_begun {
                if let Some(ended) = open.filter(|_| step.ended.is_some()) {
                    tell(ended, poll);
                }
                let mut new = one.begin(poll, step);
                new.begin = time_of(seen.entry);
                new.end = seen.exit().and_then(time_of);
                new
            } else if let Some(open) = open {
                open
            } else {
                continue;
            };
            let scope = one.kind.scope;
            let lasts = seen.length.is_none();
            let mut others = all.iter().filter(|(pause, _)| *pause == scope.is_pause());
            let is_latest = others.all(|(_, other)| other.entry <= seen.entry);
            if found.cause.is_empty() && is_latest && one.has_cause() {
                found.cause = causes.of(scope, lasts);
            }
            // The VM updates the spaces' figures at the end, when its cause still shows a
            // collection.
            let is_whole = scope == CollectionScope::Whole;
            let is_over = !lasts && (causes.is_idle() || !is_whole);
            if is_over && is_latest && is_whole {
                found.spaces = spaces.iter().map(|space| space.now(data)).collect();
            }
            if known.as_ref() != Some(&found) {
                tell(found.clone(), poll);
            }
            one.open = (lasts || (is_latest && !is_over)).then_some(found);
        }
    }

    /// Whether the VM publishes single collections. JDK 11 with Z does not; nor does any JDK
    /// with Epsilon, which collects nothing.
    #[must_use]
    pub fn are_told(&self) -> bool {
        !self.collectors.is_empty()
    }

    /// Reports the totals of all collectors; a tick is `per_tick` nanoseconds.
    #[expect(clippy::cast_precision_loss, reason = "figures for a report")]
    pub fn tell_totals(&self, per_tick: f64, poll: &mut Poll) {
        for one in &self.collectors {
            one.tell_totals(per_tick, poll);
        }
        let of = |scope| {
            let all = self.collectors.iter();
            all.filter(move |one| one.kind.scope == scope)
        };
        // G1's cycles, and those of Z on JDK 11, have numbers only.
        let Some(ids) = self
            .ids
            .filter(|_| of(CollectionScope::Cycle).next().is_none())
        else {
            return;
        };
        let whole: u64 = of(CollectionScope::Whole).map(Counted::count).sum();
        let cycles = u64::from(ids).saturating_sub(whole);
        let Kind { name, scope } = Kind::CYCLE;
        poll.collector_totals(self.memory.collector, name, scope, (cycles as f64, None));
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
