//! A small Smalltalk VM in the manner of Cog and Spur. `DESIGN.md` describes it.

pub mod compiler;
pub mod image;
pub mod interpreter;
pub mod memory;
mod publish;
pub mod syntax;

pub use interpreter::{Options, Outcome, StartError, Vm};

/// Declares a list of source files: names and texts.
macro_rules! sources {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../smalltalk/", $name)))),*]
    };
}

/// The class library, in the order of loading.
const LIBRARY: &[(&str, &str)] = sources! {
    "kernel/01-object.st"
    "kernel/02-boolean.st"
    "kernel/03-number.st"
    "kernel/04-exception.st"
    "kernel/05-collection.st"
    "kernel/06-string.st"
    "kernel/07-hashed.st"
    "kernel/08-stream.st"
    "kernel/09-process.st"
    "kernel/10-system.st"
    "kernel/11-test.st"
};
