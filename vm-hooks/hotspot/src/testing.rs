//! Snapshots of JVMs, so that what reads them is tested from files, and fuzzed.

mod snapshot;
mod walk;

pub use snapshot::{KeepingMemory, PAGE_BYTES, Snapshot, SnapshotError};
pub use walk::{Walk, WalkedNmethod, walk};
