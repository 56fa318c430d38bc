//! Machine code, and what its instructions tell.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use vmscope_records::Avma;

use super::facts::{Arithmetic, Sign};
use crate::code::Nmethod;

/// Code of more bytes than this is not decoded further.
const MAX_CODE: usize = 1 << 20;

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next one.
    Next,
    /// To the next one or elsewhere in the code (offset).
    Branch(u32),
    /// Elsewhere in the code.
    Jump(u32),
    /// To another routine, and perhaps to the next instruction after that.
    Call,
    /// Not to the next one.
    Away,
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub struct Insn {
    /// Its offset from the code's begin.
    pub start: u32,
    /// The offset after it.
    pub end: u32,
    /// Where control goes.
    pub flow: Flow,
    /// Whether only code that the compiler has ready has such instructions.
    pub is_template: bool,
    /// Whether control may come to the next instruction from it.
    pub falls: bool,
    /// Whether it is a comparison.
    pub compares: bool,
    /// Whether it puts a negative number into `esi`: the argument of an uncommon trap.
    pub asks_trap: bool,
    /// Whether it takes down the frame, or returns.
    pub leaves: bool,
    /// Its signs: a range of [`Machine::signs`].
    pub signs: (u32, u32),
}

/// The decoded code of an nmethod.
#[derive(Debug, Default)]
pub struct Machine {
    /// The instructions, ascending, without gaps but for what is no instruction.
    pub insns: Vec<Insn>,
    /// What instructions tell, and how much that is worth.
    pub signs: Vec<(Sign, f32)>,
}

impl Machine {
    /// Decodes the code of `nmethod`; `narrow_class` is the base and the shift of
    /// compressed class pointers.
    #[must_use]
    pub fn of(nmethod: &Nmethod, narrow_class: Option<(u64, u32)>) -> Self {
        let code = nmethod.code.get(..MAX_CODE).unwrap_or(&nmethod.code);
        let begin = nmethod.blob.code_begin.0;
        let mut machine = Machine::default();
        let mut decoder = Decoder::with_ip(64, code, begin, DecoderOptions::NONE);
        let mut insn = Instruction::default();
        let signer = Signer {
            begin,
            narrow_class,
            constants: &nmethod.constants,
        };
        let mut asks_trap = false;
        while decoder.can_decode() {
            let at = decoder.position();
            decoder.decode_out(&mut insn);
            let offset = |position: usize| u32::try_from(position).unwrap_or(u32::MAX);
            let from = offset(machine.signs.len());
            if !insn.is_invalid() {
                signer.sign(&insn, &mut machine.signs);
            }
            let flow = flow(&insn, begin);
            let fell = machine.insns.last().is_none_or(|before| before.falls);
            let asks = asks_trap_of(&insn);
            asks_trap |= asks;
            let falls = match flow {
                Flow::Jump(_) | Flow::Away => false,
                // An uncommon trap does not return; what the next call finds behind it
                // is no instruction that is executed.
                Flow::Call => !asks_trap,
                _ if insn.mnemonic() == Mnemonic::Nop => fell,
                _ => true,
            };
            if flow != Flow::Next {
                asks_trap = false;
            }
            machine.insns.push(Insn {
                falls,
                start: offset(at),
                end: offset(decoder.position()),
                flow,
                is_template: is_template(&insn),
                compares: matches!(
                    insn.mnemonic(),
                    Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Ucomisd | Mnemonic::Ucomiss
                ),
                asks_trap: asks,
                leaves: leaves(&insn),
                signs: (from, offset(machine.signs.len())),
            });
        }
        machine
    }

    /// The signs of an instruction.
    #[must_use]
    pub fn signs_of(&self, insn: &Insn) -> &[(Sign, f32)] {
        let range = insn.signs.0 as usize..insn.signs.1 as usize;
        self.signs.get(range).unwrap_or_default()
    }

