//! From a syntax tree to bytecodes.

mod assembler;
pub mod bytecodes;
pub mod code;
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

/// The names that a method sees beyond its own.
pub trait Scope {
    /// The index (from 0) of the receiver's instance variable `name`.
    fn instance_variable(&self, name: &str) -> Option<usize>;
    /// Whether `name` is a variable of the class or a superclass.
    fn is_class_variable(&self, name: &str) -> bool;
    /// Whether `name` is a global.
    fn is_global(&self, name: &str) -> bool;
}

/// Compiles a method or do-it. `file` is the source file's name in errors.
///
/// # Errors
///
/// Names that mean nothing, and code beyond SistaV1's limits.
pub fn compile(
    method: &Method,
    file: &str,
    scope: &dyn Scope,
) -> Result<CompiledCode, SyntaxError> {
    let (body, analysis) = resolver::resolve(method, file, scope)?;
    generator::generate(method, &body, &analysis, file)
}
