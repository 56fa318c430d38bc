//! Survival curves (Kaplan and Meier, JASA 1958), with weights and censoring.
//!
//! Deaths count at the collection that observed them. In numbers of collections, an object that is
//! alive at the end after k collections was not exposed to collection k + 1; in other units, it was
//! at risk for its whole lifetime. Curves in time and bytes are late or early by a part of the interval
//! between collections; curves in numbers of collections have no such error.

use super::estimate::Estimate;
use super::event::Groups;
use super::groups::{GroupKey, Grouping};
use super::{Lifetimes, Measure};

/// Objects of one group and lifetime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spell {
    pub group: u32,
    pub is_dead: bool,
    pub lifetime: f64,
    /// Weighted number of objects.
    pub objects: f64,
    /// Sum of the squared weights.
    pub squares: f64,
}

/// A survival curve.
#[derive(Clone, Debug, PartialEq)]
pub struct LifeTable {
    /// Unit of lifetimes.
    pub measure: Measure,
    /// Steps by ascending lifetime, one for each lifetime with deaths.
    pub steps: Vec<Step>,
    /// Longest lifetime, of dead or living objects.
    pub horizon: f64,
    /// Mean lifetime restricted to the horizon: the area under the curve. The error follows
    /// Greenwood's formula.
    pub restricted_mean: Estimate,
}

/// Deaths after a lifetime.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The lifetime.
    pub lifetime: f64,
    /// Objects known to have lived as long (weighted).
    pub at_risk: f64,
    /// Those that died then (weighted).
    pub deaths: f64,
    /// Share of objects that live longer. The error follows Greenwood's formula for the effective
    /// number `(Σ w)² ÷ Σ w²` of objects at risk: of exact counts, it is the spread of the process,
    /// not of the counting.
    pub survival: Estimate,
}

impl LifeTable {
    /// The table of spells sorted by lifetime.
    pub(super) fn of(measure: Measure, spells: &[Spell]) -> Self {
        // From the back: sums of those who live longer lose no digits.
        let (mut objects, mut squares) = (0.0, 0.0);
        // Lifetime, objects at risk, their effective number, deaths.
        let mut rows = Vec::new();
        for same in spells.chunk_by(|a, b| a.lifetime == b.lifetime).rev() {
            let (mut deaths, mut death_squares, mut alive, mut alive_squares) =
                (0.0, 0.0, 0.0, 0.0);
            for spell in same {
                let (sum, squares) = match spell.is_dead {
                    true => (&mut deaths, &mut death_squares),
                    false => (&mut alive, &mut alive_squares),
                };
                *sum += spell.objects;
                *squares += spell.squares;
            }
            let (mut at_risk, mut risk_squares) = (objects + deaths, squares + death_squares);
            if !measure.is_count() {
                at_risk += alive;
                risk_squares += alive_squares;
            }
            if deaths > 0.0 {
                let effective = at_risk * at_risk / risk_squares;
                rows.push((same[0].lifetime, at_risk, effective, deaths));
            }
            objects += deaths + alive;
            squares += death_squares + alive_squares;
        }
        rows.reverse();
        let horizon = spells.last().map_or(0.0, |spell| spell.lifetime);
        let (mut survival, mut variance) = (1.0, 0.0);
        let mut steps = Vec::with_capacity(rows.len());
        let mut terms = Vec::with_capacity(rows.len());
        for (lifetime, at_risk, effective, deaths) in rows {
            let hazard = f64::min(deaths / at_risk, 1.0);
            survival *= 1.0 - hazard;
            let term = match hazard < 1.0 {
                true => hazard / ((1.0 - hazard) * effective),
                false => 0.0,
            };
            variance += term;
            terms.push(term);
            steps.push(Step {
                lifetime,
                at_risk,
                deaths,
                survival: Estimate::new(survival, survival * survival * variance),
            });
        }
        let (mut area, mut spread, mut until) = (0.0, 0.0, horizon);
        for (step, term) in steps.iter().zip(&terms).rev() {
            area += step.survival.value * (until - step.lifetime);
            spread += area * area * term;
            until = step.lifetime;
        }
        LifeTable {
            measure,
            steps,
            horizon,
            restricted_mean: Estimate::new(area + until, spread),
        }
    }

    /// Share of objects that live longer than a lifetime.
    #[must_use]
    pub fn survival_at(&self, lifetime: f64) -> Estimate {
        let passed = self.steps.partition_point(|step| step.lifetime <= lifetime);
        let last = passed.checked_sub(1).map(|last| self.steps[last].survival);
        last.unwrap_or(Estimate {
            value: 1.0,
            error: 0.0,
        })
    }

    /// At most about `most` steps, for a drawing: those between which survival falls equally.
    #[must_use]
    pub fn drawn(&self, most: usize) -> Vec<Step> {
        let fall = 1.0 / most.max(1) as f64;
        let mut kept: Vec<Step> = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            let last = kept.last().map_or(1.0, |last| last.survival.value);
            if last - step.survival.value >= fall || index + 1 == self.steps.len() {
                kept.push(*step);
            }
        }
        kept
    }
}

/// The survival curves of all groups.
#[must_use]
pub fn life_tables(
    lifetimes: &Lifetimes,
    grouping: Grouping,
    measure: Measure,
) -> Vec<(GroupKey, LifeTable)> {
    let mut groups = Groups::new(lifetimes, grouping);
    let mut spells = Vec::new();
    for event in lifetimes.events(measure) {
        let group = groups.number(event.class, event.site);
        spells.push(event.spell(group));
    }
    let tables = tables(measure, spells);
    let tables = tables.map(|(group, table)| (groups.keys[group as usize], table));
    tables.collect()
}

/// The table of each group with spells.
pub(super) fn tables(
    measure: Measure,
    mut spells: Vec<Spell>,
) -> impl Iterator<Item = (u32, LifeTable)> {
    spells.sort_unstable_by(|a, b| {
        let lifetimes = || a.lifetime.total_cmp(&b.lifetime);
        a.group.cmp(&b.group).then_with(lifetimes)
    });
    let mut start = 0;
    std::iter::from_fn(move || {
        let of_group = spells[start..].chunk_by(|a, b| a.group == b.group).next()?;
        start += of_group.len();
        Some((of_group[0].group, LifeTable::of(measure, of_group)))
    })
}
