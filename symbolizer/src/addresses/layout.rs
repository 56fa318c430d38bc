//! All places of a profile by address, independent of filters.

use super::{Owner, Point};
use crate::ids::{CodeId, IndexVec, PlaceId};
use crate::profile::{EntryId, Profile};
use crate::summary::Filter;
use crate::time_buckets::{Selection, Stop, each_place};
use crate::trace::Place;
use crate::zone::{Residencies, Residency};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use vmscope_records::{ModuleKey, ProcessKey, TimeNs};

/// A code zone's start and end address, if known.
pub(super) type Zone = Option<(u64, u64)>;

/// An address for a place without moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    address: u64,
    pub place: PlaceId,
    entry: EntryId,
    code: Option<CodeId>,
}

impl Slot {
    pub fn point(&self, samples: u64) -> Point {
        Point {
            address: self.address,
            samples,
            entry: self.entry,
            code: self.code,
        }
    }
}

/// The places of a profile by address, and the residencies of code.
#[derive(Debug, Default)]
pub struct Layout {
    /// All residencies of code.
    pub residencies: Residencies,
    /// Places by owner and address.
    slots: Vec<Slot>,
    owners: Vec<(Owner, Range<usize>, Zone)>,
    /// See [`Profile::steps`].
    steps: u64,
    /// Places in moved code, each with a range of `several`.
    moving: FxHashMap<PlaceId, Range<usize>>,
    several: Vec<Residency>,
}

/// The location of a place.
#[derive(Clone, Copy, Debug)]
enum Where {
    Module(ModuleKey, u64),
    Kernel(u64),
    /// An offset in a constituent, wherever the constituent was.
    Code(CodeId, u32),
    Nowhere,
}

/// The residencies of a constituent.
enum ResidenciesOf<'a> {
    One(&'a Residency),
    /// A range of [`Layout::several`].
    Several(Range<usize>),
}

impl Layout {
    /// Lays a profile out with its residencies. Sorts all places: some tens of milliseconds for a
    /// hundred thousand.
    #[must_use]
    pub fn of(profile: &Profile, residencies: Residencies) -> Self {
        let mut by_code: Vec<&Residency> = residencies.all().iter().collect();
        by_code.sort_by_key(|residency| residency.code);
        let mut of_code: FxHashMap<CodeId, ResidenciesOf> = FxHashMap::default();
        let mut several: Vec<Residency> = Vec::new();
        for same in by_code.chunk_by(|a, b| a.code == b.code) {
            match same {
                [residency] => of_code.insert(residency.code, ResidenciesOf::One(residency)),
                [residency, ..] => {
                    let from = several.len();
                    several.extend(same.iter().copied());
                    of_code.insert(residency.code, ResidenciesOf::Several(from..several.len()))
                }
                [] => None,
            };
        }
        let mut owned: Vec<(Owner, Slot)> = Vec::with_capacity(profile.trace.places.len());
        let mut moving = FxHashMap::default();
        for (id, &place) in profile.trace.places.enumerated() {
            let entry = profile.time_buckets.entry_of_place(id);
            let mut put = |owner, address, code| {
                let slot = Slot {
                    address,
                    place: id,
                    entry,
                    code,
                };
                owned.push((owner, slot));
            };
            match where_of(profile, place) {
                Where::Module(module, address) => put(Owner::Module(module), address, None),
                Where::Kernel(address) => put(Owner::Kernel(0), address, None),
                Where::Code(code, offset) => match of_code.get(&code) {
                    Some(ResidenciesOf::One(residency)) => {
                        let owner = owner_of(&residencies, residency.process, residency.start);
                        put(
                            owner,
                            residency.start.saturating_add(u64::from(offset)),
                            Some(code),
                        );
                    }
                    Some(ResidenciesOf::Several(range)) => {
                        moving.insert(id, range.clone());
                    }
                    None => {}
                },
                Where::Nowhere => {}
            }
        }
        drop(of_code);
        owned.sort_unstable_by_key(|(owner, slot)| (*owner, slot.address, slot.entry, slot.code));
        let mut layout = Layout {
            residencies,
            slots: owned.iter().map(|(_, slot)| *slot).collect(),
            owners: Vec::new(),
            steps: profile.steps,
            moving,
            several,
        };
        layout.take_owners(&owned);
        layout
    }

    /// Whether `profile` has made no step since this layout. After a step, places have other ids.
    #[must_use]
    pub fn is_of(&self, profile: &Profile) -> bool {
        self.steps == profile.steps
    }

    fn take_owners(&mut self, owned: &[(Owner, Slot)]) {
        let mut from = 0;
        let mut owners: BTreeMap<Owner, Range<usize>> = BTreeMap::new();
        for same in owned.chunk_by(|(a, _), (b, _)| a == b) {
            if let Some((owner, _)) = same.first() {
                owners.insert(*owner, from..from + same.len());
            }
            from += same.len();
        }
        // Zones without unmoved code have no slot yet.
        for residency in &self.several {
            let owner = owner_of(&self.residencies, residency.process, residency.start);
            owners.entry(owner).or_default();
        }
        let owners = owners.into_iter();
        self.owners = owners
            .map(|(owner, slots)| (owner, slots, self.zone_of(owner)))
            .collect();
    }

