//! Shares of JavaScript functions and lines beside what a program that measures itself tells
//! (programs/measure.js).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::say;
use crate::measured::{Share, T, Worst, batch_means, list, number};
use crate::node::Recorded;

/// Functions that are one range, and their line; 0 for any.
type Range = (Vec<String>, u64);

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Functions,
    Lines,
}

/// Time share of each range over all recordings, by the program's clock.
fn truth(program: &Value, detail: Detail) -> BTreeMap<Range, f64> {
    let mut seconds = BTreeMap::new();
    for range in list(&program["ranges"]) {
        let functions = range["functions"].as_array().cloned();
        let functions = functions.unwrap_or_else(|| vec![range["function"].clone()]);
        let functions = functions
            .iter()
            .map(|name| name.as_str().expect("a name").to_owned());
        let line = range["line"].as_u64().expect("a line");
        let line = if detail == Detail::Lines { line } else { 0 };
        *seconds.entry((functions.collect(), line)).or_insert(0.0) += number(&range["seconds"]);
    }
    let all: f64 = seconds.values().sum();
    let parts = seconds.into_iter();
    parts.map(|(range, value)| (range, value / all)).collect()
}

/// Sample share of each range over all recordings, within measured time; all tiers of a function
/// together.
fn shares(recorded: &Recorded, program: &Value, detail: Detail) -> BTreeMap<Range, Share> {
    let known: Vec<Range> = truth(program, detail).into_keys().collect();
    let profile = &recorded.profile;
    let range_of_place = profile.site_of_place.map(|_, &site| {
        let site = &profile.sites[site];
        let name = &profile.entries[site.entry].name;
        let line = u64::from(site.frame.line.unwrap_or(0));
        let fits = |(functions, at): &Range| {
            functions.contains(name) && (detail == Detail::Functions || *at == line)
        };
        known.iter().position(fits)
    });
    let (from, to) = (&program["measured_from_ns"], &program["measured_to_ns"]);
    let (from, to) = (from.as_u64().expect("ns"), to.as_u64().expect("ns"));
    let samples = &profile.trace.samples;
    let rows = samples.times.iter().zip(&samples.places);
    let measured = rows.filter(|(time, _)| (from..=to).contains(&time.0));
    let hits: Vec<usize> = measured
        .filter_map(|(_, &place)| range_of_place[place])
        .collect();
    recorded.check(
        hits.len() > 1500,
        &format!("{} samples in ranges", hits.len()),
    );
    let ranges = known.into_iter().enumerate();
    let share = |index| batch_means(&hits, |hit| hit == index);
    ranges.map(|(index, range)| (range, share(index))).collect()
}

/// Undelivered share of promised samples.
fn missing(recorded: &Recorded) -> f64 {
    let samples = &recorded.document["samples"];
    let (delivered, promised) = (number(&samples["total"]), number(&samples["promised"]));
    ((promised - delivered) / promised).max(0.0)
}

pub fn agrees(what: &str, recorded: &Recorded, program: &Value, details: &[Detail]) {
    let missing = missing(recorded);
    let mut worst = Worst::default();
    for &detail in details {
        let truth = truth(program, detail);
        let shares = shares(recorded, program, detail);
        let all = shares.iter().map(|(range, Share { share, .. })| {
            let ((functions, line), truth) = (range, truth[range]);
            format!("{functions:?} line {line}: {share:.4} (true {truth:.4})")
        });
        say(&format!("{what}: {}", all.collect::<Vec<_>>().join(", ")));
        for (range, share) in shares {
            let name = format!("{:?} line {}", range.0, range.1);
            worst.compare(&name, share, truth[&range], missing);
        }
    }
    say(&format!(
        "{what}: {} comparisons: greatest error {:.2} points, {:.1} standard errors; widest \
         bound {:.2} points",
        worst.comparisons,
        100.0 * worst.difference,
        worst.in_errors,
        100.0 * worst.bound,
    ));
}

/// docs/truth.md §6, as in the suite `truth`: the second program gives `share_b` twice the
/// loops. Its share grows accordingly; the others' ratio stays.
pub fn grows_by_that(before: &Recorded, after: &Recorded, detail: Detail) {
    let old = shares(before, &before.said[0], detail);
    let new = shares(after, &after.said[0], detail);
    let is_slowed = |functions: &[String]| functions == ["share_b"];
    let slowed = old.iter().find(|((functions, _), _)| is_slowed(functions));
    let (range, b) = slowed.expect("it is a range");
    let lost = missing(before) + missing(after);
    let mut worst = Worst::default();
    for (range, share) in &old {
        let before = (*share, *b, is_slowed(&range.0));
        new[range].compare_slowed(&format!("{range:?}"), before, lost, &mut worst);
    }
    say(&format!(
        "causality: share_b {:.2} % -> {:.2} %; greatest error {:.2} points, {:.1} standard \
         errors",
        100.0 * b.share,
        100.0 * new[range].share,
        100.0 * worst.difference,
        worst.in_errors,
    ));
    assert!(new[range].share - b.share > T * b.error);
}
