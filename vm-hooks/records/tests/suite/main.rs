//! Tests of the crate. One program compiles their common code once.

#![allow(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests may fail by panicking"
)]

#[path = "../common/mod.rs"]
mod common;

mod damage;
mod files;
mod golden;
mod interpreter;
mod keep_last;
mod newest_file;
mod python;
mod roundtrip;
