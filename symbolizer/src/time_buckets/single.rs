//! Single samples: they distinguish places, which time buckets do not.

use super::{Selection, Stop};
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
    mut visit: impl FnMut(u32, usize),
) -> Option<()> {
    let samples = &profile.trace.samples;
    let count = samples.places.len();
    let spots = selection.spots.as_deref().map(|spots| {
        let of_place = profile.time_buckets.spot_of_place.iter();
        let taken = of_place.map(|&spot| spots.get(spot as usize) == Some(&true));
        taken.collect::<Vec<bool>>()
    });
    let Range { start, end } = profile.time_buckets.kept(&selection.range);
    for from in (start..end).step_by(BATCH) {
        stop.look(from, count)?;
        let batch = from..(from + BATCH).min(end);
        let places = samples.places.get(batch.clone()).unwrap_or_default();
        let threads = samples.threads.get(batch).unwrap_or_default();
        let places = places.iter().zip(from..);
        if selection.threads.is_none() && spots.is_none() {
            places.for_each(|(&place, index)| visit(place, index));
            continue;
        }
        for ((&place, index), &thread) in places.zip(threads) {
            let is_at = |spots: &Vec<bool>| spots.get(place as usize) == Some(&true);
            if selection.takes_thread(thread) && spots.as_ref().is_none_or(is_at) {
                visit(place, index);
            }
        }
    }
    Some(())
}

/// Counts the kept samples of a filter by place; `None` if `stop` came first.
pub(crate) fn by_place(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Vec<u32>> {
    let selection = Selection::new(profile, filter);
    let mut counts = vec![0u32; profile.trace.places.len()];
    each_place(profile, &selection.everywhere(), stop, |place, _| {
        if let Some(count) = counts.get_mut(place as usize) {
            *count = count.saturating_add(1);
        }
    })?;
    if selection.spots.is_some() {
        for (count, &spot) in counts.iter_mut().zip(&profile.time_buckets.spot_of_place) {
            *count = if selection.takes_spot(spot) {
                *count
            } else {
                0
            };
        }
    }
    Some(counts)
}
