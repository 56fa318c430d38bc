//! Parses source text into a syntax tree.

pub mod ast;
mod chunks;
mod definitions;
mod literals;
mod methods;
mod parser;
mod scanner;
#[cfg(test)]
mod tests;

pub use chunks::{parse_expression, parse_file};

/// A syntax error with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct SyntaxError {
    /// File name given by the caller.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Expected and found text.
    pub message: String,
}

impl SyntaxError {
    pub(crate) fn new(file: &str, position: ast::Position, message: String) -> Self {
        Self {
            file: file.to_owned(),
            line: position.line,
            column: position.column,
            message,
        }
    }
}

/// An item of a chunk file.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A method of a class.
    Method(MethodSource),
    /// A class definition.
    Class(ClassDefinition),
    /// Instance variables of a class itself (`Foo class instanceVariableNames: 'x'`).
    ClassInstanceVariables {
        /// The class's name.
        class: String,
        /// The variables.
        names: Vec<String>,
        /// Line of the definition.
        line: u32,
    },
    /// Statements to evaluate.
    DoIt(DoItSource),
}

/// A method with its source location.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodSource {
    /// Name of the class.
    pub class: String,
    /// Whether the method belongs to the metaclass.
    pub meta: bool,
    /// Category of the method.
    pub category: String,
    /// The file's name.
    pub file: String,
    /// First line of the source.
    pub line: u32,
    /// The source text.
    pub source: String,
    /// The syntax tree.
    pub ast: ast::Method,
}

/// The shape of a class's instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassKind {
    /// Named fields only.
    Normal,
    /// Named fields and indexed pointers.
    Variable,
    /// Bytes.
    VariableByte,
    /// Named fields and indexed weak pointers.
    Weak,
    /// Named fields; the first field is the key.
    Ephemeron,
}

/// A class definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassDefinition {
    /// The superclass's name; `None` for the root.
    pub superclass: Option<String>,
    /// The class's name.
    pub name: String,
    /// Shape of the instances.
    pub kind: ClassKind,
    /// Names of instance variables added by this class.
    pub instance_variables: Vec<String>,
    /// Names of the class variables.
    pub class_variables: Vec<String>,
    /// The file's name.
    pub file: String,
    /// Line of the definition.
    pub line: u32,
}

/// Statements to evaluate, with their source location.
#[derive(Clone, Debug, PartialEq)]
pub struct DoItSource {
    /// The file's name.
    pub file: String,
    /// First line of the source.
    pub line: u32,
    /// The source text.
    pub source: String,
    /// The syntax tree.
    pub ast: ast::Method,
}
