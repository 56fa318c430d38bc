//! Which collector a JVM has, and its collections as its perf data tells them.

mod counted;
mod name;
mod watch;

pub use name::{Kind, collector_of};
pub use watch::Collections;
