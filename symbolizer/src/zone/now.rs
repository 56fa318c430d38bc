//! The code zones of all processes at one time, moved forward event by event.

use super::history::{CodeId, Layer, Placement, PlacementId, Step, ZoneEvent};
use super::inherited::{Inherited, Piece, Snapshot};
use super::overlaps::{Cover, Overlaps};
use crate::ids::IndexVec;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use vmscope_records::{Avma, ProcessKey, TimeNs};

/// The owner of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// One constituent, with the address's offset in it.
    One(CodeId, u32),
    /// Two constituents that exclude each other.
    Doubtful,
}

/// A constituent without rivals in a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Near {
    pub code: CodeId,
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
}

/// A range of addresses whose claims changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    pub process: ProcessKey,
    pub layer: Layer,
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
}

/// The present state of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    /// The code may be present.
    Maybe,
    /// The code is present.
    Firm,
    /// Previously present code that may be gone.
    Fading,
}

/// All processes' zones at one time.
#[derive(Debug, Default)]
pub(crate) struct Zones {
    placements: IndexVec<PlacementId, Placement>,
    states: IndexVec<PlacementId, State>,
    by_process: FxHashMap<(ProcessKey, Layer), Zone>,
    /// The number of pieces in all snapshots; shared snapshots count once.
    living: Arc<AtomicUsize>,
    /// The number of pieces copied for forks so far.
    copied: usize,
    /// The number of forks whose snapshot exceeded the limits.
    refused: u64,
    /// Ended processes, which lose their inherited code when room runs out.
    ended: Vec<ProcessKey>,
    /// Failed lookups of data; only a live profile needs them.
    missed: Option<Missed>,
    limits: Limits,
}

/// Addresses of failed lookups, with the time of the last one.
type Missed = BTreeMap<(ProcessKey, Layer, u64), TimeNs>;

/// With more failed lookups the list starts anew; late records of the old ones count as in time.
const MAX_MISSED: usize = 1 << 16;

/// Limits of inherited code, in pieces: a hostile recording may have any number of forks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Pieces at one time, 24 bytes each.
    pub living: usize,
    /// Pieces over the whole recording, some nanoseconds each.
    pub copied: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            living: 1 << 22,
            copied: 1 << 28,
        }
    }
}

/// A process's zone at one time.
#[derive(Debug, Default)]
struct Zone {
    /// Present code by start address, without overlaps: end address and placement.
    firm: BTreeMap<u64, (u64, PlacementId)>,
    /// Code that may be present.
    maybe: Overlaps,
    /// Code inherited from the parent, without the ranges that own code replaced.
    inherited: Inherited,
    /// The snapshot of its last fork, while its code is unchanged.
    handed_on: Weak<Snapshot>,
}

impl Zones {
    /// Empty zones for these placements.
    pub fn new(placements: IndexVec<PlacementId, Placement>) -> Self {
        let mut ends: FxHashMap<(ProcessKey, Layer), Vec<u64>> = FxHashMap::default();
        for placement in placements.iter().filter(|placement| placement.maybe) {
            let ends = ends
                .entry((placement.process, placement.layer))
                .or_default();
            ends.extend([placement.start, placement.end]);
        }
        let zone = |ends| Zone {
            maybe: Overlaps::new(ends),
            ..Zone::default()
        };
        Zones {
            states: placements.with_each(State::Absent),
            placements,
            by_process: ends
                .into_iter()
                .map(|(place, ends)| (place, zone(ends)))
                .collect(),
            ..Zones::default()
        }
    }

    /// Starts noting failed lookups: see [`Zones::missed_in`].
    pub fn note_missed(&mut self) {
        self.missed.get_or_insert_default();
    }

    /// Notes a failed lookup for a sample of that time.
    pub fn miss(&mut self, process: ProcessKey, layer: Layer, address: Avma, time: TimeNs) {
        if let Some(missed) = &mut self.missed {
            if missed.len() >= MAX_MISSED {
                missed.clear();
            }
            missed.insert((process, layer, address.0), time);
        }
    }

