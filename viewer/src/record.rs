//! `vmscope record` and `vmscope attach`: from a live process to a recording and its
//! report.

use anyhow::{Context, Result, bail};
use clap::Args;
use std::ffi::OsStr;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};
use vmscope_records::{DurationNs, EndReason, Pid};
use vmscope_sampler::session::{Outcome, Readers, Session, SessionOptions};
use vmscope_sampler::{
    EngineError, HeldCommand, KernelEngine, KernelOptions, LaunchError, RunningCommand,
    SamplingRate,
};
use vmscope_symbolizer::profile_of;
use vmscope_target::{AdapterFamily, AttachError, ProcessView, examine};

use crate::embed::embed_symbols;
use crate::report::{self, ReportOptions};
use crate::signals::Signals;

/// The recording's name where none is given.
pub const DEFAULT_OUTPUT: &str = "recording.vmscope";

/// How often the live line is drawn and signals are looked at.
const TICK: Duration = Duration::from_millis(100);

/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(3);

/// The most frames of a chain, unless --max-depth says otherwise: the kernel's own
/// default (`perf_event_max_stack`).
const DEFAULT_DEPTH: u16 = 127;

/// Options that `record` and `attach` have in common.
#[derive(Args, Clone, Debug)]
pub struct RecordOptions {
    /// Samples a second of each thread that runs
    #[arg(long, value_name = "HZ", default_value_t = SamplingRate::DEFAULT.hz(),
          allow_negative_numbers = true)]
    rate: f64,
    /// End after so many seconds (a command that was started is asked to end)
    #[arg(long, value_name = "SECS", value_parser = positive_seconds,
          allow_negative_numbers = true)]
    duration: Option<Duration>,
    /// Keep only the newest so many seconds, in memory; saved at the end, and a copy at
    /// each SIGUSR1
    #[arg(long, value_name = "SECS", value_parser = positive_seconds,
          allow_negative_numbers = true)]
    keep_last: Option<Duration>,
    /// The recording's file
    #[arg(long, short, value_name = "FILE", default_value = DEFAULT_OUTPUT)]
    output: PathBuf,
    /// How to sample
    #[arg(long, value_enum, default_value_t = EngineChoice::Auto)]
    engine: EngineChoice,
    /// Record caller chains, by frame pointer
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true,
          default_missing_value = "auto")]
    call_graph: Option<CallGraph>,
    /// The most frames of a caller chain
    #[arg(long, value_name = "FRAMES", default_value_t = DEFAULT_DEPTH,
          value_parser = clap::value_parser!(u16).range(1..))]
    max_depth: u16,
    /// No live line, no report
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    report: ReportOptions,
}

/// The engines there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum EngineChoice {
    /// The first that works
    Auto,
    /// perf events of the kernel
    Kernel,
}

/// The ways to get caller chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CallGraph {
    /// The best one there is: by frame pointer
    Auto,
    /// By frame pointer
    Fp,
}

/// `vmscope record`.
#[derive(Args, Clone, Debug)]
pub struct RecordArgs {
    #[command(flatten)]
    options: RecordOptions,
    /// The command to run, after `--`
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<std::ffi::OsString>,
}

/// `vmscope attach`.
#[derive(Args, Clone, Debug)]
pub struct AttachArgs {
    /// The process to attach to
    pid: u32,
    #[command(flatten)]
    options: RecordOptions,
}

/// How a recording went, for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Well.
    Well,
    /// The command that was started ended with this code.
    Command(u8),
    /// What was recorded is there, but not all of what should have been.
    Incomplete,
}

fn positive_seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "give a number of seconds greater than 0".to_owned();
    let value: f64 = text.parse().map_err(|_| wrong())?;
    if !(value.is_finite() && value > 0.0) {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(value).map_err(|_| wrong())
}

/// The VMs that vmscope knows: one line for each family.
fn families() -> Vec<Box<dyn AdapterFamily>> {
    Vec::new()
}

