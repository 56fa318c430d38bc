//! Collections as they are read from outside, against `node --trace-gc`: each kind, cause, duration, heap
//! size, number and marking, of the main thread and of a worker. Spaces against V8's own statistics.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};

use crate::common::nodes::{Node, nodes};
use crate::common::say;
use vmscope_process::{Adapter as _, KeySource, Poll, ProcessView, monotonic_time};
use vmscope_records::{
    COLLECTIONS_SECTION, Collection, CollectionKey, CollectionScope, Pid, ProcessKey, Record,
};
use vmscope_v8::{V8, V8Adapter};

/// Tolerance of logged durations in milliseconds: Node 18 rounds to 0.1, and V8 reads its clock twice.
const ROUNDED: f64 = 0.1;

/// A line of V8's log: `[7:0x2b3a] 80 ms: Scavenge 2.0 (2.4) -> 1.9 (3.4) MB, 0.8 / 0.0 ms … task;`.
#[derive(Debug)]
struct Logged {
    isolate: String,
    kind: &'static str,
    /// Milliseconds since the isolate's start.
    at: f64,
    /// Megabytes before and after.
    heap: (f64, f64),
    /// Milliseconds.
    length: f64,
    /// Milliseconds from the begin of marking to the end, if marking came before.
    marking: Option<f64>,
    text: String,
}

fn logged(line: &str) -> Option<Logged> {
    let (process, rest) = line.strip_prefix('[')?.split_once(']')?;
    let (at, rest) = rest.split_once(" ms: ")?;
    let kind = match rest.trim_start_matches("Incremental ").split(' ').next()? {
        "Scavenge" => "scavenge",
        "Mark-sweep" | "Mark-Compact" => "mark-compact",
        other => panic!("{other}: {line}"),
    };
    let number = |text: &str| -> f64 {
        let number = text.trim().parse();
        number.unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    // `Scavenge (interleaved)`, `Mark-Compact (reduce)`: remarks precede the size.
    let (before, rest) = rest.split_once(" -> ")?;
    let (after, rest) = rest.split_once(' ')?;
    let (length, rest) = rest.split_once(" / ")?;
    let marking = rest.split_once("walltime since start of marking ");
    Some(Logged {
        isolate: process.split_once(':')?.1.to_owned(),
        kind,
        at: number(at),
        heap: (number(before.rsplit(' ').nth(1)?), number(after)),
        length: number(length.rsplit(' ').next()?),
        marking: marking.map(|(_, rest)| number(rest.split(' ').next().unwrap_or_default())),
        text: line.to_owned(),
    })
}

/// What the adapter told.
#[derive(Default)]
struct Told {
    collections: BTreeMap<CollectionKey, Collection>,
    /// Newest and first value of each total.
    totals: BTreeMap<String, (f64, f64)>,
    limits: Vec<String>,
    /// Number of looks at V8 that found it collecting.
    looks_in_collections: f64,
    /// Milliseconds of the clock before the last look.
    last_look: f64,
}

impl Told {
    fn take(&mut self, records: Vec<Record>) {
        for record in records {
            match record {
                Record::Collection(one) => drop(self.collections.insert(one.key, *one)),
                Record::Counter(one) if one.section == COLLECTIONS_SECTION => {
                    let total = self.totals.entry(one.name).or_insert((0.0, one.value));
                    total.0 = one.value;
                }
                Record::Counter(one) if one.section == "V8" && one.name == "collector" => {
                    self.looks_in_collections = one.value;
                }
                Record::Limit(limit) => {
                    assert!(!limit.text.contains("collections"), "{limit:?}");
                    self.limits.push(limit.text);
                }
                _ => {}
            }
        }
    }
}

/// Runs the program beside the adapter; returns the log and what the adapter told.
fn run(node: &Node) -> (Vec<Logged>, Told) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/collections.js");
    let mut child = Command::new(&node.program)
        .arg("--trace-gc")
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node");
    let output = BufReader::new(child.stdout.take().expect("stdout"));
    let (line_to, lines) = channel();
    let reader = std::thread::spawn(move || {
        for line in output.lines() {
            let _ = line_to.send(line.expect("a line"));
        }
    });
    let mut log = vec![lines.recv().expect("a collection")];
    let view = ProcessView::open(Pid(child.id())).expect("a process");
    let vm = V8::open(&view).expect("V8").expect("V8");
    let mut adapter = V8Adapter::new(vm);
    let (keys, mut told) = (KeySource::new(), Told::default());
    let mut poll = |is_last: bool| {
        view.refresh().expect("mappings");
        let clock = Arc::new(|| monotonic_time().expect("a clock"));
        let mut poll = Poll::new(keys.clone(), ProcessKey(1), clock);
        told.last_look = poll.now().0 as f64 / 1e6;
        let polled = match is_last {
            true => adapter.finish(&view, &mut poll),
            false => adapter.poll(&view, &mut poll),
        };
        polled.expect("a poll");
        told.take(poll.finish());
        adapter.next_poll()
    };
    loop {
        let pause = poll(false);
        match lines.recv_timeout(pause) {
            Ok(line) if line == "END" => break,
            Ok(line) => log.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("{node:?} ended early"),
        }
        while let Ok(line) = lines.try_recv() {
            log.push(line);
        }
        if log.iter().any(|line| line == "END") {
            break;
        }
    }
    poll(true);
    drop(child.stdin.take());
    child.wait().expect("its end");
    reader.join().expect("a reader");
    // V8 buffers its lines.
    log.extend(lines.try_iter());
    (log.iter().filter_map(|line| logged(line)).collect(), told)
}

