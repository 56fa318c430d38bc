//! A row of doctor's table.

use super::super::facts::{MachineFacts, Setting};

/// Grade of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Nothing is lost.
    Ok,
    /// It works, with losses.
    Limited,
    /// It does not work.
    No,
}

impl Mark {
    /// In text and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Mark::Ok => "ok",
            Mark::Limited => "limited",
            Mark::No => "no",
        }
    }
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// This machine and vmscope's user.
    Machine,
    /// The requested process.
    Process,
}

/// A row of doctor's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Stable name, for JSON.
    pub id: &'static str,
    pub group: Group,
    /// The checked setting or right, by its kernel name if possible.
    pub what: String,
    pub finding: Finding,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub mark: Mark,
    /// Current value.
    pub found: String,
    /// Consequence for sampling.
    pub meaning: String,
    /// Remedy, if this machine allows any.
    pub todo: Option<String>,
}

/// A finding that costs nothing.
pub fn ok(found: impl Into<String>, meaning: impl Into<String>) -> Finding {
    finding(Mark::Ok, found, meaning)
}

/// A finding with losses.
pub fn limited(found: impl Into<String>, meaning: impl Into<String>) -> Finding {
    finding(Mark::Limited, found, meaning)
}

/// A finding that prevents sampling.
pub fn no(found: impl Into<String>, meaning: impl Into<String>) -> Finding {
    finding(Mark::No, found, meaning)
}

fn finding(mark: Mark, found: impl Into<String>, meaning: impl Into<String>) -> Finding {
    Finding {
        mark,
        found: found.into(),
        meaning: meaning.into(),
        todo: None,
    }
}

impl Finding {
    /// The same finding with a remedy.
    pub fn todo(mut self, todo: impl Into<String>) -> Self {
        self.todo = Some(todo.into());
        self
    }
}

/// Command for vmscope's user, with its place: root in a container can't change the machine's
/// settings.
pub fn as_admin(machine: &MachineFacts, command: &str) -> String {
    if machine.confined() {
        format!("on the container's host: sudo {command}")
    } else if machine.uid == 0 {
        command.to_owned()
    } else {
        format!("sudo {command}")
    }
}

/// Value of a setting.
pub fn found(setting: &Setting) -> String {
    match setting {
        Setting::Value(value) => value.to_string(),
        Setting::Absent => "absent".to_owned(),
        Setting::Unreadable(why) => format!("unreadable: {why}"),
    }
}
