//! Running steps, and telling how they went.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// One command of a task.
#[derive(Debug)]
pub struct Step {
    /// What it checks, for people.
    pub name: &'static str,
    /// What to run, in the repository's folder.
    pub command: &'static [&'static str],
    /// Environment variables for it, added to what is set.
    pub env: &'static [(&'static str, &'static str)],
    /// What it needs beyond the toolchain, if anything.
    pub needs: Option<Need>,
}

/// Something that may not be installed.
#[derive(Debug)]
pub struct Need {
    /// Command that succeeds if the need is installed.
    pub probe: &'static [&'static str],
    /// What to run instead; nothing: the step is skipped, loudly.
    pub instead: &'static [&'static str],
    /// How to get it.
    pub hint: &'static str,
}

/// What became of a step.
enum Outcome {
    Passed,
    Skipped(&'static str),
    Failed(String),
}

/// Runs every step, then says which passed, failed or were skipped and how long each took.
/// Returns whether none failed.
pub fn all(steps: &[&Step]) -> bool {
    let mut lines = Vec::new();
    let mut passed = true;
    let _ = std::fs::remove_file(skipped_tests());
    for step in steps {
        println!("\n=== {}", step.name);
        let began = Instant::now();
        let (verdict, detail) = match run(step) {
            Outcome::Passed => ("passed", String::new()),
            Outcome::Skipped(hint) => {
                println!("SKIPPED: {hint}");
                ("SKIPPED", format!(": {hint}"))
            }
            Outcome::Failed(why) => {
                passed = false;
                ("FAILED", format!(": {why}"))
            }
        };
        let seconds = began.elapsed().as_secs_f64();
        lines.push(format!(
            "{verdict:8} {seconds:6.1} s  {}{detail}",
            step.name
        ));
    }
    if let Ok(skipped) = std::fs::read_to_string(skipped_tests()) {
        println!("\nSKIPPED tests:\n{skipped}");
        let _ = std::fs::remove_file(skipped_tests());
    }
    println!("\n{}", lines.join("\n"));
    passed
}

fn run(step: &Step) -> Outcome {
    let mut command = step.command;
    if let Some(need) = &step.needs
        && !succeeds(need.probe)
    {
        if need.instead.is_empty() {
            return Outcome::Skipped(need.hint);
        }
        println!("({})", need.hint);
        command = need.instead;
    }
    let Some(mut process) = command_of(command) else {
        return Outcome::Failed("there is nothing to run".to_owned());
    };
    println!("    {}", command.join(" "));
    match process.envs(step.env.iter().copied()).status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(status.to_string()),
        Err(error) => Outcome::Failed(format!("{}: {error}", command[0])),
    }
}

/// Where tests that skip themselves say so (in `VMSCOPE_SKIPPED`): the runner hides what
/// passing tests print.
fn skipped_tests() -> PathBuf {
    std::env::temp_dir().join(format!("vmscope-skipped-{}", std::process::id()))
}

fn succeeds(probe: &[&str]) -> bool {
    command_of(probe).is_some_and(|mut command| {
        let quiet = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    })
}

fn command_of(words: &[&str]) -> Option<Command> {
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    // xtask/ lies in the repository's folder.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    command.args(arguments).current_dir(root);
    command.env("VMSCOPE_SKIPPED", skipped_tests());
    // Inner cargo calls must not inherit the outer cargo's variables.
    for (key, _) in std::env::vars_os() {
        let name = key.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&key);
        }
    }
    Some(command)
}
