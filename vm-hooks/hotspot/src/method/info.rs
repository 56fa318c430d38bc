//! What is known of a method.

use vmscope_records::{Avma, LineEntry};

/// What is known of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodInfo {
    /// Its `Method*`.
    pub method: Avma,
    /// Its constant pool.
    pub constants: Avma,
    /// The class that holds it: its `Klass*`.
    pub holder: Avma,
    /// Its class, as the VM writes it (`java/lang/String`).
    pub class: String,
    /// Its name.
    pub name: String,
    /// Its descriptor.
    pub signature: String,
    /// The class's source file; empty where that is not known.
    pub file: String,
    /// Where its bytecodes are.
    pub bytecodes_at: Avma,
    /// Its bytecodes as the VM has rewritten them.
    pub bytecodes: Box<[u8]>,
    /// Its lines, ascending by bytecode.
    pub lines: Vec<LineEntry>,
}
