//! Runs the machine code after a sampled pc to its return, with the sample's registers and stack. The
//! run knows the stack pointer on each path, and so the return address; all paths of correct code
//! agree.

use std::ops::Range;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};
use vmscope_records::Registers;

use super::{Frame, FrameRegisters};

/// Meaning of a jump out of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jumps {
    /// A jump to other code, which returns in its place: a tail call.
    Tail,
    /// A tail call, if no path returns.
    TailLast,
    /// A jump through a register is the return (`templateTable_x86.cpp`, `_return`).
    Return,
    /// A jump through a register leads to code of the caller, whose return address was popped, or else is in
    /// that register (`c1_Runtime1_x86.cpp`, `generate_unwind_exception`).
    Popped,
    /// Unknown: the run fails.
    Unknown,
}

/// Maximum number of paths that wait.
const MAX_PATHS: usize = 64;

/// Maximum number of remembered stores to the stack.
const MAX_STORES: usize = 64;

/// Values of registers and stack on one path; `None` if unknown.
#[derive(Clone, Debug)]
struct Values {
    registers: [Option<u64>; 16],
    /// Stores to the stack, newest last.
    stores: Vec<(u64, Option<u64>)>,
    /// The word popped last.
    popped: Option<u64>,
}

/// Code that was met.
struct Met(Vec<u64>);

impl Met {
    fn new(code: &[u8]) -> Self {
        Met(vec![0; code.len().div_ceil(64)])
    }

    /// Takes an offset in the code; returns whether it is new.
    fn put(&mut self, offset: usize) -> bool {
        let bit = 1 << (offset % 64);
        let word = self.0.get_mut(offset / 64);
        word.is_some_and(|word| std::mem::replace(word, *word | bit) & bit == 0)
    }
}

/// A path that waits.
struct Path {
    ip: u64,
    values: Values,
    /// Number of ranges of [`Run::framed`] before it, and the end of the last range.
    framed: (usize, Option<u64>),
}

/// A run.
pub struct Run<'a> {
    code: &'a [u8],
    begin: u64,
    from: FrameRegisters,
    sampled: Option<&'a Registers>,
    /// The target's stack.
    word: Box<dyn Fn(u64) -> Option<u64> + 'a>,
    /// Callers of code that still has the frame pointer of the run's begin.
    known: Box<dyn Fn(u64) -> Option<FrameRegisters> + 'a>,
    framed: Vec<Range<u64>>,
    /// A return, or an unknown stack pointer, was met.
    depends_on_values: bool,
    info: InstructionInfoFactory,
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

/// Register numbers of the kernel (`perf_regs.h`), by the processor's numbers.
const KERNEL: [u32; 16] = [0, 2, 3, 1, 7, 6, 4, 5, 16, 17, 18, 19, 20, 21, 22, 23];

/// Registers that C functions do not preserve (System V ABI).
const SCRATCH: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

/// Value of a register in the innermost frame.
#[must_use]
pub fn sampled_register(frame: &Frame<'_>, register: Register) -> Option<u64> {
    frame.sampled?.value(*KERNEL.get(register.number())?)
}

enum Step {
    Next,
    Jump(u64),
    /// A branch: the next instruction follows, or the instruction at this address.
    Branch(u64),
    /// The caller's registers.
    Returns(FrameRegisters),
    /// Likewise, by a jump out of the code.
    Leaves(FrameRegisters),
    /// This path does not return.
    End,
}

impl<'a> Run<'a> {
    /// A run of `code`, which begins at `begin`, from the frame's pc.
    #[must_use]
    pub fn new(code: &'a [u8], begin: u64, frame: &'a Frame<'a>) -> Self {
        Run {
            sampled: frame.sampled,
            ..Run::with(code, begin, frame.registers, |at| frame.word(at).ok())
        }
    }

    /// A run with these registers and this stack.
    pub(super) fn with(
        code: &'a [u8],
        begin: u64,
        from: FrameRegisters,
        word: impl Fn(u64) -> Option<u64> + 'a,
    ) -> Self {
        Run {
            code,
            begin,
            from,
            sampled: None,
            word: Box::new(word),
            known: Box::new(|_| None),
            framed: Vec::new(),
            depends_on_values: false,
            info: InstructionInfoFactory::new(),
        }
    }

