//! Listings of bytecodes in Squeak's notation.

use super::bytecodes::{InVector, Instruction, SPECIAL_SELECTORS, decode};
use super::{CompiledCode, Literal};
use std::fmt;

/// A line of a listing: an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The instruction's pc; extensions come first.
    pub pc: u32,
    /// The instruction's bytes, extensions included.
    pub bytes: Vec<u8>,
    /// The instruction as text.
    pub text: String,
}

impl fmt::Display for Line {
    /// `25 <4C> self`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <", self.pc)?;
        for (index, byte) in self.bytes.iter().enumerate() {
            let blank = if index == 0 { "" } else { " " };
            write!(f, "{blank}{byte:02X}")?;
        }
        write!(f, "> {}", self.text)
    }
}

/// Lists code whose first bytecode has the pc `first_pc`.
#[must_use]
pub fn listing(code: &CompiledCode, first_pc: u32) -> Vec<Line> {
    list(&code.bytecodes, first_pc, |index| {
        code.literals.get(index).map(literal_text)
    })
}

/// Lists bytecodes. `literal` returns a literal's text, formatted like [`literal_text`].
///
/// Bytes that begin no instruction get separate lines.
pub fn list(
    bytecodes: &[u8],
    first_pc: u32,
    literal: impl Fn(usize) -> Option<String>,
) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut offset = 0;
    while offset < bytecodes.len() {
        let pc = pc_at(first_pc, offset);
        let (text, length) = match decode(bytecodes, offset) {
            Ok((instruction, length)) => {
                let end = pc_at(first_pc, offset + length);
                (text(instruction, end, &literal), length)
            }
            Err(_) => ("unknown".to_owned(), 1),
        };
        let bytes = bytecodes.get(offset..offset + length).unwrap_or_default();
        lines.push(Line {
            pc,
            bytes: bytes.to_vec(),
            text,
        });
        offset += length;
    }
    lines
}

fn pc_at(first_pc: u32, offset: usize) -> u32 {
    first_pc.saturating_add(u32::try_from(offset).unwrap_or(u32::MAX))
}

/// Text of an instruction. `end`: pc of the instruction's end.
fn text(instruction: Instruction, end: u32, literal: &impl Fn(usize) -> Option<String>) -> String {
    use Instruction as I;
    let literal = |index: usize| literal(index).unwrap_or_else(|| format!("literal {index}"));
    let selector = |index: usize| {
        let text = literal(index);
        text.strip_prefix('#').map(str::to_owned).unwrap_or(text)
    };
    let target = |distance: i32| end.saturating_add_signed(distance);
    let in_vector = |place: InVector| format!("{} inVectorAt: {}", place.index, place.vector);
    match instruction {
        I::PushReceiverVariable(index) => format!("pushRcvr: {index}"),
        I::PushLiteralVariable(index) => format!("pushLit: {}", literal(index)),
        I::PushLiteral(index) => format!("pushConstant: {}", literal(index)),
        I::PushTemp(index) => format!("pushTemp: {index}"),
        I::PushReceiver => "self".to_owned(),
        I::PushTrue => "pushConstant: true".to_owned(),
        I::PushFalse => "pushConstant: false".to_owned(),
        I::PushNil => "pushConstant: nil".to_owned(),
        I::PushInteger(value) => format!("pushConstant: {value}"),
        I::PushCharacter(code_point) => format!("pushConstant: {}", character_text(code_point)),
        I::Dup => "dup".to_owned(),
        I::Pop => "pop".to_owned(),
        I::Nop => "nop".to_owned(),
        I::ReturnReceiver => "returnSelf".to_owned(),
        I::ReturnTrue => "return: true".to_owned(),
        I::ReturnFalse => "return: false".to_owned(),
        I::ReturnNil => "return: nil".to_owned(),
        I::ReturnTop => "returnTop".to_owned(),
        I::BlockReturnNil => "blockReturn: nil".to_owned(),
        I::BlockReturnTop => "blockReturn".to_owned(),
        I::SendSpecial(index) => {
            let selector = SPECIAL_SELECTORS
                .get(index)
                .map_or("?", |special| special.0);
            format!("send: {selector}")
        }
        I::Send { literal, .. } => format!("send: {}", selector(literal)),
        I::SendSuper { literal, .. } => format!("superSend: {}", selector(literal)),
        I::Jump(distance) => format!("jumpTo: {}", target(distance)),
        I::JumpTrue(distance) => format!("jumpTrue: {}", target(distance)),
        I::JumpFalse(distance) => format!("jumpFalse: {}", target(distance)),
        I::PopIntoReceiverVariable(index) => format!("popIntoRcvr: {index}"),
        I::PopIntoLiteralVariable(index) => format!("popIntoLit: {}", literal(index)),
        I::PopIntoTemp(index) => format!("popIntoTemp: {index}"),
        I::StoreIntoReceiverVariable(index) => format!("storeIntoRcvr: {index}"),
        I::StoreIntoLiteralVariable(index) => format!("storeIntoLit: {}", literal(index)),
        I::StoreIntoTemp(index) => format!("storeIntoTemp: {index}"),
        I::PushNewArray(size) => format!("push: (Array new: {size})"),
        I::PushArrayOf(size) => format!("pop {size} into (Array new: {size})"),
        I::CallPrimitive(number) => format!("callPrimitive: {number}"),
        I::PushClosure {
            literal: index,
            num_copied,
            ..
        } => format!("closure: {} numCopied: {num_copied}", literal(index)),
        I::PushInVector(place) => format!("pushTemp: {}", in_vector(place)),
        I::StoreInVector(place) => format!("storeIntoTemp: {}", in_vector(place)),
        I::PopInVector(place) => format!("popIntoTemp: {}", in_vector(place)),
    }
}

/// A literal as source text. Bindings appear as names, blocks as their arguments (`[:x]`).
#[must_use]
pub fn literal_text(literal: &Literal) -> String {
    match literal {
        Literal::Nil => "nil".to_owned(),
        Literal::True => "true".to_owned(),
        Literal::False => "false".to_owned(),
        Literal::Integer(value) => value.to_string(),
        Literal::Float(value) => format!("{value:?}"),
        Literal::Character(code_point) => character_text(*code_point),
        Literal::String(bytes) => quoted(&String::from_utf8_lossy(bytes)),
        Literal::Symbol(name) => symbol_text(name),
        Literal::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(literal_text).collect();
            format!("#({})", elements.join(" "))
        }
        Literal::Bytes(bytes) => {
            let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
            format!("#[{}]", bytes.join(" "))
        }
        Literal::Binding(name) => name.clone(),
        Literal::Block(code) => {
            let names = code.temp_names.iter().take(code.num_args);
            let arguments: Vec<String> = names.map(|name| format!(":{name}")).collect();
            format!("[{}]", arguments.join(" "))
        }
    }
}

fn character_text(code_point: u32) -> String {
    match char::from_u32(code_point) {
        Some(c) if !c.is_control() && c != ' ' => format!("${c}"),
        _ => format!("(Character value: {code_point})"),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn symbol_text(name: &str) -> String {
    let plain = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_:".contains(c))
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let binary = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_punctuation() && !"'\"_:".contains(c));
    if plain || binary {
        format!("#{name}")
    } else {
        format!("#{}", quoted(name))
    }
}
