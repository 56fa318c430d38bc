//! Bytecodes covered by the test programs.

mod common;

use std::collections::BTreeSet;

use vmscope_reference_vm::Vm;
use vmscope_reference_vm::compiler::bytecodes::{self, EXTEND_A, EXTEND_B};
use vmscope_reference_vm::memory::Parameters;

/// Bytecodes absent from all files: the compiler never emits `nop`.
const NEVER: [u8; 1] = [95];

/// Adds the opcodes of all code in a VM. For extended bytecodes, adds the extension opcodes, too.
fn collect(vm: &Vm, opcodes: &mut BTreeSet<u8>) {
    for method in &vm.image.methods {
        let code = &method.code.bytecodes;
        let mut at = 0;
        while at < code.len() {
            let (_, length) = bytecodes::decode(code, at).expect("the compiler's code");
            let end = at + length;
            while code[at] == EXTEND_A || code[at] == EXTEND_B {
                opcodes.insert(code[at]);
                at += bytecodes::length(code[at]);
            }
            opcodes.insert(code[at]);
            at = end;
        }
    }
}

/// Valid opcodes. Missing operand bytes count as 0.
fn opcodes_in_use() -> BTreeSet<u8> {
    let means_something = |opcode: &u8| bytecodes::decode(&[*opcode, 0, 0], 0).is_ok();
    let mut opcodes: BTreeSet<u8> = (0..=255).filter(means_something).collect();
    opcodes.extend([EXTEND_A, EXTEND_B]);
    opcodes
}

#[test]
fn the_class_library_the_programs_and_the_tests_have_every_bytecode_but_these() {
    let mut opcodes = BTreeSet::new();
    let files = [common::files("programs"), common::files("tests")].concat();
    for file in files {
        let mut running = common::vm(Parameters::default(), &["1"]);
        let (_, text) = common::source(&file);
        running.load(&text).expect("the file is right");
        collect(&running.vm, &mut opcodes);
    }
    let never: Vec<u8> = opcodes_in_use().difference(&opcodes).copied().collect();
    assert_eq!(never, NEVER);
}
