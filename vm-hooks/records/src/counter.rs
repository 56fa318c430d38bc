//! Figures and facts about a VM.

use crate::{ProcessKey, TimeNs};

/// Relation of a counter's values over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterMeaning {
    /// A level: the newest value counts (eden size).
    Gauge,
    /// A total since the VM's start: differences count (scavenges).
    Total,
}

/// A named figure of a VM at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// The VM's process.
    pub process: ProcessKey,
    /// Time of reading.
    pub time: TimeNs,
    /// Section of the report (`Memory`, `GCs`, `Events`).
    pub section: String,
    /// Name in the VM's words.
    pub name: String,
    /// Unit (`bytes`, `ns`); empty for plain counts.
    pub unit: String,
    /// Gauge or total.
    pub meaning: CounterMeaning,
    /// Its value.
    pub value: f64,
}

/// A constant property of a VM (collector, flag, code zone size), for the report's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The VM's process.
    pub process: ProcessKey,
    /// Time of reading.
    pub time: TimeNs,
    /// Name, for instance `eden size`.
    pub name: String,
    /// Value, as printed.
    pub value: String,
}
