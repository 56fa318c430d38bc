//! HotSpot JVMs (JDK 11 to 25) read from outside, while they run, without an agent or
//! a flag: `process_vm_readv` and what the VM says about its own structures.
//!
//! [`layout`] has where things lie, [`code`] the code cache with the debug records of
//! compiled methods, [`method`] methods and their names, [`bytecode`] their listings,
//! [`stubs`] the routines that the VM made for itself. [`Family`] makes the
//! adapter.
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
pub mod evidence;
mod family;
pub mod flags;
pub mod java_threads;
pub mod jvm;
pub mod layout;
pub mod method;
mod other_jvm;
pub mod pages;
pub mod perf_data;
pub mod regions;
mod sample_needs;
pub mod stubs;
pub mod testing;
pub mod threads;
pub mod vm_clock;
pub mod vm_data;

pub use adapter::HotSpotAdapter;
pub use family::Family;
