use vmscope_process::CopiedStack;
use vmscope_process::testing::FakeMemory;
use vmscope_records::{Arch, Registers, StackBytes, TimeNs};

use super::*;

/// First address of the sampled stack.
const SP: u64 = 0x7000;

/// A return address behind a call.
const RETURN: u64 = 0x9008;

/// Code of Sparkplug: two instructions, the call that makes the frame, and a body without return.
const SPARKPLUG: &[u8] = &[
    0xbb, 0x10, 0, 0, 0, // mov $0x10,%ebx
    0xe8, 0, 0x10, 0, 0,    // call
    0x50, // push %rax
    0xeb, 0x7f, // jmp to another builtin
];

/// A handler that makes a frame in one branch, and calls the next handler.
const HANDLER: &[u8] = &[
    0x84, 0xc0, // test %al,%al
    0x74, 0x08, // je to the jump
    0x55, // push %rbp
    0x48, 0x89, 0xe5, // mov %rsp,%rbp
    0xff, 0xd0, // call *%rax
    0xc9, // leave
    0x90, // nop
    0xff, 0xe1, // jmp *%rcx
];

/// A WebAssembly function that returns behind a loop without end.
const WASM: &[u8] = &[
    0x55, 0x48, 0x89, 0xe5, // push %rbp; mov %rsp,%rbp
    0x6a, 0x08, // push $8
    0xeb, 0xfe, // jmp to itself
    0xc9, // leave
    0xc3, // ret
];

/// Likewise, by Liftoff.
const LIFTOFF: &[u8] = &[
    0x41, 0xbc, 0x01, 0, 0, 0, // mov $1,%r12d
    0xe8, 0, 0x10, 0, 0, // call
    0xeb, 0xfe, // jmp to itself
];

/// The interpreter's entry: the return address of handlers is behind its call.
const ENTRY_CODE: &[u8] = &[0xff, 0xd1, 0x90, 0x90];
const ENTRY_AT: u64 = 0x3000;
const ENTRY_RETURN: u64 = ENTRY_AT + 2;

/// Builtins to which deoptimised frames return: one goes on with a bytecode.
const RESUMES: u64 = 0x6000;
const CONTINUES: u64 = 0x6100;

/// The builtin that makes the frames of Sparkplug's functions, with the frame of a call on an exhausted stack.
const PROLOGUE_AT: u64 = 0x6200;
const BEHIND_PROLOGUE: u64 = 0x100a;
const PROLOGUE_CODE: &[u8] = &[
    0x41, 0x5b, // pop %r11
    0x55, // push %rbp
    0x48, 0x89, 0xe5, // mov %rsp,%rbp
    0x56, // push %rsi
    0x41, 0xff, 0xe3, // jmp *%r11
    0x41, 0x53, 0x55, // push %r11; push %rbp
    0x48, 0x89, 0xe5, // mov %rsp,%rbp
    0x90, // nop
];

/// A builtin that takes its return address, pushes a value, and jumps to a function.
const RESUMING_AT: u64 = 0x6300;
const RESUMING: &[u8] = &[
    0x41, 0x5b, // pop %r11
    0x90, // nop
    0xff, 0x72, 0x27, // push 0x27(%rdx)
    0x41, 0x53, // push %r11
    0xff, 0xe1, // jmp *%rcx
];

fn unwinder() -> V8Unwinder {
    let mut memory = FakeMemory::new();
    let frames = CodeFrames::default();
    for (at, code) in [
        (0x1000, SPARKPLUG),
        (0x2000, HANDLER),
        (ENTRY_AT, ENTRY_CODE),
        (0x4000, WASM),
        (0x5000, LIFTOFF),
        (PROLOGUE_AT, PROLOGUE_CODE),
        (RESUMING_AT, RESUMING),
    ] {
        memory.put(Avma(at), code.to_vec());
        frames.pieces.put(at..at + code.len() as u64, true);
    }
    let sparkplug = 0x1000..0x1000 + SPARKPLUG.len() as u64;
    frames.compiled.put(sparkplug, Some(Compiler::Sparkplug));
    frames
        .interpreter
        .put(0x2000..0x2000 + HANDLER.len() as u64, false);
    frames.interpreter.put(ENTRY_AT..ENTRY_AT + 4, true);
    let prologue = PROLOGUE_AT..PROLOGUE_AT + PROLOGUE_CODE.len() as u64;
    frames.prologue.put(prologue, true);
    for (at, resumes_bytecodes) in [(RESUMES, true), (CONTINUES, false)] {
        frames.pieces.put(at..at + 8, true);
        frames.resuming.put(at..at + 8, resumes_bytecodes);
    }
    memory.put(Avma(0x9000), vec![0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4, 0x90]);
    V8Unwinder::new(
        Arc::new(memory),
        &frames,
        std::iter::once(0x2000..0x8000).collect(),
    )
}

