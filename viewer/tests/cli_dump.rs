//! `vmscope dump` on native programs: busy, waiting and stopped threads.

#![allow(clippy::panic, reason = "tests fail by it")]

mod common;

use common::targets::Target;
use common::vmscope::{command, run, vmscope};
use nix::sys::signal::Signal;
use serde_json::Value;

fn dump(pid: u32) -> Value {
    run(command(["dump", "--json", &pid.to_string()]))
        .code(0)
        .json()
}

fn frames(thread: &Value) -> Vec<&str> {
    let frames = thread["frames"].as_array().expect("frames").iter();
    frames.filter_map(|frame| frame["name"].as_str()).collect()
}

#[test]
fn each_thread_has_its_stack_also_in_a_stopped_process() {
    let Some(mut target) = Target::known_shares(2) else {
        return;
    };
    // A stopped process stays stopped.
    for round in 0..3 {
        let stopped = round > 0;
        if round == 1 {
            target.signal(Signal::SIGSTOP);
        }
        let dump = dump(target.pid());
        assert_eq!(dump["schema"], "vmscope-dump/1.0");
        let threads = dump["threads"].as_array().expect("threads");
        assert_eq!(threads.len(), 3, "{dump}");
        for thread in threads {
            assert!(thread["cut_off"].is_null(), "{thread}");
            let frames = frames(thread);
            if thread["name"] == "known_shares" {
                // It waits for the others.
                assert_eq!(frames.last(), Some(&"_start"), "{thread}");
                assert!(frames.contains(&"main"), "{thread}");
            } else {
                assert!(
                    frames.contains(&"work") || frames[0].starts_with("share_"),
                    "{thread}"
                );
                assert!(frames.contains(&"start_thread"), "{thread}");
            }
            assert_eq!(thread["state"] == "stopped", stopped, "{thread}");
        }
        assert!(target.is_running());
    }
    // It goes on where the user lets it.
    target.signal(Signal::SIGCONT);
    let pid = target.pid().to_string();
    vmscope(["dump", &pid])
        .code(0)
        .prints("\"share-0\" tid ")
        .prints("known_shares.c:")
        .prints("3 threads");
    let told = target.end();
    assert!(told.contains("share_two_lines"), "{told}");
}

#[test]
fn what_has_no_stacks_is_an_error() {
    vmscope(["dump", "4194305"]).code(1).says("4194305");
    vmscope(["dump", "no such program"])
        .code(1)
        .says("no process");
}
