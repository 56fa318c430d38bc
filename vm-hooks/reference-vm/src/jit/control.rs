//! Jumps and returns.

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::compile::{Compiler, target};
use super::trampolines::{Stub, stub};
use crate::compiler::bytecodes::{Instruction, decode};

impl Compiler<'_> {
    /// Returns to the caller and drops the arguments. rax and the receiver's place hold the result.
    pub(super) fn ret(&mut self) {
        match self.source.num_args {
            0 => dynasm!(self.ops ; .arch x64 ; ret),
            n => dynasm!(self.ops ; .arch x64 ; ret (8 * n) as i16),
        }
    }

    pub(super) fn method_return(&mut self) {
        if self.source.num_copied.is_none() {
            return self.local_return();
        }
        self.pop_rax();
        self.flush();
        dynasm!(self.ops ; .arch x64 ; push rax ; call QWORD [rbx + stub(Stub::MethodReturn)]);
    }

    pub(super) fn local_return(&mut self) {
        self.pop_rax();
        self.stack.clear();
        let n = self.source.num_args as i32;
        dynasm!(self.ops
            ; .arch x64
            ; cmp [rbp - 16], r12
            ; jne >token
            ; mov [rbp + 8 * (n + 2)], rax
            ; mov rsp, rbp
            ; pop rbp
        );
        self.ret();
        dynasm!(self.ops
            ; .arch x64
            ;token:
            ; push rax
            ; call QWORD [rbx + stub(Stub::Return)]
        );
    }

    /// Returns already in front of a returning bytecode that several ways reach: the result need
    /// not go through memory. Answers whether the bytecode returns.
    pub(super) fn return_early(&mut self, at: usize) -> bool {
        match decode(self.source.bytecodes, at) {
            Ok((Instruction::ReturnTop, _)) if self.source.num_copied.is_none() => {}
            Ok((Instruction::BlockReturnTop, _)) => {}
            _ => return false,
        }
        self.boundary(at);
        self.local_return();
        self.boundary(at + 1);
        true
    }

    pub(super) fn jump(&mut self, to: usize, backward: bool) {
        if !backward && self.return_early(to) {
            return;
        }
        self.flush();
        let label = self.label(to);
        if backward {
            dynasm!(self.ops
                ; .arch x64
                ; cmp rsp, [r13]
                ; jae =>label
                ; call QWORD [rbx + stub(Stub::Interrupt)]
            );
            self.resume(to);
        }
        dynasm!(self.ops ; .arch x64 ; jmp =>label);
    }

    /// Jumps to a bytecode if rax equals the wanted Boolean. No entry is deferred.
    pub(super) fn jump_if(&mut self, wanted: bool, at: usize, to: usize) {
        let to = self.label(to);
        let again = self.ops.new_dynamic_label();
        let other = self.ops.new_dynamic_label();
        dynasm!(self.ops ; .arch x64 ;=>again);
        if wanted {
            dynasm!(self.ops ; .arch x64 ; cmp rax, r14 ; je =>to ; cmp rax, r15);
        } else {
            dynasm!(self.ops ; .arch x64 ; cmp rax, r15 ; je =>to ; cmp rax, r14);
        }
        dynasm!(self.ops ; .arch x64 ; jne =>other);
        self.rarely(move |compiler| {
            dynasm!(compiler.ops
                ; .arch x64
                ;=>other
                ; push rax
                ; mov rdx, rax
                ; call QWORD [rbx + stub(Stub::MustBeBoolean)]
            );
            compiler.resume(at);
            dynasm!(compiler.ops ; .arch x64 ; pop rax ; jmp =>again);
        });
    }

    /// The conditional jump at `at`, unless another jump targets `at`: wanted Boolean, jump target,
    /// next bytecode.
    pub(super) fn jump_at(&self, at: usize) -> Option<(bool, usize, usize)> {
        if self.is_target.get(at).copied().unwrap_or(true) {
            return None;
        }
        let (instruction, length) = decode(self.source.bytecodes, at).ok()?;
        match instruction {
            Instruction::JumpTrue(distance) => {
                Some((true, target(at + length, distance)?, at + length))
            }
            Instruction::JumpFalse(distance) => {
                Some((false, target(at + length, distance)?, at + length))
            }
            _ => None,
        }
    }
}
