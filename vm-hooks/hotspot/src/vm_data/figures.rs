//! Figures of a JVM, reported about once a second.

use vmscope_process::Poll;
use vmscope_records::CounterMeaning::{self, Gauge, Total};

use crate::collector::Collections;
use crate::perf_data::{PerfData, Unit};

/// One line per figure: section, entries to add up, name, meaning.
type Row = (
    &'static str,
    &'static [&'static str],
    &'static str,
    CounterMeaning,
);

const HEAP: &str = "Heap";
const SAFEPOINTS: &str = "Safepoints";
const COMPILATIONS: &str = "Compilations";
const CLASSES: &str = "Classes";
const THREADS: &str = "Java threads";

const ROWS: &[Row] = &[
    (HEAP, &["sun.gc.metaspace.used"], "metaspace used", Gauge),
    (
        HEAP,
        &["sun.gc.metaspace.capacity"],
        "metaspace committed",
        Gauge,
    ),
    (
        HEAP,
        &["sun.gc.compressedclassspace.used"],
        "class space used",
        Gauge,
    ),
    (
        HEAP,
        &["sun.gc.compressedclassspace.capacity"],
        "class space committed",
        Gauge,
    ),
    (SAFEPOINTS, &["sun.rt.safepoints"], "safepoints", Total),
    (
        SAFEPOINTS,
        &["sun.rt.safepointTime"],
        "time at safepoints",
        Total,
    ),
    (
        SAFEPOINTS,
        &["sun.rt.safepointSyncTime"],
        "time to reach them",
        Total,
    ),
    (
        COMPILATIONS,
        &["sun.ci.totalCompiles"],
        "compilations",
        Total,
    ),
    (COMPILATIONS, &["java.ci.totalTime"], "time", Total),
    (
        COMPILATIONS,
        &["sun.ci.standardCompiles"],
        "of whole methods",
        Total,
    ),
    (
        COMPILATIONS,
        &["sun.ci.osrCompiles"],
        "for on-stack replacement",
        Total,
    ),
    (COMPILATIONS, &["sun.ci.totalBailouts"], "given up", Total),
    (
        COMPILATIONS,
        &["sun.ci.totalInvalidates"],
        "invalidated",
        Total,
    ),
    (
        COMPILATIONS,
        &["sun.ci.nmethodCodeSize"],
        "code made",
        Total,
    ),
    (
        CLASSES,
        &["java.cls.loadedClasses", "java.cls.sharedLoadedClasses"],
        "loaded",
        Total,
    ),
    (
        CLASSES,
        &["java.cls.unloadedClasses", "java.cls.sharedUnloadedClasses"],
        "unloaded",
        Total,
    ),
    (THREADS, &["java.threads.live"], "running", Gauge),
    (
        THREADS,
        &["java.threads.daemon"],
        "daemons among them",
        Gauge,
    ),
    (THREADS, &["java.threads.started"], "started", Total),
];

/// Reports the figures; `all` is the number of collections of all kinds.
#[expect(clippy::cast_precision_loss, reason = "figures for a report")]
pub(super) fn tell(data: &PerfData, collections: &Collections, all: Option<u32>, poll: &mut Poll) {
    let frequency = data.long("sun.os.hrt.frequency").filter(|hz| *hz > 0);
    let per_tick = 1e9 / frequency.unwrap_or(1_000_000_000) as f64;
    tell_spaces(data, collections, poll);
    collections.tell_totals(data, per_tick, poll);
    if let Some(all) = all {
        poll.counter(
            "Collections",
            "cycles and collections",
            "",
            Total,
            f64::from(all),
        );
    }
    for (section, entries, name, meaning) in ROWS {
        let mut sum = None;
        let mut unit = Unit::Other;
        for entry in *entries {
            let Some(slot) = data.layout().slot(entry) else {
                continue;
            };
            unit = slot.unit;
            sum = Some(sum.unwrap_or(0.0) + data.long_at(slot) as f64);
        }
        let Some(sum) = sum else { continue };
        let (unit, sum) = match unit {
            Unit::Bytes => ("bytes", sum),
            Unit::Ticks => ("ns", sum * per_tick),
            Unit::Events | Unit::Other => ("", sum),
        };
        poll.counter(section, name, unit, *meaning, sum);
    }
}

/// Reports the number of unreadable compilations, which were just changing.
#[expect(clippy::cast_precision_loss, reason = "figures for a report")]
pub(super) fn tell_unreadable(times: u64, poll: &mut Poll) {
    let name = "looks at compilers that were just changing";
    poll.counter(COMPILATIONS, name, "", Total, times as f64);
}

/// Heap spaces: used bytes at the VM's last update, for most collectors the end of a
/// collection.
#[expect(clippy::cast_precision_loss, reason = "figures for a report")]
fn tell_spaces(data: &PerfData, collections: &Collections, poll: &mut Poll) {
    let mut gauge = |name: &str, value: u64| {
        poll.counter(HEAP, name, "bytes", Gauge, value as f64);
    };
    let (mut used, mut committed) = (0_u64, 0_u64);
    for space in collections.spaces() {
        let now = space.now(data);
        // G1's first survivor space exists in name only (capacity 0).
        if space.maximum(data) == Some(0) {
            continue;
        }
        used = used.saturating_add(now.after.unwrap_or_default());
        committed = committed.saturating_add(now.capacity.unwrap_or_default());
        for (what, value) in [
            ("used", now.after),
            ("committed", now.capacity),
            ("at most", space.maximum(data)),
        ] {
            if let Some(value) = value {
                gauge(&format!("{} {what}", now.name), value);
            }
        }
    }
    if !collections.spaces().is_empty() {
        gauge("heap used", used);
        gauge("heap committed", committed);
    }
}
