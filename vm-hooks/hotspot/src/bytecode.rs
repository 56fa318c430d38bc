//! Bytecodes in the VM's form, which differs from the class file: instruction set with
//! HotSpot's additions, decoder, listings with names.

mod decode;
mod flow;
mod listing;
mod opcode;
mod pool;
mod reference;
mod text;

pub use decode::{BytecodeError, Instruction, Instructions, Operands, instructions, length_at};
pub use flow::{is_jump, reached};
pub use listing::listing;
pub use opcode::{mnemonic, op, original, vm_name};
pub use pool::{Constant, ConstantPoolView, PoolLayout};
pub use reference::{Callee, Reference, ReferenceKind};
pub(crate) use text::decode_utf8;
