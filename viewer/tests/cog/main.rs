//! Cog VMs while they run (docs/truth.md §3, §4, §7). No package has such a VM. These
//! tests start a process with a VM's memory from a snapshot, and write code of known shares into its code zone.
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
mod core_file;
mod hostile;
mod replica;
mod running;
mod vm_file;
