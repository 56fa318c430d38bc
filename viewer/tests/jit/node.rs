//! Node, and recordings of it by its dump.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use vmscope_symbolizer::Profile;

use crate::common::programs::script;
use crate::common::targets::Target;
use crate::common::vmscope::{Folder, Run, can_sample, command, profile, report, run};
use crate::common::{skipped, whole};

/// Path of an installed program, if sampling works.
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
    let found = files.find(|file| file.is_file());
    if found.is_none() {
        skipped(&format!("there is no `{name}` here"));
    }
    found.filter(|_| can_sample())
}

/// What a recording shows; the recording itself is gone.
pub struct Recorded {
    /// Where the program worked.
    pub place: Folder,
    pub run: Run,
    /// What the program said of itself: its lines that are JSON.
    pub said: Vec<Value>,
    pub profile: Profile,
    /// What `report --json` says.
    pub document: Value,
}

impl Recorded {
    /// `vmscope record OPTIONS -- PROGRAM ARGUMENTS`.
    pub fn of<S: AsRef<std::ffi::OsStr>>(
        options: &[&str],
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        Self::with(options, program, arguments, |_| ())
    }

    /// Recording with a changed vmscope command: its environment is the program's.
    pub fn with<S: AsRef<std::ffi::OsStr>>(
        options: &[&str],
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
        change: impl FnOnce(&mut Command),
    ) -> Self {
        let (folder, place) = (Folder::new(), Folder::new());
        let mut command = command(["record", "--quiet", "--output"]);
        command.arg(folder.file("out.vmscope")).args(options);
        command.arg("--").arg(program).args(arguments);
        command.current_dir(place.path());
        change(&mut command);
        let run = run(command).code(0);
        Self::read(&folder, place, run)
    }

    /// What was recorded into `folder`.
    pub fn read(folder: &Folder, place: Folder, run: Run) -> Self {
        let file = folder.file("out.vmscope");
        let (profile, _) = profile(&file);
        let document = report(&file, &["--json"]).code(0).json();
        Recorded {
            said: whole::said(&run.stdout),
            profile,
            document,
            place,
            run,
        }
    }

    /// `node SCRIPT`, recorded by its dump.
    pub fn node(flags: &[&str], script_name: &str, arguments: &[&str]) -> Option<Self> {
        let node = tool("node")?;
        let script = script(script_name);
        let script = script.to_str().expect("UTF-8");
        let arguments = [flags, &[script], arguments].concat();
        Some(Self::of(&["--jit-env"], &node, arguments))
    }

    /// Samples of the report's entries that fit.
    pub fn samples(&self, fits: impl Fn(&Value) -> bool) -> u64 {
        let entries = whole::list(&self.document["entries"]).iter();
        let fitting = entries.filter(|entry| fits(entry));
        fitting.filter_map(|entry| entry["samples"].as_u64()).sum()
    }

    /// Those with user addresses.
    pub fn user_samples(&self) -> u64 {
        self.samples(|entry| entry["region"] != "kernel")
    }

    /// Share of named user samples.
    pub fn named(&self) -> f64 {
        let named = self.samples(|entry| {
            entry["region"] != "kernel"
                && entry["region"] != "unknown"
                && entry["kind"] != "unnamed"
                && entry["kind"] != "doubtful"
        });
        ratio(named, self.user_samples())
    }

    /// The entries for a failed check: name, region, kind, tier, samples of the greatest.
    pub fn greatest(&self) -> String {
        let entries = whole::list(&self.document["entries"]).iter().take(40);
        let lines = entries.map(|entry| {
            format!(
                "{} {} {} [{}] {} {}\n",
                entry["samples"],
                entry["region"],
                entry["kind"],
                entry["tier"],
                entry["name"],
                entry["module"]
            )
        });
        lines.collect::<String>() + &self.document["session"]["limits"].to_string()
    }

    #[track_caller]
    pub fn check(&self, holds: bool, what: &str) {
        assert!(
            holds,
            "{what}\n$ {}\n{}\n{}",
            self.run.command,
            self.run.stderr,
            self.greatest()
        );
    }
}

/// `node FLAGS SCRIPT ARGUMENTS`, which has said that it is ready, working in `place`.
pub fn ready(flags: &[&str], script_name: &str, arguments: &[&str], place: &Folder) -> Target {
    let mut command = Command::new("node");
    command.args(flags).arg(script(script_name)).args(arguments);
    command.current_dir(place.path());
    Target::ready(command)
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
