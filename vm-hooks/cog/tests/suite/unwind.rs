//! Callers on made stacks of the busy snapshot's methods.
#![cfg(target_arch = "x86_64")]

use crate::common::stacks::{Chain, PAGE, Stacks, chain};
use proptest::prelude::*;
use vmscope_process::FrameRegisters;
use vmscope_records::{Avma, ChainEnd, TimeNs};

/// Methods of the snapshot (`busy.expected.txt`), and return addresses in their maps.
const FIB: u64 = 0x563e_6cf0_1c20;
const FIB_CALL: u64 = FIB + 324;
const FIB_CODE: u64 = FIB + 200;
const MAIN: u64 = 0x563e_6cf1_3478;
const MAIN_CALL: u64 = MAIN + 255;
const AT: u64 = 0x563e_6cf0_2658;
const COUNTER: u64 = 0x563e_6cf0_6000;
const BLOCK: u64 = COUNTER + 488;
/// A PIC, which has no frame.
const PIC: u64 = 0x563e_6cf3_f5a8;

/// A flag of blocks in a frame's method.
const IS_BLOCK: u64 = 2;

const COPY: usize = 16 << 10;

fn certain(shown: &[u64]) -> Chain {
    Chain {
        shown: shown.to_vec(),
        methods: Vec::new(),
        end: ChainEnd::Whole,
        is_late: false,
    }
}

/// `main` calls `fib:`, which calls itself.
fn fib() -> Stacks {
    let mut stacks = Stacks::new();
    stacks.begin(3, stacks.nil, MAIN);
    stacks.call(MAIN_CALL, FIB);
    stacks.call(FIB_CALL, FIB);
    stacks
}

#[test]
fn frames_of_one_page() {
    let mut stacks = fib();
    assert_eq!(
        stacks.chain(FIB_CODE, COPY),
        certain(&[FIB_CALL, MAIN_CALL])
    );
    // A block inside a method.
    stacks.call(FIB_CALL, BLOCK | IS_BLOCK);
    let expected = certain(&[FIB_CALL, FIB_CALL, MAIN_CALL]);
    assert_eq!(stacks.chain(BLOCK + 80, COPY), expected);
    // The copy ends before the page.
    let part = stacks.chain(BLOCK + 80, 100);
    assert_eq!((part.end, part.shown.len()), (ChainEnd::Stack, 1));
}

#[test]
fn code_without_a_frame_has_its_immediate_caller() {
    let expected = certain(&[FIB_CALL, FIB_CALL, MAIN_CALL]);
    for pc in [PIC + 60, AT + 90, FIB + 75] {
        for words_below in 0..3 {
            let mut stacks = fib();
            stacks.push(FIB_CALL);
            for _ in 0..words_below {
                stacks.push(0x21);
            }
            assert_eq!(stacks.chain(pc, COPY), expected, "{pc:x}");
        }
    }
    // A word that points to code, but not to the frame's method.
    let mut stacks = fib();
    stacks.push(MAIN_CALL);
    let chain = stacks.chain(PIC + 60, COPY);
    assert_eq!((chain.end, chain.shown), (ChainEnd::Broken, Vec::new()));
}

#[test]
fn methods_that_build_their_frame() {
    let expected = certain(&[FIB_CALL, FIB_CALL, MAIN_CALL]);
    let mut stacks = fib();
    // After `push rbp`, with the caller's frame pointer.
    stacks.push(FIB_CALL);
    stacks.push(stacks.fp);
    assert_eq!(stacks.chain(AT + 83, COPY), expected);
    // After `mov rbp, rsp`.
    stacks.fp = stacks.sp;
    assert_eq!(stacks.chain(AT + 86, COPY), expected);
    // After pushes of method, context and receiver.
    stacks.push(AT);
    for at in [96, 98, 100] {
        assert_eq!(stacks.chain(AT + at, COPY), expected, "{at}");
        stacks.push(stacks.nil);
    }
}

#[test]
fn methods_that_have_removed_their_frame() {
    let mut stacks = fib();
    stacks.push(FIB_CALL);
    let expected = certain(&[FIB_CALL, FIB_CALL, MAIN_CALL]);
    assert_eq!(stacks.chain(FIB_CODE, COPY), expected);
}

