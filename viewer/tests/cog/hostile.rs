//! A process that damages its code zone and variables while vmscope reads them.

use serde_json::Value;

use crate::asked::{await_right, place};
use crate::common::vmscope::{attached, await_samples, command, report, run, trace_of};
use crate::measured::list;
use crate::replica::{Image, tell};

/// Bytes of an entry's header.
const HEADER: u64 = 40;

/// Variables that the adapter believes, or not.
const VARIABLES: [&str; 8] = [
    "codeBase",
    "methodZoneBase",
    "mzFreeStart",
    "limitAddress",
    "trampolineTableIndex",
    "hiddenRootsObj",
    "gcMode",
    "statFullGCs",
];

#[test]
fn damage_is_counted() {
    let Some(mut image) = Image::of("busy") else {
        return;
    };
    let fib = image.entry("Method", "Bench>>fib:");
    let spot = image.framed(fib, false, 200);
    let Some(mut target) = image.start() else {
        return;
    };
    tell(&mut target, &spot.run("fib", 500_000));
    let file = image.folder().file("out.vmscope");
    let working = attached(target.pid(), &file, 100);
    let places = [place("fib", "Bench>>fib:", Some((35, 41)))];
    await_right(&file, &image.folder().file("log"), &places, "fib", 300);
    let headers = image.entries().map(|(at, ..)| (at, HEADER));
    let variables = VARIABLES.iter().map(|name| (image.symbol(name), 8));
    let damage = headers.chain(variables.cycle().take(400));
    let damage: String = damage
        .map(|(at, length)| format!("damage {at:x} {length:x}\n"))
        .collect();
    tell(&mut target, &damage);
    let before = trace_of(&file).map_or(0, |trace| trace.samples.times.len());
    await_samples(&file, before + 3000);
    let mut again = command(["attach", "--quiet", "--duration", "1", "--output"]);
    again.arg(image.folder().file("again.vmscope"));
    run({
        again.arg(target.pid().to_string());
        again
    })
    .code(0);
    for arguments in [&["constituents"][..], &["constituents", "--pairs"]] {
        let mut command = command(arguments);
        command.arg(target.pid().to_string());
        let run = run(command);
        let has_ended = matches!(run.status.code(), Some(0 | 1));
        run.check(has_ended, "an answer, or an error");
    }
    target.wait();
    working.end().code(0);
    let document = report(&file, &["--json"]).code(0).json();
    let limits: Vec<&Value> = list(&document["session"]["limits"]).iter().collect();
    eprintln!("{limits:#?} {}", document["samples"]);
    assert!(!limits.is_empty());
}
