//! Instructions of bytecodes, in order. Extensions precede their bytecode; operands follow.

use crate::bytecode_table::{Form, row};
use crate::bytecodes::{Bytecode, Bytecodes};

/// A bytecode with operands and extensions. Offsets count from the method's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its first byte: the first extension, if any.
    pub first: usize,
    /// Its bytecode.
    pub at: usize,
    /// First byte behind it.
    pub behind: usize,
    /// The bytecode.
    pub code: u8,
    /// Properties of the bytecode.
    pub bytecode: Bytecode,
    /// Values of the extensions.
    pub extension_a: Option<i64>,
    pub extension_b: Option<i64>,
    /// Bytes that it skips: negative for a jump back, 0 without a jump or block.
    pub span: i64,
}

impl Instruction {
    /// Target of a jump; first byte behind a block.
    pub fn target(&self) -> usize {
        let span = isize::try_from(self.span).unwrap_or(isize::MAX);
        self.behind.saturating_add_signed(span)
    }
}

/// Instructions of a method or block, in order. An incomplete instruction ends the walk.
#[derive(Clone, Debug)]
pub struct Instructions<'a> {
    bytecodes: &'a Bytecodes,
    bytes: &'a [u8],
    at: usize,
    /// Leaves out the bytecodes of blocks inside the method.
    pub skips_blocks: bool,
    /// A return that no jump or block passes is the last instruction.
    pub ends_at_return: bool,
    /// Furthest target of a jump, or end of a block.
    continues_at: usize,
    is_over: bool,
}

impl<'a> Instructions<'a> {
    /// Instructions of `bytes` from offset `at` on.
    pub fn new(bytecodes: &'a Bytecodes, bytes: &'a [u8], at: usize) -> Self {
        Instructions {
            bytecodes,
            bytes,
            at,
            skips_blocks: false,
            ends_at_return: true,
            continues_at: 0,
            is_over: false,
        }
    }

    /// Offset of the next instruction; after the walk, of the first unused byte.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Whether the last instruction was the end.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn instruction(&self) -> Option<Instruction> {
        let mut at = self.at;
        let (mut a, mut b): (Option<i64>, Option<i64>) = (None, None);
        loop {
            let code = *self.bytes.get(at)?;
            let bytecode = self.bytecodes.get(code);
            let behind = at.checked_add(usize::from(bytecode.bytes.max(1)))?;
            let operand = self.bytes.get(at..behind)?.get(1).copied().unwrap_or(0);
            let longer = |before: i64| (before << 8).wrapping_add(i64::from(operand));
            match row(self.bytecodes.encoding, code).2 {
                Form::ExtensionA => a = Some(a.map_or(i64::from(operand), longer)),
                Form::ExtensionB => b = Some(b.map_or(i64::from(operand.cast_signed()), longer)),
                _ => {
                    let skips = bytecode.has_span || bytecode.creates_block;
                    let span = || self.bytecodes.span(self.bytes, at, b.unwrap_or(0));
                    return Some(Instruction {
                        first: self.at,
                        at,
                        behind,
                        code,
                        bytecode,
                        extension_a: a,
                        extension_b: b,
                        span: if skips { span() } else { 0 },
                    });
                }
            }
            at = behind;
        }
    }
}

impl Iterator for Instructions<'_> {
    type Item = Instruction;

    fn next(&mut self) -> Option<Instruction> {
        if self.is_over {
            return None;
        }
        let one = self.instruction()?;
        self.continues_at = self.continues_at.max(match one.span {
            1.. => one.target(),
            _ => 0,
        });
        self.is_over = self.ends_at_return && one.bytecode.is_return && one.at >= self.continues_at;
        self.at = match self.skips_blocks && one.bytecode.creates_block {
            true => one.target().max(one.behind),
            false => one.behind,
        };
        Some(one)
    }
}
