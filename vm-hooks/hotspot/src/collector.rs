//! A JVM's collector, and its collections from perf data.

mod counted;
mod name;
mod watch;

pub use name::{Kind, collector_of};
pub use watch::Collections;
