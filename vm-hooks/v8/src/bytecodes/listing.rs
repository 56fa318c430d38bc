//! Listings of a function's bytecodes for people, in the manner of `node --print-bytecode`.

use std::fmt::{self, Write as _};

use vmscope_process::{quoted, shortened};
use vmscope_records::BytecodePc;

use super::decode::{Instruction, Operand};
use super::instruction_set::{InstructionSet, OperandKind};

/// Maximum number of targets shown per switch.
const MAX_CASES: i64 = 16;

/// Maximum number of lines.
const MAX_LINES: usize = 1 << 16;

/// Bytes of most lines.
const USUAL_LINE: usize = 40;

/// A value of the constant pool.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// Unreadable, or not of interest.
    Unknown,
    /// A small integer.
    Integer(i32),
    /// A number.
    Number(f64),
    /// A string; `false` if its end is missing.
    Text(String, bool),
    /// A function, by name.
    Function(String),
}

/// What a listing needs beside the bytecodes.
#[derive(Clone, Copy)]
pub struct Listing<'a> {
    /// V8's instructions.
    pub set: &'a InstructionSet,
    /// Number of register `r0`: its distance from the frame pointer in words, negative.
    pub first_register: i64,
    /// The constant pool.
    pub constant: &'a dyn Fn(u32) -> Constant,
}

impl std::fmt::Debug for Listing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listing").finish_non_exhaustive()
    }
}

/// Number of the receiver's slot; parameters follow.
const RECEIVER: i64 = 2;

/// Instructions that refer to the constant pool by an operand, with the number of the operand.
/// Their names are longer in some cases (`LdaGlobalInsideTypeof`). Jumps and switches are not
/// among them.
const CONSTANTS: &[(&str, usize)] = &[
    ("LdaConstant", 0),
    ("LdaGlobal", 0),
    ("StaGlobal", 0),
    ("LdaLookup", 0),
    ("StaLookup", 0),
    ("GetNamedProperty", 1),
    ("SetNamedProperty", 1),
    ("DefineNamedOwnProperty", 1),
    ("CreateClosure", 0),
    ("CreateRegExpLiteral", 0),
    ("ThrowReferenceErrorIfHole", 0),
];

