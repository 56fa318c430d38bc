//! Reads the samples of a VM's running sampler.

use std::time::Duration;

use vmscope_publish::reader::{Attached, NextSample};
use vmscope_publish::sample::{LONGEST_CHAIN, Sample};
use vmscope_publish::sampler::{Priority, SamplerOptions, SamplerState, SamplerStatus};
use vmscope_records::{
    Avma, CallChain, ChainEnd, CpuMode, DurationNs, Limit, LimitKind, LossReason, Pid,
    SampleDetail, Tid, TimeNs,
};

use super::maps::KnownMaps;
use super::order::Order;
use super::threads::{End, Started, Threads};
use super::vm::seconds;
use super::{limit, ns};
use crate::engine::{EngineEvent, RawSample};
use crate::{proc, sys};

/// Maximum number of samples read in a round: a VM may write endlessly.
const MAX_PER_ROUND: usize = 1 << 15;

/// Longest time of holding samples back while older samples may still arrive.
const HELD_BACK_NS: u64 = 600_000_000;

/// Interval between two renewals of the lease, which lasts for ten seconds.
const RENEW_EVERY_NS: u64 = 2_000_000_000;

/// Longest wait for a sampler to stop, in milliseconds: a tick at the default period.
const STOP_WITHIN_MS: u32 = 20;

/// Size in words of a ring record for a sample without callers.
const SAMPLE_WORDS: u64 = 3 + 4;

/// A limit reports late ticks if their share exceeds 1 in `FEW_LATE`.
const FEW_LATE: u64 = 200;

/// A limit reports unsampled CPU time if its share exceeds 1 in `FEW_UNSAMPLED`.
const FEW_UNSAMPLED: u64 = 100;

/// Maximum number of samples from before attaching: exceeds the capacity of usual rings.
const MAX_EARLY: usize = 1 << 20;

/// Sampling settings of a VM.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub pid: u32,
    pub inner_pid: u32,
    pub launched: bool,
    /// vmscope started the sampler, and ends it.
    pub ours: bool,
    pub options: SamplerOptions,
    pub max_callers: Option<u16>,
}

#[derive(Debug)]
pub(super) struct Sampling {
    attached: Attached,
    setting: Setting,
    /// The sampler's status when vmscope began sampling.
    before: SamplerStatus,
    started: u64,
    threads: Threads,
    /// Threads not yet reported to the session.
    first: Vec<Started>,
    /// Earlier samples of an already running sampler, not yet reported.
    early: Vec<Sample>,
    early_count: usize,
    maps: KnownMaps,
    /// The session knows the process.
    is_told: bool,
    /// Number of samples read, and number of words in these samples.
    size: (u64, u64),
    /// Time of the newest sample.
    newest: u64,
    /// Events up to this time count as complete.
    horizon: u64,
    is_behind: bool,
    renewed: u64,
    is_priority_told: bool,
    is_stopped: bool,
    /// CPU time of the process before sampling.
    process_before: u64,
    /// CPU time of the process at the last reading.
    process_cpu: u64,
    restarts: u64,
}

/// Reads existing samples in the ring of an already running sampler.
fn early_samples(attached: &mut Attached) -> Vec<Sample> {
    let mut early = Vec::new();
    while early.len() < MAX_EARLY {
        match attached.read_sample() {
            NextSample::Sample(sample) => early.push(sample),
            NextSample::Empty => break,
            // Losses before the recording do not count.
            _ => {}
        }
    }
    early
}

