//! Checks: pure functions from facts to rows, with one remedy if it helps on this machine.

mod machine;
mod perf;
mod process;
mod rights;
pub mod row;

use super::facts::{Facts, MachineFacts, ProcessFacts};
use row::{Finding, Group, Row};

/// All rows, and whether the default recording would work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether `vmscope record` (with a process: `vmscope attach PID`) would work without options.
    pub works: bool,
    /// Result as a sentence, with limits.
    pub summary: String,
    /// Rows in display order.
    pub rows: Vec<Row>,
}

/// A check: id of its row, label, function.
type Check<F> = (&'static str, &'static str, F);
type OfMachine = fn(&MachineFacts, &Facts) -> Finding;
/// `None` if a check does not apply.
type OfProcess = fn(&ProcessFacts, &Facts) -> Option<Finding>;

const MACHINE: [Check<OfMachine>; 12] = [
    ("user_samples", "perf_event_open", perf::user_samples),
    ("kernel_samples", "kernel samples", perf::kernel_samples),
    ("perf_event_paranoid", "perf_event_paranoid", perf::paranoid),
    ("perf_event_mlock_kb", "perf_event_mlock_kb", perf::mlock),
    ("kptr_restrict", "kptr_restrict", perf::kptr_restrict),
    ("ptrace_scope", "yama ptrace_scope", rights::ptrace_scope),
    ("capabilities", "capabilities", rights::capabilities),
    ("real_time", "real-time priority", rights::real_time),
    ("nice", "nice value", rights::nice),
    ("descriptors", "open files", rights::descriptors),
    ("kernel", "kernel", machine::kernel),
    ("container", "container", machine::container),
];

const PROCESS: [Check<OfProcess>; 7] = [
    ("owner", "owner", process::owner),
    ("maps", "mappings", process::maps),
    ("events", "perf_event_open", process::events),
    ("memory", "memory", process::memory),
    ("tracer", "traced by", process::tracer),
    ("threads", "threads", process::threads),
    ("nspid", "pid by namespace", process::namespaces),
];

/// Runs all checks.
pub fn decide(facts: &Facts) -> Verdict {
    let machine = &facts.machine;
    let mut rows = Vec::new();
    let mut put = |id, group, what: &str, finding| {
        let what = what.to_owned();
        rows.push(Row {
            id,
            group,
            what,
            finding,
        });
    };
    for &(id, what, check) in &MACHINE {
        put(id, Group::Machine, what, check(machine, facts));
    }
    let mut works = perf::can_sample_user(facts) && !machine::is_too_old(machine);
    let mut what = String::from("`vmscope record -- COMMAND`");
    if let Some(process) = &facts.process {
        let title = format!("process {}", process.pid);
        let existence = process::existence(process);
        put("existence", Group::Process, &title, existence);
        for &(id, what, check) in &PROCESS {
            if process.existence.has_program()
                && let Some(finding) = check(process, facts)
            {
                put(id, Group::Process, what, finding);
            }
        }
        works &= process::can_attach(process, facts);
        what = format!("`vmscope attach {}`", process.pid);
    }
    let mut summary = match (works, perf::can_sample_kernel(facts)) {
        (true, true) => format!("{what} would work, in user space and in the kernel."),
        (true, false) => format!("{what} would work, in user space only."),
        (false, _) => format!("{what} would not work: see the rows marked `no`."),
    };
    if let Some(process) = facts.process.as_ref().filter(|one| process::publishes(one)) {
        let (pid, also) = (process.pid, if works { ", too" } else { "" });
        summary += &format!(
            " Its VM's own sampler would work{also}: `vmscope attach --engine in-vm {pid}`."
        );
    }
    Verdict {
        works,
        summary,
        rows,
    }
}

#[cfg(test)]
pub(super) mod tests;
