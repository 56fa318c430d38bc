//! A process by PID or by name.

use crate::present::text::cut;
use crate::print::ListError;
use anyhow::Result;
use std::str::FromStr;
use vmscope_process::{ProcessFacts, processes_named};
use vmscope_records::Pid;

/// Width of a command line in a list of processes.
const COMMAND_COLUMNS: usize = 80;

/// A process as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// By PID.
    Pid(Pid),
    /// By the name of its program.
    Name(String),
}

/// No process has the name.
#[derive(Debug, thiserror::Error)]
#[error("no process that you may attach to is named `{0}`; `ps -e` lists all processes")]
pub struct NoneNamed(String);

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.starts_with('-') {
            return Err("expected a PID or the name of a process".to_owned());
        }
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Named::Name(text.to_owned()));
        }
        let pid = text.parse().map(|pid| Named::Pid(Pid(pid)));
        pid.map_err(|_| "this PID is too large".to_owned())
    }
}

impl Named {
    /// The processes' ids, each once.
    ///
    /// # Errors
    /// A name that no process has, or several.
    pub fn pids(all: &[Named]) -> Result<Vec<Pid>> {
        let mut pids = Vec::new();
        for named in all {
            let pid = named.pid()?;
            if !pids.contains(&pid) {
                pids.push(pid);
            }
        }
        Ok(pids)
    }

    /// The process's id.
    ///
    /// # Errors
    /// A name that no process has, or several.
    fn pid(&self) -> Result<Pid> {
        let name = match self {
            Named::Pid(pid) => return Ok(*pid),
            Named::Name(name) => name,
        };
        match processes_named(name).as_slice() {
            [] => Err(NoneNamed(name.clone()).into()),
            [one] => Ok(one.pid),
            several => Err(ListError {
                message: format!(
                    "{} processes are named `{name}`: attach to one or several of them by PID",
                    several.len()
                ),
                list: several.iter().map(listed).collect(),
            }
            .into()),
        }
    }
}

/// A process in a list: PID, command line.
fn listed(one: &ProcessFacts) -> String {
    let command = match one.command.is_empty() {
        true => format!("[{}]", one.name),
        false => one.command.join(" "),
    };
    format!("{:>9}  {}", one.pid.0, cut(&command, COMMAND_COLUMNS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_pids_and_the_rest_are_names() {
        assert_eq!("17".parse(), Ok(Named::Pid(Pid(17))));
        assert_eq!("java".parse(), Ok(Named::Name("java".to_owned())));
        assert_eq!("7zip".parse(), Ok(Named::Name("7zip".to_owned())));
        for wrong in ["", "-1", "4294967296"] {
            assert!(wrong.parse::<Named>().is_err(), "{wrong}");
        }
    }
}