impl Sampling {
    /// Starts at `now`, or at the oldest sample in the ring of an already running sampler.
    pub fn begin(mut attached: Attached, setting: Setting, now: u64) -> Self {
        let period_ns = ns(setting.options.period);
        let mut threads = Threads::new(setting.pid, setting.inner_pid, period_ns);
        let early = match setting.ours {
            true => Vec::new(),
            false => early_samples(&mut attached),
        };
        for sample in &early {
            threads.had_sample(sample.tid);
        }
        let oldest = early.iter().map(|sample| sample.time).min();
        let started = oldest.unwrap_or(now).min(now);
        let mut maps = KnownMaps::default();
        if !setting.launched {
            // The session itself reports the current mappings.
            let _ = maps.changes(setting.pid, now.max(ns(proc::POLL_EVERY)), now);
        }
        let process_before = sys::process_cpu_ns(setting.pid).unwrap_or(0);
        let first = threads.scan(&attached.sampled_threads(), now);
        Self {
            before: attached.sampler_status(),
            attached,
            setting,
            started,
            threads,
            first,
            early_count: early.len(),
            early,
            maps,
            is_told: !setting.launched,
            size: (0, 0),
            newest: 0,
            horizon: 0,
            is_behind: false,
            renewed: now,
            is_priority_told: false,
            is_stopped: false,
            process_before,
            process_cpu: process_before,
            restarts: 0,
        }
    }

    /// Time of the first possible sample.
    pub fn started(&self) -> u64 {
        self.started
    }

    pub fn period_ns(&self) -> u64 {
        ns(self.setting.options.period)
    }

    pub fn has_callers(&self) -> bool {
        self.setting.options.chains && self.setting.max_callers.is_some()
    }

    /// Whether the last round left samples unread.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// See [`super::vm::Vm::horizon`].
    pub fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Limits at the start.
    pub fn limits(&self, asked: SamplerOptions, now: u64) -> Vec<Limit> {
        let Setting { pid, options, .. } = self.setting;
        let mut limits = Vec::new();
        if let Some((not, all)) = self.threads.unregistered().filter(|(not, _)| *not > 0) {
            limits.push(limit(
                now,
                LimitKind::NotSampled,
                format!("{not} of the {all} threads of process {pid} are not registered for sampling: they have no samples"),
                "register them (vmscope_register_thread), or --engine kernel",
            ));
        }
        if !self.setting.ours {
            let callers = match asked.chains && !options.chains {
                true => ", without callers",
                false => "",
            };
            limits.push(limit(
                now,
                LimitKind::Other,
                format!(
                    "the sampler of process {pid} ran before: it keeps its period of {} ns{callers}, and \
                     goes on afterwards; {} samples from before vmscope attached are included, and \
                     older ones may be missing",
                    ns(options.period),
                    self.early_count,
                ),
                "stop it in the VM first, for another rate",
            ));
        }
        limits
    }

    /// Reads the VM's new samples and thread table.
    pub fn read(&mut self, has_exited: bool, order: &mut Order) {
        let now = sys::monotonic_ns();
        let mut started = std::mem::take(&mut self.first);
        started.extend(self.threads.scan(&self.attached.sampled_threads(), now));
        for one in started {
            self.tell(one, order);
        }
        self.read_maps(now, order);
        let before = self.newest;
        let complete = self.read_samples(has_exited, order);
        self.is_behind = !complete;
        // New samples may lie outside the known mappings.
        self.read_maps(now, order);
        if complete {
            for end in self.threads.ends(None, now) {
                order.push(now, end);
            }
        }
        let oldest_held = now.saturating_sub(HELD_BACK_NS);
        self.horizon = match complete {
            true => self.horizon.max(before).max(oldest_held),
            false => self.horizon.max(before),
        };
        self.attached.free_samples();
        if let Ok(cpu) = sys::process_cpu_ns(self.setting.pid) {
            self.process_cpu = cpu;
        }
        for time in self.threads.cpu_times(now) {
            order.push(now, time);
        }
        if !(has_exited || self.is_stopped) {
            self.look_after(now, order);
        }
    }

    /// Reports a thread; with the first thread of a launched process, also the program.
    fn tell(&mut self, one: Started, order: &mut Order) {
        let time = order.horizon();
        let (at, pid, tid) = (TimeNs(time), Pid(self.setting.pid), Tid(one.tid));
        let name = one.name.clone();
        let started = EngineEvent::ThreadStarted {
            time: at,
            pid,
            tid,
            parent_tid: None,
            name: one.name,
            cpu_before: DurationNs(one.cpu_before),
        };
        order.push(time, started);
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        // Report this thread as the program's first, then restore the thread's own name.
        let program = proc::process_stat(self.setting.pid).map(|stat| stat.name);
        let exec = EngineEvent::Exec {
            time: at,
            pid,
            tid,
            name: program.unwrap_or_default(),
        };
        order.push(time, exec);
        if let Some(name) = name {
            let renamed = EngineEvent::Renamed {
                time: at,
                pid,
                tid,
                name,
            };
            order.push(time, renamed);
        }
    }

