//! The sampler inside the VM: a thread of high priority ticks, and signals the VM's running
//! threads. Each signalled thread's handler puts the interrupted program counter into the ring of
//! samples.
//!
//! The sampler works without a profiler: samples stay in the ring, and a profiler that attaches
//! later reads the remaining samples. Only registered threads are sampled. Only one sampler can run
//! per process.
//!
//! Samples follow CPU time. A sleeping thread is never interrupted, so no system call of the thread
//! ends early; the tick is counted as idle ([`ThreadTicks`]), so wall clock time is known as well.
//!
//! | module | holds |
//! |---|---|
//! | `slots` | the registered threads |
//! | `handler` | the signal handler, with all its steps |
//! | `ticker` | the sampler's own thread |
//! | `registers` | the registers of an interrupted thread, by CPU |

pub(crate) mod handler;
mod registers;
pub(crate) mod slots;
pub(crate) mod ticker;

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::event::ThreadRole;
use crate::event::wire::wire_enum;
use crate::layout::{self, thread, word};
use crate::memory::Memory;

/// The usual time between two ticks: seven of 1,400 Hz are 5 ms and would lock on to timers.
pub const DEFAULT_PERIOD: Duration = Duration::from_nanos(713_927);
/// The shortest period.
pub const SHORTEST_PERIOD: Duration = Duration::from_micros(50);
/// The longest period.
pub const LONGEST_PERIOD: Duration = Duration::from_secs(1);

/// How to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplerOptions {
    /// Mean time between two ticks, from [`SHORTEST_PERIOD`] to [`LONGEST_PERIOD`].
    pub period: Duration,
    /// Whether samples have chains of return addresses, found by following frame pointers.
    pub chains: bool,
    /// Whether the oldest samples stay when the ring is full. Otherwise the newest do.
    pub keep_oldest: bool,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self {
            period: DEFAULT_PERIOD,
            chains: false,
            keep_oldest: false,
        }
    }
}

/// Bits of [`word::SAMPLER_OPTIONS`].
const CHAINS: u64 = 1;
const KEEP_OLDEST: u64 = 2;

impl SamplerOptions {
    pub(crate) fn bits(self) -> u64 {
        let bit = |set, bit| if set { bit } else { 0 };
        bit(self.chains, CHAINS) | bit(self.keep_oldest, KEEP_OLDEST)
    }

    pub(crate) fn period_ns(self) -> u64 {
        let period = self.period.clamp(SHORTEST_PERIOD, LONGEST_PERIOD);
        u64::try_from(period.as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn from_words(period_ns: u64, bits: u64) -> Self {
        Self {
            period: Duration::from_nanos(period_ns),
            chains: bits & CHAINS != 0,
            keep_oldest: bits & KEEP_OLDEST != 0,
        }
    }
}

/// Why a thread is not sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SamplerError {
    /// Another publisher of this process samples, or has registered this thread.
    Busy,
    /// The signal's handler cannot be installed.
    Signal(i32),
    /// The thread table is full.
    NoRow,
    /// The sampler's thread cannot be started.
    Thread,
    /// This process is a forked child of the publisher's process.
    Child,
}

impl fmt::Display for SamplerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => write!(f, "another publisher of this process samples"),
            Self::Signal(number) => write!(f, "no handler can be installed for signal {number}"),
            Self::NoRow => write!(f, "{} threads are registered, the most", layout::THREADS),
            Self::Thread => write!(f, "the sampler's thread cannot be started"),
            Self::Child => write!(f, "a forked child does not publish"),
        }
    }
}

impl std::error::Error for SamplerError {}

wire_enum! {
    /// Whether the sampler runs.
    pub enum SamplerState {
        /// The sampler does not run.
        Stopped = 0,
        /// The sampler runs.
        Running = 1,
    }
}

wire_enum! {
    /// Scheduling of the sampler's thread.
    pub enum Priority {
        /// The sampler's thread never ran.
        None = 0,
        /// `SCHED_FIFO`, at the lowest real-time priority.
        RealTime = 1,
        /// A nice value below 0.
        Nice = 2,
        /// The usual scheduling of threads: ticks may come late.
        Normal = 3,
    }
}

