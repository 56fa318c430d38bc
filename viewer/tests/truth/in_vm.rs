//! The same for the in-VM engine, on known_shares as a VM that links `vmscope-publish`.

use nix::sys::signal::Signal;

use crate::LOOPS;
use crate::common::targets::Target;
use crate::common::vmscope::{
    Folder, Working, await_samples, can_sample, command, report, run, vmscope,
};
use crate::common::{programs, say};
use crate::measured::{CYCLES, JITTER, Measured, Worst, list, number, stolen_ns};

/// `attach` with engine `engine`, for at least `samples` samples.
fn attached(engine: &str, pid: u32, file: &std::path::Path, samples: usize) -> Working {
    let pid = pid.to_string();
    let mut attach = command(["attach", "--quiet", "--engine", engine, &pid, "--output"]);
    attach.arg(file);
    let working = Working::start(attach);
    await_samples(file, samples);
    working
}

/// known_shares that publishes, going on until it is asked to end.
fn target() -> Option<Target> {
    let program = programs::build_published(programs::KNOWN_SHARES)?;
    let mut command = std::process::Command::new(program);
    command.args(["--forever", "--threads", "2", "--jitter", JITTER]);
    Some(Target::ready(command))
}

/// Every share, of two threads, against the program's own clock; samples against CPU time; the
/// sleeping thread is left alone; the report says what was not sampled.
#[test]
fn known_shares_of_a_vm_by_its_own_sampler() {
    let Some(mut target) = target() else {
        return;
    };
    let stolen = stolen_ns();
    let folder = Folder::new();
    let recording = folder.file("out.vmscope");
    let pid = target.pid().to_string();
    vmscope(["doctor", &pid]).prints(&format!("`vmscope attach --engine in-vm {pid}`"));
    let working = attached("in-vm", target.pid(), &recording, 5000);
    target.signal(Signal::SIGTERM);
    let program: serde_json::Value = serde_json::from_str(&target.wait()).expect("its report");
    working.end().code(0);

    report(&recording, &[])
        .prints("in-vm engine")
        .prints("2 of the 5 threads of process")
        .prints("time in the kernel counts where it was called");
    assert_eq!(program["interrupted"], 0, "sleeps that a signal ended");
    let measured = Measured::new(&recording, program, stolen);
    assert_eq!(measured.document["session"]["engine"], "in-vm");
    assert_eq!(measured.document["session"]["clock"], "cpu");
    measured.agrees_with_its_clock("in-VM, attach");
    let threads = list(&measured.document["threads"]);
    let samples_of = |name: &str| {
        let thread = threads.iter().find(|thread| thread["name"] == *name);
        thread.map_or(0.0, |thread| number(&thread["samples"]))
    };
    assert_eq!(samples_of("sleeper"), 0.0);
    assert!(samples_of("share-0") > 1000.0 && samples_of("share-1") > 1000.0);
}

#[test]
fn known_shares_of_a_launched_vm_by_its_own_sampler() {
    let Some(program) = programs::build_published(programs::KNOWN_SHARES) else {
        return;
    };
    let stolen = stolen_ns();
    let folder = Folder::new();
    let recording = folder.file("out.vmscope");
    let mut record = command(["record", "--quiet", "--engine", "in-vm", "--output"]);
    record.arg(&recording).arg("--").arg(program);
    record.args(["--threads", "2", "--cycles", CYCLES, "--loops", LOOPS]);
    record.args(["--jitter", JITTER]);
    let output = run(record).code(0);
    let measured = Measured::new(&recording, output.json(), stolen);
    measured.agrees_with_its_clock("in-VM, record");
    assert_eq!(measured.program["interrupted"], 0);
}

/// Both engines at once on one never-waiting process: shares differ by their errors only.
#[test]
fn both_engines_tell_the_same() {
    if !can_sample() {
        return;
    }
    let Some(mut target) = target() else {
        return;
    };
    let stolen = stolen_ns();
    let folder = Folder::new();
    let files = [folder.file("kernel.vmscope"), folder.file("in-vm.vmscope")];
    let kernel = attached("kernel", target.pid(), &files[0], 100);
    let in_vm = attached("in-vm", target.pid(), &files[1], 5000);
    target.signal(Signal::SIGTERM);
    let program: serde_json::Value = serde_json::from_str(&target.wait()).expect("its report");
    kernel.end().code(0);
    in_vm.end().code(0);
    let [kernel, in_vm] = files.map(|file| Measured::new(&file, program.clone(), stolen));
    let missing = kernel.missing() + in_vm.missing();
    let mut worst = Worst::default();
    let both = kernel.by_function().into_iter().zip(in_vm.by_function());
    for ((function, mut one, _), (_, other, _)) in both {
        one.error = one.error.hypot(other.error);
        worst.compare(&function, one, other.share, missing);
    }
    say(&format!(
        "kernel and in-VM: {} comparisons: greatest difference {:.2} points, {:.1} standard errors; \
         widest bound {:.2} points",
        worst.comparisons,
        100.0 * worst.difference,
        worst.in_errors,
        100.0 * worst.bound,
    ));
}

#[test]
fn programs_without_a_sampler_are_refused_in_words() {
    let Some(target) = Target::known_shares(1) else {
        return;
    };
    let pid = target.pid().to_string();
    let message = format!(
        "process {pid} does not link vmscope-publish, so no sampler is in it: use --engine kernel"
    );
    vmscope(["attach", "--engine", "in-vm", &pid])
        .code(1)
        .says(&message);
    vmscope(["attach", "--engine", "in-vm", "--rate", "40000", &pid])
        .code(2)
        .says("40000.0 Hz is not for the VM's own sampler, which takes 1 to 20000 Hz");
    let folder = Folder::new();
    let mut record = command(["record", "--quiet", "--engine", "in-vm", "--output"]);
    record
        .arg(folder.file("out.vmscope"))
        .args(["--", "sleep", "0.1"]);
    run(record).says("ended without publishing anything: it does not link vmscope-publish");
}

/// Where perf events are forbidden, `attach` takes the sampler of a VM that has one, and says so.
#[test]
fn attach_falls_back_where_perf_events_are_forbidden() {
    let Some(program) = programs::build(programs::WITHOUT_PERF) else {
        return;
    };
    let Some(target) = target() else {
        return;
    };
    let without_perf = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&program);
        let eperm = nix::libc::EPERM.to_string();
        command.args([&eperm, env!("CARGO_BIN_EXE_vmscope")]);
        command.args(arguments);
        run(command)
    };
    let pid = target.pid().to_string();
    let folder = Folder::new();
    let file = folder.file("out.vmscope");
    let file = file.to_str().expect("UTF-8");
    let attach = ["attach", "--duration=0.5", "--full", "--output", file, &pid];
    without_perf(&attach)
        .code(0)
        .says("the VM's own sampler is used (--engine in-vm), as perf events can't be had")
        .prints("in-vm engine")
        .prints("the VM's own sampler was used, as perf events can't be had");
    without_perf(&["attach", "--engine", "kernel", "--output", file, &pid]).says("perf events");
    let Some(other) = Target::known_shares(1) else {
        return;
    };
    // No sampler in it: the reason is the kernel engine's.
    without_perf(&["attach", "--output", file, &other.pid().to_string()])
        .says("forbids perf events");
}
