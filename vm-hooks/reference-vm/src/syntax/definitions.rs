//! Recognizes do-its that define classes or begin method lists.

use super::ast::{Expression, ExpressionKind, Message, Method, Position};
use super::{ClassDefinition, ClassKind, Item, SyntaxError};
use crate::compiler::Literal;

/// Parses `Foo methodsFor: 'x'`: class, metaclass flag, category.
pub fn methods_header(do_it: &Method) -> Option<(String, bool, String)> {
    let (receiver, message) = single_send(do_it)?;
    if !matches!(
        message.selector.as_str(),
        "methodsFor:" | "methodsFor:stamp:"
    ) {
        return None;
    }
    let category = string(message.arguments.first()?)?;
    match class_side(receiver) {
        Some(class) => Some((class.to_owned(), true, category)),
        None => Some((variable(receiver)?.to_owned(), false, category)),
    }
}

/// Definition in a do-it; `None` for other do-its.
pub fn definition(file: &str, do_it: &Method) -> Result<Option<Item>, SyntaxError> {
    let Some((receiver, message)) = single_send(do_it) else {
        return Ok(None);
    };
    if message.selector == "instanceVariableNames:"
        && let Some(class) = class_side(receiver)
    {
        return Ok(Some(Item::ClassInstanceVariables {
            class: class.to_owned(),
            names: names(file, message, 0)?,
            line: do_it.position.line,
        }));
    }
    let Some(kind) = kind(&message.selector) else {
        return Ok(None);
    };
    let superclass = match &receiver.kind {
        ExpressionKind::Literal(Literal::Nil) => None,
        ExpressionKind::Variable(name) => Some(name.clone()),
        _ => return expected(file, receiver.position, "the name of a class"),
    };
    let name = match message.arguments.first().map(|argument| &argument.kind) {
        Some(ExpressionKind::Literal(Literal::Symbol(name))) if is_name(name) => name.clone(),
        _ => return expected(file, message.position, "the class's name as a symbol"),
    };
    Ok(Some(Item::Class(ClassDefinition {
        superclass,
        name,
        kind,
        instance_variables: names(file, message, 1)?,
        class_variables: names(file, message, 2)?,
        file: file.to_owned(),
        line: do_it.position.line,
    })))
}

/// Class kind of a class-defining message.
fn kind(selector: &str) -> Option<ClassKind> {
    let rest = selector
        .strip_suffix("package:")
        .or_else(|| selector.strip_suffix("poolDictionaries:category:"))
        .or_else(|| selector.strip_suffix("category:"))?;
    match rest.strip_suffix("instanceVariableNames:classVariableNames:")? {
        "subclass:" => Some(ClassKind::Normal),
        "variableSubclass:" => Some(ClassKind::Variable),
        "variableByteSubclass:" => Some(ClassKind::VariableByte),
        "weakSubclass:" => Some(ClassKind::Weak),
        "ephemeronSubclass:" => Some(ClassKind::Ephemeron),
        _ => None,
    }
}

fn expected<T>(file: &str, position: Position, what: &str) -> Result<T, SyntaxError> {
    Err(SyntaxError::new(
        file,
        position,
        format!("expected {what} in this definition"),
    ))
}

/// Receiver and message of a single-send do-it.
fn single_send(do_it: &Method) -> Option<(&Expression, &Message)> {
    match do_it.statements.as_slice() {
        [statement] if !statement.returns && do_it.temps.is_empty() => {
            match &statement.expression.kind {
                ExpressionKind::Send(receiver, message) => Some((receiver, message)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// `Foo` of `Foo class`.
fn class_side(expression: &Expression) -> Option<&str> {
    match &expression.kind {
        ExpressionKind::Send(receiver, message) if message.selector == "class" => {
            variable(receiver)
        }
        _ => None,
    }
}

fn variable(expression: &Expression) -> Option<&str> {
    match &expression.kind {
        ExpressionKind::Variable(name) => Some(name),
        _ => None,
    }
}

fn string(expression: &Expression) -> Option<String> {
    match &expression.kind {
        ExpressionKind::Literal(Literal::String(bytes)) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        _ => None,
    }
}

/// Names in a string argument of `message`.
fn names(file: &str, message: &Message, argument: usize) -> Result<Vec<String>, SyntaxError> {
    let Some(argument) = message.arguments.get(argument) else {
        return expected(file, message.position, "a string of names");
    };
    let Some(text) = string(argument) else {
        return expected(file, argument.position, "a string of names");
    };
    let names: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    for (index, name) in names.iter().enumerate() {
        if !is_name(name) {
            let what = format!("the name of a variable, found {name},");
            return expected(file, argument.position, &what);
        }
        if names.iter().take(index).any(|earlier| earlier == name) {
            let what = format!("different names, found {name} twice");
            return expected(file, argument.position, &what);
        }
    }
    Ok(names)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !super::parser::is_reserved(text)
}
