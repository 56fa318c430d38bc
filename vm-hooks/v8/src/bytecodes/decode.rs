//! Decoder for bytecodes.

use vmscope_records::BytecodePc;

use super::instruction_set::{InstructionSet, OperandKind};

/// Suffixes of names, by scale.
const SUFFIXES: [&str; 3] = ["", ".Wide", ".ExtraWide"];

/// One instruction, with its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction<'a> {
    /// Offset of its first byte, the prefix if any.
    pub pc: BytecodePc,
    /// Its opcode, without prefix.
    pub opcode: u8,
    /// 0, 1 or 2: operands of variable size have 1, 2 or 4 bytes.
    pub scale: u8,
    /// Length in bytes, prefix and operands included: 1 or more.
    pub length: u32,
    /// Bytes of the operands.
    bytes: &'a [u8],
}

/// A decoded operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its meaning.
    pub kind: OperandKind,
    /// Its value; of a register, V8's number: the distance from the frame pointer in words.
    pub value: i64,
}

/// Bytecodes that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BytecodeError {
    /// Unknown opcode, or a prefix behind a prefix.
    #[error("unknown instruction {opcode} at bytecode {pc}")]
    Unknown {
        /// Offset of the instruction.
        pc: u32,
        /// Its opcode.
        opcode: u8,
    },
    /// The instruction extends beyond the bytecodes.
    #[error("the instruction at bytecode {pc} does not end within {size} bytes")]
    Short {
        /// Offset of the instruction.
        pc: u32,
        /// The function's bytecodes.
        size: usize,
    },
}

/// Instructions of a function. An error is the last item.
#[derive(Clone, Copy, Debug)]
pub struct Instructions<'a> {
    set: &'a InstructionSet,
    code: &'a [u8],
    at: usize,
}

/// Scale of a prefix. Opcodes: `Wide`, `ExtraWide`, `DebugBreakWide`, `DebugBreakExtraWide`.
fn scale_of(opcode: u8) -> usize {
    match opcode {
        0 | 2 => 1,
        1 | 3 => 2,
        _ => 0,
    }
}

impl InstructionSet {
    /// Instructions of `code`, all bytecodes of a function.
    #[must_use]
    pub fn instructions<'a>(&'a self, code: &'a [u8]) -> Instructions<'a> {
        Instructions {
            set: self,
            code,
            at: 0,
        }
    }

    fn decode<'a>(&self, code: &'a [u8], at: usize) -> Result<Instruction<'a>, BytecodeError> {
        let pc = u32::try_from(at).unwrap_or(u32::MAX);
        let short = BytecodeError::Short {
            pc,
            size: code.len(),
        };
        let first = *code.get(at).ok_or(short)?;
        let scale = scale_of(first);
        let begin = at.saturating_add(usize::from(scale > 0));
        let opcode = *code.get(begin).ok_or(short)?;
        let size = self.size(scale, opcode);
        let size = size.filter(|_| scale == 0 || scale_of(opcode) == 0);
        let end = begin.saturating_add(size.ok_or(BytecodeError::Unknown { pc, opcode })?);
        Ok(Instruction {
            pc: BytecodePc(pc),
            opcode,
            scale: scale as u8,
            length: u32::try_from(end - at).unwrap_or(u32::MAX),
            bytes: code.get(begin + 1..end).ok_or(short)?,
        })
    }

    /// Adds an instruction's name with its scale, as V8 writes it (`LdaSmi.Wide`); its number without a
    /// name.
    pub(crate) fn put_full_name(&self, instruction: &Instruction<'_>, text: &mut String) {
        match self.name(instruction.opcode) {
            "" => text.push_str(&format!("bytecode {}", instruction.opcode)),
            name => text.push_str(name),
        }
        let suffix = SUFFIXES.get(usize::from(instruction.scale));
        text.push_str(suffix.copied().unwrap_or_default());
    }

    /// An instruction's operands; none if they are unknown.
    pub fn operands_of<'a>(
        &'a self,
        instruction: &Instruction<'a>,
    ) -> impl Iterator<Item = Operand> + 'a {
        let mut rest = instruction.bytes;
        let scale = usize::from(instruction.scale);
        let operands = self.operands(instruction.opcode).iter();
        operands.map_while(move |(kind, widths)| {
            let width = usize::from(*widths.get(scale)?);
            let (bytes, behind) = rest.split_at_checked(width)?;
            rest = behind;
            let value = bytes.iter().rev().fold(0, |v, b| v << 8 | i64::from(*b));
            let unused = 64_u32.saturating_sub(8 * u32::try_from(width).ok()?);
            let value = match kind.is_signed() {
                true => value.checked_shl(unused)?.checked_shr(unused)?,
                false => value,
            };
            Some(Operand { kind: *kind, value })
        })
    }
}

impl<'a> Iterator for Instructions<'a> {
    type Item = Result<Instruction<'a>, BytecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.code.len() {
            return None;
        }
        let decoded = self.set.decode(self.code, self.at);
        self.at = match &decoded {
            Ok(instruction) => self.at.saturating_add(instruction.length as usize),
            Err(_) => self.code.len(),
        };
        Some(decoded)
    }
}