    /// Ends at code whose caller is known, if the frame pointer is that of the run's begin.
    pub(super) fn knowing(self, known: impl Fn(u64) -> Option<FrameRegisters> + 'a) -> Self {
        Run {
            known: Box::new(known),
            ..self
        }
    }

    /// Code on the path to the caller that was found, as long as it had the frame pointer of the run's begin.
    pub(super) fn into_framed(self) -> Vec<Range<u64>> {
        self.framed
    }

    /// Whether other registers or another stack may give another result. If not, no path from this pc
    /// returns within the run's number of instructions.
    #[must_use]
    pub fn depends_on_values(&self) -> bool {
        self.depends_on_values
    }

    /// The caller, if a path returns within `steps` instructions.
    #[must_use]
    pub fn caller(&mut self, steps: usize, jumps: Jumps) -> Option<FrameRegisters> {
        self.caller_if(steps, jumps, |_| true)
    }

    /// Likewise, of the first path whose caller `accept` takes.
    #[must_use]
    pub fn caller_if(
        &mut self,
        steps: usize,
        jumps: Jumps,
        mut accept: impl FnMut(&FrameRegisters) -> bool,
    ) -> Option<FrameRegisters> {
        let mut met = Met::new(self.code);
        let mut paths = vec![Path {
            ip: self.from.pc,
            values: self.values(),
            framed: (0, None),
        }];
        let mut tail = None;
        let mut left = steps;
        let mut insn = Instruction::default();
        while let Some(path) = paths.pop() {
            let (mut ip, mut values) = (path.ip, path.values);
            self.framed.truncate(path.framed.0);
            if let (Some(last), Some(end)) = (self.framed.last_mut(), path.framed.1) {
                last.end = end;
            }
            while left > 0 {
                let offset = usize::try_from(ip.wrapping_sub(self.begin)).ok();
                let Some(offset) = offset.filter(|offset| *offset < self.code.len()) else {
                    break;
                };
                let has_frame = values.get(Register::RBP) == Some(self.from.fp);
                if has_frame && let Some(caller) = (self.known)(ip).filter(&mut accept) {
                    return Some(caller);
                }
                if !met.put(offset) {
                    break;
                }
                left -= 1;
                let code = self.code.get(offset..).unwrap_or_default();
                Decoder::with_ip(64, code, ip, DecoderOptions::NONE).decode_out(&mut insn);
                if insn.is_invalid() {
                    break;
                }
                if has_frame {
                    self.put_framed(ip..insn.next_ip());
                }
                ip = match self.step(&insn, &mut values, jumps) {
                    Step::Next => insn.next_ip(),
                    Step::Jump(to) => to,
                    Step::Branch(to) => {
                        if paths.len() < MAX_PATHS {
                            paths.push(Path {
                                ip: to,
                                values: values.clone(),
                                framed: (
                                    self.framed.len(),
                                    self.framed.last().map(|last| last.end),
                                ),
                            });
                        }
                        insn.next_ip()
                    }
                    Step::Returns(caller) if accept(&caller) => return Some(caller),
                    Step::Leaves(caller) if jumps == Jumps::TailLast => {
                        let found = || (caller, self.framed.clone());
                        tail = tail.or_else(|| accept(&caller).then(found));
                        break;
                    }
                    Step::Leaves(caller) if accept(&caller) => return Some(caller),
                    Step::Returns(_) | Step::Leaves(_) | Step::End => break,
                };
            }
        }
        let (caller, framed) = tail?;
        self.framed = framed;
        Some(caller)
    }

    fn put_framed(&mut self, code: Range<u64>) {
        match self.framed.last_mut() {
            Some(last) if last.end == code.start => last.end = code.end,
            _ => self.framed.push(code),
        }
    }

    fn values(&self) -> Values {
        let of_caller = |number: usize| match number {
            4 => Some(self.from.sp),
            5 => Some(self.from.fp),
            _ => None,
        };
        let sampled = |number: usize| self.sampled?.value(*KERNEL.get(number)?);
        Values {
            registers: std::array::from_fn(|number| of_caller(number).or_else(|| sampled(number))),
            stores: Vec::new(),
            popped: None,
        }
    }

