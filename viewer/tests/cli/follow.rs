//! Which threads and processes a recording follows, and who called whom.

use std::collections::BTreeMap;
use std::process::Command;

use crate::common::programs;
use crate::common::targets::Target;
use crate::common::vmscope::{Folder, command, profile, run, vmscope};
use crate::common::whole::{attach, attach_for, build, json, list, record, said};
use serde_json::Value;
use vmscope_symbolizer::{PlaceId, Profile};

/// The samples of each function, by name.
fn functions(document: &Value) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for entry in list(&document["entries"]) {
        let name = entry["name"].as_str().expect("a name").to_owned();
        *all.entry(name).or_insert(0) += entry["samples"].as_u64().expect("a number");
    }
    all
}

#[test]
fn threads_of_5_ms_are_all_seen() {
    let Some(program) = build(programs::SHORT_THREADS) else {
        return;
    };
    let folder = Folder::new();
    let run = record(&folder, &[], &program, &["--count", "40"]).code(0);
    let own = said(&run.stdout).remove(0);
    let document = json(&folder);
    let period = document["session"]["period_ns"].as_f64().expect("a number");
    let (mut expected_all, mut seen_all) = (0.0, 0.0);
    for thread in list(&own["threads"]) {
        let mut rows = list(&document["threads"]).iter();
        let row = rows.find(|row| row["name"] == thread["name"]);
        let row = row.unwrap_or_else(|| panic!("{thread} is not in {document}"));
        assert_eq!(row["tid"], thread["tid"]);
        let samples = row["samples"].as_f64().expect("a number");
        let expected = thread["cpu_seconds"].as_f64().expect("a number") * 1e9 / period;
        // Maximum by CPU time and thread end: nothing is sampled twice. Where its ticks came late
        // there are fewer, but it ran for seven periods.
        assert!((1.0..=expected + 2.0).contains(&samples), "{row} {thread}");
        expected_all += expected;
        seen_all += samples;
    }
    // Each thread loses half a period per CPU used, of seven periods.
    let share = seen_all / expected_all;
    assert!((0.7..1.02).contains(&share), "{share}");
    let lost = document["samples"]["lost"].as_u64();
    assert_eq!(lost, Some(0));
}

#[test]
fn a_storm_of_threads_is_attached_to() {
    let Some(program) = build(programs::THREAD_STORM) else {
        return;
    };
    let folder = Folder::new();
    let mut command = Command::new(&program);
    command.args(["--seconds", "4"]);
    let mut target = Target::ready(command);
    // On a busy machine, the storm gets little CPU time; reports name reasons from 200 expected samples on.
    let run = attach_for("3", &folder, &target)
        .code(0)
        .prints("threads ended before their first sample");
    let document = json(&folder);
    let samples = &document["samples"];
    let total = samples["total"].as_f64().expect("a number");
    let promised = samples["promised"].as_f64().expect("a number");
    // A thread of 20 µs ends before its first tick; samples never exceed CPU time.
    let bounded = total > 0.0 && total < promised * 1.1 + 20.0;
    run.check(bounded, &format!("{samples}"));
    let own = said(&target.wait());
    assert!(own[0]["created"].as_u64() > Some(10), "it went on: {own:?}");
}

#[test]
fn children_and_execs_are_followed_from_a_command() {
    let Some(program) = build(programs::FORK_EXEC) else {
        return;
    };
    let folder = Folder::new();
    let run = record(&folder, &[], &program, &["--ms", "40"]).code(0);
    let document = json(&folder);
    let functions = functions(&document);
    let own = said(&run.stdout);
    assert_eq!(own.len(), 9, "{own:?}");
    // 40 ms are 56 samples; of `again` and `last` a part was spent before the exec.
    let period = document["session"]["period_ns"].as_f64().expect("a number");
    for (name, processes) in [
        ("first_spin", 1.0),
        ("child_spin", 3.0),
        ("again_spin", 1.0),
        ("nest_spin", 3.0),
        ("last_spin", 1.0),
    ] {
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let samples = *functions.get(name).unwrap_or(&0) as f64;
        let most = processes * 40e6 / period;
        // `last` has used 40 ms as `first` already, and spins not at all.
        if name != "last_spin" {
            assert!(
                samples > 0.3 * most,
                "{name}: {samples} of {most}: {functions:?}"
            );
        }
        assert!(samples < 1.1 * most + 3.0, "{name}: {samples} of {most}");
    }
    // Samples of a process lie in its own functions.
    for process in &own {
        let mut threads = list(&document["threads"]).iter();
        let thread = threads.find(|thread| thread["tid"] == process["pid"]);
        let samples = thread.map_or(0, |thread| thread["samples"].as_u64().expect("a number"));
        assert!(samples > 0, "{process} has no samples: {document}");
    }
    let (profile, summary) = profile(&folder.file("out.vmscope"));
    let trace = &profile.trace;
    let of_callers = trace.chains.nodes().iter().map(|node| node.label);
    let places = trace.samples.places.iter().copied().chain(of_callers);
    let unnamed = places.filter(|place| {
        let site = profile.site_at(*place);
        !profile.is_named(site.entry)
    });
    let unnamed: Vec<_> = unnamed.map(|place| &trace.places[place]).collect();
    assert!(
        unnamed.is_empty(),
        "{:?} {unnamed:?} {:?}",
        summary.quality,
        profile.trace.modules
    );
}

