//! A method's versions side by side: the samples of each, in places that are named alike.

use super::gather::Gathered;
use super::versions::origins;
use super::{Annotation, Origin, STOP_EVERY, Subject};
use crate::profile::Profile;
use crate::slices::Stop;
use crate::summary::errors::Means;
use crate::summary::{Filter, places};

/// The samples of each of these versions ([`super::versions`]), in their order. A place has
/// the same [`super::Spot`] in all of them, and what was inlined there the same
/// [`Subject`]. What describes the method (its name, its listing) is left empty: it is that
/// of [`super::annotate`]. `None` when `stop` was wished before it was done.
///
/// Only samples that are kept one by one tell versions apart: others are not counted here.
#[must_use]
pub fn sides(
    profile: &Profile,
    filter: &Filter,
    chosen: &Subject,
    wanted: &[Origin],
    stop: &Stop,
) -> Option<Vec<Annotation>> {
    let side = |origin| wanted.iter().position(|one| *one == origin);
    let of_places: Vec<Option<usize>> = (origins(profile, chosen).into_iter())
        .map(|origin| origin.and_then(side))
        .collect();
    let mut counts: Vec<u64> = vec![0; of_places.len()];
    let mut total = 0;
    each(profile, filter, stop, |place| {
        total += 1;
        if let Some(count) = counts.get_mut(place) {
            *count += 1;
        }
    })?;
    let gathered: Vec<Gathered> = (0..wanted.len())
        .map(|side| {
            let mut samples = vec![0; profile.sites.len()];
            let places = of_places.iter().zip(&profile.site_of_place).zip(&counts);
            for ((_, &site), count) in places.filter(|((of, _), _)| **of == Some(side)) {
                if let Some(slot) = samples.get_mut(site as usize) {
                    *slot += count;
                }
            }
            Gathered::of(profile, chosen, &samples)
        })
        .collect();
    // By place: the side, and the group in it.
    let groups: Vec<Option<(usize, u32)>> = (of_places.iter().zip(&profile.site_of_place))
        .map(|(side, &site)| {
            let side = (*side)?;
            Some((side, gathered.get(side)?.group(site)?))
        })
        .collect();
    let mut in_total = Means::new(total, wanted.len());
    let mut in_side: Vec<Option<Means>> = (gathered.iter())
        .map(|one| Means::new(one.size().0, one.size().1))
        .collect();
    each(profile, filter, stop, |place| {
        let of = groups.get(place).copied().flatten();
        if let Some(means) = &mut in_total {
            if let Some((side, _)) = of {
                means.put(u32::try_from(side).unwrap_or(u32::MAX), 1);
            }
            means.fill(1);
        }
        if let Some((side, group)) = of
            && let Some(Some(means)) = in_side.get_mut(side)
        {
            means.put(group, 1);
            means.fill(1);
        }
    })?;
    let errors = in_total.map(|means| means.errors()).unwrap_or_default();
    let sides = gathered.into_iter().zip(in_side).zip(0..);
    let sides = sides.map(|((one, means), side)| {
        let of_rows = means.map(|means| means.errors()).unwrap_or_default();
        one.annotation(total, errors.get(side).copied(), &of_rows)
    });
    Some(sides.collect())
}

/// Gives the place of each single sample, in the order of time; `None` when `stop` was wished
/// before it was done.
fn each(
    profile: &Profile,
    filter: &Filter,
    stop: &Stop,
    mut take: impl FnMut(usize),
) -> Option<()> {
    for (index, place) in places(profile, filter).enumerate() {
        if index.is_multiple_of(STOP_EVERY) && stop.is_stopped() {
            return None;
        }
        take(place as usize);
    }
    Some(())
}
