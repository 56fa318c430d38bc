//! Instructions of SistaV1 and their stack effects.
//!
//! [`decode`] maps bytes to instructions. Extensions (224, 225) belong to the instruction after
//! them.

pub use super::decoder::{DecodeError, decode, length};

/// Prefix: extends an unsigned operand (extension A).
pub const EXTEND_A: u8 = 224;
/// Prefix: extends a signed operand (extension B).
pub const EXTEND_B: u8 = 225;
/// Selectors and argument counts of the bytecodes 96–127.
pub const SPECIAL_SELECTORS: [(&str, usize); 32] = [
    ("+", 1),
    ("-", 1),
    ("<", 1),
    (">", 1),
    ("<=", 1),
    (">=", 1),
    ("=", 1),
    ("~=", 1),
    ("*", 1),
    ("/", 1),
    ("\\\\", 1),
    ("@", 1),
    ("bitShift:", 1),
    ("//", 1),
    ("bitAnd:", 1),
    ("bitOr:", 1),
    ("at:", 1),
    ("at:put:", 2),
    ("size", 0),
    ("next", 0),
    ("nextPut:", 1),
    ("atEnd", 0),
    ("==", 1),
    ("class", 0),
    ("~~", 1),
    ("value", 0),
    ("value:", 1),
    ("do:", 1),
    ("new", 0),
    ("new:", 1),
    ("x", 0),
    ("y", 0),
];

/// Index of `+` in [`SPECIAL_SELECTORS`].
pub const PLUS: usize = 0;
/// Index of `<=`.
pub const LESS_OR_EQUAL: usize = 4;
/// Index of `>=`.
pub const GREATER_OR_EQUAL: usize = 5;
/// Index of `==`.
pub const IDENTICAL: usize = 22;

/// An instruction with decoded extensions.
///
/// Indices start at 0. Jump distances start at the end of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Pushes a receiver's instance variable.
    PushReceiverVariable(usize),
    /// Pushes the value of a literal Association.
    PushLiteralVariable(usize),
    /// Pushes a literal.
    PushLiteral(usize),
    /// Pushes a temp.
    PushTemp(usize),
    /// Pushes the receiver.
    PushReceiver,
    /// Pushes true.
    PushTrue,
    /// Pushes false.
    PushFalse,
    /// Pushes nil.
    PushNil,
    /// Pushes a SmallInteger of 16 bits.
    PushInteger(i32),
    /// Pushes a Character of 15 bits.
    PushCharacter(u32),
    /// Pushes the top once more.
    Dup,
    /// Drops the top.
    Pop,
    /// Does nothing.
    Nop,
    /// Returns the receiver from the method.
    ReturnReceiver,
    /// Returns true from the method.
    ReturnTrue,
    /// Returns false from the method.
    ReturnFalse,
    /// Returns nil from the method.
    ReturnNil,
    /// Returns the top from the method; in a block, from its home.
    ReturnTop,
    /// Returns nil from the block.
    BlockReturnNil,
    /// Returns the top from the block.
    BlockReturnTop,
    /// Sends selector number n of [`SPECIAL_SELECTORS`].
    SendSpecial(usize),
    /// Sends a literal selector.
    Send {
        /// Index of the selector.
        literal: usize,
        /// Number of arguments.
        num_args: usize,
    },
    /// Sends a literal selector to super.
    SendSuper {
        /// Index of the selector.
        literal: usize,
        /// Number of arguments.
        num_args: usize,
    },
    /// Jumps.
    Jump(i32),
    /// Pops a Boolean; jumps forward on true.
    JumpTrue(i32),
    /// Pops a Boolean; jumps forward on false.
    JumpFalse(i32),
    /// Pops into an instance variable.
    PopIntoReceiverVariable(usize),
    /// Pops into an Association's value.
    PopIntoLiteralVariable(usize),
    /// Pops into a temp.
    PopIntoTemp(usize),
    /// Stores the top into an instance variable.
    StoreIntoReceiverVariable(usize),
    /// Stores the top into an Association's value.
    StoreIntoLiteralVariable(usize),
    /// Stores the top into a temp.
    StoreIntoTemp(usize),
    /// Pushes a new Array of the given size, filled with nil.
    PushNewArray(usize),
    /// Pops n elements, then pushes a new Array with these elements.
    PushArrayOf(usize),
    /// Runs a primitive. A successful primitive returns from the method.
    CallPrimitive(usize),
    /// Pops the copied values, and pushes a closure.
    PushClosure {
        /// Index of the block's code.
        literal: usize,
        /// Number of copied values.
        num_copied: usize,
        /// Whether the closure needs no outer context: its code never returns from the home method.
        ignores_outer: bool,
    },
    /// Pushes an element of a temp vector.
    PushInVector(InVector),
    /// Stores the top into a temp vector's element.
    StoreInVector(InVector),
    /// Pops into a temp vector's element.
    PopInVector(InVector),
}