wire_enum! {
    /// A profiler's command.
    pub enum SamplerCommand {
        /// Nothing.
        None = 0,
        /// Start, or change the options.
        Start = 1,
        /// Stop.
        Stop = 2,
        /// Drop the samples.
        Clear = 3,
    }
}

/// State and counters of the sampler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplerStatus {
    /// Whether the sampler runs.
    pub state: SamplerState,
    /// Options in use.
    pub options: SamplerOptions,
    /// Scheduling of the sampler's thread.
    pub priority: Priority,
    /// Nice value of the sampler's thread.
    pub nice: i32,
    /// Number of ticks. No other field is older.
    pub ticks: u64,
    /// Number of ticks that were left out because they came too late.
    pub late: u64,
    /// Number of samples refused by a full ring that keeps the oldest samples.
    pub refused: u64,
    /// Number of threads refused by a full thread table.
    pub no_row: u64,
    /// CPU time of the sampler's thread in nanoseconds.
    pub cpu_ns: u64,
    /// Time of the newest start, in nanoseconds of `CLOCK_MONOTONIC`.
    pub started: u64,
}

impl SamplerStatus {
    pub(crate) fn read(memory: &Memory) -> Self {
        // Load the ticks first: later loads cannot give older values.
        let ticks = memory.word(word::SAMPLER_TICKS).load(Ordering::Acquire);
        let get = |index: usize| memory.word(index).load(Ordering::Relaxed);
        let nice = i32::try_from(get(word::SAMPLER_NICE)).unwrap_or(0);
        Self {
            state: SamplerState::from_number(get(word::SAMPLER_STATE)),
            options: SamplerOptions::from_words(
                get(word::SAMPLER_PERIOD_NOW),
                get(word::SAMPLER_OPTIONS_NOW),
            ),
            priority: Priority::from_number(get(word::SAMPLER_PRIORITY)),
            nice: 20_i32.saturating_sub(nice),
            ticks,
            late: get(word::SAMPLER_LATE),
            refused: get(word::SAMPLES_REFUSED),
            no_row: get(word::SAMPLER_NO_ROW),
            cpu_ns: get(word::SAMPLER_CPU),
            started: get(word::SAMPLER_STARTED),
        }
    }
}

/// Tick counts of a registered thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTicks {
    /// Thread id.
    pub tid: u32,
    /// Role.
    pub role: ThreadRole,
    /// Number of ticks.
    pub ticks: u64,
    /// Number of ticks that counted the thread as idle.
    pub idle: u64,
    /// Number of signals.
    pub signalled: u64,
    /// Number of samples written.
    pub samples: u64,
    /// Number of ticks left out because the previous signal was still unhandled.
    pub pending: u64,
    /// CPU time at the last tick, in nanoseconds.
    pub cpu_ns: u64,
}

impl ThreadTicks {
    /// The registered threads. Their rows lie behind the header.
    pub(crate) fn read(memory: &Memory) -> Vec<Self> {
        let words = layout::THREADS * layout::THREAD_WORDS;
        let rows = memory.part(layout::HEADER_BYTES, words).unwrap_or_default();
        let (rows, _) = rows.as_chunks::<{ layout::THREAD_WORDS }>();
        let row = |row: &[crate::sync::AtomicU64; layout::THREAD_WORDS]| {
            let get = |index: usize| row[index].load(Ordering::Relaxed);
            let tid = u32::try_from(get(thread::TID)).ok()?;
            (tid != 0).then(|| Self {
                tid,
                role: ThreadRole::from_number(get(thread::ROLE)),
                ticks: get(thread::TICKS),
                idle: get(thread::IDLE),
                signalled: get(thread::SIGNALLED),
                samples: get(thread::SAMPLES),
                pending: get(thread::PENDING),
                cpu_ns: get(thread::CPU),
            })
        };
        rows.iter().filter_map(row).collect()
    }
}
