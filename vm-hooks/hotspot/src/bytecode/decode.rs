//! Decoder for bytecodes.

use vmscope_records::BytecodePc;

use super::opcode::{mnemonic, op, original};

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Bytecode index.
    pub bci: BytecodePc,
    /// The instruction's Java form ([`original`]).
    pub opcode: u8,
    /// Opcode in the VM's memory.
    pub raw: u8,
    /// Whether the instruction has the wide form.
    pub is_wide: bool,
    /// Length in bytes, operands included: 1 or more.
    pub length: u32,
    /// Operand.
    pub operands: Operands,
}

/// Operand of an instruction. Branch targets are bytecode indexes; damaged code may have
/// targets outside the method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operands {
    /// None, or implied by the name (`iload_2`).
    None,
    /// A local variable.
    Local(u16),
    /// A local variable and its increment.
    Increment(u16, i16),
    /// A number.
    Value(i32),
    /// A slot of the constant pool.
    Constant(u16),
    /// An object among the class's resolved references.
    Resolved(u16),
    /// Two bytes for a field or method. Their meaning depends on the class's state
    /// ([`super::ConstantPoolView::reference`]).
    Member([u8; 2]),
    /// Four bytes for a call site.
    CallSite([u8; 4]),
    /// Element type of `newarray` (4 to 11).
    Primitive(u8),
    /// An array class in the constant pool, and the number of allocated dimensions.
    Dimensions(u16, u8),
    /// A target.
    Jump(i32),
    /// `tableswitch`.
    Table {
        /// Number of the first target.
        low: i32,
        /// Target for all other numbers.
        default: i32,
        /// Targets of `low` and the following numbers.
        targets: Vec<i32>,
    },
    /// `lookupswitch`.
    Lookup {
        /// Target for all other numbers.
        default: i32,
        /// Numbers and their targets, ascending.
        pairs: Vec<(i32, i32)>,
    },
}

/// Error in bytecodes; decoding ends there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BytecodeError {
    /// Unknown opcode.
    #[error("unknown bytecode instruction {opcode} at bytecode {bci}")]
    Unknown {
        /// Bytecode index.
        bci: u32,
        /// The number.
        opcode: u8,
    },
    /// A debugger's breakpoint hides the instruction and its length.
    #[error("a debugger's breakpoint hides the instruction at bytecode {bci}")]
    Breakpoint {
        /// Bytecode index.
        bci: u32,
    },
    /// The instruction or its table extends beyond the method.
    #[error("{name} at bytecode {bci} does not end within the method's {size} bytes")]
    Short {
        /// Bytecode index.
        bci: u32,
        /// Name of the instruction.
        name: &'static str,
        /// The method's bytecodes.
        size: usize,
    },
    /// `wide` before an instruction without a wide form.
    #[error("instruction {opcode} at bytecode {bci} has no wide form")]
    NotWide {
        /// Bytecode index.
        bci: u32,
        /// Opcode behind `wide`.
        opcode: u8,
    },
}

/// Instructions of a method. A decoding error is the last item.
#[derive(Clone, Debug)]
pub struct Instructions<'a> {
    code: &'a [u8],
    at: usize,
}

/// Instructions of `code`, a whole method.
#[must_use]
pub fn instructions(code: &[u8]) -> Instructions<'_> {
    Instructions { code, at: 0 }
}

impl Iterator for Instructions<'_> {
    type Item = Result<Instruction, BytecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.code.len() {
            return None;
        }
        let decoded = u32::try_from(self.at)
            .ok()
            .map(|bci| Instruction::decode(self.code, bci))?;
        self.at = match &decoded {
            Ok(instruction) => self.at.saturating_add(instruction.length as usize),
            Err(_) => self.code.len(),
        };
        Some(decoded)
    }
}

/// Bytes of the instruction at `bci` of the method `code`; `None` outside the method.
#[must_use]
pub fn length_at(code: &[u8], bci: BytecodePc) -> Option<u32> {
    Instruction::decode(code, bci.0).ok().map(|it| it.length)
}