#[test]
fn collections_are_those_that_v8_logs() {
    let (mut workers, mut compared) = (0, 0);
    for node in nodes() {
        let (log, told) = run(&node);
        let mut isolates: Vec<&str> = Vec::new();
        for line in &log {
            if !isolates.contains(&line.isolate.as_str()) {
                isolates.push(&line.isolate);
            }
        }
        assert_eq!(isolates.len(), 2, "{node:?}");
        assert!(told.collections.len() > 4, "{node:?}: {}", log.len());
        say(&format!(
            "{node:?}: {} looks in collections",
            told.looks_in_collections
        ));
        assert!(told.looks_in_collections > 0.0, "{node:?}");
        for (isolate, collector) in isolates.iter().zip(["V8", "V8 worker 1"]) {
            let times = ["scavenge", "mark-compact"].map(|kind| {
                let of_kind = |line: &&Logged| line.isolate == **isolate && line.kind == kind;
                let log: Vec<&Logged> = log.iter().filter(of_kind).collect();
                compare(&node, (collector, kind), &log, &told)
            });
            let is_worker = u32::from(collector != "V8");
            workers += is_worker;
            let [Some(young), Some(all)] = times else {
                continue;
            };
            compared += is_worker;
            let [told, logged] = [0, 1].map(|of| young[of] + all[of]);
            say(&format!(
                "{collector}: pauses {told:.1} ms, logged {logged:.1} ms"
            ));
            assert!(
                (told - logged).abs() <= ROUNDED * log.len() as f64,
                "{node:?}"
            );
        }
    }
    assert!(workers == 0 || compared > 0, "no worker was compared");
}

