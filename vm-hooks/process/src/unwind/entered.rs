//! The place of the return address between the entry of code and a pc soon after.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use vmscope_records::ChainEnd;

use super::{Frame, FrameRegisters, sampled_register};

/// The place of the return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Return {
    /// On the stack, so many bytes above the stack pointer.
    Above(u64),
    /// In a register.
    In(Register),
}

/// The state after the instructions since the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    at: Return,
    /// Whether the frame pointer points to the frame.
    pub has_frame: bool,
    /// Number of pushes since then.
    pub pushes: u32,
}

/// Follows `code` from the entry at `start` to its end or to a frame, without branches; `None` if the stack pointer
/// becomes unknown.
#[must_use]
pub fn entered(code: &[u8], start: u64) -> Option<Entered> {
    let mut now = Entered {
        at: Return::Above(0),
        has_frame: false,
        pushes: 0,
    };
    let mut insn = Instruction::default();
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    while decoder.can_decode() {
        decoder.decode_out(&mut insn);
        if insn.is_invalid() {
            // The last instruction is not over.
            break;
        }
        now = now.after(&insn)?;
        if now.pushes > 0 {
            break;
        }
    }
    Some(now)
}

impl Entered {
    /// The frame to which the return address leads, for a frame whose pc follows these instructions. Its frame pointer is
    /// that of `frame`.
    ///
    /// # Errors
    /// [`ChainEnd::Stack`] beyond the copied stack, [`ChainEnd::Broken`] if the register was not sampled.
    pub fn caller(self, frame: &Frame<'_>) -> Result<FrameRegisters, ChainEnd> {
        let FrameRegisters { sp, fp, .. } = frame.registers;
        let (pc, sp) = match self.at {
            Return::Above(bytes) => {
                let at = sp.wrapping_add(bytes);
                (frame.word(at)?, at.wrapping_add(8))
            }
            Return::In(register) => {
                let pc = sampled_register(frame, register);
                (pc.ok_or(ChainEnd::Broken)?, sp)
            }
        };
        Ok(FrameRegisters { pc, sp, fp })
    }

    fn after(self, insn: &Instruction) -> Option<Self> {
        let moved = |bytes: i64| match self.at {
            Return::Above(above) => {
                let above = above.checked_add_signed(bytes)?;
                Some(Entered {
                    at: Return::Above(above),
                    ..self
                })
            }
            Return::In(_) => Some(self),
        };
        let register = insn.op0_register();
        let is_stack = insn.op0_kind() == OpKind::Register && register == Register::RSP;
        match insn.mnemonic() {
            Mnemonic::Push if self.at == Return::In(register) => Some(Entered {
                at: Return::Above(0),
                ..self
            }),
            Mnemonic::Push => Some(Entered {
                pushes: self.pushes + u32::from(self.has_frame),
                ..moved(8)?
            }),
            Mnemonic::Pop if self.at == Return::Above(0) => Some(Entered {
                at: Return::In(register),
                ..self
            }),
            Mnemonic::Pop => moved(-8),
            // The interpreter makes room for locals after it has taken the return address.
            _ if is_stack && matches!(self.at, Return::In(_)) => Some(self),
            Mnemonic::Sub if is_stack => moved(immediate(insn)?),
            Mnemonic::Add if is_stack => moved(immediate(insn)?.checked_neg()?),
            Mnemonic::Mov
                if insn.op0_register() == Register::RBP
                    && insn.op1_kind() == OpKind::Register
                    && insn.op1_register() == Register::RSP =>
            {
                Some(Entered {
                    has_frame: true,
                    ..self
                })
            }
            _ if is_stack && writes(insn) => None,
            _ => Some(self),
        }
    }
}

fn writes(insn: &Instruction) -> bool {
    !matches!(insn.mnemonic(), Mnemonic::Cmp | Mnemonic::Test)
}

fn immediate(insn: &Instruction) -> Option<i64> {
    let is_immediate = matches!(
        insn.code(),
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 | Code::Add_rm64_imm8 | Code::Add_rm64_imm32
    );
    is_immediate.then(|| insn.immediate(1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_code_ends(code in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = entered(&code, 0x1000);
        }
    }

    /// A prologue of C2 (JDK 17): stack bang, push rbp, sub rsp.
    const PROLOGUE: &[u8] = &[
        0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, // mov [rsp-0x14000], eax
        0x55, // push rbp
        0x48, 0x83, 0xec, 0x20, // sub rsp, 0x20
    ];

    #[test]
    fn the_return_address_moves_with_the_stack_pointer() {
        let above = |length: usize| entered(&PROLOGUE[..length], 0x1000).unwrap().at;
        assert_eq!(above(0), Return::Above(0));
        assert_eq!(above(7), Return::Above(0));
        assert_eq!(above(8), Return::Above(8));
        assert_eq!(above(12), Return::Above(0x28));
        // Right between instructions only, but no better answer exists.
        assert_eq!(above(10), Return::Above(8));
    }

    #[test]
    fn the_interpreter_takes_the_return_address_into_a_register() {
        let entry = [
            0x58, // pop rax
            0x6a, 0x00, // push 0
            0x50, // push rax
            0x55, // push rbp
            0x48, 0x8b, 0xec, // mov rbp, rsp
            0x41, 0x55, // push r13
        ];
        let at = |length: usize| entered(&entry[..length], 0).unwrap();
        assert_eq!(at(1).at, Return::In(Register::RAX));
        assert_eq!(at(3).at, Return::In(Register::RAX));
        assert_eq!(at(4).at, Return::Above(0));
        assert_eq!(at(5).at, Return::Above(8));
        assert!(!at(5).has_frame && at(8).has_frame && at(8).pushes == 0);
        assert_eq!(at(10).pushes, 1);
    }
}
