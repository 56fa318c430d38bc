//! Bounds of a growing profile's memory, and its omissions.

use vmscope_records::DurationNs;

/// Bounds of a growing profile's memory.
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
    /// Ended threads. With a quarter more, the oldest become one sum for each role.
    pub threads: usize,
    /// Ended processes. With an eighth more, the oldest become one sum.
    pub processes: usize,
    /// Dead pieces of code with samples. With more, the window begins later.
    pub codes: usize,
    /// Bytes of dead code's maps and methods. With more, the oldest code loses its maps. Its
    /// samples keep their names.
    pub code: usize,
    /// Readings of a thread's CPU time. Beyond this number, the older half is thinned out. A thread that
    /// ended before the window keeps its first and last reading.
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
    /// Ended threads summed up by role.
    pub threads: u64,
    /// Dead pieces of code that lost their maps.
    pub code: u64,
    /// Records about times that were settled:earlier samples ignore them.
    pub late: u64,
    /// Samples that came after their time was settled: they count as of then.
    pub late_samples: u64,
}