/// Starts a command and records it until it ends.
///
/// # Errors
/// When it can't be started, sampled or recorded.
pub fn record(args: &RecordArgs, out: &mut dyn Write) -> Result<Ended> {
    let Some((program, arguments)) = args.command.split_first() else {
        bail!("no command")
    };
    let options = &args.options;
    let rate = SamplingRate::from_hz(options.rate)?;
    let signals = Signals::catch()?;
    // A word mistyped is not to cost the recording that is there already.
    find_program(program)?;
    let mut command = Command::new(program);
    command.args(arguments);
    let held = HeldCommand::start(command)?;
    let engine = KernelEngine::follow(&held, &options.kernel_options(rate, &Readers::default()))
        .map_err(explain)?;
    let words = args
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let session_options = options.session_options(held.pid(), true, words);
    let session = Session::start(
        Box::new(engine),
        Readers::later(families()),
        session_options,
    )?;
    match held.release() {
        Ok(mut child) => {
            let ended = follow(session, options, &signals, out);
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
            // The recording of nothing goes the way of the command.
            let _ = session.finish();
            let _ = std::fs::remove_file(&options.output);
            Err(error.into())
        }
    }
}

/// Looks for a program as exec will, to fail before anything is touched. What else may
/// keep it from running (it may be no program) shows itself in the exec.
fn find_program(program: &OsStr) -> Result<(), LaunchError> {
    let candidates: Vec<PathBuf> = if program.as_bytes().contains(&b'/') {
        vec![PathBuf::from(program)]
    } else {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
        let folders = std::env::split_paths(&path);
        folders.map(|folder| folder.join(program)).collect()
    };
    let mut source = std::io::Error::from(std::io::ErrorKind::NotFound);
    for candidate in candidates {
        let may_run = nix::unistd::access(&candidate, nix::unistd::AccessFlags::X_OK);
        match may_run.map_err(std::io::Error::from) {
            Ok(()) if !candidate.is_dir() => return Ok(()),
            Ok(()) => source = std::io::ErrorKind::PermissionDenied.into(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => source = error,
        }
    }
    let program = program.to_string_lossy().into_owned();
    Err(LaunchError::Exec { program, source })
}

/// The exit code that a command's failure to start stands for, as shells have it.
#[must_use]
pub fn launch_code(error: &LaunchError) -> Option<u8> {
    match error {
        LaunchError::Exec { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Some(127)
        }
        LaunchError::Exec { .. } => Some(126),
        _ => None,
    }
}

/// Attaches to a running process and records it until it ends, or until Ctrl-C.
///
/// # Errors
/// When it can't be attached to, sampled or recorded.
pub fn attach(args: &AttachArgs, out: &mut dyn Write) -> Result<Ended> {
    let options = &args.options;
    let rate = SamplingRate::from_hz(options.rate)?;
    let pid = Pid(args.pid);
    let signals = Signals::catch()?;
    let facts = examine(pid)?;
    let families = families();
    let readers = if families.is_empty() {
        Readers::default()
    } else {
        Readers::of(ProcessView::open(pid)?, families)
    };
    let engine =
        KernelEngine::attach(pid, &options.kernel_options(rate, &readers)).map_err(explain)?;
    let command = if facts.command.is_empty() {
        vec![facts.name]
    } else {
        facts.command
    };
    let session = Session::start(
        Box::new(engine),
        readers,
        options.session_options(pid, false, command),
    )?;
    let ended = follow(session, options, &signals, out)?;
    Ok(if ended.complete {
        Ended::Well
    } else {
        Ended::Incomplete
    })
}

/// Adds what helps to an engine's error.
fn explain(error: EngineError) -> anyhow::Error {
    let hint = matches!(error, EngineError::Forbidden { .. });
    let error = anyhow::Error::new(error);
    if hint {
        error.context("`vmscope doctor` says what can be sampled here")
    } else {
        error
    }
}

impl RecordOptions {
    fn kernel_options(&self, rate: SamplingRate, readers: &Readers) -> KernelOptions {
        let needs = readers.sample_needs();
        KernelOptions {
            rate,
            call_graph_depth: self.call_graph.map(|_| self.max_depth),
            registers: needs.registers,
            stack_bytes: u16::try_from(needs.stack_bytes).unwrap_or(u16::MAX),
            max_descriptors: None,
        }
    }

    fn session_options(&self, pid: Pid, launched: bool, command: Vec<String>) -> SessionOptions {
        SessionOptions {
            pid,
            launched,
            command,
            engine_reason: match self.engine {
                EngineChoice::Auto => "the first that works".to_owned(),
                EngineChoice::Kernel => String::new(),
            },
            output: self.output.clone(),
            keep_last: self.keep_last.map(DurationNs::from),
            duration: self.duration,
        }
    }
}

/// How following a session ended.
struct Followed {
    /// Whether the target is to be asked to end.
    asked: bool,
    /// Whether everything that should be in the recording is.
    complete: bool,
}

/// Watches a session until it ends, makes its recording self-contained and reports.
fn follow(
    session: Session,
    options: &RecordOptions,
    signals: &Signals,
    out: &mut dyn Write,
) -> Result<Followed> {
    let mut line = LiveLine::new(!options.quiet);
    let mut copies = 0;
    while !session.progress().is_done() {
        if signals.end_asked() {
            session.stop(EndReason::Interrupted);
        }
        if signals.take_save() {
            copies += 1;
            save_copy(&session, options, copies, &mut line);
        }
        line.draw(&session);
        std::thread::sleep(TICK);
    }
    line.clear();
    let outcome = session.finish()?;
    let asked = matches!(
        outcome.reason,
        EndReason::Interrupted | EndReason::DurationOver
    );
    let complete = finish(&outcome, options, out)?;
    Ok(Followed { asked, complete })
}

/// Embeds the symbols, says what was recorded, and reports.
fn finish(outcome: &Outcome, options: &RecordOptions, out: &mut dyn Write) -> Result<bool> {
    let path = &options.output;
    let mut complete = outcome.failure.is_none();
    if let Some(failure) = &outcome.failure {
        say(&format!("the recording ended early: {failure}"));
    }
    let trace = match embed_symbols(path, &outcome.modules) {
        Ok(trace) => trace,
        Err(error) => {
            say(&format!("the recording holds no symbols: {error:#}"));
            complete = false;
            report::read_trace(path)?
        }
    };
    say(&format!(
        "{} samples in {:.1} s, {} lost; {} in {}",
        outcome.written.samples,
        outcome.took.as_secs_f64(),
        outcome.lost,
        bytes(std::fs::metadata(path).map_or(0, |metadata| metadata.len())),
        path.display(),
    ));
    if !options.quiet {
        let profile = profile_of(trace, Vec::new(), !options.report.no_inline);
        report::write(&profile, &options.report, out)?;
        out.flush()?;
    }
    Ok(complete)
}

fn save_copy(session: &Session, options: &RecordOptions, number: u32, line: &mut LiveLine) {
    line.clear();
    if options.keep_last.is_none() {
        say("SIGUSR1 saves a copy with --keep-last only: this recording is in its file already");
        return;
    }
    let path = numbered(&options.output, number);
    match session.save_copy(&path) {
        Ok(saved) => {
            // The modules stay with the session: what can be opened by name is embedded.
            let embedded = embed_symbols(&path, &vmscope_target::Modules::new());
            let note = embedded
                .err()
                .map_or_else(String::new, |error| format!(" ({error:#})"));
            say(&format!(
                "saved {} samples in {}{note}",
                saved.written.samples,
                path.display()
            ));
        }
        Err(error) => say(&format!("the copy was not saved: {error}")),
    }
}

/// `out.vmscope` → `out.1.vmscope`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let stem = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let name = match path.extension() {
        Some(extension) => format!("{stem}.{number}.{}", extension.to_string_lossy()),
        None => format!("{stem}.{number}"),
    };
    path.with_file_name(name)
}