/// A recursion over pages: of each frame's method, `per_page` frames a page.
fn deep(pages: &[u64], per_page: usize) -> (Stacks, Vec<u64>) {
    let mut stacks = Stacks::new();
    let (mut context, mut expected) = (stacks.nil, Vec::new());
    for (number, page) in pages.iter().enumerate() {
        if number == 0 {
            stacks.begin(*page, context, MAIN);
        } else {
            expected.push(FIB_CALL);
            stacks.begin(*page, context, FIB);
        }
        for frame in 1..per_page {
            let pc = if number == 0 && frame == 1 {
                MAIN_CALL
            } else {
                FIB_CALL
            };
            expected.push(pc);
            stacks.call(pc, FIB);
        }
        if number + 1 < pages.len() {
            context = stacks.marry(*page, FIB_CALL);
        }
    }
    expected.reverse();
    (stacks, expected)
}

#[test]
fn pages_in_the_copy_are_certain() {
    let (stacks, expected) = deep(&[4, 3], 28);
    let chain = stacks.chain(FIB_CODE, COPY);
    assert_eq!((chain.end, chain.is_late), (ChainEnd::Whole, false));
    assert_eq!(chain.shown, expected);
}

#[test]
fn pages_outside_the_copy_are_guesses() {
    let pages: Vec<u64> = (0..20).map(|page| 49 - (page * 7) % 50).collect();
    let (stacks, expected) = deep(&pages, 28);
    let chain = stacks.chain(FIB_CODE, 2048);
    assert_eq!((chain.end, chain.is_late), (ChainEnd::Whole, true));
    assert_eq!(chain.shown.len(), 28 * 20 - 1);
    assert_eq!(chain.shown, expected);
}

#[test]
fn contexts_without_frames() {
    let mut stacks = Stacks::new();
    let tagged = |value: i64| (value << 3 | 1).cast_unsigned();
    // Its compiled method has the address of generated code in place of its header.
    let jitted = stacks.context([MAIN, 0, 0, 0]);
    let method = stacks.value("nilObj");
    let first = stacks.context([stacks.nil, tagged(-255), tagged(2), jitted]);
    let second = stacks.context([first, tagged(33), tagged(2), method]);
    stacks.begin(3, second, FIB);
    let chain = stacks.chain(FIB_CODE, COPY);
    assert_eq!(chain.shown, [method + 8 + 33, MAIN_CALL]);
    assert_eq!(chain.methods, [method]);
    assert_eq!((chain.end, chain.is_late), (ChainEnd::Whole, true));
}

#[test]
fn interpreted_frames_show_their_bytecodes() {
    let method = 0x563e_6d90_0000;
    for is_base in [false, true] {
        let mut stacks = Stacks::new();
        let to_interpreter = stacks.value("ceReturnToInterpreterTrampoline");
        if is_base {
            stacks.begin(3, stacks.nil, method);
            stacks.put(stacks.fp - 32, method + 50);
        } else {
            stacks.begin(3, stacks.nil, MAIN);
            stacks.interpret(MAIN_CALL, method, method + 50);
        }
        stacks.call(to_interpreter, FIB);
        let chain = stacks.chain(FIB_CODE, COPY);
        let mut expected = vec![method + 51];
        expected.extend((!is_base).then_some(MAIN_CALL));
        assert_eq!((chain.shown, chain.methods), (expected, vec![method]));
        assert_eq!(chain.end, ChainEnd::Whole);
    }
}

#[test]
fn c_code_leads_to_the_smalltalk_frame() {
    for is_pushed in [false, true] {
        let mut stacks = fib();
        let (fp, c_stack) = (stacks.fp, stacks.start - 0x100);
        if is_pushed {
            stacks.push(FIB_CALL);
        }
        stacks.set("framePointer", fp);
        stacks.set("stackPointer", stacks.sp);
        stacks.set("instructionPointer", if is_pushed { 0 } else { FIB_CALL });
        let mut unwinder = stacks.unwinder();
        // The C stack lies below the pages, so the copy has both.
        let mut stack = stacks.copy(stacks.start, 5 * PAGE as usize);
        stack.sp = Avma(c_stack);
        stack.bytes.splice(0..0, vec![0; 0x100]);
        let trampoline = FrameRegisters {
            pc: 0x563e_6cf0_0bc0,
            sp: c_stack + 8,
            fp: c_stack + 0x80,
        };
        let found = chain(&mut *unwinder, trampoline, &stack, TimeNs(1));
        assert_eq!(found.shown, [FIB_CALL, FIB_CALL, MAIN_CALL]);
        assert_eq!((found.end, found.is_late), (ChainEnd::Whole, true));
        // The VM has gone on: its frame pointer has changed.
        stacks.set("framePointer", fp - 64);
        let found = chain(&mut *stacks.unwinder(), trampoline, &stack, TimeNs(1));
        assert_eq!((found.end, found.shown), (ChainEnd::Broken, Vec::new()));
    }
}

