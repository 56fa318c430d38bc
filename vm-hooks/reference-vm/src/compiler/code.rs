//! What the compiler makes: the loader puts it into memory.

/// The code of a method, a do-it or a block.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledCode {
    /// The selector; of a do-it `DoIt`; empty for blocks.
    pub selector: String,
    /// Number of arguments.
    pub num_args: usize,
    /// Number of temps, with the arguments, and a block's copied values after them.
    pub num_temps: usize,
    /// Greatest depth of the operand stack.
    pub stack_depth: usize,
    /// Number of the primitive, or 0. A method with a primitive begins with `callPrimitive`.
    pub primitive: usize,
    /// Whether the frame needs a context token: the code creates closures that return from their home.
    pub needs_token: bool,
    /// Literals that bytecodes refer to. The loader appends the selector, and the class's Association
    /// or the enclosing code.
    pub literals: Vec<Literal>,
    /// SistaV1 bytecodes.
    pub bytecodes: Vec<u8>,
    /// Offsets in `bytecodes` and the source lines (1-based) that begin there, ascending by offset.
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
    /// The Association of a global or class variable with this name.
    Binding(String),
    /// The code of a block.
    Block(Box<CompiledCode>),
}
