//! The sampler's thread.
//!
//! At each tick, the ticker decides which registered threads run. The ticker reads a thread's CPU
//! clock twice: if the second reading is later, the thread is on a CPU now. Otherwise the ticker
//! itself may have displaced the thread: such a thread is runnable, and last ran on the ticker's
//! CPU. If a displaced thread's clock has advanced since the last tick, the ticker samples the
//! thread at random: the probability is the share of CPU time in the time since the last tick. All
//! other threads count as idle, and get no signal. On another CPU, a runnable thread that does not
//! run now was displaced by other threads: sampling such threads would count them twice on a busy
//! machine.
#![allow(
    unsafe_code,
    reason = "scheduling, clocks and signals of threads are system calls"
)]

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::slots::{self, Slot};
use super::{Priority, SamplerCommand, SamplerState, handler};
use crate::layout::{self, thread, word};
use crate::memory;
use crate::publisher::Shared;

/// Ticks between two checks of the profilers' leases and of this thread's own CPU time.
const LOOK: u64 = 64;
/// A signal unhandled for this long counts as lost: another pending signal with this number can
/// replace it.
const LOST_SIGNAL_NS: u64 = 1_000_000_000;

/// What the ticker knows about a slot.
#[derive(Debug, Default)]
struct Watched {
    generation: u64,
    /// CPU time and time at the last tick.
    cpu: u64,
    time: u64,
    stat: Option<File>,
}

/// Tools for looking at a thread.
#[derive(Debug)]
struct Tools {
    random: Random,
    sender: Sender,
}

/// Ticks until the sampler is told to stop.
pub(crate) fn run(shared: &Arc<Shared>) {
    raise_priority(shared);
    let mut watched: Vec<Watched> = Vec::new();
    watched.resize_with(layout::THREADS, Watched::default);
    let mut tools = Tools {
        random: Random(memory::now() | 1),
        sender: Sender::new(),
    };
    let mut next = memory::now();
    for tick in 0_u64.. {
        let period = shared.word(word::SAMPLER_PERIOD_NOW).max(1);
        next = next.saturating_add(tools.random.gap(period));
        sleep_until(next);
        if !shared.sampler.running() {
            break;
        }
        let now = memory::now();
        if let late @ 1.. = now.saturating_sub(next) / period {
            // Missed ticks are skipped: a burst of ticks would sample one place many times.
            shared.add(word::SAMPLER_LATE, late);
            next = now;
        }
        let ticks = shared.memory.word(word::SAMPLER_TICKS);
        ticks.fetch_add(1, Ordering::Release);
        for (index, (slot, watched)) in slots::slots().iter().zip(&mut watched).enumerate() {
            if slot.is_of(shared) {
                look_at(shared, index, slot, watched, &mut tools);
            } else if watched.stat.is_some() {
                watched.stat = None;
            }
        }
        shared.sampler_command(|command| command != SamplerCommand::Start);
        if tick % LOOK == 0 {
            look_around(shared);
        }
    }
    let state = shared.memory.word(word::SAMPLER_STATE);
    state.store(SamplerState::Stopped as u64, Ordering::Release);
}

fn look_around(shared: &Shared) {
    let cpu = memory::thread_cpu().unwrap_or(0);
    let place = shared.memory.word(word::SAMPLER_CPU);
    place.store(cpu, Ordering::Relaxed);
    shared.check_leases(memory::now());
    if shared.sampler.is_for_profiler() && !shared.listening() {
        // The profiler that wanted samples is gone.
        shared.sampler.stop();
    }
}

fn look_at(
    shared: &Shared,
    index: usize,
    slot: &'static Slot,
    watched: &mut Watched,
    tools: &mut Tools,
) {
    let Some(tid) = slot.tid() else {
        return;
    };
    if watched.generation != slot.generation() {
        *watched = Watched {
            generation: slot.generation(),
            time: memory::now(),
            cpu: cpu_clock(tid).unwrap_or(0),
            stat: File::open(format!("/proc/self/task/{tid}/stat")).ok(),
        };
    }
    let (Some(first), Some(second)) = (cpu_clock(tid), cpu_clock(tid)) else {
        // The thread ended without unregistering.
        slot.free(tid);
        shared.set(index, thread::TID, 0);
        return;
    };
    let now = memory::now();
    let ran = first.saturating_sub(watched.cpu);
    let passed = now.saturating_sub(watched.time).max(1);
    (watched.cpu, watched.time) = (second, now);
    shared.count(index, thread::TICKS);
    shared.set(index, thread::CPU, second);
    let runs = second > first
        || (ran > 0
            && tools.random.next() % passed < ran
            && watched.stat.as_ref().is_some_and(is_displaced));
    if !runs {
        shared.count(index, thread::IDLE);
        return;
    }
    let sent = slot.pending.load(Ordering::Relaxed);
    if sent != 0 && now.saturating_sub(sent) < LOST_SIGNAL_NS {
        shared.count(index, thread::PENDING);
        return;
    }
    slot.pending.store(now.max(1), Ordering::Release);
    if tools.sender.send(tid, slot) {
        shared.count(index, thread::SIGNALLED);
    } else {
        slot.pending.store(0, Ordering::Relaxed);
        shared.count(index, thread::PENDING);
    }
}

