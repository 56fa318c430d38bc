//! Reader of V8 in Node.js, without flags and dumps. It uses `process_vm_readv` and the symbols of the
//! program.
//!
//! | module | holds |
//! |---|---|
//! | [`vm`], [`isolate`] | V8 in a process: version, tables, isolates |
//! | [`versions`], [`debug`] | where V8 keeps its data: by version, by the binary's constants |
//! | [`product`], [`regions`] | programs with V8; regions of their native functions |
//! | [`object`], `strings` | tagged values, objects, strings |
//! | [`registry`], [`code`] | all machine code, with the objects that describe it |
//! | [`function`], [`owners`] | functions and scripts; functions by their bytecodes |
//! | [`positions`], [`inlining`], [`lines`] | from machine code to functions and lines |
//! | [`sparkplug`], [`bytecodes`] | Sparkplug's bytecodes; instructions and listings |
//! | `adapter`, `family` | changes of machine code as records; recognition |
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
pub mod bytecodes;
pub mod code;
pub mod debug;
mod family;
pub mod function;
pub mod inlining;
pub mod isolate;
pub mod lines;
pub mod object;
pub mod owners;
pub mod positions;
pub mod product;
pub mod regions;
pub mod registry;
pub mod sparkplug;
mod strings;
pub mod versions;
mod vlq;
pub mod vm;

pub use adapter::V8Adapter;
pub use family::Family;
pub use vm::V8;
