//! JavaScript with known shares (docs/truth.md §3, §4, §6): functions and lines.

use std::collections::BTreeMap;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::say;
use crate::common::vmscope::{Folder, attached_by};
use crate::measured::{JITTER, Range, Share, T, Worst, batch_means, list, number, range_of};
use crate::node::{Recorded, ready, tool};

const LOOPS: &str = "2000,4000,6000,8000,3000,5000";

/// What V8 wrote down of a function's code: lines of optimised code alone. The debug
/// information that it writes for its baseline code counts in bytecodes, not in bytes of
/// code (seen in Node 20), and is of no use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Functions,
    Lines,
}

/// Time share of each range over all recordings, by the program's clock.
fn truth(program: &Value, detail: Detail) -> BTreeMap<Range, f64> {
    let mut seconds = BTreeMap::new();
    for range in list(&program["ranges"]) {
        let (function, line) = range_of(range);
        let line = if detail == Detail::Lines { line } else { 0 };
        *seconds.entry((function, line)).or_insert(0.0) += number(&range["seconds"]);
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
        let fits = |(function, at): &Range| {
            function == name && (detail == Detail::Functions || *at == line)
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

fn agrees(what: &str, recorded: &Recorded, program: &Value, details: &[Detail]) {
    let missing = missing(recorded);
    let mut worst = Worst::default();
    for &detail in details {
        let truth = truth(program, detail);
        for (range, share) in shares(recorded, program, detail) {
            let name = format!("{} line {}", range.0, range.1);
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

fn known_shares(flags: &[&str], arguments: &[&str]) -> Option<Recorded> {
    let arguments = [&["--jitter", JITTER, "--cycles", "1200"], arguments].concat();
    Recorded::node(flags, "known_shares.js", &arguments)
}

#[test]
fn optimised_functions_and_lines() {
    let Some(recorded) = known_shares(&[], &[]) else {
        return;
    };
    let program = &recorded.said[0];
    agrees(
        "optimised",
        &recorded,
        program,
        &[Detail::Functions, Detail::Lines],
    );
}

/// `--no-opt`: V8's baseline compiler makes the code, and tells no lines that are true.
#[test]
fn functions_that_are_not_optimised() {
    let Some(recorded) = known_shares(&["--no-opt"], &["--baseline"]) else {
        return;
    };
    let program = &recorded.said[0];
    agrees("--no-opt", &recorded, program, &[Detail::Functions]);
    // So nobody may say that he knows the line.
    let profile = &recorded.profile;
    for site in &profile.sites {
        let entry = &profile.entries[site.entry];
        if entry.name.starts_with("share_") {
            assert_eq!(site.frame.line, None, "{entry:?} {site:?}");
        }
    }
}

#[test]
fn a_running_process() {
    if tool("node").is_none() {
        return;
    }
    let (folder, place) = (Folder::new(), Folder::new());
    let arguments = ["--forever", "--jitter", JITTER];
    let mut target = ready(&["--perf-prof"], "known_shares.js", &arguments, &place);
    let working = attached_by(
        &["--adapter", "jitdump"],
        target.pid(),
        &folder.file("out.vmscope"),
        6000,
    );
    target.signal(Signal::SIGTERM);
    let program: Value = serde_json::from_str(&target.wait()).expect("its report");
    let run = working.end().code(0);
    let recorded = Recorded::read(&folder, place, run);
    agrees(
        "attach",
        &recorded,
        &program,
        &[Detail::Functions, Detail::Lines],
    );
}

/// docs/truth.md §6, as in the suite `truth`: `share_b` is made to take twice as long by its
/// loop count alone.
#[test]
fn a_range_slowed_down_grows_by_that_and_no_other_does() {
    let slower = LOOPS.replacen("4000", "8000", 1);
    let before = known_shares(&[], &["--loops", LOOPS]);
    let (Some(before), Some(after)) = (before, known_shares(&[], &["--loops", &slower])) else {
        return;
    };
    let old = shares(&before, &before.said[0], Detail::Lines);
    let new = shares(&after, &after.said[0], Detail::Lines);
    let slowed = old.iter().find(|((function, _), _)| function == "share_b");
    let (range, b) = slowed.expect("it is a range");
    let lost = missing(&before) + missing(&after);
    let mut worst = Worst::default();
    for (range, share) in &old {
        let before = (*share, *b, range.0 == "share_b");
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
