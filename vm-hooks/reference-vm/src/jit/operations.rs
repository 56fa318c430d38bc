//! Special selectors: the short ways for SmallIntegers, Arrays and Strings.

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::compile::{Compiler, Entry};
use super::trampolines::{Stub, stub};
use crate::compiler::bytecodes::SPECIAL_SELECTORS;
use crate::memory::Oop;

// Indices of special selectors.
const ADD: usize = 0;
const SUBTRACT: usize = 1;
const LESS: usize = 2;
const NOT_EQUAL: usize = 7;
const MULTIPLY: usize = 8;
const MODULO: usize = 10;
const BIT_SHIFT: usize = 12;
const INTEGER_DIVIDE: usize = 13;
const BIT_AND: usize = 14;
const BIT_OR: usize = 15;
pub(super) const AT: usize = 16;
pub(super) const AT_PUT: usize = 17;
pub(super) const SIZE: usize = 18;
const SAME: usize = 22;
const CLASS: usize = 23;
const NOT_SAME: usize = 24;

impl Compiler<'_> {
    /// Compiles a special selector, possibly with the following jump; returns the next bytecode
    /// offset.
    pub(super) fn special(&mut self, index: usize, next: usize) -> Option<usize> {
        match index {
            LESS..=NOT_EQUAL | SAME | NOT_SAME => return Some(self.compare(index, next)),
            ADD | SUBTRACT | MULTIPLY | MODULO | BIT_SHIFT | INTEGER_DIVIDE | BIT_AND | BIT_OR => {
                self.arithmetic(index, next);
            }
            AT => self.at(next),
            AT_PUT => self.at_put(next),
            SIZE => self.size(next),
            CLASS => {
                self.pop_rax();
                dynasm!(self.ops
                    ; .arch x64
                    ; mov rcx, rax
                    ; call QWORD [rbx + stub(Stub::Class)]
                );
                self.stack.push(Entry::Result);
            }
            _ => self.special_send(index, next),
        }
        Some(next)
    }

    /// Pops two operands: the first into rax, the second into rcx.
    pub(super) fn operands(&mut self) {
        self.pop_rcx();
        self.pop_rax();
        // Deeper results were flushed earlier, or are in rax.
    }

    /// Slow path: sends with operands in registers (the last of two operands in `rcx`). The answer
    /// arrives in rax; deferred entries stay deferred.
    pub(super) fn send_slowly(&mut self, index: usize, next: usize, push: impl Fn(&mut Self)) {
        let (selector, num_args) = (self.source.special[index], SPECIAL_SELECTORS[index].1);
        let deferred = self.stack.clone();
        for entry in &deferred {
            self.push_entry(*entry);
        }
        push(self);
        dynasm!(self.ops ; .arch x64 ; mov rdx, [rsp + 8 * num_args as i32]);
        self.call_site(selector, num_args, None, next);
        dynasm!(self.ops ; .arch x64 ; add rsp, 8 * (1 + deferred.len() as i32));
    }

    /// Slow path of two operands in rax and rcx; with `constant`, rcx still lacks the second operand.
    fn send_with_two(&mut self, index: usize, next: usize, constant: Option<i32>) {
        if let Some(value) = constant {
            dynasm!(self.ops ; .arch x64 ; mov rcx, value << 3 | 1);
        }
        self.send_slowly(index, next, |compiler| {
            dynasm!(compiler.ops ; .arch x64 ; push rax ; push rcx);
        });
    }

    /// Pops two operands like `operands`; does not load a constant second operand.
    fn operands_or(&mut self, constant: Option<i32>) {
        if constant.is_none() {
            return self.operands();
        }
        self.stack.pop();
        self.pop_rax();
    }

    /// The last operand, if a known SmallInteger constant.
    fn known_integer(&self) -> Option<i32> {
        match self.stack.last() {
            Some(Entry::Constant(value)) => {
                let value = Oop(*value).as_integer()?;
                i32::try_from(value)
                    .ok()
                    .filter(|value| value.abs() < 1 << 27)
            }
            _ => None,
        }
    }

    /// Jumps to `slow` unless rax and rcx are SmallIntegers: the only oops with bit 0.
    fn check_integers(&mut self, slow: dynasmrt::DynamicLabel, known: Option<i32>) {
        if known.is_some() {
            dynasm!(self.ops ; .arch x64 ; test al, 1 ; jz =>slow);
        } else {
            dynasm!(self.ops
                ; .arch x64
                ; mov esi, eax
                ; and esi, ecx
                ; test esi, 1
                ; jz =>slow
            );
        }
    }

    fn compare(&mut self, index: usize, next: usize) -> usize {
        let is_identity = matches!(index, SAME | NOT_SAME);
        let known = self.known_integer();
        self.operands_or(known);
        let jump = self.jump_at(next);
        if jump.is_some() {
            self.flush();
        }
        let slow = self.ops.new_dynamic_label();
        let done = self.ops.new_dynamic_label();
        if !is_identity {
            self.check_integers(slow, known);
        }
        match known {
            Some(value) => dynasm!(self.ops ; .arch x64 ; cmp rax, value << 3 | 1),
            None => dynasm!(self.ops ; .arch x64 ; cmp rax, rcx),
        }
        if let Some((wanted, to, after)) = jump {
            let to_label = self.label(to);
            self.boundary(next);
            // The comparison's condition, or its opposite.
            match (index, wanted) {
                (2, true) | (5, false) => dynasm!(self.ops ; .arch x64 ; jl =>to_label),
                (3, true) | (4, false) => dynasm!(self.ops ; .arch x64 ; jg =>to_label),
                (4, true) | (3, false) => dynasm!(self.ops ; .arch x64 ; jle =>to_label),
                (5, true) | (2, false) => dynasm!(self.ops ; .arch x64 ; jge =>to_label),
                (6 | SAME, true) | (7 | NOT_SAME, false) => {
                    dynasm!(self.ops ; .arch x64 ; je =>to_label);
                }
                _ => dynasm!(self.ops ; .arch x64 ; jne =>to_label),
            }
            if !is_identity {
                self.rarely(move |compiler| {
                    dynasm!(compiler.ops ; .arch x64 ;=>slow);
                    if known.is_none() {
                        compiler.jump_if_floats(index, wanted, to_label, done);
                    }
                    compiler.send_with_two(index, next, known);
                    compiler.begin(next, after);
                    compiler.jump_if(wanted, next, to);
                    dynasm!(compiler.ops ; .arch x64 ; jmp =>done);
                });
            }
            dynasm!(self.ops ; .arch x64 ;=>done);
            return after;
        }
        dynasm!(self.ops ; .arch x64 ; mov rax, r15);
        match index {
            2 => dynasm!(self.ops ; .arch x64 ; cmovl rax, r14),
            3 => dynasm!(self.ops ; .arch x64 ; cmovg rax, r14),
            4 => dynasm!(self.ops ; .arch x64 ; cmovle rax, r14),
            5 => dynasm!(self.ops ; .arch x64 ; cmovge rax, r14),
            6 | SAME => dynasm!(self.ops ; .arch x64 ; cmove rax, r14),
            _ => dynasm!(self.ops ; .arch x64 ; cmovne rax, r14),
        }
        if !is_identity {
            self.rarely(move |compiler| {
                dynasm!(compiler.ops ; .arch x64 ;=>slow);
                if known.is_none() {
                    compiler.compare_floats(index, done);
                }
                compiler.send_with_two(index, next, known);
                dynasm!(compiler.ops ; .arch x64 ; jmp =>done);
            });
        }
        dynasm!(self.ops ; .arch x64 ;=>done);
        self.stack.push(Entry::Result);
        next
    }

    fn arithmetic(&mut self, index: usize, next: usize) {
        let known = self.known_integer();
        let constant = known.filter(|_| matches!(index, ADD | SUBTRACT));
        self.operands_or(constant);
        let slow = self.ops.new_dynamic_label();
        let done = self.ops.new_dynamic_label();
        self.check_integers(slow, known);
        let overflow = self.ops.new_dynamic_label();
        match index {
            ADD | SUBTRACT => {
                self.add(index == ADD, constant);
                dynasm!(self.ops ; .arch x64 ; jo =>overflow);
                match (index, constant) {
                    (ADD, None) => dynasm!(self.ops ; .arch x64 ; dec rax),
                    (_, None) => dynasm!(self.ops ; .arch x64 ; inc rax),
                    _ => {}
                }
            }
            MULTIPLY => dynasm!(self.ops
                ; .arch x64
                ; lea rsi, [rax - 1]
                ; mov rdi, rcx
                ; sar rdi, 3
                ; imul rsi, rdi
                ; jo =>slow
                ; lea rax, [rsi + 1]
            ),
            BIT_AND => dynasm!(self.ops ; .arch x64 ; and rax, rcx),
            BIT_OR => dynasm!(self.ops ; .arch x64 ; or rax, rcx),
            BIT_SHIFT => self.shift(slow),
            _ => self.divide(index, slow),
        }
        self.rarely(move |compiler| {
            dynasm!(compiler.ops ; .arch x64 ;=>overflow);
            if matches!(index, ADD | SUBTRACT) {
                // Undoes the operation.
                compiler.add(index != ADD, constant);
            }
            dynasm!(compiler.ops ; .arch x64 ;=>slow);
            if known.is_none() && matches!(index, ADD | SUBTRACT | MULTIPLY) {
                compiler.float_arithmetic(index, done);
            }
            compiler.send_with_two(index, next, constant);
            dynasm!(compiler.ops ; .arch x64 ; jmp =>done);
        });
        dynasm!(self.ops ; .arch x64 ;=>done);
        self.stack.push(Entry::Result);
    }

    /// Adds the constant or rcx to rax, or subtracts. The tags of rax and rcx add up.
    fn add(&mut self, adds: bool, constant: Option<i32>) {
        match (adds, constant) {
            (true, Some(value)) => dynasm!(self.ops ; .arch x64 ; add rax, value << 3),
            (false, Some(value)) => dynasm!(self.ops ; .arch x64 ; sub rax, value << 3),
            (true, None) => dynasm!(self.ops ; .arch x64 ; add rax, rcx),
            (false, None) => dynasm!(self.ops ; .arch x64 ; sub rax, rcx),
        }
    }

    /// Compiles arithmetic on two SmallFloat64s; jumps to `done` if the result is a SmallFloat64.
    fn float_arithmetic(&mut self, index: usize, done: dynasmrt::DynamicLabel) {
        dynasm!(self.ops
            ; .arch x64
            ; call QWORD [rbx + stub(Stub::LoadFloats)]
            ; test edx, edx
            ; jz >send
        );
        match index {
            ADD => dynasm!(self.ops ; .arch x64 ; addsd xmm0, xmm1),
            SUBTRACT => dynasm!(self.ops ; .arch x64 ; subsd xmm0, xmm1),
            _ => dynasm!(self.ops ; .arch x64 ; mulsd xmm0, xmm1),
        }
        dynasm!(self.ops
            ; .arch x64
            ; call QWORD [rbx + stub(Stub::StoreFloat)]
            ; test rdx, rdx
            ; jz >send
            ; mov rax, rdx
            ; jmp =>done
            ;send:
        );
    }

    /// Compares two SmallFloat64s (never NaN); jumps to `done` with true or false.
    fn compare_floats(&mut self, index: usize, done: dynasmrt::DynamicLabel) {
        dynasm!(self.ops
            ; .arch x64
            ; call QWORD [rbx + stub(Stub::LoadFloats)]
            ; test edx, edx
            ; jz >send
            ; ucomisd xmm0, xmm1
            ; mov rax, r15
        );
        match index {
            2 => dynasm!(self.ops ; .arch x64 ; cmovb rax, r14),
            3 => dynasm!(self.ops ; .arch x64 ; cmova rax, r14),
            4 => dynasm!(self.ops ; .arch x64 ; cmovbe rax, r14),
            5 => dynasm!(self.ops ; .arch x64 ; cmovae rax, r14),
            6 => dynasm!(self.ops ; .arch x64 ; cmove rax, r14),
            _ => dynasm!(self.ops ; .arch x64 ; cmovne rax, r14),
        }
        dynasm!(self.ops ; .arch x64 ; jmp =>done ;send:);
    }

    /// Compares two SmallFloat64s; jumps to `to` if the result equals `wanted`, otherwise to
    /// `done`.
    fn jump_if_floats(
        &mut self,
        index: usize,
        wanted: bool,
        to: dynasmrt::DynamicLabel,
        done: dynasmrt::DynamicLabel,
    ) {
        dynasm!(self.ops
            ; .arch x64
            ; call QWORD [rbx + stub(Stub::LoadFloats)]
            ; test edx, edx
            ; jz >send
            ; ucomisd xmm0, xmm1
        );
        match (index, wanted) {
            (2, true) | (5, false) => dynasm!(self.ops ; .arch x64 ; jb =>to),
            (3, true) | (4, false) => dynasm!(self.ops ; .arch x64 ; ja =>to),
            (4, true) | (3, false) => dynasm!(self.ops ; .arch x64 ; jbe =>to),
            (5, true) | (2, false) => dynasm!(self.ops ; .arch x64 ; jae =>to),
            (6, true) | (7, false) => dynasm!(self.ops ; .arch x64 ; je =>to),
            _ => dynasm!(self.ops ; .arch x64 ; jne =>to),
        }
        dynasm!(self.ops ; .arch x64 ; jmp =>done ;send:);
    }

    /// `//` and `\\`: rounded towards negative infinity.
    fn divide(&mut self, index: usize, slow: dynasmrt::DynamicLabel) {
        dynasm!(self.ops
            ; .arch x64
            ; mov rdi, rcx
            ; sar rdi, 3
            ; lea rsi, [rdi + 1]
            ; cmp rsi, 1
            ; jbe =>slow            // -1 and 0
            ; sar rax, 3
            ; cqo
            ; idiv rdi
            ; test rdx, rdx
            ; jz >exact
            ; mov rsi, rdx
            ; xor rsi, rdi
            ; jns >exact
            ; add rdx, rdi
            ; dec rax
            ;exact:
        );
        if index == MODULO {
            dynasm!(self.ops ; .arch x64 ; lea rax, [rdx * 8 + 1]);
        } else {
            dynasm!(self.ops ; .arch x64 ; lea rax, [rax * 8 + 1]);
        }
    }

    fn shift(&mut self, slow: dynasmrt::DynamicLabel) {
        dynasm!(self.ops
            ; .arch x64
            ; mov r9, rcx
            ; mov rsi, rax
            ; sar rsi, 3
            ; sar rcx, 3
            ; js >right
            ; cmp rcx, 61
            ; ja >restore
            ; mov rdx, rsi
            ; shl rdx, cl
            ; mov r8, rdx
            ; sar r8, cl
            ; cmp r8, rsi
            ; jne >restore
            ; lea r8, [rdx * 8]
            ; mov r11, r8
            ; sar r11, 3
            ; cmp r11, rdx
            ; jne >restore
            ; lea rax, [r8 + 1]
            ; jmp >shifted
            ;restore:
            ; mov rcx, r9
            ; jmp =>slow
            ;right:
            ; neg rcx
            ; mov edx, 63
            ; cmp rcx, rdx
            ; cmova rcx, rdx
            ; sar rsi, cl
            ; lea rax, [rsi * 8 + 1]
            ;shifted:
        );
    }
}
