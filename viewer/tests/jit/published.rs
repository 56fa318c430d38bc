//! A VM in C that publishes itself (`vm-hooks/publish/examples/c/toy_jit.c`): three methods of three
//! bytecodes, whose shares the lengths of their loops give, while their code moves all the time.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::targets::Target;
use crate::common::vmscope::{Folder, can_sample, command, profile, report, run};
use crate::common::{say, skipped};
use crate::measured::{T, batch_means};

const TURNS: [(&str, [f64; 3]); 3] = [
    ("small", [1000.0, 2000.0, 3000.0]),
    ("large", [2000.0, 4000.0, 12000.0]),
    ("empty", [1000.0, 1000.0, 4000.0]),
];

/// The end of each loop costs some cycles of the shortest loop's thousand, and so do the frame and
/// the VM between two calls.
const OVERHEAD: f64 = 0.006;

/// The program, linked with the library that the tests' build has made.
fn toy(folder: &Folder) -> Option<PathBuf> {
    let test = std::env::current_exe().expect("this test");
    let deps = test.parent().expect("its folder");
    let places =
        [deps, deps.parent().expect("its folder")].map(|at| at.join("libvmscope_publish.a"));
    let library = places.iter().find(|path| path.exists()).expect("built");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vm-hooks/publish");
    let program = folder.file("toy_jit");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-Wextra", "-Werror"]);
    compiler.args(["-Wno-missing-field-initializers", "-I"]);
    compiler.arg(sources.join("include"));
    compiler.arg(sources.join("examples/c/toy_jit.c"));
    compiler.arg(library);
    compiler
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program);
    let compiled = compiler.output();
    let Ok(compiled) = compiled.inspect_err(|_| skipped("there is no `cc` here")) else {
        return None;
    };
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");
    (cfg!(target_arch = "x86_64") && can_sample()).then_some(program)
}

/// Compares the samples of generated code from `from` nanoseconds after the first sample; returns the
/// number of samples, and the number of unnamed samples.
fn are_true(what: &str, file: &Path, from: u64) -> (usize, usize) {
    let (profile, _) = profile(file);
    let samples = &profile.trace.samples;
    let first = samples.times.first().expect("samples").0;
    let (mut hits, mut unnamed) = (Vec::new(), 0);
    for (time, &place) in samples.times.iter().zip(&samples.places) {
        let site = profile.site_at(place);
        let name = &*profile.entries[site.entry].name;
        if time.0 < first + from {
            continue;
        }
        unnamed += usize::from(name.contains("unnamed"));
        let method = TURNS.iter().position(|(known, _)| *known == name);
        let bytecode = site.from.and_then(|from| usize::try_from(from.0).ok());
        hits.extend(
            method
                .zip(bytecode)
                .map(|(method, bytecode)| 3 * method + bytecode),
        );
    }
    assert!(hits.len() > 1500, "{what}: {} samples", hits.len());
    let all: f64 = TURNS.iter().flat_map(|(_, turns)| turns).sum();
    let mut worst = 0.0_f64;
    for (number, turns) in TURNS.iter().flat_map(|(_, turns)| turns).enumerate() {
        let share = batch_means(&hits, |hit| hit == number);
        let difference = (share.share - turns / all).abs();
        let bound = T * share.error + OVERHEAD;
        assert!(
            difference < bound && bound < 0.1,
            "{what}: bytecode {number}: {:.4}, true {:.4}, bound {bound:.4}",
            share.share,
            turns / all
        );
        worst = worst.max(difference);
    }
    let count = hits.len();
    say(&format!(
        "{what}: {count} samples in ranges, {unnamed} unnamed; greatest error {:.2} points",
        100.0 * worst
    ));
    (count, unnamed)
}

#[test]
fn a_vm_that_vmscope_starts_tells_its_code_from_the_first_instruction() {
    let folder = Folder::new();
    let Some(program) = toy(&folder) else {
        return;
    };
    let file = folder.file("out.vmscope");
    let mut recording = command(["record", "--quiet", "--output"]);
    recording.arg(&file).arg("--").arg(&program).arg("4");
    run(recording).code(0);
    let (_, unnamed) = are_true("started", &file, 0);
    assert_eq!(unnamed, 0);
    let told = report(&file, &[]).code(0);
    told.prints("toy 1.0").prints("2->end");
    let mut annotate = command(["annotate"]);
    annotate.arg(&file).arg("large");
    run(annotate).code(0).prints("loop2");
}

#[test]
fn a_running_vm_describes_what_it_has() {
    let folder = Folder::new();
    let Some(program) = toy(&folder) else {
        return;
    };
    let mut toy = Command::new(&program);
    toy.arg("3600");
    let target = Target::ready(toy);
    for round in ["attached", "attached again"] {
        let file = folder.file("out.vmscope");
        let mut attach = command(["attach", "--quiet", "--duration", "6", "--output"]);
        attach.arg(&file).arg(target.pid().to_string());
        run(attach).code(0);
        // Code that went before the VM answered has no name.
        let (_, unnamed) = are_true(round, &file, 2_000_000_000);
        assert_eq!(unnamed, 0, "{round}");
    }
}

#[test]
fn samples_that_a_vm_took_with_no_profiler_near_are_in_a_later_recording() {
    let folder = Folder::new();
    let Some(program) = toy(&folder) else {
        return;
    };
    let mut toy = Command::new(&program);
    toy.args(["3600", "sample"]);
    let target = Target::ready(toy);
    std::thread::sleep(std::time::Duration::from_secs(5));
    let file = folder.file("out.vmscope");
    let mut attach = command(["attach", "--quiet", "--engine", "in-vm", "--duration", "5"]);
    attach
        .arg("--output")
        .arg(&file)
        .arg(target.pid().to_string());
    run(attach).code(0);
    are_true("sampled before", &file, 0);
    let times = &profile(&file).0.trace.samples.times;
    let (first, last) = (
        times.first().expect("samples"),
        times.last().expect("samples"),
    );
    // Five seconds of attaching, and more before.
    assert!(last.since(*first).as_secs_f64() > 7.0);
    let told = report(&file, &[]).code(0);
    told.prints("samples from before vmscope attached are included");
}
