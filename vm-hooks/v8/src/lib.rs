//! Reader of V8 in Node.js, without flags and dumps. It uses `process_vm_readv` and the symbols of the
//! program.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test that fails is to panic"
    )
)]

pub mod launch;
pub mod versions;

mod family;
pub use family::Family;
