//! Reader of Cog VMs (Squeak, Pharo, Cuis on 32-bit or 64-bit Spur), unmodified and without help from
//! the image. It uses `process_vm_readv` and the VM's symbols.
//!
//! | module | holds |
//! |---|---|
//! | `vm`, `variables`, `accessors` | the VM in a process: addresses of its variables, by symbols or exported functions |
//! | [`zone`], [`cog_method`], `trampolines` | the code zone and its entries |
//! | [`heap`], [`names`] | objects; names of classes, methods and blocks |
//! | `bytecode_table`, `bytecodes`, `instructions` | both sets of bytecodes; a walk over a method's bytecodes |
//! | [`map`] | pc maps |
//! | [`listing`], `literals` | bytecodes and literals as text |
//! | `sampled` | listings of methods with samples |
//! | [`pic`] | cases of closed inline caches, from their code |
//! | [`describe`] | all of it, for one entry |
//! | `adapter` | changes of the zone as records |
//! | `vm_data` | statistics as collections, counters and parameters |
//! | `regions` | the VM's C functions by part of the VM |
//! | `unwind` | callers, over pages of the stack |
//! | `interpreter`, `interpreted` | parts of `interpret`; interpreted methods |
//! | [`saved`] | samples and code zone that an image saved |
//!
//! The sources of layouts and algorithms are the OpenSmalltalk VM (VMMaker.oscog-eem.2530, June 2019)
//! and Pharo's VM (October 2024). Snapshots of a VM test the 64-bit layout of the first source. Other
//! layouts are tested with synthetic memory.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test that fails is to panic"
    )
)]

mod accessors;
mod adapter;
mod bytecode_table;
mod bytecodes;
pub mod cog_method;
mod cost;
pub mod describe;
mod family;
pub mod heap;
mod instructions;
mod interpreted;
mod interpreter;
pub mod listing;
mod literals;
pub mod map;
pub mod names;
pub mod pic;
mod regions;
mod sampled;
pub mod saved;
pub mod testing;
mod trampolines;
mod unwind;
mod variables;
mod vm;
mod vm_data;
pub mod zone;

pub use adapter::CogAdapter;
pub use bytecodes::{Bytecode, Bytecodes, Encoding, Sets};
pub use cost::{Cost, CountedMemory};
pub use family::Family;
pub use trampolines::Trampoline;
pub use unwind::CogUnwinder;
pub use variables::Variables;
pub use vm::{Stamp, Vm, Zone};
