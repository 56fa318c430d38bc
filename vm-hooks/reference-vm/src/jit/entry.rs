//! Entry of a method or block: class check of the receiver, primitive, frame.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::compile::{Compiler, Enter, offset};
use super::trampolines::{Stub, field, jump_to_block, load_receiver_class, stub};
use crate::compiler::bytecodes::{Instruction, decode};
use crate::memory::Oop;

/// Result of a frameless method.
#[derive(Clone, Copy)]
enum Answer {
    Constant(Oop),
    Variable(usize),
}

impl Compiler<'_> {
    /// Compiles a method that only returns a receiver variable, the receiver, or a constant: no
    /// frame needed. `None` for other methods.
    pub(super) fn frameless(&mut self) -> Option<()> {
        let source = self.source;
        if source.first > 0 || source.num_copied.is_some() {
            return None;
        }
        let (first, length) = decode(source.bytecodes, 0).ok()?;
        let answer = match first {
            Instruction::ReturnReceiver => None,
            Instruction::ReturnTrue => Some(Answer::Constant(source.yes)),
            Instruction::ReturnFalse => Some(Answer::Constant(source.no)),
            Instruction::ReturnNil => Some(Answer::Constant(source.nil)),
            _ => {
                let (second, _) = decode(source.bytecodes, length).ok()?;
                if second != Instruction::ReturnTop {
                    return None;
                }
                Some(match first {
                    Instruction::PushReceiverVariable(index) => Answer::Variable(index),
                    Instruction::PushLiteral(index) => Answer::Constant(self.literal(index)),
                    Instruction::PushInteger(value) => {
                        Answer::Constant(Oop::small(i64::from(value)))
                    }
                    _ => return None,
                })
            }
        };
        let miss = self.ops.new_dynamic_label();
        self.check_class(miss);
        let start = offset(self.ops.offset().0);
        (self.out.unchecked, self.out.frame) = (start, start);
        self.out.boundaries.push((start, 0));
        let n = source.num_args as i32;
        match answer {
            None => dynasm!(self.ops ; .arch x64 ; mov rax, [rsp + 8 * (n + 1)]),
            Some(Answer::Constant(value)) => self.load_constant(value.0),
            Some(Answer::Variable(index)) => dynasm!(self.ops
                ; .arch x64
                ; mov rdx, [rsp + 8 * (n + 1)]
                ; mov rax, [rdx + 8 + 8 * index as i32]
            ),
        }
        if answer.is_some() {
            self.boundary(length);
            dynasm!(self.ops ; .arch x64 ; mov [rsp + 8 * (n + 1)], rax);
        }
        self.ret();
        dynasm!(self.ops
            ; .arch x64
            ;=>miss
            ; jmp QWORD [rbx + stub(Stub::Send)]
        );
        Some(())
    }

    /// Jumps to `miss` unless the class of the receiver in rdx equals eax.
    pub(super) fn check_class(&mut self, miss: DynamicLabel) {
        load_receiver_class(&mut self.ops);
        dynasm!(self.ops ; .arch x64 ; cmp ecx, eax ; jne =>miss);
    }

    /// The entries: class check, primitive, frame.
    pub(super) fn enter(&mut self) {
        let source = self.source;
        let n = source.num_args as i32;
        let miss = self.ops.new_dynamic_label();
        let check = self.ops.new_dynamic_label();
        let begin = self.ops.new_dynamic_label();
        if source.num_copied.is_none() {
            self.check_class(miss);
        }
        self.out.unchecked = offset(self.ops.offset().0);
        let frame = self.ops.new_dynamic_label();
        match source.primitive {
            Enter::Nothing => {}
            Enter::Value(function) => {
                dynasm!(self.ops
                ; .arch x64
                ; mov ecx, n
                ; mov r8, QWORD function as i64
                ; call QWORD [rbx + stub(Stub::Primitive)]
                ; test rax, rax
                ; jz =>frame
                ; mov [rsp + 8 * (n + 1)], rax
                );
                self.ret();
            }
            Enter::Control(function) => {
                let number = crate::interpreter::primitive_number(source.method);
                if (201..=205).contains(&number) && number - 201 == source.num_args {
                    dynasm!(self.ops ; .arch x64 ; mov rdx, [rsp + 8 * (n + 1)]);
                    jump_to_block(&mut self.ops, source.num_args);
                }
                dynasm!(self.ops
                    ; .arch x64
                    ; lea r8, [=>frame]
                    ; mov r9, QWORD function as i64
                    ; mov DWORD [rbx + field!(count)], n
                    ; jmp QWORD [rbx + stub(Stub::Control)]
                );
            }
        }
        let build = self.ops.new_dynamic_label();
        let is_entered_here = !matches!(source.primitive, Enter::Nothing);
        if is_entered_here {
            self.frame_entry(frame);
        }
        // The receiver or closure is in rdx.
        dynasm!(self.ops
            ; .arch x64
            ;=>build
            ; push rbp
            ; mov rbp, rsp
            ; mov rax, QWORD source.method.0 as i64
            ; push rax
            ; push r12
            ; push DWORD Oop::small(source.flags).0 as i32
            ; push BYTE 0
        );
        let mut temps = source.num_temps - source.num_args;
        match source.num_copied {
            None => dynasm!(self.ops ; .arch x64 ; push rdx),
            Some(copied) => {
                dynasm!(self.ops ; .arch x64 ; push QWORD [rdx + 32]);
                for at in 0..copied as i32 {
                    dynasm!(self.ops ; .arch x64 ; push QWORD [rdx + 40 + 8 * at]);
                }
                temps = temps.saturating_sub(copied);
            }
        }
        for _ in 0..temps {
            dynasm!(self.ops ; .arch x64 ; push r12);
        }
        dynasm!(self.ops
            ; .arch x64
            ; cmp rsp, [r13]
            ; jb =>check
            ;=>begin
        );
        let (first, is_method) = (source.first, source.num_copied.is_none());
        if is_method {
            self.receiver_loaded = self.ops.offset().0;
        }
        self.rarely(move |compiler| {
            dynasm!(compiler.ops
                ; .arch x64
                ;=>check
                ; call QWORD [rbx + stub(Stub::Interrupt)]
            );
            compiler.resume(first);
            dynasm!(compiler.ops ; .arch x64 ; mov rdx, [rbp - 40] ; jmp =>begin);
            if is_method {
                dynasm!(compiler.ops ; .arch x64 ;=>miss ; jmp QWORD [rbx + stub(Stub::Send)]);
            }
            if !is_entered_here {
                compiler.frame_entry(frame);
                dynasm!(compiler.ops ; .arch x64 ; jmp =>build);
            }
        });
    }

    /// The entry that only builds the frame.
    fn frame_entry(&mut self, label: DynamicLabel) {
        let n = self.source.num_args as i32;
        self.out.frame = offset(self.ops.offset().0);
        dynasm!(self.ops ; .arch x64 ;=>label ; mov rdx, [rsp + 8 * (n + 1)]);
    }
}
