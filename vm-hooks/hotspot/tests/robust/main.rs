//! Unusual JVMs: unknown versions, missing fields, unreadable or damaged memory, other Java
//! implementations, flags that change the memory layout.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails is to panic"
)]

#[path = "../common/mod.rs"]
mod common;

mod damaged;
mod fields;
mod flags;
mod readings;
mod refused;
mod starting;
mod versions;
