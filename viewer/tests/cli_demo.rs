//! `vmscope demo` and `vmscope reference-vm`, typed as a new user would.

#![allow(clippy::panic, reason = "tests fail by it")]

mod common;

use std::process::Command;

use common::vmscope::{Folder, can_sample, command, run, vmscope};

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
