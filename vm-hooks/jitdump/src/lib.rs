//! VMs that describe their code in files: jitdump and perf maps.
//!
//! V8, .NET, Erlang, PHP, CPython, Julia, wasmtime and others can write such files for `perf`. This
//! crate reads the files while they grow: [`dump`] and [`perf_map`] hold the formats, [`follow`]
//! reads growing files, [`find`] finds them, and [`vm`] holds the differences between VMs.
//! [`Family`] makes the adapters.

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
mod diagnostic_port;
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
