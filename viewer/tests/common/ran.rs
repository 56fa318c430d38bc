//! The log of a program whose code comes and goes (`jit_churn`, `programs.Churn`): what ran when,
//! a line `KIND CODE BEGIN END` for each life, in nanoseconds of `CLOCK_MONOTONIC`.

use std::path::Path;

/// What both programs call the kinds of code that they run. The last one's is never replaced.
pub const KINDS: [&str; 4] = ["alpha", "beta", "gamma", "steady"];

/// One time that code was run.
#[derive(Debug)]
pub struct Ran {
    /// Of [`KINDS`].
    pub kind: usize,
    /// Slot or class.
    pub code: String,
    pub begin: u64,
    pub end: u64,
}

impl Ran {
    /// Whether it ran at that time.
    pub fn is_at(&self, time: u64) -> bool {
        (self.begin..=self.end).contains(&time)
    }
}

/// The program's own log, in the order of time.
pub fn log_of(path: &Path) -> Vec<Ran> {
    let text = std::fs::read_to_string(path).expect("the program's log");
    let lines = text.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let time = |at: usize| words[at].parse().expect("nanoseconds");
        let kind = KINDS.iter().position(|kind| *kind == words[0]);
        Ran {
            kind: kind.expect("a kind"),
            code: words[1].to_owned(),
            begin: time(2),
            end: time(3),
        }
    });
    lines.collect()
}

/// Latest start before this time; possibly ended.
pub fn last_begun(log: &[Ran], time: u64) -> Option<&Ran> {
    let after = log.partition_point(|ran| ran.begin <= time);
    after.checked_sub(1).map(|at| &log[at])
}