/// Bytes behind an instruction's opcode.
struct Cursor<'a> {
    code: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.code.get(self.at..)?.first_chunk::<N>()?;
        self.at += N;
        Some(*bytes)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn i16(&mut self) -> Option<i16> {
        self.take().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_be_bytes)
    }

    /// `count` entries of `each` bytes, limited to the remaining bytes.
    fn fits(&self, count: i64, each: usize) -> Option<usize> {
        let count = usize::try_from(count).ok()?;
        let left = self.code.len().saturating_sub(self.at);
        (count.checked_mul(each)? <= left).then_some(count)
    }
}

impl Instruction {
    /// Instruction at `bci` of the method `code`. `code` must begin with the method, since
    /// switch tables are aligned to the method's begin.
    ///
    /// # Errors
    /// [`BytecodeError`].
    pub fn decode(code: &[u8], bci: u32) -> Result<Self, BytecodeError> {
        let short = |name| BytecodeError::Short {
            bci,
            name,
            size: code.len(),
        };
        let begin = bci as usize;
        let raw = *code.get(begin).ok_or(short("code"))?;
        let name = mnemonic(raw).ok_or(BytecodeError::Unknown { bci, opcode: raw })?;
        let mut rest = Cursor {
            code,
            at: begin.saturating_add(1),
        };
        let (opcode, is_wide, operands) = match raw {
            op::BREAKPOINT => return Err(BytecodeError::Breakpoint { bci }),
            op::WIDE => {
                let opcode = rest.u8().ok_or(short(name))?;
                let operands = match opcode {
                    op::IINC => rest
                        .u16()
                        .and_then(|local| Some(Operands::Increment(local, rest.i16()?))),
                    op::RET | op::ILOAD..=op::ALOAD | op::ISTORE..=op::ASTORE => {
                        rest.u16().map(Operands::Local)
                    }
                    _ => return Err(BytecodeError::NotWide { bci, opcode }),
                };
                (opcode, true, operands)
            }
            _ => (original(raw), false, operands(raw, bci, &mut rest)),
        };
        let operands = operands.ok_or(short(name))?;
        Ok(Instruction {
            bci: BytecodePc(bci),
            opcode,
            raw,
            is_wide,
            length: u32::try_from(rest.at.saturating_sub(begin)).unwrap_or(u32::MAX),
            operands,
        })
    }

    /// Name of the instruction without the mark of its wide form.
    #[must_use]
    pub fn mnemonic(&self) -> &'static str {
        mnemonic(self.opcode).unwrap_or_default()
    }
}

