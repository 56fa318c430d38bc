//! The test programs themselves: they build, run, and keep what they promise. Whether a
//! profile agrees with them is another test's business.

use std::process::Command;

use crate::common::programs::{self, Program};
use serde_json::Value;

/// JSON lines printed by a program; `None` where it can't be built.
fn run(program: Program, arguments: &[&str]) -> Option<Vec<Value>> {
    let path = programs::build(program)?;
    let output = Command::new(&path)
        .args(arguments)
        .output()
        .expect("a program just built");
    assert!(
        output.status.success(),
        "{}: {}",
        path.display(),
        output.status
    );
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let json = text.lines().filter(|line| line.starts_with('{'));
    Some(
        json.map(|line| serde_json::from_str(line).expect(line))
            .collect(),
    )
}

/// The JSON line that a program of JavaScript prints; `None` without Node.js.
fn run_node(name: &str, arguments: &[&str]) -> Option<Value> {
    let mut command = Command::new("node");
    command.arg(programs::script(name)).args(arguments);
    let Ok(output) = command.output() else {
        crate::common::skipped("there is no `node` here");
        return None;
    };
    assert!(output.status.success(), "{command:?}: {output:?}");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

#[test]
fn all_programs_build() {
    for program in programs::ALL {
        programs::build(program);
    }
}

#[test]
fn known_shares_account_for_their_time() {
    let arguments = [
        "--threads",
        "2",
        "--cycles",
        "50",
        "--loops",
        "2000,4000,2000,2000,2000,2000",
    ];
    let Some(lines) = run(programs::KNOWN_SHARES, &arguments) else {
        return;
    };
    for thread in list(&lines[0]["threads"]) {
        assert_eq!(thread["cycles"], 50);
        let ranges = list(&thread["ranges"]);
        let seconds: Vec<_> = ranges
            .iter()
            .map(|range| number(&range["seconds"]))
            .collect();
        let elsewhere = number(&thread["elsewhere_seconds"]);
        let total = number(&thread["cpu_seconds"]);
        assert!(
            (seconds.iter().sum::<f64>() + elsewhere - total).abs() < 1e-6,
            "{thread}"
        );
        // The two ranges of one function lie on two lines of it.
        assert_eq!(ranges[4]["function"], ranges[5]["function"]);
        assert_ne!(ranges[4]["line"], ranges[5]["line"]);
        // Twice the count is about twice the time, whatever else the machine does.
        let ratio = seconds[1] / seconds[0];
        assert!((1.2..3.0).contains(&ratio), "{ratio}: {thread}");
    }
}

#[test]
fn short_threads_are_short_and_all_there() {
    let Some(lines) = run(programs::SHORT_THREADS, &["--count", "8"]) else {
        return;
    };
    let threads = list(&lines[0]["threads"]);
    assert_eq!(threads.len(), 8);
    for thread in threads {
        assert!(number(&thread["cpu_seconds"]) >= 0.005, "{thread}");
    }
}

#[test]
fn the_storm_storms() {
    let Some(lines) = run(programs::THREAD_STORM, &["--seconds", "0.2"]) else {
        return;
    };
    assert!(number(&lines[0]["created"]) > 10.0, "{lines:?}");
}

#[test]
fn the_storm_of_mappings_keeps_its_rate() {
    for kind in ["anew", "flip", "files"] {
        let arguments = ["--seconds", "0.2", "--rate", "500", "--kind", kind];
        let Some(lines) = run(programs::MAP_STORM, &arguments) else {
            return;
        };
        let changes = number(&lines[0]["changes"]);
        assert!((1.0..=101.0).contains(&changes), "{lines:?}");
    }
}

#[test]
fn processes_fork_and_exec() {
    let Some(lines) = run(programs::FORK_EXEC, &["--ms", "2"]) else {
        return;
    };
    let pids = |role: &str| -> Vec<_> {
        lines
            .iter()
            .filter(|line| line["role"] == role)
            .map(|line| &line["pid"])
            .collect()
    };
    assert_eq!(pids("first"), pids("last"), "the same pid, another image");
    assert_eq!(
        (pids("child").len(), pids("again").len(), pids("nest").len()),
        (3, 1, 3)
    );
}

#[test]
fn every_phase_of_the_cpp_program_takes_time() {
    let Some(lines) = run(programs::INLINED, &["--seconds", "0.2"]) else {
        return;
    };
    for thread in list(&lines[0]["threads"]) {
        for phase in ["stencil", "waves", "copies", "calls"] {
            assert!(number(&thread["phases"][phase]) > 0.0, "{phase}: {thread}");
        }
    }
}

#[test]
fn both_chains_take_time() {
    let Some(lines) = run(programs::RECURSION, &["--seconds", "0.1"]) else {
        return;
    };
    assert!(number(&lines[0]["chain_seconds"]) > 0.0);
    assert!(number(&lines[0]["deep_seconds"]) > 0.0);
}

#[test]
fn javascript_of_all_tiers_takes_time() {
    let Some(told) = run_node("tiers.js", &["--cycles", "20"]) else {
        return;
    };
    let ranges = list(&told["ranges"]);
    let seconds = ranges.iter().map(|range| number(&range["seconds"]));
    assert!(seconds.clone().all(|one| one > 0.0), "{told}");
    assert!(
        seconds.sum::<f64>() < number(&told["cpu_seconds"]),
        "{told}"
    );
    assert_eq!(ranges.len(), 5);
}

#[test]
fn new_functions_of_javascript_run_one_after_another() {
    let folder = crate::common::vmscope::Folder::new();
    let file = folder.file("log");
    let log = file.to_str().expect("UTF-8");
    if run_node("churn.js", &["--lives", "60", "--log", log]).is_none() {
        return;
    }
    let lives = crate::common::ran::log_of(&file);
    assert_eq!(lives.len(), 60);
    let mut last = 0;
    for life in lives {
        assert!(last <= life.begin && life.begin < life.end, "{life:?}");
        last = life.end;
    }
}

#[test]
fn garbage_is_collected_in_both_ways() {
    let Some(told) = run_node("garbage.js", &["--seconds", "1"]) else {
        return;
    };
    for kind in ["scavenge", "full"] {
        let mut all = list(&told["collections"]).iter();
        let one = all.find(|one| one["kind"] == kind).expect(kind);
        assert!(number(&one["begin_ns"]) < number(&one["end_ns"]), "{one}");
    }
}
