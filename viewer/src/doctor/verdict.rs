//! From facts to rows: a pure function. What can be sampled, what can't, and the one
//! thing to do about it, said only where it would help *here*.

mod kernel;
mod machine;
mod perf;
mod process;
mod rights;
pub mod row;

use super::facts::Facts;
use row::Row;

/// All rows, and whether the default recording would work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether `vmscope record` (with a process: `vmscope attach PID`) would work without
    /// options.
    pub works: bool,
    /// That in a sentence, with what it would lack.
    pub summary: String,
    /// In the order to be read.
    pub rows: Vec<Row>,
}

/// Decides.
pub fn decide(facts: &Facts) -> Verdict {
    let mut rows = machine::rows(&facts.machine, facts.perf.as_ref());
    let user = perf::can_sample_user(&facts.machine, facts.perf.as_ref());
    let mut works = user && !kernel::too_old(&facts.machine);
    let mut what = String::from("`vmscope record -- COMMAND`");
    if let Some(target) = &facts.process {
        let probe = facts.process_perf.as_ref();
        rows.extend(process::rows(&facts.machine, target, probe));
        works &= process::can_attach(&facts.machine, target, probe);
        what = format!("`vmscope attach {}`", target.pid);
    }
    let kernel = perf::can_sample_kernel(&facts.machine, facts.perf.as_ref());
    let summary = match (works, kernel) {
        (true, true) => format!("{what} would work, in user space and in the kernel."),
        (true, false) => format!("{what} would work, in user space alone."),
        (false, _) => format!("{what} would not work: see the rows marked `no`."),
    };
    Verdict {
        works,
        summary,
        rows,
    }
}

#[cfg(test)]
pub(super) mod tests;
