//! Opening the events of the targets.

use std::io;
use std::os::fd::AsFd as _;

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{LimitKind, Pid, SampleClock, Tid, TimeNs};

use super::attr::{Extras, Recipe};
use super::decode::SP_REGISTER;
use super::order::Sorter;
use super::sources::Sources;
use super::threads::{Process, Thread};
use super::{KernelEngine, KernelOptions, Target, limit, period_of, proc};
use crate::engine::{EngineDescription, EngineError, EngineEvent};
use crate::sys;

/// Descriptors left for the rest of the program.
const RESERVED_DESCRIPTORS: u64 = 64;

/// Scans of /proc until no thread is new. A program that always starts threads always has new ones,
/// but those have inherited events.
const SCANS: usize = 16;

/// Pages of a CPU's ring. With the control page: the default `perf_event_mlock_kb` for every user
/// (516 KiB), nine seconds of plain samples.
const RING_PAGES: usize = 128;

/// Maximum pages for samples with stacks, without a limit on locked memory: 16 MiB.
const BIG_RING_PAGES: usize = 4096;

/// Seconds of samples with stacks per ring; the drain empties rings ten times a second.
const BIG_RING_SECONDS: u64 = 2;

/// Maximum bytes of a sample without stack and registers.
const PLAIN_SAMPLE_BYTES: u64 = 56;

/// Pages of a CPU's ring. The kernel grants more than [`RING_PAGES`] to root only; other users'
/// drains wake at half of that.
fn ring_pages(extras: &Extras, period_ns: u64, page: usize) -> usize {
    if extras.stack_bytes == 0 || sys::effective_uid() != 0 {
        return RING_PAGES;
    }
    let registers = u64::from(extras.registers.count_ones()) * 8;
    let sample = PLAIN_SAMPLE_BYTES + registers + u64::from(extras.stack_bytes);
    let samples = (BIG_RING_SECONDS * 1_000_000_000).div_ceil(period_ns.max(1));
    let pages = samples.saturating_mul(sample) / (page as u64).max(1);
    let pages = usize::try_from(pages).unwrap_or(BIG_RING_PAGES);
    let pages = pages.clamp(RING_PAGES, BIG_RING_PAGES);
    pages.next_power_of_two()
}

