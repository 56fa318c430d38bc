//! Decides who requested a process's jitdump files, perf map and logs: vmscope or the user. vmscope
//! deletes its own files only; in doubt a file is the user's and stays.
//!
//! Files of a live process are vmscope's if its environment holds vmscope's variables with exactly the
//! values that vmscope set, and if neither another variable nor the command line requests such files.
//!
//! Files of a process that exited before vmscope read its environment are vmscope's if neither the
//! started command nor any process seen before requested such files itself. This fails for:
//!
//! - a script that sets a variable to exactly vmscope's value, or requests files inside the VM
//!   (`v8.setFlagsFromString`);
//! - a process that has overwritten its command line;
//! - a short process with its own switch, started by a script whose command line lacks the switch.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use vmscope_process::{Environment, EnvironmentChange, ProcessView};

use crate::vm::VmKind;

/// Files of a process requested by vmscope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attribution {
    /// Dump and perf map.
    pub files: bool,
    /// V8's logs beside a dump.
    pub logs: bool,
    /// vmscope requested files, but they stay.
    pub in_doubt: bool,
}

/// Requests for files: vmscope's own, and other requests.
#[derive(Debug, Default)]
pub(crate) struct FileRequests {
    /// Changed variables with their new contents.
    set: Vec<(VmKind, String, Vec<u8>)>,
    /// The command itself requests files.
    command_asks: bool,
    /// VMs with requests by others.
    others: HashSet<VmKind>,
    /// Others requested a V8 log.
    logs: bool,
}

impl FileRequests {
    /// For `command` with `changes` of its environment; `old` returns a variable's previous value.
    pub fn new(
        changes: &[EnvironmentChange],
        old: impl Fn(&str) -> Option<OsString>,
        command: &[String],
    ) -> Self {
        let set = changes.iter().filter_map(|change| {
            let name = name_of(change);
            let value = new_value(change, old(name).unwrap_or_default().as_bytes());
            Some((kind_of(name)?, name.to_owned(), value))
        });
        let mut requests = FileRequests {
            set: set.collect(),
            ..FileRequests::default()
        };
        let command = command.join(" ");
        requests.logs = asks_for_logs(&command);
        requests.command_asks = asks_for_files(&command);
        if requests.command_asks {
            requests.others = requests.kinds().collect();
        }
        requests
    }

    /// VMs whose variables vmscope has set.
    pub fn kinds(&self) -> impl Iterator<Item = VmKind> {
        self.set.iter().map(|(kind, ..)| *kind)
    }

    /// Whether neither the command nor any seen child requested files itself.
    pub fn are_all_ours(&self) -> bool {
        self.others.is_empty() && !self.logs
    }

    /// Notes a live process's own requests for files; the process may be no VM.
    pub fn note(&mut self, process: &ProcessView, environment: Option<&Environment>) {
        let command = process.command().join(" ");
        self.logs |= asks_for_logs(&command);
        let Some(environment) = environment else {
            return;
        };
        // Without any of vmscope's variables, neither the process nor its children write files for us.
        if !self.set.iter().any(|(_, name, _)| has(environment, name)) {
            return;
        }
        let wish = |kind: &VmKind| !self.is_as_set(*kind, &command, environment);
        let others: Vec<VmKind> = self.kinds().filter(wish).collect();
        self.others.extend(others);
    }

    /// Attribution of the files of `process`, which runs a VM of kind `kind`.
    pub fn of(
        &self,
        kind: VmKind,
        process: &ProcessView,
        environment: Option<&Environment>,
    ) -> Attribution {
        if !self.kinds().any(|other| other == kind) {
            return Attribution::default();
        }
        let command = process.command().join(" ");
        let (files, logs) = match environment {
            Some(given) if process.is_live() => {
                let own = given
                    .iter()
                    .filter(|(name, _)| kind_of_bytes(name) == Some(kind));
                let mut own = own.map(|(_, value)| String::from_utf8_lossy(value));
                let logs = own.any(|flags| asks_for_logs(&flags));
                (self.is_as_set(kind, &command, given), logs)
            }
            None if process.is_live() => (false, false),
            _ => (
                !self.others.contains(&kind) && !asks_for_files(&command),
                self.logs,
            ),
        };
        Attribution {
            files,
            logs: files && !logs && !asks_for_logs(&command),
            in_doubt: !files && !self.command_asks,
        }
    }

