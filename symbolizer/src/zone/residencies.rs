//! Residencies: code with its addresses and its times of presence. Views show the code zones
//! of any time.
//!
//! The same sweep places samples (`zone/now.rs`); here its events are kept. Code that a forked
//! process inherits is a residency of the parent only.

use super::history::{History, Layer, Placement, Step};
use super::now::Zones;
use crate::ids::CodeId;
use crate::trace::Trace;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;
use vmscope_records::{Constituent, ConstituentKey, ConstituentKind, ProcessKey, TimeNs};

/// Code with smaller gaps than this is one zone: V8's pages are one zone. HotSpot's three
/// heaps have large reserved gaps between them: three zones.
const ONE_ZONE: u64 = 1 << 20;

/// So many generations of forks count.
const MAX_FORKS: usize = 64;

/// A constituent's presence in one range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// The constituent's index for [`Trace::constituent`]. A live profile may give the index to
    /// another constituent later: [`Residency::constituent`] checks that.
    pub code: CodeId,
    /// The constituent's key, which is never reused.
    pub key: ConstituentKey,
    /// The process that owns the zone.
    pub process: ProcessKey,
    /// Start address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Earliest possible time of presence.
    pub maybe: TimeNs,
    /// Earliest certain time of presence.
    pub from: TimeNs,
    /// Latest certain time of presence, if earlier than `until`.
    pub fades: Option<TimeNs>,
    /// Time from which the code is gone; `None` for code without a known end.
    pub until: Option<TimeNs>,
    /// Whether other code replaced it before the recording told its end.
    pub replaced: bool,
    /// Whether a code compaction moved it to this range.
    pub moved: bool,
}

/// How certain the presence of code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The code was present.
    There,
    /// The code may be late or gone.
    Maybe,
}

/// The addresses of one zone, over the whole recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneRange {
    /// The process that owns the zone.
    pub process: ProcessKey,
    /// Start address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// The number of its process's forks and their forks. Their samples in inherited code count
    /// in this zone.
    pub forks: u32,
    /// Whether its process was forked. Inherited code has no residencies here.
    pub is_forked: bool,
    /// The zone's range in [`Residencies::all`].
    residencies: Range<usize>,
}

/// All residencies of a recording's executable code, by zone.
#[derive(Clone, Debug, Default)]
pub struct Residencies {
    all: Vec<Residency>,
    zones: Vec<ZoneRange>,
}

impl Residency {
    /// The constituent; `None` if the live profile dropped it in the meantime.
    #[must_use]
    pub fn constituent<'a>(&self, trace: &'a Trace) -> Option<&'a Constituent> {
        let known = trace.constituent(self.code);
        (known.key == self.key).then_some(known)
    }

    /// Its presence at `time`; `None` for absent code.
    #[must_use]
    pub fn at(&self, time: TimeNs) -> Option<Presence> {
        if time < self.maybe || self.until.is_some_and(|until| until <= time) {
            return None;
        }
        let unsure = time < self.from || self.fades.is_some_and(|fades| fades <= time);
        Some(if unsure {
            Presence::Maybe
        } else {
            Presence::There
        })
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.end - self.start
    }
}

