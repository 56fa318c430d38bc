//! `vmscope demo`: profiles the embedded VM.
//!
//! The VM runs as a separate process; vmscope attaches from outside, like to any other VM.

use crate::print::{ListError, Printer, say};
use crate::record::{self, Ended, RecordOptions};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use vmscope_process::ProcessView;
use vmscope_publish_reader::{EXPECT, publishes};
use vmscope_records::Pid;
use vmscope_reference_vm::{PROGRAMS, syntax};
use vmscope_sampler::Favoured;

/// Default program of `demo`.
const DEFAULT_PROGRAM: &str = "tinyBenchmarks";
/// Default duration of the demo.
const DURATION: Duration = Duration::from_secs(5);
/// Maximum VM lifetime beyond the recording, in case vmscope can't end the VM.
const GRACE: Duration = Duration::from_secs(30);
/// Longest wait for the VM's self-description.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Args, Clone, Debug)]
pub struct DemoArgs {
    /// The embedded program to run, again and again [default: tinyBenchmarks]
    program: Option<String>,
    /// List the programs
    #[arg(long)]
    list: bool,
    /// Run a Smalltalk expression instead, again and again
    #[arg(
        long,
        short = 'e',
        value_name = "SMALLTALK",
        conflicts_with = "program"
    )]
    expression: Option<String>,
    /// Collect all garbage before the program begins
    #[arg(long)]
    gc_before: bool,
    #[command(flatten)]
    options: RecordOptions,
}

/// The VM's process. Ends with the demo.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The process may already have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the demo.
pub fn run(args: &DemoArgs, favoured: &Favoured, out: &mut Printer<'_>) -> Result<Ended> {
    if args.list {
        for program in PROGRAMS {
            out.text(&format!("{:16}{}\n", program.name, program.summary))?;
        }
        return Ok(Ended::Well);
    }
    if let Some(expression) = &args.expression {
        // Report syntax errors before the VM starts.
        syntax::parse_expression("expression", expression)?;
    }
    let mut options = args.options.clone();
    let duration = options.duration_or(DURATION);
    let mut vm = Running(start(args, duration)?);
    let pid = Pid(vm.0.id());
    await_description(&mut vm.0, pid)?;
    if !options.is_quiet() {
        let seconds = duration.as_secs_f64();
        say(&format!(
            "profiling the embedded VM, process {pid}, for {seconds} s"
        ));
    }
    let ended = record::attach_to(vec![pid], &options, favoured, out)?;
    match vm.0.try_wait()? {
        Some(status) if !status.success() => {
            say(&format!("the embedded VM ended early ({status})"));
            Ok(Ended::Command(1))
        }
        _ => Ok(ended),
    }
}

/// Starts the VM.
fn start(args: &DemoArgs, duration: Duration) -> Result<Child> {
    let own = std::env::current_exe().context("cannot find vmscope's own program")?;
    let mut command = Command::new(own);
    command.arg("reference-vm");
    let name = args.program.as_deref().unwrap_or(DEFAULT_PROGRAM);
    match (
        &args.expression,
        PROGRAMS.iter().find(|program| program.name == name),
    ) {
        (Some(expression), _) => command.args(["--expression", expression]),
        (None, Some(program)) => command.arg(name).args(program.options),
        (None, None) => bail!(ListError {
            message: format!("there is no program named {name}; the programs are"),
            list: PROGRAMS
                .iter()
                .map(|program| program.name.to_owned())
                .collect(),
        }),
    };
    if args.gc_before {
        command.arg("--gc-before");
    }
    let seconds = (duration + GRACE).as_secs().to_string();
    command.args(["--seconds", &seconds]);
    // Hides the VM's output. Ctrl-C reaches only vmscope; vmscope then ends the VM.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0);
    // The VM waits for vmscope before starting the program.
    command.env(EXPECT, "1");
    command.spawn().context("cannot start the embedded VM")
}

/// Waits until the VM has created its self-description memory.
fn await_description(vm: &mut Child, pid: Pid) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = vm.try_wait()? {
            bail!("the embedded VM ended before it could be profiled ({status})");
        }
        if ProcessView::open(pid).is_ok_and(|view| publishes(&view)) {
            return Ok(());
        }
        if Instant::now() >= end {
            bail!("the embedded VM does not describe itself");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
