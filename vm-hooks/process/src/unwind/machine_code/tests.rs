use crate::testing::FakeMemory;
use vmscope_records::{Arch, Registers, StackBytes, TimeNs};

use super::*;
use crate::CopiedStack;

/// `sub $8,%rsp; call *%rcx; add $8,%rsp; ret` (CPython 3.12 and 3.13).
const TRAMPOLINE: &[u8] = &[
    0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3,
];

fn stack(words: &[u64]) -> StackBytes {
    StackBytes {
        sp: Avma(0x7000),
        bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    }
}

fn kept(memory: FakeMemory, pieces: Pieces) -> KeptFramePointers {
    KeptFramePointers::new(Arc::new(memory), pieces, Arc::default())
}

fn caller_in(
    unwinder: &mut dyn Unwinder,
    (pc, fp): (u64, u64),
    stack: &StackBytes,
) -> Result<Option<(u64, u64, u64)>, ChainEnd> {
    let frame = Frame {
        registers: FrameRegisters { pc, sp: 0x7000, fp },
        sampled: None,
        stack: &CopiedStack::of(stack),
        time: TimeNs(0),
    };
    let unwound = unwinder.caller(&frame)?;
    let unwound = unwound.filter(|unwound| unwound.end.is_none());
    Ok(unwound.map(|Unwound { caller, .. }| (caller.pc, caller.sp, caller.fp)))
}

#[test]
fn trampolines_are_left_by_their_code() {
    let mut memory = FakeMemory::new();
    memory.put(Avma(0x1000), TRAMPOLINE.to_vec());
    // A call in the interpreter's loop, and a stack word that only looks like a return address.
    memory.put(Avma(0x2000), vec![0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4, 0x90]);
    memory.put(Avma(0x3000), vec![0x90; 16]);
    let mut unwinder = MachineCode::new(Arc::new(memory), Pieces::default());
    let returns = stack(&[0, 0x2008]);
    let found = caller_in(&mut unwinder, (0x1006, 5), &returns);
    assert_eq!(found, Ok(Some((0x2008, 0x7010, 5))));
    let no_call = stack(&[0, 0x3008]);
    let found = caller_in(&mut unwinder, (0x1006, 5), &no_call);
    assert_eq!(found, Err(ChainEnd::Broken));
    // Unknown code, and none at all.
    for pc in [0x3008, 0x9000] {
        let found = caller_in(&mut unwinder, (pc, 0x7000), &returns);
        assert_eq!(found, Err(ChainEnd::Broken));
    }
}

#[test]
fn a_method_has_the_bounds_that_the_vm_tells_and_may_be_replaced() {
    let mut memory = FakeMemory::new();
    let method = [
        0x50, // push %rax
        0xff, 0xd1, // call *%rcx
        0xff, 0xd1, // call *%rcx
        0x48, 0x83, 0xc4, 0x08, // add $8,%rsp
        0xc3, // ret
    ];
    memory.put(Avma(0x1000), method.to_vec());
    let memory = Arc::new(memory);
    let pieces = Pieces::default();
    let mut unwinder = MachineCode::new(memory, pieces.clone());
    let returns = stack(&[0, 0x1005]);
    let mut found = || caller_in(&mut unwinder, (0x1003, 5), &returns);
    assert_eq!(found(), Err(ChainEnd::Broken));
    pieces.put(0x1000..0x100a, true);
    assert_eq!(found(), Ok(Some((0x1005, 0x7010, 5))));
    pieces.take(&(0x1000..0x100a));
    assert_eq!(found(), Err(ChainEnd::Broken));
}

#[test]
fn an_erlang_process_begins_with_a_frame_pointer_of_zero() {
    let stack = stack(&[0x7010, 0x2008, 0, 0x3000]);
    let mut unwinder = kept(FakeMemory::new(), Pieces::default());
    let mut found = |fp| caller_in(&mut unwinder, (0x1006, fp), &stack);
    assert_eq!(found(0x7000), Ok(Some((0x2008, 0x7010, 0x7010))));
    assert_eq!(found(0x7010), Ok(None));
    assert_eq!(found(0), Err(ChainEnd::Broken));
    assert_eq!(found(0x70_0000_0000), Err(ChainEnd::Broken));
}

#[test]
fn an_erlang_function_without_its_frame_yet_keeps_its_caller() {
    let function = [
        0x55, // push %rbp
        0x48, 0x89, 0xe5, // mov %rsp,%rbp
        0xc9, // leave
        0xeb, 0x70, // jmp to another function
    ];
    let mut memory = FakeMemory::new();
    memory.put(Avma(0x1000), function.to_vec());
    memory.put(Avma(0x2000), vec![0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4]);
    let pieces = Pieces::default();
    pieces.put(0x1000..0x1007, true);
    let mut unwinder = kept(memory, pieces);
    let sampled = Registers {
        arch: Arch::X86_64,
        mask: 0,
        values: Vec::new(),
    };
    for (pc, words) in [
        (0x1000, [0x2008, 0]),
        (0x1001, [0x7777, 0x2008]),
        (0x1005, [0x2008, 0]),
    ] {
        let stack = stack(&words);
        let frame = Frame {
            registers: FrameRegisters {
                pc,
                sp: 0x7000,
                fp: 0x7010,
            },
            sampled: Some(&sampled),
            stack: &CopiedStack::of(&stack),
            time: TimeNs(0),
        };
        let unwound = unwinder.caller(&frame).unwrap().unwrap();
        assert_eq!(
            (unwound.caller.pc, unwound.is_guess),
            (0x2008, false),
            "{pc:x}"
        );
    }
}

