//! Truth of reports about JavaScript in Node.js (docs/truth.md §3 to §7): V8 read from memory, without flag
//! and dump, on each release that `.ci/nodes` gets and on the `node` of PATH.
//!
//! A machine that lacks a release says `SKIPPED`, and proves nothing of it.

#![allow(clippy::panic, reason = "tests fail by it")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../jit/node.rs"]
#[allow(dead_code, reason = "a recording and its report, of any program")]
mod node;
#[path = "../../../vm-hooks/v8/tests/common/mod.rs"]
mod v8;

mod launch;
