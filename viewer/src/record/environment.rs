//! Changes in a launched command's environment that make its VM report more about itself.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use vmscope_process::{EnvironmentChange, Launch};
use vmscope_sampler::session::Readers;

/// New values of the variables that `changes` change, given the `current` values.
fn changed(
    changes: Vec<EnvironmentChange>,
    current: impl Fn(&str) -> Option<OsString>,
) -> BTreeMap<String, OsString> {
    let mut new: BTreeMap<String, OsString> = BTreeMap::new();
    for change in changes {
        let (EnvironmentChange::SetDefault { name, .. } | EnvironmentChange::Append { name, .. }) =
            &change;
        // System calls reject such names, and values with a NUL.
        if name.is_empty() || name.contains(['=', '\0']) {
            continue;
        }
        let old = new.get(name).cloned().or_else(|| current(name));
        match change {
            EnvironmentChange::SetDefault { name, value } => {
                if old.is_none() && !value.contains('\0') {
                    new.insert(name, value.into());
                }
            }
            EnvironmentChange::Append {
                name,
                separator,
                value,
            } => {
                let mut all = old.unwrap_or_default();
                if value.contains('\0') || holds(&all, &separator, &value) {
                    continue;
                }
                if !all.is_empty() {
                    all.push(separator);
                }
                all.push(value);
                new.insert(name, all);
            }
        }
    }
    new
}

/// Whether a list contains `value` between separators.
fn holds(all: &OsStr, separator: &str, value: &str) -> bool {
    let (all, separator, value) = (all.as_bytes(), separator.as_bytes(), value.as_bytes());
    if separator.is_empty() || value.is_empty() {
        return all.ends_with(value);
    }
    let at = |at: usize| all.get(at..).unwrap_or_default();
    (0..all.len()).any(|start| {
        let begins = start == 0 || all.get(..start).is_some_and(|b| b.ends_with(separator));
        let rest = at(start).strip_prefix(value);
        begins && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(separator))
    })
}

/// Whether the working folder takes new files. `access(2)` is wrong for root in places such as
/// `/sys`: only creating a file tells.
fn takes_files() -> bool {
    tempfile::tempfile_in(".").is_ok()
}

/// A command to be launched here.
pub(super) fn launch_of(words: &[String]) -> Launch {
    let folder = std::env::current_dir().unwrap_or_default();
    Launch {
        command: words.to_vec(),
        folder_is_writable: takes_files(),
        folder,
        ..Launch::default()
    }
}

/// Changes in a command's environment.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// Changed variables as `NAME=value`, quoted as for a shell.
    pub told: Vec<String>,
    /// Whether any change serves exact positions.
    pub is_more_precise: bool,
}

/// Applies the VM families' changes to a command's environment: for names of JIT code, and with
/// `precise` for exact positions.
pub(super) fn prepare(
    command: &mut Command,
    launch: &Launch,
    readers: &Readers,
    precise: bool,
) -> Prepared {
    let of = |launch: &Launch| {
        let changes = readers.launch_environment(launch);
        changed(changes, |name| std::env::var_os(name))
    };
    let mut new = of(launch);
    let mut is_more_precise = false;
    if precise {
        let launch = Launch {
            precise,
            ..launch.clone()
        };
        let more = of(&launch);
        is_more_precise = more != new;
        new = more;
    }
    let mut told = Vec::new();
    for (name, value) in new {
        told.push(format!("{name}={}", quoted(&value.to_string_lossy())));
        command.env(name, value);
    }
    Prepared {
        told,
        is_more_precise,
    }
}

