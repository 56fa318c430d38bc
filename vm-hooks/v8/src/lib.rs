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

pub mod bytecodes;
pub mod inlining;
pub mod lines;
pub mod positions;
pub mod sparkplug;
mod vlq;
