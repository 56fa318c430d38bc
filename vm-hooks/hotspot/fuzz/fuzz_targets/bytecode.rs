//! Arbitrary bytes as a method's bytecodes: instructions are contiguous up to the end or an error,
//! and `length_at` agrees.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_hotspot::bytecode::{Operands, instructions, length_at, mnemonic, original};

fuzz_target!(|code: &[u8]| {
    let mut at = 0;
    let mut failed = false;
    for instruction in instructions(code) {
        assert!(!failed, "nothing follows an error");
        match instruction {
            Ok(instruction) => {
                assert_eq!(instruction.bci.0, at);
                assert!(instruction.length > 0);
                assert_eq!(length_at(code, instruction.bci), Some(instruction.length));
                assert!(mnemonic(instruction.opcode).is_some());
                assert_eq!(original(instruction.opcode), instruction.opcode);
                match &instruction.operands {
                    Operands::Table { targets, .. } => assert!(targets.len() <= code.len() / 4),
                    Operands::Lookup { pairs, .. } => assert!(pairs.len() <= code.len() / 8),
                    _ => {}
                }
                at += instruction.length;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                failed = true;
            }
        }
    }
    assert!(failed || at as usize == code.len());
});
