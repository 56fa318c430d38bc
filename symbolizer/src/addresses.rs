//! Samples by address: what VMProfiler's plot shows.
//!
//! Addresses are those that code had: of a file, where it was first mapped; of generated
//! code, where the constituent lay when the sample was taken. The axis is made of
//! [`Stretch`]es: a file's code, a code zone, the kernel; between them is nothing that is
//! shown. What has no address in a recording is counted apart.

use crate::profile::{Profile, SiteId};
use crate::slices::Stop;
use crate::summary::Filter;
use crate::trace::{Place, Samples};
use crate::zone::{Life, Lives};
use rustc_hash::FxHashMap;
use std::ops::Range;
use vmscope_records::{ModuleKey, ProcessKey, TimeNs};

/// The kernel's own code and that of its modules lie further apart than this.
const APART: u64 = 16 << 20;

/// Samples between two looks at [`Stop`].
const LOOK: usize = 1 << 16;

/// Whose code a stretch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A file's.
    Module(ModuleKey),
    /// Generated code of a process, in the zone that begins there.
    Zone(ProcessKey, u64),
    /// The kernel's, in the part that begins there.
    Kernel(u64),
}

/// Samples at one address, at one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The address.
    pub address: u64,
    /// What they are of.
    pub site: SiteId,
    /// The constituent that was there, of generated code.
    pub code: Option<u32>,
    /// How many.
    pub samples: u64,
}

/// A range of addresses without gaps, with samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Whose.
    pub owner: Owner,
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// By address.
    points: Vec<Point>,
    /// Before each point, and behind the last, how many samples there are in all.
    sums: Vec<u64>,
}

/// The samples that a filter takes, by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// By address.
    pub stretches: Vec<Stretch>,
    /// All of the filter's samples that are known one by one.
    pub total: u64,
    /// Those of them without an address: not running, doubtful, in memory that nobody told of.
    pub nowhere: u64,
    /// Samples that only sums are left of: they are in none of these numbers.
    pub forgotten: u64,
}

impl Stretch {
    fn new(owner: Owner, (start, end): (u64, u64), points: Vec<Point>) -> Self {
        let mut sums = Vec::with_capacity(points.len() + 1);
        let mut sum = 0;
        sums.push(sum);
        for point in &points {
            sum += point.samples;
            sums.push(sum);
        }
        Stretch {
            owner,
            start,
            end,
            points,
            sums,
        }
    }

    /// All its samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// How many bytes it has.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.end - self.start
    }

    /// The points from an address to before another.
    #[must_use]
    pub fn points(&self, range: Range<u64>) -> &[Point] {
        self.points.get(self.indices(range)).unwrap_or_default()
    }

    /// How many samples there are from an address to before another.
    #[must_use]
    pub fn count(&self, range: Range<u64>) -> u64 {
        let Range { start, end } = self.indices(range);
        let at = |index: usize| self.sums.get(index).copied().unwrap_or(0);
        at(end).saturating_sub(at(start))
    }

    fn indices(&self, range: Range<u64>) -> Range<usize> {
        let before = |address| self.points.partition_point(|point| point.address < address);
        let start = before(range.start);
        start..before(range.end).max(start)
    }
}

/// Where a place is.
#[derive(Clone, Copy, Debug)]
enum Where {
    Module(ModuleKey, u64),
    Kernel(u64),
    /// In a constituent: so many bytes from its start, wherever that was.
    Code(u32, u32),
    Nowhere,
}

