//! The compiler's output; the loader puts it into memory.

/// Code of a method, do-it or block.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledCode {
    /// The selector; of a do-it `DoIt`; empty for blocks.
    pub selector: String,
    /// Number of arguments.
    pub num_args: usize,
    /// Number of temps: arguments first, then a block's copied values, then other temps.
    pub num_temps: usize,
    /// Greatest depth of the operand stack.
    pub stack_depth: usize,
    /// Number of the primitive, or 0. Methods with primitives begin with `callPrimitive`.
    pub primitive: usize,
    /// Literals used by bytecodes. The loader appends two literals: first the selector, then the
    /// class's Association or the enclosing code.
    pub literals: Vec<Literal>,
    /// SistaV1 bytecodes.
    pub bytecodes: Vec<u8>,
    /// Offsets in `bytecodes` with their source lines (1-based), ascending by offset.
    pub lines: Vec<(usize, u32)>,
    /// Names of the temps: `num_temps` of them.
    pub temp_names: Vec<String>,
}

/// A literal.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// nil, in a literal array.
    Nil,
    /// true, likewise.
    True,
    /// false, likewise.
    False,
    /// An integer of any size.
    Integer(num_bigint::BigInt),
    /// A Float.
    Float(f64),
    /// A Character.
    Character(u32),
    /// A String.
    String(Vec<u8>),
    /// A Symbol, also as a selector.
    Symbol(String),
    /// A literal array.
    Array(Vec<Literal>),
    /// A ByteArray.
    Bytes(Vec<u8>),
    /// The Association of a named global or class variable.
    Binding(String),
    /// The code of a block.
    Block(Box<CompiledCode>),
}
