//! Trampolines, from machine code into Rust, and enilopmarts, the other way.
//!
//! Registers of machine code: rsp is the Smalltalk stack, rbp the frame, rbx the [`Context`], r12 nil, r13
//! the address of the stack limit, r14 true, r15 false. At a send rdx is the receiver, eax the class
//! that the inline cache expects. All other registers are scratch.

use dynasmrt::x64::X64Relocation;
use dynasmrt::{DynasmApi, DynasmLabelApi, VecAssembler, dynasm};

use super::Context;
use super::glue;
use crate::memory::classes;

/// Assembler without a meaningful base address: all code is relocatable.
pub(super) type Assembler = VecAssembler<X64Relocation>;

/// Declares the trampolines' numbers and names.
macro_rules! stubs {
    ($($name:ident $text:literal)*) => {
        /// Numbers of trampolines.
        #[derive(Clone, Copy, Debug)]
        pub(super) enum Stub { $($name),* }
        /// Names of trampolines; Cog's names where applicable.
        pub(super) const NAMES: &[&str] = &[$($text),*];
    };
}

stubs! {
    Enter "ceEnterMachineCode"
    Exit "ceExitMachineCode"
    ReturnToInterpreter "ceReturnToInterpreter"
    Send "ceSendMiss"
    OpenSend "ceSendFromOpenPIC"
    Interrupt "ceCheckForInterrupt"
    MustBeBoolean "ceSendMustBeBoolean"
    Return "ceEndContextAndReturn"
    MethodReturn "ceNonLocalReturn"
    Control "ceControlPrimitive"
    Primitive "cePrimitive"
    OutOfMemory "ceOutOfMemory"
    StoreCheck "ceStoreCheck"
    Closure "ceCreateFullBlock"
    Array "ceNewArray"
    Class "ceClass"
    LoadFloats "ceLoadFloats"
    StoreFloat "ceStoreFloat"
}

/// Number of trampolines.
pub(super) const COUNT: usize = Stub::StoreFloat as usize + 1;

/// Context offset of a trampoline's address.
pub(super) const fn stub(stub: Stub) -> i32 {
    std::mem::offset_of!(Context, stubs) as i32 + 8 * stub as i32
}

/// Context offset of a field.
macro_rules! field {
    ($name:ident) => {
        std::mem::offset_of!(super::Context, $name) as i32
    };
}
pub(super) use field;

/// Offset in `ceReturnToInterpreter` of the address that frames return to. Profilers look up
/// the byte before a return address: it belongs to the same trampoline.
pub(super) const RETURN: usize = 1;

/// Leaves the Smalltalk stack for a call that chooses the next address. Moves the machine code's
/// return address from the stack into the frame.
fn call_out(ops: &mut Assembler, function: usize) {
    dynasm!(ops
        ; .arch x64
        ; pop rsi
        ; mov [rbp - 32], rsi
    );
    call_away(ops, function);
}

/// Calls a function with the VM, the word in rsi, stack and frame; jumps to the address
/// chosen by the function. The function may build frames, so it runs on the C stack. There rbp is
/// the frame that `ceEnterMachineCode` made: frame pointers lead to the native callers.
fn call_away(ops: &mut Assembler, function: usize) {
    dynasm!(ops
        ; .arch x64
        ; mov rdx, rsp
        ; mov rcx, rbp
        ; mov rdi, [rbx + field!(vm)]
        ; mov rsp, [rbx + field!(c_sp)]
        ; lea rbp, [rsp + 48]
        ; mov rax, QWORD function as i64
        ; call rax
    );
    go_to_next(ops);
}

/// Continues machine code at the chosen address: with the result in rax, for code behind a send,
/// and the receiver in rdx, for a method.
fn go_to_next(ops: &mut Assembler) {
    dynasm!(ops
        ; .arch x64
        ; mov rsp, [rbx + field!(next_sp)]
        ; mov rbp, [rbx + field!(next_fp)]
        ; mov rax, [rsp]
        ; mov rdx, [rbx + field!(receiver)]
        ; jmp QWORD [rbx + field!(next_pc)]
    );
}

