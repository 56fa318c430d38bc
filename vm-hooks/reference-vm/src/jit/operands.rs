//! The operand stack, whose last entries may be deferred; variables.

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::compile::{Compiler, Entry};
use super::glue::NEXT_SHIFT;
use super::trampolines::{Stub, field, stub};
use crate::interpreter::objects;
use crate::memory::Oop;

/// The object that a store changes.
#[derive(Clone, Copy)]
pub(super) enum Object {
    Receiver,
    Temp(usize),
    Permanent(Oop),
}

impl Compiler<'_> {
    pub(super) fn literal(&self, index: usize) -> Oop {
        objects::slot(self.source.method, index + 1)
    }

    /// Offset of a temp from the frame pointer.
    pub(super) fn temp(&self, index: usize) -> i32 {
        let (index, count) = (index as i32, self.source.num_args as i32);
        if index < count {
            8 * (count + 1 - index)
        } else {
            8 * (count - index - 6)
        }
    }

    /// Puts all entries into memory. Keeps all registers but r10.
    pub(super) fn flush(&mut self) {
        for entry in std::mem::take(&mut self.stack) {
            self.push_entry(entry);
        }
    }

    pub(super) fn push_entry(&mut self, entry: Entry) {
        match entry {
            Entry::Constant(value) => {
                if let Ok(value) = i32::try_from(value.cast_signed()) {
                    dynasm!(self.ops ; .arch x64 ; push DWORD value);
                } else if value == self.source.nil.0 {
                    dynasm!(self.ops ; .arch x64 ; push r12);
                } else if value == self.source.yes.0 {
                    dynasm!(self.ops ; .arch x64 ; push r14);
                } else if value == self.source.no.0 {
                    dynasm!(self.ops ; .arch x64 ; push r15);
                } else {
                    dynasm!(self.ops ; .arch x64 ; mov r10, QWORD value as i64 ; push r10);
                }
            }
            Entry::Temp(index) => {
                let temp = self.temp(index);
                dynasm!(self.ops ; .arch x64 ; push QWORD [rbp + temp]);
            }
            Entry::Receiver => dynasm!(self.ops ; .arch x64 ; push QWORD [rbp - 40]),
            Entry::Result => dynasm!(self.ops ; .arch x64 ; push rax),
        }
    }

    /// Frees rax: flushes deferred entries up to and including the entry in rax.
    pub(super) fn flush_result(&mut self) {
        if let Some(at) = self.stack.iter().position(|entry| *entry == Entry::Result) {
            let rest = self.stack.split_off(at + 1);
            self.flush();
            self.stack = rest;
        }
    }

    /// Pops into rax.
    pub(super) fn pop_rax(&mut self) {
        let Some(entry) = self.stack.pop() else {
            if self.is_top_in_rax() {
                dynasm!(self.ops ; .arch x64 ; add rsp, 8);
            } else {
                dynasm!(self.ops ; .arch x64 ; pop rax);
            }
            return;
        };
        if entry != Entry::Result {
            self.flush_result();
        }
        match entry {
            Entry::Constant(value) => self.load_constant(value),
            Entry::Temp(index) => {
                let temp = self.temp(index);
                dynasm!(self.ops ; .arch x64 ; mov rax, [rbp + temp]);
            }
            Entry::Receiver if self.ops.offset().0 == self.receiver_loaded => {
                dynasm!(self.ops ; .arch x64 ; mov rax, rdx);
            }
            Entry::Receiver => dynasm!(self.ops ; .arch x64 ; mov rax, [rbp - 40]),
            Entry::Result => {}
        }
    }

    pub(super) fn load_constant(&mut self, value: u64) {
        if let Ok(value) = i32::try_from(value.cast_signed()) {
            dynasm!(self.ops ; .arch x64 ; mov rax, value);
        } else {
            dynasm!(self.ops ; .arch x64 ; mov rax, QWORD value as i64);
        }
    }

    /// Pops into rcx. Keeps rax.
    pub(super) fn pop_rcx(&mut self) {
        match self.stack.pop() {
            None if self.is_top_in_rax() => {
                dynasm!(self.ops ; .arch x64 ; mov rcx, rax ; add rsp, 8);
            }
            None => dynasm!(self.ops ; .arch x64 ; pop rcx),
            Some(Entry::Constant(value)) => {
                if let Ok(value) = i32::try_from(value.cast_signed()) {
                    dynasm!(self.ops ; .arch x64 ; mov rcx, value);
                } else {
                    dynasm!(self.ops ; .arch x64 ; mov rcx, QWORD value as i64);
                }
            }
            Some(Entry::Temp(index)) => {
                let temp = self.temp(index);
                dynasm!(self.ops ; .arch x64 ; mov rcx, [rbp + temp]);
            }
            Some(Entry::Receiver) => dynasm!(self.ops ; .arch x64 ; mov rcx, [rbp - 40]),
            Some(Entry::Result) => dynasm!(self.ops ; .arch x64 ; mov rcx, rax),
        }
    }

    pub(super) fn store_temp(&mut self, index: usize, keep: bool) {
        self.pop_rax();
        if self.stack.contains(&Entry::Temp(index)) {
            self.flush();
        }
        let temp = self.temp(index);
        dynasm!(self.ops ; .arch x64 ; mov [rbp + temp], rax);
        if keep {
            self.stack.push(Entry::Result);
        }
    }

    pub(super) fn store_field(&mut self, index: usize, object: Object, keep: bool) {
        let needs_barrier = !matches!(self.stack.last(), Some(Entry::Constant(_)));
        self.pop_rax();
        match object {
            Object::Receiver => dynasm!(self.ops ; .arch x64 ; mov rsi, [rbp - 40]),
            Object::Temp(index) => {
                let temp = self.temp(index);
                dynasm!(self.ops ; .arch x64 ; mov rsi, [rbp + temp]);
            }
            Object::Permanent(oop) => {
                dynasm!(self.ops ; .arch x64 ; mov rsi, QWORD oop.0 as i64);
            }
        }
        let field = 8 + 8 * index as i32;
        dynasm!(self.ops ; .arch x64 ; mov [rsi + field], rax);
        if needs_barrier {
            self.barrier();
        }
        if keep {
            self.stack.push(Entry::Result);
        }
    }

    /// Write barrier after storing rax into the object in rsi. Preserves rax.
    pub(super) fn barrier(&mut self) {
        dynasm!(self.ops
            ; .arch x64
            ; test al, 7
            ; jnz >done
            ; mov rcx, rax
            ; sub rcx, [rbx + field!(new_start)]
            ; cmp rcx, [rbx + field!(new_bytes)]
            ; jae >done
            ; mov rcx, rsi
            ; sub rcx, [rbx + field!(new_start)]
            ; cmp rcx, [rbx + field!(new_bytes)]
            ; jb >done
            ; call QWORD [rbx + stub(Stub::StoreCheck)]
            ;done:
        );
    }

    pub(super) fn array(&mut self, count: usize, popped: usize, next: usize) {
        self.flush();
        let operand = popped as i32 | (next as i32) << NEXT_SHIFT;
        dynasm!(self.ops
            ; .arch x64
            ; mov ecx, count as i32
            ; mov r8d, operand
            ; call QWORD [rbx + stub(Stub::Array)]
        );
        self.new_object(popped);
    }

    /// Takes a new object, or ends without memory; drops what it was made of.
    pub(super) fn new_object(&mut self, popped: usize) {
        dynasm!(self.ops
            ; .arch x64
            ; test rax, rax
            ; jnz >made
            ; call QWORD [rbx + stub(Stub::OutOfMemory)]
            ;made:
        );
        if popped > 0 {
            dynasm!(self.ops ; .arch x64 ; add rsp, 8 * popped as i32);
        }
        self.stack.push(Entry::Result);
    }
}