    fn step(&mut self, insn: &Instruction, values: &mut Values, jumps: Jumps) -> Step {
        let is_inside = |to: u64| {
            let offset = to.wrapping_sub(self.begin);
            offset < self.code.len() as u64
        };
        match insn.flow_control() {
            FlowControl::Next => return self.plain(insn, values),
            FlowControl::Call | FlowControl::IndirectCall => {
                for register in SCRATCH {
                    values.set(register, None);
                }
                return Step::Next;
            }
            FlowControl::ConditionalBranch => {
                let to = insn.near_branch_target();
                return match is_inside(to) {
                    true => Step::Branch(to),
                    false => Step::Next,
                };
            }
            FlowControl::UnconditionalBranch if is_inside(insn.near_branch_target()) => {
                return Step::Jump(insn.near_branch_target());
            }
            FlowControl::Return => {
                self.depends_on_values = true;
                let popped = u64::from(insn.immediate16()) * u64::from(insn.op_count() > 0);
                return self.returns(values, popped);
            }
            _ => {}
        }
        let is_by_register = insn.op0_kind() == OpKind::Register;
        match (insn.flow_control(), jumps) {
            (
                FlowControl::UnconditionalBranch | FlowControl::IndirectBranch,
                Jumps::Tail | Jumps::TailLast,
            ) => {
                self.depends_on_values = true;
                match self.returns(values, 0) {
                    Step::Returns(caller) => Step::Leaves(caller),
                    end => end,
                }
            }
            (FlowControl::IndirectBranch, Jumps::Return | Jumps::Popped) if is_by_register => {
                self.depends_on_values = true;
                let popped = values.popped.filter(|_| jumps == Jumps::Popped);
                let caller = || {
                    Some(FrameRegisters {
                        pc: popped.or_else(|| values.get(insn.op0_register()))?,
                        sp: values.get(Register::RSP)?,
                        fp: values.get(Register::RBP)?,
                    })
                };
                caller().map_or(Step::End, Step::Returns)
            }
            _ => Step::End,
        }
    }

    fn returns(&self, values: &Values, popped: u64) -> Step {
        let caller = || {
            let sp = values.get(Register::RSP)?;
            Some(FrameRegisters {
                pc: self.word(values, sp)?,
                sp: sp.wrapping_add(8).wrapping_add(popped),
                fp: values.get(Register::RBP)?,
            })
        };
        caller().map_or(Step::End, Step::Returns)
    }

    /// An instruction without control flow.
    fn plain(&mut self, insn: &Instruction, values: &mut Values) -> Step {
        let sp = values.get(Register::RSP);
        let is_stack = insn.op0_kind() == OpKind::Register && insn.op0_register() == Register::RSP;
        if is_stack && let Some(caller) = self.returns_over_arguments(insn, values) {
            self.depends_on_values = true;
            return Step::Returns(caller);
        }
        match insn.mnemonic() {
            Mnemonic::Push => {
                let value = match insn.op0_kind() {
                    OpKind::Register => values.get(insn.op0_register()),
                    _ => None,
                };
                let below = sp.map(|sp| sp.wrapping_sub(8));
                values.store(below, value);
                values.set(Register::RSP, below);
            }
            Mnemonic::Pop => {
                let value = sp.and_then(|sp| self.word(values, sp));
                values.popped = value;
                values.set(Register::RSP, sp.map(|sp| sp.wrapping_add(8)));
                if insn.op0_kind() == OpKind::Register {
                    values.set(insn.op0_register(), value);
                }
            }
            Mnemonic::Leave => {
                let fp = values.get(Register::RBP);
                values.set(Register::RBP, fp.and_then(|fp| self.word(values, fp)));
                values.set(Register::RSP, fp.map(|fp| fp.wrapping_add(8)));
            }
            Mnemonic::Mov if insn.op1_kind() == OpKind::Memory && is_word(insn) => {
                let at = values.address(insn);
                let value = at.and_then(|at| self.word(values, at));
                values.set(insn.op0_register(), value);
            }
            Mnemonic::Mov if insn.op0_kind() == OpKind::Memory => {
                let value = match insn.op1_kind() {
                    OpKind::Register if insn.op1_register().is_gpr64() => {
                        values.get(insn.op1_register())
                    }
                    _ => None,
                };
                values.store(values.address(insn), value);
            }
            Mnemonic::Mov if insn.op1_kind() == OpKind::Register && is_word(insn) => {
                values.set(insn.op0_register(), values.get(insn.op1_register()));
            }
            Mnemonic::Lea if is_word(insn) => {
                values.set(insn.op0_register(), values.address(insn));
            }
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::And if is_stack => {
                let by = has_immediate(insn).then(|| insn.immediate(1));
                let value = sp.zip(by).map(|(sp, by)| match insn.mnemonic() {
                    Mnemonic::Add => sp.wrapping_add(by),
                    Mnemonic::Sub => sp.wrapping_sub(by),
                    _ => sp & by,
                });
                values.set(Register::RSP, value);
            }
            _ => self.forget_written(insn, values),
        }
        match values.get(Register::RSP) {
            Some(_) => Step::Next,
            None => {
                self.depends_on_values = true;
                Step::End
            }
        }
    }