fn forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn too_many(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

fn is(error: &io::Error, errno: i32) -> bool {
    error.raw_os_error() == Some(errno)
}

/// Refuses invalid targets, by /proc.
fn check_target(pid: u32) -> Result<(), EngineError> {
    let missing = |_| EngineError::NoSuchProcess { pid: Pid(pid) };
    // The kernel would take 0 as vmscope itself.
    if pid == 0 {
        return Err(EngineError::NoSuchProcess { pid: Pid(pid) });
    }
    let process = proc::process_of(pid).map_err(missing)?;
    if process != pid {
        return Err(EngineError::NotAProcess {
            tid: Tid(pid),
            pid: Pid(process),
        });
    }
    let stat = proc::process_stat(pid).map_err(missing)?;
    if stat.is_kernel_thread() {
        return Err(EngineError::KernelThread { pid: Pid(pid) });
    }
    if stat.is_dead() {
        return Err(EngineError::Zombie { pid: Pid(pid) });
    }
    Ok(())
}

/// Classifies an error of opening an event on the target.
fn open_error(pid: u32, source: io::Error) -> EngineError {
    if is(&source, libc::ESRCH) {
        return EngineError::ExitedWhileAttaching { pid: Pid(pid) };
    }
    if forbidden(&source) {
        let me = sys::effective_uid();
        return match proc::owner(pid) {
            Ok(owner) if owner != me && me != 0 => EngineError::SomeoneElses {
                pid: Pid(pid),
                owner,
                source,
            },
            _ => EngineError::Forbidden {
                paranoid: proc::kernel_setting("perf_event_paranoid").unwrap_or(-1),
                source,
            },
        };
    }
    if is(&source, libc::ENOSYS) {
        return EngineError::Forbidden {
            paranoid: proc::kernel_setting("perf_event_paranoid").unwrap_or(-1),
            source,
        };
    }
    EngineError::Syscall {
        operation: "perf_event_open",
        object: format!("process {pid}"),
        source,
    }
}

/// Opens one event to find the granted properties: kernel excluded if forbidden, no
/// `inherit_thread` if unknown.
fn probe(pid: u32, recipe: &mut Recipe) -> Result<(), EngineError> {
    loop {
        // CPU 0 may be offline; a thread's event waits for it.
        let cpu = recipe.inherit.then_some(0);
        match sys::perf_event_open(&recipe.sampling(), pid, cpu) {
            Ok(_) => return Ok(()),
            Err(error) if forbidden(&error) && !recipe.exclude_kernel => {
                recipe.exclude_kernel = true;
            }
            Err(error) if is(&error, libc::EINVAL) && recipe.inherit_thread => {
                recipe.inherit_thread = false;
            }
            Err(error) => return Err(open_error(pid, error)),
        }
    }
}

impl Target {
    fn open(pid: u32) -> Result<Self, EngineError> {
        check_target(pid)?;
        let pidfd = sys::pidfd_open(pid).map_err(|error| {
            if is(&error, libc::ESRCH) {
                return EngineError::ExitedWhileAttaching { pid: Pid(pid) };
            }
            EngineError::Syscall {
                operation: "pidfd_open",
                object: format!("process {pid}"),
                source: error,
            }
        })?;
        Ok(Target {
            pid,
            pidfd,
            has_exited: false,
        })
    }
}

impl KernelEngine {
    pub(super) fn open(
        pids: &[u32],
        options: &KernelOptions,
        launched: bool,
    ) -> Result<Self, EngineError> {
        if let Some(max) = proc::kernel_setting("perf_event_max_sample_rate") {
            let max = u64::try_from(max).unwrap_or(0);
            options.rate.check_against_kernel(max)?;
        }
        let targets: Result<Vec<Target>, _> = pids.iter().map(|pid| Target::open(*pid)).collect();
        let mut targets = targets?;
        let max_stack = proc::kernel_setting("perf_event_max_stack").unwrap_or(127);
        let max_stack = u16::try_from(max_stack).unwrap_or(127);
        let stack_bytes = options.stack_bytes & !7;
        let mut recipe = Recipe {
            period_ns: options.rate.period().get(),
            extras: Extras {
                chain_depth: options.call_graph_depth.map(|n| n.clamp(1, max_stack)),
                registers: options.registers | u64::from(stack_bytes != 0) << SP_REGISTER,
                stack_bytes,
            },
            exclude_kernel: false,
            inherit: true,
            inherit_thread: !launched,
            on_exec: launched,
            wakeup_bytes: 0,
        };
        for pid in pids {
            probe(*pid, &mut recipe)?;
        }

        let now = sys::monotonic_ns();
        let mut limits = Vec::new();
        if recipe.exclude_kernel {
            limits.push(limit(
                now,
                LimitKind::KernelExcluded,
                "kernel samples are excluded: shares are of user time, without time in system \
                 calls",
                "sysctl kernel.perf_event_paranoid=1 (or lower), or run with CAP_PERFMON",
            ));
        }
        if recipe.extras.chain_depth.is_some() {
            limits.push(limit(
                now,
                LimitKind::Callers,
                "callers come from frame pointers: callers of code without frame pointers are \
                 missing or wrong; many compilers omit the frame pointer in functions that call \
                 nothing, which hides the direct caller",
                "compile with -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer",
            ));
        }
        let allowed = sys::raise_open_files().unwrap_or(1024);
        let budget = allowed
            .min(options.max_descriptors.unwrap_or(u64::MAX))
            .saturating_sub(RESERVED_DESCRIPTORS);
        let cpus = proc::online_cpus().unwrap_or_else(|| vec![0]);
        let threads_of = |pid: &u32| proc::threads(*pid).map_or(1, |threads| threads.len());
        let count: usize = pids.iter().map(threads_of).sum();
        let needed = count
            .saturating_add(1)
            .saturating_mul(cpus.len().saturating_add(1));

        let mut per_thread = u64::try_from(needed).unwrap_or(u64::MAX) > budget;
        loop {
            let mut recipe = recipe;
            recipe.inherit = !per_thread;
            recipe.inherit_thread &= !per_thread;
            let mut sources = Sources::new(recipe, budget);
            if !per_thread {
                let pages = ring_pages(&recipe.extras, recipe.period_ns, sys::page_size());
                match sources.open_rings(&cpus, pages) {
                    Ok(()) if !sources.cpus.is_empty() => {}
                    Err(source) if !too_many(&source) => {
                        return Err(EngineError::Syscall {
                            operation: "mapping a ring",
                            object: format!("{} CPUs", cpus.len()),
                            source,
                        });
                    }
                    _ => {
                        per_thread = true;
                        continue;
                    }
                }
            }
            let mut engine = Self {
                description: EngineDescription {
                    name: "kernel",
                    clock: SampleClock::Cpu,
                    period: period_of(options),
                    kernel_included: !recipe.exclude_kernel,
                    limits: limits.clone(),
                },
                targets,
                children: launched,
                sources,
                sorter: Sorter::default(),
                threads: FxHashMap::default(),
                processes: FxHashMap::default(),
                throttled: FxHashMap::default(),
                last_poll: now,
                last_ask: now,
                unknown: FxHashSet::default(),
                poll_now: false,
                duplicates: 0,
                unsampled_said: false,
                rng: fastrand::Rng::new(),
                poll_set: Vec::new(),
                finished: false,
                first: Vec::new(),
            };
            if per_thread {
                engine.description.limits.push(limit(
                    now,
                    LimitKind::EngineFallback,
                    format!(
                        "{count} threads on {} CPUs need more than the {budget} allowed file \
                         descriptors: new threads are sampled up to 0.1 s late",
                        cpus.len()
                    ),
                    "raise the limit on open files (ulimit -n)",
                ));
            }
            match engine.open_threads() {
                Ok(()) => return Ok(engine),
                Err((_, error)) if too_many(&error) && !per_thread => {
                    per_thread = true;
                    targets = engine.targets;
                }
                Err((pid, error)) => return Err(open_error(pid, error)),
            }
        }
    }

    /// Opens events on all threads, starts them, then opens events on threads started meanwhile
    /// without inheritance. An error names the process.
    fn open_threads(&mut self) -> Result<(), (u32, io::Error)> {
        let pids: Vec<u32> = self.targets.iter().map(|target| target.pid).collect();
        let mut out = Vec::new();
        // All threads found here start before the first sample.
        let now = sys::monotonic_ns();
        for &pid in &pids {
            self.processes.insert(pid, Process::found(pid));
            self.open_all_threads(pid, now, false, &mut out)?;
        }
        if !self.sources.recipe.on_exec {
            for thread in self.threads.values_mut() {
                // Immediately before its start, for complete counts.
                thread.note_before();
            }
            for thread in self.threads.values() {
                let enabled = thread.own.map_or(Ok(()), |own| self.sources.enable(own));
                let counter = thread.counter();
                enabled
                    .and_then(|()| counter.map_or(Ok(()), |one| sys::perf_enable(one.as_fd())))
                    .map_err(|error| (thread.pid, error))?;
            }
            for &pid in &pids {
                self.open_all_threads(pid, now, true, &mut out)?;
            }
        }
        let is_empty = |pid: &u32| !self.threads.values().any(|thread| thread.pid == *pid);
        if let Some(pid) = pids.into_iter().find(is_empty) {
            return Err((pid, io::Error::from_raw_os_error(libc::ESRCH)));
        }
        for event in &mut out {
            if let EngineEvent::ThreadStarted {
                tid, cpu_before, ..
            } = event
                && let Some(thread) = self.threads.get(&tid.0)
            {
                *cpu_before = vmscope_records::DurationNs(thread.cpu_before);
            }
        }
        self.first = out;
        Ok(())
    }

    /// Opens events on a process's threads in /proc until none is new. With `start`, the events
    /// start at once.
    fn open_all_threads(
        &mut self,
        pid: u32,
        time: u64,
        start: bool,
        out: &mut Vec<EngineEvent>,
    ) -> Result<(), (u32, io::Error)> {
        for _ in 0..SCANS {
            let mut any = false;
            for tid in proc::threads(pid).unwrap_or_default() {
                if !self.threads.contains_key(&tid) {
                    let opened = self.open_found(pid, tid, time, start, out);
                    any |= opened.map_err(|error| (pid, error))?;
                }
            }
            if !any {
                break;
            }
        }
        Ok(())
    }

    /// Opens events on a thread found in /proc; `false` if the thread has exited.
    pub(super) fn open_found(
        &mut self,
        pid: u32,
        tid: u32,
        time: u64,
        start: bool,
        out: &mut Vec<EngineEvent>,
    ) -> io::Result<bool> {
        let family = match self.sources.open_family(tid) {
            Ok(family) => family,
            Err(error) if is(&error, libc::ESRCH) => return Ok(false),
            Err(error) => return Err(error),
        };
        let period = self.sources.recipe.period_ns;
        let known = self.threads.contains_key(&tid);
        let mut thread = self
            .threads
            .remove(&tid)
            .unwrap_or_else(|| Thread::new(pid, tid, time, period));
        thread.own = Some(family);
        thread.period_ns = period;
        thread.redraw_at = self.next_redraw(thread.samples);
        if thread.counter().is_none()
            && let Some(counter) = self.sources.open_counter(tid)
        {
            if start && known {
                thread.count_the_rest(counter);
            } else {
                thread.count_from_start(counter);
            }
        }
        if start {
            if !known {
                thread.note_before();
            }
            self.sources.enable(family)?;
            if let Some(counter) = thread.counter() {
                sys::perf_enable(counter.as_fd())?;
            }
        }
        // Earlier CPU time of a running thread may read low (`threads`).
        if !known {
            out.push(EngineEvent::ThreadStarted {
                time: TimeNs(time),
                pid: Pid(pid),
                tid: Tid(tid),
                parent_tid: None,
                name: proc::thread_stat(pid, tid).ok().map(|stat| stat.name),
                cpu_before: vmscope_records::DurationNs(thread.cpu_before),
            });
        }
        self.threads.insert(tid, thread);
        Ok(true)
    }

    /// Samples until the next re-draw: 2 to 8 seconds of CPU time, longer with more CPUs, since
    /// each event loses half a period.
    pub(super) fn next_redraw(&mut self, samples: u64) -> u64 {
        let second = 1_000_000_000 / self.sources.recipe.period_ns.max(1) + 1;
        let cpus = u64::try_from(self.sources.cpus.len()).unwrap_or(1);
        let scale = (cpus / 4).max(1);
        samples + self.rng.u64(2 * second..8 * second) * scale
    }
}
