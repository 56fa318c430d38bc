//! VMs that publish themselves: the reading side of `vmscope-publish`, as an adapter.
//!
//! `family` finds the shared memory, `stream` reads its events on a thread of its own, and `books`
//! turns them into records. `convert` converts single values.

mod adapter;
mod books;
mod convert;
mod family;
mod needs;
mod stream;

pub use family::{Family, open, publishes};
/// Environment variable that says to a VM that a profiler will attach.
pub use vmscope_publish::layout::EXPECT;
pub use vmscope_publish::{LifetimeRate, LifetimeUnit};
