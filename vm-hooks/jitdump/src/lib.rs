//! VMs that describe their code in files: jitdump and perf maps.
//!
//! What V8, .NET, Erlang, PHP, CPython, Julia, wasmtime and others can write for
//! `perf` is read here while it is being written: [`dump`] and [`perf_map`] hold the
//! formats, [`find`] and [`follow`] find such files and read them as they grow, and
//! [`vm`] holds what is particular to each of the VMs.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test that fails is to panic"
    )
)]

pub mod dump;
pub mod find;
mod flaws;
pub mod follow;
pub mod perf_map;
pub mod vm;

pub use flaws::{Flaws, Seen};
