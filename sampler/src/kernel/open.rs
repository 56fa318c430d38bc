//! Opening the events of the targets.

use std::io;
use std::os::fd::AsFd as _;

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_records::{Limit, LimitKind, Pid, SampleClock, Tid, TimeNs};

use super::attr::{Extras, KernelChain, Recipe};
use super::decode::{GENERAL_REGISTERS, SP_REGISTER};
use super::order::Sorter;
use super::sources::{Refused, Sources, lockable_bytes};
use super::threads::{Process, Thread};
use super::{KernelEngine, KernelOptions, Opening, Target, UserCallers, limit, period_of};
use crate::engine::{EngineDescription, EngineError, EngineEvent};
use crate::proc::{self, Stat};
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

/// Maximum bytes of all CPUs' big rings.
const BIG_RINGS_BYTES: u64 = 256 << 20;

/// Seconds of samples with stacks per ring; the drain empties rings ten times a second.
const BIG_RING_SECONDS: u64 = 2;

/// Maximum bytes of a sample without stack and registers.
const PLAIN_SAMPLE_BYTES: u64 = 56;

/// Pages of a CPU's ring. The kernel grants more than [`RING_PAGES`] to root only; other users'
/// drains wake at half of that. A user who may lock hardly more than that takes a half, so that
/// a second vmscope finds a rest.
fn ring_pages(extras: &Extras, period_ns: u64, cpus: u64) -> usize {
    let page = (sys::page_size() as u64).max(1);
    if sys::effective_uid() != 0 && lockable_bytes(cpus) < 2 * cpus * RING_PAGES as u64 * page {
        return RING_PAGES / 2;
    }
    if extras.stack_bytes == 0 || sys::effective_uid() != 0 {
        return RING_PAGES;
    }
    let registers = u64::from(extras.registers.count_ones()) * 8;
    let sample = PLAIN_SAMPLE_BYTES + registers + u64::from(extras.stack_bytes);
    let samples = (BIG_RING_SECONDS * 1_000_000_000).div_ceil(period_ns.max(1));
    let pages = samples.saturating_mul(sample) / page;
    let pages = usize::try_from(pages).unwrap_or(BIG_RING_PAGES);
    let share = usize::try_from(BIG_RINGS_BYTES / page / cpus.max(1)).unwrap_or(BIG_RING_PAGES);
    let most = 1 << share.clamp(RING_PAGES, BIG_RING_PAGES).ilog2();
    pages.clamp(RING_PAGES, most).next_power_of_two()
}

/// Maximum number of child processes that a message lists.
const LISTED_CHILDREN: usize = 16;

fn forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn is(error: &io::Error, errno: i32) -> bool {
    error.raw_os_error() == Some(errno)
}

/// Refuses invalid targets, by /proc.
pub(crate) fn check_target(pid: u32) -> Result<Stat, EngineError> {
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
    if stat.is_dead() && living_threads(pid).next().is_none() {
        return Err(EngineError::Zombie { pid: Pid(pid) });
    }
    Ok(stat)
}

/// Living threads of a process. The main thread may end before others.
pub(super) fn living_threads(pid: u32) -> impl Iterator<Item = u32> {
    let threads = proc::threads(pid).unwrap_or_default().into_iter();
    threads.filter(move |tid| proc::thread_stat(pid, *tid).is_ok_and(|stat| !stat.is_dead()))
}

/// Limit of a process stopped by a signal or a debugger.
pub(crate) fn stopped(pid: u32, stat: &Stat, now: u64) -> Option<Limit> {
    let (who, remedy) = match stat.state {
        b'T' => ("a signal", format!("kill -CONT {pid}")),
        b't' => ("a debugger", "let the debugger continue it".to_owned()),
        _ => return None,
    };
    let text = format!(
        "process {pid} was stopped by {who} when vmscope attached: no samples until it continues"
    );
    Some(limit(now, LimitKind::NotSampled, text, &remedy))
}

/// Limit of child processes that run the targets' program, as workers do: `attach` samples no children.
fn unsampled_children(pids: &[u32], now: u64) -> Option<Limit> {
    let mut children = Vec::new();
    for pid in pids {
        let Ok(program) = proc::program(*pid) else {
            continue;
        };
        let new = proc::children(*pid).into_iter();
        let new = new.filter(|child| !pids.contains(child));
        children.extend(new.filter(|child| proc::program(*child).is_ok_and(|it| it == program)));
    }
    let (first, others) = children.split_first()?;
    let (text, remedy) = match others {
        [] => (
            format!("child process {first} runs the same program and is not sampled"),
            "attach to it too".to_owned(),
        ),
        _ => {
            let mut pids: Vec<String> = (children.iter().take(LISTED_CHILDREN))
                .map(u32::to_string)
                .collect();
            if children.len() > LISTED_CHILDREN {
                pids.push("…".to_owned());
            }
            let count = children.len();
            (
                format!("{count} child processes run the same program and are not sampled"),
                format!("attach to them too: {}", pids.join(" ")),
            )
        }
    };
    Some(limit(now, LimitKind::NotSampled, text, &remedy))
}