    /// Whether a lookup in this range failed for a sample of `time` or later.
    pub fn missed_in(&self, placement: &Placement, time: TimeNs) -> bool {
        let key = |address| (placement.process, placement.layer, address);
        let there = self
            .missed
            .as_ref()
            .filter(|_| placement.start < placement.end);
        there.is_some_and(|missed| {
            let mut there = missed.range(key(placement.start)..key(placement.end));
            there.any(|(_, missed)| *missed >= time)
        })
    }

    /// Adds a placement, at the free index `slot` if given. After the last placement that may
    /// come before an adapter sees it, call [`Zones::expect`].
    pub fn add(&mut self, placement: Placement, slot: Option<PlacementId>) -> PlacementId {
        match slot {
            Some(slot) => {
                (self.placements[slot], self.states[slot]) = (placement, State::Absent);
                slot
            }
            None => {
                self.states.push(State::Absent);
                self.placements.push(placement)
            }
        }
    }

    /// Updates whether a placement fades at once. With `is_firm`, a fading placement becomes
    /// firm again.
    pub fn restate(&mut self, index: PlacementId, fades_at_once: bool, is_firm: bool) {
        self.placements[index].fades_at_once = fades_at_once;
        if is_firm && self.states[index] == State::Fading {
            self.states[index] = State::Firm;
        }
    }

    /// Replaces the list of placements that may come before an adapter sees them.
    pub fn expect(&mut self, process: ProcessKey, layer: Layer, placements: &[PlacementId]) {
        let zone = self.by_process.entry((process, layer)).or_default();
        let all = placements
            .iter()
            .map(|&index| (index, &self.placements[index]));
        let ends = all
            .clone()
            .flat_map(|(_, placement)| [placement.start, placement.end]);
        zone.maybe = Overlaps::new(ends.collect());
        for (index, placement) in all {
            if self.states[index] == State::Maybe {
                zone.maybe.add(placement.start, placement.end, index);
            }
        }
    }

    /// Whether a placement is possibly present, still unseen.
    pub fn is_maybe(&self, index: PlacementId) -> bool {
        self.states[index] == State::Maybe
    }

    /// Whether a placement is present, certainly or possibly.
    pub fn is_there(&self, index: PlacementId) -> bool {
        self.states[index] != State::Absent
    }

    /// Whether newer code overlaps `placement`.
    pub fn is_superseded(&self, placement: &Placement) -> bool {
        let Some(zone) = self.by_process.get(&(placement.process, placement.layer)) else {
            return false;
        };
        let before_end = zone.firm.range(..placement.end).rev();
        let mut over = before_end.take_while(|(_, (end, _))| *end > placement.start);
        over.any(|(_, (_, other))| self.placements[*other].from > placement.from)
    }

    /// Whether a placement may be gone right after an adapter saw it.
    pub fn fades_at_once(&self, index: PlacementId) -> bool {
        self.placements[index].fades_at_once
    }

