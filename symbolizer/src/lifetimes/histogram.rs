//! Distributions of lifetimes, and allocations over time.

use super::estimate::{Estimate, Sums};
use super::event::Groups;
use super::groups::{GroupKey, Grouping};
use super::{Lifetimes, Measure, Object};
use crate::ids::{AllocationSiteId, ClassId};
use std::cmp::Reverse;

/// Most bins; the last one holds all larger values.
pub const MAX_BINS: usize = 10_000;

/// What a distribution counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weighting {
    /// Objects.
    Objects,
    /// Their bytes.
    Bytes,
}

impl Weighting {
    fn of(self, sums: &Sums) -> Estimate {
        match self {
            Weighting::Objects => sums.x(),
            Weighting::Bytes => sums.y(),
        }
    }
}

/// Groups with most objects or bytes; one more group collects the rest.
struct Top<'a> {
    groups: Groups<'a>,
    /// Places by number of the group.
    places: Vec<usize>,
    /// The largest first; `None`: all others.
    keys: Vec<Option<GroupKey>>,
}

impl<'a> Top<'a> {
    fn new(lifetimes: &'a Lifetimes, by: (Grouping, Weighting), most: usize) -> Self {
        let mut groups = Groups::new(lifetimes, by.0);
        let totals = groups.totals();
        let mut order: Vec<usize> = (0..totals.len()).collect();
        let size = |group: usize| by.1.of(&totals[group]).value;
        order.sort_by(|&a, &b| {
            let keys = || Reverse(groups.keys[b]).cmp(&Reverse(groups.keys[a]));
            size(b).total_cmp(&size(a)).then_with(keys)
        });
        order.truncate(most);
        let mut places = vec![order.len(); totals.len()];
        for (place, &group) in order.iter().enumerate() {
            places[group] = place;
        }
        let keys = order.iter().map(|&group| Some(groups.keys[group]));
        let keys = keys.chain([None]).collect();
        Top {
            groups,
            places,
            keys,
        }
    }

    fn place(&self, class: ClassId, site: Option<AllocationSiteId>) -> usize {
        let group = self.groups.known(class, site);
        group.map_or(self.keys.len() - 1, |group| self.places[group as usize])
    }

    /// The groups' bins, without empty groups.
    fn rows<S, T>(&self, sums: &[Vec<S>], of: impl Fn(&S) -> T) -> Vec<(Option<GroupKey>, Vec<T>)> {
        let filled = self
            .keys
            .iter()
            .zip(sums)
            .filter(|(_, bins)| !bins.is_empty());
        let rows = filled.map(|(key, bins)| (*key, bins.iter().map(&of).collect()));
        rows.collect()
    }
}

/// Bins of equal width from 0 on.
fn bin(value: f64, width: f64) -> usize {
    // A width that is not positive makes one bin; casts saturate.
    ((value / width) as usize).min(MAX_BINS - 1)
}

fn slot<T: Clone + Default>(bins: &mut Vec<T>, bin: usize) -> &mut T {
    if bin >= bins.len() {
        bins.resize(bin + 1, T::default());
    }
    &mut bins[bin]
}

/// Frequencies of lifetimes in a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// Objects, or their bytes, whose death was observed after such a lifetime.
    pub dead: Estimate,
    /// Objects, or their bytes, that were alive at the end, by age.
    pub alive: Estimate,
}

/// Frequencies of lifetimes by group.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Unit of lifetimes.
    pub measure: Measure,
    /// What the bins count.
    pub weighting: Weighting,
    /// Bin i holds lifetimes from `i · width` to `(i + 1) · width`, in the unit; the last of
    /// [`MAX_BINS`] also longer ones.
    pub width: f64,
    /// The largest groups first; `None`: all others. Trailing bins may be missing.
    pub groups: Vec<(Option<GroupKey>, Vec<Bin>)>,
}

/// The width for `bins` bins over the whole run; 1 for numbers of collections.
#[must_use]
pub fn width_for(lifetimes: &Lifetimes, measure: Measure, bins: usize) -> f64 {
    let all = match measure {
        Measure::Time => lifetimes.run_ns() as f64,
        Measure::Relative => 1.0,
        Measure::AllocatedBytes => {
            let at = |time| lifetimes.allocated_at(time).unwrap_or(0.0);
            at(lifetimes.end) - at(lifetimes.begin)
        }
        Measure::Scavenges | Measure::FullCollections => return 1.0,
    };
    // The longest lifetime belongs to the last bin.
    all * (1.0 + f64::EPSILON) / bins.max(1) as f64
}

