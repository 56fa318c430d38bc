//! What a JVM tells beside its code, against what it logs itself, on every JVM that there
//! is. Needs `javac`; says SKIPPED where there is none.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that fails is to panic, and one that can't run says so"
)]

mod collections;
#[path = "../common/mod.rs"]
mod common;
mod compilations;
