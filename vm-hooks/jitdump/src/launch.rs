//! Requests to VMs for descriptions of their code, through the environment of the recorded command
//! and all its descendants.
//!
//! | variable | who reads it | checked with |
//! |---|---|---|
//! | `NODE_OPTIONS` | Node.js, Electron; takes `--perf-prof` since 8, `--interpreted-frames-native-stack` since 12 (`doc/api/cli.md`) | 8.17, 10.24, 12.22, 16.20, 20.20, 22.23, 24.21 |
//! | `DENO_V8_FLAGS` | Deno, flags separated by commas (`cli/args/flags.rs`) | 2.9 |
//! | `PYTHONPERFSUPPORT` | CPython since 3.12 (`Doc/using/cmdline.rst`) | 2.7, 3.6, 3.11 (do nothing), 3.12, 3.13 |
//! | `DOTNET_PerfMapEnabled` | .NET since 6 (`docs/core/runtime-config/debugging-profiling.md`) | 8.0 |
//! | `MONO_ENV_OPTIONS`, `MONO_DEBUG` | Mono (`mono(1)`) | 6.8 |
//! | `ERL_ZFLAGS` | Erlang (`erl(1)`), `+JPperf` since OTP 24 | OTP 25 |
//! | `ENABLE_JITPROFILING` | Julia (`doc/src/manual/environment-variables.md`) | not at hand |
//!
//! VMs refuse to start with unknown flags. Flags of newer versions are therefore set only if the
//! command names the VM. Variables that older versions ignore are always set, since a descendant
//! (of npm, a shell, a test runner) may be the VM. PHP and Ruby read no such variable.

use vmscope_process::{EnvironmentChange, Launch, file_name};

/// What makes Mono keep frame pointers, in `MONO_DEBUG`; without, callers can't be found.
pub(crate) const MONO_FRAME_POINTERS: &str = "disable_omit_fp";

/// Gives each interpreted function of V8 code of its own, which has the function's name.
const V8_INTERPRETED: &str = "--interpreted-frames-native-stack";

/// Changes of the environment of a command. Node.js is left alone unless the launch has a reason for
/// files: its V8 is read from memory. V8 writes its dump into the working folder; if that takes no
/// files, a perf map (in `/tmp`) instead. `--precise` also names V8's interpreted functions.
#[must_use]
pub fn launch_environment(launch: &Launch) -> Vec<EnvironmentChange> {
    let program = launch.command.first().map_or("", |one| file_name(one));
    let mut v8 = vec![match launch.folder_is_writable {
        true => "--perf-prof",
        false => "--perf-basic-prof",
    }];
    let is_v8 = ["node", "nodejs", "npm", "npx", "yarn", "pnpm", "deno"].contains(&program);
    v8.extend((launch.precise && is_v8).then_some(V8_INTERPRETED));
    let mut changes = Vec::new();
    if launch.files.is_some() {
        changes.push(append("NODE_OPTIONS", " ", &v8.join(" ")));
    }
    changes.extend([
        append("DENO_V8_FLAGS", ",", &v8.join(",")),
        set_default("PYTHONPERFSUPPORT", "1"),
        // 2 writes a jitdump alone, with the perf map's names and tiers, and with times. 1 writes both
        // files at the cost of both, 3 the perf map.
        set_default("DOTNET_PerfMapEnabled", "2"),
    ]);
    match program {
        // Both files: OTP 24 has no way to ask for the dump alone.
        "erl" | "erlc" | "escript" | "elixir" | "elixirc" | "iex" | "mix" | "rebar3" | "gleam" => {
            changes.push(append("ERL_ZFLAGS", " ", "+JPperf true"));
        }
        "mono" | "mono-sgen" | "mcs" | "csharp" => changes.extend(for_mono()),
        // Run by Mono through binfmt_misc, if by anything.
        _ if program.ends_with(".exe") => changes.extend(for_mono()),
        _ if program == "julia" || program.starts_with("julia-") => {
            changes.push(set_default("ENABLE_JITPROFILING", "1"));
        }
        _ => {}
    }
    changes
}

fn for_mono() -> [EnvironmentChange; 2] {
    [
        append("MONO_ENV_OPTIONS", " ", "--jitmap"),
        append("MONO_DEBUG", ",", MONO_FRAME_POINTERS),
    ]
}

