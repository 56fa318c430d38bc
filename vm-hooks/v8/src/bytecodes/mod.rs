//! Bytecodes of functions: V8's own tables of instructions, a decoder, and listings.

mod decode;
mod function;
mod instruction_set;
mod listing;
mod read;
pub(crate) mod search;

pub use decode::{BytecodeError, Instruction, Instructions, Operand};
pub use function::{ConstantKinds, Constants};
pub use instruction_set::{InstructionSet, OperandKind, TableError, Tables};
pub use listing::{Constant, Listing};
pub(crate) use read::{HANDLERS, OPCODES, RUNTIME, TABLES, handlers};

#[cfg(test)]
mod tests;
