//! Machine code and the signs of its instructions.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use super::facts::Sign;
use super::signs::{Signer, intrinsic_share};
use crate::code::Nmethod;

/// Maximum bytes of decoded code.
const MAX_CODE: usize = 1 << 20;

/// Control flow after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Next,
    /// Next instruction, or a branch target in the code (offset).
    Branch(u32),
    /// Branch target in the code.
    Jump(u32),
    /// Another routine, then perhaps the next instruction.
    Call,
    /// Elsewhere; never the next instruction.
    Away,
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub struct Insn {
    pub start: u32,
    pub end: u32,
    pub flow: Flow,
    /// How much it tells of intrinsic code. A sum of 3 suffices.
    pub intrinsic_share: u8,
    /// Whether control may reach the next instruction.
    pub falls: bool,
    pub compares: bool,
    /// Whether it loads a negative number into `esi`: the argument of an uncommon trap.
    pub asks_trap: bool,
    /// Whether it removes the frame, or returns.
    pub leaves: bool,
    /// Its signs, as a range of [`Machine::signs`].
    pub signs: (u32, u32),
}

/// Decoded code of an nmethod.
#[derive(Debug, Default)]
pub struct Machine {
    /// Instructions, ascending; gaps only at undecodable bytes.
    pub insns: Vec<Insn>,
    /// Signs of instructions, with weights.
    pub signs: Vec<(Sign, f32)>,
}

impl Machine {
    /// Decodes the code of `nmethod`. `narrow_class`: base and shift of compressed class
    /// pointers.
    #[must_use]
    pub fn of(nmethod: &Nmethod, narrow_class: Option<(u64, u32)>) -> Self {
        let code = nmethod.code.get(..MAX_CODE).unwrap_or(&nmethod.code);
        let begin = nmethod.blob.code_begin.0;
        // Instructions have 4 to 5 bytes on average.
        let mut machine = Machine {
            insns: Vec::with_capacity(code.len() / 4),
            signs: Vec::with_capacity(code.len() / 8),
        };
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
                // An uncommon trap never returns; the bytes behind are never executed.
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
                intrinsic_share: intrinsic_share(&insn),
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

    /// Signs of an instruction.
    #[must_use]
    pub fn signs_of(&self, insn: &Insn) -> &[(Sign, f32)] {
        let range = insn.signs.0 as usize..insn.signs.1 as usize;
        self.signs.get(range).unwrap_or_default()
    }

    /// Index of the instruction before a sampled pc.
    #[must_use]
    pub fn before(&self, pc: u32) -> usize {
        self.index_at(pc).saturating_sub(1)
    }

    /// Sampled pcs of ranges of instructions. An instruction has the pcs behind its first byte, up to
    /// and including its end. The last instruction's range has no end: bytes that can't be decoded may
    /// follow.
    #[must_use]
    pub fn pcs_of(&self, ranges: &[Range<usize>]) -> Vec<Range<u32>> {
        let first = |at: usize| {
            let insn = self.insns.get(at).filter(|_| at > 0);
            insn.map_or(0, |insn| insn.start.saturating_add(1))
        };
        let after = |at: usize| (self.insns.get(at)).map_or(u32::MAX, |_| first(at));
        let pcs = ranges.iter();
        pcs.map(|range| first(range.start)..after(range.end))
            .collect()
    }

    /// Index of the first instruction at or after `offset`.
    #[must_use]
    pub fn index_at(&self, offset: u32) -> usize {
        self.insns.partition_point(|insn| insn.start < offset)
    }
}

/// Marks returns, and the preceding removal of the frame.
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

/// A negative number in `esi` is the reason of an uncommon trap.
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