#[test]
fn contexts_in_a_circle_end() {
    let mut stacks = Stacks::new();
    let tagged = 33 << 3 | 1;
    let method = stacks.value("nilObj");
    let first = stacks.context([0, tagged, tagged, method]);
    let second = stacks.context([first, tagged, tagged, method]);
    stacks.made.write(Avma(first + 8), &second.to_le_bytes());
    stacks.begin(3, second, FIB);
    let chain = stacks.chain(FIB_CODE, COPY);
    assert_eq!((chain.end, chain.shown.len()), (ChainEnd::Broken, 2));
    // A married context whose page returns to itself.
    let mut stacks = Stacks::new();
    stacks.begin(3, 0, MAIN);
    let context = stacks.marry(3, MAIN_CALL);
    stacks.put(stacks.base(3), context);
    stacks.begin(2, context, FIB);
    let chain = stacks.chain(FIB_CODE, COPY);
    assert_eq!((chain.end, chain.shown.len()), (ChainEnd::Broken, 1));
}

#[test]
fn impossible_stack_pages_are_an_error() {
    for (name, value) in [
        ("bytesPerPage", 0),
        ("bytesPerPage", u64::MAX),
        ("numStackPages", 0),
        ("numStackPages", u64::MAX),
        ("stackBasePlus1", u64::MAX),
        ("stackBasePlus1", 0),
        ("pages", 0x10),
    ] {
        let mut stacks = Stacks::new();
        stacks.set(name, value);
        let process = stacks.process();
        let vm = vmscope_cog::Vm::open(&process).unwrap().unwrap();
        let bounds = vmscope_cog::zone::Bounds::read(&vm.variables, process.memory()).unwrap();
        let layout = vmscope_cog::cog_method::Layout::Classic;
        let memory = process.shared_memory();
        let unwinder = vmscope_cog::CogUnwinder::new(&vm.variables, &bounds, layout, memory);
        assert!(unwinder.is_err(), "{name} {value}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Wrong words on stack pages and in contexts, wrong registers: each chain ends within its bounds.
    #[test]
    fn wrong_words_end(
        patches in prop::collection::vec((0..50_u64, 0..120_u64, any::<u64>(), 0..8_usize), 0..40),
        (pc, sp, fp) in (0..0x20_0000_u64, 0..0x6_4000_u64, 0..0x6_4000_u64),
        are_near in any::<bool>(),
    ) {
        let pages: Vec<u64> = (0..10).map(|page| 9 - page).collect();
        let (mut stacks, _) = deep(&pages, 28);
        let interesting = [
            FIB, MAIN_CALL, stacks.nil, stacks.start + 8, stacks.value("ceBaseFrameReturnTrampoline"),
            stacks.value("ceReturnToInterpreterTrampoline"), 0x5800_0000_0001,
        ];
        for (page, word, value, which) in patches {
            let value = interesting.get(which).copied().unwrap_or(value);
            stacks.put(stacks.base(page) - 8 * word, value);
        }
        let mut registers = FrameRegisters { pc: FIB_CODE, sp: stacks.sp, fp: stacks.fp };
        if !are_near {
            registers = FrameRegisters {
                pc: 0x563e_6cf0_0000 + pc,
                sp: stacks.start + sp / 8 * 8,
                fp: stacks.start + fp,
            };
        }
        let stack = stacks.copy(registers.sp, COPY);
        chain(&mut *stacks.unwinder(), registers, &stack, TimeNs(1));
    }
}
