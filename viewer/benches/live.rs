//! Cost of a live view, and its difference from the recording:
//! `cargo bench -p vmscope --bench live -- PID [SECONDS]` (default: 20 s).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark fails by panicking"
)]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/live/watched.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod watched;

use common::say;
use std::time::{Duration, Instant};
use watched::{difference, profile_at, watch};

/// State of this process after a step.
struct Step {
    at: Instant,
    /// CPU time of all threads and of the live view's, in seconds. Exited threads do not count.
    cpu: f64,
    cpu_of_view: f64,
    resident_kib: u64,
}

impl Step {
    fn now() -> Self {
        Step {
            at: Instant::now(),
            cpu: cpu_of_all(),
            cpu_of_view: cpu("thread-self"),
            resident_kib: resident_kib(),
        }
    }
}

/// CPU time of a thread, in seconds.
fn cpu(of: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{of}/schedstat")).unwrap();
    let ns: u64 = stat.split(' ').next().unwrap().parse().unwrap();
    ns as f64 / 1e9
}

fn cpu_of_all() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| {
            let id = task.ok()?.file_name().into_string().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/self/task/{id}/schedstat")).ok()?;
            stat.split(' ').next()?.parse::<u64>().ok()
        })
        .sum::<u64>() as f64
        / 1e9
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn main() {
    // Cargo adds `--bench`.
    let arguments = std::env::args().skip(1).filter(|one| one != "--bench");
    let numbers: Vec<u64> = arguments.map(|one| one.parse().unwrap()).collect();
    let Some(&pid) = numbers.first() else {
        say("usage: cargo bench -p vmscope --bench live -- PID [SECONDS]");
        return;
    };
    let time = Duration::from_secs(numbers.get(1).copied().unwrap_or(20));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.vmscope");
    let mut steps = Vec::new();
    let pid = u32::try_from(pid).unwrap();
    let Some(both) = watch(pid, Some(&path), time, || steps.push(Step::now())) else {
        return;
    };
    let whole = profile_at(&path, &both.files);
    let live = both.live.profile().read().unwrap();
    let (first, middle) = (&steps[0], &steps[steps.len() / 2]);
    let last = &steps[steps.len() - 1];
    let took = last.at - first.at;
    let percent = |cpu: f64| cpu / took.as_secs_f64() * 100.0;
    say(&format!(
        "{} samples, {} places, {} entries; {:.2} % of a core in all, {:.2} % by the live view; {:?}; \
         {} samples elsewhere than in the recording's profile",
        live.trace.samples.times.len(),
        live.trace.places.len(),
        live.entries.len(),
        percent(last.cpu - first.cpu),
        percent(last.cpu_of_view - first.cpu_of_view),
        both.live.omitted(),
        difference(&live, &whole),
    ));
    let end = live.trace.end.as_ref().unwrap();
    say(&format!(
        "by the kernel's account, in all and with what came before: {:.2} s of CPU in {took:?}",
        end.recorder_cpu_ns as f64 / 1e9,
    ));
    let grown = last.resident_kib as f64 - middle.resident_kib as f64;
    let hours = (last.at - middle.at).as_secs_f64() / 3600.0;
    say(&format!(
        "memory {} KiB at {:?}, {} KiB at {took:?}: {:.1} MiB an hour",
        middle.resident_kib,
        middle.at - first.at,
        last.resident_kib,
        grown / 1024.0 / hours,
    ));
}
