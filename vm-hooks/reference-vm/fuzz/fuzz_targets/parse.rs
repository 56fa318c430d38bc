//! Arbitrary text, parsed as a chunk file and as an expression. Property: compiled code passes the
//! verifier.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmscope_reference_vm::compiler::disassembler::listing;
use vmscope_reference_vm::compiler::verifier::verify;
use vmscope_reference_vm::compiler::{Scope, compile};
use vmscope_reference_vm::syntax::{Item, SyntaxError, ast, parse_expression, parse_file};

const INSTANCE_VARIABLES: usize = 20;

/// Single letters name variables: `a` to `t` are instance variables, other letters are globals.
struct Names;

impl Scope for Names {
    fn instance_variable(&self, name: &str) -> Option<usize> {
        let index = match name.as_bytes() {
            [letter @ b'a'..=b'z'] => usize::from(letter - b'a'),
            _ => return None,
        };
        (index < INSTANCE_VARIABLES).then_some(index)
    }

    fn is_class_variable(&self, name: &str) -> bool {
        name == "y"
    }

    fn is_global(&self, name: &str) -> bool {
        name.len() == 1
    }
}

fn check_error(error: &SyntaxError, text: &str) {
    assert!(error.message.starts_with("expected "), "{error}");
    assert!(error.column >= 1 && error.line >= 1, "{error}");
    let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    assert!(error.line as usize <= lines, "{error}");
}

fn check(method: &ast::Method, text: &str) {
    match compile(method, "fuzz.st", &Names) {
        Ok(code) => {
            verify(&code, INSTANCE_VARIABLES).expect("correct code");
            assert_eq!(code.temp_names.len(), code.num_temps);
            assert!(code.lines.is_sorted_by(|a, b| a.0 < b.0));
            let listed: usize = listing(&code, 25).iter().map(|line| line.bytes.len()).sum();
            assert_eq!(listed, code.bytecodes.len());
        }
        Err(error) => check_error(&error, text),
    }
}

fuzz_target!(|text: &str| {
    match parse_file("fuzz.st", text) {
        Ok(items) => {
            for item in items {
                match item {
                    Item::Method(method) => check(&method.ast, text),
                    Item::DoIt(do_it) => check(&do_it.ast, text),
                    Item::Class(_) | Item::ClassInstanceVariables { .. } => {}
                }
            }
        }
        Err(error) => check_error(&error, text),
    }
    match parse_expression("fuzz.st", text) {
        Ok(do_it) => check(&do_it.ast, text),
        Err(error) => check_error(&error, text),
    }
});