/// Value, quoted for a shell if necessary.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=+:,./%@".contains(c);
    if value.chars().all(is_plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_process::{AdapterError, AdapterFamily, ProcessView};

    fn default(name: &str, value: &str) -> EnvironmentChange {
        EnvironmentChange::SetDefault {
            name: name.to_owned(),
            value: value.to_owned(),
        }
    }

    fn append(name: &str, separator: &str, value: &str) -> EnvironmentChange {
        EnvironmentChange::Append {
            name: name.to_owned(),
            separator: separator.to_owned(),
            value: value.to_owned(),
        }
    }

    fn told(changes: Vec<EnvironmentChange>, current: &[(&str, &str)]) -> Vec<String> {
        let current = |name: &str| {
            let mut set = current.iter();
            set.find(|(other, _)| *other == name)
                .map(|(_, value)| OsString::from(value))
        };
        let new = changed(changes, current).into_iter();
        new.map(|(name, value)| format!("{name}={}", value.to_string_lossy()))
            .collect()
    }

    #[test]
    fn what_the_user_set_stays() {
        let changes = || vec![default("DOTNET_PerfMapEnabled", "1")];
        assert_eq!(told(changes(), &[]), ["DOTNET_PerfMapEnabled=1"]);
        let set = [("DOTNET_PerfMapEnabled", "0")];
        assert_eq!(told(changes(), &set), [""; 0]);
        let empty = [("DOTNET_PerfMapEnabled", "")];
        assert_eq!(told(changes(), &empty), [""; 0], "set to nothing is set");
        let two = vec![default("A", "1"), default("A", "2")];
        assert_eq!(told(two, &[]), ["A=1"]);
    }

    #[test]
    fn options_are_added_at_the_end_and_once() {
        let changes = || vec![append("NODE_OPTIONS", " ", "--perf-prof")];
        assert_eq!(told(changes(), &[]), ["NODE_OPTIONS=--perf-prof"]);
        assert_eq!(
            told(changes(), &[("NODE_OPTIONS", "")]),
            ["NODE_OPTIONS=--perf-prof"]
        );
        assert_eq!(
            told(changes(), &[("NODE_OPTIONS", "--perf-prof-unwinding-info")]),
            ["NODE_OPTIONS=--perf-prof-unwinding-info --perf-prof"]
        );
        for held in [
            "--perf-prof",
            "-a --perf-prof",
            "--perf-prof -b",
            "-a --perf-prof -b",
        ] {
            assert_eq!(
                told(changes(), &[("NODE_OPTIONS", held)]),
                [""; 0],
                "{held}"
            );
        }
        let twice = [
            changes(),
            changes(),
            vec![append("NODE_OPTIONS", " ", "-x")],
        ]
        .concat();
        assert_eq!(told(twice, &[]), ["NODE_OPTIONS=--perf-prof -x"]);
    }

    #[test]
    fn what_no_environment_can_hold_is_left_out() {
        let bad = vec![
            default("A=B", "1"),
            default("", "1"),
            default("A", "1\0"),
            append("B\0", " ", "1"),
            append("B", "", ""),
        ];
        assert_eq!(told(bad, &[]), [""; 0]);
    }

    /// A VM with more data on request.
    struct Teller;

    impl AdapterFamily for Teller {
        fn name(&self) -> &'static str {
            "teller"
        }

        fn recognise(
            &self,
            _: &ProcessView,
        ) -> Result<Option<Box<dyn vmscope_process::Adapter>>, AdapterError> {
            Ok(None)
        }

        fn launch_environment(&self, launch: &Launch) -> Vec<EnvironmentChange> {
            let options = append("VMSCOPE_TEST_OPTIONS", " ", "-a -b");
            launch.precise.then_some(options).into_iter().collect()
        }
    }

    #[test]
    fn exact_positions_are_asked_for_only_where_they_are_wanted() {
        let readers = Readers::later(vec![Box::new(Teller)]);
        let launch = launch_of(&["true".to_owned()]);
        let prepared = |precise| {
            let mut command = Command::new("true");
            let prepared = prepare(&mut command, &launch, &readers, precise);
            (prepared, command.get_envs().count())
        };
        let (plain, variables) = prepared(false);
        assert!(plain.told.is_empty() && !plain.is_more_precise && variables == 0);
        let (precise, variables) = prepared(true);
        assert_eq!(precise.told, ["VMSCOPE_TEST_OPTIONS='-a -b'"]);
        assert!(precise.is_more_precise && variables == 1);
        let nobody = Readers::later(Vec::new());
        let prepared = prepare(&mut Command::new("true"), &launch, &nobody, true);
        assert!(!prepared.is_more_precise && prepared.told.is_empty());
    }

    #[test]
    fn values_are_quoted_where_they_are_more_than_a_word() {
        assert_eq!(quoted("--perf-prof"), "--perf-prof");
        assert_eq!(quoted("-a it's"), r"'-a it'\''s'");
    }

    #[test]
    fn a_command_gets_what_was_asked_for() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $VMSCOPE_TEST_A:$VMSCOPE_TEST_B"]);
        command.env("VMSCOPE_TEST_B", "b");
        for (name, value) in changed(vec![default("VMSCOPE_TEST_A", "a")], |_| None) {
            command.env(name, value);
        }
        let output = command.output().expect("a shell");
        assert_eq!(output.stdout, b"a:b\n");
    }
}
