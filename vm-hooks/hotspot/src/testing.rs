//! Snapshots of JVMs, for tests from files and for fuzzing.

mod walk;

pub use walk::{Walk, WalkedNmethod, walk};
