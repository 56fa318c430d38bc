//! What `record` and `attach` can be asked for.

use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use vmscope_records::{DurationNs, Pid};
use vmscope_sampler::session::{Readers, SessionOptions};
use vmscope_sampler::{KernelOptions, SamplingRate};

use crate::report::ReportOptions;

/// The recording's name where none is given.
pub const DEFAULT_OUTPUT: &str = "recording.vmscope";

/// The most frames of a chain, unless --max-depth says otherwise: the kernel's own
/// default (`perf_event_max_stack`).
const DEFAULT_DEPTH: u16 = 127;

/// How to sample: what `record`, `attach` and `top` have in common.
#[derive(Args, Clone, Debug)]
pub struct SamplingOptions {
    /// Samples a second of each thread that runs
    #[arg(long, value_name = "HZ", default_value_t = SamplingRate::DEFAULT.hz(),
          allow_negative_numbers = true)]
    pub(super) rate: f64,
    /// End after so many seconds (a command that was started is asked to end)
    #[arg(long, value_name = "SECS", value_parser = positive_seconds,
          allow_negative_numbers = true)]
    pub(super) duration: Option<Duration>,
    /// How to sample
    #[arg(long, value_enum, default_value_t = EngineChoice::Auto)]
    pub(super) engine: EngineChoice,
    /// Record caller chains, by frame pointer
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true,
          default_missing_value = "auto")]
    pub(super) call_graph: Option<CallGraph>,
    /// The most frames of a caller chain
    #[arg(long, value_name = "FRAMES", default_value_t = DEFAULT_DEPTH,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) max_depth: u16,
}

/// Options that `record` and `attach` have in common.
#[derive(Args, Clone, Debug)]
pub struct RecordOptions {
    #[command(flatten)]
    pub(super) sampling: SamplingOptions,
    /// Keep only the newest so many seconds, in memory; saved at the end, and a copy at
    /// each SIGUSR1
    #[arg(long, value_name = "SECS", value_parser = positive_seconds,
          allow_negative_numbers = true)]
    pub(super) keep_last: Option<Duration>,
    /// The recording's file
    #[arg(long, short, value_name = "FILE", default_value = DEFAULT_OUTPUT)]
    pub(super) output: PathBuf,
    /// No live line, no report
    #[arg(long, short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) report: ReportOptions,
}

impl SamplingOptions {
    /// Checks what does not depend on a target, before anything is done to one.
    ///
    /// # Errors
    /// When there is no such rate.
    pub fn check(&self) -> anyhow::Result<()> {
        SamplingRate::from_hz(self.rate)?;
        Ok(())
    }

    /// The engine's options, with what `readers` want to know of each sample.
    ///
    /// # Errors
    /// When there is no such rate.
    pub fn kernel_options(&self, readers: &Readers) -> anyhow::Result<KernelOptions> {
        let needs = readers.sample_needs();
        Ok(KernelOptions {
            rate: SamplingRate::from_hz(self.rate)?,
            call_graph_depth: self.call_graph.map(|_| self.max_depth),
            registers: needs.registers,
            stack_bytes: u16::try_from(needs.stack_bytes).unwrap_or(u16::MAX),
            max_descriptors: None,
        })
    }

    /// The session's options, of a recording in memory.
    pub fn session_options(
        &self,
        pid: Pid,
        launched: bool,
        command: Vec<String>,
    ) -> SessionOptions {
        SessionOptions {
            pid,
            launched,
            command,
            engine_reason: match self.engine {
                EngineChoice::Auto => "the first that works".to_owned(),
                EngineChoice::Kernel => String::new(),
            },
            output: None,
            keep_last: None,
            duration: self.duration,
            environment: Vec::new(),
            tap: None,
            adapters_share: None,
        }
    }
}

impl RecordOptions {
    pub(super) fn session_options(
        &self,
        pid: Pid,
        launched: bool,
        command: Vec<String>,
    ) -> SessionOptions {
        SessionOptions {
            output: Some(self.output.clone()),
            keep_last: self.keep_last.map(DurationNs::from),
            ..self.sampling.session_options(pid, launched, command)
        }
    }
}

/// The engines there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum EngineChoice {
    /// The first that works
    Auto,
    /// perf events of the kernel
    Kernel,
}

/// The ways to get caller chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum CallGraph {
    /// The best one there is: by frame pointer
    Auto,
    /// By frame pointer
    Fp,
}

pub(super) fn positive_seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "give a number of seconds greater than 0".to_owned();
    let value: f64 = text.parse().map_err(|_| wrong())?;
    if !(value.is_finite() && value > 0.0) {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(value).map_err(|_| wrong())
}
