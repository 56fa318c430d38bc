//! Library that a VM links to describe itself to vmscope, and the reader of the shared memory.
//!
//! - [`publisher`] and [`callbacks`] are the contract with a VM: its calls, and the calls back.
//!   `include/vmscope_publish.h` is the contract for C.
//! - [`event`] defines events.
//! - [`sampler`] samples the VM from inside.
//! - [`ring`] and [`layout`] define the shared memory.
//! - [`reader`] is a profiler's side; [`zone`] keeps a table of existing code.
//!
//! Publishing an event never allocates, locks or waits.

#[cfg(not(loom))]
mod c;
#[cfg(not(loom))]
pub mod callbacks;
#[cfg(not(loom))]
pub mod event;
#[cfg(not(loom))]
mod fork;
#[cfg(not(loom))]
pub mod layout;
pub mod lease;
#[cfg(not(loom))]
pub mod memory;
#[cfg(not(loom))]
pub mod publisher;
#[cfg(not(loom))]
pub mod reader;
pub mod ring;
#[cfg(not(loom))]
pub mod sample;
#[cfg(not(loom))]
pub mod sampler;
pub mod sync;
#[cfg(not(loom))]
pub mod zone;

#[cfg(not(loom))]
pub use callbacks::{Callbacks, LifetimeRate, LifetimeUnit};
#[cfg(not(loom))]
pub use publisher::{Describer, Options, PublishError, Publisher};
