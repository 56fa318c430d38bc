//! Syntax trees and error messages of the parser.
#![allow(clippy::panic, reason = "a failed test panics")]

use super::ast::{Expression, ExpressionKind, Message, Method};
use super::{ClassKind, Item, parse_expression, parse_file};
use crate::compiler::disassembler::literal_text;
use proptest::prelude::*;

/// The expression, fully parenthesized.
fn text(expression: &Expression) -> String {
    match &expression.kind {
        ExpressionKind::Literal(literal) => literal_text(literal),
        ExpressionKind::Variable(name) => name.clone(),
        ExpressionKind::Assignment(name, value) => format!("{} := {}", name.text, text(value)),
        ExpressionKind::Send(receiver, message) => {
            format!("({}{})", text(receiver), message_text(message))
        }
        ExpressionKind::Cascade(receiver, messages) => {
            let messages: Vec<String> = messages.iter().map(message_text).collect();
            format!("({}{})", text(receiver), messages.join(";"))
        }
        ExpressionKind::Block(block) => {
            let names = |names: &[super::ast::Name]| {
                names
                    .iter()
                    .map(|name| format!("{} ", name.text))
                    .collect::<String>()
            };
            let statements: Vec<String> = block
                .statements
                .iter()
                .map(|s| (if s.returns { "^" } else { "" }).to_owned() + &text(&s.expression))
                .collect();
            let (arguments, temps) = (names(&block.arguments), names(&block.temps));
            format!("[{arguments}| {temps}| {}]", statements.join(". "))
        }
        ExpressionKind::Array(elements) => {
            format!(
                "{{{}}}",
                elements.iter().map(text).collect::<Vec<_>>().join(". ")
            )
        }
    }
}

fn message_text(message: &Message) -> String {
    let arguments = message
        .arguments
        .iter()
        .map(|argument| format!(" {}", text(argument)));
    format!(" {}{}", message.selector, arguments.collect::<String>())
}

fn assert_parses(source: &str, expected: &str) {
    let do_it = parse_expression("x", source).unwrap_or_else(|e| panic!("{source}: {e}"));
    let texts: Vec<String> = do_it
        .ast
        .statements
        .iter()
        .map(|statement| text(&statement.expression))
        .collect();
    assert_eq!(texts.join(". "), expected, "{source}");
}

fn assert_error(source: &str, expected: &str) {
    match parse_expression("x", source) {
        Ok(do_it) => panic!("{source}: {do_it:?}"),
        Err(error) => assert_eq!(error.to_string(), expected, "{source:.200}"),
    }
}

#[test]
fn messages_bind_unary_binary_keyword() {
    assert_parses("a b: c d + e f g: h", "(a b:g: ((c d) + (e f)) h)");
    assert_parses("a + b * c", "((a + b) * c)");
    assert_parses("a + (b * c)", "(a + (b * c))");
    assert_parses(
        "x := y := a foo; bar: 1 + 2; - 3",
        "x := y := (a foo; bar: (1 + 2); - 3)",
    );
    assert_parses("a foo bar; baz", "((a foo) bar; baz)");
    assert_parses(
        "a -> b ==> c >= d ~= e || f",
        "(((((a -> b) ==> c) >= d) ~= e) || f)",
    );
    assert_parses("a. . b.", "a. b");
    assert_parses("\"one\" a \"two\" b \"three\"", "(a b)");
}

#[test]
fn minus_is_a_sign_only_in_front_of_an_operand() {
    assert_parses("3-4", "(3 - 4)");
    assert_parses("3 -4", "(3 - 4)");
    assert_parses("3 - -4", "(3 - -4)");
    assert_parses("3--4", "(3 - -4)");
    assert_parses("a>-1", "(a > -1)");
    assert_parses("-5 abs", "(-5 abs)");
    assert_parses("#(-3 - 4 -1.5)", "#(-3 #- 4 -1.5)");
    assert_error("- 5", "x:1:1: expected an expression, found -");
}

#[test]
fn literals() {
    assert_parses("16r1F. 2r101. -16rFF. 36rZ", "31. 5. -255. 35");
    assert_parses("1e3. 1.5e-3. 2.0e2. 1.5", "1000. 0.0015. 200.0. 1.5");
    let large = "123456789012345678901234567890";
    assert_parses(large, large);
    assert_parses(
        "$a. $ . $'. $\u{20ac}",
        "$a. (Character value: 32). $'. $\u{20ac}",
    );
    assert_parses("'it''s'. ''. '\u{e4}'", "'it''s'. ''. '\u{e4}'");
    assert_parses(
        "#foo. #foo:bar:. #+. #'a b'. #->",
        "#foo. #foo:bar:. #+. #'a b'. #->",
    );
    assert_parses(
        "#(1 2 #foo foo bar: at:put: (1 2) #(3) $a 'x' true false nil + #[1] [2])",
        "#(1 2 #foo #foo #bar: #at:put: #(1 2) #(3) $a 'x' true false nil #+ #[1] #[2])",
    );
    assert_parses("#[1 2 255]. #()", "#[1 2 255]. #()");
    assert_parses("{a. 1 + 2.}. {}", "{a. (1 + 2)}. {}");
}