/// Calls a function that returns, on the Smalltalk stack: profilers find the callers there.
/// Arguments: the VM, the stack pointer above `words` return addresses, the frame, rcx and r8.
/// The function must not build frames.
fn call_leaf(ops: &mut Assembler, words: i32, function: usize) {
    dynasm!(ops
        ; .arch x64
        ; lea rsi, [rsp + 8 * words]
        ; mov rdx, rbp
        ; mov rdi, [rbx + field!(vm)]
        ; mov r10, rsp
        ; and rsp, BYTE -16
        ; sub rsp, BYTE 16
        ; mov [rsp], r10
        ; mov rax, QWORD function as i64
        ; call rax
        ; mov rsp, [rsp]
        ; ret
    );
}

/// Loads the class index of the object in rdx into ecx; an immediate value's is its tag.
pub(super) fn load_receiver_class(ops: &mut Assembler) {
    dynasm!(ops
        ; .arch x64
        ; mov ecx, edx
        ; and ecx, 7
        ; jnz BYTE >tagged
        ; mov ecx, [rdx]
        ; and ecx, 0x3f_ffff
        ;tagged:
    );
}

/// Jumps to machine code of the closure in rdx, if the argument count matches and code exists.
pub(super) fn jump_to_block(ops: &mut Assembler, num_args: usize) {
    let count = (num_args as i32) << 3 | 1;
    dynasm!(ops
        ; .arch x64
        ; test dl, 7
        ; jnz >slow
        ; mov eax, [rdx]
        ; and eax, 0x3f_ffff
        ; cmp eax, classes::BLOCK_CLOSURE as i32
        ; jne >slow
        ; cmp QWORD [rdx + 24], count
        ; jne >slow
        ; mov rax, [rdx + 16]
        ; mov rax, [rax + 8]
        ; shl rax, 1
        ; shr rax, 40
        ; jz >slow
        ; shl rax, 4
        ; add rax, [rbx + field!(zone_base)]
        ; jmp rax
        ;slow:
    );
}