/// Waits for the command's end; asks it to end first where the recording was ended by
/// the user or by --duration.
fn end_command(
    child: &mut RunningCommand,
    asked: bool,
    options: &RecordOptions,
) -> Result<Option<ExitStatus>> {
    if !asked {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if !options.quiet {
            say("the command goes on; waiting for its end");
        }
        return child
            .wait()
            .map(Some)
            .context("cannot wait for the command");
    }
    // At a terminal it has had its own SIGINT.
    let pid = i32::try_from(child.pid().0).map(nix::unistd::Pid::from_raw);
    let mut signal = Some(nix::sys::signal::Signal::SIGTERM);
    let since = Instant::now();
    while since.elapsed() < GRACE {
        if child.try_wait()?.is_some() {
            // It ended because we asked: its code says nothing.
            return Ok(None);
        }
        if let (Some(signal), Ok(pid)) = (signal.take(), pid) {
            // Gone already: the next round sees it.
            let _ = nix::sys::signal::kill(pid, signal);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    say(&format!(
        "the command (pid {}) does not end and was left running",
        child.pid()
    ));
    Ok(None)
}

/// The code by which a command's end is passed on: its own, or 128 + its signal.
fn exit_code(status: ExitStatus) -> Option<u8> {
    use std::os::unix::process::ExitStatusExt;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))?;
    u8::try_from(code & 0xff).ok()
}