#[test]
fn children_are_not_followed_from_an_attached_process() {
    let Some(program) = build(programs::FORK_EXEC) else {
        return;
    };
    let folder = Folder::new();
    let mut command = Command::new("sh");
    // The shell lives on until its child is through, and spins itself.
    command.args([
        "-c",
        "echo ready; while :; do \"$1\" --ms 5 >/dev/null; done",
        "sh",
    ]);
    let target = Target::ready({
        command.arg(&program);
        command
    });
    attach(&folder, &target).code(0);
    let document = json(&folder);
    let functions = functions(&document);
    assert!(
        functions.keys().all(|name| !name.ends_with("_spin")),
        "{functions:?}"
    );
    let pids = list(&document["threads"])
        .iter()
        .map(|thread| &thread["pid"]);
    assert!(
        pids.into_iter().all(|pid| *pid == target.pid()),
        "{document}"
    );
    // Forked children may briefly outlive the program.
    drop(target);
}

/// The names in a sample's chain, from the direct caller outwards.
fn callers(profile: &Profile, sample: usize) -> Vec<&str> {
    let Some(&node) = profile.trace.samples.chains.get(sample) else {
        return Vec::new();
    };
    let places = profile.trace.chains.path(node);
    places.map(|place| name_of(profile, place)).collect()
}

fn name_of(profile: &Profile, place: PlaceId) -> &str {
    &profile.entry_at(place).name
}

#[test]
fn caller_chains_by_unwind_tables() {
    // As most programs are built: without frame pointers.
    let built = programs::Program {
        flags: &["-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"],
        ..programs::RECURSION
    };
    let Some(program) = build(built) else {
        return;
    };
    let folder = Folder::new();
    let options = ["--call-graph=auto"];
    record(&folder, &options, &program, &["--seconds", "0.6"]).code(0);
    let (profile, _) = profile(&folder.file("out.vmscope"));
    let samples = &profile.trace.samples;
    let (mut chain, mut whole) = (0u64, 0u64);
    for (index, &place) in samples.places.iter().enumerate() {
        if name_of(&profile, place) == "chain_c" {
            let callers = callers(&profile, index);
            chain += 1;
            let is_whole = callers.starts_with(&["chain_b", "chain_a", "main"])
                && callers.ends_with(&["_start"]);
            whole += u64::from(is_whole);
        }
    }
    assert!(chain > 100, "{chain}");
    assert!(whole * 100 >= chain * 99, "{whole} of {chain} are whole");

    let file = folder.file("out.vmscope");
    let report = |arguments: &[&str]| {
        let mut command = command(["report", "--width=80"]);
        command.arg(&file).args(arguments);
        run(command)
    };
    report(&["--callers", "chain_c"]).code(0).prints("chain_b");
    report(&["--callees", "chain_a"]).code(0).prints("chain_b");
    report(&["--tree"]).code(0).prints("Call tree");
    report(&["--tree", "--full"])
        .code(2)
        .says("cannot be used with");
    report(&["--callers", "chain_"])
        .code(2)
        .says("`chain_` matches 3 functions; be more specific");
    report(&["--callers", "nobody at all"])
        .code(2)
        .says("the hottest are");
}

#[test]
fn caller_chains_by_frame_pointer() {
    let Some(program) = build(programs::RECURSION) else {
        return;
    };
    let folder = Folder::new();
    let options = ["--call-graph=fp"];
    record(&folder, &options, &program, &["--seconds", "0.6"])
        .code(0)
        .prints("beyond the maximum depth of callers")
        .prints("callers come from frame pointers");
    let (profile, _) = profile(&folder.file("out.vmscope"));
    let samples = &profile.trace.samples;
    let (mut chain, mut deep, mut whole, mut diving) = (0u64, 0u64, 0u64, 0u64);
    for (index, &place) in samples.places.iter().enumerate() {
        let callers = callers(&profile, index);
        // Also in the kernel, and in `dive` itself.
        let dives = callers.iter().filter(|name| **name == "dive").count();
        diving += u64::from(dives >= 90);
        match name_of(&profile, place) {
            "chain_c" => {
                chain += 1;
                whole += u64::from(callers.starts_with(&["chain_b", "chain_a", "main"]));
            }
            "bottom" => {
                deep += 1;
                let dives = callers.iter().take_while(|name| **name == "dive").count();
                // The chain's first frame is the sample's own.
                assert!(dives >= 120 || dives == 0, "{callers:?}");
            }
            _ => {}
        }
    }
    assert!(chain > 100 && deep > 100, "{chain} {deep}");
    // The first and last instructions of a function run without its frame.
    assert!(
        whole * 100 >= chain * 98,
        "{whole} of {chain} have their whole chain"
    );
    let truncated = samples.chain_ends.depth;
    assert!(
        truncated * 100 >= deep * 98 && truncated <= diving,
        "{truncated} of {deep}, {diving} deep in the recursion"
    );
    // Chains can be left out.
    record(
        &folder,
        &["--quiet", "--call-graph=off"],
        &program,
        &["--seconds", "0.05"],
    )
    .code(0);
    let bare = vmscope(["report", &folder.file("out.vmscope").to_string_lossy()]).code(0);
    let silent = !bare.stdout.contains("frame pointers");
    bare.check(silent, "no chains were asked for");
    vmscope([
        "report",
        &folder.file("out.vmscope").to_string_lossy(),
        "--tree",
    ])
    .code(2)
    .says("this recording has no callers");
}