fn stack(words: &[u64]) -> StackBytes {
    StackBytes {
        sp: Avma(SP),
        bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    }
}

/// Unwinds a frame whose stack holds `words`.
fn unwound(
    unwinder: &mut V8Unwinder,
    (pc, fp): (u64, u64),
    is_leaf: bool,
    words: &[u64],
) -> Result<Unwound, ChainEnd> {
    // r11, into which the prologue's builtin takes its return address.
    let sampled = Registers {
        arch: Arch::X86_64,
        mask: 1 << 19,
        values: vec![BEHIND_PROLOGUE],
    };
    let stack = stack(words);
    let frame = Frame {
        registers: FrameRegisters { pc, sp: SP, fp },
        sampled: is_leaf.then_some(&sampled),
        stack: &CopiedStack::of(&stack),
        time: TimeNs(7),
    };
    Ok(unwinder.caller(&frame)?.expect("a caller"))
}

/// The caller of a frame: pc, frame pointer, and whether it is a guess.
fn caller(pc: u64, fp: u64, is_leaf: bool, words: &[u64]) -> Result<(u64, u64, bool), ChainEnd> {
    let unwound = unwound(&mut unwinder(), (pc, fp), is_leaf, words)?;
    Ok((unwound.caller.pc, unwound.caller.fp, unwound.is_guess))
}

/// Regular expressions are seen in sampled frames of code without a pattern, and of code that no poll has read.
#[test]
fn regular_expressions_are_seen_in_frames() {
    let mut unwinder = unwinder();
    let words = [SP + 32, RETURN, 0, 0, 0x4001];
    let mut seen = |pc: u64, fp: u64, is_leaf: bool, frames: &CodeFrames| {
        unwinder.unnamed = frames.unnamed.clone();
        unwound(&mut unwinder, (pc, fp), is_leaf, &words).ok();
        unwinder.sightings.take(|_| true)
    };
    let sighting = |pc| Sighting {
        time: TimeNs(7),
        pc: Avma(pc),
        object: Tagged(0x4001),
    };
    let frames = CodeFrames::default();
    assert_eq!(seen(0x8800, SP, true, &frames), [sighting(0x8800)]);
    assert_eq!(seen(0x1001, SP, true, &frames), [], "known code");
    assert_eq!(seen(0x8800, SP, false, &frames), [], "a caller");
    let beyond = seen(0x8800, SP + 8, true, &frames);
    assert_eq!(beyond, [], "beyond the copied stack");
    frames.seek(std::iter::once(0x1000..0x1010));
    assert_eq!(seen(0x1001, SP, true, &frames), [sighting(0x1001)]);
    frames.seek(std::iter::empty());
    assert_eq!(seen(0x1001, SP, true, &frames), [], "named now");
}

#[test]
fn sparkplug_has_its_frame_behind_its_first_call() {
    let words = [RETURN, 0, 0x7040, RETURN];
    for pc in [0x1000, 0x1005] {
        assert_eq!(
            caller(pc, SP + 16, true, &words),
            Ok((RETURN, SP + 16, false))
        );
    }
    for pc in [0x100a, 0x100b] {
        assert_eq!(
            caller(pc, SP + 16, true, &words),
            Ok((RETURN, 0x7040, false))
        );
    }
}

#[test]
fn webassembly_keeps_its_frame() {
    let words = [RETURN, 0, 0x7040, RETURN];
    // Nothing proves the caller in the begin.
    for (pc, is_guess) in [(0x4001, true), (0x4006, false), (0x500b, false)] {
        let expected = Ok((RETURN, 0x7040, is_guess));
        assert_eq!(caller(pc, SP + 16, true, &words), expected, "{pc:x}");
    }
    // The frame is removed, or a builtin makes it.
    for pc in [0x4009, 0x5000, 0x5006] {
        let expected = Ok((RETURN, SP + 16, false));
        assert_eq!(caller(pc, SP + 16, true, &words), expected, "{pc:x}");
    }
}

#[test]
fn a_frame_pointer_alone_is_a_guess() {
    // Nothing has called before these return addresses, or the code is unknown.
    let words = [1, 0, 0x7040, 0x9003];
    for pc in [0x1005, 0x100a, 0x8800] {
        assert_eq!(
            caller(pc, SP + 16, true, &words),
            Ok((0x9003, 0x7040, true))
        );
    }
    assert_eq!(caller(0x1005, 3, true, &words), Err(ChainEnd::Broken));
}