impl Residencies {
    /// Sweeps through a recording: some tens of milliseconds for a hundred thousand placements.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        let mut all = residencies(trace);
        all.sort_by_key(|residency| {
            (
                residency.process,
                residency.start,
                residency.from,
                residency.code,
            )
        });
        let zones = zones(trace, &all);
        Residencies { all, zones }
    }

    /// The zones, by process and address.
    #[must_use]
    pub fn zones(&self) -> &[ZoneRange] {
        &self.zones
    }

    /// All residencies, by process and address.
    #[must_use]
    pub fn all(&self) -> &[Residency] {
        &self.all
    }

    /// All residencies in a zone, by address.
    #[must_use]
    pub fn in_zone(&self, zone: &ZoneRange) -> &[Residency] {
        self.all.get(zone.residencies.clone()).unwrap_or_default()
    }

    /// The residencies of a zone at `time`, by address.
    pub fn at<'a>(
        &'a self,
        zone: &ZoneRange,
        time: TimeNs,
    ) -> impl Iterator<Item = (&'a Residency, Presence)> + use<'a> {
        let residencies = self.in_zone(zone).iter();
        residencies.filter_map(move |residency| Some((residency, residency.at(time)?)))
    }

    /// The times at which code of a zone came or went, ascending, without duplicates.
    #[must_use]
    pub fn changes(&self, zone: &ZoneRange) -> Vec<TimeNs> {
        let residencies = self.in_zone(zone).iter();
        let mut times: Vec<TimeNs> = residencies
            .flat_map(|residency| [Some(residency.from), residency.until])
            .flatten()
            .collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    /// The times of a zone's code compactions, ascending, each with the number of moved pieces.
    #[must_use]
    pub fn compactions(&self, zone: &ZoneRange) -> Vec<(TimeNs, u64)> {
        let mut times: BTreeMap<TimeNs, u64> = BTreeMap::new();
        for residency in self
            .in_zone(zone)
            .iter()
            .filter(|residency| residency.moved)
        {
            *times.entry(residency.from).or_default() += 1;
        }
        times.into_iter().collect()
    }

    /// A constituent's residency at a time; the latest, if several match.
    pub(crate) fn place_of(residencies: &[Residency], time: TimeNs) -> Option<&Residency> {
        let there = residencies
            .iter()
            .filter(|residency| residency.at(time).is_some());
        there
            .max_by_key(|residency| residency.from)
            .or_else(|| residencies.iter().min_by_key(|residency| residency.from))
    }
}

fn is_forked(trace: &Trace, process: ProcessKey) -> bool {
    let process = trace.processes.get(&process);
    process.is_some_and(|process| trace.is_fork(process))
}

/// Forks by process, including forks of forks. Processes that executed another
/// program don't count.
fn forks(trace: &Trace) -> FxHashMap<ProcessKey, u32> {
    let all = || trace.processes.values();
    let became = all().filter(|process| process.parent.is_some() && !trace.is_fork(process));
    let gone: FxHashSet<ProcessKey> = became.filter_map(|process| process.parent).collect();
    let mut forks = FxHashMap::default();
    for process in all().filter(|process| !gone.contains(&process.key)) {
        let mut child = Some(process).filter(|process| trace.is_fork(process));
        // Recordings may contain cycles of parents.
        for _ in 0..MAX_FORKS {
            let Some(parent) = child.and_then(|child| child.parent) else {
                break;
            };
            *forks.entry(parent).or_default() += 1;
            let parent = trace.processes.get(&parent);
            child = parent.filter(|parent| trace.is_fork(parent));
        }
    }
    forks
}

/// All residencies of executable code: brings the zones forward through all events. Code ends
/// with its own last event, or when other code replaces it.
fn residencies(trace: &Trace) -> Vec<Residency> {
    let History { placements, events } = trace.code.history();
    let mut before = None;
    let mut of_placement = |placement: &Placement| {
        let moved = before.replace(placement.code) == Some(placement.code);
        (placement.layer == Layer::Code).then(|| Residency {
            code: placement.code,
            key: trace.constituent(placement.code).key,
            process: placement.process,
            start: placement.start,
            end: placement.end,
            maybe: placement.from,
            from: placement.from,
            fades: None,
            until: None,
            replaced: false,
            moved,
        })
    };
    let mut all = placements.map(|_, placement| of_placement(placement));
    let mut zones = Zones::new(placements);
    for event in events {
        zones.apply_with(event, |other| {
            if let Some(other) = &mut all[other] {
                other.until = Some(event.time);
                other.replaced = true;
            }
        });
        let residency = all[event.placement].as_mut();
        // Replaced code has no later events.
        let Some(residency) = residency.filter(|one| one.until.is_none()) else {
            continue;
        };
        match event.step {
            Step::MayBe => residency.maybe = event.time,
            Step::Is => {}
            Step::Fades => residency.fades = Some(event.time),
            Step::Leaves => {
                if zones.fades_at_once(event.placement) {
                    residency.fades = Some(residency.from);
                }
                residency.until = Some(event.time);
            }
        }
    }
    all.into_iter().flatten().collect()
}

/// The zones of residencies, which are sorted by process and address. A zone includes the
/// mapped memory around its code.
fn zones(trace: &Trace, all: &[Residency]) -> Vec<ZoneRange> {
    let mut zones: Vec<ZoneRange> = Vec::new();
    let told =
        |residency: &Residency| trace.constituent(residency.code).kind != ConstituentKind::Free;
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    let mut of_process = None;
    let forks = forks(trace);
    for (residency, index) in all.iter().zip(0..) {
        if of_process != Some(residency.process) {
            of_process = Some(residency.process);
            let memory = trace.extents.anonymous(residency.process);
            pieces = memory.map(|(start, end)| (start.0, end.0)).collect();
        }
        let (mut start, mut end) = (residency.start, residency.end);
        let after = pieces.partition_point(|(from, _)| *from <= residency.start);
        let around = after.checked_sub(1).and_then(|at| pieces.get(at));
        if let Some(&(from, to)) = around.filter(|(_, to)| residency.start < *to) {
            (start, end) = (from, end.max(to));
        }
        match zones.last_mut() {
            Some(zone)
                if zone.process == residency.process
                    && start <= zone.end.saturating_add(ONE_ZONE) =>
            {
                zone.end = zone.end.max(end);
                zone.residencies.end = index + 1;
            }
            _ => zones.push(ZoneRange {
                process: residency.process,
                start,
                end,
                forks: forks.get(&residency.process).copied().unwrap_or(0),
                is_forked: is_forked(trace, residency.process),
                residencies: index..index + 1,
            }),
        }
    }
    // A zone needs more than free space.
    zones.retain(|zone| {
        let residencies = all.get(zone.residencies.clone()).unwrap_or_default();
        residencies.iter().any(told)
    });
    zones
}
