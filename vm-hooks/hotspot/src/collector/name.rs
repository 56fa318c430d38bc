//! Names of collectors and of collection kinds.

use vmscope_records::CollectionScope;

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

/// Kind of counted events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Text for a report.
    pub name: &'static str,
    /// What an event is.
    pub scope: CollectionScope,
}

impl Kind {
    /// A young collection (in G1 also a mixed one).
    pub const YOUNG: Kind = Kind::new("young", CollectionScope::Whole);
    /// A full collection.
    pub const FULL: Kind = Kind::new("full", CollectionScope::Whole);
    /// A concurrent cycle.
    pub const CYCLE: Kind = Kind::new("cycle", CollectionScope::Cycle);
    /// A cycle in the young generation (generational Z).
    pub const MINOR_CYCLE: Kind = Kind::new("minor cycle", CollectionScope::Cycle);
    /// A cycle in both generations (generational Z).
    pub const MAJOR_CYCLE: Kind = Kind::new("major cycle", CollectionScope::Cycle);
    /// A pause of a concurrent cycle; a cycle has two (G1: remark, cleanup) or more.
    pub const CYCLE_PAUSE: Kind = Kind::pause("cycle pause");
    /// A pause of a minor cycle, or of a major cycle's young part.
    pub const MINOR_CYCLE_PAUSE: Kind = Kind::pause("minor pause");
    /// A pause of a major cycle.
    pub const MAJOR_CYCLE_PAUSE: Kind = Kind::pause("major pause");

    const fn new(name: &'static str, scope: CollectionScope) -> Self {
        Self { name, scope }
    }

    const fn pause(name: &'static str) -> Self {
        Self::new(name, CollectionScope::CyclePause)
    }

    /// Kind by the perf data's name for the collector, JDK 11 to 25. `None` for Shenandoah's
    /// collectors: "partial" counts nothing, "full" pauses and concurrent phases together.
    #[must_use]
    pub fn of(name: &str) -> Option<Kind> {
        let holds = |what: &[&str]| what.iter().any(|what| name.contains(what));
        if name.starts_with("Shenandoah") {
            return None;
        }
        Some(if holds(&["minor"]) {
            Kind::MINOR_CYCLE_PAUSE
        } else if holds(&["major"]) {
            Kind::MAJOR_CYCLE_PAUSE
        } else if holds(&["concurrent", "stop-the-world phases"]) {
            Kind::CYCLE_PAUSE
        } else if holds(&["full", "MSC", "Compact", "MarkSweep"]) {
            Kind::FULL
        } else {
            Kind::YOUNG
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_the_names_of_four_versions() {
        for (kind, names) in [
            (
                Kind::YOUNG,
                "G1 incremental collections|G1 young collection pauses|Copy|ParNew|\
                 Serial young collection pauses|PSScavenge|Parallel young collection pauses",
            ),
            (
                Kind::FULL,
                "G1 stop-the-world full collections|G1 full collection pauses|MSC|\
                 Serial full collection pauses|PSParallelCompact|PSMarkSweep|\
                 Parallel full collection pauses",
            ),
            (
                Kind::CYCLE_PAUSE,
                "G1 stop-the-world phases|G1 concurrent cycle pauses|\
                 Z concurrent cycle pauses|CMS stop-the-world phases",
            ),
            (Kind::MINOR_CYCLE_PAUSE, "ZGC minor collection pauses"),
            (Kind::MAJOR_CYCLE_PAUSE, "ZGC major collection pauses"),
        ] {
            for name in names.split('|') {
                assert_eq!(Kind::of(name), Some(kind), "{name}");
            }
        }
        assert_eq!(Kind::of("Shenandoah full"), None);
    }
}
