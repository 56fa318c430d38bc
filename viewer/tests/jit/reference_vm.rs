//! Records the embedded Smalltalk VM from outside. Compares interpreted and jitted methods, by
//! bytecode, with the program's own clock (docs/TRUTH §3). Compares collections with the VM's own
//! counters.

use std::collections::HashMap;
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::common::vmscope::{Folder, Run, can_sample, command, profile, report, run, vmscope};
use crate::common::{say, skipped};
use crate::measured::{T, batch_means};
use vmscope_symbolizer::trace::Place;
use vmscope_symbolizer::zone::{Presence, Residencies, Residency};
use vmscope_symbolizer::{CodeId, Profile};

/// Turns of the known program's three loops. A round of jitted code takes some 6 ms: rounds of 0.5 ms may be in step
/// with the samples (0.7 ms), and shares then have twice the error of independent samples.
const TURNS: [u32; 3] = [12_000, 24_000, 60_000];
/// Repetitions of the measured operation per turn.
const REPETITIONS: usize = 200;
/// Tolerated share difference: loop ends and clock reads between loops take extra time.
const OVERHEAD: f64 = 0.01;

/// A self-measuring program. Its three loops stand on separate lines; at the end, it prints each
/// loop's microseconds of CPU time. A loop before them gets the method compiled: that time is no loop's.
fn known_shares(rounds: u32, turns: [u32; 3], others: usize) -> String {
    let mut text = String::from(
        "Object subclass: #Known instanceVariableNames: 'times' classVariableNames: '' package: 'Test'!\n\n\
         !Known methodsFor: 'running'!\nrun: rounds\n\t| x clock |\n\ttimes := Array new: 3 withAll: 0.\n\
         \t1 to: rounds do: [:round |\n\t\tself others. 1 to: 2000 do: [:turn | x := turn]. clock := self now.\n",
    );
    let operations = "x := x + 1. ".repeat(REPETITIONS);
    for (at, turns) in turns.iter().enumerate() {
        let _ = writeln!(
            text,
            "\t\tx := 0. 1 to: {turns} do: [:turn | {operations}].\n\t\tclock := self add: {} since: clock.",
            at + 1
        );
    }
    let calls: String = (0..others)
        .map(|at| format!("\tself m{at}: 3. self m{at}: 4.\n"))
        .collect();
    let methods: String = (0..others)
        .map(|at| format!("m{at}: x\n\t^(x + {at} * 3 max: x) - (x * {at} min: 7)!\n\n"))
        .collect();
    let _ = write!(
        text,
        "\t].\n\ttimes do: [:each | Transcript showln: each printString]!\n\n\
         add: index since: clock\n\ttimes at: index put: (times at: index) + (self now - clock).\n\t^self now!\n\n\
         now\n\t<primitive: 533>\n\t^self error: 'no clock'!\n\n{methods}others\n{calls}\t^self! !\n\nKnown new run: {rounds}!\n"
    );
    text
}

/// Records the embedded VM running a program.
fn recorded(
    folder: &Folder,
    file: &Path,
    record: &[&str],
    options: &[&str],
    program: &Path,
    arguments: &[&str],
) -> Run {
    let mut recording = command(["record", "--quiet"]);
    recording.args(record).arg("--output").arg(file).arg("--");
    recording
        .arg(env!("CARGO_BIN_EXE_vmscope"))
        .arg("reference-vm");
    recording
        .args(options)
        .arg(program)
        .arg("--")
        .args(arguments);
    recording.current_dir(folder.path());
    run(recording).code(0)
}

/// Runs the known program with these options. Compares loop shares with the program's own clock.
/// Returns the shares and the profile.
fn known_loops(
    what: &str,
    (options, record): (&[&str], &[&str]),
    (rounds, turns, others): (u32, [u32; 3], usize),
) -> ([f64; 3], Profile) {
    let folder = Folder::new();
    let (program, file) = (folder.file("known.st"), folder.file("out.vmscope"));
    std::fs::write(&program, known_shares(rounds, turns, others)).expect("written");
    let ran = recorded(&folder, &file, record, options, &program, &[]);
    let output = ran.stdout;
    let times: Vec<f64> = output
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    assert_eq!(times.len(), turns.len(), "{output}");
    let all: f64 = times.iter().sum();

    let (profile, _) = profile(&file);
    let samples = &profile.trace.samples;
    let (mut hits, mut elsewhere) = (Vec::new(), 0);
    for &place in &samples.places {
        let site = profile.site_at(place);
        let is_known = &*profile.entries[site.entry].name == "Known>>run:";
        // The loops are on lines 9, 11 and 13.
        let line = || {
            let method = profile.trace.methods.get(&site.frame.method?)?;
            let pc = site.from?;
            let lines = method.lines.iter().take_while(|entry| entry.from <= pc);
            lines.last().map(|entry| entry.line)
        };
        match site.frame.line.or_else(line).filter(|_| is_known) {
            Some(line @ (9 | 11 | 13)) => hits.push((line as usize - 9) / 2),
            _ => elsewhere += 1,
        }
    }
    assert!(
        hits.len() > 1500,
        "{what}: {} samples, {elsewhere} elsewhere",
        hits.len()
    );
    let (mut worst, mut shares, mut bounds) = (0.0_f64, [0.0; 3], 0.0_f64);
    for (number, time) in times.iter().enumerate() {
        let share = batch_means(&hits, |hit| hit == number);
        let (truth, bound) = (time / all, T * share.error + OVERHEAD);
        let difference = (share.share - truth).abs();
        assert!(
            difference < bound && bound < 0.1,
            "{what}: loop {number}: {:.4}, true {truth:.4}, bound {bound:.4}",
            share.share
        );
        worst = worst.max(difference);
        bounds = bounds.max(bound);
        shares[number] = share.share;
    }
    say(&format!(
        "{what}: {} samples in known loops, {elsewhere} elsewhere; greatest error {:.2} points, \
         bound {:.2}",
        hits.len(),
        100.0 * worst,
        100.0 * bounds
    ));
    (shares, profile)
}

