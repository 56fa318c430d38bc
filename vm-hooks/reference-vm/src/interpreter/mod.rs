//! Runs bytecodes.
//!
//! | file | holds |
//! |---|---|
//! | `raw`, `objects`, `stack` | pointers into bytecodes, frames and objects: the unsafe code |
//! | `vm` | the VM's state, starting and ending |
//! | `dispatch`, `bytecodes` | the interpreter's loop, a handler for each family of bytecodes |
//! | `sends` | method lookup, frames, returns |
//! | `returns` | non-local returns, context tokens |
//! | `safepoint` | work between bytecodes: collections, timers, requests |
//! | `processes` | semaphores, priorities, switches |
//! | `primitives` | primitives by number |

mod allocation;
mod bytecodes;
mod dispatch;
pub mod objects;
pub(crate) mod primitives;
mod processes;
pub(crate) mod raw;
mod returns;
mod safepoint;
mod sends;
mod stack;
mod trace;
mod vm;

pub(crate) use primitives::{Args, Primitive, by_number as primitive_by_number};
pub(crate) use sends::{MethodHeader, frame_flags, primitive_number};
pub(crate) use vm::{Next, now_ns};

pub use dispatch::{bytecode_handlers, code_range};
pub use vm::{Events, Options, Outcome, StartError, Vm};
