//! Exact code of small methods.

use super::disassembler::listing;
use super::{CompiledCode, Literal, Scope, compile, verifier};
use crate::syntax::{Item, SyntaxError, parse_expression, parse_file};

/// A class with the instance variables `a` and `b`, and the class variable `Shared`.
struct Point;

impl Scope for Point {
    fn instance_variable(&self, name: &str) -> Option<usize> {
        ["a", "b"].iter().position(|known| *known == name)
    }

    fn is_class_variable(&self, name: &str) -> bool {
        name == "Shared"
    }

    fn is_global(&self, name: &str) -> bool {
        name == "lowercaseGlobal"
    }
}

fn try_compile(source: &str) -> Result<CompiledCode, SyntaxError> {
    let text = format!("!Point methodsFor: 'x'!\n{}! !", source.replace('!', "!!"));
    let items = parse_file("test.st", &text)?;
    let [Item::Method(method)] = items.as_slice() else {
        panic!("{items:?}");
    };
    let code = compile(&method.ast, "test.st", &Point)?;
    verifier::verify(&code, 2).expect("correct code");
    Ok(code)
}

fn compiled(source: &str) -> CompiledCode {
    try_compile(source).unwrap_or_else(|error| panic!("{source}\n{error}"))
}

fn do_it(source: &str) -> CompiledCode {
    let source = parse_expression("test.st", source).expect("Smalltalk");
    let code = compile(&source.ast, "test.st", &Point).expect("Smalltalk");
    verifier::verify(&code, 0).expect("correct code");
    code
}

/// The listing of code, and of its blocks after it.
fn lines(code: &CompiledCode) -> Vec<String> {
    let mut lines: Vec<String> = listing(code, 25).iter().map(ToString::to_string).collect();
    for literal in &code.literals {
        if let Literal::Block(block) = literal {
            lines.push(format!("[{}]", block.temp_names.join(" ")));
            lines.extend(self::lines(block));
        }
    }
    lines
}

fn assert_code(source: &str, expected: &[&str]) {
    let found = lines(&compiled(source));
    assert_eq!(found, expected, "{source}\n{}", found.join("\n"));
}

#[test]
fn the_first_example_of_the_design() {
    let code = compiled("foobarbaz self foo. self bar. self baz.");
    assert_eq!(
        code.bytecodes,
        [0x4C, 0x80, 0xD8, 0x4C, 0x81, 0xD8, 0x4C, 0x82, 0xD8, 0x58]
    );
    assert_eq!(code.selector, "foobarbaz");
    assert_eq!(code.stack_depth, 1);
}

#[test]
fn dump() {
    for source in [
        "benchFib ^self < 2 ifTrue: [1] ifFalse: [(self-1) benchFib + (self-2) benchFib + 1]",
        "foo | x | 1 to: 10 do: [:i | x := i. bar add: [x]. [:z | x := z]]. ^x",
        "foo: bar | x | x := 3. ^bar do: [:e | e > x ifTrue: [^e]. x foo]",
        "foo: bar ^bar ifNil: [3] ifNotNil: [:z | z foo: z]",
        "foo | t | [t := self next. t notNil and: [t > 3]] whileTrue: [t foo; bar: 3; baz]. ^{t. 3. #(1 #a b)}",
    ] {
        match try_compile(source) {
            Ok(code) => eprintln!("{source}\n{}\n", lines(&code).join("\n")),
            Err(error) => eprintln!("{source}\n{error}\n"),
        }
    }
}
