//! Whether reports tell the truth of code that a VM makes while it runs (docs/truth.md §3, §4,
//! §6, §7, §8), by what VMs write for profilers: jitdump and perf maps. docs/truth.md has
//! the figures.
//!
//! A machine that lacks a VM says `SKIPPED`, and proves nothing of it.
//!
//! # False alarms
//!
//! Shares are compared as in the suite `truth`, whose head has the reckoning: a bound of seven
//! standard errors by the means of 64 batches, exceeded by chance in 2e-9 of all cases. At most 100
//! comparisons (4 kinds in each of 3 recordings of jit_churn; 5 functions and 6 lines in each of 3
//! recordings of Node, 6 for causality; 40 functions against perf), so one run of the suite has a
//! false alarm with a probability below 2e-7. What is asked of each sample by itself (whose code
//! was there at its time?) leaves nothing to chance. Nothing is tried again.

#![allow(clippy::panic, reason = "tests fail by it")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../truth/measured.rs"]
#[allow(
    dead_code,
    reason = "the bounds of the suite `truth`, and no more of it"
)]
mod measured;

mod agreement;
mod annotate;
mod bench;
mod callers;
mod churn;
mod cog;
mod constituents;
mod known;
mod left;
mod node;
mod node_callers;
mod others;
mod peer;
mod published;
mod reference_vm;
mod shares;
