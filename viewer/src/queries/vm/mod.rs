//! What VMs tell about themselves over the report's window: their figures by section, and
//! their collections. Pure functions of a profile, bounded whatever the recording says.

mod collections;
mod figures;
mod json;

pub use collections::{Collected, Collector, Words};
pub use figures::{Figure, Section};
pub use json::{CompilersPart, VmPart, compilers_part, vm_parts};

use collections::collected;
use figures::figures_of;
use vmscope_records::{Collection, Counter, Pid, ProcessKey, TimeNs};
use vmscope_symbolizer::{Profile, Summary, Trace};

/// So many processes are told of.
const MAX_PROCESSES: usize = 16;

/// What the VM of one process tells.
#[derive(Debug)]
pub struct VmOf<'a> {
    /// The process, as the trace knows it.
    pub process: ProcessKey,
    /// The process; `None` where the recording does not say which it was.
    pub pid: Option<Pid>,
    /// Whether it is the one that was attached to or started.
    pub is_main: bool,
    /// Its collections; `None` where nothing is told of any.
    pub collected: Option<Collected<'a>>,
    /// Its other figures, in the order in which it tells them.
    pub sections: Vec<Section<'a>>,
    /// Values of figures that there was no room for.
    pub values_left_out: u64,
}

/// What all VMs tell.
#[derive(Debug)]
pub struct Vms<'a> {
    /// By process, the main one first.
    pub of: Vec<VmOf<'a>>,
    /// Processes that there was no room for.
    pub left_out: usize,
}

impl<'a> Vms<'a> {
    /// What is known of them by the end of the window.
    pub fn of(profile: &'a Profile, summary: &Summary) -> Self {
        let trace = &profile.trace;
        let counters = trace.counters.iter().map(|counter| counter.process);
        let collections = trace.collections.iter().map(|one| one.process);
        let mut keys: Vec<ProcessKey> = counters.chain(collections).collect();
        // Few are of another process than the one before.
        keys.dedup();
        keys.sort_unstable();
        keys.dedup();
        let pid_of = |key: &ProcessKey| trace.processes.get(key).map(|process| process.pid);
        let window = asked_in(trace, summary.window);
        let main = trace.session.as_ref().map(|session| session.pid);
        let is_main = |key: &ProcessKey| main.is_some() && pid_of(key) == main;
        // Stable: what a process becomes by an exec comes after it.
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

/// What VMs told in a window. They are asked a last time when a recording has ended: what
/// they tell then is of a window that goes on to its end.
fn asked_in(trace: &Trace, (from, to): (TimeNs, TimeNs)) -> (TimeNs, TimeNs) {
    match &trace.end {
        Some(end) if to >= end.time => (from, TimeNs(u64::MAX)),
        _ => (from, to),
    }
}
