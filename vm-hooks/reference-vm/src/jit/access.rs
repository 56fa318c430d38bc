//! `at:`, `at:put:` and `size` of Arrays and Strings.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::compile::{Compiler, Entry};
use super::operations::{AT, AT_PUT, SIZE};
use crate::memory::classes;

const ARRAY: i32 = classes::ARRAY as i32;
const STRING: i32 = classes::STRING as i32;

impl Compiler<'_> {
    /// Loads the slot count of the object in rax into rdi. Preserves all other registers.
    pub(super) fn load_slots(&mut self) {
        dynasm!(self.ops
            ; .arch x64
            ; movzx edi, BYTE [rax + 7]
            ; cmp edi, 255
            ; jne >few
            ; mov rdi, [rax - 8]
            ; shl rdi, 8
            ; shr rdi, 8
            ;few:
        );
    }

    /// Class index of the object in rax into esi; to `slow` with an immediate value.
    pub(super) fn load_class(&mut self, slow: DynamicLabel) {
        dynasm!(self.ops
            ; .arch x64
            ; test al, 7
            ; jnz =>slow
            ; mov esi, [rax]
            ; and esi, 0x3f_ffff
        );
    }

    pub(super) fn at(&mut self, next: usize) {
        self.operands();
        let slow = self.ops.new_dynamic_label();
        let done = self.ops.new_dynamic_label();
        let string = self.ops.new_dynamic_label();
        dynasm!(self.ops ; .arch x64 ; test cl, 1 ; jz =>slow);
        self.load_class(slow);
        dynasm!(self.ops ; .arch x64 ; cmp esi, ARRAY ; jne =>string);
        self.load_slots();
        dynasm!(self.ops
            ; .arch x64
            ; shl rdi, 3
            ; lea rsi, [rcx - 9]        // 8 × (index − 1)
            ; cmp rsi, rdi
            ; jae =>slow
            ; mov rax, [rax + rsi + 8]
        );
        self.rarely(move |compiler| {
            dynasm!(compiler.ops ; .arch x64 ;=>string ; cmp esi, STRING ; jne =>slow);
            compiler.load_bytes();
            dynasm!(compiler.ops
                ; .arch x64
                ; mov rsi, rcx
                ; sar rsi, 3
                ; dec rsi
                ; cmp rsi, rdi
                ; jae =>slow
                ; movzx eax, BYTE [rax + rsi + 8]
                ; lea rax, [rax * 8 + 2]
                ; jmp =>done
                ;=>slow
            );
            compiler.send_slowly(AT, next, |compiler| {
                dynasm!(compiler.ops ; .arch x64 ; push rax ; push rcx);
            });
            dynasm!(compiler.ops ; .arch x64 ; jmp =>done);
        });
        dynasm!(self.ops ; .arch x64 ;=>done);
        self.stack.push(Entry::Result);
    }

    /// Loads the byte count of the bytes object in rax into rdi.
    pub(super) fn load_bytes(&mut self) {
        self.load_slots();
        dynasm!(self.ops
            ; .arch x64
            ; shl rdi, 3
            ; movzx edx, BYTE [rax + 3]
            ; and edx, 7
            ; sub rdi, rdx
        );
    }

    pub(super) fn at_put(&mut self, next: usize) {
        let needs_barrier = !matches!(self.stack.last(), Some(Entry::Constant(_)));
        // Value in r8, index in rcx, Array in rax.
        self.pop_rcx();
        dynasm!(self.ops ; .arch x64 ; mov r8, rcx);
        self.pop_rcx();
        self.pop_rax();
        let slow = self.ops.new_dynamic_label();
        let done = self.ops.new_dynamic_label();
        dynasm!(self.ops ; .arch x64 ; test cl, 1 ; jz =>slow);
        self.load_class(slow);
        dynasm!(self.ops ; .arch x64 ; cmp esi, ARRAY ; jne =>slow);
        self.load_slots();
        dynasm!(self.ops
            ; .arch x64
            ; shl rdi, 3
            ; lea rdx, [rcx - 9]        // 8 × (index − 1)
            ; cmp rdx, rdi
            ; jae =>slow
            ; mov [rax + rdx + 8], r8
            ; mov rsi, rax
            ; mov rax, r8
        );
        if needs_barrier {
            self.barrier();
        }
        self.rarely(move |compiler| {
            dynasm!(compiler.ops ; .arch x64 ;=>slow);
            compiler.send_slowly(AT_PUT, next, |compiler| {
                dynasm!(compiler.ops ; .arch x64 ; push rax ; push rcx ; push r8);
            });
            dynasm!(compiler.ops ; .arch x64 ; jmp =>done);
        });
        dynasm!(self.ops ; .arch x64 ;=>done);
        self.stack.push(Entry::Result);
    }

    pub(super) fn size(&mut self, next: usize) {
        self.pop_rax();
        let slow = self.ops.new_dynamic_label();
        let done = self.ops.new_dynamic_label();
        let string = self.ops.new_dynamic_label();
        self.load_class(slow);
        dynasm!(self.ops ; .arch x64 ; cmp esi, ARRAY ; jne =>string);
        self.load_slots();
        dynasm!(self.ops ; .arch x64 ; lea rax, [rdi * 8 + 1]);
        self.rarely(move |compiler| {
            dynasm!(compiler.ops ; .arch x64 ;=>string ; cmp esi, STRING ; jne =>slow);
            compiler.load_bytes();
            dynasm!(compiler.ops ; .arch x64 ; lea rax, [rdi * 8 + 1] ; jmp =>done ;=>slow);
            compiler.send_slowly(SIZE, next, |compiler| {
                dynasm!(compiler.ops ; .arch x64 ; push rax);
            });
            dynasm!(compiler.ops ; .arch x64 ; jmp =>done);
        });
        dynasm!(self.ops ; .arch x64 ;=>done);
        self.stack.push(Entry::Result);
    }
}
