//! Figures and facts that a VM tells about itself.

use crate::{ProcessKey, TimeNs};

/// How the values of a counter relate over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterMeaning {
    /// A level: the newest value counts (eden size).
    Gauge,
    /// A total since the VM's start: the difference counts (scavenges).
    Total,
}

/// A named figure of a VM at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Whose.
    pub process: ProcessKey,
    /// When it was read.
    pub time: TimeNs,
    /// The report's section it belongs to (`Memory`, `GCs`, `Events`).
    pub section: String,
    /// Its name in the VM's words.
    pub name: String,
    /// Its unit (`bytes`, `ns`); empty for a plain count.
    pub unit: String,
    /// How to read a series of it.
    pub meaning: CounterMeaning,
    /// Its value.
    pub value: f64,
}

/// Something known about a VM that is not a number over time (its collector, a
/// flag, the size of its code zone), for the report's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Whose.
    pub process: ProcessKey,
    /// When it was read.
    pub time: TimeNs,
    /// What, for instance `eden size`.
    pub name: String,
    /// Its value, as it is to be printed.
    pub value: String,
}