/// `None` beyond the method's end.
fn operands(raw: u8, bci: u32, rest: &mut Cursor<'_>) -> Option<Operands> {
    let from = bci.cast_signed();
    let jump = |offset: i32| Operands::Jump(from.wrapping_add(offset));
    Some(match original(raw) {
        op::BIPUSH => Operands::Value(rest.take().map(i8::from_be_bytes)?.into()),
        op::SIPUSH => Operands::Value(rest.i16()?.into()),
        op::LDC if raw == op::FAST_ALDC => Operands::Resolved(rest.u8()?.into()),
        op::LDC => Operands::Constant(rest.u8()?.into()),
        // The VM uses native byte order: little-endian on x86-64 and aarch64.
        op::LDC_W if raw == op::FAST_ALDC_W => {
            Operands::Resolved(rest.take().map(u16::from_le_bytes)?)
        }
        op::LDC_W | op::LDC2_W | op::NEW | op::ANEWARRAY | op::CHECKCAST | op::INSTANCEOF => {
            Operands::Constant(rest.u16()?)
        }
        op::RET | op::ILOAD..=op::ALOAD | op::ISTORE..=op::ASTORE => {
            Operands::Local(rest.u8()?.into())
        }
        op::IINC => Operands::Increment(
            rest.u8()?.into(),
            rest.take().map(i8::from_be_bytes)?.into(),
        ),
        op::IFEQ..=op::JSR | op::IFNULL | op::IFNONNULL => jump(rest.i16()?.into()),
        op::GOTO_W | op::JSR_W => jump(rest.i32()?),
        op::GETSTATIC..=op::INVOKESTATIC => Operands::Member(rest.take()?),
        op::INVOKEINTERFACE => {
            let member = rest.take()?;
            // Number of arguments, and a zero.
            rest.take::<2>()?;
            Operands::Member(member)
        }
        op::INVOKEDYNAMIC => Operands::CallSite(rest.take()?),
        op::NEWARRAY => Operands::Primitive(rest.u8()?),
        op::MULTIANEWARRAY => Operands::Dimensions(rest.u16()?, rest.u8()?),
        op::TABLESWITCH => {
            rest.at = rest.at.next_multiple_of(4);
            let (default, low, high) = (rest.i32()?, rest.i32()?, rest.i32()?);
            let count = i64::from(high) - i64::from(low) + 1;
            let targets = (0..rest.fits(count, 4)?)
                .map(|_| Some(from.wrapping_add(rest.i32()?)))
                .collect::<Option<_>>()?;
            Operands::Table {
                low,
                default: from.wrapping_add(default),
                targets,
            }
        }
        op::LOOKUPSWITCH => {
            rest.at = rest.at.next_multiple_of(4);
            let (default, count) = (rest.i32()?, rest.i32()?);
            let pairs = (0..rest.fits(count.into(), 8)?)
                .map(|_| Some((rest.i32()?, from.wrapping_add(rest.i32()?))))
                .collect::<Option<_>>()?;
            Operands::Lookup {
                default: from.wrapping_add(default),
                pairs,
            }
        }
        _ => Operands::None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(code: &[u8]) -> Vec<(u32, Operands)> {
        let all = instructions(code).map(|it| it.map(|it| (it.bci.0, it.operands)));
        all.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn tables_are_aligned_to_the_method() {
        // iload_0; tableswitch (2 bytes of padding) 5..6, default +31; return
        let mut code = vec![26, op::TABLESWITCH, 0, 0];
        for word in [31_i32, 5, 6, 24, 26] {
            code.extend(word.to_be_bytes());
        }
        code.push(op::RETURN);
        let switch = Operands::Table {
            low: 5,
            default: 32,
            targets: vec![25, 27],
        };
        let all = [(0, Operands::None), (1, switch), (24, Operands::None)];
        assert_eq!(decoded(&code), all);
        assert_eq!(length_at(&code, BytecodePc(1)), Some(23));
        code.truncate(22);
        assert_eq!(length_at(&code, BytecodePc(1)), None);
    }

    #[test]
    fn the_vms_own_are_as_long_as_what_they_stand_for() {
        // fast_iload2 7, and its second iload; fast_iaccess_0, and its getfield.
        let code = [225, 7, op::ILOAD, 8, 221, op::GETFIELD, 1, 0];
        let all = [
            (0, Operands::Local(7)),
            (2, Operands::Local(8)),
            (4, Operands::None),
            (5, Operands::Member([1, 0])),
        ];
        assert_eq!(decoded(&code), all);
    }

    #[test]
    fn what_is_no_instruction_is_said() {
        let error = |code: &[u8]| Instruction::decode(code, 0).unwrap_err();
        assert_eq!(
            error(&[250]),
            BytecodeError::Unknown {
                bci: 0,
                opcode: 250
            }
        );
        assert_eq!(
            error(&[op::BREAKPOINT]),
            BytecodeError::Breakpoint { bci: 0 }
        );
        assert_eq!(
            error(&[op::WIDE, 0]),
            BytecodeError::NotWide { bci: 0, opcode: 0 }
        );
        let huge = [op::LOOKUPSWITCH, 0, 0, 0, 0, 0, 0, 0, 127, 255, 255, 255];
        for short in [&[][..], &[op::LDC], &[op::WIDE, op::IINC, 0, 1, 0], &huge] {
            assert!(
                matches!(error(short), BytecodeError::Short { .. }),
                "{short:?}"
            );
        }
        assert_eq!(
            instructions(&[0, 250, 0]).count(),
            2,
            "an error is the last"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(code: Vec<u8>) {
            let mut at = 0;
            for instruction in instructions(&code).flatten() {
                prop_assert_eq!(instruction.bci.0, at);
                at += instruction.length;
            }
            prop_assert!(at as usize <= code.len());
        }
    }
}
