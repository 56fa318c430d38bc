//! Reader of V8 in Node.js, without flags and dumps. It uses `process_vm_readv` and the symbols of the
//! program.
//!
//! | module | holds |
//! |---|---|
//! | [`vm`], [`isolate`] | V8 in a process: version, tables, isolates |
//! | [`versions`], [`debug`] | where V8 keeps its data: by version, by the binary's constants |
//! | [`object`], `strings` | tagged values, objects, strings |
//! | [`registry`], [`code`] | all machine code, with the objects that describe it |
//! | [`function`], [`owners`] | functions and scripts; functions by their bytecodes |
//! | `adapter`, `family` | changes of machine code as records; recognition |
//! | [`launch`] | whether a program's V8 can be read, before its start |
//!
//! The source of layouts and algorithms is V8's source text, compared with running Node.js.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test that fails is to panic"
    )
)]

mod adapter;
pub mod code;
pub mod debug;
mod family;
pub mod function;
pub mod isolate;
pub mod launch;
pub mod object;
pub mod owners;
pub mod registry;
mod strings;
pub mod versions;
pub mod vm;

pub use adapter::V8Adapter;
pub use family::Family;
pub use vm::V8;