    /// All inherited placements of forked processes.
    pub fn inherited(&self) -> impl Iterator<Item = PlacementId> + '_ {
        let zones = self.by_process.values();
        zones.flat_map(|zone| zone.inherited.placements())
    }

    /// The number of zones and placements.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_process.len() + self.placements.len()
    }

    /// Drops the zone of an ended process, which gets no more samples.
    pub fn forget(&mut self, process: ProcessKey) {
        self.ended.retain(|ended| *ended != process);
        for layer in Layer::ALL {
            let Some(zone) = self.by_process.remove(&(process, layer)) else {
                continue;
            };
            for (_, placement) in zone.firm.into_values() {
                self.states[placement] = State::Absent;
            }
        }
    }

    /// With other limits.
    #[cfg(test)]
    pub(super) fn limited(self, limits: Limits) -> Self {
        Zones { limits, ..self }
    }

    /// Applies one event. Returns the changed range of addresses.
    pub fn apply(&mut self, event: ZoneEvent) -> Option<Changed> {
        self.apply_with(event, |_| {})
    }

    /// Applies one event and hands the replaced placements to `replaced`.
    pub fn apply_with(
        &mut self,
        event: ZoneEvent,
        replaced: impl FnMut(PlacementId),
    ) -> Option<Changed> {
        let index = event.placement;
        let (placement, state) = (self.placements[index], self.states[index]);
        let zone = self
            .by_process
            .entry((placement.process, placement.layer))
            .or_default();
        let (mut start, mut end) = (placement.start, placement.end);
        let next = match (event.step, state) {
            (Step::MayBe, State::Absent) => {
                zone.maybe.add(start, end, index);
                State::Maybe
            }
            (Step::Is, State::Absent | State::Maybe) => {
                if state == State::Maybe {
                    zone.maybe.remove(start, end, index);
                }
                (start, end) = put(
                    &mut zone.firm,
                    &mut self.states,
                    &placement,
                    index,
                    replaced,
                );
                let (from, to) = zone.inherited.end(placement.start, placement.end);
                (start, end) = (start.min(from), end.max(to));
                zone.handed_on = Weak::new();
                if placement.fades_at_once {
                    State::Fading
                } else {
                    State::Firm
                }
            }
            (Step::Fades, State::Firm) => State::Fading,
            (Step::Leaves, State::Maybe) => {
                zone.maybe.remove(start, end, index);
                State::Absent
            }
            (Step::Leaves, State::Firm | State::Fading) => {
                zone.firm.remove(&start);
                zone.handed_on = Weak::new();
                State::Absent
            }
            _ => return None,
        };
        self.states[index] = next;
        // Fading code is doubtful only if other code may be present.
        if event.step == Step::Fades && zone.maybe.is_empty() {
            return None;
        }
        let Placement { process, layer, .. } = placement;
        Some(Changed {
            process,
            layer,
            start,
            end,
        })
    }

    /// Gives the forked `child` the code of `parent`: present and fading code, but not code that
    /// only may be present.
    pub fn fork(&mut self, parent: ProcessKey, child: ProcessKey) {
        for layer in Layer::ALL {
            let Some(all) = self.snapshot(parent, layer) else {
                continue;
            };
            let zone = self.by_process.entry((child, layer)).or_default();
            zone.inherited = Inherited::new(all);
            zone.handed_on = Weak::new();
            // The child's own earlier code is not inherited.
            for (&start, &(end, _)) in &zone.firm {
                zone.inherited.end(start, end);
            }
        }
    }

    /// A snapshot of a process's code; `None` without code, or beyond the limits.
    fn snapshot(&mut self, process: ProcessKey, layer: Layer) -> Option<Arc<Snapshot>> {
        let zone = self.by_process.get(&(process, layer))?;
        if let Some(known) = zone.handed_on.upgrade() {
            return Some(known);
        }
        if zone.firm.is_empty()
            && let Some(whole) = zone.inherited.whole()
        {
            return Some(Arc::clone(whole));
        }
        let len = zone.firm.len().saturating_add(zone.inherited.len());
        if len == 0 {
            return None;
        }
        if !self.has_room(len) {
            for ended in std::mem::take(&mut self.ended) {
                if ended != process {
                    self.disinherit(ended);
                }
            }
        }
        if !self.has_room(len) {
            self.refused += 1;
            return None;
        }
        self.copied = self.copied.saturating_add(len);
        let zone = self.by_process.get_mut(&(process, layer))?;
        let firm = zone.firm.iter();
        let firm = firm.map(|(&start, &(end, placement))| Piece {
            start,
            end,
            placement,
        });
        let all = Snapshot::of_both(zone.inherited.left(), firm, &self.living);
        if all.len() == 0 {
            return None;
        }
        let all = Arc::new(all);
        zone.handed_on = Arc::downgrade(&all);
        Some(all)
    }

    fn has_room(&self, pieces: usize) -> bool {
        let fits = |used: usize, most| used.saturating_add(pieces) <= most;
        fits(self.living.load(Ordering::Relaxed), self.limits.living)
            && fits(self.copied, self.limits.copied)
    }

    /// Drops the inherited code of a process that executed another program.
    pub fn disinherit(&mut self, process: ProcessKey) {
        for layer in Layer::ALL {
            if let Some(zone) = self.by_process.get_mut(&(process, layer)) {
                zone.inherited = Inherited::default();
                zone.handed_on = Weak::new();
            }
        }
    }

    /// Notes the end of a process. Late samples still find its inherited code, as long as there
    /// is room.
    pub fn end(&mut self, process: ProcessKey) {
        let mut zones = (Layer::ALL.iter()).filter_map(|&l| self.by_process.get(&(process, l)));
        if zones.any(|zone| zone.inherited.len() > 0) {
            self.ended.push(process);
        }
    }

    /// Maps a file to `[start, end)` at `time`, which ends all older code there. Returns the
    /// changed range of addresses.
    pub fn cover(
        &mut self,
        process: ProcessKey,
        (start, end): (u64, u64),
        time: TimeNs,
    ) -> (u64, u64) {
        let (mut from, mut to) = (start, end);
        for layer in Layer::ALL {
            let Some(zone) = self.by_process.get_mut(&(process, layer)) else {
                continue;
            };
            let inherited = zone.inherited.end(start, end);
            (from, to) = (from.min(inherited.0), to.max(inherited.1));
            zone.handed_on = Weak::new();
            while let Some((&first, &(last, placement))) = zone.firm.range(..end).next_back() {
                // Code with an equal time may be newer than the mapping.
                if last <= start || self.placements[placement].from >= time {
                    break;
                }
                zone.firm.remove(&first);
                self.states[placement] = State::Absent;
                (from, to) = (from.min(first), to.max(last));
            }
        }
        (from, to)
    }

    /// The number of forks whose snapshot exceeded the limits.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The present owner of an address.
    pub fn lookup(&self, process: ProcessKey, layer: Layer, address: Avma) -> Option<Claim> {
        self.lookup_near(process, layer, address).0
    }

    /// The present owner of an address, and the constituent without rivals around it.
    pub fn lookup_near(
        &self,
        process: ProcessKey,
        layer: Layer,
        address: Avma,
    ) -> (Option<Claim>, Option<Near>) {
        let Some(zone) = self.by_process.get(&(process, layer)) else {
            return (None, None);
        };
        let firm = find(&zone.firm, address.0);
        let claim = self.claim(zone, firm, address);
        let placement = firm.map(|firm| &self.placements[firm]);
        let near = placement
            .filter(|_| zone.maybe.is_empty())
            .map(|placement| Near {
                code: placement.code,
                start: placement.start,
                end: placement.end,
            });
        (claim, near)
    }

    /// The owner of an address inside `firm` code.
    fn claim(&self, zone: &Zone, firm: Option<PlacementId>, address: Avma) -> Option<Claim> {
        let one = match firm {
            Some(firm) => {
                let fades = self.states[firm] == State::Fading;
                if fades && zone.maybe.at(address.0) != Cover::Nobody {
                    return Some(Claim::Doubtful);
                }
                firm
            }
            None => match zone.maybe.at(address.0) {
                Cover::Nobody => zone.inherited.find(address.0)?,
                Cover::One(maybe) if zone.inherited.find(address.0).is_none() => maybe,
                Cover::One(_) | Cover::Several => return Some(Claim::Doubtful),
            },
        };
        let placement = &self.placements[one];
        let offset = u32::try_from(address.0.checked_sub(placement.start)?).ok()?;
        Some(Claim::One(placement.code, offset))
    }
}

/// The range around `address`.
fn find(ranges: &BTreeMap<u64, (u64, PlacementId)>, address: u64) -> Option<PlacementId> {
    let (_, &(end, placement)) = ranges.range(..=address).next_back()?;
    (address < end).then_some(placement)
}

/// Puts a placement into a zone and removes all code that it overlaps: half a method is no
/// method. Returns the changed range of addresses.
fn put(
    zone: &mut BTreeMap<u64, (u64, PlacementId)>,
    states: &mut IndexVec<PlacementId, State>,
    placement: &Placement,
    index: PlacementId,
    mut replaced: impl FnMut(PlacementId),
) -> (u64, u64) {
    let (mut start, mut end) = (placement.start, placement.end);
    // Backwards from the last overlapping range.
    while let Some((&from, &(to, other))) = zone.range(..placement.end).next_back() {
        if to <= placement.start {
            break;
        }
        zone.remove(&from);
        states[other] = State::Absent;
        replaced(other);
        start = start.min(from);
        end = end.max(to);
    }
    zone.insert(placement.start, (placement.end, index));
    (start, end)
}