impl Addresses {
    /// Of the samples that `filter` takes. Looks at every one of them: `None` when `stop` was
    /// wished before it was done.
    #[must_use]
    pub fn of(profile: &Profile, filter: &Filter, lives: &Lives, stop: &Stop) -> Option<Self> {
        let mut by_code: FxHashMap<u32, Vec<Life>> = FxHashMap::default();
        for life in lives.all() {
            by_code.entry(life.code).or_default().push(*life);
        }
        let mut points = Gathered {
            profile,
            by_code,
            counts: vec![0; profile.trace.places.len()],
            moving: FxHashMap::default(),
            total: 0,
        };
        points.count(&profile.trace.samples, filter, stop)?;
        let (by_owner, nowhere) = points.by_owner(lives);
        let mut stretches = Vec::new();
        for (owner, points) in by_owner {
            if stop.is_stopped() {
                return None;
            }
            stretch(profile, lives, owner, points, &mut stretches);
        }
        stretches.sort_by_key(|one: &Stretch| (one.start, one.owner));
        Some(Addresses {
            stretches,
            total: points.total,
            nowhere,
            forgotten: profile.slices.forgotten(),
        })
    }
}

struct Gathered<'a> {
    profile: &'a Profile,
    by_code: FxHashMap<u32, Vec<Life>>,
    /// Samples by place, of those that do not move.
    counts: Vec<u64>,
    /// Of those that do, by place and the start of the constituent then.
    moving: FxHashMap<(u32, u64, ProcessKey), u64>,
    total: u64,
}

impl Gathered<'_> {
    fn count(&mut self, samples: &Samples, filter: &Filter, stop: &Stop) -> Option<()> {
        let places = &self.profile.trace.places;
        let moves = |place: &Place| match *place {
            Place::Code(code, _)
            | Place::Interpreted { handler: code, .. }
            | Place::Entering { handler: code, .. } => {
                self.by_code.get(&code).is_some_and(|lives| lives.len() > 1)
            }
            _ => false,
        };
        let moves: Vec<bool> = places.iter().map(moves).collect();
        let takes_place = filter.takes_places(self.profile);
        let rows = samples.times.iter().zip(&samples.threads);
        for (index, ((&time, &thread), &place)) in rows.zip(&samples.places).enumerate() {
            if index.is_multiple_of(LOOK) {
                stop.look(index, samples.times.len())?;
            }
            if !filter.takes(thread, time) || !takes_place(place) {
                continue;
            }
            self.total += 1;
            if moves.get(place as usize) == Some(&true) {
                self.count_moving(place, time);
            } else if let Some(slot) = self.counts.get_mut(place as usize) {
                *slot += 1;
            }
        }
        Some(())
    }

    fn count_moving(&mut self, place: u32, time: TimeNs) {
        let code = self.profile.trace.places.get(place as usize);
        let code = code.and_then(|place| match where_of(self.profile, *place) {
            Where::Code(code, _) => Some(code),
            _ => None,
        });
        let lives = code.and_then(|code| self.by_code.get(&code));
        if let Some(life) = lives.and_then(|lives| Lives::place_of(lives, time)) {
            let at = (place, life.start, life.process);
            *self.moving.entry(at).or_default() += 1;
        }
    }

    /// The points of each owner, and how many samples have no address.
    fn by_owner(&self, lives: &Lives) -> (FxHashMap<Owner, Vec<Point>>, u64) {
        let mut by_owner: FxHashMap<Owner, Vec<Point>> = FxHashMap::default();
        let mut placed = 0;
        let mut put = |owner, address, place: u32, code, samples| {
            let site = self.profile.site_of_place.get(place as usize);
            placed += samples;
            by_owner.entry(owner).or_default().push(Point {
                address,
                site: site.copied().unwrap_or(SiteId::MAX),
                code,
                samples,
            });
        };
        let places = self.profile.trace.places.iter().zip(&self.counts);
        for ((&place, &samples), id) in places.zip(0u32..).filter(|((_, n), _)| **n > 0) {
            match where_of(self.profile, place) {
                Where::Module(module, address) => {
                    put(Owner::Module(module), address, id, None, samples);
                }
                Where::Kernel(address) => put(Owner::Kernel(0), address, id, None, samples),
                Where::Code(code, offset) => {
                    let life = self.by_code.get(&code).and_then(|lives| lives.first());
                    let Some(life) = life else { continue };
                    let owner = owner_of(lives, life.process, life.start);
                    let address = life.start.saturating_add(u64::from(offset));
                    put(owner, address, id, Some(code), samples);
                }
                Where::Nowhere => {}
            }
        }
        for (&(id, start, process), &samples) in &self.moving {
            let place = self.profile.trace.places.get(id as usize);
            let place = place.map(|place| where_of(self.profile, *place));
            if let Some(Where::Code(code, offset)) = place {
                let address = start.saturating_add(u64::from(offset));
                let owner = owner_of(lives, process, start);
                put(owner, address, id, Some(code), samples);
            }
        }
        (by_owner, self.total - placed)
    }
}

