//! Signs of an instruction: hints at its bytecode.

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use vmscope_records::Avma;

use super::facts::{Arithmetic, Sign};

/// Compares an instruction's mnemonic with some names.
macro_rules! is_one_of {
    ($insn:expr, $($name:ident)+) => { matches!($insn.mnemonic(), $(Mnemonic::$name)|+) };
}

/// Finder of instructions' signs.
pub struct Signer<'a> {
    /// Address of the code.
    pub begin: u64,
    /// Base and shift of compressed class pointers.
    pub narrow_class: Option<(u64, u32)>,
    /// Constants in front of the code.
    pub constants: &'a [u8],
}

impl Signer<'_> {
    /// Adds the signs of an instruction with their weights.
    pub fn sign(&self, insn: &Instruction, signs: &mut Vec<(Sign, f32)>) {
        if insn.mnemonic() == Mnemonic::Shr
            && insn.op1_kind() == OpKind::Immediate8
            && insn.immediate8() == 9
        {
            // A card mark: part of the previous store.
            return;
        }
        if insn.mnemonic() == Mnemonic::Lea && insn.memory_index() != Register::None {
            let width = u8::try_from(insn.memory_index_scale()).unwrap_or(0);
            if insn.memory_displacement64() >= 16 && insn.memory_base() != Register::None {
                for store in [false, true] {
                    signs.push((Sign::Element { width, store }, 1.0));
                }
                return;
            }
        }
        let is_call = matches!(
            insn.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        );
        if insn.flow_control() == FlowControl::ConditionalBranch {
            // Unsigned comparison: a range check.
            let is_check = matches!(insn.mnemonic(), Mnemonic::Jae | Mnemonic::Jbe);
            if !is_check {
                signs.push((Sign::Branch, 0.3));
            }
            return;
        }
        for operand in 0..insn.op_count() {
            match insn.op_kind(operand) {
                OpKind::Memory if !is_call && insn.mnemonic() != Mnemonic::Lea => {
                    self.memory(insn, operand, signs);
                }
                OpKind::Immediate8
                | OpKind::Immediate32
                | OpKind::Immediate64
                | OpKind::Immediate8to32
                | OpKind::Immediate8to64
                | OpKind::Immediate32to64 => self.immediate(insn, operand, signs),
                _ => {}
            }
        }
        if insn.op0_register().is_vector_register()
            && (insn.op0_register().size() > 16 || is_packed(insn))
        {
            signs.push((Sign::Vector, 1.5));
        }
        if insn.has_lock_prefix() {
            signs.push((Sign::Lock, 1.5));
        }
        if let Some((arithmetic, worth)) = arithmetic(insn) {
            signs.push((
                Sign::Arithmetic(arithmetic, is_wide(insn, arithmetic)),
                worth,
            ));
        }
    }

    fn memory(&self, insn: &Instruction, operand: u32, signs: &mut Vec<(Sign, f32)>) {
        let base = insn.memory_base();
        let index = insn.memory_index();
        let width = u8::try_from(insn.memory_size().size()).unwrap_or(0);
        let store =
            operand == 0 && insn.mnemonic() != Mnemonic::Cmp && insn.mnemonic() != Mnemonic::Test;
        let displacement = insn.memory_displacement64().cast_signed();
        if base == Register::RIP {
            let within = insn
                .memory_displacement64()
                .wrapping_sub(self.begin)
                .cast_signed();
            let at = i64::try_from(self.constants.len())
                .unwrap_or(0)
                .saturating_add(within);
            let value = usize::try_from(at).ok().and_then(|at| {
                let bytes = self
                    .constants
                    .get(at..at.checked_add(width.min(8).into())?)?;
                let mut wide = [0; 8];
                wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
                Some(i64::from_le_bytes(wide))
            });
            signs.extend(value.map(|value| (Sign::Constant(value), 2.0)));
            return;
        }
        if base == Register::RSP || store && width == 1 && insn.op1_register() == Register::R12L {
            return;
        }
        if base == Register::R15 {
            if width == 8 && insn.op0_register() != Register::RSP {
                signs.push((Sign::Allocate, 1.0));
            }
            return;
        }
        let scale = u8::try_from(insn.memory_index_scale()).unwrap_or(0);
        let is_object = index == Register::None
            || (scale == 8 && (base == Register::None || base == Register::R12));
        if is_object {
            let Ok(offset) = u32::try_from(displacement) else {
                return;
            };
            match offset {
                0 if width == 8 => signs.push((Sign::Lock, 0.5)),
                0 => signs.push((Sign::Element { width, store }, 1.0)),
                8 if width == 4 && !store => signs.push((Sign::ClassOf, 1.0)),
                8 if width == 4 => signs.push((Sign::Allocate, 1.5)),
                12 if width == 4 && !store => {
                    signs.push((Sign::Length, 1.0));
                    signs.push((Sign::Field { offset, store }, 1.5));
                }
                _ => {
                    signs.push((Sign::Field { offset, store }, 3.0));
                    if offset >= 16 && width <= 8 {
                        signs.push((Sign::Element { width, store }, 0.7));
                    }
                }
            }
        }
        if index != Register::None && base != Register::None {
            let width = if scale > 1 { scale } else { width };
            signs.push((Sign::Element { width, store }, 2.0));
        }
    }

    fn immediate(&self, insn: &Instruction, operand: u32, signs: &mut Vec<(Sign, f32)>) {
        let raw = insn.immediate(operand);
        let mut value = raw.cast_signed();
        if insn.op_kind(operand) == OpKind::Immediate32 {
            value = i64::from(insn.immediate32().cast_signed());
            if let Some((base, shift)) = self.narrow_class {
                let class = (raw & 0xffff_ffff).wrapping_shl(shift).wrapping_add(base);
                signs.push((Sign::Class(Avma(class)), 4.0));
            }
        } else if insn.op_kind(operand) == OpKind::Immediate64 {
            signs.push((Sign::Class(Avma(raw)), 4.0));
        }
        if insn.mnemonic() == Mnemonic::Sub {
            value = value.wrapping_neg();
        }
        let worth = match value.unsigned_abs() {
            0 | 1 => 0.4,
            2..=8 => 0.8,
            _ => 2.0,
        };
        signs.push((Sign::Constant(value), worth));
    }
}

