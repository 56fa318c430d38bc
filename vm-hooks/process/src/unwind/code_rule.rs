//! Rules from machine code on x86-64: the caller's place for code at a pc, whatever the values.
//!
//! [`Run`] executes the code from the pc to its return, with addresses in place of values. The
//! remaining instructions thus prove the rule, without a frame pointer. Code without a return (an
//! endless loop) has the frame of its prologue.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use vmscope_records::ChainEnd;

use super::run::{Jumps, Run, has_immediate};
use super::{Frame, FrameRegisters};

/// The longest call in bytes.
pub const MAX_CALL_BYTES: usize = 8;

/// The shortest call in bytes.
const MIN_CALL_BYTES: usize = 2;

/// Maximum number of instructions to a return, on all paths.
const STEPS: usize = 1000;

/// Maximum number of instructions to a return without a branch.
const STRAIGHT: usize = 16;

/// Registers and stack of a run for a rule: far apart, so that an address shows its base.
const SP: u64 = 1 << 40;
const FP: u64 = 1 << 44;
/// A word on the stack is its own address plus this.
const WORD: u64 = 1 << 48;

/// Maximum bytes of arguments that a return removes: its operand has 16 bits.
const MAX_POPPED: i64 = 0xffff;

/// Maximum size of a frame.
const MAX_FRAME: i64 = 1 << 31;

/// The place of the caller's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRule {
    /// Whether offsets count from the frame pointer, else from the stack pointer.
    by_frame_pointer: bool,
    /// Offset of the frame's end: the caller's stack pointer, above the return address and the
    /// arguments that the return removes.
    end: i64,
    /// Bytes of these arguments (`ret n`).
    popped: i64,
    /// Offset of the caller's frame pointer; `None` while the register holds it.
    saved: Option<i64>,
}

impl CodeRule {
    /// The rule at `pc` in `code`, which begins at `begin` and ends with the function.
    #[must_use]
    pub fn of_function(code: &[u8], begin: u64, pc: u64, is_innermost: bool) -> Option<Self> {
        Self::of_returning(code, begin, pc, Jumps::Unknown).or_else(|| {
            Self::by_prologue(code, begin, pc)
                .filter(|_| !is_innermost || is_in_body(code, begin, pc))
        })
    }

    /// Likewise, if the code returns.
    #[must_use]
    pub fn of_returning(code: &[u8], begin: u64, pc: u64, jumps: Jumps) -> Option<Self> {
        Some(Self::with_reach((code, begin), pc, jumps, |_| None)?.0)
    }

    /// Likewise, with the code on the path to the return whose frames have the same rule by the frame pointer.
    /// `known`: rules by the frame pointer that are known.
    pub(super) fn with_reach(
        (code, begin): (&[u8], u64),
        pc: u64,
        jumps: Jumps,
        known: impl Fn(u64) -> Option<CodeRule>,
    ) -> Option<(Self, Vec<Range<u64>>)> {
        let with = |sp: u64| {
            let from = FrameRegisters { pc, sp, fp: FP };
            let run = Run::with(code, begin, from, |at| Some(at.wrapping_add(WORD)));
            let mut run = run.knowing(|at| Some(known(at)?.of_run()));
            let rule = Self::found(run.caller(STEPS, jumps)?, sp)?;
            Some((rule, run.into_framed()))
        };
        let (rule, framed) = with(SP)?;
        if rule.by_frame_pointer {
            return Some((rule, framed));
        }
        // Code that rounds the stack pointer has no rule by it.
        (with(SP + 8)?.0 == rule).then_some((rule, Vec::new()))
    }

    /// What a run finds by this rule, which is by the frame pointer.
    fn of_run(self) -> FrameRegisters {
        let word = |offset: i64| FP.wrapping_add_signed(offset).wrapping_add(WORD);
        FrameRegisters {
            pc: word(self.end - 8 - self.popped),
            sp: FP.wrapping_add_signed(self.end),
            fp: self.saved.map_or(FP, word),
        }
    }

    /// The rule of `code`, whose function's bounds are unknown, from its begin on: if it returns
    /// without a branch.
    #[must_use]
    pub fn of_straight(code: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
        for insn in decoder.iter().take(STRAIGHT) {
            match insn.flow_control() {
                FlowControl::Next if !insn.is_invalid() => {}
                FlowControl::Return => return Self::of_returning(code, 0, 0, Jumps::Unknown),
                _ => return None,
            }
        }
        None
    }

