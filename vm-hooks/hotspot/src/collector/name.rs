//! Names of collectors and of collection kinds.

use crate::flags::Flags;
use crate::perf_data::PerfData;

/// Flags that choose a collector, with the collector's usual name.
const FLAGS: [(&str, &str); 7] = [
    ("UseG1GC", "G1"),
    ("UseParallelGC", "Parallel"),
    ("UseSerialGC", "Serial"),
    ("UseZGC", "Z"),
    ("UseShenandoahGC", "Shenandoah"),
    ("UseConcMarkSweepGC", "CMS"),
    ("UseEpsilonGC", "Epsilon"),
];

/// Names of the perf data's policies.
const POLICIES: [(&str, &str); 4] = [
    ("GarbageFirst", "G1"),
    ("ParScav:MSC", "Parallel"),
    ("Copy:MSC", "Serial"),
    ("ParNew:CMS", "CMS"),
];

/// The VM's collector, from its flags, else from its perf data; `None` if unknown.
#[must_use]
pub fn collector_of(flags: Option<&Flags>, data: Option<&PerfData>) -> Option<&'static str> {
    if let Some(flags) = flags {
        let chosen = FLAGS.iter().find(|(flag, _)| flags.is_on(flag));
        if let Some((_, name)) = chosen {
            // JDK 21 has both flags; 24 and later have only this one.
            let generational = *name == "Z" && flags.is_on("ZGenerational");
            return Some(if generational { "generational Z" } else { name });
        }
    }
    let data = data?;
    if let Some(policy) = data.text("sun.gc.policy.name") {
        let known = POLICIES.iter().find(|(known, _)| *known == policy);
        return known.map(|(_, name)| *name);
    }
    // Z and Shenandoah have no policy.
    (0..super::counted::MOST_COLLECTORS)
        .filter_map(|number| data.text(&format!("sun.gc.collector.{number}.name")))
        .find_map(|name| match name.as_str() {
            name if name.starts_with('Z') => Some("Z"),
            name if name.starts_with("Shenandoah") => Some("Shenandoah"),
            _ => None,
        })
}

/// Kind of the events that a collector of the perf data counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pause of a young collection (in G1 also of a mixed one).
    Young,
    /// Pause of a full collection.
    Full,
    /// Pause of a concurrent cycle; a cycle has two (G1: remark, cleanup) or three.
    CyclePause,
    /// Pause of a cycle in the young generation (generational Z).
    MinorCyclePause,
    /// Pause of a cycle in both generations (generational Z).
    MajorCyclePause,
    /// Pause or concurrent phase of Shenandoah, which counts both together.
    PauseOrPhase,
}

impl Kind {
    /// Kind by the VM's name for the collector, JDK 11 to 25.
    #[must_use]
    pub fn of(name: &str) -> Kind {
        let holds = |what: &[&str]| what.iter().any(|what| name.contains(what));
        if name.starts_with("Shenandoah") {
            Kind::PauseOrPhase
        } else if holds(&["minor"]) {
            Kind::MinorCyclePause
        } else if holds(&["major"]) {
            Kind::MajorCyclePause
        } else if holds(&["concurrent", "stop-the-world phases"]) {
            Kind::CyclePause
        } else if holds(&["full", "MSC", "Compact", "MarkSweep"]) {
            Kind::Full
        } else {
            Kind::Young
        }
    }

    /// Text for a report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Young => "young",
            Kind::Full => "full",
            Kind::CyclePause => "pause of a concurrent cycle",
            Kind::MinorCyclePause => "pause of a minor cycle",
            Kind::MajorCyclePause => "pause of a major cycle",
            Kind::PauseOrPhase => "pause or concurrent phase",
        }
    }

    /// Whether the kind is a whole collection rather than a part.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        matches!(self, Kind::Young | Kind::Full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_the_names_of_four_versions() {
        for (kind, names) in [
            (
                Kind::Young,
                "G1 incremental collections|G1 young collection pauses|Copy|ParNew|\
                 Serial young collection pauses|PSScavenge|Parallel young collection pauses",
            ),
            (
                Kind::Full,
                "G1 stop-the-world full collections|G1 full collection pauses|MSC|\
                 Serial full collection pauses|PSParallelCompact|PSMarkSweep|\
                 Parallel full collection pauses",
            ),
            (
                Kind::CyclePause,
                "G1 stop-the-world phases|G1 concurrent cycle pauses|\
                 Z concurrent cycle pauses|CMS stop-the-world phases",
            ),
            (Kind::MinorCyclePause, "ZGC minor collection pauses"),
            (Kind::MajorCyclePause, "ZGC major collection pauses"),
            (Kind::PauseOrPhase, "Shenandoah partial|Shenandoah full"),
        ] {
            for name in names.split('|') {
                assert_eq!(Kind::of(name), kind, "{name}");
            }
        }
    }
}
