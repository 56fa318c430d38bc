//! One VM, from before it has shared memory to the end of its sampler.

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

/// Interval between two renewals of the lease while the sampler is to start.
const RENEW_EVERY_NS: u64 = 2_000_000_000;

/// Longest pause between two looks whether memory has appeared.
const LONGEST_PAUSE_NS: u64 = 100_000_000;

/// A command that was taken and had no effect for so long was refused.
const REFUSED_AFTER_NS: u64 = 200_000_000;

/// Shorter waits for the sampler belong to any start.
const SHORT_WAIT_NS: u64 = 20_000_000;

#[derive(Debug)]
pub(super) struct Vm {
    pid: u32,
    pub pidfd: OwnedFd,
    pub has_exited: bool,
    launched: bool,
    options: InVmOptions,
    phase: Phase,
    /// Start of the wait for the sampler, and time of the next look.
    since: u64,
    next_look: u64,
    inner_pid: u32,
    trouble: Option<AdapterError>,
    stopped: Option<Limit>,
}

/// What there is of a VM's sampler.
#[derive(Debug)]
enum Phase {
    /// No memory yet.
    Absent,
    /// Memory, with a sampler that is to start.
    Asked(Box<Asked>),
    /// It samples, or did.
    Sampling(Box<Sampling>),
}

#[derive(Debug)]
struct Asked {
    attached: Attached,
    /// Number of the command to start.
    request: u64,
    /// When the command was seen to be taken.
    taken: Option<u64>,
}

impl Vm {
    /// A running VM, with its sampler asked to start. With `may_keep`, a sampler that runs already keeps
    /// its options.
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

    /// A process that may become a VM.
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

    /// Opens the memory; `None` while there is none.
    fn open(&mut self) -> Result<Option<Attached>, AdapterError> {
        let Ok(view) = ProcessView::open(Pid(self.pid)) else {
            // It is about to begin, or has ended.
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

    /// Time of the first possible sample, if it samples.
    pub fn since(&self) -> Option<u64> {
        self.sampling().map(Sampling::started)
    }

    /// The sampler's period, if it samples.
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

    /// Whether samples have callers, as far as it is known.
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

    /// Looks whether memory has appeared, or the sampler has started.
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
                // Its thread runs, under its own name, once it has a priority.
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
                    // If other profilers have taken all places meanwhile: it is tried again.
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

    /// Limits of an attached VM, at the begin.
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

    /// The error of a process that ended without memory.
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

    /// Takes what the VM has written.
    pub fn read(&mut self, order: &mut Order) {
        let has_exited = self.has_exited;
        if let Some(sampling) = self.sampling_mut() {
            sampling.read(has_exited, order);
        }
    }

    /// Events up to this time are complete; `None` if none come.
    pub fn horizon(&self) -> Option<u64> {
        self.sampling().map(Sampling::horizon)
    }

    /// Stops the sampler if vmscope started it, or has asked it to start.
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

    /// The ends of threads and process, and the last limits.
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
