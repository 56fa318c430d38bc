//! One VM: waits for shared memory, starts the sampler, reads samples, stops the sampler.

use std::os::fd::OwnedFd;
use std::time::Duration;

use vmscope_process::{AdapterError, ProcessView};
use vmscope_publish::reader::Attached;
use vmscope_publish::sampler::{
    LONGEST_PERIOD, Priority, SHORTEST_PERIOD, SamplerOptions, SamplerState,
};
use vmscope_records::{DurationNs, Limit, LimitKind, Pid};

use super::order::Order;
use super::sampling::{Sampling, Setting};
use super::{InVmOptions, LOOK_EVERY, limit, ns};
use crate::engine::{EngineError, EngineEvent};
use crate::kernel::{check_target, stopped};
use crate::sys;

/// Interval between lease renewals while waiting for the sampler's start.
const RENEW_EVERY_NS: u64 = 2_000_000_000;

/// Longest pause between checks for shared memory.
const LONGEST_PAUSE_NS: u64 = 100_000_000;

/// Time after which a start command counts as refused, if taken without effect.
const REFUSED_AFTER_NS: u64 = 200_000_000;

/// Shorter waits for the sampler are normal, and not reported.
const SHORT_WAIT_NS: u64 = 20_000_000;

#[derive(Debug)]
pub(super) struct Vm {
    pid: u32,
    pub pidfd: OwnedFd,
    pub has_exited: bool,
    launched: bool,
    options: InVmOptions,
    phase: Phase,
    /// Start of the wait for the sampler.
    since: u64,
    /// Time of the next check for shared memory, or of the next lease renewal.
    next_look: u64,
    inner_pid: u32,
    trouble: Option<AdapterError>,
    stopped: Option<Limit>,
}

/// State of a VM's sampler.
#[derive(Debug)]
enum Phase {
    /// No shared memory yet.
    Absent,
    /// Shared memory exists, and vmscope has sent a start command to the sampler.
    Asked(Box<Asked>),
    /// The sampler runs, or ran.
    Sampling(Box<Sampling>),
}

#[derive(Debug)]
struct Asked {
    attached: Attached,
    /// Number of the start command.
    request: u64,
    /// Time of first seeing the command done without a running sampler.
    taken: Option<u64>,
}

impl Vm {
    /// Opens a running VM, and sends a start command to its sampler. With `may_keep`, an already
    /// running sampler keeps its options.
    pub fn running(pid: u32, options: &InVmOptions, may_keep: bool) -> Result<Self, EngineError> {
        let mut vm = Self::new(pid, options, false)?;
        let published = vm.open().map_err(|source| EngineError::Publication {
            pid: Pid(pid),
            source,
        })?;
        let attached = published.ok_or(EngineError::DoesNotPublish { pid: Pid(pid) })?;
        vm.ask(attached, sys::monotonic_ns(), may_keep);
        Ok(vm)
    }

    /// A launched process that may later publish shared memory.
    pub fn launched(pid: u32, options: &InVmOptions) -> Result<Self, EngineError> {
        Self::new(pid, options, true)
    }

    fn new(pid: u32, options: &InVmOptions, launched: bool) -> Result<Self, EngineError> {
        let stat = check_target(pid)?;
        let pidfd = sys::pidfd_open(pid).map_err(|source| EngineError::Syscall {
            operation: "pidfd_open",
            object: format!("process {pid}"),
            source,
        })?;
        let now = sys::monotonic_ns();
        Ok(Self {
            pid,
            pidfd,
            has_exited: false,
            launched,
            options: *options,
            phase: Phase::Absent,
            since: now,
            next_look: now,
            inner_pid: pid,
            trouble: None,
            stopped: stopped(pid, &stat, now),
        })
    }