/// Compares the collections of one isolate and kind.
/// Returns the milliseconds of its pauses that the adapter told, and that V8 logged; `None` if the
/// adapter told why these are unknown.
fn compare(
    node: &Node,
    (collector, kind): (&str, &str),
    log: &[&Logged],
    told: &Told,
) -> Option<[f64; 2]> {
    let what = format!("Node {}, {collector}, {kind}", node.release);
    let of_collector = told.collections.values();
    let of_collector = of_collector.filter(|one| one.collector == collector);
    let (all, others): (Vec<_>, Vec<_>) = of_collector.partition(|one| one.kind == kind);
    let label = Collection::label(collector, kind);
    let Some((count, first)) = told.totals.get(&label).copied() else {
        // On a busy machine, a collection may disturb all looks at a short worker.
        say(&format!("{what}: no look at it"));
        assert_ne!(collector, "V8", "{what}");
        return None;
    };
    let (mut starts, mut length, mut last) = (Vec::new(), 0.0, first as u64);
    let (mut missed, mut cycles) = (0, 0);
    for one in &all {
        assert_eq!(one.missed, one.number - last - 1, "{what}: {one:?}");
        (last, missed) = (one.number, missed + one.missed);
        let line = log[one.number as usize - 1];
        let said = || format!("{what}: {}\n{one:?}", line.text);
        let is_cause = line.text.contains(&one.cause) && !one.cause.is_empty();
        assert!(is_cause, "{}", said());
        let (begin, end) = (one.begin.expect("a begin"), one.end.expect("an end"));
        let took = end.since(begin).0 as f64 / 1e6;
        length += line.length;
        assert!((took - line.length).abs() <= ROUNDED, "{}", said());
        let heap = one.spaces.iter().find(|space| space.name == "heap");
        let heap = heap.expect("a heap");
        let megabytes = |bytes: Option<u64>| bytes.expect("bytes") as f64 / f64::from(1 << 20);
        let is_equal = |bytes, logged: f64| (megabytes(bytes) - logged).abs() < 0.11;
        assert!(is_equal(heap.before, line.heap.0), "{}", said());
        assert!(is_equal(heap.after, line.heap.1), "{}", said());
        starts.push(end.0 as f64 / 1e6 - line.at);
        let cycle = others.iter().find(|cycle| {
            cycle.scope == CollectionScope::Cycle && kind == "mark-compact" && cycle.end == one.end
        });
        let cycle = cycle.map(|cycle| end.since(cycle.begin.expect("a begin")).0 as f64 / 1e6);
        assert_eq!(cycle.is_some(), line.marking.is_some(), "{}", said());
        if let Some((cycle, logged)) = cycle.zip(line.marking) {
            cycles += 1;
            // V8 rounds to milliseconds.
            assert!(
                (cycle - logged).abs() <= 0.5 + ROUNDED,
                "{cycle}: {}",
                said()
            );
        }
    }
    starts.sort_by(f64::total_cmp);
    let spread = starts
        .last()
        .zip(starts.first())
        .map_or(0.0, |(a, b)| a - b);
    // V8 prints after the end, in whole milliseconds. It may collect once more after the last look.
    let until = starts
        .last()
        .map_or(0.0, |start| told.last_look - start - 1.0);
    let seen = log.iter().filter(|line| line.at < until).count();
    assert!(
        (seen..=log.len()).contains(&(count as usize)),
        "{what}: {count}, {seen}"
    );
    say(&format!(
        "{what}: {} logged ({seen} before the last look), {count} counted, {first} before the first look, {} told \
         ({length:.1} ms), {missed} missed, {cycles} cycles, starts within {spread:.2} ms",
        log.len(),
        all.len(),
    ));
    // Later collections may have replaced the times of the newest before a look.
    assert!(last <= count as u64, "{what}");
    if let Some(limit) = told.limits.iter().find(|limit| limit.contains(&label)) {
        // A busy machine.
        say(&format!("{what}: {limit}"));
        assert!(node.release < 22, "{what}: {limit}");
        return None;
    }
    let (time, none) = told.totals[&format!("{label} time")];
    let counted = log.iter().take(count as usize).skip(first as usize);
    let logged = counted.map(|line| line.length).sum();
    Some([(time - none) / 1e6, logged])
}

/// Name in V8's statistics of a class of spaces.
const SPACES: [(&str, &str); 4] = [
    ("OldSpace", "old_space"),
    ("CodeSpace", "code_space"),
    ("OldLargeObjectSpace", "large_object_space"),
    ("NewLargeObjectSpace", "new_large_object_space"),
];

#[test]
fn used_bytes_of_spaces_are_those_of_v8s_statistics() {
    for node in nodes() {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/spaces.js");
        let mut child = Command::new(&node.program)
            .args(["--expose-gc".as_ref(), program.as_os_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        let mut line = || lines.next().expect("a line").expect("a line");
        assert_eq!(line(), "READY");
        let view = ProcessView::open(Pid(child.id())).expect("a process");
        let mut adapter = V8Adapter::new(V8::open(&view).expect("V8").expect("V8"));
        let clock = Arc::new(|| monotonic_time().expect("a clock"));
        let mut poll = Poll::new(KeySource::new(), ProcessKey(1), clock);
        adapter.poll(&view, &mut poll).expect("a poll");
        let mut input = child.stdin.take().expect("stdin");
        input.write_all(b"collect\n").expect("stdin");
        let statistics: BTreeMap<String, u64> = line()
            .split(' ')
            .filter_map(|space| space.split_once('='))
            .map(|(name, used)| (name.to_owned(), used.parse().expect("bytes")))
            .collect();
        adapter.finish(&view, &mut poll).expect("a poll");
        drop(input);
        child.wait().expect("its end");
        let mut told = Told::default();
        told.take(poll.finish());
        let newest = told.collections.into_values().next_back();
        let spaces = newest.expect("a collection").spaces;
        for (class, name) in SPACES {
            let Some(space) = spaces.iter().find(|space| space.name == class) else {
                assert_eq!(
                    statistics.get(name).copied().unwrap_or(0),
                    0,
                    "{node:?}: {class}"
                );
                continue;
            };
            let (used, expected) = (space.after.expect("bytes"), statistics[name]);
            say(&format!(
                "Node {}, {class}: {used}, V8's {expected}",
                node.release
            ));
            // V8 counts an area that allocations have reserved as unused.
            let reserved = if class.contains("Large") { 0 } else { 1 << 18 };
            assert!(
                (expected..=expected + reserved).contains(&used),
                "{node:?}: {class}"
            );
        }
    }
}
