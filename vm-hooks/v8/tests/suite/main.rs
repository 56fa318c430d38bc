//! Tests of the crate. One program compiles their common code once.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail by panicking"
)]

#[path = "../common/mod.rs"]
mod common;

mod bytecodes;
mod collections;
mod deopt;
mod fit;
mod launch;
mod maps;
mod robust;
mod snapshots;
mod stripped;
