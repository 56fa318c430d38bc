//! What a VM links to describe itself to vmscope, and the reading side of the same memory.
//!
//! - [`publisher`] and [`callbacks`] are the contract with a VM: the calls that it makes, and the
//!   calls back. `include/vmscope_publish.h` is the same for C.
//! - [`event`] is what can be said.
//! - [`sampler`] samples the VM from inside.
//! - [`ring`] and [`layout`] are the shared memory.
//! - [`reader`] is a profiler's side, and [`zone`] keeps the books of what exists.
//!
//! Nothing here allocates, locks or waits on the way from an event to the memory.

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
