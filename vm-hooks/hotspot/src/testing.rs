//! Snapshots of JVMs, for tests from files and for fuzzing.

mod snapshot;
mod walk;

pub use snapshot::{KeepingMemory, PAGE_BYTES, Snapshot, SnapshotError};
pub use walk::{Walk, WalkedNmethod, walk};
