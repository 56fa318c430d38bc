//! Distribution of pauses by length.

/// Bucket: lower bound, upper bound (exclusive), both in ns; number of pauses.
pub type Bucket = (u64, u64, u64);

/// Buckets of ascending pauses without gaps, from shortest to longest: bounds 1, 2, 5, 10 …; powers
/// of ten for more than `most` buckets.
pub fn buckets(pauses: &[u64], most: usize) -> Vec<Bucket> {
    let (Some(&shortest), Some(&longest)) = (pauses.first(), pauses.last()) else {
        return Vec::new();
    };
    let of_steps = |steps: &[u64]| -> Vec<Bucket> {
        let tens = std::iter::successors(Some(1u64), |ten| ten.checked_mul(10));
        let mut edges: Vec<u64> = tens
            .flat_map(|ten| steps.iter().filter_map(move |step| ten.checked_mul(*step)))
            .collect();
        edges.insert(0, 0);
        edges.push(u64::MAX);
        let below = |edge: u64| pauses.partition_point(|pause| *pause < edge);
        let pairs = edges.iter().zip(edges.iter().skip(1));
        let used = pairs.filter(|(from, to)| **to > shortest && **from <= longest);
        used.map(|(&from, &to)| (from, to, (below(to) - below(from)) as u64))
            .collect()
    };
    let fine = of_steps(&[1, 2, 5]);
    if fine.len() <= most {
        fine
    } else {
        of_steps(&[1])
    }
}

/// Percentile of ascending pauses (nearest rank).
pub fn percentile(pauses: &[u64], percent: usize) -> Option<u64> {
    let rank = (pauses.len() * percent).div_ceil(100);
    pauses.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_no_gaps_and_lose_nothing() {
        let pauses = [900, 1_500, 2_000, 4_999, 5_000, 100_000];
        let all = buckets(&pauses, 20);
        assert_eq!(all.first(), Some(&(500, 1_000, 1)));
        assert_eq!(
            all.get(1..4),
            Some(&[(1_000, 2_000, 1), (2_000, 5_000, 2), (5_000, 10_000, 1)][..])
        );
        assert_eq!(all.last(), Some(&(100_000, 200_000, 1)));
        assert!(all.windows(2).all(|pair| pair[0].1 == pair[1].0));
        for most in [1, 20] {
            let sum: u64 = buckets(&pauses, most).iter().map(|bucket| bucket.2).sum();
            assert_eq!(sum, 6);
        }
        assert_eq!(buckets(&[0], 20), [(0, 1, 1)]);
        assert_eq!(buckets(&[u64::MAX - 1], 20).len(), 1);
        assert!(buckets(&[], 20).is_empty());
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let pauses: Vec<u64> = (1..=200).collect();
        assert_eq!(percentile(&pauses, 50), Some(100));
        assert_eq!(percentile(&pauses, 99), Some(198));
        assert_eq!(percentile(&[7], 99), Some(7));
        assert_eq!(percentile(&[], 50), None);
    }
}