/// CPU time of a thread of this process in nanoseconds; `None` if it has ended.
fn cpu_clock(tid: u32) -> Option<u64> {
    // The clock of a thread id, as the kernel numbers it (CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED).
    // Unlike pthread_getcpuclockid it may be asked for a thread that has ended.
    memory::clock((!tid.cast_signed() << 3) | 6)
}

/// Whether a thread is runnable, and last ran on this CPU, according to its open `stat`
/// (`proc_pid_stat(5)`).
fn is_displaced(stat: &File) -> bool {
    let mut bytes = [0; 1024];
    let Ok(length) = stat.read_at(&mut bytes, 0) else {
        return false;
    };
    // SAFETY: plain system call.
    let here = unsafe { libc::sched_getcpu() };
    let stat = bytes.get(..length).unwrap_or_default();
    state_and_cpu(stat) == Some((b'R', here))
}

/// State and last CPU in a `stat`: fields 3 and 39.
fn state_and_cpu(stat: &[u8]) -> Option<(u8, i32)> {
    // The name may hold brackets. Later fields contain none.
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    Some((state, fields.nth(35)?.parse().ok()?))
}

/// Signals threads of this process, with their slots as the signals' values.
#[derive(Debug)]
struct Sender {
    signal: i32,
    pid: u32,
    uid: u32,
}

/// `siginfo_t` of a queued signal.
#[repr(C)]
struct Queued {
    signo: i32,
    errno: i32,
    code: i32,
    padding: i32,
    pid: u32,
    uid: u32,
    value: *const Slot,
    rest: [u64; 12],
}

impl Sender {
    fn new() -> Self {
        Self {
            signal: handler::signal(),
            pid: std::process::id(),
            // SAFETY: plain system call.
            uid: unsafe { libc::getuid() },
        }
    }

    fn send(&self, tid: u32, slot: &'static Slot) -> bool {
        const { assert!(size_of::<Queued>() == size_of::<libc::siginfo_t>()) };
        let &Self { signal, pid, uid } = self;
        let info = Queued {
            signo: signal,
            errno: 0,
            code: libc::SI_QUEUE,
            padding: 0,
            pid,
            uid,
            value: slot,
            rest: [0; 12],
        };
        let call = libc::SYS_rt_tgsigqueueinfo;
        // SAFETY: the kernel reads the local structure.
        let result = unsafe { libc::syscall(call, pid, tid, signal, &raw const info) };
        result == 0
    }
}

/// Sleeps until a time of `CLOCK_MONOTONIC`.
fn sleep_until(time: u64) {
    let time = libc::timespec {
        tv_sec: (time / 1_000_000_000).cast_signed(),
        tv_nsec: (time % 1_000_000_000).cast_signed(),
    };
    let clock = libc::CLOCK_MONOTONIC;
    // All signals are blocked in this thread, so nothing ends the sleep early.
    // SAFETY: reads the local time.
    unsafe {
        libc::clock_nanosleep(
            clock,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    };
}

/// Gives this thread the best permitted scheduling, and records the result in the status.
fn raise_priority(shared: &Shared) {
    // SAFETY: plain system call.
    let sched_priority = unsafe { libc::sched_get_priority_min(libc::SCHED_FIFO) };
    let parameters = libc::sched_param { sched_priority };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: reads the local structure; 0 is the calling thread.
    let real_time = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } == 0;
    let nice = |value| {
        // SAFETY: plain system call; 0 is the calling thread.
        let set = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, value) };
        set == 0
    };
    let best = (!real_time).then(|| (-20..0).find(|&value| nice(value)));
    // SAFETY: plain system call.
    let now = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let priority = match best {
        None => Priority::RealTime,
        Some(Some(_)) => Priority::Nice,
        Some(None) => Priority::Normal,
    };
    let set = |index: usize, value| shared.memory.word(index).store(value, Ordering::Relaxed);
    set(word::SAMPLER_PRIORITY, priority as u64);
    set(
        word::SAMPLER_NICE,
        u64::from((20_i32.saturating_sub(now)).cast_unsigned()),
    );
}

/// Random numbers (xorshift).
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A gap between ticks: half a period, and a random time of half a period on average,
    /// exponentially distributed. At most five periods.
    fn gap(&mut self, period: u64) -> u64 {
        let unit = ((self.next() >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        let half = period as f64 / 2.0;
        let gap = half + half * -unit.ln();
        (gap.min(period as f64 * 5.0)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_and_cpu_stand_behind_any_name() {
        let fields = (4..=38).map(|field| format!("{field} "));
        let fields = fields.collect::<String>();
        let stat = format!("7 (a) b (c)) R {fields}3 40 41");
        assert_eq!(state_and_cpu(stat.as_bytes()), Some((b'R', 3)));
        assert_eq!(state_and_cpu(b"7 (a) R 1"), None);
        assert_eq!(state_and_cpu(b"7"), None);
    }

    #[test]
    fn gaps_are_a_period_on_average() {
        let mut random = Random(88_172_645_463_325_252);
        let (period, count) = (713_927, 100_000);
        let gaps: Vec<u64> = (0..count).map(|_| random.gap(period)).collect();
        let mean = gaps.iter().sum::<u64>() as f64 / count as f64;
        // Six standard errors of half a period.
        let error = 6.0 * 0.5 / (count as f64).sqrt();
        assert!((mean / period as f64 - 1.0).abs() < error, "{mean}");
        let (least, most) = (gaps.iter().min(), gaps.iter().max());
        assert!(least >= Some(&(period / 2)) && most <= Some(&(period * 5)));
    }
}
