//! Frames of optimised functions and of regular expressions. Their code makes its frame once, keeps it through all calls and
//! branches, and removes it right before it returns (V8's `code-generator-x64.cc`, `maglev-code-generator.cc`,
//! `regexp-macro-assembler-x64.cc`, 10.2 to 14.6). The bytes around a pc show this without the code's begin, too.

use std::ops::Range;

use vmscope_process::Memory;
use vmscope_records::Avma;

/// Begin of optimised functions: `push rbp; mov rbp, rsp; push rsi; push rdi; push rax`. A check of the function's validity
/// may come before.
const PROLOGUE: [u8; 7] = [0x55, 0x48, 0x89, 0xe5, 0x56, 0x57, 0x50];

/// Instructions in it that make the frame.
const MAKES: usize = 4;

/// Instructions that remove the frame: `mov rsp, rbp; pop rbp`. (Builtins alone have `leave`.)
const REMOVE: [[u8; 4]; 2] = [[0x48, 0x8b, 0xe5, 0x5d], [0x48, 0x89, 0xec, 0x5d]];

/// Maximum number of bytes from the removal of a frame to the last return behind it (measured: 23).
const EPILOGUE: usize = 32;

/// Number of bytes before a pc that hold a removal whose epilogue may go on there.
const BEFORE: usize = EPILOGUE + MAKES - 1;

/// First bytes of returns, of direct jumps to other functions, and of `int3`, with which V8 fills code that it gives up.
const LAST: [u8; 4] = [0xc2, 0xc3, DIRECT_JUMP, GIVEN_UP];

/// First byte of direct jumps; the length of direct jumps and calls.
const DIRECT_JUMP: u8 = 0xe9;
const JUMP: usize = 5;

/// First byte of indirect jumps, and of other instructions: bits 3 to 5 of the next byte tell which (4 and 5: jumps).
const INDIRECT: u8 = 0xff;

/// V8 gives up code after a deoptimisation (measured: in Node.js 26), and fills it.
const GIVEN_UP: u8 = TRAP;

/// `int3`.
const TRAP: u8 = 0xcc;

/// Maximum number of bytes from the begin of code to its frame (measured: 82; 19 but for a single function).
const AHEAD: usize = 96;

/// Other code's begin is not that near: objects of code begin with their fields.
const SOON: usize = 24;

/// Sparkplug's functions begin with `mov ebx, SIZE` or `xor ebx, ebx`, `mov r12, BYTECODES`, and the call of the builtin
/// that makes their frame. The second instruction, and its distance from the first.
const BYTECODES: [u8; 2] = [0x49, 0xbc];
const BYTECODES_WITHIN: usize = 5;

/// First bytes of direct and indirect calls.
const DIRECT_CALL: u8 = 0xe8;
const INDIRECT_CALL: [u8; 2] = [0x41, 0xff];

/// Fewest bytes of a call in V8's code, through a register of the second eight.
const LEAST_CALL: usize = 3;

/// Number of bytes before an optimised function's frame is made, from its first bytes. Maglev's code for on-stack replacement
/// goes on with the interpreter's frame. It begins with an `int3`, since no call enters it.
pub(super) fn behind_prologue(begin: &[u8]) -> Option<usize> {
    if let [TRAP, next, ..] = begin
        && *next != GIVEN_UP
    {
        return Some(1);
    }
    let mut each = begin.windows(PROLOGUE.len());
    Some(each.position(|bytes| bytes == PROLOGUE)? + MAKES)
}

/// Number of bytes of the jump at the begin of a regular expression's code.
pub(super) fn behind_jump(begin: &[u8]) -> Option<usize> {
    match *begin.first()? {
        DIRECT_JUMP => Some(JUMP),
        0xeb => Some(2),
        _ => None,
    }
}

/// Whether code with its frame in `with_frame`, but for returns and a regular expression's entry, certainly has it at `pc`.
pub(super) fn is_there(memory: &dyn Memory, with_frame: &Range<u64>, pc: u64) -> bool {
    if !with_frame.contains(&pc) {
        return false;
    }
    let from = with_frame.start.max(pc.saturating_sub(BEFORE as u64));
    let before = (pc - from) as usize;
    let mut bytes = [0; BEFORE + JUMP];
    let wanted = &mut bytes[..before + JUMP];
    let Ok(read) = memory.read_partial(Avma(from), wanted) else {
        return false;
    };
    let bytes = &wanted[..read];
    let next = bytes.get(before..).unwrap_or_default();
    let is_jump = next.first() == Some(&DIRECT_JUMP);
    let target = relative_target(next, pc).filter(|_| is_jump);
    let is_within = target.is_some_and(|target| with_frame.contains(&target));
    (is_within || !may_leave(next)) && is_kept(bytes, before, MAKES)
}

