//! Objects, their spaces, and the collectors.
//!
//! | file | holds |
//! |---|---|
//! | `oop`, `header`, `classes` | references, header words, known class indices |
//! | `object` | raw access to an object's words: nearly all that is unsafe is here |
//! | `view` | objects as the collectors see them |
//! | `reservation`, `new_space`, `segments` | address ranges, and the spaces in them |
//! | `heap`, `allocation` | the heap as the interpreter sees it |
//! | `scavenger`, `marker`, `compactor`, `collection` | the collectors |
//! | `lifetimes` | births, survivals and deaths of sampled objects |
//! | `verify` | the check of the whole heap |
#![allow(
    unsafe_code,
    reason = "the object memory is addresses; nothing outside of it needs to be unsafe"
)]

mod allocation;
pub mod classes;
mod collection;
mod compactor;
pub mod header;
mod heap;
mod lifetimes;
mod marker;
mod new_space;
pub mod object;
pub mod observer;
pub mod oop;
pub mod parameters;
mod reservation;
mod scavenger;
mod segments;
pub mod statistics;
#[cfg(test)]
mod tests;
mod verify;
mod view;

pub use header::{Format, Header};
pub use heap::{EdenPointers, Heap, MemoryError, Roots};
pub use lifetimes::{Fates, Newborn};
pub use observer::{Begin, End, Kind, Observer, Sizes};
pub use oop::Oop;
pub use parameters::{Parameters, Stress};
pub use statistics::Statistics;
