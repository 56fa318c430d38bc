//! Nothing is left behind: V8 writes its dump and a log into its working folder, and that
//! is not the user's wish but ours.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::programs::script;
use crate::common::vmscope::{
    Folder, Working, attached_by, await_samples, can_sample, command, run,
};
use crate::common::whole::list;
use crate::common::{await_that, say, skipped};
use crate::node::{Recorded, ready, tool};
use crate::others::newest_python;

/// `cargo test` runs tests of one binary at once, and a run's start cleans up for all.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `vmscope record -- node bench.js` in `place`, the recording elsewhere.
fn recording(place: &Folder, folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = command(["record", "--quiet", "--jit-env", "--output"]);
    command.arg(folder.file("out.vmscope")).args(["--", "node"]);
    command.arg(script("bench.js")).args(arguments);
    command.current_dir(place.path());
    command
}

#[test]
fn the_working_folder_is_as_it_was() {
    let _alone = alone();
    if tool("node").is_none() {
        return;
    }
    let (place, folder) = (Folder::new(), Folder::new());
    // A user's own file of such a name is nobody else's.
    std::fs::write(place.file("jit-1.dump"), "mine").expect("our folder");
    run(recording(&place, &folder, &["--seconds", "1"])).code(0);
    assert_eq!(place.names(), ["jit-1.dump"]);
    assert_eq!(folder.names(), ["out.vmscope"]);
    let own = std::fs::read(place.file("jit-1.dump")).expect("our folder");
    assert_eq!(own, b"mine");
}

/// The processes whose working folder this is.
fn processes_in(place: &Folder) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let in_it = pids.filter(|pid: &i32| {
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == place.path())
    });
    in_it.map(Pid::from_raw).collect()
}

fn next_run_cleans_up(place: &Folder) {
    say(&format!("left until the next run: {:?}", place.names()));
    let folder = Folder::new();
    run(recording(place, &folder, &["--seconds", "0.3"])).code(0);
    assert_eq!(place.names(), [""; 0], "still there after the next run");
}

#[test]
fn after_vmscope_was_killed() {
    let _alone = alone();
    if tool("node").is_none() {
        return;
    }
    let (place, folder) = (Folder::new(), Folder::new());
    let working = Working::start(recording(&place, &folder, &["--forever"]));
    await_samples(&folder.file("out.vmscope"), 500);
    working.signal(Signal::SIGKILL);
    let vmscope = Pid::from_raw(i32::try_from(working.pid()).expect("a pid"));
    // Node is our own test's child's child: only what works in our folder is ended.
    await_that("vmscope is gone", || {
        let pids = processes_in(&place);
        let dead = std::fs::read_to_string(format!("/proc/{vmscope}/stat"))
            .is_ok_and(|stat| stat.contains(") Z "));
        (dead || !pids.contains(&vmscope)).then_some(())
    });
    for pid in processes_in(&place) {
        let _ = kill(pid, Signal::SIGKILL);
    }
    drop(working);
    await_that("node is gone", || {
        processes_in(&place).is_empty().then_some(())
    });
    next_run_cleans_up(&place);
}

#[test]
fn after_node_was_killed() {
    let _alone = alone();
    if tool("node").is_none() {
        return;
    }
    let (place, folder) = (Folder::new(), Folder::new());
    let working = Working::start(recording(&place, &folder, &["--forever"]));
    await_samples(&folder.file("out.vmscope"), 500);
    let vmscope = Pid::from_raw(i32::try_from(working.pid()).expect("a pid"));
    for pid in processes_in(&place) {
        if pid != vmscope {
            kill(pid, Signal::SIGKILL).expect("node runs");
        }
    }
    let _ = working.end();
    next_run_cleans_up(&place);
}

/// What is left in the working folder of `record --jit-env -- PROGRAM ARGUMENTS`.
fn left_by(program: &Path, arguments: &[&str]) -> Vec<String> {
    let (place, folder) = (Folder::new(), Folder::new());
    let mut command = command(["record", "--quiet", "--jit-env", "--output"]);
    command
        .arg(folder.file("out.vmscope"))
        .arg("--")
        .arg(program);
    command.args(arguments).current_dir(place.path());
    run(command).code(0);
    let names = place.names().into_iter();
    // Isolates' addresses and process ids differ.
    let kind = |name: String| match name.rsplit_once('.') {
        Some((_, end)) => end.to_owned(),
        None => name,
    };
    names.map(kind).collect()
}

const SHORT: &str = "let x = 0; for (let i = 0; i < 1e5; i++) x += Math.sqrt(i)";

/// Including processes that exit before the first poll.
#[test]
fn short_children_leave_nothing() {
    let _alone = alone();
    if tool("node").is_none() {
        return;
    }
    let sh = Path::new("/bin/sh");
    let script = format!("node -e '{SHORT}'; node -e '{SHORT}' & wait");
    assert_eq!(left_by(sh, &["-c", &script]), [""; 0]);
}

