//! How much a growing profile keeps, and what it omitted.

use vmscope_records::DurationNs;

/// How much a growing profile keeps.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Samples of the rolling window, 16 bytes each, and up to two time buckets of them more.
    /// Of older ones a total stays, by thread and site.
    pub samples: usize,
    /// How far back the rolling window reaches.
    pub age: DurationNs,
    /// Entries; what is new beyond that is an entry `(others)` of its region.
    pub entries: usize,
    /// Sites, likewise.
    pub sites: usize,
    /// Records of each kind that comes again and again (counters, collections …).
    pub series: usize,
    /// Ended threads; of a quarter more, the oldest are summed up.
    pub threads: usize,
    /// Ended processes; of an eighth more, the oldest are summed up.
    pub processes: usize,
    /// Dead pieces of code with samples in the window; of more, the window begins later.
    pub codes: usize,
    /// Bytes of maps and methods of dead code; of more, the oldest code loses its maps. Its
    /// samples keep their names.
    pub code: usize,
    /// Readings of a thread's CPU time; of more, every other one of the older half goes. Of a
    /// thread that ended before the window, the first and the last remain.
    pub cpu_readings: usize,
}

impl Default for Bounds {
    /// Ten minutes, but no more than two million samples (32 MiB), and what makes as much of
    /// the rest.
    fn default() -> Self {
        Bounds {
            samples: 1 << 21,
            age: DurationNs(600_000_000_000),
            entries: 1 << 16,
            sites: 1 << 17,
            series: 1 << 16,
            threads: 4096,
            processes: 1 << 13,
            codes: 1 << 15,
            code: 64 << 20,
            cpu_readings: 1024,
        }
    }
}

/// What a growing profile omitted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Samples that are older than the rolling window: only their total is known.
    pub samples: u64,
    /// Dropped samples whose places got other names afterwards: they count under the old ones.
    pub misnamed: u64,
    /// Records of series that were dropped for want of room.
    pub records: u64,
    /// Times that an entry or site had no room, and became `(others)`.
    pub names: u64,
    /// Ended threads that were summed up with others.
    pub threads: u64,
    /// Dead pieces of code that lost their maps.
    pub code: u64,
    /// Records about times that were settled: samples of those times were placed without them.
    pub late: u64,
    /// Samples that came after their time was settled: they count as of then.
    pub late_samples: u64,
}
