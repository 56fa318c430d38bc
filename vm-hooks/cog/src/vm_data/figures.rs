//! Figures of the report's sections, in the order of VMProfiler.

use vmscope_process::Poll;
use vmscope_records::CounterMeaning::{self, Gauge, Total};

use super::look::Look;

const MEMORY: &str = "Memory";
const GCS: &str = "GCs";
const CODE: &str = "Compiled Code Compactions";
const EVENTS: &str = "Events";

/// Bytes of the bridge that ends each segment of old space: two object headers.
const BRIDGE: u64 = 16;

/// Unit of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Micros,
    Count,
}

impl Unit {
    /// Name of the unit in reports, and its number in one unit of the variable.
    pub fn told(self) -> (&'static str, f64) {
        match self {
            Unit::Bytes => ("bytes", 1.0),
            Unit::Micros => ("ns", 1000.0),
            Unit::Count => ("", 1.0),
        }
    }
}

/// Figures: section, name, unit, meaning, variable.
#[rustfmt::skip]
const FIGURES: &[(&str, &str, Unit, CounterMeaning, &str)] = &[
    (MEMORY, "free", Unit::Bytes, Gauge, "totalFreeOldSpace"),
    (MEMORY, "allocated", Unit::Bytes, Total, "statAllocatedBytes"),
    (MEMORY, "segments", Unit::Count, Gauge, "numSegments"),
    (MEMORY, "grown", Unit::Count, Total, "statGrowMemory"),
    (MEMORY, "shrunk", Unit::Count, Total, "statShrinkMemory"),
    (GCS, "full", Unit::Count, Total, "statFullGCs"),
    (GCS, "full time", Unit::Micros, Total, "statFullGCUsecs"),
    (GCS, "mark time", Unit::Micros, Total, "statMarkUsecs"),
    (GCS, "sweep time", Unit::Micros, Total, "statSweepUsecs"),
    (GCS, "compaction time", Unit::Micros, Total, "statCompactionUsecs"),
    (GCS, "scavenges", Unit::Count, Total, "statScavenges"),
    (GCS, "scavenge time", Unit::Micros, Total, "statScavengeGCUsecs"),
    (GCS, "tenures", Unit::Count, Total, "statTenures"),
    (GCS, "root table", Unit::Count, Gauge, "rememberedSetSize"),
    (GCS, "root table overflows", Unit::Count, Total, "statRootTableOverflows"),
    (CODE, "compactions", Unit::Count, Total, "statCodeCompactionCount"),
    (CODE, "compaction time", Unit::Micros, Total, "statCodeCompactionUsecs"),
    (EVENTS, "Process switches", Unit::Count, Total, "statProcessSwitch"),
    (EVENTS, "ioProcessEvents calls", Unit::Count, Total, "statIOProcessEvents"),
    (EVENTS, "Interrupt checks", Unit::Count, Total, "statForceInterruptCheck"),
    (EVENTS, "Event checks", Unit::Count, Total, "statCheckForEvents"),
    (EVENTS, "Stack overflows", Unit::Count, Total, "statStackOverflow"),
    (EVENTS, "Stack page divorces", Unit::Count, Total, "statStackPageDivorce"),
    (EVENTS, "idle time", Unit::Micros, Total, "statIdleUsecs"),
];

/// Bytes of old space, without bridges.
pub(super) fn old_space(look: &Look) -> Option<u64> {
    let bridges = look.get("numSegments")?.checked_mul(BRIDGE)?;
    look.get("totalHeapSizeIncludingBridges")?
        .checked_sub(bridges)
}

/// Reports the figures.
#[expect(clippy::cast_precision_loss, reason = "figures for a report")]
pub(super) fn tell(look: &Look, poll: &mut Poll) {
    if let Some(bytes) = old_space(look) {
        poll.counter(MEMORY, "old", "bytes", Gauge, bytes as f64);
    }
    for (section, name, unit, meaning, variable) in FIGURES {
        if let Some(value) = look.get(variable) {
            let (unit, factor) = unit.told();
            poll.counter(section, name, unit, *meaning, value as f64 * factor);
        }
    }
}