/// Classifies a refusal of a target's event or ring.
fn refused(pid: u32, why: Refused, threads: usize, allowed: u64, cpus: u64) -> EngineError {
    let lacks_descriptors = why.for_lack_of_descriptors();
    match why {
        Refused::Event(source) if lacks_descriptors => EngineError::TooFewDescriptors {
            threads,
            allowed,
            source,
        },
        Refused::Ring(source) if is(&source, libc::EPERM) => EngineError::LockedMemory {
            uid: sys::effective_uid(),
            allowed_kb: lockable_bytes(cpus) / 1024,
            source,
        },
        Refused::Ring(source) => EngineError::Syscall {
            operation: "mapping a ring",
            object: format!("process {pid}"),
            source,
        },
        Refused::Event(source) => open_error(pid, source),
    }
}

/// Classifies an error of opening an event on the target.
fn open_error(pid: u32, source: io::Error) -> EngineError {
    if is(&source, libc::ESRCH) {
        return EngineError::ExitedWhileAttaching { pid: Pid(pid) };
    }
    let me = sys::effective_uid();
    if forbidden(&source) {
        return match proc::owner(pid) {
            Ok(owner) if owner != me && me != 0 => EngineError::SomeoneElses {
                pid: Pid(pid),
                owner,
                source,
            },
            _ => EngineError::Forbidden {
                paranoid: proc::kernel_setting("perf_event_paranoid"),
                is_root: me == 0,
                source,
            },
        };
    }
    if is(&source, libc::ENOSYS) {
        return EngineError::Forbidden {
            paranoid: proc::kernel_setting("perf_event_paranoid"),
            is_root: me == 0,
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
    let mut tid = pid;
    loop {
        // CPU 0 may be offline; a thread's event waits for it.
        let cpu = recipe.inherit.then_some(0);
        match sys::perf_event_open(&recipe.sampling(), tid, cpu) {
            Ok(_) => return Ok(()),
            Err(error) if is(&error, libc::ESRCH) => match living_threads(pid).next() {
                Some(living) if living != tid => tid = living,
                _ => return Err(open_error(pid, error)),
            },
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
        let stat = check_target(pid)?;
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
            stopped: stopped(pid, &stat, sys::monotonic_ns()),
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
        let unwound = match options.call_graph.map(|asked| asked.from) {
            Some(UserCallers::Stack(bytes)) => bytes,
            _ => 0,
        };
        let stack_bytes = options.stack_bytes.max(unwound) & !7;
        let registers = match unwound {
            0 => options.registers,
            _ => options.registers | GENERAL_REGISTERS,
        };
        let mut recipe = Recipe {
            period_ns: options.rate.period().get(),
            extras: Extras {
                chain: options.call_graph.map(|asked| KernelChain {
                    depth: asked.depth.clamp(1, max_stack),
                    user: asked.from == UserCallers::FramePointers,
                }),
                registers: registers | u64::from(stack_bytes != 0) << SP_REGISTER,
                stack_bytes,
                needed_stack: options.stack_bytes & !7,
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
        let mut limits: Vec<Limit> = targets
            .iter()
            .filter_map(|one| one.stopped.clone())
            .collect();
        if !launched {
            limits.extend(unsampled_children(pids, now));
        }
        if recipe.exclude_kernel {
            limits.push(limit(
                now,
                LimitKind::KernelExcluded,
                "kernel samples are excluded: shares are of user time, without time in system \
                 calls",
                "sysctl kernel.perf_event_paranoid=1 (or lower), or run with CAP_PERFMON",
            ));
        }
        if recipe.exclude_kernel {
            // Nothing to follow.
            recipe.extras.chain = recipe.extras.chain.filter(|chain| chain.user);
        }
        if recipe.extras.chain.is_some_and(|chain| chain.user) {
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
        let allowed = allowed.min(options.max_descriptors.unwrap_or(u64::MAX));
        let budget = allowed.saturating_sub(RESERVED_DESCRIPTORS);
        let cpus = proc::online_cpus().unwrap_or_else(|| vec![0]);
        let cpu_count = u64::try_from(cpus.len()).unwrap_or(u64::MAX);
        let threads_of = |pid: &u32| proc::threads(*pid).map_or(1, |threads| threads.len());
        let threads: usize = pids.iter().map(threads_of).sum();
        let thread_count = u64::try_from(threads).unwrap_or(u64::MAX);
        options.opening.expect(threads);
        // Events and rings.
        let inherited = thread_count.saturating_add(1).saturating_mul(cpu_count);

        let mut per_thread = inherited > budget;
        loop {
            let mut recipe = recipe;
            recipe.inherit = !per_thread;
            recipe.inherit_thread &= !per_thread;
            let mut sources = Sources::new(recipe);
            let needed = if per_thread { thread_count } else { inherited };
            // Half of the rest stays for threads found later.
            sources.counters = budget.saturating_sub(needed) / 2;
            if per_thread {
                sources.size_thread_rings(thread_count, cpu_count);
            } else {
                let pages = ring_pages(&recipe.extras, recipe.period_ns, cpu_count);
                match sources.open_rings(&cpus, pages) {
                    Ok(()) if !sources.cpus.is_empty() => {}
                    Err(why) if !why.for_lack_of_descriptors() => {
                        let pid = pids.first().copied().unwrap_or(0);
                        return Err(refused(pid, why, threads, allowed, cpu_count));
                    }
                    _ => {
                        per_thread = true;
                        continue;
                    }
                }
            }
            let mut limits = limits.clone();
            if sources.recipe.extras.stack_bytes < recipe.extras.stack_bytes {
                limits.push(limit(
                    now,
                    LimitKind::EngineFallback,
                    format!(
                        "each sample copies {} bytes of stack only, because little memory may be \
                         locked for rings: deep stacks lack outer callers",
                        sources.recipe.extras.stack_bytes
                    ),
                    "a greater kernel.perf_event_mlock_kb or ulimit -l, or run vmscope as root",
                ));
            }
            let mut engine = Self {
                description: EngineDescription {
                    name: "kernel",
                    clock: SampleClock::Cpu,
                    period: period_of(options),
                    kernel_included: !recipe.exclude_kernel,
                    began: TimeNs(now),
                    limits,
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
                switches: super::Switches::default(),
                finished: false,
                first: Vec::new(),
            };
            if per_thread {
                engine.description.limits.push(limit(
                    now,
                    LimitKind::EngineFallback,
                    format!(
                        "{threads} threads on {cpu_count} CPUs need more than the {allowed} allowed \
                         file descriptors: new threads are sampled up to 0.1 s late"
                    ),
                    "raise the limit on open files (ulimit -n)",
                ));
            }
            match engine.open_threads(&options.opening) {
                Ok(()) => return Ok(engine),
                Err((_, why)) if why.for_lack_of_descriptors() && !per_thread => {
                    per_thread = true;
                    targets = engine.targets;
                }
                Err((pid, why)) => {
                    return Err(refused(pid, why, threads, allowed, cpu_count));
                }
            }
        }
    }

    /// Opens events on all threads, starts them, then opens events on threads started meanwhile
    /// without inheritance. An error names the process.
    fn open_threads(&mut self, opening: &Opening) -> Result<(), (u32, Refused)> {
        let pids: Vec<u32> = self.targets.iter().map(|target| target.pid).collect();
        let mut out = Vec::new();
        // All threads found here start before the first sample.
        let now = sys::monotonic_ns();
        for &pid in &pids {
            self.processes.insert(pid, Process::started(pid, 0));
            self.open_all_threads(pid, now, false, opening, &mut out)?;
        }
        if !self.sources.recipe.on_exec {
            self.description.began = TimeNs(sys::monotonic_ns());
            for thread in self.threads.values_mut() {
                // Immediately before its start: opening may have taken long.
                thread.note_before();
                let enabled = thread.own.map_or(Ok(()), |own| self.sources.enable(own));
                let counter = thread.counter();
                enabled
                    .and_then(|()| counter.map_or(Ok(()), |one| sys::perf_enable(one.as_fd())))
                    .map_err(|error| (thread.pid, error.into()))?;
            }
            for (&pid, process) in &mut self.processes {
                let threads = self.threads.values().filter(|thread| thread.pid == pid);
                let sampled = threads.map(Thread::sampled_so_far).sum();
                *process = Process::started(pid, sampled);
            }
            for &pid in &pids {
                self.open_all_threads(pid, now, true, opening, &mut out)?;
            }
        }
        let is_empty = |pid: &u32| !self.threads.values().any(|thread| thread.pid == *pid);
        if let Some(pid) = pids.into_iter().find(is_empty) {
            return Err((pid, io::Error::from_raw_os_error(libc::ESRCH).into()));
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
        self.first.append(&mut out);
        Ok(())
    }

    /// Opens events on a process's threads in /proc until none is new. With `start`, the events
    /// start at once.
    fn open_all_threads(
        &mut self,
        pid: u32,
        time: u64,
        start: bool,
        opening: &Opening,
        out: &mut Vec<EngineEvent>,
    ) -> Result<(), (u32, Refused)> {
        for _ in 0..SCANS {
            let mut any = false;
            for tid in proc::threads(pid).unwrap_or_default() {
                if !self.threads.contains_key(&tid) {
                    let opened = self.open_found(pid, tid, time, start, out);
                    any |= opened.map_err(|why| (pid, why))?;
                    opening.opened(self.threads.len());
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
    ) -> Result<bool, Refused> {
        let family = match self.sources.open_family(tid) {
            Ok(family) => family,
            Err(Refused::Event(error)) if is(&error, libc::ESRCH) => return Ok(false),
            Err(why) => return Err(why),
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
