//! The collector's samples beside the pauses that V8 itself tells, sample by sample.

use serde_json::Value;
use vmscope_symbolizer::Region;

use crate::common::programs::script;
use crate::common::say;
use crate::common::vmscope::can_sample;
use crate::measured::list;
use crate::node::{Recorded, ratio};
use crate::v8::nodes::{Node, nodes};

/// Samples of the main thread.
#[derive(Debug, Default)]
struct Asked {
    /// Within a pause.
    within: u64,
    /// Samples within a pause, in the collector or in kernel and library code that it calls.
    right: u64,
    outside: u64,
    /// Of these, in the collector.
    wrong: u64,
}

fn ask(recorded: &Recorded) -> Asked {
    let program = &recorded.said[0];
    let time = |pause: &Value, of: &str| pause[of].as_u64().expect("ns");
    let pauses = list(&program["collections"]).iter();
    let pauses = pauses.map(|pause| (time(pause, "begin_ns"), time(pause, "end_ns")));
    let pauses: Vec<(u64, u64)> = pauses.collect();
    let mut asked = Asked::default();
    let profile = &recorded.profile;
    let samples = &profile.trace.samples;
    let rows = samples
        .times
        .iter()
        .zip(&samples.threads)
        .zip(&samples.places);
    for ((time, thread), &place) in rows {
        let thread = &profile.trace.threads[*thread].thread;
        if Some(u64::from(thread.tid.0)) != program["pid"].as_u64() {
            continue;
        }
        let region = profile.entry_at(place).region;
        // Pauses end before their last and begin after their first instructions.
        let near = |slack: u64| {
            let mut pauses = pauses.iter();
            pauses.any(|(begin, end)| (begin.saturating_sub(slack)..=end + slack).contains(&time.0))
        };
        if near(0) {
            asked.within += 1;
            let is_right = matches!(region, Region::Gc | Region::Kernel | Region::Library);
            asked.right += u64::from(is_right);
        } else if !near(200_000) {
            asked.outside += 1;
            asked.wrong += u64::from(region == Region::Gc);
        }
    }
    asked
}

fn agrees(node: &Node) {
    // All of the collector's work is in pauses of the main thread.
    let flags = ["--single-threaded-gc", "--no-incremental-marking"];
    let program = script("garbage.js");
    let words = flags.iter().map(std::ffi::OsStr::new);
    let words = words.chain([program.as_os_str(), "--seconds".as_ref(), "3".as_ref()]);
    let recorded = Recorded::of(&[], &node.program, words);
    let asked = ask(&recorded);
    let shown = format!("collector of Node {}: {asked:?}", node.release);
    say(&shown);
    recorded.check(asked.within > 300 && asked.outside > 300, &shown);
    recorded.check(ratio(asked.right, asked.within) > 0.9, &shown);
    // Allocation sweeps pages between pauses.
    recorded.check(ratio(asked.wrong, asked.outside) < 0.1, &shown);
}

#[test]
fn samples_within_pauses_are_the_collectors() {
    if can_sample() {
        nodes().iter().for_each(agrees);
    }
}