#[test]
fn blocks() {
    assert_parses("[]", "[| | ]");
    assert_parses("[:a :b | | t u | ^t]", "[a b | t u | ^t]");
    assert_parses("[:a || t | t. a]", "[a | t | t. a]");
    assert_parses("[:a]", "[a | | ]");
    assert_parses("[|| 1]", "[| | 1]");
    assert_parses("[^a.]", "[| | ^a]");
}

#[test]
fn errors_of_expressions() {
    assert_error(
        "a foo: ",
        "x:1:8: expected an expression, found the end of the text",
    );
    assert_error("(a", "x:1:3: expected ), found the end of the text");
    assert_error("a\n  b: )", "x:2:6: expected an expression, found )");
    assert_error("[:a b]", "x:1:5: expected |, found b");
    assert_error("^a. b", "x:1:5: expected the end of the text, found b");
    assert_error(
        "self := 3",
        "x:1:1: expected the name of a variable, found self",
    );
    assert_error(
        "| nil |",
        "x:1:3: expected the name of a variable, found nil",
    );
    assert_error(
        "| a",
        "x:1:4: expected the name of a variable, found the end of the text",
    );
    assert_error(
        "a; b",
        "x:1:2: expected a message in front of a cascade, found ;",
    );
    assert_error(
        "a b; (c)",
        "x:1:6: expected a message of the cascade, found (",
    );
    assert_error("3 := 4", "x:1:3: expected the end of the text, found :=");
    assert_error("#[256]", "x:1:3: expected a byte, found a number");
    assert_error(
        "#(1",
        "x:1:4: expected a literal or ), found the end of the text",
    );
    assert_error("#(1 }", "x:1:5: expected a literal or ), found }");
    assert_error("{1 2}", "x:1:4: expected . or }, found a number");
    assert_error(
        "'abc",
        "x:1:1: expected the end of this string, found the end of the text",
    );
    assert_error(
        "a \"b",
        "x:1:3: expected the end of this comment, found the end of the text",
    );
    assert_error(
        "$",
        "x:1:1: expected a character after $, found the end of the text",
    );
    assert_error(
        "# a",
        "x:1:1: expected a symbol or a literal array, found #",
    );
    assert_error("3abc", "x:1:2: expected a blank after a number, found a");
    assert_error("37r1", "x:1:1: expected a radix from 2 to 36");
    assert_error("2r2", "x:1:3: expected digits of radix 2");
    assert_error("1e-3", "x:1:2: expected a positive exponent of an integer");
    assert_error("1e10001", "x:1:2: expected an exponent of at most 10000");
    assert_error("a \u{20ac}", "x:1:3: expected Smalltalk, found '\u{20ac}'");
    assert_error(
        "thisContext",
        "x:1:1: expected an expression (this VM has no thisContext), found thisContext",
    );
}

#[test]
fn nesting_is_bounded() {
    let nested = |open: &str, close: &str, levels: usize| {
        parse_expression(
            "x",
            &format!("{}1{}", open.repeat(levels), close.repeat(levels)),
        )
    };
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("#(", ")"),
        ("a := ", ""),
        ("a b: (", ")"),
    ] {
        assert!(nested(open, close, 150).is_ok(), "{open}");
        let error = nested(open, close, 100_000).expect_err("too deep");
        assert!(
            error
                .message
                .starts_with("expected at most 200 levels of nesting"),
            "{error}"
        );
    }
    for chain in [" foo", " + 1", "; foo: a"] {
        let error = parse_expression("x", &format!("a foo{}", chain.repeat(100_000)));
        let Err(error) = error else { continue };
        assert_eq!(
            error.message,
            "expected an expression of at most 400 levels"
        );
        assert_ne!(chain, "; foo: a");
    }
}

