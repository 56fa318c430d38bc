//! How the pauses are distributed.

use super::rows::Collections;
use crate::report::words::{brief, count, ratio, some};
use crate::tui::theme::Role;
use crate::tui::widgets::pane::{Bit, Pane};
use crate::tui::widgets::text;
use ratatui::Frame;

/// A bucket: from, to before (ns), and how many pauses are in it.
pub type Bucket = (u64, u64, u64);

/// The pauses, which ascend, by length: in steps of 1, 2, 5, 10 …, or where that is more than
/// `most`, of tens; from the shortest to the longest without gaps.
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

/// The pause that so many of a hundred are not longer than (nearest rank).
pub fn percentile(pauses: &[u64], percent: usize) -> Option<u64> {
    let rank = (pauses.len() * percent).div_ceil(100);
    pauses.get(rank.checked_sub(1)?).copied()
}

/// Median, p90, p99 and the longest, in words. Of fewer than a hundred pauses p99 is the
/// longest.
pub fn figures(pauses: &[u64]) -> String {
    let told = |percent: usize| percentile(pauses, percent).map(brief);
    let (Some(median), Some(p90), Some(p99), Some(&longest)) =
        (told(50), told(90), told(99), pauses.last())
    else {
        return String::new();
    };
    let longest = brief(longest);
    let tail = if pauses.len() < 100 {
        format!("p99 = max {longest}")
    } else {
        format!("p99 {p99}  max {longest}")
    };
    format!("median {median}  p90 {p90}  {tail}")
}

/// How many were observed of how many.
pub fn remark(all: &Collections) -> String {
    let pauses = some(all.pauses.len() as u64, "pause", "pauses");
    let observed = count(all.observed);
    match all.counted {
        Some(counted) => format!("{pauses} in {observed} observed of {counted:.0} collections"),
        None => format!("{pauses} in {observed} observed collections, uncounted by the VM"),
    }
}

/// A bucket's end in words; the last one's may be nowhere.
pub fn edge(ns: u64) -> String {
    if ns == u64::MAX {
        return "...".to_owned();
    }
    brief(ns)
}

/// Draws it.
pub fn draw(all: &Collections, pane: &Pane<'_>, frame: &mut Frame<'_>) {
    pane.heading(frame, "Pauses", &remark(all));
    if all.pauses.is_empty() {
        let text = "no pause was observed from its begin to its end".to_owned();
        return pane.line(frame, 1, &[(Role::Dim, text)]);
    }
    pane.line(frame, 1, &[(Role::Strong, figures(&all.pauses))]);
    let room = pane.rows().saturating_sub(2);
    let buckets = buckets(&all.pauses, room);
    let most = buckets.iter().map(|bucket| bucket.2).max().unwrap_or(0);
    let bar = pane.columns().saturating_sub(30).min(60);
    for (index, &(from, to, pauses)) in buckets.iter().enumerate() {
        let name = format!("{} - {}", edge(from), edge(to));
        let share = ratio(pauses, most);
        let bits: [Bit; 3] = [
            (Role::Text, format!("{} ", text::right(&name, 19))),
            (Role::Heat(share), pane.theme.bar(share, bar)),
            (Role::Text, format!(" {}", count(pauses))),
        ];
        pane.line(frame, index + 2, &bits);
    }
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
