//! `vmscope record` and `vmscope attach`: from a live process to recording and report.

mod command;
mod engines;
mod environment;
pub(crate) mod families;
mod follow;
pub(crate) mod lifetime_rate;
pub(crate) mod live_line;
mod named;
mod opening;
mod options;
mod script;
mod starts_programs;

pub use command::launch_code;
pub use engines::ChosenEngine;
pub use lifetime_rate::joined;
pub use named::Named;
pub use opening::{Interrupted, Target};
pub use options::{DEFAULT_OUTPUT, RecordOptions, SamplingOptions};

use anyhow::{Result, bail};
use clap::Args;
use std::process::Command;
use vmscope_process::{AttachError, FilesReason};
use vmscope_records::{EndReason, LimitKind, Pid};
use vmscope_sampler::session::{Readers, Session};
use vmscope_sampler::{CodeError, EngineError, Favoured, HeldCommand};

use command::{end_command, exit_code, find_program};
use environment::Prepared;
pub(crate) use follow::EarlierRecording;
use follow::follow;
use starts_programs::may_run_vms;

use crate::print::{Printer, say};
use crate::signals::Signals;

#[derive(Args, Clone, Debug)]
pub struct RecordArgs {
    #[command(flatten)]
    options: RecordOptions,
    /// Do not set environment variables for the command. By default vmscope sets those that
    /// make VMs write names of their JIT code (PYTHONPERFSUPPORT=1 and others). The
    /// report lists them; vmscope removes the written files
    #[arg(long)]
    no_jit_env: bool,
    /// Set such variables for Node.js and Electron too (NODE_OPTIONS=--perf-prof). vmscope reads
    /// Node.js 18 to 26 (even releases) without: from memory, with more detail
    #[arg(long, conflicts_with = "no_jit_env")]
    jit_env: bool,
    /// Exact bytecodes and lines in optimised JVM code: sets JAVA_TOOL_OPTIONS with
    /// -XX:+DebugNonSafepoints. The JVM then needs more memory for compiled code and prints one
    /// line on stderr. With --jit-env, for node, npm, yarn, pnpm and deno: names of interpreted
    /// callers, by --interpreted-frames-native-stack (Node 12 and later start with it)
    #[arg(long, conflicts_with = "no_jit_env")]
    precise: bool,
    /// The command to run, after `--`
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<std::ffi::OsString>,
}

#[derive(Args, Clone, Debug)]
pub struct AttachArgs {
    /// PIDs of the processes, or their names if only one of your processes has the name
    #[arg(value_name = "PID|NAME", required = true)]
    processes: Vec<Named>,
    #[command(flatten)]
    options: RecordOptions,
}

/// Outcome of a recording, for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Success.
    Well,
    /// Exit code of the launched command.
    Command(u8),
    /// The recording is incomplete.
    Incomplete,
}

