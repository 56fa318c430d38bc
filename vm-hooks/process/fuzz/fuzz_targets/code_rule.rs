//! Any bytes as machine code; the first byte is the pc's offset.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_process::{CodeRule, Jumps, ends_with_call};

const BEGIN: u64 = 0x1000;

fuzz_target!(|bytes: &[u8]| {
    let Some((offset, code)) = bytes.split_first() else {
        return;
    };
    let pc = BEGIN + u64::from(*offset);
    for is_innermost in [false, true] {
        let _ = CodeRule::of_function(code, BEGIN, pc, is_innermost);
    }
    let _ = CodeRule::of_returning(code, BEGIN, pc, Jumps::Tail);
    let _ = (CodeRule::of_straight(code), ends_with_call(code));
});
