//! From facts to rows: a pure function. What can be sampled, what can't, and the one
//! thing to do about it, said only where it would help *here*.

mod machine;
mod perf;
mod process;
mod rights;

use super::facts::{Facts, MachineFacts};

/// How good a row's news is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Nothing is lost.
    Ok,
    /// It works, and something is lost.
    Limited,
    /// It does not work.
    No,
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// This machine, and who runs vmscope.
    Machine,
    /// The process asked about.
    Process,
}

/// A row of doctor's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Stable name, for JSON.
    pub id: &'static str,
    /// What it is about.
    pub group: Group,
    /// How good its news is.
    pub mark: Mark,
    /// What was looked at, in the words of the kernel where it has any.
    pub what: String,
    /// What was found there.
    pub found: String,
    /// What that means for sampling.
    pub meaning: String,
    /// The one thing to do, where something is to be done and would help here.
    pub todo: Option<String>,
}

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
    let mut works = user && !machine::kernel_too_old(&facts.machine);
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

/// Builds a row; with [`Row::todo`], the thing to do.
fn row(
    id: &'static str,
    group: Group,
    mark: Mark,
    what: &str,
    found: impl Into<String>,
    meaning: impl Into<String>,
) -> Row {
    let (what, found, meaning) = (what.to_owned(), found.into(), meaning.into());
    Row {
        id,
        group,
        mark,
        what,
        found,
        meaning,
        todo: None,
    }
}

impl Row {
    fn todo(mut self, todo: impl Into<String>) -> Self {
        self.todo = Some(todo.into());
        self
    }
}

/// A command as it is to be typed by who runs vmscope, and where: root in a container
/// has no say over the machine's settings.
fn as_admin(machine: &MachineFacts, command: &str) -> String {
    if machine.confined() {
        format!("on the container's host: sudo {command}")
    } else if machine.uid == 0 {
        command.to_owned()
    } else {
        format!("sudo {command}")
    }
}

#[cfg(test)]
pub(super) mod tests;