/// One sentence about a better start of `command`, where the environment does not suffice; else
/// `None`.
#[must_use]
pub fn launch_hint(command: &[String]) -> Option<&'static str> {
    let program = command.first().map_or("", |program| file_name(program));
    let told = command
        .iter()
        .any(|argument| argument.contains("opcache.jit_debug") || argument.contains("--yjit-perf"));
    let versioned = |name: &str| {
        let rest = program.strip_prefix(name);
        rest.is_some_and(|rest| {
            rest.bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
        })
    };
    match () {
        () if told => None,
        () if versioned("php") => Some(crate::vm::VmKind::Php.hint("PHP")),
        () if versioned("ruby") => Some(crate::vm::VmKind::Other.hint("Ruby")),
        () => None,
    }
}

fn append(name: &str, separator: &str, value: &str) -> EnvironmentChange {
    EnvironmentChange::Append {
        name: name.to_owned(),
        separator: separator.to_owned(),
        value: value.to_owned(),
    }
}

fn set_default(name: &str, value: &str) -> EnvironmentChange {
    EnvironmentChange::SetDefault {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_process::FilesReason;

    fn changed(command: &[&str], writable: bool) -> Vec<(String, String)> {
        changed_for(command, writable, false)
    }

    fn changed_for(command: &[&str], writable: bool, precise: bool) -> Vec<(String, String)> {
        let launch = Launch {
            command: command.iter().map(|&word| word.to_owned()).collect(),
            folder_is_writable: writable,
            precise,
            files: Some(FilesReason::Asked),
            ..Launch::default()
        };
        let changes = launch_environment(&launch).into_iter();
        changes
            .map(|change| match change {
                EnvironmentChange::SetDefault { name, value }
                | EnvironmentChange::Append { name, value, .. } => (name, value),
            })
            .collect()
    }

    fn holds(changes: &[(String, String)], name: &str, value: &str) -> bool {
        changes.contains(&(name.to_owned(), value.to_owned()))
    }

    #[test]
    fn v8_writes_where_it_can() {
        let node = changed(&["npm", "test"], true);
        assert!(holds(&node, "NODE_OPTIONS", "--perf-prof"));
        assert!(holds(&node, "DENO_V8_FLAGS", "--perf-prof"));
        let node = changed(&["node", "x.js"], false);
        assert!(holds(&node, "NODE_OPTIONS", "--perf-basic-prof"));
    }

    #[test]
    fn node_is_left_alone_without_a_reason() {
        let changes = launch_environment(&Launch::default());
        let mut names = changes.iter().map(crate::attribution::name_of);
        assert!(!names.any(|name| name == "NODE_OPTIONS"), "{changes:?}");
    }

    #[test]
    fn interpreted_functions_have_names_if_asked_of_v8_itself() {
        let both = "--perf-prof --interpreted-frames-native-stack";
        let node = changed_for(&["/usr/bin/node", "x.js"], true, true);
        assert!(holds(&node, "NODE_OPTIONS", both), "{node:?}");
        let other = changed_for(&["make"], true, true);
        assert!(holds(&other, "NODE_OPTIONS", "--perf-prof"), "{other:?}");
    }

    #[test]
    fn flags_that_can_stop_a_vm_are_for_that_vm_alone() {
        let names = |command: &[&str]| -> Vec<String> {
            let changes = changed(command, true).into_iter();
            changes.map(|(name, _)| name).collect()
        };
        let common = [
            "NODE_OPTIONS",
            "DENO_V8_FLAGS",
            "PYTHONPERFSUPPORT",
            "DOTNET_PerfMapEnabled",
        ];
        assert_eq!(names(&["sh", "-c", "erl"]), common);
        assert_eq!(names(&[]), common);
        assert_eq!(names(&["/usr/bin/erl"]).last().unwrap(), "ERL_ZFLAGS");
        let of_mono = ["MONO_ENV_OPTIONS", "MONO_DEBUG"];
        assert_eq!(names(&["./x.exe"])[common.len()..], of_mono);
        assert_eq!(names(&["/usr/bin/mono", "x.exe"])[common.len()..], of_mono);
        assert_eq!(names(&["julia"]).last().unwrap(), "ENABLE_JITPROFILING");
    }

    #[test]
    fn who_can_not_be_told_is_said() {
        let hint = |command: &[&str]| {
            let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
            launch_hint(&command)
        };
        assert!(
            hint(&["/usr/bin/php8.2", "x.php"])
                .unwrap()
                .contains("jit_debug")
        );
        assert!(hint(&["ruby", "x.rb"]).unwrap().contains("--yjit-perf"));
        assert_eq!(hint(&["php", "-d", "opcache.jit_debug=32", "x.php"]), None);
        assert_eq!(hint(&["phpize"]), None);
        assert_eq!(hint(&["node", "x.js"]), None);
    }
}
