//! Tests of the crate, in one program: each program of its own would compile what they share.

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
