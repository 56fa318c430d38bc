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
pub mod layout;
pub mod method;
pub mod pages;
