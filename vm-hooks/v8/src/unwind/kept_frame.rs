//! Frames of optimised functions and of regular expressions. Their code makes its frame once, keeps it through all calls and
//! branches, and removes it right before it returns (V8's `code-generator-x64.cc`, `maglev-code-generator.cc`,
//! `regexp-macro-assembler-x64.cc`, 10.2 to 14.6).

use vmscope_process::Memory;
use vmscope_records::Avma;

/// Begin of optimised functions: `push rbp; mov rbp, rsp; push rsi; push rdi; push rax`. A check of the function's validity
/// may come before.
const PROLOGUE: [u8; 7] = [0x55, 0x48, 0x89, 0xe5, 0x56, 0x57, 0x50];

/// Instructions in it that make the frame.
const MAKES: usize = 4;

/// Instructions that remove the frame: `mov rsp, rbp; pop rbp`, and `leave`.
const REMOVE: [&[u8]; 3] = [
    &[0x48, 0x8b, 0xe5, 0x5d],
    &[0x48, 0x89, 0xec, 0x5d],
    &[0xc9],
];

/// Maximum number of bytes from the removal of a frame to the last return behind it (measured: 23).
const EPILOGUE: usize = 32;

/// Number of bytes before a pc that hold a removal whose epilogue may go on there.
const BEFORE: usize = EPILOGUE + MAKES - 1;

/// First bytes of returns, and of jumps to other functions.
const LAST: [u8; 4] = [0xc2, 0xc3, 0xe9, 0xff];

/// Number of bytes before an optimised function's frame is made, from its first bytes.
pub(super) fn behind_prologue(begin: &[u8]) -> Option<usize> {
    let mut each = begin.windows(PROLOGUE.len());
    Some(each.position(|bytes| bytes == PROLOGUE)? + MAKES)
}

/// Number of bytes of the jump at the begin of a regular expression's code.
pub(super) fn behind_jump(begin: &[u8]) -> Option<usize> {
    match begin.first()? {
        0xe9 => Some(5),
        0xeb => Some(2),
        _ => None,
    }
}

/// Whether code that makes its frame before `made`, or at a regular expression's entry, certainly has its frame at `pc`.
pub(super) fn is_there(memory: &dyn Memory, made: u64, pc: u64) -> bool {
    if pc < made {
        return false;
    }
    let from = made.max(pc.saturating_sub(BEFORE as u64));
    let before = (pc - from) as usize;
    let mut bytes = [0; BEFORE + MAKES];
    let wanted = &mut bytes[..before + MAKES];
    let Ok(read) = memory.read_partial(Avma(from), wanted) else {
        return false;
    };
    let bytes = &wanted[..read];
    let Some(first) = bytes.get(before) else {
        return false;
    };
    let is_removed = REMOVE.iter().any(|remove| {
        let mut ends = bytes.windows(remove.len()).zip(remove.len()..);
        ends.any(|(at, end)| at == *remove && end <= before)
    });
    let is_being_made = bytes.windows(MAKES).zip(0..).any(|(at, begin)| {
        let is_here = begin <= before && before < begin + MAKES;
        is_here && at == &PROLOGUE[..MAKES]
    });
    !LAST.contains(first) && !is_removed && !is_being_made
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
        let is_there = |at: &usize| is_there(&memory, AT + made as u64, AT + *at as u64);
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
    fn unreadable_code_proves_nothing() {
        assert_eq!(certain(&[0x90; 4], 0, &[3, 4, 9]), [3]);
    }
}
