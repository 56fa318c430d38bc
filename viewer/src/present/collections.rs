//! Collections in words.

use super::numbers::{brief, count, number, percent, ratio, some};
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
    let took = all
        .took
        .map_or_else(String::new, |ns| format!(" in {:.0} ms", ns / 1e6));
    let of = if all.narrowed {
        " of the whole process"
    } else {
        ""
    };
    lines.push(format!("{counted}{of}{took}"));
    if !all.pauses.is_empty() {
        lines.push(format!("pauses: {}", pauses_in_words(&all.pauses)));
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

/// Number of collections and of parts of concurrent cycles, by the VM's count.
pub fn counted(all: &Collections) -> Option<String> {
    let parts = all.parts.filter(|parts| *parts > 0.0);
    let parts = parts.or(all.parts.filter(|_| all.counted.is_none()));
    let words = [(all.counted, WHOLE), (parts, PARTS)];
    let words = words.into_iter().filter_map(|(figure, words)| {
        let figure = number(figure?);
        let word = words[usize::from(figure != "1")];
        Some(format!("{figure} {word}"))
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(" and "))
}

/// Number of observed collections and parts of concurrent cycles.
pub fn observed(all: &Collections) -> String {
    let [whole, parts] = all.seen;
    let whole = some(whole, WHOLE[0], WHOLE[1]);
    match parts {
        0 => format!("{whole} observed"),
        _ => format!("{whole} and {} observed", some(parts, PARTS[0], PARTS[1])),
    }
}

const WHOLE: [&str; 2] = ["collection", "collections"];
const PARTS: [&str; 2] = [
    "pause or phase of a concurrent cycle",
    "pauses or phases of concurrent cycles",
];

/// Median, p90, p99 and maximum; below 100 pauses, p99 is the maximum.
pub fn pauses_in_words(pauses: &[u64]) -> String {
    let at = |percent: usize| percentile(pauses, percent).map_or_else(String::new, brief);
    let Some(&longest) = pauses.last() else {
        return String::new();
    };
    let tail = match pauses.len() {
        ..100 => "p99 =".to_owned(),
        _ => format!("p99 {},", at(99)),
    };
    let (median, p90, longest) = (at(50), at(90), brief(longest));
    format!("median {median}, p90 {p90}, {tail} max {longest}")
}
