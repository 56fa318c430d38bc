//! Exact code of small methods, error messages, and properties of all compiled code.
#![allow(clippy::panic, reason = "a failed test panics")]

use super::bytecodes::{InVector, Instruction, decode};
use super::disassembler::listing;
use super::encoder::encode;
use super::verifier::{Flaw, VerifyError, verify};
use super::{CompiledCode, Literal, Scope, compile};
use crate::syntax::{Item, SyntaxError, parse_expression, parse_file};
use proptest::prelude::*;

/// A class with instance variables `a` and `b`, and class variable `shared`.
struct Point;

impl Scope for Point {
    fn instance_variable(&self, name: &str) -> Option<usize> {
        ["a", "b"].iter().position(|known| *known == name)
    }

    fn is_class_variable(&self, name: &str) -> bool {
        name == "shared"
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
    verify(&code, 2).unwrap_or_else(|error| panic!("{source}\n{error}"));
    Ok(code)
}

fn compiled(source: &str) -> CompiledCode {
    try_compile(source).unwrap_or_else(|error| panic!("{source}\n{error}"))
}

fn do_it(source: &str) -> CompiledCode {
    let source = parse_expression("test.st", source).expect("Smalltalk");
    let code = compile(&source.ast, "test.st", &Point).expect("Smalltalk");
    verify(&code, 2).expect("correct code");
    code
}

fn blocks(code: &CompiledCode) -> impl Iterator<Item = &CompiledCode> {
    code.literals.iter().filter_map(|literal| match literal {
        Literal::Block(block) => Some(&**block),
        _ => None,
    })
}

/// Listing of code, followed by listings of its blocks.
fn lines(code: &CompiledCode) -> String {
    let mut lines: String = listing(code, 25)
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    for block in blocks(code) {
        lines += &format!("[{}]\n", block.temp_names.join(" "));
        lines += &self::lines(block);
    }
    lines
}

/// `listings.txt` pairs sources with their code. `BLESS=1` rewrites the file.
#[test]
fn code_is_as_listed() {
    let expected = include_str!("tests/listings.txt");
    let sources = expected
        .split("\n\n")
        .filter_map(|entry| entry.lines().next());
    let entries = sources.map(|source| format!("{source}\n{}", lines(&compiled(source))));
    let found = entries.collect::<Vec<_>>().join("\n");
    if std::env::var_os("BLESS").is_some() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/src/compiler/tests/listings.txt"
        );
        std::fs::write(path, &found).expect("a file of the checkout");
    } else {
        assert_eq!(found, expected);
    }
}

#[test]
fn frames_are_described() {
    let code = compiled("foo: x | t | ^[:p | [:q | p == q ifTrue: [^p]. t := q]]");
    assert_eq!((code.num_args, code.num_temps), (1, 2));
    assert_eq!(code.temp_names, ["x", "<vector>"]);
    let outer = blocks(&code).next().expect("a block");
    assert_eq!((outer.num_args, outer.num_temps), (1, 2));
    let inner = blocks(outer).next().expect("a block");
    assert_eq!(inner.temp_names, ["q", "p", "<vector>"]);
    assert_eq!(inner.stack_depth, 2);
    let code = compiled("foo ^self a: (self b: 1 c: (self d: 2)) e: 3");
    assert_eq!(code.stack_depth, 5);
    let code = compiled("foo <primitive: 511> ^nil");
    assert_eq!(code.primitive, 511);
    assert_eq!(code.bytecodes, [248, 0xFF, 1, 91]);
}

#[test]
fn do_its_answer_the_last_value() {
    assert_eq!(
        do_it("| x | x := 3. x + 4").bytecodes,
        do_it("| x | x := 3. ^x + 4").bytecodes
    );
    assert_eq!(do_it("nil foo. self").bytecodes, [0x4F, 0x80, 0xD8, 0x58]);
    assert_eq!(do_it("").bytecodes, [0x5B]);
    assert_eq!(do_it("3").selector, "DoIt");
}

#[test]
fn lines_are_those_of_the_file() {
    let code = compiled("foo\n\tself one.\n\tself\n\t\ttwo;\n\t\tthree.\n\t^[self\n\t\tfour]");
    // The method starts at line 2 of the file.
    assert_eq!(code.lines, [(0, 3), (3, 4), (5, 5), (7, 6), (9, 7)]);
    let block = blocks(&code).next().expect("a block");
    assert_eq!(block.lines, [(0, 7), (1, 8)]);
}

