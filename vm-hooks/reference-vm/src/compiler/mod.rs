//! Compiles a syntax tree to bytecodes.

mod assembler;
pub mod bytecodes;
pub mod code;
mod control;
mod decoder;
pub mod disassembler;
mod encoder;
mod frame;
mod generator;
mod inliner;
mod literals;
mod resolver;
#[cfg(test)]
mod tests;
mod tree;
pub mod verifier;

use crate::syntax::SyntaxError;
use crate::syntax::ast::Method;
pub use code::{CompiledCode, Literal};

/// Names declared outside a method.
pub trait Scope {
    /// Index (0-based) of the receiver's instance variable `name`.
    fn instance_variable(&self, name: &str) -> Option<usize>;
    /// Whether the class or a superclass declares the class variable `name`.
    fn is_class_variable(&self, name: &str) -> bool;
    /// Whether `name` is a global.
    fn is_global(&self, name: &str) -> bool;
}

/// Compiles a method or do-it. `file` is the source file's name in errors.
///
/// # Errors
///
/// Unknown names, and code beyond SistaV1's limits.
pub fn compile(
    method: &Method,
    file: &str,
    scope: &dyn Scope,
) -> Result<CompiledCode, SyntaxError> {
    let (body, analysis) = resolver::resolve(method, file, scope)?;
    generator::generate(method, &body, &analysis, file)
}