    /// Opens the shared memory; `None` while the process has none.
    fn open(&mut self) -> Result<Option<Attached>, AdapterError> {
        let Ok(view) = ProcessView::open(Pid(self.pid)) else {
            // The process is just starting, or has ended.
            return Ok(None);
        };
        self.inner_pid = view.inner_pid().0;
        (self.options.open)(&view)
    }

    fn ask(&mut self, mut attached: Attached, now: u64, may_keep: bool) {
        attached.read_samples_only();
        let status = attached.sampler_status();
        if may_keep && status.state == SamplerState::Running {
            let period = status.options.period;
            let options = SamplerOptions {
                // The memory may hold anything.
                period: period.clamp(SHORTEST_PERIOD, LONGEST_PERIOD),
                ..status.options
            };
            return self.begin(attached, false, options, now);
        }
        let request = attached.start_sampler(&self.wanted());
        let taken = None;
        self.phase = Phase::Asked(Box::new(Asked {
            attached,
            request,
            taken,
        }));
    }

    fn wanted(&self) -> SamplerOptions {
        SamplerOptions {
            period: Duration::from_nanos(self.options.rate.period().get()),
            chains: self.options.callers.is_some(),
            keep_oldest: false,
        }
    }

    /// Time of the first possible sample; `None` before sampling.
    pub fn since(&self) -> Option<u64> {
        self.sampling().map(Sampling::started)
    }

    /// The sampler's period; `None` before sampling.
    pub fn period(&self) -> Option<DurationNs> {
        let sampling = self.sampling()?;
        Some(DurationNs(sampling.period_ns()))
    }

    pub fn is_waiting(&self) -> bool {
        !self.has_exited && self.sampling().is_none()
    }

    pub fn is_behind(&self) -> bool {
        self.sampling().is_some_and(Sampling::is_behind)
    }

    /// Whether samples have callers; before sampling, whether the options request callers.
    pub fn has_callers(&self) -> bool {
        let sampling = self.sampling();
        sampling.map_or(self.options.callers.is_some(), Sampling::has_callers)
    }

    fn sampling(&self) -> Option<&Sampling> {
        match &self.phase {
            Phase::Sampling(sampling) => Some(sampling),
            _ => None,
        }
    }

    fn sampling_mut(&mut self) -> Option<&mut Sampling> {
        match &mut self.phase {
            Phase::Sampling(sampling) => Some(sampling),
            _ => None,
        }
    }

    /// Checks for new shared memory, or for the sampler's start.
    pub fn look(&mut self, now: u64, order: &mut Order) -> Result<(), EngineError> {
        match std::mem::replace(&mut self.phase, Phase::Absent) {
            Phase::Absent => {
                if now < self.next_look {
                    return Ok(());
                }
                let pause = now.saturating_sub(self.since) / 20;
                self.next_look = now + pause.clamp(ns(LOOK_EVERY), LONGEST_PAUSE_NS);
                match self.open() {
                    Ok(Some(attached)) => self.ask(attached, now, false),
                    Ok(None) | Err(AdapterError::NotReady { .. }) => {}
                    Err(error) => self.trouble = Some(error),
                }
            }
            Phase::Asked(mut asked) => {
                let status = asked.attached.sampler_status();
                // A known priority means: the sampler thread runs, and has set its own name.
                if status.state == SamplerState::Running && status.priority != Priority::None {
                    self.started(asked.attached, now, order);
                    return Ok(());
                }
                let done = asked.attached.sampler_commands_done();
                let is_done = done.wrapping_sub(asked.request).cast_signed() >= 0;
                let is_refused = is_done && status.state != SamplerState::Running;
                asked.taken = is_refused.then(|| asked.taken.unwrap_or(now));
                if asked
                    .taken
                    .is_some_and(|taken| now.saturating_sub(taken) > REFUSED_AFTER_NS)
                {
                    return Err(EngineError::SamplerRefused { pid: Pid(self.pid) });
                }
                if now >= self.next_look {
                    self.next_look = now + RENEW_EVERY_NS;
                    // Fails if other profilers have taken all places; the next renewal tries again.
                    let _ = asked.attached.renew();
                }
                self.phase = Phase::Asked(asked);
            }
            sampling @ Phase::Sampling(_) => self.phase = sampling,
        }
        Ok(())
    }