#[test]
fn bytecodes_have_the_shares_that_the_program_measures() {
    if !can_sample() {
        return;
    }
    let slow = TURNS.map(|turns| turns / 40);
    known_loops("interpreted", (&["--interpret"], &[]), (500, slow, 0));
    known_loops("jitted", (&[], &[]), (450, TURNS, 0));
}

#[test]
fn the_vms_own_sampler_gives_jitted_bytecodes_the_same_shares() {
    if !can_sample() {
        return;
    }
    known_loops(
        "jitted, in-VM engine",
        (&[], &["--engine", "in-vm"]),
        (450, TURNS, 0),
    );
}

#[test]
fn a_loop_of_twice_the_length_takes_what_it_should() {
    if !can_sample() {
        return;
    }
    let [first, second, third] = TURNS;
    let (before, _) = known_loops("before", (&[], &[]), (750, TURNS, 0));
    let (after, _) = known_loops(
        "the second loop doubled",
        (&[], &[]),
        (600, [first, 2 * second, third], 0),
    );
    // Apart from the doubled loop, the other loops keep their ratio.
    let others = |shares: [f64; 3]| shares[0] / (shares[0] + shares[2]);
    let growth = (after[1] / (1.0 - after[1])) / (before[1] / (1.0 - before[1]));
    say(&format!(
        "the doubled loop: {growth:.2} times as much beside the others; their shares {:.4}, then {:.4}",
        others(before),
        others(after)
    ));
    assert!((growth - 2.0).abs() < 0.3, "{growth}");
    assert!((others(before) - others(after)).abs() < 0.03);
}

#[test]
fn shares_stay_right_while_the_code_zone_is_compacted_all_the_time() {
    if !can_sample() {
        return;
    }
    // Each round calls more methods than the zone holds, so the VM frees and compiles the known method
    // again and again. Long loops: their times include compiling the methods that
    // read the clock.
    let options: &[&str] = &["--code-size", "256K"];
    let program = (1200, TURNS.map(|turns| turns / 4), 400);
    let (_, profile) = known_loops("a zone that moves", (options, &[]), program);
    let AtTheEnd {
        samples,
        other,
        nothing,
    } = AtTheEnd::of(&profile);
    say(&format!(
        "named by the zone at the end: {samples} samples, {other} in other code, {nothing} in none"
    ));
    assert!(samples > 300 && other + nothing > samples / 10);
}

/// Samples in the code zone, as a profiler names them that reads the zone once, at the end.
#[derive(Default)]
struct AtTheEnd {
    samples: usize,
    /// Samples where other code lies at the end.
    other: usize,
    /// Samples where no code lies at the end.
    nothing: usize,
}

impl AtTheEnd {
    fn of(profile: &Profile) -> Self {
        let trace = &profile.trace;
        let residencies = Residencies::of(trace);
        let mut counts = AtTheEnd::default();
        let mut of_code: HashMap<CodeId, Vec<&Residency>> = HashMap::new();
        for one in residencies.all() {
            of_code.entry(one.code).or_default().push(one);
        }
        let all = residencies.all().iter();
        let at_end: Vec<&Residency> = all.filter(|one| one.until.is_none()).collect();
        for (&time, &place) in trace.samples.times.iter().zip(&trace.samples.places) {
            let Place::Code(code, offset) = trace.places[place] else {
                continue;
            };
            let mut then = of_code.get(&code).into_iter().flatten();
            let Some(then) = then.find(|one| one.at(time) == Some(Presence::There)) else {
                continue;
            };
            let address = then.start + u64::from(offset);
            let is_there = |one: &&&Residency| (one.start..one.end).contains(&address);
            counts.samples += 1;
            match at_end.iter().find(is_there) {
                Some(now) if now.code == code => {}
                Some(_) => counts.other += 1,
                None => counts.nothing += 1,
            }
        }
        counts
    }
}

