//! The VM's counters of collections, compilations and classes.

use crate::perf_data::PerfData;
use crate::vm_data::VmData;

use super::zone::Signs;

/// Number of collectors with counters: the young generation's comes first, if the VM has generations.
const COLLECTORS: usize = 3;

/// Collectors that unload classes while the program runs.
const CONCURRENT: [&str; 2] = ["UseZGC", "UseShenandoahGC"];

/// Pauses of a cycle of G1 that its third collector counts: remark and cleanup. Only the first unloads classes.
const G1_PAUSES: i64 = 2;

/// Minimum number of pauses in a cycle of a concurrent collector.
const PAUSES: i64 = 3;

/// Numbers of classes that the VM has loaded and unloaded so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassCounts {
    pub loaded: i64,
    pub unloaded: i64,
}

/// Counters of all collectors.
struct Collectors {
    /// Number of collections begun.
    begun: [i64; COLLECTORS],
    is_collecting: [bool; COLLECTORS],
    is_concurrent: bool,
}

impl Collectors {
    fn read(data: &VmData) -> Option<Self> {
        let flags = data.flags();
        let is_on = |name: &&str| flags.is_none_or(|flags| flags.is_on(name));
        let counters = data.perf_data()?;
        let long = |collector: usize, name: &str| {
            let name = format!("sun.gc.collector.{collector}.{name}");
            counters.long(&name).unwrap_or(0)
        };
        Some(Collectors {
            begun: std::array::from_fn(|at| long(at, "invocations")),
            is_collecting: std::array::from_fn(|at| {
                long(at, "lastEntryTime") > long(at, "lastExitTime")
            }),
            is_concurrent: CONCURRENT.iter().any(is_on),
        })
    }

    /// First collector that unloads classes; it also frees code.
    fn first_unloading(&self) -> usize {
        usize::from(!self.is_concurrent)
    }

    /// Number of collections of the collectors from `first` on; `None` during a collection.
    fn collections(&self, first: usize) -> Option<i64> {
        let mut running = self.is_collecting.iter().skip(first);
        let sum = |all: i64, one: &i64| all.wrapping_add(*one);
        (!running.any(|is_it| *is_it)).then(|| self.begun.iter().skip(first).fold(0, sum))
    }
}

/// Unloading of classes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unloading {
    /// Number of unloaded classes.
    pub classes: i64,
    /// Collections of the whole heap, and pauses of concurrent cycles, that have begun.
    pub full: i64,
    pub pauses: i64,
    /// Whether the cycles are those of a concurrent collector, not G1's.
    pub is_concurrent: bool,
    /// Whether such a collection is running.
    pub is_running: bool,
}

impl Unloading {
    /// Counters of a VM; `None` if it exports none.
    pub fn read(data: &VmData) -> Option<Self> {
        let collectors = Collectors::read(data)?;
        let [young, full, others] = collectors.begun;
        let is_concurrent = collectors.is_concurrent;
        let (full, pauses) = match is_concurrent {
            true => (0, young.wrapping_add(full).wrapping_add(others)),
            false => (full, others),
        };
        let ended = collectors.collections(collectors.first_unloading());
        Some(Unloading {
            classes: class_counts(data.perf_data()?)?.unloaded,
            full,
            pauses,
            is_concurrent,
            is_running: ended.is_none(),
        })
    }

    /// Counters of a VM without collections, for tests.
    #[cfg(test)]
    pub fn of_classes(classes: i64) -> Self {
        Unloading {
            classes,
            ..Unloading::default()
        }
    }

    /// Whether the unloading that made this number of classes may still be running, at the first or a
    /// later reading of the number: concurrent collectors unload between pauses.
    pub fn may_go_on(&self, is_first: bool) -> bool {
        self.is_running || (self.is_concurrent && is_first)
    }

    /// Whether a collection that may unload classes has begun since an earlier reading.
    pub fn has_begun_since(&self, before: &Unloading) -> bool {
        (self.full, self.pauses) != (before.full, before.pauses)
    }

    /// Whether the VM has unloaded classes since an earlier reading, or may do so now.
    pub fn may_have_unloaded_since(&self, before: &Unloading) -> bool {
        self.classes != before.classes || self.has_begun_since(before)
    }

    /// Maximum number of times that the VM has unloaded classes since an earlier reading.
    pub fn most_since(&self, before: &Unloading) -> i64 {
        let full = self.full.wrapping_sub(before.full);
        let pauses = self.pauses.wrapping_sub(before.pauses);
        let in_cycle = if self.is_concurrent {
            PAUSES
        } else {
            G1_PAUSES
        };
        let cycles = pauses.saturating_add(in_cycle - 1) / in_cycle;
        (full.saturating_add(cycles)).saturating_add(before.is_running.into())
    }
}

/// VM counters of events that create or free code.
pub(super) fn signs(data: &VmData, major: u32) -> Option<Signs> {
    let collectors = Collectors::read(data)?;
    let counters = data.perf_data()?;
    let unloads = collectors.collections(collectors.first_unloading());
    let unloaded = class_counts(counters).map_or(0, |counts| counts.unloaded);
    Some(Signs {
        unloadings: unloads.map(|unloads| unloads.wrapping_add(unloaded)),
        collections: collectors.collections(0),
        compilations: counters.long("sun.ci.totalCompiles")?,
        // Up to JDK 19, a sweeper frees code at any time (JDK-8290025).
        are_deaths: major >= 20 && !collectors.is_concurrent,
    })
}

/// Numbers of classes loaded and unloaded by the VM.
pub(super) fn class_counts(counters: &PerfData) -> Option<ClassCounts> {
    let sum = |own: &str, shared: &str| {
        let shared = counters.long(shared).unwrap_or(0);
        Some(counters.long(own)?.wrapping_add(shared))
    };
    Some(ClassCounts {
        loaded: sum("java.cls.loadedClasses", "java.cls.sharedLoadedClasses")?,
        unloaded: sum("java.cls.unloadedClasses", "java.cls.sharedUnloadedClasses")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_that_may_have_unloaded_are_counted() {
        let before = Unloading {
            full: 7,
            pauses: 4,
            ..Unloading::default()
        };
        let most = |full, pauses, was_running| {
            let now = Unloading {
                full,
                pauses,
                ..before
            };
            now.most_since(&Unloading {
                is_running: was_running,
                ..before
            })
        };
        assert_eq!(
            [most(7, 4, false), most(8, 4, false), most(9, 4, false)],
            [0, 1, 2]
        );
        // Two pauses belong to one cycle, or to two: only one of them unloads.
        assert_eq!(
            [most(7, 5, false), most(7, 6, false), most(7, 7, false)],
            [1, 1, 2]
        );
        // A collection during the earlier reading may have unloaded later.
        assert_eq!(
            [most(7, 4, true), most(8, 4, true), most(8, 5, true)],
            [1, 2, 3]
        );
        let running = Unloading {
            is_running: true,
            ..before
        };
        let next = Unloading { full: 8, ..before };
        assert!(!before.has_begun_since(&running) && next.has_begun_since(&running));
    }
}
