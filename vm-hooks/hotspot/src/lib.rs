//! Reader of running HotSpot JVMs (JDK 11 to 27), without agent or flag. It uses
//! `process_vm_readv` and the VM's description of its own structures.
//!
//! [`layout`] has field offsets, [`code`] the code cache with the debug records of nmethods,
//! [`method`] methods and their names, [`bytecode`] listings, [`stubs`] the VM's own generated
//! routines. [`Family`] makes the adapter.
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
pub mod bytecode;
pub mod code;
pub mod collector;
pub mod compiling;
mod continuations;
pub mod evidence;
mod family;
pub mod flags;
pub mod java_threads;
pub mod jvm;
pub mod layout;
pub mod method;
mod objects;
mod other_jvm;
pub mod perf_data;
pub mod regions;
mod sample_needs;
#[cfg(test)]
#[path = "../tests/common/snapshot_files.rs"]
mod snapshot_files;
pub mod stubs;
pub mod testing;
pub mod thread_names;
pub mod threads;
mod unwind;
pub mod vm_clock;
pub mod vm_data;

pub use adapter::HotSpotAdapter;
pub use family::Family;
pub use vmscope_process::pages;