    /// The sampler has started.
    fn started(&mut self, attached: Attached, now: u64, order: &mut Order) {
        let waited = now.saturating_sub(self.since);
        let options = self.wanted();
        self.begin(attached, true, options, now);
        if waited > SHORT_WAIT_NS {
            let why = match self.launched {
                true => "the program had not published itself yet, or reached no safe point",
                false => "the VM reached no safe point (vmscope_poll)",
            };
            let text = format!("no samples in the first {:.2} s: {why}", seconds(waited));
            let limit = limit(now, LimitKind::NotSampled, text, "");
            order.push(now, EngineEvent::Limit(limit));
        }
    }

    fn begin(&mut self, attached: Attached, ours: bool, options: SamplerOptions, now: u64) {
        let setting = Setting {
            pid: self.pid,
            inner_pid: self.inner_pid,
            launched: self.launched,
            ours,
            options,
            max_callers: self.options.callers,
        };
        self.phase = Phase::Sampling(Box::new(Sampling::begin(attached, setting, now)));
    }

    /// Limits of an attached VM at the start of the recording.
    pub fn limits(&self, now: u64) -> Vec<Limit> {
        let mut limits: Vec<Limit> = self.stopped.iter().cloned().collect();
        match self.sampling() {
            Some(sampling) => {
                let asked = self.wanted();
                limits.extend(sampling.limits(asked, now));
            }
            None => limits.push(limit(
                now,
                LimitKind::NotSampled,
                format!(
                    "process {} has not started its sampler yet: no samples until it reaches a safe \
                     point (vmscope_poll)",
                    self.pid
                ),
                "",
            )),
        }
        limits
    }

    /// The error if the process exited without publishing shared memory.
    pub fn never_published(&mut self) -> Option<EngineError> {
        if !self.has_exited || !matches!(self.phase, Phase::Absent) {
            return None;
        }
        let pid = Pid(self.pid);
        Some(match self.trouble.take() {
            Some(source) => EngineError::Publication { pid, source },
            None => EngineError::NeverPublished { pid },
        })
    }

    /// Reads the VM's new samples and thread table.
    pub fn read(&mut self, order: &mut Order) {
        let has_exited = self.has_exited;
        if let Some(sampling) = self.sampling_mut() {
            sampling.read(has_exited, order);
        }
    }

    /// Events up to this time count as complete; `None` before sampling.
    pub fn horizon(&self) -> Option<u64> {
        self.sampling().map(Sampling::horizon)
    }

    /// Stops the sampler if vmscope started the sampler or sent a start command.
    pub fn stop(&mut self) {
        let has_exited = self.has_exited;
        match &mut self.phase {
            Phase::Absent => {}
            Phase::Asked(asked) => {
                asked.attached.stop_sampler();
            }
            Phase::Sampling(sampling) => sampling.stop(has_exited),
        }
    }

    /// Adds end events of threads and process, and the final limits.
    pub fn end(&mut self, now: u64, order: &mut Order) {
        let (pid, has_exited) = (self.pid, self.has_exited);
        if let Some(sampling) = self.sampling_mut() {
            return sampling.end(has_exited, now, order);
        }
        let why = match self.phase {
            Phase::Asked(_) => "its VM reached no safe point (vmscope_poll)",
            _ => "it published nothing (does it link vmscope-publish?)",
        };
        let text = format!("process {pid} has no samples: {why}");
        let limit = limit(now, LimitKind::NotSampled, text, "--engine kernel");
        order.push(now, EngineEvent::Limit(limit));
    }
}

#[expect(clippy::cast_precision_loss, reason = "for display")]
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