/// Launches a command and records it until its end.
///
/// # Errors
/// Failure to launch, sample or record.
pub fn record(args: &RecordArgs, out: &mut Printer<'_>) -> Result<Ended> {
    let Some((program, arguments)) = args.command.split_first() else {
        bail!("no command")
    };
    let options = &args.options;
    options.sampling.check()?;
    let signals = Signals::catch()?;
    // A mistyped command must not cost the existing recording.
    let path = find_program(program)?;
    let asks_vms = !args.no_jit_env && may_run_vms(&path);
    let mut command = Command::new(program);
    command.args(arguments);
    let words: Vec<String> = (args.command.iter())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let lifetimes = options.sampling.lifetimes.rate();
    let mut launch = environment::launch_of(&words);
    launch.program = script::executed(path);
    launch.files = args.jit_env.then_some(FilesReason::Asked);
    let families = &options.sampling.families;
    let mut readers = Readers::later(if asks_vms {
        families.launching(lifetimes, &mut launch)
    } else {
        families.attaching(lifetimes)
    });
    readers.launching(&launch);
    let environment = if asks_vms {
        environment::prepare(&mut command, &launch, &readers, args.precise)
    } else {
        Prepared::default()
    };
    if args.precise && !environment.is_more_precise && !options.quiet {
        say(
            "--precise has no effect: the command's VM has no such option, or the environment \
             already sets it",
        );
    }
    let held = HeldCommand::start(command)?;
    // From now on: the command must not inherit it.
    let favoured = Favoured::begin();
    if asks_vms {
        readers.launched(held.pid());
    }
    let chosen = ChosenEngine::follow(&held, &options.sampling, &readers)?;
    let mut session_options = options.session_options(&chosen, vec![held.pid()], true, words);
    session_options.environment = environment.told;
    let earlier = EarlierRecording::of(&options.output, options.quiet);
    let session = Session::start(chosen.engine, readers, session_options)?;
    match held.release() {
        Ok(mut child) => {
            earlier.tell_name();
            let ended = follow(session, options, &signals, &favoured, out);
            let status = end_command(&mut child, ended.as_ref().is_ok_and(|e| e.asked), options)?;
            let ended = ended?;
            Ok(match status.and_then(exit_code) {
                Some(code) if code != 0 => Ended::Command(code),
                _ if ended.complete => Ended::Well,
                _ => Ended::Incomplete,
            })
        }
        Err(error) => {
            session.stop(EndReason::Interrupted);
            // Nothing was recorded: the empty file goes too.
            let _ = session.finish();
            let _ = std::fs::remove_file(&options.output);
            earlier.restore();
            Err(error.into())
        }
    }
}

/// Attaches to running processes and records until their end or Ctrl-C.
///
/// # Errors
/// Failure to attach, sample or record.
pub fn attach(args: &AttachArgs, favoured: &Favoured, out: &mut Printer<'_>) -> Result<Ended> {
    args.options.sampling.check()?;
    let pids = Named::pids(&args.processes)?;
    attach_to(pids, &args.options, favoured, out)
}

/// As [`attach`], for these processes.
///
/// # Errors
/// Failure to attach, sample or record.
pub fn attach_to(
    pids: Vec<Pid>,
    options: &RecordOptions,
    favoured: &Favoured,
    out: &mut Printer<'_>,
) -> Result<Ended> {
    options.sampling.check()?;
    let signals = Signals::catch()?;
    let target = Target::open(&pids, &options.sampling, &signals, options.quiet)?;
    let chosen = target.chosen;
    let limits = chosen.engine.description().limits.iter();
    for limit in limits.filter(|limit| !options.quiet && limit.kind == LimitKind::NotSampled) {
        say(&match limit.remedy.is_empty() {
            true => limit.text.clone(),
            false => format!("{} ({})", limit.text, limit.remedy),
        });
    }
    let earlier = EarlierRecording::of(&options.output, options.quiet);
    let session_options = options.session_options(&chosen, pids, false, target.command);
    let session = Session::start(chosen.engine, target.readers, session_options)?;
    earlier.tell_name();
    let ended = follow(session, options, &signals, favoured, out)?;
    Ok(if ended.complete {
        Ended::Well
    } else {
        Ended::Incomplete
    })
}

/// Adds a remedy to an engine's error.
fn explain(error: EngineError) -> anyhow::Error {
    let hint = matches!(error, EngineError::Forbidden { .. });
    let error = anyhow::Error::new(error);
    if hint {
        error.context("run `vmscope doctor` for causes and remedies")
    } else {
        error
    }
}

/// Whether the target, not vmscope, causes an error.
#[must_use]
pub fn is_about_target(error: &anyhow::Error) -> bool {
    error.downcast_ref::<AttachError>().is_some()
        || error.downcast_ref::<named::NoneNamed>().is_some()
        || error.downcast_ref::<CodeError>().is_some()
        || matches!(
            error.downcast_ref::<EngineError>(),
            Some(
                EngineError::NoSuchProcess { .. }
                    | EngineError::ExitedWhileAttaching { .. }
                    | EngineError::Zombie { .. }
                    | EngineError::KernelThread { .. }
                    | EngineError::NotAProcess { .. }
                    | EngineError::SomeoneElses { .. }
                    | EngineError::DoesNotPublish { .. }
                    | EngineError::NeverPublished { .. }
                    | EngineError::Publication { .. }
                    | EngineError::SamplerRefused { .. }
            )
        )
}