#[test]
fn a_frame_that_has_called_is_whole() {
    // C++ may use the frame pointer register for something else.
    let words = [0, RETURN];
    assert_eq!(caller(0x100a, SP, false, &words), Ok((RETURN, 0, false)));
    assert_eq!(caller(0x100a, 0x1234, false, &words), Err(ChainEnd::Broken));
}

#[test]
fn a_handler_executes_the_function_of_the_interpreters_frame() {
    let frame = SP + 24;
    // The handler's frame does not exist yet, or has gone.
    let words = [ENTRY_RETURN, 0, 0, 0x7050, RETURN];
    for pc in [0x2000, 0x2004, 0x200b, 0x200c] {
        assert_eq!(
            caller(pc, frame, true, &words),
            Ok((RETURN, 0x7050, false)),
            "{pc:x}"
        );
    }
    // With its frame.
    let words = [frame, ENTRY_RETURN, 0, 0x7050, RETURN];
    assert_eq!(
        caller(0x2008, SP, true, &words),
        Ok((RETURN, 0x7050, false))
    );
    // After a call, the handler's own frame is whole.
    assert_eq!(
        caller(0x200a, SP, false, &words),
        Ok((RETURN, 0x7050, false))
    );
}

#[test]
fn callers_in_the_interpreter_are_shown_by_their_bytecodes() {
    let (bytecodes, frame_at) = (0x5_0001, SP + 56);
    let words = [
        frame_at,
        ENTRY_RETURN,
        0x45 << 32,
        bytecodes,
        0,
        0,
        0,
        0x7080,
        RETURN,
    ];
    let shown = |pc, fp| {
        let unwound = unwound(&mut unwinder(), (pc, fp), false, &words).unwrap();
        (unwound.caller.pc, unwound.shown, unwound.method)
    };
    let function = (RETURN, Some(Avma(bytecodes + 0x46)), Some(Avma(bytecodes)));
    // First its own frame tells the function, then the frame of a calling handler.
    assert_eq!(shown(ENTRY_RETURN, frame_at), function);
    assert_eq!(shown(0x200a, SP), function);
    // Other data is in their place.
    assert_eq!(shown(ENTRY_RETURN, SP + 40).1, None);
}

/// Deoptimised frames return to the begin of a builtin, with no call before.
#[test]
fn deoptimised_frames_are_shown_by_their_bytecodes() {
    let (bytecodes, frame_at) = (0x5_0001, SP + 56);
    let words = [0, 0, 0x45 << 32, bytecodes, 0, 0, 0, 0x7080, RESUMES];
    let unwound = |pc| unwound(&mut unwinder(), (pc, frame_at), false, &words).unwrap();
    let of_bytecodes = unwound(RESUMES);
    assert_eq!(of_bytecodes.shown, Some(Avma(bytecodes + 0x46)));
    assert_eq!(of_bytecodes.method, Some(Avma(bytecodes)));
    assert_eq!(
        unwound(CONTINUES).shown,
        Some(Avma(CONTINUES + 1)),
        "the builtin itself"
    );
    for (pc, shown) in [(RESUMES + 4, None), (0x100a, None)] {
        let unwound = unwound(pc);
        assert_eq!((unwound.shown, unwound.is_guess), (shown, false), "{pc:x}");
    }
}

/// Functions are seen in frames of code that no poll has read, and of interpreted functions.
#[test]
fn functions_are_seen_in_frames() {
    let (function, frame_at) = (0x4441, SP + 56);
    let words = [frame_at, ENTRY_RETURN, 0, 0, 0, function, 0, 0x7080, RETURN];
    let seen = |pc, fp, is_leaf: bool| {
        let mut unwinder = unwinder();
        unwound(&mut unwinder, (pc, fp), is_leaf, &words).ok();
        unwinder.functions.take().into_iter().next()
    };
    let expected = Some((Tagged(function), TimeNs(7)));
    for is_leaf in [true, false] {
        assert_eq!(seen(0x8800, frame_at, is_leaf), expected, "unread");
        assert_eq!(seen(ENTRY_RETURN, frame_at, is_leaf), expected);
        assert_eq!(seen(0x100b, frame_at, is_leaf), None, "known");
        assert_eq!(seen(0x8800, SP + 24, is_leaf), None, "no object");
    }
    assert_eq!(seen(0x200a, SP, false), expected, "a handler");
}

