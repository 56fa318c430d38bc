//! Adapter of VMs that publish themselves, by the reader of `vmscope-publish`.
//!
//! `family` finds the shared memory, a thread of `stream` reads its events, and `books`
//! turns them into records. `convert` converts single values.

mod adapter;
mod books;
mod convert;
mod family;
mod needs;
mod stream;

pub use family::{Family, open, publishes};
/// Environment variable that announces a profiler to a VM.
pub use vmscope_publish::layout::EXPECT;
pub use vmscope_publish::{LifetimeRate, LifetimeUnit};
