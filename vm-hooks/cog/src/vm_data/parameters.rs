//! The VM's parameters: what an image asks by number (primitive 254, `Smalltalk vm parameterAt:`).
//!
//! Parameters are missing that the VM calculates when it is asked.

use vmscope_process::Poll;
use vmscope_records::CounterMeaning::{self, Gauge, Total};

use super::figures::{Unit, old_space};
use super::look::Look;

const SECTION: &str = "VM Parameters";

/// Parameters: number, name, unit, meaning, variable. Times of the VM's answers are milliseconds or
/// microseconds; here all are nanoseconds.
#[rustfmt::skip]
const PARAMETERS: &[(u32, &str, Unit, CounterMeaning, &str)] = &[
    (7, "full collections", Unit::Count, Total, "statFullGCs"),
    (8, "time of full collections", Unit::Micros, Total, "statFullGCUsecs"),
    (9, "scavenges", Unit::Count, Total, "statScavenges"),
    (10, "time of scavenges", Unit::Micros, Total, "statScavengeGCUsecs"),
    (11, "tenured objects", Unit::Count, Total, "statTenures"),
    (16, "idle time", Unit::Micros, Total, "statIdleUsecs"),
    (18, "time of heap compactions", Unit::Micros, Total, "statCompactionUsecs"),
    (21, "root table entries", Unit::Count, Gauge, "rememberedSetSize"),
    (22, "root table overflows", Unit::Count, Total, "statRootTableOverflows"),
    (23, "memory kept for the VM", Unit::Bytes, Gauge, "extraVMMemory"),
    (24, "shrink threshold", Unit::Bytes, Gauge, "shrinkThreshold"),
    (25, "growth headroom", Unit::Bytes, Gauge, "growHeadroom"),
    (26, "heartbeat period in ms", Unit::Count, Gauge, "beatMilliseconds"),
    (27, "objects marked by the last full collection", Unit::Count, Gauge, "statMarkCount"),
    (31, "heap growths", Unit::Count, Total, "statGrowMemory"),
    (32, "heap shrinkages", Unit::Count, Total, "statShrinkMemory"),
    (34, "allocated bytes up to the last collection", Unit::Bytes, Total, "statAllocatedBytes"),
    (35, "survivors of the last scavenge", Unit::Count, Gauge, "statSurvivorCount"),
    (38, "time of the last scavenge", Unit::Micros, Gauge, "statSGCDeltaUsecs"),
    (42, "stack pages", Unit::Count, Gauge, "numStackPages"),
    (43, "stack pages of the next start", Unit::Count, Gauge, "desiredNumStackPages"),
    (44, "eden size", Unit::Bytes, Gauge, "edenBytes"),
    (45, "eden size of the next start", Unit::Bytes, Gauge, "desiredEdenBytes"),
    (46, "code zone size", Unit::Bytes, Gauge, "cogCodeSize"),
    (47, "code zone size of the next start", Unit::Bytes, Gauge, "desiredCogCodeSize"),
    (52, "root table capacity", Unit::Count, Gauge, "rememberedSetLimit"),
    (53, "segments of old space", Unit::Count, Gauge, "numSegments"),
    (54, "free old space", Unit::Bytes, Gauge, "totalFreeOldSpace"),
    (56, "process switches", Unit::Count, Total, "statProcessSwitch"),
    (57, "ioProcessEvents calls", Unit::Count, Total, "statIOProcessEvents"),
    (58, "forced interrupt checks", Unit::Count, Total, "statForceInterruptCheck"),
    (59, "event checks", Unit::Count, Total, "statCheckForEvents"),
    (60, "stack page overflows", Unit::Count, Total, "statStackOverflow"),
    (61, "stack page divorces", Unit::Count, Total, "statStackPageDivorce"),
    (62, "code compactions", Unit::Count, Total, "statCodeCompactionCount"),
    (63, "time of code compactions", Unit::Micros, Total, "statCodeCompactionUsecs"),
    (64, "entries of the code zone", Unit::Count, Gauge, "methodCount"),
    (66, "stack page size", Unit::Bytes, Gauge, "bytesPerPage"),
    (67, "maximum old space, 0 without", Unit::Bytes, Gauge, "maxOldSpaceSize"),
    (69, "most live stack pages at a scavenge", Unit::Count, Gauge, "statMaxPageCountWhenMapping"),
    (72, "mark time", Unit::Micros, Total, "statMarkUsecs"),
    (73, "sweep time", Unit::Micros, Total, "statSweepUsecs"),
    (74, "longest time to get a segment", Unit::Micros, Gauge, "statMaxAllocSegmentTime"),
];

/// Parameters of the report's header.
const FACTS: [(&str, &str); 3] = [
    ("eden size", "edenBytes"),
    ("stack pages", "numStackPages"),
    ("code size", "cogCodeSize"),
];

/// Reports the parameters of the header.
pub(super) fn tell_facts(look: &Look, poll: &mut Poll) {
    for (name, variable) in FACTS {
        if let Some(value) = look.get(variable) {
            poll.fact(name, value.to_string());
        }
    }
}

/// Reports all parameters.
#[expect(clippy::cast_precision_loss, reason = "figures for a report")]
pub(super) fn tell(look: &Look, poll: &mut Poll) {
    let mut all: Vec<(u32, &str, &str, CounterMeaning, f64)> = Vec::new();
    for (number, name, unit, meaning, variable) in PARAMETERS {
        if let Some(value) = look.get(variable) {
            let (unit, factor) = unit.told();
            all.push((*number, name, unit, *meaning, value as f64 * factor));
        }
    }
    if let Some(bytes) = old_space(look) {
        all.push((1, "old space", "bytes", Gauge, bytes as f64));
    }
    // A 32-bit floating-point number.
    let ratio = look.get("heapGrowthToSizeGCRatio").map(u32::try_from);
    if let Some(Ok(ratio)) = ratio {
        let name = "heap growth that causes a full collection";
        all.push((55, name, "", Gauge, f64::from(f32::from_bits(ratio))));
    }
    let sum = look.get("statPageCountWhenMappingSum");
    let times = look.get("statNumMaps").filter(|times| *times > 0);
    if let Some((sum, times)) = sum.zip(times) {
        let mean = sum as f64 / times as f64;
        all.push((68, "mean live stack pages at scavenges", "", Gauge, mean));
    }
    all.sort_by_key(|(number, ..)| *number);
    for (number, name, unit, meaning, value) in all {
        poll.counter(SECTION, &format!("{number} {name}"), unit, meaning, value);
    }
}