/// A frame in the innermost routine of a stack; the sampled registers beyond pc, sp and fp are
/// unknown.
fn caller_of(
    unwinder: &mut KeptFramePointers,
    pc: u64,
    is_innermost: bool,
    words: &[u64],
) -> Unwound {
    let sampled = Registers {
        arch: Arch::X86_64,
        mask: 0,
        values: Vec::new(),
    };
    let stack = stack(words);
    let frame = Frame {
        registers: FrameRegisters {
            pc,
            sp: 0x7000,
            fp: 0x7020,
        },
        sampled: is_innermost.then_some(&sampled),
        stack: &CopiedStack::of(&stack),
        time: TimeNs(0),
    };
    unwinder.caller(&frame).unwrap().unwrap()
}

#[test]
fn a_routine_has_the_caller_of_its_code_or_of_the_stacks_top() {
    let routine = [
        0x3d, 1, 0, 0, 0, // cmp $1,%eax
        0x0f, 0x84, 0, 1, 0, 0,    // je to a method
        0x50, // push %rax
        0xff, 0xd1, // call *%rcx
        0x5c, // pop %rsp
        0xc3, // ret
        0xff, 0x23, // jmp *(%rbx)
        0x48, 0x8b, 0x63, 0x08, // mov 8(%rbx),%rsp
        0xff, 0x23, // jmp *(%rbx)
    ];
    let mut memory = FakeMemory::new();
    memory.put(Avma(0x1000), routine.to_vec());
    memory.put(Avma(0x2000), vec![0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4]);
    let pieces = Pieces::default();
    pieces.put(0x1000..0x1018, false);
    let mut unwinder = kept(memory, pieces);
    for (pc, is_innermost, words, sp) in [
        // Before the frame, with a jump to other code, behind a call that moved the stack, and
        // where only the stack's top can tell.
        (0x1000, true, [0x2008, 0, 0, 0], 0x7008),
        (0x1010, true, [0x2008, 0, 0, 0], 0x7008),
        (0x100e, false, [0x7010, 0, 0x2008, 0], 0x7018),
        (0x1012, false, [0x2008, 0, 0, 0], 0x7008),
    ] {
        let unwound = caller_of(&mut unwinder, pc, is_innermost, &words);
        let FrameRegisters { pc: to, sp: up, fp } = unwound.caller;
        assert_eq!((to, up, fp), (0x2008, sp, 0x7020), "{pc:x}");
        assert!(!unwound.is_guess);
    }
    // Without a call before the word, only the frame pointer is left.
    let words = [0x2001, 0, 0, 0, 0x7040, 0x2222];
    assert_eq!(
        caller_of(&mut unwinder, 0x1000, true, &words).caller.pc,
        0x2222
    );
}

#[test]
fn interpreted_callers_are_shown_by_their_next_bytecode() {
    let mut unwinder = kept(FakeMemory::new(), Pieces::default());
    let frames = InterpretedFrames {
        return_address: Avma(0x1501),
        next: -16,
    };
    unwinder.interpreted.set(frames).unwrap();
    let words = [0, 0, 0x9999, 0, 0x7040, 0x1501];
    let caller = caller_of(&mut unwinder, 0x1501, false, &words);
    assert_eq!(caller.shown, Some(Avma(0x9999)));
    assert_eq!((caller.caller.pc, caller.end), (0x1501, None));
    // The first frame of a stack is shown, too.
    let words = [0, 0, 0x9999, 0, 0, 0x1501];
    let first = caller_of(&mut unwinder, 0x1501, false, &words);
    assert_eq!(
        (first.shown, first.end),
        (Some(Avma(0x9999)), Some(ChainEnd::Whole))
    );
    // A sample in the routine itself is no caller.
    assert_eq!(caller_of(&mut unwinder, 0x1501, true, &words).shown, None);
}

#[test]
fn a_frame_pointer_of_0_is_no_end_below_native_callers() {
    let words = [0, 0, 0, 0, 0, 0x2008];
    let end = |unwinder: &mut KeptFramePointers| caller_of(unwinder, 0x1000, false, &words).end;
    let mut unwinder = kept(FakeMemory::new(), Pieces::default());
    assert_eq!(end(&mut unwinder), Some(ChainEnd::Whole));
    let memory = Arc::new(FakeMemory::new());
    let mut unwinder = KeptFramePointers::with_native_callers(memory, Pieces::default());
    assert_eq!(end(&mut unwinder), None);
}

/// Samples of a worker that has ended: the adapter knows its code no longer, and its memory is gone.
#[test]
fn a_return_address_stays_one_when_its_memory_is_gone() {
    let mut memory = FakeMemory::new();
    memory.put(Avma(0x2000), vec![0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4, 0x90]);
    let pieces = Pieces::default();
    pieces.put(0x2000..0x2009, true);
    let mut code = MachineCode::new(Arc::new(memory), pieces.clone());
    assert!(code.is_after_call(0x2008) && !code.is_after_call(0x2003));
    pieces.take(&(0x2000..0x2009));
    code.memory = Arc::new(FakeMemory::new());
    assert!(code.is_after_call(0x2008) && !code.is_after_call(0x2003));
    assert!(!code.is_after_call(0x3008));
    // Other code has its place.
    let mut other = FakeMemory::new();
    other.put(Avma(0x2000), vec![0x90; 16]);
    code.memory = Arc::new(other);
    assert!(!code.is_after_call(0x2008));
}
