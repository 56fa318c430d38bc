//! How sure a share is: batch means (TRUTH.md §4).

use super::Filter;
use crate::profile::Profile;

/// Batches for the error of a share (TRUTH.md §4 wants at least 30).
const BATCHES: usize = 32;

/// With fewer samples a batch than this, no error is given.
const MIN_SAMPLES_A_BATCH: usize = 10;

/// Two-sided 95 % quantile of Student's t with 31 degrees of freedom.
const T_95: f64 = 2.04;

/// The error of each entry's share by batch means.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(super) fn errors(profile: &Profile, filter: &Filter, total: u64) -> Vec<f64> {
    let total = usize::try_from(total).unwrap_or(usize::MAX);
    let size = total / BATCHES;
    let count = profile.entries.len();
    if size < MIN_SAMPLES_A_BATCH {
        return Vec::new();
    }
    let entry_of_place: Vec<usize> = profile
        .site_of_place
        .iter()
        .map(|&site| {
            profile
                .sites
                .get(site as usize)
                .map_or(0, |site| site.entry as usize)
        })
        .collect();
    let mut batches = vec![0u32; BATCHES * count];
    let samples = &profile.trace.samples;
    let rows = samples
        .times
        .iter()
        .zip(&samples.threads)
        .zip(&samples.places);
    let taken = rows
        .filter(|((time, thread), _)| filter.takes_thread(**thread) && filter.takes_time(**time));
    // The remainder behind the last whole batch is left out.
    for (index, (_, &place)) in taken.enumerate().take(size * BATCHES) {
        let entry = entry_of_place.get(place as usize).copied().unwrap_or(0);
        if let Some(slot) = batches.get_mut(index / size * count + entry) {
            *slot += 1;
        }
    }
    (0..count)
        .map(|entry| {
            let shares: Vec<f64> = (0..BATCHES)
                .map(|batch| f64::from(batches[batch * count + entry]) / size as f64)
                .collect();
            let mean = shares.iter().sum::<f64>() / BATCHES as f64;
            let variance = shares
                .iter()
                .map(|share| (share - mean).powi(2))
                .sum::<f64>()
                / (BATCHES - 1) as f64;
            T_95 * (variance / BATCHES as f64).sqrt()
        })
        .collect()
}
