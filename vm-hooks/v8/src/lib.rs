//! Reader of V8 in Node.js, without flags and dumps. It uses `process_vm_readv` and the symbols of the
//! program.
//!
//! | module | holds |
//! |---|---|
//! | [`vm`], [`isolate`] | V8 in a process: version, tables, isolates |
//! | [`variables`] | V8's variables, by symbols or by what they hold |
//! | [`contents`], `builtins` | data of a program without symbols; its builtins |
//! | [`versions`], [`debug`] | where V8 keeps its data: by version, by the binary's constants |
//! | [`fit`] | the layout of an unknown version, by checks of V8's objects |
//! | [`product`], [`regions`] | programs with V8; regions of their native functions |
//! | [`object`], `strings` | tagged values, objects, strings |
//! | [`registry`], `tree`, [`code`] | all machine code, with the objects that describe it |
//! | [`wasm`] | WebAssembly's machine code, names and instructions |
//! | [`function`], [`owners`], `sighted` | functions and scripts; functions by their bytecodes, of scripts and of frames |
//! | `pace` | pauses between readings |
//! | [`testing`] | reading all code of a snapshot |
//! | [`positions`], [`inlining`], [`lines`] | from machine code to functions and lines |
//! | [`sparkplug`], [`bytecodes`] | Sparkplug's bytecodes; instructions and listings |
//! | `interpreter`, `interpreted` | handlers of bytecodes; interpreted functions |
//! | `state`, [`collector`] | activity and collectors of all isolates |
//! | `collections`, `spaces` | collections as records; memory of the heap's spaces |
//! | `unwind` | callers |
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
mod builtins;
pub mod bytecodes;
pub mod code;
mod collections;
pub mod collector;
pub mod contents;
pub mod debug;
pub mod deopt;
mod family;
pub mod fit;
pub mod function;
pub mod inlining;
mod interpreted;
mod interpreter;
pub mod isolate;
pub mod launch;
pub mod lines;
pub mod object;
pub mod owners;
mod pace;
mod pattern;
pub mod positions;
pub mod product;
pub mod regions;
pub mod registry;
mod sighted;
mod spaces;
pub mod sparkplug;
mod state;
mod strings;
pub mod testing;
mod tree;
mod unwind;
pub mod variables;
pub mod versions;
mod vlq;
pub mod vm;
pub mod wasm;

pub use adapter::V8Adapter;
pub use family::Family;
pub use vm::V8;