/// The zone that an address of a process is in.
fn owner_of(lives: &Lives, process: ProcessKey, address: u64) -> Owner {
    let zones = lives.zones();
    let after = zones.partition_point(|zone| (zone.process, zone.start) <= (process, address));
    let zone = after.checked_sub(1).and_then(|at| zones.get(at));
    let zone = zone.filter(|zone| zone.process == process && address < zone.end);
    Owner::Zone(process, zone.map_or(address, |zone| zone.start))
}

/// An interpreter's sample is shown at the beginning of the code that executed its
/// bytecode: where in that it was is not kept.
fn where_of(profile: &Profile, place: Place) -> Where {
    match place {
        Place::Code(code, offset) => Where::Code(code, offset),
        Place::Interpreted { handler, .. } | Place::Entering { handler, .. } => {
            Where::Code(handler, 0)
        }
        Place::Native(module, offset) => {
            let found = profile.trace.extents.address(module, offset);
            found.map_or(Where::Nowhere, |(_, at)| Where::Module(module, at.0))
        }
        Place::Kernel(address) => Where::Kernel(address.0),
        Place::Generated | Place::Doubtful | Place::Unmapped | Place::Idle => Where::Nowhere,
    }
}

/// Makes the stretches of an owner's points.
fn stretch(
    profile: &Profile,
    lives: &Lives,
    owner: Owner,
    mut points: Vec<Point>,
    stretches: &mut Vec<Stretch>,
) {
    points.sort_unstable_by_key(|point| (point.address, point.site, point.code));
    points.dedup_by(|later, kept| {
        let same = (later.address, later.site, later.code) == (kept.address, kept.site, kept.code);
        kept.samples += if same { later.samples } else { 0 };
        same
    });
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return;
    };
    let hit = (first.address, last.address.saturating_add(1));
    match owner {
        Owner::Module(module) => {
            // One that is mapped in pieces, or in several places, is shown from the first
            // to the last of those that were hit.
            let extents = profile.trace.extents.of_file(module).iter();
            let around = extents.filter(|one| one.start.0 < hit.1 && hit.0 < one.end.0);
            let (start, end) = around.fold(hit, |(start, end), one| {
                (start.min(one.start.0), end.max(one.end.0))
            });
            stretches.push(Stretch::new(owner, (start, end), points));
        }
        Owner::Zone(process, start) => {
            let zones = lives.zones().iter();
            let zone = zones.filter(|zone| zone.process == process && zone.start == start);
            let range = zone.map(|zone| (zone.start, zone.end)).next();
            let range = range.map_or(hit, |(start, end)| (start, end.max(hit.1)));
            stretches.push(Stretch::new(owner, range, points));
        }
        Owner::Kernel(_) => {
            let far = |a: &Point, b: &Point| b.address - a.address <= APART;
            for part in points.chunk_by(far) {
                let (Some(first), Some(last)) = (part.first(), part.last()) else {
                    continue;
                };
                let range = (first.address, last.address.saturating_add(1));
                let owner = Owner::Kernel(first.address);
                stretches.push(Stretch::new(owner, range, part.to_vec()));
            }
        }
    }
}