    /// The caller, if code takes its return address off the stack, removes arguments, and returns (V8:
    /// the caller passes their number). The caller's stack pointer then lies below the removed arguments.
    fn returns_over_arguments(
        &self,
        insn: &Instruction,
        values: &Values,
    ) -> Option<FrameRegisters> {
        let removes = match insn.mnemonic() {
            Mnemonic::Lea => insn.memory_index() != Register::None,
            Mnemonic::Add => insn.op1_kind() == OpKind::Register,
            _ => false,
        };
        let offset = usize::try_from(insn.next_ip().wrapping_sub(self.begin)).ok()?;
        let code = self.code.get(offset..).filter(|_| removes)?;
        let mut decoder = Decoder::with_ip(64, code, insn.next_ip(), DecoderOptions::NONE);
        let (push, ret) = (decoder.decode(), decoder.decode());
        let is_push = push.mnemonic() == Mnemonic::Push && push.op0_kind() == OpKind::Register;
        if !is_push || ret.flow_control() != FlowControl::Return {
            return None;
        }
        Some(FrameRegisters {
            pc: values.get(push.op0_register())?,
            sp: values.get(Register::RSP)?,
            fp: values.get(Register::RBP)?,
        })
    }

    fn forget_written(&mut self, insn: &Instruction, values: &mut Values) {
        for used in self.info.info(insn).used_registers() {
            let is_written = matches!(
                used.access(),
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            );
            if is_written && used.register().is_gpr() {
                values.set(used.register(), None);
            }
        }
    }

    /// A word of the stack.
    fn word(&self, values: &Values, at: u64) -> Option<u64> {
        let store = values.stores.iter().rev().find(|(to, _)| *to == at);
        match store {
            Some((_, value)) => *value,
            None => (self.word)(at),
        }
    }
}

fn is_word(insn: &Instruction) -> bool {
    insn.op0_kind() == OpKind::Register && insn.op0_register().is_gpr64()
}

/// Whether the second operand is a number for a 64-bit register.
pub(super) fn has_immediate(insn: &Instruction) -> bool {
    matches!(
        insn.op1_kind(),
        OpKind::Immediate8to64 | OpKind::Immediate32to64
    )
}

impl Values {
    fn get(&self, register: Register) -> Option<u64> {
        match register.is_gpr64() {
            true => self.registers.get(register.number()).copied().flatten(),
            false => None,
        }
    }

    fn set(&mut self, register: Register, value: Option<u64>) {
        let register = register.full_register();
        if register.is_gpr64()
            && let Some(place) = self.registers.get_mut(register.number())
        {
            *place = value;
        }
    }

    fn store(&mut self, at: Option<u64>, value: Option<u64>) {
        if let Some(at) = at {
            self.stores.retain(|(to, _)| *to != at);
            if self.stores.len() < MAX_STORES {
                self.stores.push((at, value));
            }
        }
    }

    /// The address of an instruction's memory operand.
    fn address(&self, insn: &Instruction) -> Option<u64> {
        let known = |register, _, _| match register {
            // Bases of segments that are not used.
            Register::DS | Register::SS | Register::ES => Some(0),
            register => self.get(register),
        };
        let operand = (0..insn.op_count()).find(|&n| insn.op_kind(n) == OpKind::Memory)?;
        insn.virtual_address(operand, 0, known)
    }
}

#[cfg(test)]
mod tests;
