//! From a syntax tree to bytecodes.

pub mod code;

pub use code::{CompiledCode, Literal};
