//! Listings of a method's bytecodes for people.

use std::fmt::Write as _;

use vmscope_process::{quoted, shortened};
use vmscope_records::BytecodePc;

use super::decode::{Instruction, Operands, instructions};
use super::pool::{Constant, ConstantPoolView};
use super::reference::{Reference, ReferenceKind};
use super::text::{newarray_type, push_array_or_class};
use crate::method::{MethodInfo, push_signature};

/// Maximum number of cases shown per switch.
const MAX_CASES: usize = 16;

/// Instructions of `method` with operands named by `pool`, its class's constant pool.
/// Undecodable bytecodes end the listing with an explanatory line.
#[must_use]
pub fn listing(method: &MethodInfo, pool: &ConstantPoolView<'_>) -> Vec<(BytecodePc, String)> {
    let mut lines = Vec::new();
    let mut line = String::with_capacity(128);
    let mut at = 0;
    for instruction in instructions(&method.bytecodes) {
        match instruction {
            Ok(instruction) => {
                at = instruction.bci.0.saturating_add(instruction.length);
                line.clear();
                push_instruction(&mut line, &instruction, pool);
                lines.push((instruction.bci, shortened(line.as_str().to_owned())));
            }
            Err(error) => lines.push((BytecodePc(at), format!("({error})"))),
        }
    }
    lines
}

/// Appends formatted text; a `String` takes all of it.
macro_rules! push {
    ($text:expr, $($format:tt)*) => {
        $text.write_fmt(format_args!($($format)*)).unwrap_or_default()
    };
}

/// Appends an instruction with its operand.
fn push_instruction(line: &mut String, instruction: &Instruction, pool: &ConstantPoolView<'_>) {
    line.push_str(instruction.mnemonic());
    if instruction.is_wide {
        line.push_str("_w");
    }
    if instruction.operands != Operands::None {
        line.push(' ');
        push_operand(line, instruction, pool);
    }
}

fn push_operand(line: &mut String, instruction: &Instruction, pool: &ConstantPoolView<'_>) {
    match &instruction.operands {
        Operands::None => {}
        Operands::Local(local) => push!(line, "{local}"),
        Operands::Increment(local, by) => push!(line, "{local}, {by}"),
        Operands::Value(value) => push!(line, "{value}"),
        Operands::Constant(slot) => push_constant(line, pool, *slot),
        Operands::Resolved(number) => match pool.slot_of_resolved(*number) {
            Some(slot) => push_constant(line, pool, slot),
            None => push!(line, "resolved reference {number}"),
        },
        Operands::Member(bytes) => match pool.reference(instruction) {
            Some(reference) => push_member(line, &reference),
            None => push!(line, "#{}", u16::from_le_bytes(*bytes)),
        },
        Operands::CallSite(bytes) => match pool.reference(instruction) {
            Some(reference) => push_member(line, &reference),
            None => push!(line, "#{}", !u32::from_le_bytes(*bytes)),
        },
        Operands::Primitive(number) => match newarray_type(*number) {
            Some(name) => line.push_str(name),
            None => push!(line, "{number}"),
        },
        Operands::Dimensions(slot, dimensions) => {
            push_constant(line, pool, *slot);
            push!(line, ", {dimensions}");
        }
        Operands::Jump(target) => push!(line, "{target}"),
        Operands::Table {
            low,
            default,
            targets,
        } => {
            let shown = targets.iter().take(MAX_CASES).map(i32::to_string);
            let high = i64::from(*low) + targets.len() as i64 - 1;
            let cases = cases(shown.collect(), targets.len());
            push!(line, "{low}..{high}: {cases}default: {default}");
        }
        Operands::Lookup { default, pairs } => {
            let shown = pairs.iter().take(MAX_CASES);
            let shown = shown.map(|(number, target)| format!("{number}: {target}"));
            let cases = cases(shown.collect(), pairs.len());
            push!(line, "{cases}default: {default}");
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

fn push_constant(line: &mut String, pool: &ConstantPoolView<'_>, slot: u16) {
    match pool.constant(slot) {
        None => push!(line, "#{slot}"),
        Some(Constant::Integer(value)) => push!(line, "{value}"),
        Some(Constant::Long(value)) => push!(line, "{value}L"),
        Some(Constant::Float(value)) => {
            push!(line, "{}f", number(value.into(), &format!("{value:?}")));
        }
        Some(Constant::Double(value)) => line.push_str(&number(value, &format!("{value:?}"))),
        Some(Constant::String(text, is_whole)) => line.push_str(&quoted(&text, is_whole)),
        Some(Constant::Class(class)) => line.push_str(&class),
        Some(Constant::MethodType(descriptor)) => {
            line.push_str("method type ");
            push_signature(line, &descriptor);
        }
        Some(Constant::MethodHandle(class, name, descriptor)) => {
            push!(line, "method handle {class}.{name}");
            push_parameters(line, &descriptor);
        }
        Some(Constant::Dynamic(name, _)) => push!(line, "dynamic {name}"),
    }
}

/// A field's descriptor has no parameters.
fn push_parameters(line: &mut String, descriptor: &str) {
    if descriptor.starts_with('(') {
        push_signature(line, descriptor);
    }
}

fn push_member(line: &mut String, reference: &Reference) {
    if reference.kind != ReferenceKind::CallSite {
        // Arrays have `clone` calls.
        push_array_or_class(line, &reference.class);
        line.push('.');
    }
    line.push_str(&reference.name);
    if reference.kind != ReferenceKind::Field {
        push_parameters(line, &reference.signature);
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
