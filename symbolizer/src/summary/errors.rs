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
pub(super) fn errors(profile: &Profile, filter: &Filter, total: u64) -> Vec<f64> {
    let entry_of_site = |&site: &u32| {
        let site = profile.sites.get(site as usize);
        site.map(|site| site.entry)
    };
    let entry_of_place: Vec<Option<u32>> =
        profile.site_of_place.iter().map(entry_of_site).collect();
    let groups = places(profile, filter).map(|place| {
        let entry = entry_of_place.get(place as usize);
        entry.copied().flatten()
    });
    batch_errors(groups, total, profile.entries.len())
}

/// The places of the samples that a filter takes, in order.
pub(crate) fn places<'a>(
    profile: &'a Profile,
    filter: &'a Filter,
) -> impl Iterator<Item = u32> + 'a {
    let samples = &profile.trace.samples;
    let rows = (samples.times.iter().zip(&samples.threads)).zip(&samples.places);
    let takes_place = filter.takes_places(profile);
    rows.filter(|((time, thread), _)| filter.takes(**thread, **time))
        .map(|(_, &place)| place)
        .filter(move |place| takes_place(*place))
}

/// The 95 % half-width of the share of each of `count` groups in `total` samples, of
/// which `groups` gives the group, in order, or `None` for those of no group. Empty where
/// there are too few samples to say.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(crate) fn batch_errors(
    groups: impl Iterator<Item = Option<u32>>,
    total: u64,
    count: usize,
) -> Vec<f64> {
    let total = usize::try_from(total).unwrap_or(usize::MAX);
    let size = total / BATCHES;
    if size < MIN_SAMPLES_A_BATCH {
        return Vec::new();
    }
    let mut batches = vec![0u32; BATCHES * count];
    // The remainder behind the last whole batch is left out.
    for (index, group) in groups.enumerate().take(size * BATCHES) {
        let group = group.map(|group| group as usize).filter(|&g| g < count);
        if let Some(group) = group
            && let Some(slot) = batches.get_mut(index / size * count + group)
        {
            *slot += 1;
        }
    }
    (0..count)
        .map(|group| {
            let of_group = batches.iter().skip(group).step_by(count);
            let shares: Vec<f64> = of_group.map(|&n| f64::from(n) / size as f64).collect();
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
