//! Samples by address, as in VMProfiler's plot.
//!
//! A file's code has the address of its first mapping. Generated code has the address of its
//! constituent at the sample's time. The axis consists of [`Stretch`]es: files, code zones, the
//! kernel. Samples without an address are counted separately.

mod layout;

pub use layout::Layout;

use crate::ids::CodeId;
use crate::profile::{EntryId, Profile};
use crate::summary::Filter;
use crate::time_buckets::{Stop, by_place};
use layout::Zone;
use std::collections::BTreeMap;
use std::ops::Range;
use vmscope_records::{ModuleKey, ProcessKey};

/// Lower bound of gaps around the kernel and its modules, in bytes.
const APART: u64 = 16 << 20;

/// The owner of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A file.
    Module(ModuleKey),
    /// The code zone of a process with this start address.
    Zone(ProcessKey, u64),
    /// The part of the kernel with this start address.
    Kernel(u64),
}

/// Samples of one entry at one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The address.
    pub address: u64,
    /// The number of samples.
    pub samples: u64,
    /// The entry.
    pub entry: EntryId,
    code: Option<CodeId>,
}

impl Point {
    /// The constituent, for generated code.
    #[must_use]
    pub fn code(&self) -> Option<CodeId> {
        self.code
    }

    /// Adds another point's samples, if all else is equal.
    fn join(&mut self, other: &Point) -> bool {
        let is_same =
            (self.address, self.entry, self.code) == (other.address, other.entry, other.code);
        self.samples += if is_same { other.samples } else { 0 };
        is_same
    }
}

/// A contiguous range of addresses with samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The owner.
    pub owner: Owner,
    /// Start address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// By address.
    points: Vec<Point>,
    /// Cumulative samples before each point, and after the last.
    sums: Vec<u64>,
}

/// The samples of a filter by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// By address.
    pub stretches: Vec<Stretch>,
    /// All kept samples of the filter.
    pub total: u64,
    /// Kept samples without an address: idle, doubtful, or in unknown memory.
    pub nowhere: u64,
    /// Dropped samples; no other number contains them.
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

    /// The number of all samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// The size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.end - self.start
    }

    /// The points of a range of addresses.
    #[must_use]
    pub fn points(&self, range: Range<u64>) -> &[Point] {
        self.points.get(self.indices(range)).unwrap_or_default()
    }

    /// The number of samples in a range of addresses.
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
    /// Counts the samples of `filter`; `None` if `stop` came first.
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
                let samples = counts[slot.place];
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

/// Makes the stretches of an owner from points in address order.
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
            // A file with several mappings has one stretch around all mappings with samples.
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
