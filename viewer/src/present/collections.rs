//! Collections in words.

use super::numbers::{brief, count, number, percent, ratio};
use crate::queries::collections::Collections;
use crate::queries::pauses::percentile;

/// Cost of the collector, one fact per line.
pub fn collector_lines(all: &Collections) -> Vec<String> {
    // Without symbols, collector samples go unrecognized.
    let share = match all.in_collector {
        0 => "no samples in the collector".to_owned(),
        samples => format!("{} of samples", percent(ratio(samples, all.total))),
    };
    let mut lines = vec![share];
    if !all.tells {
        lines.push("this VM does not report individual collections".to_owned());
        return lines;
    }
    let counted = counted(all).unwrap_or_else(|| observed(all));
    let took = all.took.map_or_else(String::new, |ns| {
        format!(", stopped for {}", pause_time(ns))
    });
    let of = if all.narrowed {
        " of the whole process"
    } else {
        ""
    };
    lines.push(format!("{counted}{of}{took}"));
    if !all.pauses.is_empty() {
        lines.push(pauses_in_words(all));
    }
    let causes = all.causes.iter().take(4);
    let causes: Vec<String> = causes
        .map(|(cause, n)| format!("{cause} {}", count(*n)))
        .collect();
    if !causes.is_empty() {
        lines.push(format!("causes: {}", causes.join(", ")));
    }
    lines
}

/// Numbers of collections, cycles and their pauses, by the VM's count.
pub fn counted(all: &Collections) -> Option<String> {
    // Several kinds of collector: those with collections.
    let counted = match all.are_counted() {
        true => all.counted.map(|count| count.filter(|count| *count > 0.0)),
        false => all.counted,
    };
    in_words(counted)
}

/// Numbers of observed collections, cycles and pauses.
pub fn observed(all: &Collections) -> String {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    let seen = all.seen.map(|seen| Some(seen as f64).filter(|_| seen > 0));
    let words = in_words(seen).unwrap_or_else(|| "0 collections".to_owned());
    format!("{words} observed")
}

/// Numbers by [`CollectionScope::ALL`](vmscope_records::CollectionScope::ALL).
fn in_words([whole, cycles, pauses]: [Option<f64>; 3]) -> Option<String> {
    let with = |number: f64, [one, many]: [&str; 2]| {
        let word = if number == 1.0 { one } else { many };
        format!("{} {word}", self::number(number))
    };
    let whole = whole.map(|count| with(count, ["collection", "collections"]));
    let of_cycles = ["pause of a concurrent cycle", "pauses of concurrent cycles"];
    let cycles = match (cycles, pauses) {
        (None, pauses) => pauses.map(|count| with(count, of_cycles)),
        (Some(cycles), pauses) => {
            let cycles = with(cycles, ["concurrent cycle", "concurrent cycles"]);
            let pauses = pauses.map(|count| format!(" with {}", with(count, ["pause", "pauses"])));
            Some(cycles + &pauses.unwrap_or_default())
        }
    };
    [whole, cycles]
        .into_iter()
        .flatten()
        .reduce(|a, b| format!("{a} and {b}"))
}

/// Duration of pauses.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; greater ones saturate"
)]
pub fn pause_time(ns: f64) -> String {
    brief(ns.max(0.0) as u64)
}

/// Median, p90, p99 and maximum; below 100 pauses, p99 is the maximum. If a pause of unknown duration
/// may have been longer, the text says so.
pub fn pauses_in_words(all: &Collections) -> String {
    let pauses = &all.pauses;
    let at = |percent: usize| percentile(pauses, percent).map_or_else(String::new, brief);
    let Some(&longest) = pauses.last() else {
        return String::new();
    };
    let tail = match pauses.len() {
        ..100 => "p99 =".to_owned(),
        _ => format!("p99 {},", at(99)),
    };
    let (what, more) = match all.longest_at_most {
        Some(most) if most <= longest => ("pauses", String::new()),
        Some(most) => (
            "observed pauses",
            format!("; none exceeded {}", brief(most)),
        ),
        None => ("observed pauses", String::new()),
    };
    let (median, p90, longest) = (at(50), at(90), brief(longest));
    format!("{what}: median {median}, p90 {p90}, {tail} max {longest}{more}")
}
