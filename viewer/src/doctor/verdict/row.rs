//! A row of doctor's table, and how rows are built.

use super::super::facts::{MachineFacts, Setting};

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
    /// The checked setting or right, by its kernel name if possible.
    pub what: String,
    /// Its current value.
    pub found: String,
    /// Consequence for sampling.
    pub meaning: String,
    /// One remedy, if any helps on this machine.
    pub todo: Option<String>,
}

/// Builds a row; with [`Row::todo`], the thing to do.
pub fn row(
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
    /// The same row with [`Row::todo`].
    pub fn todo(mut self, todo: impl Into<String>) -> Self {
        self.todo = Some(todo.into());
        self
    }
}

/// A command as it is to be typed by who runs vmscope, and where: root in a container
/// has no say over the machine's settings.
pub fn as_admin(machine: &MachineFacts, command: &str) -> String {
    if machine.confined() {
        format!("on the container's host: sudo {command}")
    } else if machine.uid == 0 {
        command.to_owned()
    } else {
        format!("sudo {command}")
    }
}

/// Builds a row about the machine.
pub fn machine_row(
    id: &'static str,
    mark: Mark,
    what: &str,
    found: impl Into<String>,
    meaning: impl Into<String>,
) -> Row {
    row(id, Group::Machine, mark, what, found, meaning)
}

/// A setting as the row's finding.
pub fn found(setting: &Setting) -> String {
    match setting {
        Setting::Value(value) => value.to_string(),
        Setting::Absent => "not there".to_owned(),
        Setting::Unreadable(why) => format!("unreadable: {why}"),
    }
}
