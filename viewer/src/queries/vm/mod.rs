//! Reports of VMs over a window: figures by section, collections. Bounded for any recording.

mod collections;
mod figures;

pub use collections::{Collected, Collector, PhaseTime, Words, overlaps};
pub use figures::{Figure, Section};

use collections::collected;
use figures::figures_of;
use vmscope_records::{Collection, Counter, Pid, ProcessKey, TimeNs};
use vmscope_symbolizer::{Profile, Summary, Trace};

/// Maximum number of processes.
const MAX_PROCESSES: usize = 16;

/// Reports of one process's VM.
#[derive(Debug)]
pub struct VmOf<'a> {
    pub process: ProcessKey,
    /// `None` if the recording lacks the process.
    pub pid: Option<Pid>,
    /// Whether vmscope launched or attached to this process.
    pub is_main: bool,
    /// `None` without any report.
    pub collected: Option<Collected<'a>>,
    /// Other figures, in the VM's order.
    pub sections: Vec<Section<'a>>,
    /// Number of omitted values.
    pub values_left_out: u64,
}

/// Reports of all VMs.
#[derive(Debug)]
pub struct Vms<'a> {
    /// By process, the main one first.
    pub of: Vec<VmOf<'a>>,
    /// Number of omitted processes.
    pub left_out: usize,
}

impl<'a> Vms<'a> {
    /// Reports up to the end of the window.
    pub fn of(profile: &'a Profile, summary: &Summary) -> Self {
        let trace = &profile.trace;
        let counters = trace.counters.iter().map(|counter| counter.process);
        let collections = trace.collections.iter().map(|one| one.process);
        let mut keys: Vec<ProcessKey> = counters.chain(collections).collect();
        // Neighbours mostly belong to one process.
        keys.dedup();
        keys.sort_unstable();
        keys.dedup();
        let pid_of = |key: &ProcessKey| trace.processes.get(key).map(|process| process.pid);
        let window = asked_in(trace, summary.window);
        let main = trace.session.as_ref().map(|session| session.pid);
        let is_main = |key: &ProcessKey| main.is_some() && pid_of(key) == main;
        // Stable: a process precedes its successor after an exec.
        keys.sort_by_key(|key| !is_main(key));
        let left_out = keys.len().saturating_sub(MAX_PROCESSES);
        keys.truncate(MAX_PROCESSES);
        let of = keys.into_iter().map(|key| {
            let counters = trace.counters.iter().filter(|c| c.process == key);
            let counters: Vec<&Counter> = counters.collect();
            let collections = trace.collections.iter().filter(|one| one.process == key);
            let collections: Vec<&Collection> = collections.collect();
            let (mut sections, values_left_out) = figures_of(&counters, window);
            VmOf {
                process: key,
                pid: pid_of(&key),
                is_main: is_main(&key),
                collected: collected(&collections, &mut sections, window),
                sections,
                values_left_out,
            }
        });
        let mut of: Vec<VmOf> = of.collect();
        of.retain(|vm| vm.collected.is_some() || !vm.sections.is_empty());
        Vms { of, left_out }
    }
}

/// Window of VM reports. VMs are polled once after a recording's end: that poll belongs to windows
/// up to the end.
fn asked_in(trace: &Trace, (from, to): (TimeNs, TimeNs)) -> (TimeNs, TimeNs) {
    match &trace.end {
        Some(end) if to >= end.time => (from, TimeNs(u64::MAX)),
        _ => (from, to),
    }
}