fn methods(source: &str) -> Vec<(String, bool, Method)> {
    let items = parse_file("x", source).unwrap_or_else(|error| panic!("{error}"));
    items
        .into_iter()
        .map(|item| match item {
            Item::Method(method) => (method.class, method.meta, method.ast),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn methods_of_a_chunk_file() {
    let source = "\"A comment.\"!\n\n!Foo methodsFor: 'one'!\nbar\n\t^'a!!b'!\n\n+ other\n\t^other! !\n\
        \n!Foo class methodsFor: 'two' stamp: 'x'!\nat: a put: b <primitive: 61 error: code> <other: #foo>\n\t| t |\n\t^t! !\n";
    let found = methods(source);
    let names: Vec<_> = found
        .iter()
        .map(|(class, meta, m)| (class.as_str(), *meta, m.selector.as_str()))
        .collect();
    assert_eq!(
        names,
        [
            ("Foo", false, "bar"),
            ("Foo", false, "+"),
            ("Foo", true, "at:put:")
        ]
    );
    assert_eq!(text(&found[0].2.statements[0].expression), "'a!b'");
    assert_eq!(found[1].2.position.line, 7);
    let last = &found[2].2;
    assert_eq!(last.primitive, 61);
    let temps: Vec<&str> = last.temps.iter().map(|temp| temp.text.as_str()).collect();
    assert_eq!(temps, ["code", "t"]);
}

#[test]
fn positions_count_doubled_marks() {
    let error = parse_file(
        "a.st",
        "3 + 4!\n!Foo methodsFor: 'x'!\nfoo\n\t^'!!!!' , )! !",
    )
    .expect_err("wrong");
    assert_eq!(
        error.to_string(),
        "a.st:4:12: expected an expression, found )"
    );
    let items = parse_file("a.st", "3 + 4!\n\n 'x!!y' foo !").expect("right");
    let [Item::DoIt(_), Item::DoIt(second)] = items.as_slice() else {
        panic!("{items:?}")
    };
    assert_eq!((second.line, second.source.as_str()), (3, "'x!y' foo "));
}

#[test]
fn a_blank_chunk_ends_the_methods() {
    let items = parse_file("x", "!Foo methodsFor: 'x'!\nfoo! !\nFoo new!\n").expect("right");
    let [Item::Method(method), Item::DoIt(do_it)] = items.as_slice() else {
        panic!("{items:?}")
    };
    assert_eq!((method.line, method.category.as_str()), (2, "x"));
    assert_eq!(do_it.source, "Foo new");
}

#[test]
fn definitions() {
    let items = parse_file(
        "x",
        "nil subclass: #Object instanceVariableNames: '' classVariableNames: '' package: 'k'!
        Object variableSubclass: #Array instanceVariableNames: 'a b' classVariableNames: 'C' poolDictionaries: '' category: 'k'!
        Object ephemeronSubclass: #E instanceVariableNames: 'key' classVariableNames: '' package: ''!
        Array class instanceVariableNames: 'x y'!",
    )
    .expect("right");
    let [
        Item::Class(root),
        Item::Class(array),
        Item::Class(ephemeron),
        Item::ClassInstanceVariables { class, names, line },
    ] = items.as_slice()
    else {
        panic!("{items:?}")
    };
    assert_eq!(
        (root.superclass.as_deref(), root.name.as_str()),
        (None, "Object")
    );
    assert_eq!(
        (array.superclass.as_deref(), array.kind),
        (Some("Object"), ClassKind::Variable)
    );
    assert_eq!(
        (&*array.instance_variables, &*array.class_variables),
        (&["a".into(), "b".into()][..], &["C".into()][..])
    );
    assert_eq!(ephemeron.kind, ClassKind::Ephemeron);
    assert_eq!((class.as_str(), names.len(), *line), ("Array", 2, 4));
}

#[test]
fn errors_of_definitions() {
    let rest = "classVariableNames: '' package: ''!";
    for (source, expected) in [
        (
            format!("A subclass: B instanceVariableNames: '' {rest}"),
            "x:1:3: expected the class's name as a symbol in this definition",
        ),
        (
            format!("A subclass: #B instanceVariableNames: 'a a' {rest}"),
            "x:1:39: expected different names, found a twice in this definition",
        ),
        (
            format!("A subclass: #B instanceVariableNames: '3' {rest}"),
            "x:1:39: expected the name of a variable, found 3, in this definition",
        ),
        (
            format!("A subclass: #B instanceVariableNames: 3 {rest}"),
            "x:1:39: expected a string of names in this definition",
        ),
        (
            format!("3 subclass: #B instanceVariableNames: '' {rest}"),
            "x:1:1: expected the name of a class in this definition",
        ),
    ] {
        let error = parse_file("x", &source).expect_err("wrong");
        assert_eq!(error.to_string(), expected);
    }
}

proptest! {
    #[test]
    fn any_text_parses_or_is_an_error(text: String) {
        let _ = parse_file("x", &text);
        let _ = parse_expression("x", &text);
    }

    #[test]
    fn any_tokens_parse_or_are_an_error(tokens in prop::collection::vec(prop::sample::select(vec![
        "a", "Foo", "self", "super", "foo:", ":=", "|", "||", "[", "]", ":a", "(", ")", "{", "}", ".", ";", "^", "#(",
        "#[", "1", "-1", "1e5", "16r", "$a", "'x'", "\"", "'", "!", "!!", "+", "<", ">", "<primitive: 1>", "#", "methodsFor:", "\n",
    ]), 0..40)) {
        let text = tokens.join(" ");
        let _ = parse_file("x", &text);
        let _ = parse_file("x", &format!("!Foo methodsFor: 'x'!{text}"));
        let _ = parse_expression("x", &text);
    }
}