/// How much an instruction tells of a string or array intrinsic. Vectorised loops have no instruction above 0.
/// The instruction that searches for a string has 3, enough by itself.
pub fn intrinsic_share(insn: &Instruction) -> u8 {
    if is_one_of!(insn, Pcmpestri Vpcmpestri) {
        return 3;
    }
    let is_other = is_one_of!(insn,
        Pcmpeqb Vpcmpeqb Pcmpeqw Vpcmpeqw Ptest Vptest Pmovmskb
        Vpmovmskb Pshuflw Phaddd Vphaddd Pshufb Vpshufb Packuswb Vpackuswb Punpcklbw Ktestd
        Kortestd Kortestq Tzcnt Bsf
    );
    u8::from(is_other)
}

fn is_packed(insn: &Instruction) -> bool {
    is_one_of!(insn,
        Movdqu Vmovdqu Pshufd Vpshufd Pxor Vpxor Pcmpestri Pcmpeqb Vpcmpeqb Pcmpeqw Vpcmpeqw
        Ptest Vptest Pmovmskb Vpmovmskb Vpbroadcastb Vpbroadcastw Pshuflw Pshufb Punpcklbw
        Vpmovzxbw Pmovzxbw Movdqa Por Psubd Pand Packuswb
    )
}

/// Whether an operation is of type long or double.
fn is_wide(insn: &Instruction, arithmetic: Arithmetic) -> bool {
    match arithmetic {
        Arithmetic::FloatConvert | Arithmetic::Narrow => false,
        Arithmetic::Widen => true,
        _ if insn.op0_register().is_vector_register() => !is_one_of!(insn,
            Addss Vaddss Vaddps Subss Vsubss Vsubps Mulss Vmulss Vmulps
            Divss Vdivss Ucomiss Vucomiss Paddd Vpaddd Vpmulld
        ),
        _ => insn.op0_register().size() == 8 || insn.memory_size().size() == 8,
    }
}

fn arithmetic(insn: &Instruction) -> Option<(Arithmetic, f32)> {
    use Arithmetic as A;
    use Mnemonic as M;
    if insn.op0_register() == Register::RSP {
        return None;
    }
    let registers = insn.op1_kind() == OpKind::Register;
    Some(match insn.mnemonic() {
        M::Add | M::Inc | M::Dec | M::Paddd | M::Vpaddd => (A::Add, 0.5),
        M::Lea => (A::Add, 0.3),
        M::Sub => (A::Subtract, 0.7),
        M::Imul | M::Mul | M::Vpmulld => (A::Multiply, 2.0),
        M::Idiv | M::Div => (A::Divide, 3.0),
        M::Cmp if registers => (
            A::Compare,
            if insn.op0_register().size() == 8 {
                1.5
            } else {
                0.3
            },
        ),
        M::Neg => (A::Negate, 1.5),
        M::Shl | M::Sal | M::Shlx => (A::ShiftLeft, 0.7),
        M::Sar | M::Sarx => (A::ShiftRight, 1.0),
        M::Shr | M::Shrx => (A::ShiftRightUnsigned, 0.7),
        M::And | M::Andn => (A::And, 0.8),
        M::Or => (A::Or, 0.8),
        M::Xor if insn.op0_register() != insn.op1_register() => (A::Xor, 1.0),
        M::Addsd | M::Addss | M::Vaddsd | M::Vaddss | M::Vaddpd | M::Vaddps => (A::FloatAdd, 2.0),
        M::Subsd | M::Subss | M::Vsubsd | M::Vsubss | M::Vsubpd | M::Vsubps => {
            (A::FloatSubtract, 2.0)
        }
        M::Mulsd | M::Mulss | M::Vmulsd | M::Vmulss | M::Vmulpd | M::Vmulps => {
            (A::FloatMultiply, 2.0)
        }
        M::Divsd | M::Divss | M::Vdivsd | M::Vdivss => (A::FloatDivide, 3.0),
        M::Ucomisd | M::Ucomiss | M::Vucomisd | M::Vucomiss => (A::FloatCompare, 2.0),
        M::Cvtsi2sd
        | M::Cvtsi2ss
        | M::Vcvtsi2sd
        | M::Vcvtsi2ss
        | M::Cvttsd2si
        | M::Cvttss2si
        | M::Cvtss2sd
        | M::Cvtsd2ss
        | M::Cvtdq2pd => (A::FloatConvert, 2.0),
        M::Movsxd if registers => (A::Widen, 0.7),
        M::Movsx | M::Movzx if registers => (A::Narrow, 0.7),
        _ => return None,
    })
}
