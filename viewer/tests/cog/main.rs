//! Cog VMs while they run (docs/truth.md §3, §4, §7). No package has such a VM, so these tests make a
//! process with the memory of one: a snapshot, and code of known shares in its code zone.
//!
//! # False alarms
//!
//! Shares are compared as in the suite `truth`: a bound of seven standard errors by the means of 64
//! batches, exceeded by chance in 2e-9 of all cases. With 10 comparisons, one run of the suite has a
//! false alarm with a probability below 2e-8. Names of single samples leave nothing to chance.

#![allow(clippy::panic, reason = "tests fail by it")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../truth/measured.rs"]
#[allow(
    dead_code,
    reason = "the bounds of the suite `truth`, and no more of it"
)]
mod measured;

mod asked;
mod changing;
mod code;
mod hostile;
mod replica;
mod running;
mod vm_file;
