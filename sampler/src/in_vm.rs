//! The in-VM engine: samples that VMs which link `vmscope-publish` take of themselves.
//!
//! The VM's sampler thread ticks in wall time, once per period on average. Each tick signals the
//! registered threads that are running; their signal handlers write the pc into memory shared with
//! vmscope. Ticks skip threads that are not running, and count as idle for such threads: the number
//! of samples follows CPU time, as in the kernel engine. Therefore vmscope checks delivery against
//! the CPU time of registered threads only (docs/truth.md §2). Differences from the kernel engine:
//!
//! - Samples have no kernel addresses. Signal handlers run on return from the kernel: kernel time
//!   counts at the calling instruction. A system call longer than a period has one sample.
//! - Unregistered threads have no samples.
//! - No record reports new mappings. The engine rereads `/proc/PID/maps` every second, and after a
//!   sample outside the known mappings.
//!
//! vmscope trusts nothing in the shared memory: `vmscope-publish` bounds each record, and this
//! module bounds the number of records, threads and thread names.

mod maps;
mod order;
mod sampling;
mod threads;
mod vm;

use std::os::fd::AsFd as _;
use std::time::Duration;

use vmscope_process::{AdapterError, ProcessView};
use vmscope_publish::reader::Attached;
use vmscope_publish::sampler::{LONGEST_PERIOD, SHORTEST_PERIOD};
use vmscope_records::{Limit, LimitKind, Pid, SampleClock, TimeNs};

use self::order::Order;
use self::vm::Vm;
use crate::engine::{Engine, EngineDescription, EngineError, EngineEvent, EngineState};
use crate::launch::HeldCommand;
use crate::rate::{RateError, SamplingRate};
use crate::sys;

/// Opens a process's shared memory; `None` if the process has none.
pub type OpenPublished = fn(&ProcessView) -> Result<Option<Attached>, AdapterError>;

/// Time for a VM to reach a safe point and start its sampler, while attaching.
const START_WITHIN: Duration = Duration::from_secs(2);

/// Interval of checks for a sampler's start: the maximum error of the first CPU time.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Options of the in-VM engine.
#[derive(Clone, Copy, Debug)]
pub struct InVmOptions {
    /// Sampling rate.
    pub rate: SamplingRate,
    /// Maximum number of callers, by frame pointers; `None`: no callers.
    pub callers: Option<u16>,
    /// How a process's shared memory is found.
    pub open: OpenPublished,
}

/// See the [module](self).
#[derive(Debug)]
pub struct InVmEngine {
    description: EngineDescription,
    vms: Vec<Vm>,
    order: Order,
    poll_set: sys::PollSet,
    finished: bool,
}

impl InVmEngine {
    /// Attaches to running VMs, and starts their samplers. With a single VM, an already running
    /// sampler keeps its options.
    ///
    /// # Errors
    /// [`EngineError`], of the first process that cannot be sampled.
    pub fn attach(pids: &[Pid], options: &InVmOptions) -> Result<Self, EngineError> {
        check_rate(options.rate)?;
        let began = sys::monotonic_ns();
        let may_keep = pids.len() == 1;
        let mut engine = Self::new(Vec::new(), began, options);
        for pid in pids {
            engine.vms.push(Vm::running(pid.0, options, may_keep)?);
        }
        // An already running sampler has older samples.
        let started = engine.vms.iter().filter_map(Vm::since);
        let began = started.fold(began, u64::min);
        engine.description.began = TimeNs(began);
        engine.order = Order::new(began);
        let until = sys::monotonic_ns().saturating_add(ns(START_WITHIN));
        while engine.is_waiting() && sys::monotonic_ns() < until {
            std::thread::sleep(LOOK_EVERY);
            engine.look()?;
        }
        for vm in &engine.vms {
            // An already running sampler keeps its own period.
            let period = vm.period();
            engine.description.period = period.unwrap_or(engine.description.period);
            engine.description.limits.extend(vm.limits(began));
        }
        engine.limit_callers();
        Ok(engine)
    }

    /// Follows a launched command, and starts its sampler once the command publishes shared memory.
    /// Child processes are not sampled.
    ///
    /// # Errors
    /// [`EngineError`]; drop the held command.
    pub fn follow(command: &HeldCommand, options: &InVmOptions) -> Result<Self, EngineError> {
        check_rate(options.rate)?;
        let began = sys::monotonic_ns();
        let vm = Vm::launched(command.pid().0, options)?;
        let mut engine = Self::new(vec![vm], began, options);
        engine.limit_callers();
        Ok(engine)
    }

    fn new(vms: Vec<Vm>, began: u64, options: &InVmOptions) -> Self {
        let limits = vec![limit(
            began,
            LimitKind::Other,
            "the VM's own sampler took the samples, of its registered threads only: time in the \
             kernel counts where it was called, and a call longer than a period has one sample",
            "--engine kernel",
        )];
        Self {
            description: EngineDescription {
                name: "in-vm",
                clock: SampleClock::Cpu,
                period: options.rate.period(),
                // Samples include kernel CPU time, at the calling instruction's address.
                kernel_included: true,
                began: TimeNs(began),
                limits,
            },
            vms,
            order: Order::new(began),
            poll_set: Vec::new(),
            finished: false,
        }
    }

