//! A method's versions side by side: the samples of each, in places that are named alike.

use super::gather::Gathered;
use super::{Annotation, Located, Origin};
use crate::profile::Profile;
use crate::slices::{Selection, Stop};
use crate::summary::Filter;
use crate::summary::errors::Means;

/// The samples of each of these versions ([`super::versions`]), in their order. A place has
/// the same [`super::Spot`] in all of them, and what was inlined there the same
/// [`super::Subject`]. What describes the method (its name, its listing) is left empty: it is
/// that of [`super::annotate`]. `None` when `stop` was wished before it was done.
///
/// Only samples that are kept one by one tell versions apart: others are not counted here.
#[must_use]
pub fn sides(
    profile: &Profile,
    filter: &Filter,
    located: &Located,
    wanted: &[Origin],
    stop: &Stop,
) -> Option<Vec<Annotation>> {
    let selection = Selection::new(profile, filter);
    let (counts, total) = located.count(profile, &selection, stop)?;
    let side = |origin| wanted.iter().position(|one| *one == origin);
    let gathered: Vec<Gathered> = (0..wanted.len())
        .map(|number| {
            let mut samples = vec![0; profile.sites.len()];
            let places = located.places.iter().zip(&counts);
            for (at, count) in places.filter(|(at, _)| side(at.origin) == Some(number)) {
                if let Some(slot) = samples.get_mut(at.site as usize) {
                    *slot += count;
                }
            }
            Gathered::of(profile, located, &samples)
        })
        .collect();
    // By place: the side, and the group in it.
    let of_place = located.places.iter().map(|at| {
        let side = side(at.origin)?;
        Some((side, gathered.get(side)?.group(at.site)?))
    });
    let groups: Vec<Option<(usize, u32)>> = of_place.collect();
    let mut in_total = Means::new(total, wanted.len());
    let mut in_side: Vec<Option<Means>> = (gathered.iter())
        .map(|one| Means::new(one.size().0, one.size().1))
        .collect();
    // Samples of no side since the last of one.
    let mut others = 0;
    located.each(profile, &selection, stop, |at| {
        let Some((side, group)) = groups.get(at as usize).copied().flatten() else {
            others += 1;
            return;
        };
        if let Some(means) = &mut in_total {
            means.pass(std::mem::take(&mut others));
            means.put(u32::try_from(side).unwrap_or(u32::MAX), 1);
            means.fill(1);
        }
        if let Some(Some(means)) = in_side.get_mut(side) {
            means.put(group, 1);
            means.fill(1);
        }
    })?;
    if let Some(means) = &mut in_total {
        means.pass(others);
    }
    let errors = in_total.map(|means| means.errors()).unwrap_or_default();
    let sides = gathered.into_iter().zip(in_side).zip(0..);
    let sides = sides.map(|((one, means), side)| {
        let of_rows = means.map(|means| means.errors()).unwrap_or_default();
        one.annotation(total, errors.get(side).copied(), &of_rows)
    });
    Some(sides.collect())
}
