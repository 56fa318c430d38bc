use super::*;
use proptest::prelude::*;
use vmscope_records::{Arch, Avma, Registers, StackBytes, TimeNs};

const SP: u64 = 0x7000;
const FP: u64 = 0x7040;

/// Runs `code` with a stack of words 0x100, 0x101, … from [`SP`] on.
fn caller(code: &[u8], jumps: Jumps) -> Option<(u64, u64, u64)> {
    let words = (0x100_u64..0x120).flat_map(u64::to_le_bytes);
    let stack = StackBytes {
        sp: Avma(SP),
        bytes: words.collect(),
    };
    let registers = Registers {
        arch: Arch::X86_64,
        mask: 0x00ff_01ff,
        values: (0..17).map(|number| 0x9000 + number).collect(),
    };
    let frame = Frame {
        registers: FrameRegisters {
            pc: 0x1000,
            sp: SP,
            fp: FP,
        },
        sampled: Some(&registers),
        stack: &stack,
        time: TimeNs(0),
    };
    let caller = Run::new(code, 0x1000, &frame).caller(100, jumps)?;
    Some((caller.pc, caller.sp, caller.fp))
}

#[test]
fn an_epilogue_returns() {
    let epilogue = [
        0x48, 0x83, 0xc4, 0x10, // add rsp, 0x10
        0x5d, // pop rbp
        0x49, 0x3b, 0x67, 0x28, // cmp rsp, [r15+0x28]
        0x0f, 0x87, 0x00, 0x10, 0x00, 0x00, // ja beyond the code
        0xc3, // ret
    ];
    let popped = Some((0x103, SP + 0x20, 0x102));
    assert_eq!(caller(&epilogue, Jumps::Unknown), popped);
    assert_eq!(
        caller(&epilogue[4..], Jumps::Unknown),
        Some((0x101, SP + 0x10, 0x100))
    );
    assert_eq!(
        caller(&epilogue[5..], Jumps::Unknown),
        Some((0x100, SP + 8, FP))
    );
    assert_eq!(
        caller(&[0xc2, 0x10, 0x00], Jumps::Unknown),
        Some((0x100, SP + 0x18, FP))
    );
}

#[test]
fn leave_takes_the_frame_pointers_frame() {
    assert_eq!(
        caller(&[0xc9, 0xc3], Jumps::Unknown),
        Some((0x109, FP + 0x10, 0x108))
    );
}

#[test]
fn loops_end() {
    let routine = [
        0x48, 0xff, 0xc9, // dec rcx
        0x74, 0x02, // je out
        0xeb, 0xf9, // jmp begin
        0xc3, // out: ret
    ];
    assert_eq!(caller(&routine, Jumps::Tail), Some((0x100, SP + 8, FP)));
    assert_eq!(caller(&[0xeb, 0xfe], Jumps::Tail), None);
}

#[test]
fn what_is_pushed_is_popped() {
    let routine = [
        0x55, // push rbp
        0x48, 0x8b, 0xec, // mov rbp, rsp
        0x48, 0x83, 0xe4, 0xf0, // and rsp, -16
        0xe8, 0x00, 0x10, 0x00, 0x00, // call
        0xc9, // leave
        0xc3, // ret
    ];
    assert_eq!(caller(&routine, Jumps::Tail), Some((0x100, SP + 8, FP)));
}

#[test]
fn an_adapter_jumps_with_the_return_address_on_top() {
    let adapter = [
        0x58, // pop rax
        0x48, 0x83, 0xec, 0x20, // sub rsp, 0x20
        0x50, // push rax
        0xff, 0x63, 0x40, // jmp [rbx+0x40]
    ];
    let tail = Some((0x100, SP - 0x18, FP));
    assert_eq!(caller(&adapter, Jumps::Tail), tail);
    assert_eq!(caller(&adapter, Jumps::Return), None);
    assert_eq!(caller(&adapter, Jumps::Unknown), None);
}

#[test]
fn the_interpreter_returns_by_a_register() {
    let code = [
        0x41, 0x5d, // pop r13
        0x48, 0x8b, 0xe3, // mov rsp, rbx
        0x41, 0xff, 0xe5, // jmp r13
    ];
    // rbx is register 1 of the kernel.
    assert_eq!(caller(&code, Jumps::Return), Some((0x100, 0x9001, FP)));
}

#[test]
fn a_stub_for_exceptions_pops_its_return_address_and_jumps_to_the_handler() {
    let code = [
        0x5a, // pop rdx
        0xff, 0xe3, // jmp rbx
    ];
    assert_eq!(caller(&code, Jumps::Popped), Some((0x100, SP + 8, FP)));
    // The handler in rbx, register 1 of the kernel, is in the caller, too.
    let handler = Some((0x9001, SP, FP));
    assert_eq!(caller(&code[1..], Jumps::Popped), handler);
}

#[test]
fn an_unknown_stack_pointer_is_no_answer() {
    // mov rsp, [rax]; ret
    assert_eq!(caller(&[0x48, 0x8b, 0x20, 0xc3], Jumps::Tail), None);
}

proptest! {
    /// Whatever the code, a run ends.
    #[test]
    fn any_code_ends(code in proptest::collection::vec(any::<u8>(), 0..300)) {
        for jumps in [Jumps::Tail, Jumps::Return, Jumps::Popped, Jumps::Unknown] {
            caller(&code, jumps);
        }
    }
}