    /// The index of the instruction that begins at `offset`, or of the next one.
    #[must_use]
    pub fn index_at(&self, offset: u32) -> usize {
        self.insns.partition_point(|insn| insn.start < offset)
    }
}

/// Returns, and what takes down the frame in front of them.
fn leaves(insn: &Instruction) -> bool {
    let on_stack = insn.op0_register() == Register::RSP;
    match insn.mnemonic() {
        Mnemonic::Ret => true,
        Mnemonic::Add => on_stack && insn.op1_kind() != OpKind::Register,
        Mnemonic::Pop => insn.op0_register() == Register::RBP,
        // The poll at a return.
        Mnemonic::Cmp => on_stack && insn.memory_base() == Register::R15,
        _ => false,
    }
}

/// A negative number in `esi` says what an uncommon trap is for.
fn asks_trap_of(insn: &Instruction) -> bool {
    insn.mnemonic() == Mnemonic::Mov
        && insn.op0_register() == Register::ESI
        && insn.op1_kind() == OpKind::Immediate32
        && insn.immediate32().cast_signed() < 0
}

fn flow(insn: &Instruction, begin: u64) -> Flow {
    let target = u32::try_from(insn.near_branch_target().wrapping_sub(begin));
    match insn.flow_control() {
        FlowControl::ConditionalBranch => target.map_or(Flow::Next, Flow::Branch),
        FlowControl::UnconditionalBranch => target.map_or(Flow::Away, Flow::Jump),
        FlowControl::Call | FlowControl::IndirectCall => Flow::Call,
        FlowControl::Return
        | FlowControl::IndirectBranch
        | FlowControl::Exception
        | FlowControl::Interrupt => Flow::Away,
        _ if insn.mnemonic() == Mnemonic::Hlt => Flow::Away,
        _ => Flow::Next,
    }
}

struct Signer<'a> {
    begin: u64,
    narrow_class: Option<(u64, u32)>,
    constants: &'a [u8],
}

impl Signer<'_> {
    fn sign(&self, insn: &Instruction, signs: &mut Vec<(Sign, f32)>) {
        if insn.mnemonic() == Mnemonic::Shr
            && insn.op1_kind() == OpKind::Immediate8
            && insn.immediate8() == 9
        {
            // A card is marked: part of the store in front.
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
            signs.push((Sign::Branch, 0.3));
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
            signs.push((Sign::Arithmetic(arithmetic), worth));
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

/// Instructions of string and array intrinsics, which vectorised loops do not have.
fn is_template(insn: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        insn.mnemonic(),
        M::Pcmpestri
            | M::Vpcmpestri
            | M::Pcmpeqb
            | M::Vpcmpeqb
            | M::Pcmpeqw
            | M::Vpcmpeqw
            | M::Ptest
            | M::Vptest
            | M::Pmovmskb
            | M::Vpmovmskb
            | M::Pshuflw
            | M::Phaddd
            | M::Vphaddd
            | M::Pshufb
            | M::Vpshufb
            | M::Packuswb
            | M::Vpackuswb
            | M::Punpcklbw
            | M::Ktestd
            | M::Kortestd
            | M::Kortestq
            | M::Tzcnt
            | M::Bsf
    )
}

fn is_packed(insn: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        insn.mnemonic(),
        M::Movdqu
            | M::Vmovdqu
            | M::Pshufd
            | M::Vpshufd
            | M::Pxor
            | M::Vpxor
            | M::Pcmpestri
            | M::Pcmpeqb
            | M::Vpcmpeqb
            | M::Pcmpeqw
            | M::Vpcmpeqw
            | M::Ptest
            | M::Vptest
            | M::Pmovmskb
            | M::Vpmovmskb
            | M::Vpbroadcastb
            | M::Vpbroadcastw
            | M::Pshuflw
            | M::Pshufb
            | M::Punpcklbw
            | M::Vpmovzxbw
            | M::Pmovzxbw
            | M::Movdqa
            | M::Por
            | M::Psubd
            | M::Pand
            | M::Packuswb
    )
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