#[test]
fn literals_share_slots_only_if_nobody_can_tell() {
    let code =
        compiled("foo ^{#x. #x. 100000. 100000. 'x'. 'x'. 0.0. -0.0. 100000.0. Foo. Foo. #Foo}");
    assert_eq!(code.literals.len(), 9);
}

#[test]
fn long_code_uses_extensions() {
    let mut source =
        "foo a := self x: 1 y: 2 z: 3 u: 4 v: 5 w: 6 r: 7 s: 8. a ifTrue: [".to_owned();
    for index in 0..300 {
        source += &format!("a := b foo{index}. ");
    }
    source += "[#last. Last := #final]. ^#final]. [a foo] whileTrue: [super bar]";
    let code = compiled(&source);
    let instructions = decoded(&code.bytecodes);
    let last_send = Instruction::Send {
        literal: 300,
        num_args: 0,
    };
    assert!(instructions.contains(&last_send));
    assert!(instructions.contains(&Instruction::Send {
        literal: 0,
        num_args: 8
    }));
    assert!(instructions.contains(&Instruction::PushLiteral(301)));
    assert!(
        instructions
            .iter()
            .any(|i| matches!(i, Instruction::JumpFalse(1000..)))
    );
    assert!(
        instructions
            .iter()
            .any(|i| matches!(i, Instruction::Jump(..0)))
    );
}

fn decoded(bytecodes: &[u8]) -> Vec<Instruction> {
    let mut offset = 0;
    let mut instructions = Vec::new();
    while offset < bytecodes.len() {
        let (instruction, length) = decode(bytecodes, offset).expect("an instruction");
        instructions.push(instruction);
        offset += length;
    }
    instructions
}

fn assert_error(source: &str, expected: &str) {
    match try_compile(source) {
        Ok(_) => panic!("{source}: no error"),
        Err(error) => assert_eq!(error.to_string(), expected, "{source:.200}"),
    }
}

#[test]
fn errors_say_where_and_what() {
    let undeclared = "expected a declared variable, found undeclared variable";
    assert_error("foo\n\t^x + 1", &format!("test.st:3:3: {undeclared} x"));
    assert_error("foo x := 1", &format!("test.st:2:5: {undeclared} x"));
    assert_error(
        "foo: x x := 1",
        "test.st:2:8: expected a variable, found the argument x",
    );
    assert_error(
        "foo ^[:x | x := 1]",
        "test.st:2:12: expected a variable, found the argument x",
    );
    assert_error(
        "foo | x y x |",
        "test.st:2:11: expected another name, found x again",
    );
    assert_error(
        "foo: x | x |",
        "test.st:2:10: expected another name, found x again",
    );
    assert_error("foo ^super", "test.st:2:6: expected a message to super");
    let seventeen = (0..17)
        .map(|index| format!("k{index}: v{index} "))
        .collect::<String>();
    assert_error(
        &seventeen,
        "test.st:2:1: expected at most 15 arguments, found 17",
    );
    let many = (0..64)
        .map(|index| format!("t{index} "))
        .collect::<String>();
    assert_error(
        &format!("foo |{many}|"),
        "test.st:2:1: expected at most 63 temps",
    );
    let many = "1. ".repeat(128);
    assert_error(
        &format!("foo ^{{{many}}}"),
        "test.st:2:5: expected at most 127 elements in braces",
    );
}

#[test]
fn code_beyond_the_limits_is_an_error() {
    let mut source = "foo a ifTrue: [".to_owned();
    for index in 0..17_000 {
        source += &format!("b x{}. ", index % 100);
    }
    source += "]";
    assert_error(
        &source,
        "test.st:2:1: expected shorter code: a jump or an index is too large",
    );
}

#[test]
fn the_deepest_code_compiles() {
    for (open, close) in [
        ("(a foo: ", ")"),
        ("[", "]"),
        ("[^", "]"),
        ("(a ifTrue: [", "])"),
        ("(1 to: 2 do: [:i | ", "])"),
        ("(a ifNil: [] ifNotNil: [:x | ", "])"),
        ("{", "}"),
        ("a := ", ""),
    ] {
        for levels in (1..200).rev() {
            let source = format!("foo ^{}b{}", open.repeat(levels), close.repeat(levels));
            match try_compile(&source) {
                Ok(_) => {
                    assert!(levels > 29, "{open}: {levels}");
                    break;
                }
                Err(error) => assert!(error.message.contains("at most"), "{error}"),
            }
        }
    }
    compiled(&format!("foo ^{}", vec!["a"; 399].join(" + ")));
    compiled(&format!("foo ^a{}", " foo".repeat(398)));
}