    fn is_as_set(&self, kind: VmKind, command: &str, environment: &Environment) -> bool {
        let of_kind = self.set.iter().filter(|(of, ..)| *of == kind);
        let mut unchanged = of_kind.map(|(_, name, value)| {
            let mut same = environment
                .iter()
                .filter(|(other, _)| other == name.as_bytes());
            same.next().is_some_and(|(_, now)| now == value) && same.next().is_none()
        });
        // Erlang's launcher puts what is in its variables into the command line.
        let passed_on = kind == VmKind::Beam && command.matches(BEAM_SWITCH).count() == 1;
        let other = environment.iter().filter(|(name, _)| {
            !self.set.iter().any(|(_, set, _)| set.as_bytes() == name)
                && !FOLDERS.contains(&&**name)
        });
        let mut other = other.map(|(name, value)| {
            (kind == VmKind::DotNet && name.starts_with(b"COMPlus_PerfMap"))
                || asks_for_files(&String::from_utf8_lossy(value))
        });
        let command = command.replace(if passed_on { BEAM_SWITCH } else { "\0" }, "");
        unchanged.all(|same| same) && !asks_for_files(&command) && !other.any(|asks| asks)
    }
}

/// Variables with paths as contents.
const FOLDERS: [&[u8]; 4] = [b"PWD", b"OLDPWD", b"PATH", b"_"];

const BEAM_SWITCH: &str = "JPperf";

/// Switches that request such files.
const SWITCHES: [&str; 8] = [
    "-perf-prof",
    "-perf_prof",
    "-perf-basic-prof",
    "-perf_basic_prof",
    BEAM_SWITCH,
    "-jitmap",
    "X perf",
    "Xperf",
];

/// V8's log flags; `*` matches any text.
const LOG_FLAGS: [&str; 25] = [
    "prof",
    "ll-prof",
    "log",
    "logfile",
    "trace-ic",
    "trace-maps",
    "prof-*",
    "logfile-*",
    "log-all*",
    "log-api*",
    "log-code*",
    "log-colour*",
    "log-deopt*",
    "log-feedback*",
    "log-function*",
    "log-gc*",
    "log-handles*",
    "log-ic*",
    "log-internal*",
    "log-maps*",
    "log-or-trace*",
    "log-regexp*",
    "log-source*",
    "log-suspect*",
    "log-timer*",
];

/// Whether a command line or variable requests dumps or perf maps.
pub(crate) fn asks_for_files(text: &str) -> bool {
    SWITCHES.iter().any(|switch| text.contains(switch))
}

/// Whether it requests a V8 log.
fn asks_for_logs(text: &str) -> bool {
    let words = text.split(|c: char| c.is_whitespace() || "=,'\"".contains(c));
    words.filter(|word| word.starts_with('-')).any(|word| {
        let flag = word.trim_start_matches('-').replace('_', "-");
        let flag = flag.strip_prefix("no-").unwrap_or(&flag);
        LOG_FLAGS.iter().any(|known| match known.split_once('*') {
            Some((begin, end)) => flag.starts_with(begin) && flag.ends_with(end),
            None => flag == *known,
        })
    })
}

/// The variable's contents after `change`.
fn new_value(change: &EnvironmentChange, old: &[u8]) -> Vec<u8> {
    match change {
        EnvironmentChange::SetDefault { value, .. } => value.clone().into_bytes(),
        EnvironmentChange::Append { value, .. } if old.is_empty() => value.clone().into_bytes(),
        EnvironmentChange::Append {
            separator, value, ..
        } => [old, separator.as_bytes(), value.as_bytes()].concat(),
    }
}

/// The VM of a variable set by vmscope.
fn kind_of(variable: &str) -> Option<VmKind> {
    Some(match variable {
        "NODE_OPTIONS" | "DENO_V8_FLAGS" => VmKind::V8,
        "PYTHONPERFSUPPORT" => VmKind::CPython,
        "MONO_ENV_OPTIONS" => VmKind::Mono,
        "ERL_ZFLAGS" => VmKind::Beam,
        name if name.starts_with("DOTNET_PerfMap") => VmKind::DotNet,
        "ENABLE_JITPROFILING" => VmKind::Julia,
        _ => return None,
    })
}

fn kind_of_bytes(variable: &[u8]) -> Option<VmKind> {
    kind_of(std::str::from_utf8(variable).ok()?)
}

fn has(environment: &Environment, name: &str) -> bool {
    environment
        .iter()
        .any(|(other, _)| other == name.as_bytes())
}

pub(crate) fn name_of(change: &EnvironmentChange) -> &str {
    match change {
        EnvironmentChange::SetDefault { name, .. } | EnvironmentChange::Append { name, .. } => name,
    }
}

#[cfg(test)]
mod tests;
