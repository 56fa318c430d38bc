//! Facts about a JVM for a report's head.

use vmscope_process::Poll;

use crate::collector::collector_of;
use crate::flags::Flags;
use crate::perf_data::PerfData;

/// Maximum number of listed flags.
const MOST_FLAGS: usize = 40;

/// Reports the known facts.
pub(super) fn tell(flags: Option<&Flags>, data: Option<&PerfData>, poll: &mut Poll) {
    let text = |name: &str| data.and_then(|data| data.text(name));
    let parts = ["name", "version", "info"];
    let parts = parts.map(|part| text(&format!("java.property.java.vm.{part}")));
    if let [Some(name), Some(version), info] = parts {
        let info = info.map(|info| format!(" ({info})")).unwrap_or_default();
        poll.fact("JVM", format!("{name} {version}{info}"));
    }
    if let Some(collector) = collector_of(flags, data) {
        poll.fact("collector", collector.to_owned());
    }
    let maximum = flags.and_then(|flags| flags.unsigned("MaxHeapSize"));
    if let Some(bytes) = maximum {
        poll.fact("maximum heap", readable_bytes(bytes));
    }
    let arguments = text("java.rt.vmArgs");
    if let Some(arguments) = &arguments {
        poll.fact("JVM arguments", arguments.clone());
    }
    let Some(flags) = flags else { return };
    let arguments = arguments.unwrap_or_default();
    let mut set = flags.set_by_user();
    // Flags from the environment, files and tools.
    set.retain(|(name, _)| !is_argument(name, &arguments));
    if !set.is_empty() {
        let listed = set.iter().take(MOST_FLAGS);
        let mut listed: Vec<String> = listed.map(|(name, flag)| flag.option(name)).collect();
        if set.len() > MOST_FLAGS {
            listed.push(format!("and {} more", set.len() - MOST_FLAGS));
        }
        poll.fact(
            if arguments.is_empty() {
                "flags"
            } else {
                "flags from environment or files"
            },
            listed.join(" "),
        );
    }
    if flags.get("UsePerfData").is_some() && !flags.is_on("UsePerfData") {
        poll.fact("perf data", "off".to_owned());
    }
}

/// Launcher options and their flags.
const OPTIONS: [(&str, &[&str]); 6] = [
    ("-Xmx", &["MaxHeapSize", "SoftMaxHeapSize"]),
    ("-Xms", &["InitialHeapSize", "MinHeapSize"]),
    ("-Xmn", &["NewSize", "MaxNewSize"]),
    ("-Xss", &["ThreadStackSize"]),
    (
        "-Xint",
        &[
            "ProfileInterpreter",
            "TieredCompilation",
            "UseInterpreter",
            "UseCompiler",
            "UseLoopCounter",
            "AlwaysCompileLoopMethods",
            "UseOnStackReplacement",
        ],
    ),
    (
        "-Xcomp",
        &["BackgroundCompilation", "Inline", "ClipInlining"],
    ),
];

/// Whether the command line already shows a flag.
fn is_argument(flag: &str, arguments: &str) -> bool {
    arguments.split_whitespace().any(|argument| {
        let of_option = |(option, flags): &(&str, &[&str])| {
            argument.starts_with(option) && flags.contains(&flag)
        };
        let named = argument.strip_prefix("-XX:").is_some_and(|rest| {
            let rest = rest.trim_start_matches(['+', '-']);
            rest.split('=').next() == Some(flag)
        });
        named || OPTIONS.iter().any(of_option)
    })
}

/// In whole units if divisible.
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
    fn what_the_arguments_tell_is_not_told_again() {
        let arguments = "-Xmx256m -XX:+UseZGC -XX:Tier4Limit=5 --add-opens=x -Dy=-XX:Z";
        for flag in ["MaxHeapSize", "UseZGC", "Tier4Limit"] {
            assert!(is_argument(flag, arguments), "{flag}");
        }
        for flag in ["UseZ", "InitialHeapSize", "DebugNonSafepoints", "Z", ""] {
            assert!(!is_argument(flag, arguments), "{flag}");
        }
    }

    #[test]
    fn sizes_are_told_in_whole_units() {
        assert_eq!(readable_bytes(128 << 20), "128 MiB");
        assert_eq!(readable_bytes(2 << 30), "2 GiB");
        assert_eq!(readable_bytes((2 << 30) + 1024), "2097153 KiB");
        assert_eq!(readable_bytes(1025), "1025 bytes");
    }
}
