//! Process and thread of samples, by their names.

use crate::present::text::harmless;
use rustc_hash::FxHashMap;
use vmscope_records::{Pid, Process, ProcessKey, Tid};
use vmscope_symbolizer::{IndexVec, ThreadId, Trace};

#[derive(Clone, Debug)]
pub(super) struct Who {
    /// Address space; the last one after an exec.
    pub process: ProcessKey,
    pub pid: Pid,
    pub process_name: String,
    pub tid: Tid,
    pub name: String,
}

impl Who {
    /// Whether this thread is the first of its process.
    pub(super) fn is_main(&self) -> bool {
        self.tid.0 == self.pid.0
    }
}

/// All threads of a trace.
pub(super) fn threads(trace: &Trace) -> IndexVec<ThreadId, Who> {
    let execs = execs(trace);
    trace.threads.map(|_, thread| {
        let thread = &thread.thread;
        let first = trace.processes.get(&thread.process);
        // The first thread survives an exec.
        let last = match first {
            Some(process) if process.pid.0 == thread.tid.0 => last_of(process, &execs),
            other => other,
        };
        Who {
            process: last.map_or(thread.process, |process| process.key),
            pid: last.map_or(Pid(0), |process| process.pid),
            process_name: process_name(trace, last),
            tid: thread.tid,
            name: match harmless(&thread.name) {
                name if name.trim().is_empty() => "(no name)".to_owned(),
                name => name,
            },
        }
    })
}

/// Next address space of each one that called exec.
fn execs(trace: &Trace) -> FxHashMap<ProcessKey, &Process> {
    let pid_of = |key| trace.processes.get(&key).map(|process| process.pid);
    let after = trace.processes.values().filter_map(|process| {
        let before = process.parent?;
        (pid_of(before) == Some(process.pid)).then_some((before, process))
    });
    after.collect()
}

fn last_of<'a>(
    first: &'a Process,
    execs: &FxHashMap<ProcessKey, &'a Process>,
) -> Option<&'a Process> {
    let mut last = first;
    // Damaged recordings may have cycles.
    for _ in 0..=execs.len() {
        match execs.get(&last.key) {
            Some(next) => last = next,
            None => return Some(last),
        }
    }
    Some(first)
}

fn process_name(trace: &Trace, process: Option<&Process>) -> String {
    let Some(process) = process else {
        return "(unknown process)".to_owned();
    };
    if !process.name.trim().is_empty() {
        return harmless(&process.name);
    }
    let session = trace.session.as_ref();
    let program = session
        .filter(|session| session.pid == process.pid)
        .and_then(|session| session.command.first())
        .and_then(|program| program.rsplit('/').next())
        .filter(|name| !name.is_empty());
    program.map_or_else(|| format!("pid {}", process.pid), harmless)
}