/// An entry of a code zone: address, name, machine-code offsets with their bytecodes.
type Listed = (u64, String, Vec<(u64, u64)>);

/// A process killed at the test's end.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Prints the code zone, then waits. Prints first until no further compilations change the zone.
const LISTS_ITSELF: &str = "| list before |
list := [(Smalltalk codeConstituents: true) printString].
5 timesRepeat: [Transcript show: ''; show: String nl. (Delay forMilliseconds: 5) wait].
[before := list value. before = list value] whileFalse.
Transcript show: list value; show: String nl; show: 'ready'; show: String nl.
(Delay forMilliseconds: 3600000) wait!
";

#[test]
fn the_code_zone_from_outside_is_what_the_vm_lists() {
    if !cfg!(target_arch = "x86_64") {
        skipped("the embedded VM has no JIT here");
        return;
    }
    let folder = Folder::new();
    let program = folder.file("lists.st");
    let json = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../vm-hooks/reference-vm/smalltalk/programs/polymorphic.st");
    let json = std::fs::read_to_string(json).expect("the program is there");
    std::fs::write(&program, format!("{json}\n{LISTS_ITSELF}")).expect("written");
    let mut vm = command(["reference-vm"]);
    vm.arg(&program);
    let mut vm = Killed(vm.stdout(Stdio::piped()).spawn().expect("started"));
    let lines = BufReader::new(vm.0.stdout.take().expect("piped")).lines();
    let lines = lines.map(|line| line.expect("text"));
    let lines: Vec<String> = lines.take_while(|line| line != "ready").collect();
    let line = lines
        .iter()
        .find(|line| line.contains("ceReturnToInterpreter"));
    let line = line.expect("a list").as_str();
    // 'name' (address mc bc mc bc …) 'name' (…) …
    let mut own: Vec<Listed> = Vec::new();
    let mut rest = line;
    while let Some((_, after)) = rest.split_once('\'') {
        let (name, after) = after.split_once("' #(").expect("a name and its numbers");
        let (numbers, after) = after.split_once(')').expect("numbers");
        let numbers: Vec<u64> = numbers
            .split_whitespace()
            .map(|n| n.parse().expect("a number"))
            .collect();
        let pairs = numbers[1..]
            .chunks(2)
            .map(|pair| (pair[0] - numbers[0], pair[1]));
        own.push((numbers[0], name.to_owned(), pairs.collect()));
        rest = after;
    }
    assert!(own.len() > 50, "{line}");
    let listed = vmscope([
        "constituents",
        &vm.0.id().to_string(),
        "--detailed",
        "--json",
    ])
    .code(0)
    .json();
    let mut seen = Vec::new();
    for one in listed["constituents"].as_array().expect("a list") {
        let kind = one["kind"].as_str().expect("a kind");
        if !matches!(kind, "free" | "interpreter" | "bytecodes") {
            let address = one["start"].as_str().expect("an address");
            let address =
                u64::from_str_radix(address.trim_start_matches("0x"), 16).expect("hexadecimal");
            let entries = one["map"]["entries"].as_array().into_iter().flatten();
            let pair = |pair: &serde_json::Value| Some((pair[0].as_u64()?, pair[1].as_u64()?));
            let map: Vec<(u64, u64)> = entries.filter_map(pair).collect();
            seen.push((
                address,
                one["name"].as_str().expect("a name").to_owned(),
                map,
            ));
        }
    }
    seen.sort();
    let maps = own.iter().filter(|one| !one.2.is_empty()).count();
    let unlisted: Vec<_> = seen
        .iter()
        .filter(|one| !own.contains(one))
        .take(3)
        .collect();
    let unseen: Vec<_> = own
        .iter()
        .filter(|one| !seen.contains(one))
        .take(3)
        .collect();
    assert!(
        unlisted.is_empty() && unseen.is_empty(),
        "{unlisted:?}\n{unseen:?}"
    );
    say(&format!("{maps} pc maps equal"));
    say(&format!(
        "{} constituents, all where the VM lists them",
        own.len()
    ));
}

