//! `vmscope demo` and `vmscope reference-vm`, typed as a new user would.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::common::vmscope::{Folder, can_sample, command, run, vmscope};

fn demo(folder: &Folder, arguments: &[&str]) -> Command {
    let mut demo = command(["demo"]);
    demo.args(arguments).current_dir(folder.path());
    demo
}

#[test]
fn the_demo_ends_in_the_report_of_the_embedded_vm() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    let ran = run(demo(&folder, &["--duration", "3", "--gc-before"])).code(0);
    let ran = ran
        .prints("vmscope reference VM")
        .prints("Integer>>benchFib")
        .prints("Integer>>benchmark");
    ran.prints("vmscope annotate").prints("program 2");
    let mut annotate = command(["annotate"]);
    annotate
        .arg("recording.vmscope")
        .arg("benchFib")
        .current_dir(folder.path());
    run(annotate)
        .code(0)
        .prints("send: benchFib")
        .prints("returnTop");
}

#[test]
fn the_demo_takes_programs_and_expressions() {
    let folder = Folder::new();
    run(demo(&folder, &["--list"]))
        .code(0)
        .prints("binarytrees")
        .prints("closed and open PICs");
    let ran = run(demo(&folder, &["nosuch"])).code(2);
    ran.says("there is no program named nosuch")
        .says("richards");
    run(demo(&folder, &["-e", "3 + "]))
        .code(2)
        .says("expression:1:5: expected an expression");
    if !can_sample() {
        return;
    }
    let ran = run(demo(&folder, &["-e", "nil frobnicate", "--duration", "2"])).code(1);
    ran.says("frobnicate").says("the embedded VM ended early");
    run(demo(
        &folder,
        &[
            "--duration",
            "2",
            "-e",
            "(1 to: 1000) inject: 0 into: [:sum :each | sum + each]",
        ],
    ))
    .code(0)
    .prints("inject:into:");
}

#[test]
fn the_embedded_vm_runs_files_programs_and_expressions() {
    let folder = Folder::new();
    let file = folder.file("hello.st");
    std::fs::write(&file, "Transcript showln: Smalltalk arguments first!").expect("written");
    let mut hello = command(["reference-vm"]);
    hello.arg(&file).args(["--", "hello"]);
    run(hello).code(0).prints("hello");
    vmscope(["reference-vm", "-e", "100 factorial printString size"])
        .code(0)
        .prints("158");
    let ran = vmscope([
        "reference-vm",
        "richards",
        "--eden-size",
        "64K",
        "--verify-heap",
        "--",
        "1",
    ]);
    ran.code(0).prints("queued 23246, held 9297");
    vmscope([
        "reference-vm",
        "tinyBenchmarks",
        "--list",
        "benchFib",
        "--",
        "1",
    ])
    .code(0)
    .prints("33 <4C> self")
    .prints("<80> send: benchFib");
    vmscope(["reference-vm", "nosuch.st"])
        .code(2)
        .says("cannot read nosuch.st");
    vmscope(["reference-vm", "-e", "nil foo"])
        .code(1)
        .says("foo");
    vmscope(["reference-vm", "-e", "Smalltalk quit: 7"]).code(7);
}

#[test]
fn a_demo_with_lifetimes_says_whom_the_collector_works_for() {
    let folder = Folder::new();
    for wrong in ["0/1", "5/1", "2/3", "often"] {
        let arguments = ["garbage", &format!("--lifetimes={wrong}")];
        run(demo(&folder, &arguments)).code(2);
    }
    if !can_sample() {
        return;
    }
    let arguments = ["dataframe", "--lifetimes=1/100", "--duration", "3"];
    run(demo(&folder, &arguments))
        .code(0)
        .prints("Collector works for:")
        .prints("Advice:")
        .prints("vmscope gc");
    let of = |arguments: &[&str]| {
        let mut command = command(arguments);
        command.current_dir(folder.path());
        run(command)
    };
    of(&["gc"])
        .code(0)
        .prints("Model: a scavenge takes")
        .prints("SequenceableCollection>>copyFrom:to:@")
        .prints("Advice with predicted savings");
    of(&["lifetimes", "--by", "class"]).code(0).prints("String");
    of(&["lifetimes", "--csv"]).code(0).prints("share of bytes");
    of(&["lifetimes", "--html", "page.html"]).code(0);
    let mode = std::fs::metadata(folder.file("page.html")).expect("a page");
    assert_eq!(mode.permissions().mode() & 0o777, 0o600, "the user's alone");
    of(&["lifetimes", "--html", "page.html"]).code(2);
    of(&["lifetimes", "--html", "page.html", "--force"]).code(0);
    let page = std::fs::read_to_string(folder.file("page.html")).expect("a page");
    assert!(page.contains("<svg") && page.contains("<table>") && !page.contains("http-equiv"));
    let json = of(&["gc", "--json"]).code(0).json();
    assert!(
        json["parts"]
            .as_array()
            .is_some_and(|parts| parts.len() > 2),
        "{json}"
    );
}

/// A program that makes exactly 30,000 instances of a class in one place and keeps each tenth.
const KNOWN: &str = "\
Object subclass: #Known instanceVariableNames: 'a b' classVariableNames: '' package: 'Test'!

!Known methodsFor: 'making'!
make: count
\t| kept |
\tkept := OrderedCollection new.
\t1 to: count do: [:n | | one | one := Known new. n \\\\ 10 = 0 ifTrue: [kept add: one]].
\t^kept size! !

Known new make: 30000!
";

#[test]
fn every_object_is_counted_and_a_sample_estimates_as_many() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    std::fs::write(folder.file("known.st"), KNOWN).expect("written");
    for (rate, least, most) in [("1/1", 30_000, 30_000), ("1/5", 27_000, 33_000)] {
        let mut record = command(["record", "--quiet", "--output", "out.vmscope"]);
        record.arg(format!("--lifetimes={rate}")).arg("--");
        record
            .arg(env!("CARGO_BIN_EXE_vmscope"))
            .arg("reference-vm");
        record.args(["--eden-size", "256K", "known.st"]);
        record.current_dir(folder.path());
        run(record).code(0);
        let mut lifetimes = command(["lifetimes", "out.vmscope", "--by", "site", "--csv"]);
        lifetimes
            .args(["--most-allocated", "0"])
            .current_dir(folder.path());
        let printed = run(lifetimes).code(0).stdout;
        let line = printed.lines().find(|line| line.contains("Known>>make:@"));
        let line = line.unwrap_or_else(|| panic!("{printed}"));
        let objects: u64 = line
            .split(',')
            .nth(1)
            .and_then(|cell| cell.parse().ok())
            .expect("objects");
        assert!((least..=most).contains(&objects), "{rate}: {line}");
    }
}