/// An element of a temp vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InVector {
    /// Index of the element.
    pub index: usize,
    /// The temp that holds the vector.
    pub vector: usize,
}

impl Instruction {
    /// Numbers of popped and then pushed values.
    #[must_use]
    pub fn stack_effect(&self) -> (usize, usize) {
        match *self {
            Self::PushReceiverVariable(_)
            | Self::PushLiteralVariable(_)
            | Self::PushLiteral(_)
            | Self::PushTemp(_)
            | Self::PushReceiver
            | Self::PushTrue
            | Self::PushFalse
            | Self::PushNil
            | Self::PushInteger(_)
            | Self::PushCharacter(_)
            | Self::PushNewArray(_)
            | Self::PushInVector(_) => (0, 1),
            Self::Dup => (1, 2),
            Self::Nop
            | Self::Jump(_)
            | Self::CallPrimitive(_)
            | Self::ReturnReceiver
            | Self::ReturnTrue
            | Self::ReturnFalse
            | Self::ReturnNil
            | Self::BlockReturnNil => (0, 0),
            Self::Pop
            | Self::ReturnTop
            | Self::BlockReturnTop
            | Self::JumpTrue(_)
            | Self::JumpFalse(_)
            | Self::PopIntoReceiverVariable(_)
            | Self::PopIntoLiteralVariable(_)
            | Self::PopIntoTemp(_)
            | Self::PopInVector(_) => (1, 0),
            Self::StoreIntoReceiverVariable(_)
            | Self::StoreIntoLiteralVariable(_)
            | Self::StoreIntoTemp(_)
            | Self::StoreInVector(_) => (1, 1),
            Self::SendSpecial(index) => {
                let num_args = SPECIAL_SELECTORS.get(index).map_or(0, |special| special.1);
                (num_args + 1, 1)
            }
            Self::Send { num_args, .. } | Self::SendSuper { num_args, .. } => (num_args + 1, 1),
            Self::PushArrayOf(size) => (size, 1),
            Self::PushClosure { num_copied, .. } => (num_copied, 1),
        }
    }

    /// Distance of a jump, counted from the instruction's end.
    #[must_use]
    pub fn jump_distance(&self) -> Option<i32> {
        match *self {
            Self::Jump(distance) | Self::JumpTrue(distance) | Self::JumpFalse(distance) => {
                Some(distance)
            }
            _ => None,
        }
    }

    /// Whether the instruction leaves the frame: a method return or a block return.
    #[must_use]
    pub fn is_return(&self) -> bool {
        self.is_block_return() || self.is_method_return()
    }

    /// Whether the instruction returns from a block to the block's caller.
    #[must_use]
    pub fn is_block_return(&self) -> bool {
        matches!(self, Self::BlockReturnNil | Self::BlockReturnTop)
    }

    /// Whether the instruction returns from a method; in blocks, from the home method.
    #[must_use]
    pub fn is_method_return(&self) -> bool {
        matches!(
            self,
            Self::ReturnReceiver
                | Self::ReturnTrue
                | Self::ReturnFalse
                | Self::ReturnNil
                | Self::ReturnTop
        )
    }
}
