//! The layout of the shared memory: 64-bit words, each read and written atomically.
//!
//! ```text
//! 0        header, 4096 bytes: constants, rings' heads, requests, leases, the sampler's status
//! 4096     threads: one row of 64 bytes for each thread that registered for sampling
//! …        samples: a ring
//! …        stream: a ring of events
//! ```
//!
//! The VM creates the memory as a memfd named [`NAME`], seals its size, and keeps it open. A
//! profiler finds it among the VM's descriptors in `/proc/PID/fd`, as [`LINK`], and opens it there.
//! The memory dies with the VM.
//!
//! The version has two parts. A reader takes memory of its own major version and any minor one:
//! later minor versions only give meaning to words that were 0.

/// Name of the memfd.
pub const NAME: &core::ffi::CStr = c"vmscope-publish";

/// What the descriptor's link in `/proc/PID/fd` reads.
pub const LINK: &str = "/memfd:vmscope-publish (deleted)";

/// First word: `vmscopeP`, the first letter lowest.
pub const MAGIC: u64 = u64::from_le_bytes(*b"vmscopeP");
/// Major version.
pub const MAJOR: u32 = 2;
/// Minor version.
pub const MINOR: u32 = 0;

/// Size of the header in bytes, and alignment of the parts.
pub const HEADER_BYTES: usize = 4096;

/// Number of profilers that are served at a time.
pub const LEASES: usize = 8;
/// Environment variable that asks a VM to publish from its start, before a profiler can attach: any
/// value. Profilers set the variable for VMs that they start.
pub const EXPECT: &str = "VMSCOPE_PUBLISH";
/// Length of the VM's own lease for an expected profiler, in nanoseconds.
pub const EXPECTED_NS: u64 = 10_000_000_000;

/// The longest lease in nanoseconds. A lease that would end later does not count.
pub const LONGEST_LEASE_NS: u64 = 60_000_000_000;

/// Number of rows for threads that registered for sampling.
pub const THREADS: usize = 1024;
/// Words of a row.
pub const THREAD_WORDS: usize = 8;
/// Size of the rows in bytes.
pub const THREADS_BYTES: usize = THREADS * THREAD_WORDS * 8;

/// The smallest ring in bytes.
pub const SMALLEST_RING: usize = 4096;
/// The largest ring in bytes.
pub const LARGEST_RING: usize = 1 << 30;

/// Words of the VM's name, and of its version, in UTF-8, the rest 0.
pub const NAME_WORDS: usize = 8;

/// Indices of words in the header. Words that different sides write often lie in different cache
/// lines.
pub mod word {
    /// [`MAGIC`](super::MAGIC), written last.
    pub const MAGIC: usize = 0;
    /// Major version in the high half, minor in the low one.
    pub const VERSION: usize = 1;
    /// Size of the header in bytes.
    pub const HEADER_BYTES: usize = 2;
    /// Size of the memory in bytes.
    pub const TOTAL_BYTES: usize = 3;
    /// The VM's process id in its own namespace. A process that merely inherited the memory by fork
    /// has a different id.
    pub const PID: usize = 4;
    /// Time of creation in nanoseconds of `CLOCK_MONOTONIC`.
    pub const CREATED: usize = 5;
    /// The process's start time as in `/proc/PID/stat`, in clock ticks; 0 if unknown. Pid and start
    /// time together identify the process.
    pub const START_TICKS: usize = 6;
    /// The VM's name.
    pub const VM_NAME: usize = 8;
    /// The VM's version.
    pub const VM_VERSION: usize = 16;
    /// Offset of the stream in bytes.
    pub const STREAM_OFFSET: usize = 24;
    /// Number of words of the stream, a power of two.
    pub const STREAM_WORDS: usize = 25;
    /// Offset of the samples in bytes.
    pub const SAMPLES_OFFSET: usize = 26;
    /// Number of words of the samples, a power of two.
    pub const SAMPLES_WORDS: usize = 27;
    /// Offset of the rows of threads in bytes.
    pub const THREADS_OFFSET: usize = 28;
    /// Number of rows of threads.
    pub const THREADS: usize = 29;

    /// Nonzero while a profiler listens.
    pub const LISTENING: usize = 32;
    /// Nonzero while requests wait for `poll`.
    pub const ATTENTION: usize = 33;