impl Histogram {
    /// Counts lifetimes of the `most` largest groups, in bins of `width`. One second and all objects
    /// give Figures 4 (bytes) and 5 (objects) of the DataFrame study (IWST 2023). By site, the living
    /// objects are those of a heap census by age.
    #[must_use]
    pub fn of(
        lifetimes: &Lifetimes,
        (grouping, most): (Grouping, usize),
        (measure, width): (Measure, f64),
        weighting: Weighting,
    ) -> Self {
        let top = Top::new(lifetimes, (grouping, weighting), most);
        let mut sums: Vec<Vec<[Sums; 2]>> = vec![Vec::new(); top.keys.len()];
        for event in lifetimes.events(measure) {
            let of_group = &mut sums[top.place(event.class, event.site)];
            let [dead, alive] = slot(of_group, bin(event.lifetime, width));
            event.add_to(if event.is_dead { dead } else { alive });
        }
        let groups = top.rows(&sums, |[dead, alive]| Bin {
            dead: weighting.of(dead),
            alive: weighting.of(alive),
        });
        Histogram {
            measure,
            weighting,
            width,
            groups,
        }
    }
}

/// Time of birth: since the begin of the run, or in allocated bytes since the first birth.
fn birth_of(lifetimes: &Lifetimes, object: &Object, unit: Measure) -> Option<f64> {
    let since_begin = object.birth.since(lifetimes.begin).0 as f64;
    match unit {
        Measure::AllocatedBytes => {
            let first = lifetimes.allocated_at(lifetimes.begin)?;
            Some((object.allocated_bytes()? as f64 - first).max(0.0))
        }
        Measure::Relative => Some(since_begin / lifetimes.run_ns().max(1) as f64),
        _ => Some(since_begin),
    }
}

/// Objects by time of birth and lifetime.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// Unit of births and lifetimes: [`Measure::Time`], [`Measure::Relative`] or
    /// [`Measure::AllocatedBytes`].
    pub measure: Measure,
    /// Width of a bin of births and of lifetimes.
    pub width: f64,
    /// By bin of births and bin of lifetimes: objects or bytes (weighted).
    pub cells: Vec<Vec<f64>>,
}

/// Most bins of a heat map in each direction.
pub const MAX_HEAT_BINS: usize = 500;

impl HeatMap {
    /// Counts single records in `bins` bins of the run, at most [`MAX_HEAT_BINS`].
    #[must_use]
    pub fn of(lifetimes: &Lifetimes, measure: Measure, bins: usize, weighting: Weighting) -> Self {
        let bins = bins.clamp(1, MAX_HEAT_BINS);
        let width = width_for(lifetimes, measure, bins);
        let mut cells = vec![vec![0.0; bins]; bins];
        for object in &lifetimes.objects {
            let birth = birth_of(lifetimes, object, measure);
            if let (Some(birth), Some(lifetime)) = (birth, lifetimes.lifetime(object, measure)) {
                let place = |value| bin(value, width).min(bins - 1);
                cells[place(birth)][place(lifetime)] += match weighting {
                    Weighting::Objects => object.weight,
                    Weighting::Bytes => object.weight * object.bytes as f64,
                };
            }
        }
        HeatMap {
            measure,
            width,
            cells,
        }
    }
}

/// Allocations over time by group.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocations {
    /// Unit of time: [`Measure::Time`], [`Measure::Relative`] or [`Measure::AllocatedBytes`].
    pub measure: Measure,
    /// Width of a bin, from the begin of the run on.
    pub width: f64,
    /// Objects and bytes of each bin; the groups with most bytes first; `None`: all others. Trailing
    /// bins may be missing.
    pub groups: Vec<(Option<GroupKey>, Vec<Allocated>)>,
}

/// Allocations in a bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Allocated {
    /// Objects.
    pub objects: Estimate,
    /// Bytes.
    pub bytes: Estimate,
}

impl Allocations {
    /// Counts single records of the `most` largest groups in bins of `width`.
    #[must_use]
    pub fn of(
        lifetimes: &Lifetimes,
        (grouping, most): (Grouping, usize),
        (measure, width): (Measure, f64),
    ) -> Self {
        let top = Top::new(lifetimes, (grouping, Weighting::Bytes), most);
        let mut sums: Vec<Vec<Sums>> = vec![Vec::new(); top.keys.len()];
        for object in &lifetimes.objects {
            let event = lifetimes.event(object, Measure::Time);
            let birth = birth_of(lifetimes, object, measure);
            if let (Some(event), Some(birth)) = (event, birth) {
                let of_group = &mut sums[top.place(event.class, event.site)];
                event.add_to(slot(of_group, bin(birth, width)));
            }
        }
        let groups = top.rows(&sums, |sums| Allocated {
            objects: sums.x(),
            bytes: sums.y(),
        });
        Allocations {
            measure,
            width,
            groups,
        }
    }
}
