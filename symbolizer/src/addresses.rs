//! Samples by address: what VMProfiler's plot shows.
//!
//! Addresses are those that code had: of a file, where it was first mapped; of generated
//! code, where the constituent lay when the sample was taken. The axis is made of
//! [`Stretch`]es: a file's code, a code zone, the kernel; between them is nothing that is
//! shown. What has no address in a recording is counted apart.

mod layout;

pub use layout::Layout;

use crate::profile::{EntryId, Profile};
use crate::summary::Filter;
use crate::time_buckets::{Stop, by_place};
use layout::Zone;
use std::collections::BTreeMap;
use std::ops::Range;
use vmscope_records::{ModuleKey, ProcessKey};

/// The kernel's own code and that of its modules lie further apart than this.
const APART: u64 = 16 << 20;

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

/// Of no constituent.
const NONE: u32 = u32::MAX;

/// Samples at one address, of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The address.
    pub address: u64,
    /// How many.
    pub samples: u64,
    /// What they are of.
    pub entry: EntryId,
    code: u32,
}

impl Point {
    /// The constituent that was there, of generated code.
    #[must_use]
    pub fn code(&self) -> Option<u32> {
        (self.code != NONE).then_some(self.code)
    }

    /// Takes in another's samples, if it differs by them alone.
    fn join(&mut self, other: &Point) -> bool {
        let is_same =
            (self.address, self.entry, self.code) == (other.address, other.entry, other.code);
        self.samples += if is_same { other.samples } else { 0 };
        is_same
    }
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
    /// Samples of which only the total is known: they are in none of these numbers.
    pub dropped: u64,
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

impl Addresses {
    /// Of the samples that `filter` takes; `None` when `stop` was wished before it was done.
    #[must_use]
    pub fn of(profile: &Profile, filter: &Filter, layout: &Layout, stop: &Stop) -> Option<Self> {
        let counts = by_place(profile, filter, stop)?;
        let mut moved: BTreeMap<Owner, Vec<Point>> =
            layout.moved(profile, filter, &counts, stop)?;
        let mut stretches = Vec::new();
        let mut placed = 0;
        for (owner, slots, zone) in layout.owners() {
            let mut points: Vec<Point> = Vec::new();
            for slot in slots {
                let samples = counts.get(slot.place as usize).copied().unwrap_or(0);
                if samples > 0 {
                    let point = slot.point(u64::from(samples));
                    if !points.last_mut().is_some_and(|last| last.join(&point)) {
                        points.push(point);
                    }
                }
            }
            if let Some(more) = moved.remove(&owner) {
                points.extend(more);
                points.sort_unstable_by_key(|point| (point.address, point.entry, point.code));
                points.dedup_by(|later, kept| kept.join(later));
            }
            placed += points.iter().map(|point| point.samples).sum::<u64>();
            stretch(profile, (owner, zone), points, &mut stretches);
            if stop.is_stopped() {
                return None;
            }
        }
        stretches.sort_by_key(|one: &Stretch| (one.start, one.owner));
        let total = counts.iter().map(|&samples| u64::from(samples)).sum();
        Some(Addresses {
            stretches,
            total,
            nowhere: total.saturating_sub(placed),
            dropped: profile.time_buckets.dropped(),
        })
    }
}

/// Makes the stretches of an owner's points, which are by address.
fn stretch(
    profile: &Profile,
    (owner, zone): (Owner, Zone),
    points: Vec<Point>,
    stretches: &mut Vec<Stretch>,
) {
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
        Owner::Zone(..) => {
            let range = zone.map_or(hit, |(start, end)| (start, end.max(hit.1)));
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