    fn read_maps(&mut self, now: u64, order: &mut Order) {
        if self.is_told {
            let time = order.horizon();
            for mapped in self.maps.changes(self.setting.pid, now, time) {
                order.push(time, mapped);
            }
        }
    }

    /// Whether all samples were read.
    fn read_samples(&mut self, has_exited: bool, order: &mut Order) -> bool {
        for sample in std::mem::take(&mut self.early) {
            // A sample without a thread predates the recording: not a loss.
            let _ = self.take(sample, order);
        }
        for _ in 0..MAX_PER_ROUND {
            let next = match has_exited {
                true => self.attached.read_sample_of_dead(),
                false => self.attached.read_sample(),
            };
            let (reason, count) = match next {
                NextSample::Sample(sample) => match self.take(sample, order) {
                    Ok(()) => continue,
                    Err(NoThread) => (LossReason::Undecodable, 1),
                },
                NextSample::Undecodable(_) => (LossReason::Undecodable, 1),
                NextSample::Lost { words } => (LossReason::RingOverrun, self.samples_in(words)),
                // NextSample::Empty, or a variant of a later version.
                _ => return true,
            };
            let now = sys::monotonic_ns();
            let from = self.newest.max(self.started).min(now);
            let lost = EngineEvent::Lost {
                reason,
                count,
                from: TimeNs(from),
                to: TimeNs(now),
                tid: None,
            };
            order.push(now, lost);
        }
        false
    }

    /// Estimated number of samples in `words` ring words, from the mean size of samples read.
    fn samples_in(&self, words: u64) -> u64 {
        let (samples, all) = self.size;
        let each = all.checked_div(samples).unwrap_or(SAMPLE_WORDS);
        (words / each.max(SAMPLE_WORDS)).max(1)
    }

    fn take(&mut self, sample: Sample, order: &mut Order) -> Result<(), NoThread> {
        let Setting {
            pid, max_callers, ..
        } = self.setting;
        let now = sys::monotonic_ns();
        // VM and vmscope share a clock: no sample comes from the future.
        let time = sample.time.min(now);
        self.size.0 += 1;
        self.size.1 += SAMPLE_WORDS + sample.chain.len() as u64;
        if time < self.started {
            // A sample from an earlier run of the sampler.
            return Ok(());
        }
        self.newest = self.newest.max(time);
        let (tid, started) = self
            .threads
            .sampled(sample.tid, time, now)
            .ok_or(NoThread)?;
        if let Some(started) = started {
            self.tell(started, order);
        }
        self.maps.hit(sample.pc);
        let detail = max_callers
            .filter(|_| self.setting.options.chains)
            .map(|most| Box::new(detail(&sample.chain, most)));
        let event = EngineEvent::Sample(RawSample {
            time: TimeNs(time),
            pid: Pid(pid),
            tid: Tid(tid),
            pc: Avma(sample.pc),
            mode: CpuMode::User,
            detail,
        });
        order.push(time, event);
        Ok(())
    }

    /// The lease, and the sampler's state.
    fn look_after(&mut self, now: u64, order: &mut Order) {
        if now.saturating_sub(self.renewed) >= RENEW_EVERY_NS {
            self.renewed = now;
            // Fails if other profilers have taken all places; the next renewal tries again.
            let _ = self.attached.renew();
        }
        let status = self.attached.sampler_status();
        if status.state == SamplerState::Stopped {
            // Another profiler or the VM stopped the sampler. A start takes a tick: after the first
            // restart, restart once per lease renewal at most.
            if self.restarts == 0 || self.renewed == now {
                self.attached.start_sampler(&self.setting.options);
                self.setting.ours = true;
                self.restarts += 1;
            }
        } else if status.priority != Priority::None && !self.is_priority_told {
            self.is_priority_told = true;
            if let Some(limit) = no_real_time(status, now) {
                order.push(now, EngineEvent::Limit(limit));
            }
        }
    }

