//! Figures of a JVM, reported about once a second.

use vmscope_process::Poll;
use vmscope_records::CounterMeaning::{self, Gauge, Total};

use crate::collector::Collections;
use crate::perf_data::{PerfData, Slot, Unit};

const HEAP: &str = "Heap";
const COMPILATIONS: &str = "Compilations";

/// Figures: section, name, meaning, entry of the perf data (`+`: entries to add up).
#[rustfmt::skip]
const FIGURES: &[(&str, &str, CounterMeaning, &str)] = &[
    (HEAP, "metaspace used", Gauge, "sun.gc.metaspace.used"),
    (HEAP, "metaspace committed", Gauge, "sun.gc.metaspace.capacity"),
    (HEAP, "class space used", Gauge, "sun.gc.compressedclassspace.used"),
    (HEAP, "class space committed", Gauge, "sun.gc.compressedclassspace.capacity"),
    ("Safepoints", "safepoints", Total, "sun.rt.safepoints"),
    ("Safepoints", "time at safepoints", Total, "sun.rt.safepointTime"),
    ("Safepoints", "time to reach safepoints", Total, "sun.rt.safepointSyncTime"),
    (COMPILATIONS, "compilations", Total, "sun.ci.totalCompiles"),
    (COMPILATIONS, "time", Total, "java.ci.totalTime"),
    (COMPILATIONS, "standard compilations", Total, "sun.ci.standardCompiles"),
    (COMPILATIONS, "on-stack replacements", Total, "sun.ci.osrCompiles"),
    (COMPILATIONS, "bailouts", Total, "sun.ci.totalBailouts"),
    (COMPILATIONS, "invalidated", Total, "sun.ci.totalInvalidates"),
    (COMPILATIONS, "code generated", Total, "sun.ci.nmethodCodeSize"),
    ("Classes", "loaded", Total, "java.cls.loadedClasses+java.cls.sharedLoadedClasses"),
    ("Classes", "unloaded", Total, "java.cls.unloadedClasses+java.cls.sharedUnloadedClasses"),
    ("Java threads", "running", Gauge, "java.threads.live"),
    ("Java threads", "daemons running", Gauge, "java.threads.daemon"),
    ("Java threads", "started", Total, "java.threads.started"),
];

/// Reports the figures.
#[expect(clippy::cast_precision_loss, reason = "figures for a report")]
pub(super) fn tell(data: &PerfData, collections: &Collections, poll: &mut Poll) {
    let frequency = data.long("sun.os.hrt.frequency").filter(|hz| *hz > 0);
    let per_tick = 1e9 / frequency.unwrap_or(1_000_000_000) as f64;
    tell_spaces(data, collections, poll);
    collections.tell_totals(per_tick, poll);
    for (section, name, meaning, entries) in FIGURES {
        let slots = entries
            .split('+')
            .filter_map(|entry| data.layout().slot(entry));
        let slots: Vec<Slot> = slots.collect();
        let Some(first) = slots.first() else { continue };
        let sum: f64 = slots.iter().map(|slot| data.long_at(*slot) as f64).sum();
        let (unit, sum) = match first.unit {
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
    let name = "failed observations (compiler state was changing)";
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
            ("maximum", space.maximum(data)),
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