fn flaw(change: impl FnOnce(&mut CompiledCode)) -> Result<(), Flaw> {
    let mut code =
        compiled("foo: x | t | t := self foo: x with: Foo. ^[:e | t := e. x foo ifTrue: [^a]]");
    change(&mut code);
    verify(&code, 2).map_err(|VerifyError { flaw, .. }| flaw)
}

#[test]
fn the_verifier_finds_flaws() {
    assert_eq!(flaw(|_| {}), Ok(()));
    assert_eq!(flaw(|code| code.stack_depth = 1), Err(Flaw::Overflow(1)));
    assert_eq!(flaw(|code| code.num_temps = 64), Err(Flaw::Header));
    assert_eq!(flaw(|code| code.primitive = 60), Err(Flaw::Primitive));
    let ignore_outer = |code: &mut CompiledCode| {
        let closure = code.bytecodes.iter().position(|byte| *byte == 249);
        code.bytecodes[closure.expect("a closure") + 2] |= 0x40;
    };
    assert_eq!(flaw(ignore_outer), Err(Flaw::Home));
    assert_eq!(
        flaw(|code| code.literals[1] = Literal::Nil),
        Err(Flaw::Literal(1))
    );
    assert_eq!(flaw(|code| code.literals.clear()), Err(Flaw::Literal(0)));
    for (bytecodes, expected) in [
        (vec![0x58], Ok(())),
        (vec![], Err(Flaw::End)),
        (vec![0x4C], Err(Flaw::End)),
        (vec![0x5C], Err(Flaw::Underflow)),
        (vec![2, 0x5C], Err(Flaw::InstanceVariable(2))),
        (vec![66, 0x5C], Err(Flaw::Temp(2))),
        (vec![0x5E], Err(Flaw::Misplaced)),
        (vec![248, 1, 0, 0x58], Err(Flaw::Primitive)),
        (vec![0xB0, 0x58], Err(Flaw::Target(2))),
        (vec![0xB0, 0xE8, 0, 0x58], Err(Flaw::Target(2))),
        (vec![0xE1, 0xFF, 0xED, 0xFC], Ok(())),
        (vec![0xE1, 0xFF, 0xED, 0xFB], Err(Flaw::Target(-1))),
        (vec![0x4D, 0xB8, 0x4C, 0x58], Err(Flaw::Depths(1, 0))),
        (
            vec![0x4C, 0x4C, 0x4C, 0x4C, 0x4C, 0x58],
            Err(Flaw::Overflow(3)),
        ),
    ] {
        let found = flaw(|code| code.bytecodes.clone_from(&bytecodes));
        assert_eq!(found, expected, "{bytecodes:02X?}");
    }
    for bytecodes in [
        vec![82],
        vec![0xE0, 1, 0x58],
        vec![0xE1],
        vec![249, 0, 0x80],
        vec![255, 0, 0],
    ] {
        let found = flaw(|code| code.bytecodes.clone_from(&bytecodes));
        assert!(
            matches!(found, Err(Flaw::Decode(_))),
            "{bytecodes:02X?}: {found:?}"
        );
    }
}

