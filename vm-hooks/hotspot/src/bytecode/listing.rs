//! Listings of a method's bytecodes for people.

use vmscope_process::{quoted, shortened};
use vmscope_records::BytecodePc;

use super::decode::{Instruction, Operands, instructions};
use super::pool::{Constant, ConstantPoolView};
use super::reference::{Reference, ReferenceKind};
use super::text::newarray_type;
use crate::method::{MethodInfo, class_name, readable_signature};

/// Maximum number of cases shown per switch.
const MAX_CASES: usize = 16;

/// Instructions of `method` with operands named by `pool`, its class's constant pool.
/// Undecodable bytecodes end the listing with an explanatory line.
#[must_use]
pub fn listing(method: &MethodInfo, pool: &ConstantPoolView<'_>) -> Vec<(BytecodePc, String)> {
    let mut lines = Vec::new();
    let mut at = 0;
    for instruction in instructions(&method.bytecodes) {
        match instruction {
            Ok(instruction) => {
                at = instruction.bci.0.saturating_add(instruction.length);
                let mut line = instruction.name();
                let operands = operand_text(&instruction, pool);
                if !operands.is_empty() {
                    line.push(' ');
                    line.push_str(&operands);
                }
                lines.push((instruction.bci, shortened(line)));
            }
            Err(error) => lines.push((BytecodePc(at), format!("({error})"))),
        }
    }
    lines
}

/// Text of an instruction's operand; empty for none.
#[must_use]
pub fn operand_text(instruction: &Instruction, pool: &ConstantPoolView<'_>) -> String {
    match &instruction.operands {
        Operands::None => String::new(),
        Operands::Local(local) => local.to_string(),
        Operands::Increment(local, by) => format!("{local}, {by}"),
        Operands::Value(value) => value.to_string(),
        Operands::Constant(slot) => constant(pool, *slot),
        Operands::Resolved(number) => match pool.slot_of_resolved(*number) {
            Some(slot) => constant(pool, slot),
            None => format!("resolved reference {number}"),
        },
        Operands::Member(bytes) => match pool.reference(instruction) {
            Some(reference) => member(&reference),
            None => format!("#{}", u16::from_le_bytes(*bytes)),
        },
        Operands::CallSite(bytes) => match pool.reference(instruction) {
            Some(reference) => member(&reference),
            None => format!("#{}", !u32::from_le_bytes(*bytes)),
        },
        Operands::Primitive(number) => {
            newarray_type(*number).map_or_else(|| number.to_string(), str::to_owned)
        }
        Operands::Dimensions(slot, dimensions) => {
            format!("{}, {dimensions}", constant(pool, *slot))
        }
        Operands::Jump(target) => target.to_string(),
        Operands::Table {
            low,
            default,
            targets,
        } => {
            let shown = targets.iter().take(MAX_CASES).map(i32::to_string);
            let high = i64::from(*low) + targets.len() as i64 - 1;
            let cases = cases(shown.collect(), targets.len());
            format!("{low}..{high}: {cases}default: {default}")
        }
        Operands::Lookup { default, pairs } => {
            let shown = pairs.iter().take(MAX_CASES);
            let shown = shown.map(|(number, target)| format!("{number}: {target}"));
            let cases = cases(shown.collect(), pairs.len());
            format!("{cases}default: {default}")
        }
    }
}

fn cases(mut shown: Vec<String>, all: usize) -> String {
    let more = all.saturating_sub(shown.len());
    if more > 0 {
        shown.push(format!("… {more} more"));
    }
    if !shown.is_empty() {
        shown.push(String::new());
    }
    shown.join(", ")
}

fn constant(pool: &ConstantPoolView<'_>, slot: u16) -> String {
    match pool.constant(slot) {
        None => format!("#{slot}"),
        Some(Constant::Integer(value)) => value.to_string(),
        Some(Constant::Long(value)) => format!("{value}L"),
        Some(Constant::Float(value)) => format!("{}f", number(value.into(), &format!("{value:?}"))),
        Some(Constant::Double(value)) => number(value, &format!("{value:?}")),
        Some(Constant::String(text, is_whole)) => quoted(&text, is_whole),
        Some(Constant::Class(class)) => class,
        Some(Constant::MethodType(descriptor)) => {
            format!("method type {}", readable_signature(&descriptor))
        }
        Some(Constant::MethodHandle(class, name, descriptor)) => {
            let parameters = parameters(&descriptor);
            format!("method handle {class}.{name}{parameters}")
        }
        Some(Constant::Dynamic(name, _)) => format!("dynamic {name}"),
    }
}

/// A field's descriptor has no parameters.
fn parameters(descriptor: &str) -> String {
    if descriptor.starts_with('(') {
        readable_signature(descriptor)
    } else {
        String::new()
    }
}

fn member(reference: &Reference) -> String {
    let name = &reference.name;
    match reference.kind {
        ReferenceKind::Field => format!("{}.{name}", class_of(reference)),
        ReferenceKind::CallSite => format!("{name}{}", parameters(&reference.signature)),
        ReferenceKind::Method | ReferenceKind::InterfaceMethod => {
            let parameters = parameters(&reference.signature);
            format!("{}.{name}{parameters}", class_of(reference))
        }
    }
}

/// Arrays have `clone` calls.
fn class_of(reference: &Reference) -> String {
    if reference.class.starts_with('[') {
        super::text::array_or_class(&reference.class)
    } else {
        class_name(&reference.class)
    }
}

/// A floating-point number; NaN and infinities in Java's words.
fn number(value: f64, digits: &str) -> String {
    if value.is_infinite() {
        digits.replace("inf", "Infinity")
    } else {
        digits.to_owned()
    }
}
