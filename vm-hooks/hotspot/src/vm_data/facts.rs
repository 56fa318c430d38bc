//! Facts of a JVM for a report's head.

use vmscope_target::Look;

use crate::collector::collector_of;
use crate::flags::Flags;
use crate::perf_data::PerfData;

/// More flags than this are not listed.
const MOST_FLAGS: usize = 40;

/// Tells what is known.
pub(super) fn tell(flags: Option<&Flags>, data: Option<&PerfData>, look: &mut Look) {
    let text = |name: &str| data.and_then(|data| data.text(name));
    let parts = ["name", "version", "info"];
    let parts = parts.map(|part| text(&format!("java.property.java.vm.{part}")));
    if let [Some(name), Some(version), info] = parts {
        let info = info.map(|info| format!(" ({info})")).unwrap_or_default();
        look.fact("JVM", format!("{name} {version}{info}"));
    }
    if let Some(collector) = collector_of(flags, data) {
        look.fact("collector", collector.to_owned());
    }
    let maximum = flags.and_then(|flags| flags.unsigned("MaxHeapSize"));
    if let Some(bytes) = maximum {
        look.fact("heap, at most", readable_bytes(bytes));
    }
    if let Some(arguments) = text("java.rt.vmArgs") {
        look.fact("JVM arguments", arguments);
    }
    let Some(flags) = flags else { return };
    let set = flags.set_by_user();
    if !set.is_empty() {
        let listed = set.iter().take(MOST_FLAGS);
        let mut listed: Vec<String> = listed.map(|(name, flag)| flag.option(name)).collect();
        if set.len() > MOST_FLAGS {
            listed.push(format!("and {} more", set.len() - MOST_FLAGS));
        }
        look.fact("flags that were set", listed.join(" "));
    }
    if flags.get("UsePerfData").is_some() && !flags.is_on("UsePerfData") {
        look.fact("perf data", "off".to_owned());
    }
}

/// In whole units, where it is that.
fn readable_bytes(bytes: u64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_whole_units() {
        assert_eq!(readable_bytes(128 << 20), "128 MiB");
        assert_eq!(readable_bytes(2 << 30), "2 GiB");
        assert_eq!(readable_bytes((2 << 30) + 1024), "2097153 KiB");
        assert_eq!(readable_bytes(1025), "1025 bytes");
    }
}