fn instruction() -> impl Strategy<Value = Instruction> {
    use Instruction as I;
    let index = 0..65_536_usize;
    let temp = 0..64_usize;
    let element =
        (0..128_usize, 0..64_usize).prop_map(|(index, vector)| InVector { index, vector });
    let send = (0..8192_usize, 0..16_usize);
    prop_oneof![
        index.clone().prop_map(I::PushReceiverVariable),
        index.clone().prop_map(I::PushLiteralVariable),
        index.clone().prop_map(I::PushLiteral),
        index.clone().prop_map(I::PopIntoReceiverVariable),
        index.clone().prop_map(I::PopIntoLiteralVariable),
        index.clone().prop_map(I::StoreIntoReceiverVariable),
        index.clone().prop_map(I::StoreIntoLiteralVariable),
        temp.clone().prop_map(I::PushTemp),
        temp.clone().prop_map(I::PopIntoTemp),
        temp.prop_map(I::StoreIntoTemp),
        (-32_768..32_768).prop_map(I::PushInteger),
        (-32_768..32_768).prop_map(I::Jump),
        (0..32_768).prop_map(I::JumpTrue),
        (0..32_768).prop_map(I::JumpFalse),
        (0..32_768_u32).prop_map(I::PushCharacter),
        (0..32_usize).prop_map(I::SendSpecial),
        (0..128_usize).prop_map(I::PushNewArray),
        (0..128_usize).prop_map(I::PushArrayOf),
        (0..8192_usize).prop_map(I::CallPrimitive),
        send.clone()
            .prop_map(|(literal, num_args)| I::Send { literal, num_args }),
        send.prop_map(|(literal, num_args)| I::SendSuper { literal, num_args }),
        element.clone().prop_map(I::PushInVector),
        element.clone().prop_map(I::StoreInVector),
        element.prop_map(I::PopInVector),
        (index, 0..64_usize, any::<bool>()).prop_map(|(literal, num_copied, ignores_outer)| {
            I::PushClosure {
                literal,
                num_copied,
                ignores_outer,
            }
        }),
    ]
}

/// Parenthesized expressions over the variables `a b t u e`.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "self", "a", "b", "t", "u", "nil", "true", "Foo", "#foo", "'x'", "$c", "1.5", "#(1 x)",
            "3",
        ])
        .prop_map(str::to_owned),
        any::<i64>().prop_map(|value| value.to_string()),
    ];
    leaf.prop_recursive(8, 64, 4, |inner| {
        let body =
            prop::collection::vec(inner.clone(), 0..4).prop_map(|statements| statements.join(". "));
        let returning =
            (body.clone(), inner.clone(), any::<bool>()).prop_map(|(body, last, returns)| {
                if returns {
                    format!("{body}. ^{last}")
                } else {
                    body
                }
            });
        let selectors = vec![
            "(? foo)",
            "(? + %)",
            "(? foo: % bar: %)",
            "(t := ?)",
            "(u := %)",
            "(a := %)",
            "{?. %}",
            "(? foo; + %; bar: %)",
            "[&]",
            "[:e | &]",
            "[| t | t := %. &]",
            "(? ifTrue: [&])",
            "(? ifFalse: [&] ifTrue: [~])",
            "(? and: [&])",
            "(? or: [&])",
            "(? ifNil: [&])",
            "(? ifNotNil: [:e | e foo. &])",
            "(? ifNil: [&] ifNotNil: [:z | z foo. ~])",
            "([&. %] whileTrue: [~])",
            "([| u | &. u := %] whileFalse)",
            "[~] repeat",
            "(1 to: % do: [:i | | t | &. t foo. [i. t := %]])",
            "(% to: 1 by: -1 do: [:i | ~])",
            "(? timesRepeat: [| u | &. [u]. u := 3])",
            "(super foo: %)",
        ];
        (
            prop::sample::select(selectors),
            inner.clone(),
            inner,
            body,
            returning,
        )
            .prop_map(|(template, receiver, argument, body, returning)| {
                let mut text = String::new();
                for c in template.chars() {
                    match c {
                        '?' => text += &receiver,
                        '%' => text += &argument,
                        '&' => text += &body,
                        '~' => text += &returning,
                        c => text.push(c),
                    }
                }
                text
            })
    })
}

proptest! {
    #[test]
    fn instructions_come_back(instruction in instruction()) {
        let mut bytes = Vec::new();
        prop_assert_eq!(encode(instruction, &mut bytes), Some(()));
        prop_assert_eq!(decode(&bytes, 0), Ok((instruction, bytes.len())));
    }

    #[test]
    fn any_bytes_can_be_listed_and_verified(bytecodes: Vec<u8>) {
        let mut code = compiled("foo: x | t u | ^[:e | e foo: Foo with: x]");
        code.bytecodes = bytecodes;
        let listed: usize = listing(&code, u32::MAX - 10).iter().map(|line| line.bytes.len()).sum();
        prop_assert_eq!(listed, code.bytecodes.len());
        let _ = verify(&code, 2);
    }

    #[test]
    fn programs_compile_to_correct_code(statements in prop::collection::vec(expression(), 0..6)) {
        let source = format!("foo: e | t u | {}", statements.join(".\n"));
        match try_compile(&source) {
            Ok(_) => {}
            Err(error) => prop_assert_eq!(error.message, "expected at most 63 temps", "{}", source),
        }
    }
}
