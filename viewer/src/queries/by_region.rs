//! Samples by region, for charts.

use vmscope_symbolizer::{Profile, Region};

/// Number of regions: groups per column.
pub const GROUPS: usize = Region::ALL.len();

/// Samples by region, in the order of [`Region::ALL`].
pub type ByRegion = [u64; GROUPS];

/// Adds a row's counts to `sum`.
pub fn add(sum: &mut ByRegion, counts: &[u64]) {
    for (slot, count) in sum.iter_mut().zip(counts) {
        *slot += count;
    }
}

/// Region with most samples; `None` without samples.
pub fn dominant(counts: &[u64]) -> Option<Region> {
    let counted = Region::ALL.into_iter().zip(counts);
    let most = counted.fold((None, 0), |most, (region, &count)| {
        // Ties: the first region wins.
        if count > most.1 {
            (Some(region), count)
        } else {
            most
        }
    });
    most.0
}

/// Stacked bar: region of each of `cells` cells.
#[expect(
    clippy::cast_precision_loss,
    reason = "cells of a screen, counts far below 2^52"
)]
pub fn stacked(counts: &[u64], cells: usize) -> Vec<Region> {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        return Vec::new();
    }
    let of_cell = |cell: usize| {
        let middle = (cell as f64 + 0.5) / cells as f64 * total as f64;
        let mut sum = 0.0;
        for (region, &count) in Region::ALL.into_iter().zip(counts) {
            sum += count as f64;
            if middle < sum {
                return region;
            }
        }
        Region::Unknown
    };
    (0..cells).map(of_cell).collect()
}

/// Busy share of a time span, 0 to 1: each sample stands for one period. Spans below four periods
/// yield 0 or 1.
#[expect(
    clippy::cast_precision_loss,
    reason = "nanoseconds of a column, counts far below 2^52"
)]
pub fn activity(samples: u64, period_ns: u64, column_ns: u64) -> f64 {
    if samples == 0 {
        return 0.0;
    }
    if column_ns < period_ns.saturating_mul(4) {
        return 1.0;
    }
    (samples as f64 * period_ns as f64 / column_ns as f64).min(1.0)
}

/// Sampling period in ns; 1 for an unknown period.
pub fn period_ns(profile: &Profile) -> u64 {
    let session = profile.trace.session.as_ref();
    session.map_or(1, |session| session.period.0.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_the_shares() {
        let mut counts = [0; Region::ALL.len()];
        counts[Region::Generated as usize] = 50;
        counts[Region::Gc as usize] = 50;
        let bar = stacked(&counts, 4);
        let (generated, gc) = (Region::Generated, Region::Gc);
        assert_eq!(bar, [generated, generated, gc, gc]);
        assert_eq!(dominant(&counts), Some(generated));
        assert_eq!(dominant(&[0; 9]), None);
        assert!(stacked(&[0; 9], 4).is_empty());
    }

    #[test]
    fn a_thread_that_always_runs_is_full() {
        assert!((activity(10, 100, 1000) - 1.0).abs() < 1e-9);
        assert!((activity(5, 100, 1000) - 0.5).abs() < 1e-9);
        assert!((activity(1, 100, 200) - 1.0).abs() < 1e-9);
        assert!(activity(0, 100, 0).abs() < 1e-9);
    }
}
