//! HotSpot JVMs read from outside, while they run, without an agent or a flag.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test that fails is to panic"
    )
)]

pub mod code;
pub mod collector;
pub mod compiling;
pub mod flags;
pub mod java_threads;
pub mod layout;
pub mod method;
pub mod pages;
pub mod perf_data;
pub mod regions;
pub mod threads;
pub mod vm_clock;
pub mod vm_data;
