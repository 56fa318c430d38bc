//! Tests of the crate, in one program: each program of its own would compile what they share.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail by panicking"
)]

#[path = "../common/mod.rs"]
mod common;

mod bytecodes;
mod collections;
mod launch;
mod maps;
mod robust;
mod snapshots;
mod stripped;
