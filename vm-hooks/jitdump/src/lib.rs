//! VMs that describe their code in files: jitdump and perf maps.
//!
//! What V8, .NET, Erlang, PHP, CPython, Julia, wasmtime and others can write for
//! `perf` is read here while it is being written: [`dump`] and [`perf_map`] hold the
//! formats, [`follow`] reads such files as they grow, [`find`] knows where they are, and
//! [`vm`] what is particular to each of the VMs. The [`Family`] makes adapters of it.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test that fails is to panic"
    )
)]

mod adapter;
mod attribution;
pub mod cleanup;
mod clock;
mod code;
pub mod dump;
mod family;
pub mod find;
mod flaws;
pub mod follow;
pub mod launch;
mod launched;
pub mod perf_map;
mod unwind;
pub mod vm;

#[doc(hidden)]
pub use adapter::testing;
pub use family::Family;
pub use flaws::{FlawCount, Flaws};