    /// The caller of a frame in this code.
    ///
    /// # Errors
    /// As [`Frame::word`] and [`Frame::word_at_pointer`].
    pub fn caller(&self, frame: &Frame<'_>) -> Result<FrameRegisters, ChainEnd> {
        let FrameRegisters { sp, fp, .. } = frame.registers;
        let base = if self.by_frame_pointer { fp } else { sp };
        let word = |offset: i64| {
            let at = base.wrapping_add_signed(offset);
            match self.by_frame_pointer {
                true => frame.word_at_pointer(at),
                false => frame.word(at),
            }
        };
        Ok(FrameRegisters {
            pc: word(self.end.saturating_sub(8 + self.popped))?,
            sp: base.wrapping_add_signed(self.end),
            fp: self.saved.map_or(Ok(fp), word)?,
        })
    }

    /// The rule by which a run found its caller.
    fn found(caller: FrameRegisters, sp: u64) -> Option<Self> {
        let from = |base: u64, at: u64| {
            let offset = at.wrapping_sub(base).cast_signed();
            (-MAX_FRAME..MAX_FRAME).contains(&offset).then_some(offset)
        };
        let (base, end) = match from(sp, caller.sp) {
            Some(end) => (sp, end),
            None => (FP, from(FP, caller.sp)?),
        };
        let saved = match caller.fp {
            FP => None,
            word => Some(from(base, word.wrapping_sub(WORD))?),
        };
        let above = caller.sp.wrapping_sub(caller.pc.wrapping_sub(WORD));
        let popped = above.checked_sub(8)?.cast_signed();
        (0..=MAX_POPPED).contains(&popped).then_some(CodeRule {
            by_frame_pointer: base == FP,
            end,
            popped,
            saved,
        })
    }

    /// The rule in a function's body: pushes, room on the stack and a frame pointer at its begin make
    /// its frame.
    #[must_use]
    pub fn by_prologue(code: &[u8], begin: u64, pc: u64) -> Option<Self> {
        let until = usize::try_from(pc.checked_sub(begin)?).ok()?;
        let mut decoder = Decoder::with_ip(64, code.get(..until)?, begin, DecoderOptions::NONE);
        // The stack pointer is so far below the frame's end.
        let mut depth: i64 = 8;
        let (mut saved, mut frame_pointer) = (None, None);
        for insn in &mut decoder {
            let is_to =
                |register| insn.op0_kind() == OpKind::Register && insn.op0_register() == register;
            match insn.mnemonic() {
                Mnemonic::Push if insn.op0_kind() == OpKind::Register => {
                    depth += 8;
                    if is_to(Register::RBP) && saved.is_none() && frame_pointer.is_none() {
                        saved = Some(-depth);
                    }
                }
                Mnemonic::Sub if is_to(Register::RSP) => {
                    let bytes = has_immediate(&insn).then(|| insn.immediate(1).cast_signed());
                    depth += bytes.filter(|bytes| (0..MAX_FRAME).contains(bytes))?;
                }
                Mnemonic::Lea if is_to(Register::RBP) && insn.memory_base() == Register::RSP => {
                    let above = insn.memory_displacement64().cast_signed();
                    let is_plain = insn.memory_index() == Register::None;
                    let within = (0..depth).contains(&above) && is_plain;
                    frame_pointer = Some(within.then_some(depth - above)?);
                }
                Mnemonic::Mov if is_to(Register::RBP) && insn.op1_register() == Register::RSP => {
                    frame_pointer = Some(depth);
                }
                Mnemonic::Endbr64 | Mnemonic::Vzeroupper | Mnemonic::Nop => {}
                _ if makes_room(&insn) && frame_pointer.is_none() => return None,
                _ => break,
            }
        }
        // A frame that grows later has another size.
        if frame_pointer.is_none() && decoder.iter().any(|insn| makes_room(&insn)) {
            return None;
        }
        let (by_frame_pointer, end) = frame_pointer.map_or((false, depth), |end| (true, end));
        if by_frame_pointer && saved.is_none() {
            return None;
        }
        Some(CodeRule {
            by_frame_pointer,
            end,
            popped: 0,
            saved: saved.map(|offset: i64| offset + end),
        })
    }
}

/// Whether an instruction takes the stack pointer elsewhere than an epilogue does.
fn makes_room(insn: &Instruction) -> bool {
    let is_stack = insn.op0_kind() == OpKind::Register && insn.op0_register() == Register::RSP;
    let is_harmless = matches!(
        insn.mnemonic(),
        Mnemonic::Add | Mnemonic::Pop | Mnemonic::Cmp | Mnemonic::Test
    );
    insn.mnemonic() == Mnemonic::Push || (is_stack && !is_harmless)
}

