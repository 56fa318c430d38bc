//! Data of a method.

use vmscope_records::{Avma, LineEntry};

/// Data of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodInfo {
    /// Its `Method*`.
    pub method: Avma,
    /// Its constant pool.
    pub constants: Avma,
    /// `Klass*` of its class.
    pub holder: Avma,
    /// Class name in the VM's form (`java/lang/String`).
    pub class: String,
    /// Its name.
    pub name: String,
    /// Its descriptor.
    pub signature: String,
    /// Source file of the class; empty if unknown.
    pub file: String,
    /// Address of its bytecodes.
    pub bytecodes_at: Avma,
    /// Bytecodes as rewritten by the VM.
    pub bytecodes: Box<[u8]>,
    /// Line numbers, ascending by bytecode.
    pub lines: Vec<LineEntry>,
}
