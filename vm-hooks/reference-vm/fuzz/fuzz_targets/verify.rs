//! Arbitrary bytes as code. Property: the disassembler lists them, and the verifier judges them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_reference_vm::compiler::bytecodes::decode;
use vmscope_reference_vm::compiler::disassembler::listing;
use vmscope_reference_vm::compiler::verifier::{stack_depth, verify};
use vmscope_reference_vm::compiler::{CompiledCode, Literal};

/// Maximum nesting depth of the blocks of an input.
const MAX_NESTING: usize = 3;

/// Decodes code. Seven header bytes: arguments, temps, depth, primitive, unused, instance variables,
/// literals. One byte per literal follows. A length precedes a block's code.
fn code(bytes: &mut &[u8], nesting: usize) -> Option<(CompiledCode, usize)> {
    let (head, rest) = bytes.split_first_chunk::<7>()?;
    *bytes = rest;
    let [
        num_args,
        num_temps,
        depth,
        primitive,
        _,
        instance_variables,
        num_literals,
    ] = *head;
    let mut literals = Vec::new();
    for _ in 0..num_literals {
        let (kind, rest) = bytes.split_first()?;
        *bytes = rest;
        literals.push(match kind % 4 {
            0 => Literal::Symbol("foo:".to_owned()),
            1 => Literal::Binding("Foo".to_owned()),
            2 if nesting < MAX_NESTING => {
                let (length, rest) = bytes.split_first()?;
                let (mut inner, rest) = rest.split_at_checked(usize::from(*length))?;
                *bytes = rest;
                Literal::Block(Box::new(code(&mut inner, nesting + 1)?.0))
            }
            _ => Literal::Character(u32::from(*kind)),
        });
    }
    let code = CompiledCode {
        selector: "foo".to_owned(),
        num_args: num_args.into(),
        num_temps: num_temps.into(),
        stack_depth: depth.into(),
        primitive: primitive.into(),
        literals,
        bytecodes: bytes.to_vec(),
        lines: Vec::new(),
        temp_names: vec![String::new(); num_temps.into()],
    };
    Some((code, instance_variables.into()))
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes;
    let Some((code, instance_variables)) = code(&mut bytes, 0) else {
        return;
    };
    let lines = listing(&code, 1);
    let listed: usize = lines.iter().map(|line| line.bytes.len()).sum();
    assert_eq!(listed, code.bytecodes.len());
    if verify(&code, instance_variables).is_ok() {
        let depth = stack_depth(&code).expect("verified code");
        assert!(depth <= code.stack_depth);
        let mut offset = 0;
        for line in lines {
            let (_, length) = decode(&code.bytecodes, offset).expect("verified code");
            assert_eq!(line.bytes.len(), length);
            offset += length;
        }
    }
});
