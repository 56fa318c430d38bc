//! What lay where, from when to when: the code zones of a whole recording, to be looked at
//! as they were at any time.
//!
//! Placing samples goes through the same steps once and forgets them; here they are kept.
//! A forked process's code that is its parent's is not among its residencies: it was told once,
//! of the parent.

use super::history::{History, Layer, Placement, Step};
use super::now::Zones;
use crate::trace::Trace;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::ops::Range;
use vmscope_records::{Constituent, ConstituentKey, ConstituentKind, ProcessKey, TimeNs};

/// Memory with code no further apart than this is one zone: V8's pages are; HotSpot's three
/// heaps, each at the beginning of what is reserved for it, are not.
const ONE_ZONE: u64 = 1 << 20;

/// Forks of forks of forks are followed so far.
const MAX_FORKS: usize = 64;

/// A constituent's placement at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Which constituent: for [`Trace::constituent`], of the profile it was made of. In a live
    /// one the number may be another's later: [`Residency::constituent`].
    pub code: u32,
    /// The same, for ever.
    pub key: ConstituentKey,
    /// In whose zone.
    pub process: ProcessKey,
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// From when on it may have been there.
    pub maybe: TimeNs,
    /// From when on it was there.
    pub from: TimeNs,
    /// From when on it may be gone, where that is before it was seen gone.
    pub fades: Option<TimeNs>,
    /// From when on it was not there any more; `None` that it stayed to the end, as far as is
    /// known.
    pub until: Option<TimeNs>,
    /// Whether it ended because other code was seen in its place, and was not told to be gone.
    pub replaced: bool,
    /// Whether it came here from another place.
    pub moved: bool,
}

/// Whether something was there at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It was.
    There,
    /// It may have come already, or may be gone.
    Maybe,
}

/// The addresses of one zone, over the whole recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneRange {
    /// Whose.
    pub process: ProcessKey,
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// How many processes were forked from its own, and from those: their samples in code
    /// that it handed on are counted in this zone.
    pub forks: u32,
    /// Whether its process was forked itself: what its parent handed on is not among its
    /// residencies.
    pub is_forked: bool,
    /// Its part of [`Residencies::all`].
    residencies: Range<usize>,
}

/// All residencies of a recording's executable code, and the zones that they are in.
#[derive(Clone, Debug, Default)]
pub struct Residencies {
    all: Vec<Residency>,
    zones: Vec<ZoneRange>,
}

impl Residency {
    /// The constituent, unless it was forgotten since this was worked out.
    #[must_use]
    pub fn constituent<'a>(&self, trace: &'a Trace) -> Option<&'a Constituent> {
        let known = trace.constituent(self.code);
        known.filter(|known| known.key == self.key)
    }

    /// Whether it was there at `time`; `None` that it was not.
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

    /// Its bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.end - self.start
    }
}

impl Residencies {
    /// Of a recording. Sorts all placements: some tens of milliseconds for a hundred thousand.
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

    /// What was in a zone at a time, by address.
    pub fn at<'a>(
        &'a self,
        zone: &ZoneRange,
        time: TimeNs,
    ) -> impl Iterator<Item = (&'a Residency, Presence)> + use<'a> {
        let residencies = self.in_zone(zone).iter();
        residencies.filter_map(move |residency| Some((residency, residency.at(time)?)))
    }

    /// The times at which something came into a zone or went, ascending, each once.
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

    /// The times at which code was seen at a new place in a zone, ascending, with how many
    /// pieces that were.
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

    /// Where a constituent lay at a time; of several times that it was somewhere, the one
    /// that began last.
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

/// Of each process how many were forked from it, and from those. Those that became another
/// program have nothing of it.
fn forks(trace: &Trace) -> FxHashMap<ProcessKey, u32> {
    let all = || trace.processes.values();
    let became = all().filter(|process| process.parent.is_some() && !trace.is_fork(process));
    let gone: FxHashSet<ProcessKey> = became.filter_map(|process| process.parent).collect();
    let mut forks = FxHashMap::default();
    for process in all().filter(|process| !gone.contains(&process.key)) {
        let mut child = Some(process).filter(|process| trace.is_fork(process));
        // A recording may tell of parents in a circle.
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

/// All residencies of executable code, with their ends, told or not: the zones are brought
/// forward through all events, and other code in the same place ends what was there.
fn residencies(trace: &Trace) -> Vec<Residency> {
    let History { placements, events } = trace.code.history();
    let mut before = None;
    let of_placement = |placement: &Placement| {
        let moved = before.replace(placement.code) == Some(placement.code);
        let constituent = trace.constituent(placement.code);
        let code = constituent.filter(|_| placement.layer == Layer::Code);
        code.map(|code| Residency {
            code: placement.code,
            key: code.key,
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
    let mut all: Vec<Option<Residency>> = placements.iter().map(of_placement).collect();
    let mut zones = Zones::new(placements);
    for event in events {
        zones.apply_with(event, |other| {
            if let Some(other) = &mut all[other as usize] {
                other.until = Some(event.time);
                other.replaced = true;
            }
        });
        let residency = all[event.placement as usize].as_mut();
        // What ended before needs no more.
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

/// The zones that these residencies, by process and address, are in: the memory around them, as
/// far as that was told.
fn zones(trace: &Trace, all: &[Residency]) -> Vec<ZoneRange> {
    let mut zones: Vec<ZoneRange> = Vec::new();
    let told = |residency: &Residency| {
        let code = trace.constituent(residency.code);
        code.is_some_and(|code| code.kind != ConstituentKind::Free)
    };
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
    // Free space alone is no zone.
    zones.retain(|zone| {
        let residencies = all.get(zone.residencies.clone()).unwrap_or_default();
        residencies.iter().any(told)
    });
    zones
}