/// Dumps requested by the command belong to the user.
#[test]
fn the_users_own_files_stay() {
    let _alone = alone();
    let Some(node) = tool("node") else {
        return;
    };
    let sh = Path::new("/bin/sh");
    let of = |switch: &str, code: &str| left_by(&node, &[switch, "-e", code]);
    let long = "const t = Date.now(); while (Date.now() - t < 1000);";
    for code in [SHORT, long] {
        assert_eq!(of("--perf-prof", code), ["log", "dump"], "{code}");
        assert_eq!(of("--prof", code), ["log"], "{code}");
        let script = format!("NODE_OPTIONS='--perf-prof --no-warnings' node -e '{code}'");
        assert_eq!(left_by(sh, &["-c", &script]), ["log", "dump"], "{code}");
    }
}

/// The same for perf maps.
#[test]
fn pythons_map_is_gone_if_it_is_ours() {
    let _alone = alone();
    let Some(python) = newest_python().filter(|_| can_sample()) else {
        skipped("there is no CPython from 3.12 on here, or it can't be sampled");
        return;
    };
    // The process prints its pid while running; short processes exit immediately.
    let code = "import os, sys, time; print(os.getpid()); time.sleep(float(sys.argv[1]))";
    let is_left = |options: &[&str], seconds: &str| {
        let (folder, place) = (Folder::new(), Folder::new());
        let mut command = command(["record", "--quiet", "--output"]);
        command
            .arg(folder.file("out.vmscope"))
            .arg("--")
            .arg(&python);
        command.args(options).args(["-c", code, seconds]);
        command.current_dir(place.path());
        let run = run(command).code(0);
        let map = format!("/tmp/perf-{}.map", run.stdout.trim());
        std::fs::remove_file(map).is_ok()
    };
    for seconds in ["0", "1"] {
        assert!(!is_left(&[], seconds), "it was left, after {seconds} s");
        assert!(is_left(&["-X", "perf"], seconds), "after {seconds} s");
    }
}

/// A dump that the user asked for stays, and counts.
#[test]
fn the_users_own_dump_stays() {
    let _alone = alone();
    if tool("node").is_none() {
        return;
    }
    let (folder, place) = (Folder::new(), Folder::new());
    let target = ready(&["--perf-prof"], "bench.js", &["--forever"], &place);
    let before = place.names();
    let working = attached_by(
        &["--adapter", "jitdump"],
        target.pid(),
        &folder.file("out.vmscope"),
        1000,
    );
    working.signal(Signal::SIGINT);
    let run = working.end().code(0);
    assert_eq!(place.names(), before);
    target.end();
    let recorded = Recorded::read(&folder, place, run);
    let fib = recorded.samples(|entry| entry["name"] == "fib" && entry["tier"] == "TurboFan");
    recorded.check(fib > 0, "fib has no samples");
}

/// Where nothing can be written, V8 can still write a perf map; the report says so.
#[test]
fn a_folder_that_takes_no_files() {
    let _alone = alone();
    let Some(node) = tool("node") else {
        return;
    };
    let bench = script("bench.js");
    let arguments = [bench.as_os_str(), "--seconds".as_ref(), "2".as_ref()];
    let recorded = Recorded::with(&["--jit-env"], &node, arguments, |command| {
        command.current_dir("/sys");
    });
    let limits = list(&recorded.document["session"]["limits"]).iter();
    let mut told = limits.map(|limit| limit["text"].as_str().unwrap_or_default());
    recorded.check(
        told.any(|text| text.contains("perf map")),
        "nothing is said of it",
    );
    let sieve = recorded.samples(|entry| entry["name"] == "sieve");
    recorded.check(sieve > 50, &format!("sieve has {sieve} samples"));
    let pid = &recorded.said[0]["pid"];
    let map = format!("/tmp/perf-{pid}.map");
    assert!(!std::path::Path::new(&map).exists(), "{map} was left");
}

/// `--no-jit-env` changes nothing in the target's environment: without V8's adapter, V8 tells of
/// nothing, its builtins are named, its JIT code is counted as what it is.
#[test]
fn no_jit_env() {
    let _alone = alone();
    let Some(node) = tool("node") else {
        return;
    };
    let bench = script("bench.js");
    let arguments = [bench.as_os_str(), "--seconds".as_ref(), "2".as_ref()];
    let recorded = Recorded::of(&["--no-jit-env", "--adapter", "jitdump"], &node, arguments);
    assert_eq!(recorded.place.names(), [""; 0]);
    let unnamed =
        recorded.samples(|entry| entry["region"] == "generated" && entry["kind"] == "unnamed");
    recorded.check(
        unnamed > 100,
        &format!("{unnamed} in generated code without a name"),
    );
    let unknown = recorded.samples(|entry| entry["region"] == "unknown");
    recorded.check(unknown == 0, &format!("{unknown} unknown"));
    let gc = recorded.samples(|entry| entry["region"] == "gc");
    recorded.check(gc > 5, &format!("{gc} in the collector"));
}