    /// Adds a limit with the reason for choosing this engine by default.
    #[must_use]
    pub fn instead_of_kernel(mut self, why: &str) -> Self {
        self.description.limits.push(limit(
            self.description.began.0,
            LimitKind::EngineFallback,
            format!("the VM's own sampler was used, as {why}"),
            "`vmscope doctor` says how to allow perf events",
        ));
        self
    }

    fn limit_callers(&mut self) {
        if self.vms.iter().any(Vm::has_callers) {
            self.description.limits.push(limit(
                self.description.began.0,
                LimitKind::Callers,
                "callers come from frame pointers, at most 64: callers of code without frame \
                 pointers are missing or wrong",
                "compile with -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer",
            ));
        }
    }

    fn is_waiting(&self) -> bool {
        self.vms.iter().any(Vm::is_waiting)
    }

    /// Checks waiting VMs for new shared memory or a started sampler.
    fn look(&mut self) -> Result<(), EngineError> {
        let waiting = self.vms.iter_mut().filter(|vm| vm.is_waiting());
        for vm in waiting {
            vm.look(sys::monotonic_ns(), &mut self.order)?;
        }
        Ok(())
    }

    /// Waits up to `timeout` for a process's exit.
    fn wait(&mut self, timeout: Duration) -> Result<(), EngineError> {
        self.poll_set.clear();
        let alive = self.vms.iter().filter(|vm| !vm.has_exited);
        self.poll_set
            .extend(alive.map(|vm| sys::poll_entry(vm.pidfd.as_fd())));
        sys::poll(&mut self.poll_set, timeout).map_err(|source| EngineError::Syscall {
            operation: "poll",
            object: "the processes".to_owned(),
            source,
        })?;
        let alive = self.vms.iter_mut().filter(|vm| !vm.has_exited);
        for (vm, polled) in alive.zip(self.poll_set.iter().map(sys::polled)) {
            vm.has_exited = polled.readable || polled.hung_up;
        }
        Ok(())
    }

    /// Waits up to `timeout`. While a sampler is starting, checks for its start in short steps.
    fn wait_or_look(&mut self, timeout: Duration) -> Result<(), EngineError> {
        let until = sys::monotonic_ns().saturating_add(ns(timeout));
        while self.is_waiting() {
            let left = until.saturating_sub(sys::monotonic_ns());
            if left == 0 {
                return Ok(());
            }
            self.wait(LOOK_EVERY.min(Duration::from_nanos(left)))?;
            self.look()?;
        }
        let left = until.saturating_sub(sys::monotonic_ns());
        let busy = self.vms.iter().any(Vm::is_behind);
        match busy {
            true => self.wait(Duration::ZERO),
            false => self.wait(Duration::from_nanos(left)),
        }
    }

    fn read(&mut self) {
        for vm in &mut self.vms {
            vm.read(&mut self.order);
        }
    }
}

impl Engine for InVmEngine {
    fn description(&self) -> &EngineDescription {
        &self.description
    }

    fn drain(
        &mut self,
        timeout: Duration,
        out: &mut Vec<EngineEvent>,
    ) -> Result<EngineState, EngineError> {
        self.wait_or_look(timeout)?;
        let gone = self.vms.iter().all(|vm| vm.has_exited);
        if gone && let Some(error) = self.vms.iter_mut().find_map(Vm::never_published) {
            return Err(error);
        }
        self.read();
        let horizons = self.vms.iter().filter_map(Vm::horizon);
        if let Some(horizon) = horizons.min() {
            self.order.release(horizon, out);
        }
        Ok(match gone {
            true => EngineState::TargetsGone,
            false => EngineState::Running,
        })
    }

    fn finish(&mut self, out: &mut Vec<EngineEvent>) -> Result<(), EngineError> {
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        self.wait(Duration::ZERO)?;
        for vm in &mut self.vms {
            vm.stop();
        }
        self.read();
        let now = sys::monotonic_ns();
        for vm in &mut self.vms {
            vm.end(now, &mut self.order);
        }
        let late = self.order.late();
        if late > 0 {
            let text = format!("{late} timestamps may be up to a second off");
            let limit = limit(now, LimitKind::Other, text, "");
            self.order.push(now, EngineEvent::Limit(limit));
        }
        self.order.release(u64::MAX, out);
        Ok(())
    }
}

impl Drop for InVmEngine {
    fn drop(&mut self) {
        // Dropped unfinished: attaching to a later process failed, or the session did not start.
        if !self.finished {
            self.vms.iter_mut().for_each(Vm::stop);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "periods are below 2^53 ns")]
fn check_rate(rate: SamplingRate) -> Result<(), RateError> {
    let period = Duration::from_nanos(rate.period().get());
    if (SHORTEST_PERIOD..=LONGEST_PERIOD).contains(&period) {
        return Ok(());
    }
    let hz = |period: Duration| 1e9 / period.as_nanos() as f64;
    Err(RateError::NotInVm {
        hz: rate.hz(),
        min: hz(LONGEST_PERIOD),
        max: hz(SHORTEST_PERIOD),
    })
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn limit(time: u64, kind: LimitKind, text: impl Into<String>, remedy: &str) -> Limit {
    Limit {
        time: TimeNs(time),
        kind,
        text: text.into(),
        remedy: remedy.into(),
    }
}