    /// Stops the sampler if vmscope started the sampler.
    pub fn stop(&mut self, has_exited: bool) {
        let is_stopped = std::mem::replace(&mut self.is_stopped, true);
        if is_stopped || has_exited || !self.setting.ours {
            return;
        }
        self.attached.stop_sampler();
        for _ in 0..STOP_WITHIN_MS {
            if self.attached.sampler_status().state == SamplerState::Stopped {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Adds end events of threads and process, and the final limits.
    pub fn end(&mut self, has_exited: bool, now: u64, order: &mut Order) {
        let pid = self.setting.pid;
        let why = match has_exited {
            true => End::OfProcess,
            false => End::OfRecording,
        };
        for end in self.threads.ends(Some(why), now) {
            order.push(now, end);
        }
        for limit in self.last_limits(now) {
            order.push(now, EngineEvent::Limit(limit));
        }
        if self.is_told {
            let ended = EngineEvent::ProcessEnded {
                time: TimeNs(now),
                pid: Pid(pid),
                alive: !has_exited,
                // The process's CPU time includes unregistered threads, which have no samples.
                cpu: None,
                cpu_user: None,
            };
            order.push(now, ended);
        }
    }

    fn last_limits(&self, now: u64) -> Vec<Limit> {
        let pid = self.setting.pid;
        let mut limits = Vec::new();
        let status = self.attached.sampler_status();
        let late = status.late.saturating_sub(self.before.late);
        let ticks = status.ticks.saturating_sub(self.before.ticks);
        let all = ticks.saturating_add(late);
        if late > all / FEW_LATE {
            limits.push(limit(
                now,
                LimitKind::Other,
                format!(
                    "{late} of the {all} ticks of the VM's sampler came too late, and were left out"
                ),
                "",
            ));
        }
        let process = self.process_cpu.saturating_sub(self.process_before);
        let sampler = status.cpu_ns.saturating_sub(self.before.cpu_ns);
        let sampled = self.threads.used_ns().saturating_add(sampler);
        let unsampled = process.saturating_sub(sampled);
        if unsampled > (process / FEW_UNSAMPLED).max(10 * self.period_ns()) {
            limits.push(limit(
                now,
                LimitKind::NotSampled,
                format!(
                    "threads of process {pid} that are not registered used {:.2} of its {:.2} s of CPU \
                     time, and have no samples",
                    seconds(unsampled),
                    seconds(process)
                ),
                "register them (vmscope_register_thread), or --engine kernel",
            ));
        }
        if self.restarts > 0 {
            let text = "the VM's sampler was stopped meanwhile by another profiler or the VM, and \
                        started again";
            limits.push(limit(now, LimitKind::NotSampled, text, ""));
        }
        limits
    }
}

/// The sample belongs to no thread.
#[derive(Debug)]
struct NoThread;

/// A sample's callers.
fn detail(chain: &[u64], most: u16) -> SampleDetail {
    let most = usize::from(most).min(LONGEST_CHAIN);
    let end = match chain.len() >= most {
        true => ChainEnd::Depth,
        false => ChainEnd::Unknown,
    };
    let user = chain.iter().take(most).map(|&address| Avma(address));
    let chain = CallChain {
        user: user.collect(),
        end,
        ..CallChain::default()
    };
    SampleDetail {
        chain: Some(chain),
        ..SampleDetail::default()
    }
}

fn no_real_time(status: SamplerStatus, now: u64) -> Option<Limit> {
    let has = match status.priority {
        Priority::RealTime => return None,
        Priority::Nice => format!("a nice value of {}", status.nice),
        _ => "an ordinary priority".to_owned(),
    };
    Some(limit(
        now,
        LimitKind::NoRealTime,
        format!(
            "the VM's sampler has {has}, not a real-time one: ticks come late while all CPUs are busy \
             (they are left out)"
        ),
        "run the VM with CAP_SYS_NICE or an rtprio limit of 1 (ulimit -r)",
    ))
}
