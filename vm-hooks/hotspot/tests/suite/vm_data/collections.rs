//! Collections as they are told from outside, against the JVM's own log.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::jdks::{Jdk, jdks};
use crate::common::running::Running;
use vmscope_hotspot::layout::VmStructs;
use vmscope_hotspot::pages::Pages;
use vmscope_hotspot::perf_data::Place;
use vmscope_hotspot::vm_data::{Known, VmData};
use vmscope_process::{KeySource, Poll, ProcessView};
use vmscope_records::{Collection, Pid, ProcessKey, Record, ThreadUpdate, TimeNs};

/// What was told of a JVM.
#[derive(Default)]
struct Told {
    collections: HashMap<(String, u64), Collection>,
    counters: HashMap<String, f64>,
    facts: HashMap<String, String>,
    limits: Vec<String>,
    threads: Vec<ThreadUpdate>,
}

impl Told {
    fn take(&mut self, poll: Poll) {
        for record in poll.finish() {
            match record {
                Record::Collection(one) => {
                    self.collections
                        .insert((one.kind.clone(), one.number), *one);
                }
                Record::Counter(one) => {
                    let name = format!("{}: {}", one.section, one.name);
                    self.counters.insert(name, one.value);
                }
                Record::Fact(fact) => {
                    self.facts.insert(fact.name, fact.value);
                }
                Record::Limit(limit) => self.limits.push(limit.text),
                Record::ThreadUpdate(update) => self.threads.push(update),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Total collections of a kind, all collectors.
    fn total(&self, kind: &str) -> f64 {
        let end = format!(", {kind}");
        let all = self.counters.iter();
        all.filter(|(name, _)| name.ends_with(&end))
            .map(|(_, value)| value)
            .sum()
    }
}

/// `CLOCK_MONOTONIC`.
fn monotonic() -> TimeNs {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    TimeNs(u64::try_from(Duration::from(now).as_nanos()).unwrap())
}

struct Seen {
    told: Told,
    log: String,
    vm: VmData,
    without_symbols: VmData,
}

/// Runs the program on `jdk` with `options`, looks at it until `enough` collections were told, and
/// after it has allocated its last. `None`, said, where it can't be compiled.
fn run(jdk: &Jdk, options: &[&str], enough: usize) -> Option<Seen> {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("gc.log");
    let log_option = format!("-Xlog:gc,gc+phases:file={}:uptimenanos", log.display());
    let all = [options, &["-Xmx96m", &log_option]].concat();
    let mut running = Running::start(jdk, &all)?;
    running.ask("go", "going");
    let process = ProcessView::open(Pid(running.child.id())).unwrap();
    let libjvm = process.module(|name| name == "libjvm.so").unwrap();
    let structs = VmStructs::read(&process, &libjvm, &Pages::new(process.memory())).unwrap();
    let known = Known {
        structs: Some(&structs),
        libjvm: Some(&libjvm),
        methods: None,
    };
    let mut vm = VmData::new(&process, known);
    let mut without_symbols = VmData::new(
        &process,
        Known {
            libjvm: None,
            ..known
        },
    );
    let mut told = Told::default();
    let keys = KeySource::new();
    let poll_now = || Poll::new(keys.clone(), ProcessKey(1), Arc::new(monotonic));
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let mut poll = poll_now();
        vm.poll(&process, &mut poll).unwrap();
        told.take(poll);
        without_symbols.poll(&process, &mut poll_now()).unwrap();
        let ended = told.collections.values().filter(|one| one.end.is_some());
        if ended.count() >= enough || !told.limits.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "no {enough} collections");
        std::thread::sleep(Duration::from_millis(5));
    }
    running.ask("stop", "stopped");
    running.ask("full", "done");
    let mut poll = poll_now();
    vm.finish(&process, &mut poll);
    told.take(poll);
    running.end();
    // The open file outlives the process.
    let mut poll = poll_now();
    vm.finish(&process, &mut poll);
    told.take(poll);
    let log = std::fs::read_to_string(&log).unwrap();
    Some(Seen {
        told,
        log,
        vm,
        without_symbols,
    })
}

/// The times (ns since the VM's start) of the log's lines of a pause that has ended.
fn pauses(log: &str, what: &[&str]) -> Vec<u64> {
    let lines = log.lines().filter(|line| line.ends_with("ms"));
    let of_it = lines.filter(|line| what.iter().any(|what| line.contains(what)));
    of_it
        .map(|line| {
            let time = line.trim_start_matches('[').split("ns]").next().unwrap();
            time.trim().parse().unwrap()
        })
        .collect()
}

#[test]
fn counts_and_times_are_those_of_the_log() {
    for jdk in jdks() {
        let version = jdk.release;
        for collector in ["Serial", "Parallel", "G1"] {
            let option = format!("-XX:+Use{collector}GC");
            let Some(seen) = run(&jdk, &[&option], 25) else {
                return;
            };
            let what = format!("{collector} of {version}");
            let Seen { told, log, .. } = &seen;
            assert_eq!(told.facts["collector"], collector);
            assert!(told.limits.is_empty(), "{what}: {:?}", told.limits);
            let young = pauses(log, &["Pause Young", "Pause Initial Mark"]);
            let full = pauses(log, &["Pause Full"]);
            assert_eq!(told.total("young"), young.len() as f64, "{what}");
            assert_eq!(told.total("full"), full.len() as f64, "{what}");
            if collector == "G1" {
                let cycles = pauses(log, &["Pause Remark", "Pause Cleanup"]);
                assert_eq!(told.total("cycle pause"), cycles.len() as f64, "{what}");
            }
            // The log gets a pause's line after the pause and before the next pause.
            let clock = seen.vm.clock();
            assert_eq!(clock.uncertainty().map(|by| by.0), Some(0), "{what}");
            let mut late = Vec::new();
            for (kind, log) in [("young", &young), ("full", &full)] {
                let of_kind = told.collections.values().filter(|one| one.kind == kind);
                let mut of_kind: Vec<_> = of_kind.collect();
                of_kind.sort_by_key(|one| one.number);
                let mut last_logged = TimeNs(0);
                for one in of_kind {
                    let at = usize::try_from(one.number).unwrap() - 1;
                    let logged = clock.time_of(log[at].cast_signed()).unwrap();
                    let (Some(begin), Some(end)) = (one.begin, one.end) else {
                        continue;
                    };
                    assert!(begin <= end && begin <= logged, "{what}: {one:?}");
                    assert!(last_logged <= begin, "{what}: {last_logged} {one:?}");
                    last_logged = logged;
                    late.push(logged.0.abs_diff(end.0));
                }
            }
            late.sort_unstable();
            let median = late[late.len() / 2];
            println!(
                "{what}: {} young, {} full, {} told; log {} µs after the end in the \
                 median, {} µs at most; clock without symbols ± {:?}",
                young.len(),
                full.len(),
                told.collections.len(),
                median / 1000,
                late[late.len() - 1] / 1000,
                seen.without_symbols.clock().uncertainty(),
            );
            let causes = told
                .collections
                .values()
                .filter(|one| !one.cause.is_empty());
            assert!(causes.count() > 0, "{what}");
            // Without the symbol, times agree within the stated uncertainty.
            let other = seen.without_symbols.clock();
            let (one, two) = (clock.time_of(1_000_000_000), other.time_of(1_000_000_000));
            let apart = one.unwrap().0.abs_diff(two.unwrap().0);
            assert!(
                apart <= other.uncertainty().unwrap().0,
                "{what}: {apart} ns"
            );
        }
    }
}

#[test]
fn perf_data_is_found_in_memory_and_missed_where_it_is_off() {
    for jdk in jdks() {
        let version = jdk.release;
        let options = ["-XX:+UseSerialGC", "-XX:+PerfDisableSharedMem"];
        let Some(seen) = run(&jdk, &options, 3) else {
            return;
        };
        let place = seen.vm.perf_data().unwrap().place();
        assert!(
            matches!(place, Place::Memory { .. }),
            "{version}: {place:?}"
        );

        let options = ["-XX:+UseSerialGC", "-XX:-UsePerfData"];
        let seen = run(&jdk, &options, 0).unwrap();
        assert!(seen.vm.perf_data().is_none(), "{version}");
        let limit = "no data on collections and the heap: the JVM keeps no perf data";
        let said = seen.told.limits.iter().any(|text| text.starts_with(limit));
        assert!(said, "{version}: {:?}", seen.told.limits);
        assert_eq!(seen.told.facts["collector"], "Serial");
        assert!(seen.told.threads.len() > 5, "{version}");
    }
}
