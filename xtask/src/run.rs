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
    /// Whether it runs beside the next steps, with the CPU time that they leave.
    pub beside: bool,
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

/// How a step went.
struct Done {
    outcome: Outcome,
    seconds: f64,
    /// What a step beside others printed.
    output: String,
}

/// Linux gives these programs only the CPU time that no others want (`sched(7)`).
const IDLE: [&str; 3] = ["chrt", "--idle", "0"];

/// Runs every step, then says which passed, failed or were skipped and how long each took.
/// Returns whether none failed.
pub fn all(steps: &[&Step]) -> bool {
    let mut lines = Vec::new();
    let mut passed = true;
    let _ = std::fs::remove_file(skipped_tests());
    let mut note = |step: &Step, done: Done| {
        let (verdict, detail) = match done.outcome {
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
        let (seconds, name) = (done.seconds, step.name);
        lines.push(format!("{verdict:8} {seconds:6.1} s  {name}{detail}"));
    };
    std::thread::scope(|scope| {
        let mut beside = Vec::new();
        for step in steps {
            println!("\n=== {}", step.name);
            if step.beside {
                beside.push((step, scope.spawn(|| run(step))));
            } else {
                note(step, run(step));
            }
        }
        for (step, thread) in beside {
            if let Ok(done) = thread.join() {
                println!("\n=== {}\n{}", step.name, done.output);
                note(step, done);
            }
        }
    });
    if let Ok(skipped) = std::fs::read_to_string(skipped_tests()) {
        println!("\nSKIPPED tests:\n{skipped}");
        let _ = std::fs::remove_file(skipped_tests());
    }
    println!("\n{}", lines.join("\n"));
    passed
}

fn run(step: &Step) -> Done {
    let began = Instant::now();
    let mut output = String::new();
    let outcome = outcome(step, &mut output);
    let seconds = began.elapsed().as_secs_f64();
    Done {
        outcome,
        seconds,
        output,
    }
}

/// Runs a step. The output of a step beside others goes to `output`.
fn outcome(step: &Step, output: &mut String) -> Outcome {
    let mut command = step.command.to_vec();
    if let Some(need) = &step.needs
        && !succeeds(need.probe)
    {
        if need.instead.is_empty() {
            return Outcome::Skipped(need.hint);
        }
        println!("({})", need.hint);
        command = need.instead.to_vec();
    }
    println!("    {}", command.join(" "));
    if step.beside {
        command.splice(..0, IDLE);
    }
    let Some(mut process) = command_of(&command) else {
        return Outcome::Failed("there is nothing to run".to_owned());
    };
    process.envs(step.env.iter().copied());
    let status = if step.beside {
        process.output().map(|done| {
            for bytes in [&done.stdout, &done.stderr] {
                output.push_str(&String::from_utf8_lossy(bytes));
            }
            done.status
        })
    } else {
        process.status()
    };
    match status {
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
