use super::*;
use crate::CopiedStack;
use proptest::prelude::*;
use vmscope_records::{Arch, Avma, Registers, StackBytes, TimeNs};

const SP: u64 = 0x7000;
const FP: u64 = 0x7040;

/// Runs `code` with a stack of words 0x100, 0x101, … from [`SP`] on.
fn caller(code: &[u8], jumps: Jumps) -> Option<(u64, u64, u64)> {
    run(code, jumps, (SP, FP, 0x9000), 0x20).0
}

/// The caller, and whether it depends on values. Registers have the value `first` and the next ones.
fn run(
    code: &[u8],
    jumps: Jumps,
    (sp, fp, first): (u64, u64, u64),
    words: u64,
) -> (Option<(u64, u64, u64)>, bool) {
    let words = (0x100..0x100 + words).flat_map(u64::to_le_bytes);
    let stack = StackBytes {
        sp: Avma(sp),
        bytes: words.collect(),
    };
    let registers = Registers {
        arch: Arch::X86_64,
        mask: 0x00ff_01ff,
        values: (0..17).map(|number| first + number).collect(),
    };
    let frame = Frame {
        registers: FrameRegisters { pc: 0x1000, sp, fp },
        sampled: Some(&registers),
        stack: &CopiedStack::of(&stack),
        time: TimeNs(0),
    };
    let mut run = Run::new(code, 0x1000, &frame);
    let caller = run.caller(100, jumps);
    let caller = caller.map(|caller| (caller.pc, caller.sp, caller.fp));
    (caller, run.depends_on_values())
}

/// Code of some instructions that change the stack pointer, jump or return.
fn returning_code() -> impl Strategy<Value = Vec<u8>> {
    let one = prop_oneof![
        Just(vec![0xc3]),                         // ret
        Just(vec![0x5d]),                         // pop rbp
        Just(vec![0x55]),                         // push rbp
        Just(vec![0xc9]),                         // leave
        Just(vec![0x59]),                         // pop rcx
        Just(vec![0xff, 0xe1]),                   // jmp rcx
        Just(vec![0x48, 0x8b, 0x20]),             // mov rsp, [rax]
        Just(vec![0x48, 0x8b, 0x24, 0x24]),       // mov rsp, [rsp]
        Just(vec![0x48, 0x8b, 0xe1]),             // mov rsp, rcx
        Just(vec![0x48, 0x83, 0xc4, 0x10]),       // add rsp, 0x10
        Just(vec![0x48, 0x8d, 0x64, 0xc4, 0x08]), // lea rsp, [rsp+8*rax+8]
        (0_u8..20).prop_map(|to| vec![0x74, to]), // je
        (0_u8..20).prop_map(|to| vec![0xeb, to]), // jmp
        any::<u8>().prop_map(|byte| vec![byte]),
    ];
    proptest::collection::vec(one, 0..20).prop_map(|all| all.concat())
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
    /// A result of code alone is the result with other registers and another stack.
    #[test]
    fn values_matter_where_a_run_says_so(
        code in returning_code(),
        words in 0_u64..0x20,
        sp in 0_u64..0x100,
    ) {
        for jumps in [Jumps::Tail, Jumps::Return, Jumps::Popped, Jumps::Unknown] {
            if let (caller, false) = run(&code, jumps, (SP, FP, 0x9000), words) {
                prop_assert_eq!(caller, None);
                let (sp, fp) = (0x8000 + 8 * sp, 0x8008 + 8 * sp);
                prop_assert_eq!(run(&code, jumps, (sp, fp, 0x8000), 0x40).0, None);
            }
        }
    }

    /// Whatever the code, a run ends.
    #[test]
    fn any_code_ends(code in proptest::collection::vec(any::<u8>(), 0..300)) {
        for jumps in [Jumps::Tail, Jumps::Return, Jumps::Popped, Jumps::Unknown] {
            caller(&code, jumps);
        }
    }
}
