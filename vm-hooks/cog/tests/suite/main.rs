//! Tests of the crate. One program compiles their common code once.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail by panicking"
)]

#[path = "../common/mod.rs"]
mod common;

mod adapter;
mod interpreter;
mod layouts;
mod listings;
mod machine_code;
mod robust;
mod saved;
mod snapshots;
mod unwind;
mod vm_data;