/// Says something to the user beside the data: on stderr.
fn say(text: &str) {
    // Where stderr is closed, nobody listens.
    let _ = writeln!(std::io::stderr(), "vmscope: {text}");
}

/// The line that shows how a recording is getting on; nothing where stderr is not a
/// terminal.
struct LiveLine {
    on: bool,
    drawn: bool,
    last: Instant,
    samples: u64,
    rate: f64,
}

impl LiveLine {
    fn new(wanted: bool) -> Self {
        let on = wanted && std::io::stderr().is_terminal();
        LiveLine {
            on,
            drawn: false,
            last: Instant::now(),
            samples: 0,
            rate: 0.0,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn draw(&mut self, session: &Session) {
        let since = self.last.elapsed();
        if !self.on || (self.drawn && since < Duration::from_millis(500)) {
            return;
        }
        let progress = session.progress();
        let samples = progress.samples();
        if self.drawn {
            self.rate = (samples - self.samples.min(samples)) as f64 / since.as_secs_f64();
        }
        (self.last, self.samples, self.drawn) = (Instant::now(), samples, true);
        let elapsed = vmscope_sampler::session::now()
            .since(session.began())
            .as_secs_f64();
        let _ = write!(
            std::io::stderr(),
            "\r\x1b[Kvmscope: {elapsed:.1} s  {samples} samples  {:.0}/s  {} lost  {}  (Ctrl-C ends)",
            self.rate,
            progress.lost(),
            bytes(progress.bytes()),
        );
    }

    fn clear(&mut self) {
        if self.drawn {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
            self.drawn = false;
        }
    }
}

/// A size for people.
#[expect(
    clippy::cast_precision_loss,
    reason = "a size with one digit after the point"
)]
fn bytes(size: u64) -> String {
    match size {
        0..1_000 => format!("{size} B"),
        1_000..1_000_000 => format!("{:.1} kB", size as f64 / 1e3),
        _ => format!("{:.1} MB", size as f64 / 1e6),
    }
}

/// Whether an error is about the target, not about vmscope.
#[must_use]
pub fn is_about_target(error: &anyhow::Error) -> bool {
    error.downcast_ref::<AttachError>().is_some()
        || matches!(
            error.downcast_ref::<EngineError>(),
            Some(
                EngineError::NoSuchProcess { .. }
                    | EngineError::ExitedWhileAttaching { .. }
                    | EngineError::Zombie { .. }
                    | EngineError::KernelThread { .. }
                    | EngineError::NotAProcess { .. }
                    | EngineError::SomeoneElses { .. }
            )
        )
}