    /// The stream's head.
    pub const STREAM_HEAD: usize = 48;
    /// The stream's floor, always 0.
    pub const STREAM_FLOOR: usize = 49;
    /// The samples' head.
    pub const SAMPLES_HEAD: usize = 64;
    /// The samples' floor: earlier samples were read or cleared.
    pub const SAMPLES_FLOOR: usize = 65;

    /// Number of events too long for the stream.
    pub const TOO_LONG: usize = 80;
    /// Number of samples refused by a full ring that keeps the oldest samples.
    pub const SAMPLES_REFUSED: usize = 81;
    /// Number of leases that ran out.
    pub const LEASES_EXPIRED: usize = 82;

    /// Number of requests for a snapshot.
    pub const SNAPSHOTS_REQUESTED: usize = 96;
    /// The newest request whose snapshot began.
    pub const SNAPSHOTS_BEGUN: usize = 97;
    /// The newest request whose snapshot ended.
    pub const SNAPSHOTS_DONE: usize = 98;
    /// Number of requests for a collection.
    pub const COLLECTIONS_REQUESTED: usize = 99;
    /// The newest request that was answered.
    pub const COLLECTIONS_DONE: usize = 100;
    /// Number of settings of the lifetime rate.
    pub const RATES_REQUESTED: usize = 101;
    /// Newest setting passed on to the VM.
    pub const RATES_DONE: usize = 102;
    /// Unit of the lifetime rate: a number of `LifetimeUnit`.
    pub const RATE_UNIT: usize = 103;
    /// Mean distance between sampled objects, in units of [`RATE_UNIT`]; 0 turns lifetimes off.
    pub const RATE_DISTANCE: usize = 104;
    /// Number of callers in an allocation site.
    pub const RATE_CALLERS: usize = 105;

    /// Number of commands to the sampler.
    pub const SAMPLER_REQUESTED: usize = 112;
    /// Newest command carried out.
    pub const SAMPLER_DONE: usize = 113;
    /// Command: a number of `SamplerCommand`.
    pub const SAMPLER_COMMAND: usize = 114;
    /// Requested period in nanoseconds.
    pub const SAMPLER_PERIOD: usize = 115;
    /// Requested options: bits of `SamplerOptions`.
    pub const SAMPLER_OPTIONS: usize = 116;
    /// State: a number of `SamplerState`.
    pub const SAMPLER_STATE: usize = 117;
    /// Period in use, in nanoseconds.
    pub const SAMPLER_PERIOD_NOW: usize = 118;
    /// Options in use.
    pub const SAMPLER_OPTIONS_NOW: usize = 119;
    /// Scheduling of the sampler's thread: a number of `Priority`.
    pub const SAMPLER_PRIORITY: usize = 120;
    /// Its nice value, as 20 − nice.
    pub const SAMPLER_NICE: usize = 121;
    /// Number of ticks.
    pub const SAMPLER_TICKS: usize = 122;
    /// Number of ticks that came too late and were left out.
    pub const SAMPLER_LATE: usize = 123;
    /// CPU time of the sampler's thread in nanoseconds.
    pub const SAMPLER_CPU: usize = 124;
    /// Number of threads that found no row.
    pub const SAMPLER_NO_ROW: usize = 125;
    /// Time at which sampling started last, in nanoseconds of `CLOCK_MONOTONIC`.
    pub const SAMPLER_STARTED: usize = 126;

    /// First lease. A lease is one word: its end time in nanoseconds of `CLOCK_MONOTONIC`, or 0.
    pub const LEASES: usize = 128;
    /// First process id of a lease's holder, for messages; 0 while a lease waits for an expected
    /// profiler.
    pub const LEASE_PIDS: usize = 136;
    /// First read position: a lease's holder has read the stream up to this position.
    pub const LEASE_READ: usize = 144;
}

/// Indices of words in a thread's row.
pub mod thread {
    /// Thread id, or 0 for a free row.
    pub const TID: usize = 0;
    /// Role: a number of `ThreadRole`.
    pub const ROLE: usize = 1;
    /// Number of ticks that examined the thread.
    pub const TICKS: usize = 2;
    /// Number of ticks that counted the thread as idle.
    pub const IDLE: usize = 3;
    /// Number of signals sent.
    pub const SIGNALLED: usize = 4;
    /// Number of samples written by its handler.
    pub const SAMPLES: usize = 5;
    /// Number of ticks left out because the previous signal was still unhandled.
    pub const PENDING: usize = 6;
    /// CPU time in nanoseconds at the last tick.
    pub const CPU: usize = 7;
}
