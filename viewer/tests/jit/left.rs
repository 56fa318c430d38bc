//! Nothing is left behind: V8 writes its dump and a log into its working folder, and that
//! is not the user's wish but ours.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::programs::script;
use crate::common::vmscope::{Folder, Working, await_samples, command, run};
use crate::common::whole::list;
use crate::common::{await_that, say};
use crate::node::{Recorded, ready, tool};

/// `cargo test` runs tests of one binary at once, and a run's start cleans up for all.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `vmscope record -- node bench.js` in `place`, the recording elsewhere.
fn recording(place: &Folder, folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = command(["record", "--quiet", "--output"]);
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
    let mut attach = command(["attach", "--quiet", "--duration", "1"]);
    attach
        .arg(target.pid().to_string())
        .arg("--output")
        .arg(folder.file("out.vmscope"));
    let run = run(attach).code(0);
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
    let recorded = Recorded::with(&[], &node, arguments, |command| {
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

/// `--no-jit-env` changes nothing in the target's environment: V8 tells of nothing, its
/// builtins are named, its JIT code is counted as what it is.
#[test]
fn no_jit_env() {
    let _alone = alone();
    let Some(node) = tool("node") else {
        return;
    };
    let bench = script("bench.js");
    let arguments = [bench.as_os_str(), "--seconds".as_ref(), "2".as_ref()];
    let recorded = Recorded::of(&["--no-jit-env"], &node, arguments);
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
