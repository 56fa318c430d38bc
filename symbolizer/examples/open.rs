//! Opens a recording as a view does, and says what that took, and what keys take then:
//! CPU time (of the thread that waits, and of all), wall-clock time, and memory.
//! `cargo run --release -p vmscope-symbolizer --example open -- FILE [keys|callers]`, of a
//! file that the example `shape` wrote. CPU time means something on a busy machine, too.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a tool for measuring"
)]

#[path = "../benches/view/changes.rs"]
mod changes;

use changes::{CHANGES, filter};
use std::fs::{File, read_to_string};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vmscope_records::TimeNs;
use vmscope_records::recording::Reader;
use vmscope_symbolizer::annotate::{Annotation, Choice, candidates, choose};
use vmscope_symbolizer::calls::{CallTree, CallsOf, StackIndex};
use vmscope_symbolizer::time_buckets::{By, Columns, ColumnsOf, Counts, by_thread};
use vmscope_symbolizer::{Filter, Profile, Stop, Summary, Trace, profile_of};

/// So often each is done; the median counts.
const TIMES: usize = 9;

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let begin = Instant::now();
    let all = || println!("{:30} all threads {:?}", "", cpu_of_all());
    let open = || Reader::open(File::open(path).unwrap()).unwrap();
    let trace = once("trace", || Trace::read(&mut open()).unwrap());
    all();
    let profile = once("profile", || profile_of(trace, Vec::new(), true));
    all();
    let everything = Filter::default();
    let stop = Stop::new();
    let summary = once("first summary", || {
        Summary::of(&profile, &everything, &stop).unwrap()
    });
    println!("{:30} wall {:?}", "", begin.elapsed());
    let (time_buckets, cells) = profile.time_buckets.size();
    println!("{} samples, {} sites", summary.total, profile.sites.len());
    println!("{time_buckets} time buckets, {cells} cells");
    tell_memory(&summary);
    match std::env::args().nth(2).as_deref() {
        Some("callers") => callers(&profile),
        Some(_) => keys(&profile),
        None => return,
    }
    tell_memory(&summary);
}

fn tell_memory(summary: &Summary) {
    let bytes = most_bytes() / as_f64(summary);
    println!("{bytes:.1} bytes a sample at most");
}

/// What changes with a key.
fn keys(profile: &Profile) {
    let end = profile.trace.end.as_ref().unwrap().time.0;
    let stop = Stop::new();
    for change in CHANGES {
        let filter = filter(change, end);
        often(&format!("summary, {change}"), || {
            Summary::of(profile, &filter, &stop)
        });
    }
    for change in CHANGES {
        let filter = filter(change, end);
        let counts = || Counts::of(profile, &filter, &stop);
        often(&format!("counts alone, {change}"), counts);
        let errors = || Summary::errors_by_entry(profile, &filter, &stop);
        often(&format!("errors, {change}"), errors);
    }
    for (name, by, change) in [
        ("regions", By::Regions, "all"),
        ("threads", By::Threads, "all"),
        ("threads in a region", By::Threads, "region"),
        ("regions, some names", By::Regions, "name"),
    ] {
        let what = ColumnsOf {
            window: (TimeNs(12_345), TimeNs(end)),
            columns: 200,
            by,
        };
        let filter = filter(change, end);
        let columns = || Columns::of(profile, &what, &filter, &stop);
        often(&format!("200 columns, {name}"), columns);
    }
    let everything = Filter::default();
    let crossed = || by_thread(profile, &everything, &stop);
    often("threads and sites", crossed);
    let filter = filter("half", end);
    let Choice::One(subject) = choose(profile, &candidates(profile, &filter), None) else {
        panic!("there are methods");
    };
    often("candidates", || candidates(profile, &filter));
    often("annotation", || Annotation::of(profile, &filter, &subject));
}

/// What a key changes among callers.
fn callers(profile: &Profile) {
    let end = profile.trace.end.as_ref().unwrap().time.0;
    let stop = Stop::new();
    let index = once("stacks", || {
        Arc::new(StackIndex::of(profile, None, None, &stop).unwrap())
    });
    let tree_of =
        |filter: &Filter, of: &CallsOf| CallTree::of(profile, &index, filter, of, &stop).unwrap();
    let tree = tree_of(&Filter::default(), &CallsOf::default());
    let chains = profile.trace.chains.len();
    println!("{} stacks by function, {chains} by address", index.len());
    let hottest = tree.functions().ids();
    let hottest = hottest.max_by_key(|&id| tree.counts_of(id).own).unwrap();
    let through = CallsOf {
        through: tree.function(hottest).cloned(),
        ..CallsOf::default()
    };
    let by_thread = CallsOf {
        by_thread: true,
        ..CallsOf::default()
    };
    for change in CHANGES {
        let filter = filter(change, end);
        let all = || tree_of(&filter, &CallsOf::default());
        often(&format!("callers, {change}"), all);
        often(&format!("callers by thread, {change}"), || {
            tree_of(&filter, &by_thread)
        });
        often(&format!("callers through one, {change}"), || {
            tree_of(&filter, &through)
        });
    }
    let apart = tree_of(&Filter::default(), &by_thread);
    for (name, tree) in [("together", &tree), ("by thread", &apart)] {
        often(&format!("around, {name}"), || tree.around(hottest, &stop));
        let up = || tree.ways_to(&tree.own_of(hottest));
        often(&format!("up, {name}"), up);
    }
    let fits = tree.functions().with_each(true);
    often("search", || tree.samples_with(&fits));
    let none = tree.functions().with_each(false);
    often("search, nothing", || {
        tree.matching(&none, CallTree::ROOT, true, false)
    });
}

fn once<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (cpu, wall) = (cpu(), Instant::now());
    let result = work();
    print(what, cpu_since(cpu), wall.elapsed());
    result
}

fn often<T>(what: &str, mut work: impl FnMut() -> T) {
    let mut taken: Vec<(Duration, Duration)> = (0..TIMES)
        .map(|_| {
            let (cpu, wall) = (cpu(), Instant::now());
            black_box(work());
            (cpu_since(cpu), wall.elapsed())
        })
        .collect();
    taken.sort_unstable();
    let (cpu, wall) = taken[TIMES / 2];
    print(what, cpu, wall);
}

fn print(what: &str, cpu: Duration, wall: Duration) {
    println!("{what:30} CPU {cpu:9.1?} wall {wall:9.1?}");
}

/// CPU time of this thread: `schedstat`, see `Documentation/scheduler/sched-stats.rst`.
fn cpu() -> Duration {
    let text = read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

fn cpu_since(before: Duration) -> Duration {
    cpu() - before
}

/// CPU time of all threads, also ended ones: `proc_pid_stat(5)`, fields 14 and 15.
fn cpu_of_all() -> Duration {
    let text = read_to_string("/proc/self/stat").unwrap();
    let fields = text.rsplit(')').next().unwrap().split_whitespace();
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .map(|n| n.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(ticks * 10)
}

#[allow(clippy::cast_precision_loss, reason = "a ratio")]
fn most_bytes() -> f64 {
    let status = read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find(|line| line.starts_with("VmHWM"));
    let most = most.unwrap().split_whitespace().nth(1).unwrap();
    most.parse::<f64>().unwrap() * 1024.0
}

#[allow(clippy::cast_precision_loss, reason = "a ratio")]
fn as_f64(summary: &Summary) -> f64 {
    summary.total as f64
}
