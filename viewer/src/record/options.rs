//! Options of `record` and `attach`.

use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use vmscope_records::{DurationNs, Pid};
use vmscope_sampler::session::{Readers, SessionOptions};
use vmscope_sampler::{KernelOptions, Opening, RateError, SamplingRate, UserCallers};

use super::engines::ChosenEngine;
use super::families::FamilyOptions;
use super::lifetime_rate::LifetimeOptions;

use crate::report::ReportOptions;

/// Default name of a recording.
pub const DEFAULT_OUTPUT: &str = "recording.vmscope";

/// Default maximum number of frames per chain (docs/truth.md). Compilers' and frameworks' chains exceed perf's 127.
const DEFAULT_DEPTH: u16 = 256;

/// Default bytes of stack per sample: some hundreds of frames.
const DEFAULT_STACK: u16 = 32 << 10;

/// Maximum bytes of stack per sample: the kernel's records have at most 64 KiB.
const MAX_STACK: i64 = (63 << 10) + 512;

/// Sampling options of `record`, `attach` and `top`.
#[derive(Args, Clone, Debug)]
pub struct SamplingOptions {
    /// Samples per second of each running thread [default: 1400.7]
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    pub(super) rate: Option<f64>,
    /// Stop after this many seconds (and ask a started command to exit)
    #[arg(long, value_name = "SECS", value_parser = positive_seconds,
          allow_negative_numbers = true)]
    pub(super) duration: Option<Duration>,
    /// Sampling engine
    #[arg(long, value_enum, default_value_t = EngineChoice::Auto)]
    pub(super) engine: EngineChoice,
    /// How to find the callers of each sample
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true,
          default_missing_value = "auto", default_value_t = CallGraph::Auto)]
    pub(super) call_graph: CallGraph,
    /// Maximum number of frames per caller chain
    #[arg(long, value_name = "FRAMES", default_value_t = DEFAULT_DEPTH,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) max_depth: u16,
    /// Bytes of stack that each sample copies for --call-graph=auto
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_STACK,
          value_parser = clap::value_parser!(u16).range(512..=MAX_STACK))]
    pub(super) stack_size: u16,
    #[command(flatten)]
    pub(super) families: FamilyOptions,
    #[command(flatten)]
    pub(super) lifetimes: LifetimeOptions,
}

/// Options of `record` and `attach`.
#[derive(Args, Clone, Debug)]
pub struct RecordOptions {
    #[command(flatten)]
    pub(super) sampling: SamplingOptions,
    /// Keep only this many newest seconds; SIGUSR1 saves a copy
    #[arg(long, value_name = "SECS", value_parser = positive_seconds,
          allow_negative_numbers = true)]
    pub(super) keep_last: Option<Duration>,
    /// The recording's file
    #[arg(long, short, value_name = "FILE", default_value = DEFAULT_OUTPUT)]
    pub(super) output: PathBuf,
    /// Record the command line as it is; otherwise values that look like secrets become ***
    ///
    /// Secrets are values of options and variables whose names end in password, token, secret,
    /// key of an API and the like, passwords in URLs, and HTTP authorization.
    #[arg(long)]
    pub(super) keep_secrets: bool,
    /// No live line, no report
    #[arg(long, short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) report: ReportOptions,
}

impl RecordOptions {
    /// The duration, set to `usual` if the user has set none.
    pub fn duration_or(&mut self, usual: Duration) -> Duration {
        *self.sampling.duration.get_or_insert(usual)
    }

    pub fn is_quiet(&self) -> bool {
        self.quiet
    }
}

impl SamplingOptions {
    /// Checks target-independent options before any side effect.
    ///
    /// # Errors
    /// An invalid rate.
    pub fn check(&self) -> anyhow::Result<()> {
        self.rate()?;
        Ok(())
    }

    pub(super) fn rate(&self) -> Result<SamplingRate, RateError> {
        self.rate
            .map_or(Ok(SamplingRate::DEFAULT), SamplingRate::from_hz)
    }

    /// The engine's options; `readers` add data to each sample, `opening` shows the progress.
    ///
    /// # Errors
    /// An invalid rate.
    pub(super) fn kernel_options(
        &self,
        readers: &Readers,
        opening: Arc<Opening>,
    ) -> anyhow::Result<KernelOptions> {
        let needs = readers.sample_needs();
        Ok(KernelOptions {
            rate: self.rate()?,
            call_graph: self.call_graph.asked(self),
            registers: needs.registers,
            stack_bytes: u16::try_from(needs.stack_bytes).unwrap_or(u16::MAX),
            max_descriptors: None,
            opening,
        })
    }

    pub(super) fn asks_callers(&self) -> bool {
        self.call_graph != CallGraph::Off
    }

    /// Options of a session in memory.
    pub fn session_options(
        &self,
        engine: &ChosenEngine,
        pids: Vec<Pid>,
        launched: bool,
        command: Vec<String>,
    ) -> SessionOptions {
        SessionOptions {
            pids,
            launched,
            command,
            engine_reason: engine.reason.clone(),
            unwind_depth: (engine.copies_stacks && self.call_graph == CallGraph::Auto)
                .then_some(self.max_depth),
            duration: self.duration,
            ..SessionOptions::default()
        }
    }
}

impl RecordOptions {
    pub(super) fn session_options(
        &self,
        engine: &ChosenEngine,
        pids: Vec<Pid>,
        launched: bool,
        command: Vec<String>,
    ) -> SessionOptions {
        SessionOptions {
            output: Some(self.output.clone()),
            keep_last: self.keep_last.map(DurationNs::from),
            keep_secrets: self.keep_secrets,
            ..self
                .sampling
                .session_options(engine, pids, launched, command)
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum EngineChoice {
    /// The first that works
    Auto,
    /// perf events of the kernel
    Kernel,
    /// The VM's own sampler, in VMs that link vmscope-publish: for where perf events are forbidden.
    /// Samples its registered threads, without kernel addresses; callers by frame pointers
    InVm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum CallGraph {
    /// By unwind tables and the VM's rules, from a copy of the stack
    Auto,
    /// By frame pointers: a little cheaper, for programs that have them everywhere
    Fp,
    /// Not at all
    Off,
}

impl CallGraph {
    fn asked(self, options: &SamplingOptions) -> Option<vmscope_sampler::CallGraph> {
        let from = match self {
            CallGraph::Auto => UserCallers::Stack(options.stack_size),
            CallGraph::Fp => UserCallers::FramePointers,
            CallGraph::Off => return None,
        };
        let depth = options.max_depth;
        Some(vmscope_sampler::CallGraph { depth, from })
    }
}

pub(super) fn positive_seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a number of seconds greater than 0".to_owned();
    let value: f64 = text.parse().map_err(|_| wrong())?;
    if !(value.is_finite() && value > 0.0) {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(value).map_err(|_| wrong())
}