/// Target of the direct jump or call at `pc`.
fn relative_target(instruction: &[u8], pc: u64) -> Option<u64> {
    let distance = instruction.get(1..)?.first_chunk()?;
    let distance = i64::from(i32::from_le_bytes(*distance));
    Some(pc.wrapping_add(JUMP as u64).wrapping_add_signed(distance))
}

/// Whether code of unknown begin has its frame at `pc`, or else its return address on top of the stack; `None` if neither is
/// certain. `makes_frames`: whether the builtin at an address makes the frames of its callers.
pub(super) fn by_surroundings(
    memory: &dyn Memory,
    pc: u64,
    makes_frames: impl Fn(u64) -> bool,
) -> Option<bool> {
    let mut bytes = [0; BEFORE + AHEAD];
    let read = memory.read_partial(Avma(pc.saturating_sub(BEFORE as u64)), &mut bytes);
    let bytes = bytes.get(..read.ok()?)?;
    let next = bytes.get(BEFORE..)?;
    let is_call_for_frame = match next {
        [DIRECT_CALL, ..] => relative_target(next, pc).is_none_or(makes_frames),
        // Which builtin it calls is unknown.
        other if other.starts_with(&INDIRECT_CALL) => return None,
        _ => false,
    };
    let mut in_begin = next.windows(BYTECODES.len()).take(BYTECODES_WITHIN + 1);
    let mut soon = next.windows(PROLOGUE.len()).take(SOON);
    // Freed memory may be zero.
    let is_code = next.iter().take(MAKES).any(|byte| *byte != 0);
    if is_call_for_frame || in_begin.any(|at| at == BYTECODES) || soon.any(|at| at == PROLOGUE) {
        return Some(false);
    }
    (is_code && !may_leave(next) && is_kept(bytes, BEFORE, AHEAD)).then_some(true)
}

/// Whether the call before a return address is filled since V8 has given up its code.
pub(super) fn is_given_up(memory: &dyn Memory, pc: u64) -> bool {
    let mut call = [0; LEAST_CALL];
    let read = memory.read_into(Avma(pc.wrapping_sub(LEAST_CALL as u64)), &mut call);
    read.is_ok() && call == [GIVEN_UP; LEAST_CALL]
}

/// Whether a function may have removed its frame before the instruction that begins with these bytes: a return, or a jump to
/// another function.
pub(super) fn may_leave(instruction: &[u8]) -> bool {
    match instruction {
        [INDIRECT, operand, ..] => matches!((operand >> 3) & 7, 4 | 5),
        [first, ..] => LAST.contains(first) || *first == INDIRECT,
        [] => true,
    }
}

/// Whether code removes no frame shortly before an offset, and makes none in the `ahead` bytes from there.
fn is_kept(bytes: &[u8], offset: usize, ahead: usize) -> bool {
    let is_removed = REMOVE.iter().any(|remove| {
        let mut ends = bytes.windows(remove.len()).zip(remove.len()..);
        ends.any(|(at, end)| at == *remove && end <= offset)
    });
    let is_made_later = bytes.windows(MAKES).zip(0..).any(|(at, begin)| {
        let is_here = begin + MAKES > offset && begin <= offset + ahead - MAKES;
        is_here && at == &PROLOGUE[..MAKES]
    });
    !is_removed && !is_made_later
}

#[cfg(test)]
mod tests {
    use vmscope_process::testing::FakeMemory;

    use super::*;

    const AT: u64 = 0x1000;

    /// Offsets in `code`, of those in `of`, where the frame is certain.
    fn certain(code: &[u8], made: usize, of: &[usize]) -> Vec<usize> {
        let mut memory = FakeMemory::new();
        memory.put(Avma(AT), code.to_vec());
        let with_frame = AT + made as u64..AT + code.len() as u64;
        let is_there = |at: &usize| is_there(&memory, &with_frame, AT + *at as u64);
        of.iter().copied().filter(is_there).collect()
    }

    #[test]
    fn an_optimised_function_has_its_frame_between_prologue_and_epilogue() {
        let mut code = vec![0xf6, 0x43, 0x2f, 0x01]; // test
        code.extend(PROLOGUE); // from 4; the frame is there from 8 on
        code.extend([0x90; 40]); // from 11
        code.extend([0x48, 0x8b, 0xe5, 0x5d]); // from 51
        code.extend([0x48, 0x83, 0xf9, 0x03, 0x7f, 0x03]); // cmp, jg from 55
        code.extend([0xc2, 0x18, 0x00]); // ret from 61
        code.extend([0x41, 0x5a, 0x48, 0x8d, 0x24, 0xcc, 0x41, 0x52, 0xc3]); // from 64
        code.extend([0x90; 40]); // from 73
        let made = behind_prologue(&code).unwrap();
        assert_eq!(made, 8);
        let all = [
            0, 4, 5, 8, 9, 11, 50, 51, 54, 55, 59, 61, 64, 66, 70, 72, 87, 112, 200,
        ];
        // The frame is still there before `pop rbp`, and again 32 bytes behind it.
        assert_eq!(certain(&code, made, &all), [8, 9, 11, 50, 51, 54, 87, 112]);
        assert_eq!(behind_prologue(&code[5..]), None);
    }

