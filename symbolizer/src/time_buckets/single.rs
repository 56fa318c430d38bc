//! Single samples: they distinguish places, which time buckets do not.

use super::{Selection, Stop};
use crate::ids::{IndexVec, PlaceId};
use crate::profile::Profile;
use crate::summary::Filter;
use std::ops::Range;

/// The number of samples between two checks of [`Stop`].
const BATCH: usize = 1 << 16;

/// Hands the place and index of each selected kept sample to `visit`, in time order. `None` if
/// `stop` came first.
pub(crate) fn each_place(
    profile: &Profile,
    selection: &Selection,
    stop: &Stop,
    mut visit: impl FnMut(PlaceId, usize),
) -> Option<()> {
    let samples = &profile.trace.samples;
    let count = samples.places.len();
    let spots = selection.spots.as_ref();
    let is_taken = spots.map(|spots| {
        profile
            .time_buckets
            .spot_of_place
            .map(|_, &spot| spots[spot])
    });
    let Range { start, end } = profile.time_buckets.kept(&selection.range);
    for from in (start..end).step_by(BATCH) {
        stop.look(from, count)?;
        let batch = from..(from + BATCH).min(end);
        let places = samples.places.get(batch.clone()).unwrap_or_default();
        let threads = samples.threads.get(batch).unwrap_or_default();
        let places = places.iter().zip(from..);
        if selection.threads.is_none() && is_taken.is_none() {
            places.for_each(|(&place, index)| visit(place, index));
            continue;
        }
        for ((&place, index), &thread) in places.zip(threads) {
            if selection.takes_thread(thread) && is_taken.as_ref().is_none_or(|all| all[place]) {
                visit(place, index);
            }
        }
    }
    Some(())
}

/// Counts the kept samples of a filter by place; `None` if `stop` came first.
pub(crate) fn by_place(
    profile: &Profile,
    filter: &Filter,
    stop: &Stop,
) -> Option<IndexVec<PlaceId, u32>> {
    let selection = Selection::new(profile, filter);
    let mut counts = profile.trace.places.with_each(0u32);
    each_place(profile, &selection.everywhere(), stop, |place, _| {
        counts[place] = counts[place].saturating_add(1);
    })?;
    if selection.spots.is_some() {
        for (count, &spot) in counts.iter_mut().zip(&profile.time_buckets.spot_of_place) {
            *count *= u32::from(selection.takes_spot(spot));
        }
    }
    Some(counts)
}