#[test]
fn collections_are_those_that_the_vm_counts() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    let (program, file) = (folder.file("trees.st"), folder.file("out.vmscope"));
    let trees = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../vm-hooks/reference-vm/smalltalk/programs/binarytrees.st");
    let mut text = std::fs::read_to_string(trees).expect("the program is there");
    text.push_str(
        "\n3 timesRepeat: [Smalltalk garbageCollect].\n\
         Transcript showln: (Smalltalk vmParameterAt: 9) printString.\n\
         Transcript showln: (Smalltalk vmParameterAt: 7) printString!\n",
    );
    std::fs::write(&program, text).expect("written");
    let options = [
        "--eden-size",
        "256K",
        "--full-gc-ratio",
        "20",
        "--growth-headroom",
        "1M",
    ];
    let ran = recorded(&folder, &file, &[], &options, &program, &["12"]);
    let output = ran.stdout;
    let counts: Vec<u64> = output
        .lines()
        .rev()
        .take(2)
        .filter_map(|line| line.parse().ok())
        .collect();
    let &[full, scavenges] = counts.as_slice() else {
        panic!("{output}");
    };
    assert!(
        full > 0 && scavenges > 20,
        "{scavenges} scavenges, {full} full collections"
    );
    let told = report(&file, &["--json"]).code(0).json();
    let (mut seen_full, mut seen_scavenges) = (0, 0);
    let collections = &told["vm"][0]["collections"];
    for one in collections["collectors"].as_array().expect("collectors") {
        let count = one["observed"].as_u64().expect("a count");
        match one["name"].as_str() {
            Some("mark-compact, full") => seen_full += count,
            _ => seen_scavenges += count,
        }
    }
    assert_eq!(
        (seen_full, seen_scavenges),
        (full, scavenges),
        "{collections}"
    );
    let mut text = report(&file, &[]).code(0);
    for part in [
        "**Memory**",
        "**GCs**",
        "**Events**",
        "remembered set ",
        "phases: ",
        "compact ",
    ] {
        text = text.prints(part);
    }
}

/// A program whose method `leaf:` has two callers, one with twice as many calls, and whose method
/// `copy` calls a primitive that copies.
const CALLERS: &str = "\
Object subclass: #Callers instanceVariableNames: 'x y z' classVariableNames: '' package: 'Test'!

!Callers methodsFor: 'running'!
leaf: n
\t^(n bitAnd: 7) + 1!

twice
\t1 to: 2000 do: [:n | z := self leaf: n]!

once
\t1 to: 1000 do: [:n | z := self leaf: n]!

copy
\t1 to: 3 do: [:n | x replaceFrom: 1 to: 400 with: y startingAt: 1]!

run: rounds
\tx := Array new: 400. y := Array new: 400.
\t1 to: rounds do: [:round | self twice. self once. self copy]! !

Callers new run: 400000!
";

/// Samples of all functions with this name and of their callees, and the part of them below `caller`.
/// The compiler decides which callees are functions of their own.
fn below(tree: &serde_json::Value, name: &str, caller: &str) -> (f64, f64) {
    let rows = tree["rows"].as_array().expect("rows");
    let text = |row: &serde_json::Value| {
        row["function"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let (mut all, mut under) = (0.0, 0.0);
    for row in rows {
        let own = row["self"].as_f64().unwrap_or_default();
        let (mut is_named, mut is_under) = (text(row).contains(name), false);
        let mut at = row;
        while let Some(parent) = at["parent"].as_u64() {
            at = &rows[usize::try_from(parent).expect("an index")];
            is_under |= is_named && text(at) == caller;
            is_named |= text(at).contains(name);
        }
        all += if is_named { own } else { 0.0 };
        under += if is_under { own } else { 0.0 };
    }
    (all, under)
}

#[test]
fn callers_are_known_without_a_frame_and_beyond_primitives() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    let (program, file) = (folder.file("callers.st"), folder.file("out.vmscope"));
    std::fs::write(&program, CALLERS).expect("written");
    recorded(&folder, &file, &[], &[], &program, &[]);
    let mut tree = command(["report", "--tree", "--json", "--min-share=0"]);
    tree.arg(&file);
    let tree = run(tree).code(0).json();
    let (leaf, of_twice) = below(&tree, "Callers>>leaf:", "Callers>>twice");
    let (_, of_once) = below(&tree, "Callers>>leaf:", "Callers>>once");
    let (primitives, of_copy) = below(&tree, "primitives::", "Callers>>copy");
    let (all, of_do_it) = below(&tree, "Callers>>", "UndefinedObject>>DoIt");
    say(&format!(
        "leaf: {leaf} samples, {of_twice} below twice, {of_once} below once; primitives: \
         {primitives} samples, {of_copy} below copy; {of_do_it} of {all} below DoIt"
    ));
    assert!(leaf > 1000.0 && primitives > 1000.0, "{leaf}, {primitives}");
    // 5 standard errors of independent samples, and a point for the calls' own differences.
    let error = 5.0 * (2.0 / 9.0 / leaf).sqrt();
    assert!((of_twice / leaf - 2.0 / 3.0).abs() < error + 0.01);
    assert!((of_once / leaf - 1.0 / 3.0).abs() < error + 0.01);
    assert!(of_copy > 0.97 * primitives && of_do_it > 0.97 * all);
}