/// Whether the instruction at `pc` belongs to no epilogue.
fn is_in_body(code: &[u8], begin: u64, pc: u64) -> bool {
    let offset = usize::try_from(pc.wrapping_sub(begin)).ok();
    let Some(code) = offset.and_then(|offset| code.get(offset..)) else {
        return false;
    };
    let insn = Decoder::new(64, code, DecoderOptions::NONE).decode();
    let writes_stack = insn.op0_kind() == OpKind::Register && insn.op0_register() == Register::RSP;
    !insn.is_invalid()
        && !matches!(insn.mnemonic(), Mnemonic::Pop | Mnemonic::Leave)
        && !writes_stack
        && !matches!(
            insn.flow_control(),
            FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
        )
}

/// Offset behind the first call of code without a branch before it.
#[must_use]
pub fn behind_first_call(code: &[u8]) -> Option<usize> {
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    for insn in &mut decoder {
        match insn.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => {
                return usize::try_from(insn.next_ip()).ok();
            }
            FlowControl::Next if !insn.is_invalid() => {}
            _ => return None,
        }
    }
    None
}

/// Whether code ends with a call.
#[must_use]
pub fn ends_with_call(code: &[u8]) -> bool {
    (MIN_CALL_BYTES..=MAX_CALL_BYTES).rev().any(|length| {
        let Some(bytes) = code.len().checked_sub(length).and_then(|at| code.get(at..)) else {
            return false;
        };
        let insn = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        let flow = insn.flow_control();
        insn.len() == length && matches!(flow, FlowControl::Call | FlowControl::IndirectCall)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vmscope_records::{Avma, StackBytes, TimeNs};

    use super::*;
    use crate::CopiedStack;

    const BEGIN: u64 = 0x1000;

    /// `sub $8,%rsp; call *%rcx; add $8,%rsp; ret` (CPython 3.12 and 3.13).
    const TRAMPOLINE: &[u8] = &[
        0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3,
    ];

    /// A rule by the stack pointer.
    fn by_sp(end: i64, saved: Option<i64>) -> Option<CodeRule> {
        Some(CodeRule {
            by_frame_pointer: false,
            end,
            popped: 0,
            saved,
        })
    }

    fn by_fp(end: i64, saved: i64) -> Option<CodeRule> {
        Some(CodeRule {
            by_frame_pointer: true,
            end,
            popped: 0,
            saved: Some(saved),
        })
    }

    fn at(code: &[u8], offset: u64) -> Option<CodeRule> {
        CodeRule::of_function(code, BEGIN, BEGIN + offset, true)
    }

    #[test]
    fn trampolines_of_cpython_at_each_instruction() {
        for (offset, end) in [(0, 8), (4, 16), (6, 16), (10, 8)] {
            assert_eq!(at(TRAMPOLINE, offset), by_sp(end, None), "{offset}");
        }
        // After the call, the code itself says so; before it, only its bounds.
        assert_eq!(CodeRule::of_straight(&TRAMPOLINE[6..]), by_sp(16, None));
        assert_eq!(CodeRule::of_straight(TRAMPOLINE), None);
        let with_frame = [
            0x55, // push %rbp
            0x48, 0x89, 0xe5, // mov %rsp,%rbp
            0xff, 0xd1, // call *%rcx
            0x5d, // pop %rbp
            0xc3, // ret
        ];
        assert_eq!(at(&with_frame, 0), by_sp(8, None));
        assert_eq!(at(&with_frame, 1), by_sp(16, Some(0)));
        assert_eq!(at(&with_frame, 6), by_sp(16, Some(0)));
    }

    #[test]
    fn a_method_of_dotnet_without_frame_pointer() {
        let method = [
            0x50, // push %rax
            0xe8, 1, 2, 3, 4, // call
            0xff, 0xc0, // inc %eax
            0x48, 0x83, 0xc4, 0x08, // add $8,%rsp
            0xc3, // ret
        ];
        assert_eq!(at(&method, 6), by_sp(16, None));
        // The stack pointer is not a number.
        assert_eq!(at(&[0x48, 0x83, 0xe4, 0xf0, 0xc3], 0), None);
    }

    #[test]
    fn a_method_with_frame_pointer_and_room_of_any_size() {
        let method = [
            0x55, // push %rbp
            0x53, // push %rbx
            0x48, 0x83, 0xec, 0x18, // sub $0x18,%rsp
            0x48, 0x8d, 0x6c, 0x24, 0x20, // lea 0x20(%rsp),%rbp
            0x48, 0x29, 0xc4, // sub %rax,%rsp
            0xff, 0xd1, // call *%rcx
            0x48, 0x8d, 0x65, 0xf8, // lea -0x8(%rbp),%rsp
            0x5b, // pop %rbx
            0x5d, // pop %rbp
            0xc3, // ret
        ];
        assert_eq!(at(&method, 16), by_fp(16, 0));
        assert_eq!(at(&method, 21), by_sp(16, Some(0)));
        // No instruction tells the stack pointer after `sub %rax`, but the prologue tells the frame.
        assert_eq!(
            CodeRule::by_prologue(&method, BEGIN, BEGIN + 11),
            by_fp(16, 0)
        );
    }

    #[test]
    fn a_loop_without_end_has_the_frame_of_its_prologue() {
        let method = [
            0x55, // push %rbp
            0x50, // push %rax
            0xff, 0xd1, // call *%rcx
            0xeb, 0xfc, // jmp to the call
        ];
        assert_eq!(at(&method, 2), by_sp(24, Some(8)));
        assert_eq!(
            CodeRule::of_function(&method, BEGIN, BEGIN + 4, false),
            by_sp(24, Some(8))
        );
        // An epilogue may end like this.
        assert_eq!(at(&method, 4), None);
    }

    #[test]
    fn a_return_removes_arguments() {
        let method = [
            0x55, // push %rbp
            0x48, 0x89, 0xe5, // mov %rsp,%rbp
            0x48, 0x89, 0xec, // mov %rbp,%rsp
            0x5d, // pop %rbp
            0xc2, 0x18, 0x00, // ret $0x18
        ];
        let rule = |by_frame_pointer, end, saved| {
            Some(CodeRule {
                by_frame_pointer,
                end,
                popped: 24,
                saved,
            })
        };
        assert_eq!(at(&method, 0), rule(false, 32, None));
        assert_eq!(at(&method, 4), rule(true, 40, Some(0)));
        assert_eq!(at(&method, 8), rule(false, 32, None));
    }

    #[test]
    fn a_return_removes_as_many_arguments_as_the_caller_passed() {
        let method = [
            0x48, 0x8b, 0x4d, 0xe8, // mov -0x18(%rbp),%rcx
            0xc9, // leave
            0x41, 0x5a, // pop %r10
            0x48, 0x8d, 0x24, 0xcc, // lea (%rsp,%rcx,8),%rsp
            0x41, 0x52, // push %r10
            0xc3, // ret
        ];
        assert_eq!(at(&method, 0), by_fp(16, 0));
        assert_eq!(at(&method, 5), by_sp(8, None));
        // Only a register has the return address.
        assert_eq!(at(&method, 7), None);
        let added = [
            0x59, // pop %rcx
            0x48, 0x01, 0xdc, // add %rbx,%rsp
            0x51, // push %rcx
            0xc3, // ret
        ];
        assert_eq!(at(&added, 0), by_sp(8, None));
    }

    #[test]
    fn a_frame_that_grows_after_the_prologue_has_no_rule() {
        let method = [
            0x53, // push %rbx
            0x4c, 0x8d, 0x5c, 0x24, 0x80, // lea -0x80(%rsp),%r11
            0xff, 0xd0, // call *%rax
            0x4c, 0x89, 0xdc, // mov %r11,%rsp
            0xff, 0xd1, // call *%rcx
            0xeb, 0xfc, // jmp to the call
        ];
        let in_body = |pc| CodeRule::of_function(&method, BEGIN, BEGIN + pc, false);
        assert_eq!(in_body(13), None);
        assert_eq!(in_body(8), by_sp(16, None));
    }

    #[test]
    fn a_rule_finds_the_caller() {
        let stack = StackBytes {
            sp: Avma(0x7000),
            bytes: [1_u64, 2, 3, 4]
                .into_iter()
                .flat_map(u64::to_le_bytes)
                .collect(),
        };
        let stack = CopiedStack::of(&stack);
        let frame = |fp: u64| Frame {
            registers: FrameRegisters {
                pc: 0,
                sp: 0x7000,
                fp,
            },
            sampled: None,
            stack: &stack,
            time: TimeNs(0),
        };
        let found = |rule: Option<CodeRule>, fp| rule.expect("a rule").caller(&frame(fp));
        let caller = |pc, sp, fp| Ok(FrameRegisters { pc, sp, fp });
        assert_eq!(found(by_sp(16, None), 77), caller(2, 0x7010, 77));
        assert_eq!(found(by_sp(16, Some(0)), 77), caller(2, 0x7010, 1));
        assert_eq!(found(by_fp(16, 0), 0x7010), caller(4, 0x7020, 3));
        assert_eq!(found(by_fp(16, 0), 77), Err(ChainEnd::Broken));
        assert_eq!(found(by_sp(80, None), 77), Err(ChainEnd::Stack));
    }

    #[test]
    fn calls_of_all_lengths() {
        let calls: [&[u8]; 6] = [
            &[0xe8, 1, 2, 3, 4],
            &[0xff, 0xd0],
            &[0x41, 0xff, 0xd2],
            &[0xff, 0x53, 0x10],
            &[0xff, 0x93, 0x10, 0x20, 0, 0],
            &[0x41, 0xff, 0x94, 0x24, 0x10, 0, 0, 0],
        ];
        for call in calls {
            let code = [&[0x90; 8], call].concat();
            assert!(ends_with_call(&code), "{call:x?}");
            assert!(!ends_with_call(&[call, &[0x90]].concat()), "{call:x?}");
        }
        assert!(!ends_with_call(&[]) && !ends_with_call(&[0xff; 9]));
        let code = [0xbb, 0x10, 0, 0, 0, 0xe8, 1, 2, 3, 4, 0x50];
        assert_eq!(behind_first_call(&code), Some(10));
        assert_eq!(behind_first_call(&code[..9]), None);
        assert_eq!(
            behind_first_call(&[&[0xeb, 0x00], &code[..]].concat()),
            None
        );
    }

    /// Parts of a function after its prologue. All ways out restore the frame pointer.
    const PARTS: [&[u8]; 8] = [
        &[0x90],                                        // nop
        &[0x50],                                        // push %rax
        &[0x48, 0x83, 0xe4, 0xf0],                      // and $-16,%rsp
        &[0xe8, 1, 2, 3, 4],                            // call
        &[0x74, 0x02, 0x0f, 0x0b],                      // je over ud2
        &[0x90, 0x75, 0xfd],                            // nop; jne to it
        &[0x74, 0x05, 0x48, 0x89, 0xec, 0x5d, 0xc3],    // je over mov %rbp,%rsp; pop %rbp; ret
        &[0x48, 0x89, 0xec, 0x5d, 0xe9, 0, 0, 0, 0x10], // mov %rbp,%rsp; pop %rbp; jmp out of the code
    ];

    proptest! {
        /// The rule for all code on a way to a return is the rule that this code has by itself.
        #[test]
        fn a_rule_reaches_as_far_as_it_says(
            parts in proptest::collection::vec(0..PARTS.len(), 1..40),
            from in any::<proptest::sample::Index>(),
        ) {
            let mut code = vec![0x55, 0x48, 0x89, 0xe5]; // push %rbp; mov %rsp,%rbp
            let mut places = vec![0, 1];
            for part in parts.into_iter().chain([6]) {
                places.push(code.len() as u64);
                code.extend(PARTS[part]);
            }
            let pc = BEGIN + places[from.index(places.len())];
            let jumps = Jumps::TailLast;
            let own = |pc| CodeRule::of_returning(&code, BEGIN, pc, jumps);
            if let Some((rule, reach)) = CodeRule::with_reach((&code, BEGIN), pc, jumps, |_| None) {
                prop_assert!(reach.is_empty() || rule.by_frame_pointer);
                for place in places.iter().map(|at| BEGIN + at) {
                    if reach.iter().any(|code| code.contains(&place)) {
                        prop_assert_eq!(own(place), Some(rule), "{:x}", place);
                        // What is known ends the search early.
                        let known = |at| (at == place).then_some(rule);
                        let with = CodeRule::with_reach((&code, BEGIN), pc, jumps, known);
                        prop_assert_eq!(with.map(|(rule, _)| rule), Some(rule));
                    }
                }
            }
        }

        #[test]
        fn any_code_ends(code in proptest::collection::vec(any::<u8>(), 0..300), pc in 0_u64..400) {
            for is_innermost in [false, true] {
                let _ = CodeRule::of_function(&code, BEGIN, BEGIN + pc, is_innermost);
            }
            let _ = CodeRule::of_straight(&code);
        }
    }
}
