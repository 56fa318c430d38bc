//! A method's versions side by side, with equally named places.

use super::gather::Gathered;
use super::{Annotation, Located, Origin, Taken};
use crate::profile::SiteId;
use crate::summary::errors::{Means, batch_errors};
use crate::time_buckets::{Spot, Stop};
use rustc_hash::FxHashMap;

/// One annotation for each version in `wanted` ([`super::versions()`]), in the same order. Versions
/// share [`super::Spot`]s and inlined [`super::Subject`]s; description and listing stay empty
/// ([`super::annotate`] has them). `None` if `stop` was requested first.
///
/// Counts only samples kept one by one; dropped samples lack a version.
#[must_use]
pub fn sides(
    taken: &Taken,
    located: &Located,
    wanted: &[Origin],
    stop: &Stop,
) -> Option<Vec<Annotation>> {
    match located.origins(taken.profile) {
        Some(origins) => by_sums(taken, located, origins, wanted, stop),
        None => by_samples(taken, located, wanted, stop),
    }
}

/// For sites with a single version each: sums by site.
fn by_sums(
    taken: &Taken,
    located: &Located,
    origins: &FxHashMap<SiteId, Origin>,
    wanted: &[Origin],
    stop: &Stop,
) -> Option<Vec<Annotation>> {
    let (profile, selection) = (taken.profile, &taken.selection);
    let counts = taken.counts(stop)?;
    let number_of = |origin: Origin| {
        let number = wanted.iter().position(|one| *one == origin)?;
        u32::try_from(number).ok()
    };
    let side = |spot: &Spot| number_of(*origins.get(&spot.site)?);
    let size = (counts.total, wanted.len());
    let errors = batch_errors(profile, selection, side, size, stop)?;
    let one = |(origin, number): (&Origin, usize)| {
        let mut samples = profile.sites.with_each(0);
        for (&site, _) in origins.iter().filter(|(_, of)| *of == origin) {
            samples[site] = counts.sites[site];
        }
        let gathered = Gathered::of(profile, located, &samples);
        let group_of = |spot: &Spot| gathered.group(spot.site);
        let of_side = selection.only(&profile.time_buckets, |spot| group_of(spot).is_some());
        let of_rows = batch_errors(profile, &of_side, group_of, gathered.size(), stop)?;
        Some(gathered.annotation(counts.total, errors.get(number).copied(), &of_rows))
    };
    wanted.iter().zip(0..).map(one).collect()
}

/// For sites shared by several versions: single samples.
fn by_samples(
    taken: &Taken,
    located: &Located,
    wanted: &[Origin],
    stop: &Stop,
) -> Option<Vec<Annotation>> {
    let profile = taken.profile;
    let hits = located.hits(profile, &taken.selection, stop)?;
    let counts = hits.by_place(located);
    let side = |origin| wanted.iter().position(|one| *one == origin);
    let gathered: Vec<Gathered> = (0..wanted.len())
        .map(|number| {
            let mut samples = profile.sites.with_each(0);
            let places = located.places.iter().zip(&counts);
            for (at, count) in places.filter(|(at, _)| side(at.origin) == Some(number)) {
                samples[at.site] += count;
            }
            Gathered::of(profile, located, &samples)
        })
        .collect();
    // By place: side and error group.
    let of_place = located.places.iter().map(|at| {
        let side = side(at.origin)?;
        Some((side, gathered.get(side)?.group(at.site)?))
    });
    let groups: Vec<Option<(usize, u32)>> = of_place.collect();
    let mut in_total = Means::new(hits.total, wanted.len());
    let mut in_side: Vec<Option<Means>> = (gathered.iter())
        .map(|one| Means::new(one.size().0, one.size().1))
        .collect();
    // Samples outside all sides since the last hit.
    let mut others = 0;
    for hit in &hits.all {
        others += u64::from(hit.others);
        let Some((side, group)) = groups[hit.place as usize] else {
            others += 1;
            continue;
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
    }
    if let Some(means) = &mut in_total {
        means.pass(others + hits.others);
    }
    let errors = in_total.map(|means| means.errors()).unwrap_or_default();
    let sides = gathered.into_iter().zip(in_side).zip(0..);
    let sides = sides.map(|((one, means), side)| {
        let of_rows = means.map(|means| means.errors()).unwrap_or_default();
        one.annotation(hits.total, errors.get(side).copied(), &of_rows)
    });
    Some(sides.collect())
}