    fn zone_of(&self, owner: Owner) -> Zone {
        let Owner::Zone(process, start) = owner else {
            return None;
        };
        let mut zones = self.residencies.zones().iter();
        let zone = zones.find(|zone| zone.process == process && zone.start == start);
        zone.map(|zone| (zone.start, zone.end))
    }

    /// All owners with their places by address.
    pub(super) fn owners(&self) -> impl Iterator<Item = (Owner, &[Slot], Zone)> {
        self.owners.iter().map(|(owner, range, zone)| {
            let slots = self.slots.get(range.clone());
            (*owner, slots.unwrap_or_default(), *zone)
        })
    }

    /// Points of moved places with samples in `counts`: each sample at its code's address at the
    /// sample's time. `None` after a stop.
    pub(super) fn moved(
        &self,
        profile: &Profile,
        filter: &Filter,
        counts: &IndexVec<PlaceId, u32>,
        stop: &Stop,
    ) -> Option<BTreeMap<Owner, Vec<Point>>> {
        let mut known: IndexVec<PlaceId, Option<usize>> = IndexVec::default();
        let mut stands: Vec<Stand> = Vec::new();
        for (&place, range) in &self.moving {
            if counts[place] > 0 {
                *known.slot(place, None) = Some(stands.len());
                stands.push(Stand::of(
                    place,
                    self.several.get(range.clone()).unwrap_or_default(),
                ));
            }
        }
        let mut moved: BTreeMap<Owner, Vec<Point>> = BTreeMap::new();
        if stands.is_empty() {
            return Some(moved);
        }
        let times = &profile.trace.samples.times;
        let selection = Selection::new(profile, filter);
        each_place(profile, &selection, stop, |place, index| {
            if let Some(&Some(stand)) = known.get(place) {
                stands[stand].count(times[index]);
            }
        })?;
        for stand in &stands {
            let Where::Code(code, offset) = where_of(profile, profile.trace.places[stand.place])
            else {
                continue;
            };
            let entry = profile.time_buckets.entry_of_place(stand.place);
            for (&(start, process), &samples) in &stand.counts {
                let owner = owner_of(&self.residencies, process, start);
                moved.entry(owner).or_default().push(Point {
                    address: start.saturating_add(u64::from(offset)),
                    samples,
                    entry,
                    code: Some(code),
                });
            }
        }
        Some(moved)
    }
}

/// The present address of moved code, while walking samples in time order.
struct Stand<'a> {
    place: PlaceId,
    several: &'a [Residency],
    /// When the address is valid.
    now: Range<TimeNs>,
    at: Option<(u64, ProcessKey)>,
    counts: FxHashMap<(u64, ProcessKey), u64>,
}

impl<'a> Stand<'a> {
    fn of(place: PlaceId, several: &'a [Residency]) -> Self {
        Stand {
            place,
            several,
            now: TimeNs(0)..TimeNs(0),
            at: None,
            counts: FxHashMap::default(),
        }
    }

    fn count(&mut self, time: TimeNs) {
        if !self.now.contains(&time) {
            let changes = self.several.iter();
            let changes = changes.flat_map(|residency| [Some(residency.maybe), residency.until]);
            let (mut from, mut to) = (TimeNs(0), TimeNs(u64::MAX));
            for change in changes.flatten() {
                if change <= time {
                    from = from.max(change);
                } else {
                    to = to.min(change);
                }
            }
            self.now = from..to;
            let residency = Residencies::place_of(self.several, time);
            self.at = residency.map(|residency| (residency.start, residency.process));
        }
        if let Some(at) = self.at {
            *self.counts.entry(at).or_default() += 1;
        }
    }
}

/// The zone around an address of a process.
fn owner_of(residencies: &Residencies, process: ProcessKey, address: u64) -> Owner {
    let zones = residencies.zones();
    let after = zones.partition_point(|zone| (zone.process, zone.start) <= (process, address));
    let zone = after.checked_sub(1).and_then(|at| zones.get(at));
    let zone = zone.filter(|zone| zone.process == process && address < zone.end);
    Owner::Zone(process, zone.map_or(address, |zone| zone.start))
}

/// An interpreter's sample has the start address of the executing handler, without the
/// offset.
fn where_of(profile: &Profile, place: Place) -> Where {
    match place {
        Place::Code(code, offset) => Where::Code(code, offset),
        Place::Interpreted { handler, .. } | Place::Entering { handler, .. } => {
            Where::Code(handler, 0)
        }
        // As for an interpreter: the code, without the offset.
        Place::Called { code, .. } => Where::Code(code, 0),
        Place::Native(module, offset, _) => {
            let found = profile.trace.extents.address(module, offset);
            found.map_or(Where::Nowhere, |(_, at)| Where::Module(module, at.0))
        }
        Place::Kernel(address) => Where::Kernel(address.0),
        Place::Generated | Place::Doubtful | Place::Unmapped | Place::Idle => Where::Nowhere,
    }
}
