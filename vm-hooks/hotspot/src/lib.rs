//! HotSpot JVMs (JDK 11 to 25) read from outside, while they run, without an agent or
//! a flag: `process_vm_readv` and what the VM says about its own structures.
//!
//! [`layout`] has where things lie, [`code`] the code cache with the debug records of
//! compiled methods, [`method`] methods and their names, [`classes`] all methods by their
//! bytecodes, [`stubs`] the routines that the VM made for itself. [`Family`] makes the
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
pub mod classes;
pub mod code;
mod family;
pub mod jvm;
pub mod layout;
pub mod method;
pub mod pages;
pub mod stubs;

pub use adapter::HotSpotAdapter;
pub use family::Family;