#[test]
fn other_code_of_the_module_is_assembly() {
    let unwinder = unwinder();
    assert!(unwinder.covers(Avma(0x2001)) && !unwinder.covers(Avma(0x2500)));
    assert!(unwinder.covers(Avma(0x10_0000)));
}

/// A sample in the jump table, through which Liftoff's functions call the builtin that makes their frame.
#[test]
fn a_function_of_liftoff_has_no_frame_while_it_calls_for_it() {
    const BEHIND: u64 = 0x500b;
    let mut unwinder = unwinder();
    let mut caller = |pc: u64, is_leaf: bool, words: &[u64]| {
        let unwound = unwound(&mut unwinder, (pc, SP + 16), is_leaf, words).expect("unwinds");
        Some((unwound.caller.pc, unwound.caller.fp, unwound.is_guess))
    };
    let frameless = [RETURN, 0x30, SP + 32, 0x4444, 0, 0];
    caller(0x5000, true, &frameless);
    assert_eq!(
        caller(BEHIND, false, &frameless),
        Some((RETURN, SP + 16, false))
    );
    // The function has its frame: the word on top is no return address.
    let framed = [0x10, 0x20, SP + 32, RETURN, 0, 0];
    caller(0x5000, true, &framed);
    assert_eq!(
        caller(BEHIND, false, &framed),
        Some((RETURN, SP + 32, false))
    );
    // Deeper functions have their frames.
    let framed = [RETURN, 0x20, SP + 32, RETURN, 0, 0];
    assert_eq!(
        caller(BEHIND, false, &framed),
        Some((RETURN, SP + 32, false))
    );
}

/// Samples in the builtin that makes the frame of a function of Sparkplug: the function is their caller, whose own caller
/// follows.
#[test]
fn a_function_of_sparkplug_has_no_frame_while_a_builtin_makes_it() {
    let chain = |offset: u64, words: &[u64], behind: &[u64]| {
        let mut unwinder = unwinder();
        let leaf = unwound(&mut unwinder, (PROLOGUE_AT + offset, SP + 24), true, words);
        let FrameRegisters { pc, sp, fp } = leaf.expect("a caller").caller;
        assert_eq!(pc, BEHIND_PROLOGUE, "{offset}");
        let popped = (sp - SP) / 8;
        let function = unwound(&mut unwinder, (pc, fp - 8 * popped), false, behind);
        let function = function.expect("a caller");
        (popped, function.caller.pc, function.is_guess)
    };
    // The return address is on the stack, then in the register.
    let of_caller = [RETURN, 0, 0x7080, 0x9999];
    let words = [BEHIND_PROLOGUE, RETURN, 0, 0x7080];
    assert_eq!(chain(0, &words, &of_caller), (1, RETURN, false));
    assert_eq!(chain(2, &of_caller, &of_caller), (0, RETURN, false));
    // The frame is made, and values are on the stack.
    let framed = [1, 2, 3, 0x7080, RETURN];
    for offset in [6, 7] {
        assert_eq!(chain(offset, &framed, &framed), (0, RETURN, false));
    }
    // The frame of the builtin's own call.
    let framed = [1, 2, 3, SP + 40, BEHIND_PROLOGUE, 0x7080, RETURN];
    let mut unwinder = unwinder();
    let leaf = unwound(&mut unwinder, (PROLOGUE_AT + 16, SP + 24), true, &framed).unwrap();
    assert_eq!((leaf.caller.pc, leaf.caller.fp), (BEHIND_PROLOGUE, SP + 40));
    let function = unwound(&mut unwinder, (BEHIND_PROLOGUE, SP + 40), false, &framed);
    assert_eq!(function.unwrap().caller.pc, RETURN);
}

#[test]
fn a_builtin_that_pushes_values_for_a_function_has_its_caller_above() {
    let of_caller = [1, 2, 3, 0x7080, RETURN];
    for (offset, words, popped) in [
        (0, &[BEHIND_PROLOGUE, 2, 3, 0x7080, RETURN][..], 0),
        (2, &of_caller, 0),
        (3, &of_caller, 0),
        (6, &of_caller, 0),
        (8, &[BEHIND_PROLOGUE, 2, 3, 0x7080, RETURN], 1),
    ] {
        let leaf = unwound(
            &mut unwinder(),
            (RESUMING_AT + offset, SP + 24),
            true,
            words,
        );
        let Unwound {
            caller, is_guess, ..
        } = leaf.expect("a caller");
        let found = (caller.pc, caller.sp, caller.fp, is_guess);
        assert_eq!(
            found,
            (BEHIND_PROLOGUE, SP + 8 * popped, SP + 24, false),
            "{offset}"
        );
    }
}