impl Listing<'_> {
    /// A function's lines with their bytecodes. Undecodable bytecodes end the listing with an
    /// explanatory line.
    #[must_use]
    pub fn lines(&self, code: &[u8]) -> Vec<(BytecodePc, String)> {
        let mut lines = Vec::new();
        let mut at = BytecodePc(0);
        for instruction in self.set.instructions(code) {
            let line = match &instruction {
                Ok(instruction) => shortened(self.text(instruction)),
                Err(error) => format!("({error})"),
            };
            if let Ok(instruction) = instruction {
                at = instruction.pc;
            }
            if lines.len() >= MAX_LINES {
                lines.push((at, "(more bytecodes)".to_owned()));
                break;
            }
            lines.push((at, line));
            at.0 = at.0.saturating_add(instruction.map_or(0, |it| it.length));
        }
        lines
    }

    /// Text of one instruction.
    #[must_use]
    pub fn text(&self, instruction: &Instruction<'_>) -> String {
        let operands: Vec<Operand> = self.set.operands_of(instruction).collect();
        let mut text = String::with_capacity(USUAL_LINE);
        self.set.put_full_name(instruction, &mut text);
        let name = self.set.name(instruction.opcode);
        let mut separator = " ";
        for (index, operand) in operands.iter().enumerate() {
            // The list in front shows it.
            if operand.kind == OperandKind::Count {
                continue;
            }
            let count = operands.get(index + 1).map_or(0, |next| next.value);
            text.push_str(separator);
            let is_constant = is_constant(name, index);
            // Writing to a string cannot fail.
            let _ = self.put_operand(*operand, count, is_constant, &mut text);
            separator = ", ";
        }
        let targets = self.targets(name, instruction, &operands);
        text.push_str(&targets.unwrap_or_default());
        text
    }

    /// `count`: length of a list of registers.
    fn put_operand(
        &self,
        operand: Operand,
        count: i64,
        is_constant: bool,
        text: &mut String,
    ) -> fmt::Result {
        let value = operand.value;
        match operand.kind {
            OperandKind::Flags => write!(text, "#{value}"),
            OperandKind::FeedbackSlot => write!(text, "FBV[{value}]"),
            OperandKind::Feedback => write!(text, "EmbeddedFeedback[{value:#x}]"),
            OperandKind::Index if is_constant => match self.constant(value) {
                Some(constant) => write!(text, "[{value}: {constant}]"),
                None => write!(text, "[{value}]"),
            },
            OperandKind::Runtime => match self.set.runtime_name(value) {
                Some(name) => write!(text, "[{name}]"),
                None => write!(text, "[{value}]"),
            },
            OperandKind::Register => self.put_register(value, text),
            OperandKind::RegisterList => self.put_registers(value, count, text),
            OperandKind::RegisterPair => self.put_registers(value, 2, text),
            OperandKind::RegisterTriple => self.put_registers(value, 3, text),
            OperandKind::Intrinsic
            | OperandKind::NativeContext
            | OperandKind::Index
            | OperandKind::Unsigned
            | OperandKind::Count
            | OperandKind::Signed => write!(text, "[{value}]"),
        }
    }

    /// V8's names: `<this>` and parameters are above the frame pointer, context and function in the
    /// words below it, then come the registers.
    fn put_register(&self, number: i64, text: &mut String) -> fmt::Result {
        match number {
            -1 => text.write_str("<context>"),
            -2 => text.write_str("<closure>"),
            RECEIVER => text.write_str("<this>"),
            3.. => write!(text, "a{}", number - RECEIVER - 1),
            _ => write!(text, "r{}", self.first_register - number),
        }
    }

    /// V8 writes an empty list as `r0-r0`.
    fn put_registers(&self, first: i64, count: i64, text: &mut String) -> fmt::Result {
        let (first, last) = match count {
            1.. => (first, first - (count - 1)),
            _ => (self.first_register, self.first_register),
        };
        self.put_register(first, text)?;
        text.write_str("-")?;
        self.put_register(last, text)
    }

    fn constant(&self, number: i64) -> Option<String> {
        match (self.constant)(u32::try_from(number).ok()?) {
            Constant::Unknown => None,
            Constant::Integer(value) => Some(value.to_string()),
            Constant::Number(value) if value.is_infinite() => {
                Some(format!("{value}").replace("inf", "Infinity"))
            }
            Constant::Number(value) => Some(value.to_string()),
            Constant::Text(text, is_whole) => Some(quoted(&text, is_whole)),
            Constant::Function(name) if name.is_empty() => Some("anonymous function".to_owned()),
            Constant::Function(name) => Some(format!("function {}", quoted(&name, true))),
        }
    }

    /// Targets of a jump or switch. Distances count from the instruction behind the prefix.
    fn targets(
        &self,
        name: &str,
        instruction: &Instruction<'_>,
        operands: &[Operand],
    ) -> Option<String> {
        let is_wide = i64::from(instruction.scale > 0);
        let from = i64::from(instruction.pc.0) + is_wide;
        let value = |index: usize| operands.get(index).map(|operand| operand.value);
        let distance = |number: i64| match (self.constant)(u32::try_from(number).ok()?) {
            Constant::Integer(distance) => Some(i64::from(distance)),
            _ => None,
        };
        if name == "JumpLoop" {
            return Some(format!(" (@ {})", from - value(0)?));
        }
        if name.starts_with("Jump") {
            let by = value(0)?;
            let by = if name.ends_with("Constant") {
                distance(by)?
            } else {
                by
            };
            return Some(format!(" (@ {})", from + by));
        }
        let (table, count, first) = match name {
            "SwitchOnSmiNoFeedback" => (value(0)?, value(1)?, value(2)?),
            "SwitchOnGeneratorState" => (value(1)?, value(2)?, 0),
            _ => return None,
        };
        let shown = (0..count.min(MAX_CASES)).filter_map(|index| {
            let target = from + distance(table + index)?;
            Some(format!("{}: @{target}", first + index))
        });
        let mut cases: Vec<String> = shown.collect();
        if count > MAX_CASES {
            cases.push(format!("… {} more", count - MAX_CASES));
        }
        Some(format!(" {{ {} }}", cases.join(", ")))
    }
}

fn is_constant(name: &str, operand: usize) -> bool {
    let mut all = CONSTANTS.iter();
    all.any(|(begin, number)| *number == operand && name.starts_with(begin))
}
