//! The embedded Smalltalk VM, recorded from outside: interpreted methods by bytecode, against the
//! program's own clock (docs/TRUTH §3), and collections, against the VM's own counters.

use std::fmt::Write;
use std::path::Path;

use crate::common::say;
use crate::common::vmscope::{Folder, Run, can_sample, command, profile, report, run};
use crate::measured::{T, batch_means};

/// Turns of the three loops of the known program.
const TURNS: [u32; 3] = [1000, 2000, 5000];
/// Repetitions of the one operation in each turn.
const REPETITIONS: usize = 200;
/// The ends of the loops, and the clock between them, take time of their own.
const OVERHEAD: f64 = 0.01;

/// A program of three loops, each on a line of its own, which measures itself: at its end it
/// prints the microseconds of each loop.
fn known_shares(rounds: u32) -> String {
    let mut text = String::from(
        "Object subclass: #Known instanceVariableNames: 'times' classVariableNames: '' package: 'Test'!\n\n\
         !Known methodsFor: 'running'!\nrun: rounds\n\t| x clock |\n\ttimes := Array new: 3 withAll: 0.\n\
         \t1 to: rounds do: [:round |\n\t\tclock := self now.\n",
    );
    let operations = "x := x + 1. ".repeat(REPETITIONS);
    for (at, turns) in TURNS.iter().enumerate() {
        let _ = writeln!(
            text,
            "\t\tx := 0. 1 to: {turns} do: [:turn | {operations}].\n\t\tclock := self add: {} since: clock.",
            at + 1
        );
    }
    let _ = write!(
        text,
        "\t].\n\ttimes do: [:each | Transcript showln: each printString]!\n\n\
         add: index since: clock\n\ttimes at: index put: (times at: index) + (self now - clock).\n\t^self now!\n\n\
         now\n\t<primitive: 240>\n\t^self error: 'no clock'! !\n\nKnown new run: {rounds}!\n"
    );
    text
}

/// Records the embedded VM with a program.
fn recorded(
    folder: &Folder,
    file: &Path,
    options: &[&str],
    program: &Path,
    arguments: &[&str],
) -> Run {
    let mut recording = command(["record", "--quiet", "--output"]);
    recording
        .arg(file)
        .arg("--")
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

#[test]
fn interpreted_bytecodes_have_the_shares_that_the_program_measures() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    let (program, file) = (folder.file("known.st"), folder.file("out.vmscope"));
    let text = known_shares(150);
    std::fs::write(&program, text).expect("written");
    let ran = recorded(&folder, &file, &["--interpret"], &program, &[]);
    let output = ran.stdout;
    let times: Vec<f64> = output
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    assert_eq!(times.len(), TURNS.len(), "{output}");
    let all: f64 = times.iter().sum();

    let (profile, _) = profile(&file);
    let samples = &profile.trace.samples;
    let (mut hits, mut others) = (Vec::new(), 0);
    for &place in &samples.places {
        let site = &profile.sites[profile.site_of_place[place]];
        let is_known = &*profile.entries[site.entry].name == "Known>>run:";
        // The loops are on lines 9, 11 and 13.
        match site.frame.line.filter(|_| is_known) {
            Some(line @ (9 | 11 | 13)) => hits.push((line as usize - 9) / 2),
            _ => others += 1,
        }
    }
    assert!(hits.len() > 1500, "{} samples, {others} others", hits.len());
    let mut worst = 0.0_f64;
    for (number, time) in times.iter().enumerate() {
        let share = batch_means(&hits, |hit| hit == number);
        let (truth, bound) = (time / all, T * share.error + OVERHEAD);
        let difference = (share.share - truth).abs();
        assert!(
            difference < bound && bound < 0.1,
            "loop {number}: {:.4}, true {truth:.4}, bound {bound:.4}",
            share.share
        );
        worst = worst.max(difference);
    }
    say(&format!(
        "{} samples in known loops, {others} elsewhere; greatest error {:.2} points",
        hits.len(),
        100.0 * worst
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
    let ran = recorded(&folder, &file, &options, &program, &["12"]);
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
