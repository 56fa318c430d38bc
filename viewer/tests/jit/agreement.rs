//! Shares of JavaScript functions and lines beside what a program that measures itself tells
//! (programs/measure.js).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::say;
use crate::measured::{Share, Worst, batch_means, list, number};
use crate::node::Recorded;

/// Functions that are one range, and their line; 0 for any.
pub type Range = (Vec<String>, u64);

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Functions,
    Lines,
}

/// Time share of each range over all recordings, by the program's clock.
pub fn truth(program: &Value, detail: Detail) -> BTreeMap<Range, f64> {
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
pub fn shares(recorded: &Recorded, program: &Value, detail: Detail) -> BTreeMap<Range, Share> {
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
pub fn missing(recorded: &Recorded) -> f64 {
    let samples = &recorded.document["samples"];
    let (delivered, promised) = (number(&samples["total"]), number(&samples["promised"]));
    ((promised - delivered) / promised).max(0.0)
}

pub fn agrees(what: &str, recorded: &Recorded, program: &Value, details: &[Detail]) {
    let missing = missing(recorded);
    let mut worst = Worst::default();
    for &detail in details {
        let truth = truth(program, detail);
        for (range, share) in shares(recorded, program, detail) {
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