/// Assembles all trampolines; returns their code and start offsets.
pub(super) fn assemble() -> (Vec<u8>, [usize; COUNT]) {
    let mut ops = Assembler::new(0);
    let mut offsets = [0; COUNT];
    let mut begin = |ops: &mut Assembler, stub: Stub| {
        dynasm!(ops ; .arch x64 ; .align 16);
        offsets[stub as usize] = ops.offset().0;
    };
    let ops = &mut ops;
    begin(ops, Stub::Enter);
    dynasm!(ops
        ; .arch x64
        ; push rbp
        ; push rbx
        ; push r12
        ; push r13
        ; push r14
        ; push r15
        ; sub rsp, 8
        ; mov rbx, rdi
        ; mov [rbx + field!(c_sp)], rsp
        ; mov r12, [rbx + field!(nil)]
        ; mov r13, [rbx + field!(limit)]
        ; mov r14, [rbx + field!(yes)]
        ; mov r15, [rbx + field!(no)]
    );
    go_to_next(ops);
    begin(ops, Stub::Exit);
    dynasm!(ops
        ; .arch x64
        ; mov rsp, [rbx + field!(c_sp)]
        ; add rsp, 8
        ; pop r15
        ; pop r14
        ; pop r13
        ; pop r12
        ; pop rbx
        ; pop rbp
        ; ret
    );
    begin(ops, Stub::ReturnToInterpreter);
    dynasm!(ops
        ; .arch x64
        ; nop                         // RETURN bytes
        ; test rbp, rbp
        ; jz >out
        ; mov rcx, [rbp - 32]
        ; mov rdx, rcx
        ; sub rdx, [rbx + field!(zone_base)]
        ; cmp rdx, [rbx + field!(zone_bytes)]
        ; jae >out
        ; jmp rcx
        ;out:
    );
    call_away(ops, glue::return_to_interpreter as *const () as usize);
    for (stub, function) in [
        (Stub::Send, glue::send as *const () as usize),
        (Stub::OpenSend, glue::open_send as *const () as usize),
        (Stub::Interrupt, glue::interrupt as *const () as usize),
        (
            Stub::MustBeBoolean,
            glue::must_be_boolean as *const () as usize,
        ),
        (Stub::Return, glue::return_value as *const () as usize),
        (
            Stub::MethodReturn,
            glue::method_return as *const () as usize,
        ),
        (Stub::Control, glue::control as *const () as usize),
        (Stub::OutOfMemory, glue::out_of_memory as *const () as usize),
    ] {
        begin(ops, stub);
        call_out(ops, function);
    }
    begin(ops, Stub::Primitive);
    // A primitive runs on behalf of the caller's frame.
    dynasm!(ops
        ; .arch x64
        ; mov rax, [rsp + 8]
        ; mov [rbp - 32], rax
    );
    call_leaf(ops, 2, glue::primitive as *const () as usize);
    begin(ops, Stub::StoreCheck);
    // Keeps rax, the value; the object is in rsi.
    dynasm!(ops
        ; .arch x64
        ; mov rcx, rsi
        ; mov [rbx + field!(value)], rax
        ; call >leaf
        ; mov rax, [rbx + field!(value)]
        ; ret
        ;leaf:
    );
    call_leaf(ops, 1, glue::store_check as *const () as usize);
    for (stub, function) in [
        (Stub::Closure, glue::closure as *const () as usize),
        (Stub::Array, glue::array as *const () as usize),
        (Stub::Class, glue::class as *const () as usize),
    ] {
        begin(ops, stub);
        call_leaf(ops, 1, function);
    }
    begin(ops, Stub::LoadFloats);
    load_floats(ops);
    begin(ops, Stub::StoreFloat);
    store_float(ops);
    dynasm!(ops ; .arch x64 ; .align 16);
    let code = std::mem::replace(ops, Assembler::new(0)).finalize();
    (code.unwrap_or_default(), offsets)
}

/// Exponent bias difference between floats and SmallFloat64s, at its position in the rotated value.
const FLOAT_OFFSET: i64 = 896 << 53;

/// Loads SmallFloat64s from rax and rcx into xmm0 and xmm1. edx: 1 on success, 0 for other
/// operands.
fn load_floats(ops: &mut Assembler) {
    dynasm!(ops
        ; .arch x64
        ; mov edx, eax
        ; and edx, ecx
        ; and edx, 4
        ; jz >other
        ; mov r8, QWORD FLOAT_OFFSET
        ; mov rsi, rax
        ; shr rsi, 3
        ; cmp rsi, 1
        ; jbe >zero
        ; add rsi, r8
        ;zero:
        ; ror rsi, 1
        ; movq xmm0, rsi
        ; mov rsi, rcx
        ; shr rsi, 3
        ; cmp rsi, 1
        ; jbe >zero
        ; add rsi, r8
        ;zero:
        ; ror rsi, 1
        ; movq xmm1, rsi
        ;other:
        ; ret
    );
}

/// Converts xmm0 to a SmallFloat64 in rdx; 0 if out of range.
fn store_float(ops: &mut Assembler) {
    dynasm!(ops
        ; .arch x64
        ; movq rsi, xmm0
        ; rol rsi, 1
        ; cmp rsi, 1
        ; jbe >zero
        ; mov r8, QWORD FLOAT_OFFSET
        ; sub rsi, r8
        ; cmp rsi, 1
        ; jbe >large
        ; mov rdx, rsi
        ; shr rdx, 61
        ; jnz >large
        ;zero:
        ; lea rdx, [rsi * 8 + 4]
        ; ret
        ;large:
        ; xor edx, edx
        ; ret
    );
}
