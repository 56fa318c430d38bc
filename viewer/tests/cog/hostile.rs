//! Processes that damage their code zone, objects and variables while vmscope reads them.

use std::path::Path;

use crate::asked::{await_right, place};
use crate::common::vmscope::{
    Folder, attached, await_samples, await_trace, command, report, run, trace_of,
};
use crate::replica::{Image, tell};

/// Bytes of an entry's header, and of a compiled method's first words.
const HEADER: u64 = 40;
const WORDS: u64 = 64;

/// Offset of the method's address in an entry.
const METHOD: u64 = 16;

/// Limits that a recording tells.
fn limits(folder: &Folder, name: &str) -> Vec<String> {
    let document = report(&folder.file(name), &["--json"]).code(0).json();
    let limits = document["session"]["limits"].as_array().expect("limits");
    let text = |limit: &serde_json::Value| limit["text"].as_str().expect("a text").to_owned();
    limits.iter().map(text).collect()
}

/// Waits until a growing recording has a limit with this text; without a text, for more samples.
fn await_limit(file: &Path, wanted: Option<&str>) {
    let Some(wanted) = wanted else {
        let before = trace_of(file).map_or(0, |trace| trace.samples.times.len());
        return await_samples(file, before + 1500);
    };
    await_trace(file, &format!("a limit says `{wanted}`"), |trace| {
        let mut limits = trace.limits.iter();
        limits
            .any(|limit| limit.text.contains(wanted))
            .then_some(())
    });
}

/// A text of every limit that tells errors of the adapter.
const ERROR: &str = "cog adapter: the VM's";

/// Attaches to a process before and during damage to ranges of its memory. Both recordings are whole. A limit of each
/// contains its `wanted` text; a recording without such a text has no limit of the adapter.
fn damage(what: &str, ranges: impl Fn(&Image) -> Vec<(u64, u64)>, wanted: [Option<&str>; 2]) {
    let Some(mut image) = Image::of("idle") else {
        return;
    };
    let fib = image.entry("Method", "Bench>>fib:");
    let spot = image.framed(fib, false, 200);
    let Some(mut target) = image.start() else {
        return;
    };
    tell(&mut target, &spot.run("fib", 500_000));
    let folder = image.folder();
    let (file, again) = (folder.file("before.vmscope"), folder.file("during.vmscope"));
    let working = attached(target.pid(), &file, 100);
    let places = [place("fib", "Bench>>fib:", Some((35, 41)))];
    await_right(&file, &folder.file("log"), &places, "fib", 300);
    let ranges = ranges(&image);
    assert!(!ranges.is_empty());
    let commands = ranges.iter();
    let commands = commands.map(|(at, length)| format!("damage {at:x} {length:x}\n"));
    tell(&mut target, &commands.collect::<String>());
    await_limit(&file, wanted[0]);
    let during = attached(target.pid(), &again, 100);
    await_limit(&again, wanted[1]);
    // Each waits ten seconds for the end of a compaction that damaged counters feign.
    std::thread::scope(|scope| {
        for options in [&[][..], &["--pairs"], &["--detailed", "--json"]] {
            let mut command = command(["constituents"]);
            command.args(options).arg(target.pid().to_string());
            scope.spawn(|| {
                let run = run(command);
                let has_ended = matches!(run.status.code(), Some(0 | 1));
                run.check(has_ended, "an answer, or an error");
            });
        }
    });
    drop(target);
    working.end().code(0);
    during.end().code(0);
    for (name, wanted) in ["before.vmscope", "during.vmscope"].iter().zip(wanted) {
        let limits = limits(folder, name);
        let has = |text: &str| limits.iter().any(|limit| limit.contains(text));
        let is_right = wanted.map_or_else(|| !has(ERROR), has);
        assert!(is_right, "{what}, {name}: {limits:#?}");
    }
}

#[test]
fn damaged_headers_of_methods() {
    let headers = |image: &Image| image.entries().map(|(at, ..)| (at, HEADER)).collect();
    damage(
        "headers",
        headers,
        [Some(ERROR), Some("the rest of the code zone is unreadable")],
    );
}

#[test]
fn damaged_methods_in_the_heap() {
    let methods = |image: &Image| {
        let entries = image.entries().filter(|(_, kind, _)| *kind == "Method");
        let methods = entries.map(|(at, ..)| (image.number(at + METHOD), WORDS));
        methods.collect()
    };
    let unreadable = "the names of some methods and selectors are unreadable";
    damage("methods", methods, [None, Some(unreadable)]);
}

#[test]
fn damaged_limits_of_the_zone() {
    let names = ["codeBase", "methodZoneBase", "mzFreeStart", "limitAddress"];
    let variables = |image: &Image| names.map(|name| (image.symbol(name), 8)).to_vec();
    damage("limits", variables, [Some(ERROR); 2]);
}

#[test]
fn damaged_counters() {
    let names = [
        "gcMode",
        "compactionInProgress",
        "statFullGCs",
        "trampolineTableIndex",
    ];
    let variables = |image: &Image| names.map(|name| (image.symbol(name), 8)).to_vec();
    damage("counters", variables, [Some(ERROR); 2]);
}
