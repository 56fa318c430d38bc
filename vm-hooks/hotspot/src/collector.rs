//! A JVM's collector, and its collections, cycles and pauses: from perf data, else from
//! memory.

mod counted;
mod manager;
mod name;
mod watch;

pub use name::{Kind, collector_of};
pub use watch::{Collections, Figures, InMemory};