    #[test]
    fn code_for_on_stack_replacement_begins_with_its_frame() {
        let mut code = vec![TRAP, 0x45, 0x33, 0xd2, 0x48, 0x83, 0xec, 0x20]; // xor, sub rsp
        code.extend([0x90; 40]); // from 8
        code.extend([0x48, 0x8b, 0xe5, 0x5d, 0xc3]); // from 48
        let made = behind_prologue(&code).unwrap();
        assert_eq!(made, 1);
        assert_eq!(
            certain(&code, made, &[0, 1, 4, 8, 48, 51, 52]),
            [1, 4, 8, 48, 51]
        );
        assert_eq!(behind_prologue(&[GIVEN_UP; 64]), None);
    }

    #[test]
    fn a_regular_expression_has_its_frame_but_for_its_entry() {
        let mut code = vec![0xe9, 0x10, 0, 0, 0];
        code.extend([0x90; 20]); // from 5
        code.extend([0x48, 0x8b, 0xe5, 0x5d, 0xc3]); // from 25
        code.extend([0x90; 40]); // from 30
        code.extend([0x55, 0x48, 0x89, 0xe5, 0x57]); // from 70
        code.extend([0x90; 8]); // from 75
        let made = behind_jump(&code).unwrap();
        let all = [
            0, 4, 5, 24, 25, 28, 29, 30, 60, 61, 69, 70, 71, 73, 74, 75, 80,
        ];
        assert_eq!(
            certain(&code, made, &all),
            [5, 24, 25, 28, 61, 69, 74, 75, 80]
        );
        assert_eq!(behind_jump(&[0x90]), None);
        assert_eq!(behind_jump(&[0xeb, 2]), Some(2));
    }

    #[test]
    fn surroundings_show_the_frame_of_code_whose_begin_is_unknown() {
        const PROLOGUE_BUILTIN: u64 = AT + 0x800;
        let mut code = vec![0x90; 64];
        code.extend([0xf6, 0x43, 0x2f, 0x01]); // test from 64
        code.extend(PROLOGUE); // from 68; the frame is there from 72 on
        code.extend([0x90; 40]); // from 75
        code.extend([0x48, 0x8b, 0xe5, 0x5d, 0xc3]); // from 115
        code.extend([0x90; 120]); // from 120
        code.extend([0xbb, 1, 0, 0, 0, 0x49, 0xbc, 1, 2, 3, 4, 5, 6, 7, 8]); // Sparkplug from 240
        code.extend([0xe8, 0xfc, 0x06, 0, 0]); // call of the builtin from 255
        code.extend([0xe8, 0, 0, 0, 0]); // another call from 260
        code.extend([0x90; 40]); // from 265
        code.extend([GIVEN_UP; 20]); // from 305
        code.extend([0; 20]); // from 325
        let mut memory = FakeMemory::new();
        memory.put(Avma(AT), code);
        let has_frame =
            |at: &u64| by_surroundings(&memory, AT + at, |target| target == PROLOGUE_BUILTIN);
        let all = [
            64, 68, 69, 71, 72, 75, 115, 118, 119, 120, 150, 200, 240, 245, 255, 260, 265, 300,
            306, 326, 400,
        ];
        let with = |is_there: bool| {
            let certain = |at: &u64| has_frame(at) == Some(is_there);
            all.into_iter().filter(certain).collect::<Vec<u64>>()
        };
        assert_eq!(with(true), [72, 75, 115, 118, 200, 260, 265, 300]);
        assert_eq!(with(false), [64, 68, 240, 245, 255]);
        let given_up = [308, 313, 325, 326].map(|at| is_given_up(&memory, AT + at));
        assert_eq!(given_up, [true, true, true, false]);
    }

    #[test]
    fn functions_leave_by_returns_and_jumps_alone() {
        let inc_ebx = [0xff, 0xc3];
        let dec_ecx = [0xff, 0xc9];
        let call_r10 = [0x41, 0xff, 0xd2];
        let call_rbx = [0xff, 0xd3];
        let push = [0xff, 0x75, 0x10];
        for stays in [&inc_ebx[..], &dec_ecx, &call_r10, &call_rbx, &push, &[0x90]] {
            assert!(!may_leave(stays), "{stays:x?}");
        }
        let jmp_rax = [0xff, 0xe0];
        let jmp_table = [0xff, 0x24, 0xc1];
        for leaves in [&jmp_rax[..], &jmp_table, &[0xff], &[0xe9, 1], &[0xc3], &[]] {
            assert!(may_leave(leaves), "{leaves:x?}");
        }
    }

    #[test]
    fn unreadable_code_proves_nothing() {
        assert_eq!(certain(&[0x90; 4], 0, &[3, 4, 9]), [3]);
    }
}
