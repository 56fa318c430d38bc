//! Collections, cycles and pauses of each collector in the report, against the JVM's own log.

use std::path::Path;
use std::sync::Mutex;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::vmscope::{Folder, Working, await_trace, can_sample, command, report};
use crate::common::{await_that, say, skipped};
use crate::hotspot::jdks::{Jdk, jdks};
use crate::hotspot::running::Running;
use crate::measured::list;

/// Collectors with their options and first releases.
const COLLECTORS: [(&str, &[&str], u32); 7] = [
    ("Serial", &["-XX:+UseSerialGC"], 11),
    ("Parallel", &["-XX:+UseParallelGC"], 11),
    (
        "G1",
        &["-XX:+UseG1GC", "-XX:InitiatingHeapOccupancyPercent=20"],
        11,
    ),
    ("Shenandoah", &["-XX:+UseShenandoahGC"], 11),
    (
        "generational Shenandoah",
        &["-XX:+UseShenandoahGC", "-XX:ShenandoahGCMode=generational"],
        25,
    ),
    ("Z", &["-XX:+UseZGC"], 11),
    ("generational Z", &["-XX:+UseZGC", "-XX:+ZGenerational"], 21),
];

/// Events of a log.
#[derive(Debug, Default, PartialEq)]
struct Logged {
    collections: f64,
    cycles: f64,
    /// Pauses of a concurrent collector that could not go on beside the program. The log may give
    /// such a pause its own id; the JVM counts the pause as a part of its cycle.
    degenerated: f64,
    /// All pauses, of collections and cycles, in ms.
    pauses: Vec<f64>,
}

impl Logged {
    /// With a `concurrent` collector every pause belongs to a cycle: Shenandoah's counter of cycles
    /// has its full collections, too.
    fn read(path: &Path, concurrent: bool) -> Self {
        let log = std::fs::read_to_string(path).expect("a log");
        let mut logged = Logged::default();
        let mut ids = std::collections::HashSet::new();
        for line in log.lines() {
            // `GC(17) Y: Pause Mark Start 0.012ms`
            let Some((id, text)) = line
                .split_once("GC(")
                .and_then(|(_, rest)| rest.split_once(')'))
            else {
                continue;
            };
            // Marking the old generation of Shenandoah is a cycle of its own.
            ids.insert((id, text.contains("(Old)")));
            let (Some(at), Some(length)) = (text.find("Pause "), text.strip_suffix("ms")) else {
                continue;
            };
            let length = length.rsplit(' ').next().and_then(|ms| ms.parse().ok());
            logged.pauses.push(length.expect(line));
            let whole = ["Pause Young", "Pause Initial Mark (", "Pause Full"];
            let is_whole = !concurrent && whole.iter().any(|whole| text[at..].starts_with(whole));
            logged.collections += f64::from(u8::from(is_whole));
            let ended = ["Pause Degenerated", "Pause Full"];
            let is_degenerated = concurrent && ended.iter().any(|one| text[at..].starts_with(one));
            logged.degenerated += f64::from(u8::from(is_degenerated));
        }
        logged.cycles = ids.len() as f64 - logged.collections;
        logged
    }
}

/// Counts of the report of a JVM that began to collect after vmscope attached: number of collections,
/// cycles, pauses of cycles. JVMs wait most of the time: three run at once.
#[test]
fn collections_are_those_of_the_log() {
    if !can_sample() {
        return;
    }
    let all = jdks();
    let bounds = Bounds::default();
    std::thread::scope(|scope| {
        for first in 0..3 {
            let jdks = all.iter().skip(first).step_by(3);
            scope.spawn(|| jdks.for_each(|jdk| are_those_of_the_log(jdk, &bounds)));
        }
    });
    // A JVM that was read between two changes of its counters leaves the length of missed pauses unknown.
    let [known, unknown] = bounds.0.into_inner().expect("no test panicked");
    assert!(
        10 * unknown <= known,
        "{unknown} bounds unknown, {known} known"
    );
}

/// Number of collectors whose longest pause has a bound, and of those without.
#[derive(Default)]
struct Bounds(Mutex<[u32; 2]>);

impl Bounds {
    fn count(&self, is_known: bool) {
        self.0.lock().expect("no test panicked")[usize::from(!is_known)] += 1;
    }
}

