//! Truth of reports about JavaScript in Node.js (docs/truth.md §3 to §7): V8 read from memory, without flag
//! and dump, on each release that `.ci/nodes` gets and on the `node` of PATH. Where a release is recorded in many
//! ways, the releases take turns ([`common::in_turn`]).
//!
//! A machine that lacks a release says `SKIPPED`, and proves nothing of it.
//!
//! # False alarms
//!
//! Shares are compared as in the suite `truth`, whose head has the reckoning: a bound of seven
//! standard errors by the means of 64 batches, exceeded by chance in 2e-9 of all cases. At most 210
//! comparisons (38 for shares on each of 5 Node.js, 5 for churn, 6 for causality), so one run of the suite
//! has a false alarm with a probability below 5e-7. What is asked of each sample by itself (which function
//! does V8 tell of its address?) leaves nothing to chance. Nothing is tried again.

#![allow(clippy::panic, reason = "tests fail by it")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../jit/node.rs"]
#[allow(dead_code, reason = "a recording and its report, of any program")]
mod node;
#[path = "../../../vm-hooks/v8/tests/common/mod.rs"]
mod v8;

#[path = "../jit/agreement.rs"]
mod agreement;
#[path = "../truth/measured.rs"]
#[allow(
    dead_code,
    reason = "the bounds of the suite `truth`, and no more of it"
)]
mod measured;
#[path = "../jit/node_callers.rs"]
mod node_callers;

mod callers;
mod churn;
mod collections;
mod launch;
mod names;
mod running;
mod shares;
mod told;
mod wasm;
mod workers;
mod zone;
