//! Decodes SistaV1: the table from bytes to instructions.

use super::bytecodes::{EXTEND_A, EXTEND_B, InVector, Instruction};

/// Maximum number of extensions per instruction.
const MAX_EXTENSIONS: usize = 3;

/// Reasons why decoding fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The code ends within the instruction, or before its first byte.
    #[error("the code ends within an instruction")]
    Truncated,
    /// A bytecode or flag unused by this VM.
    #[error("bytecode {0} (or a flag of it) is not in use")]
    Unused(u8),
    /// Too many extensions, or extensions of an instruction without extensions.
    #[error("extensions in front of bytecode {0}, which has none like this")]
    Extension(u8),
}

/// Length in bytes of the instruction with this `opcode`, without extensions.
#[must_use]
pub const fn length(opcode: u8) -> usize {
    match opcode {
        0..=223 => 1,
        224..=247 => 2,
        248..=255 => 3,
    }
}

/// Decodes the instruction at `offset`. Returns the instruction and its length, extensions
/// included.
///
/// # Errors
///
/// Fails for bytes that encode no instruction of this VM.
pub fn decode(bytecodes: &[u8], offset: usize) -> Result<(Instruction, usize), DecodeError> {
    let mut at = offset;
    let mut a: Option<u32> = None;
    let mut b: Option<i32> = None;
    let opcode = loop {
        let opcode = byte(bytecodes, at)?;
        if opcode != EXTEND_A && opcode != EXTEND_B {
            break opcode;
        }
        let extension = byte(bytecodes, at.saturating_add(1))?;
        if opcode == EXTEND_A {
            a = Some(a.unwrap_or(0) << 8 | u32::from(extension));
        } else {
            b = Some(match b {
                None => i32::from(extension.cast_signed()),
                Some(b) => b << 8 | i32::from(extension),
            });
        }
        at += 2;
        if at - offset > 2 * MAX_EXTENSIONS {
            return Err(DecodeError::Extension(opcode));
        }
    };
    let end = at + length(opcode);
    let operands = bytecodes.get(at + 1..end).ok_or(DecodeError::Truncated)?;
    let mut fields = Fields {
        first: operands.first().copied().unwrap_or(0),
        second: operands.get(1).copied().unwrap_or(0),
        a,
        b,
    };
    let instruction = fields
        .instruction(opcode)
        .ok_or(DecodeError::Unused(opcode))?;
    if fields.a.is_some() || fields.b.is_some() {
        return Err(DecodeError::Extension(opcode));
    }
    Ok((instruction, end - offset))
}

fn byte(bytecodes: &[u8], at: usize) -> Result<u8, DecodeError> {
    bytecodes.get(at).copied().ok_or(DecodeError::Truncated)
}

/// Bytes after the opcode, and the unused extensions.
struct Fields {
    first: u8,
    second: u8,
    a: Option<u32>,
    b: Option<i32>,
}

impl Fields {
    fn instruction(&mut self, opcode: u8) -> Option<Instruction> {
        use Instruction as I;
        let low = |first: u8| usize::from(opcode - first);
        let short_jump = |first: u8| i32::from(opcode - first) + 1;
        Some(match opcode {
            0..=15 => I::PushReceiverVariable(low(0)),
            16..=31 => I::PushLiteralVariable(low(16)),
            32..=63 => I::PushLiteral(low(32)),
            64..=75 => I::PushTemp(low(64)),
            76 => I::PushReceiver,
            77 => I::PushTrue,
            78 => I::PushFalse,
            79 => I::PushNil,
            80 => I::PushInteger(0),
            81 => I::PushInteger(1),
            83 => I::Dup,
            88 => I::ReturnReceiver,
            89 => I::ReturnTrue,
            90 => I::ReturnFalse,
            91 => I::ReturnNil,
            92 => I::ReturnTop,
            93 => I::BlockReturnNil,
            94 => I::BlockReturnTop,
            95 => I::Nop,
            96..=127 => I::SendSpecial(low(96)),
            128..=175 => I::Send {
                literal: low(128) % 16,
                num_args: low(128) / 16,
            },
            176..=183 => I::Jump(short_jump(176)),
            184..=191 => I::JumpTrue(short_jump(184)),
            192..=199 => I::JumpFalse(short_jump(192)),
            200..=207 => I::PopIntoReceiverVariable(low(200)),
            208..=215 => I::PopIntoTemp(low(208)),
            216 => I::Pop,
            226 => I::PushReceiverVariable(self.index()),
            227 => I::PushLiteralVariable(self.index()),
            228 => I::PushLiteral(self.index()),
            229 => I::PushTemp(self.first.into()),
            231 => {
                let size = usize::from(self.first & 0x7F);
                if self.first & 0x80 == 0 {
                    I::PushNewArray(size)
                } else {
                    I::PushArrayOf(size)
                }
            }
            232 => I::PushInteger(self.signed()),
            233 => I::PushCharacter(u32::try_from(self.signed()).ok()?),
            234 | 235 => {
                let arguments = self.b.take().unwrap_or(0).checked_mul(8)?;
                let num_args = usize::try_from(arguments).ok()? + usize::from(self.first & 7);
                let selectors = usize::try_from(self.a.take().unwrap_or(0)).ok()? * 32;
                let literal = selectors + usize::from(self.first >> 3);
                if opcode == 234 {
                    I::Send { literal, num_args }
                } else {
                    I::SendSuper { literal, num_args }
                }
            }
            237 => I::Jump(self.signed()),
            238 => I::JumpTrue(self.forward()?),
            239 => I::JumpFalse(self.forward()?),
            240 => I::PopIntoReceiverVariable(self.index()),
            241 => I::PopIntoLiteralVariable(self.index()),
            242 => I::PopIntoTemp(self.first.into()),
            243 => I::StoreIntoReceiverVariable(self.index()),
            244 => I::StoreIntoLiteralVariable(self.index()),
            245 => I::StoreIntoTemp(self.first.into()),
            248 if self.second < 0x20 => {
                I::CallPrimitive(usize::from(self.second) << 8 | usize::from(self.first))
            }
            249 if self.second & 0x80 == 0 => I::PushClosure {
                literal: self.index(),
                num_copied: usize::from(self.second & 0x3F),
                ignores_outer: self.second & 0x40 != 0,
            },
            251..=253 if self.second & 0x80 == 0 => {
                let place = InVector {
                    index: self.first.into(),
                    vector: self.second.into(),
                };
                match opcode {
                    251 => I::PushInVector(place),
                    252 => I::StoreInVector(place),
                    _ => I::PopInVector(place),
                }
            }
            _ => return None,
        })
    }

    /// The first operand, with extension A.
    fn index(&mut self) -> usize {
        // At most three extensions of 8 bits.
        (self.a.take().unwrap_or(0) as usize) << 8 | usize::from(self.first)
    }

    /// The first operand, with extension B.
    fn signed(&mut self) -> i32 {
        self.b.take().unwrap_or(0) << 8 | i32::from(self.first)
    }

    fn forward(&mut self) -> Option<i32> {
        Some(self.signed()).filter(|distance| *distance >= 0)
    }
}
