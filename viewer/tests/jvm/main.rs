//! Truth of reports about Java code (docs/truth.md §3 to §7), of JVMs with their usual and with more
//! debug records. docs/truth.md has the figures.
//!
//! A machine that lacks a JVM says `SKIPPED`, and proves nothing of it.
//!
//! # False alarms
//!
//! Shares are compared as in the suite `truth`, whose head has the reckoning: a bound of seven
//! standard errors by the means of 64 batches, exceeded by chance in 2e-9 of all cases. There
//! are at most 150 such comparisons here (3 ranges in each of 43 recordings, 4 kinds in one, 3 for
//! causality), so one run of the suite has a false alarm with a probability below 4e-7. What is
//! asked of each sample by itself (whose code ran at its time?) leaves nothing to chance. Nothing
//! is tried again.

#![allow(clippy::panic, reason = "tests fail by it")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../vm-hooks/hotspot/tests/common/mod.rs"]
mod hotspot;
#[path = "../truth/measured.rs"]
#[allow(
    dead_code,
    reason = "the bounds of the suite `truth`, and no more of it"
)]
mod measured;
#[path = "../jit/node.rs"]
#[allow(dead_code, reason = "a recording and its report, of any program")]
mod node;

mod callers;
mod causality;
mod churn;
mod collections;
mod constituents;
mod dispatch;
mod dump;
mod interpreted;
mod known;
mod odd;
mod shares;
mod views;
mod virtual_threads;