fn are_those_of_the_log(jdk: &Jdk, bounds: &Bounds) {
    let release = jdk.release;
    for (name, options, since) in COLLECTORS {
        // JDK 24 and later have generational Z only.
        if release < since || (name == "generational Z" && release > 23) {
            continue;
        }
        let what = format!("{name} of {release}");
        let concurrent = name.contains("Shenandoah") || name.ends_with('Z');
        let folder = Folder::new();
        let (log, file) = (folder.file("gc.log"), folder.file("out.vmscope"));
        let log_option = format!("-Xlog:gc,gc+phases:file={}:none", log.display());
        let options = [options, &["-Xmx96m", &log_option]].concat();
        let Some(mut jvm) = Running::start(jdk, &options) else {
            skipped(&format!("there is no {what} here, or no javac"));
            continue;
        };
        let mut attach = command(["attach", "--quiet", &jvm.child.id().to_string()]);
        attach.arg("--output").arg(&file);
        let working = Working::start(attach);
        // Figures of before the first collection.
        await_trace(&file, "collections are counted", |trace| {
            let mut all = trace.counters.iter();
            all.find(|one| one.section == "Collections").map(|_| ())
        });
        jvm.ask("go", "going");
        await_that("it has collected", || {
            (Logged::read(&log, concurrent).pauses.len() > 60).then_some(())
        });
        jvm.ask("stop", "stopped");
        jvm.ask("full", "done");
        // Concurrent collectors may still run.
        let mut last = Logged::default();
        await_that("it collects no more", || {
            std::thread::sleep(std::time::Duration::from_millis(500));
            let now = Logged::read(&log, concurrent);
            let before = std::mem::replace(&mut last, now);
            (before == last).then_some(())
        });
        working.signal(Signal::SIGINT);
        working.end().code(0);
        let logged = Logged::read(&log, concurrent);
        jvm.end();
        let document = report(&file, &["--json"]).code(0).json();
        check(
            &what,
            &logged,
            &document["vm"][0]["collections"],
            release,
            bounds,
        );
        let text = report(&file, &["--width=100"]).code(0).stdout;
        let share = |line: &str| line.contains("of elapsed time") && line.contains("cycles (");
        assert!(!text.lines().any(share), "{what}: {text}");
    }
}

fn check(what: &str, logged: &Logged, told: &Value, release: u32, bounds: &Bounds) {
    let figure = |value: &Value| value.as_f64();
    let milliseconds = |value: &Value| figure(value).map(|ns| ns / 1e6);
    let counts = ["count", "cycles", "cycle_pauses"].map(|name| figure(&told[name]));
    let time = milliseconds(&told["pause_time_ns"]);
    let rows = list(&told["collectors"]).iter();
    let of_pauses = rows.filter(|row| row["scope"] != "cycle");
    let of_pauses = of_pauses.filter(|row| figure(&row["count"]) > Some(0.0));
    let longest = |name: &str| {
        let all = of_pauses.clone().map(|row| milliseconds(&row[name]));
        all.reduce(|a, b| a.zip(b).map(|(a, b)| a.max(b))).flatten()
    };
    let (known, at_most) = (
        longest("longest_pause_ns"),
        longest("longest_pause_at_most_ns"),
    );
    let most = logged.pauses.iter().copied().fold(0.0, f64::max);
    let sum: f64 = logged.pauses.iter().sum();
    say(&format!(
        "{what}: log {} collections, {} cycles, {} pauses of {sum:.1} ms, longest {most:.3}; told \
         {counts:?}, {time:.1?} ms, longest {known:.3?}, at most {at_most:.3?}",
        logged.collections,
        logged.cycles,
        logged.pauses.len(),
    ));
    let [collections, cycles, pauses] = counts.map(Option::unwrap_or_default);
    assert_eq!(collections, logged.collections, "{what}: {told:#}");
    let least = logged.cycles - logged.degenerated;
    assert!(
        (least..=logged.cycles).contains(&cycles),
        "{what}: {logged:?} {told:#}"
    );
    if what.starts_with("Z") && release == 11 {
        // It counts no pauses.
        assert_eq!(counts[2], None, "{what}");
        return;
    }
    assert_eq!(
        collections + pauses,
        logged.pauses.len() as f64,
        "{what}: {told:#}"
    );
    if what == "Serial of 11" {
        // Its log's young collections contain the full ones.
        return;
    }
    // The VM's times of a pause and its log's differ by its begin and end.
    let time = time.expect("a time");
    let bound = |times: usize| 0.1 * times as f64;
    assert!(
        (time - sum).abs() < 0.1 * sum + bound(logged.pauses.len()),
        "{what}: {told:#}"
    );
    // A wait before the VM's clock begins is in the log alone: in one pause or in many.
    let not_timed = (sum - time).max(0.0);
    bounds.count(at_most.is_some());
    assert!(
        at_most.is_none_or(|at_most| at_most + not_timed > 0.9 * most - bound(1)),
        "{what}: {told:#}"
    );
}
