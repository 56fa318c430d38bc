//! What a method's bytecodes may be recognised by in machine code.

use vmscope_records::Avma;

use crate::bytecode::{Instruction, Operands, instructions};

/// Methods with more bytecodes than this are not looked into (`HugeMethodLimit` is 8000).
const MAX_BYTECODES: usize = 16_000;

/// Of one `switch` not more keys than this are signs.
const MAX_KEYS: usize = 64;

/// An arithmetic operation, as far as an instruction tells which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `add`, `lea`.
    Add,
    /// `sub`.
    Subtract,
    /// `imul`.
    Multiply,
    /// `idiv`.
    Divide,
    /// `neg`.
    Negate,
    /// `shl`, `sal`.
    ShiftLeft,
    /// `sar`.
    ShiftRight,
    /// `shr`.
    ShiftRightUnsigned,
    /// `and`.
    And,
    /// `or`.
    Or,
    /// `xor`, but for making a zero.
    Xor,
    /// `addss`, `addsd`.
    FloatAdd,
    /// `subss`, `subsd`.
    FloatSubtract,
    /// `mulss`, `mulsd`.
    FloatMultiply,
    /// `divss`, `divsd`.
    FloatDivide,
    /// `cmp` of registers.
    Compare,
    /// `ucomiss`, `ucomisd`.
    FloatCompare,
    /// Between integers and floating point, or within the latter.
    FloatConvert,
    /// `movsxd` between registers.
    Widen,
    /// `movsx` and `movzx` between registers.
    Narrow,
}

/// Something that a bytecode does and that shows in an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// A field at that offset is read or written.
    Field {
        /// From the object's begin.
        offset: u32,
        /// Whether it is written.
        store: bool,
    },
    /// An array's element of so many bytes is read or written.
    Element {
        /// Bytes of an element; oops count as 4 when they are compressed.
        width: u8,
        /// Whether it is written.
        store: bool,
    },
    /// An array's length is read.
    Length,
    /// An object's class is read.
    ClassOf,
    /// A class is named.
    Class(Avma),
    /// A number occurs.
    Constant(i64),
    /// Something is calculated; with 64 bits where the second is true.
    Arithmetic(Arithmetic, bool),
    /// A conditional branch.
    Branch,
    /// An object is made.
    Allocate,
    /// A lock is taken or given back.
    Lock,
    /// Many elements are worked on at once.
    Vector,
    /// The method returns; told of the compiled method itself.
    Return,
    /// Code that the compiler has ready for a method that works on arrays.
    Intrinsic,
}

/// What a bytecode refers to, as far as code may show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Referent {
    /// Not known, or not resolved by the VM yet.
    #[default]
    Unknown,
    /// A field: its offset.
    Field(u32),
    /// The methods that a call may reach, the likely ones first.
    Methods(Vec<Avma>),
    /// The method that a call reaches, and in whose place the compiler may put code that
    /// it has ready, working on arrays.
    Intrinsic(Avma),
    /// A class.
    Class(Avma),
    /// A number (floating point: its bits).
    Constant(i64),
}

/// What is known of a method's bytecodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodFacts {
    /// Length of the bytecodes.
    pub size: u32,
    /// The bytecodes that do something, ascending. Never empty.
    pub steps: Vec<u16>,
    /// What they may be recognised by, with the index of the step.
    pub signs: Vec<(Sign, u16)>,
    /// The calls: the index of the step, and the methods that it may reach.
    pub calls: Vec<(u16, Vec<Avma>)>,
}

impl MethodFacts {
    /// Of bytecodes as the VM keeps them; `refer` tells what an instruction refers to.
    #[must_use]
    pub fn of(
        bytecodes: &[u8],
        oop_bytes: u8,
        mut refer: impl FnMut(&Instruction) -> Referent,
    ) -> Self {
        let mut facts = MethodFacts {
            size: u32::try_from(bytecodes.len()).unwrap_or(u32::MAX),
            ..MethodFacts::default()
        };
        let bytecodes = bytecodes.get(..MAX_BYTECODES).unwrap_or(bytecodes);
        let mut previous = 0;
        for instruction in instructions(bytecodes).map_while(Result::ok) {
            facts.take((&instruction, previous), oop_bytes, &mut refer);
            previous = instruction.opcode;
        }
        if facts.steps.is_empty() {
            facts.steps.push(0);
        }
        facts
    }

    /// Of a method whose bytecodes are not known.
    #[must_use]
    pub fn unknown() -> Self {
        MethodFacts {
            steps: vec![0],
            ..MethodFacts::default()
        }
    }

    /// The index of the step at `bci`, or of the last one before it.
    #[must_use]
    pub fn step_at(&self, bci: i32) -> u16 {
        let bci = u16::try_from(bci.max(0)).unwrap_or(u16::MAX);
        let after = self.steps.partition_point(|&step| step <= bci);
        u16::try_from(after.saturating_sub(1)).unwrap_or(u16::MAX)
    }

    fn take(
        &mut self,
        (instruction, previous): (&Instruction, u8),
        oop_bytes: u8,
        refer: &mut impl FnMut(&Instruction) -> Referent,
    ) {
        use Arithmetic as A;
        let code = if instruction.is_wide {
            0xc4
        } else {
            instruction.opcode
        };
        let bci = u16::try_from(instruction.bci.0).unwrap_or(u16::MAX);
        let mut is_step = bci == 0;
        // Of two bytecodes beside each other the second is of long or double.
        let wide = code & 1 == 1;
        let mut signs: Vec<Sign> = Vec::new();
        let mut calls = None;
        let number = |signs: &mut Vec<Sign>, value: i64| signs.push(Sign::Constant(value));
        match code {
            // iconst_m1 .. iconst_5, lconst, fconst, dconst
            0x02..=0x08 => number(&mut signs, i64::from(code) - 3),
            0x09 | 0x0a => number(&mut signs, i64::from(code) - 9),
            0x0b..=0x0d => {
                let value = f32::from(code - 0x0b);
                number(&mut signs, i64::from(value.to_bits()));
            }
            0x0e | 0x0f => {
                let value = f64::from(code - 0x0e);
                number(&mut signs, value.to_bits().cast_signed());
            }
            0x10 | 0x11 => {
                if let Operands::Value(value) = instruction.operands {
                    number(&mut signs, value.into());
                }
            }
            // ldc, ldc_w, ldc2_w
            0x12..=0x14 => {
                if let Referent::Constant(value) = refer(instruction) {
                    number(&mut signs, value);
                }
            }
            // xaload and xastore: the range check reads the length
            0x2e..=0x35 | 0x4f..=0x56 => {
                let store = code >= 0x4f;
                let width = match (code - if store { 0x4f } else { 0x2e }) & 7 {
                    0 | 2 => 4,
                    1 | 3 => 8,
                    4 => oop_bytes,
                    5 => 1,
                    _ => 2,
                };
                signs.extend([Sign::Element { width, store }, Sign::Length, Sign::Vector]);
            }
            0x60 | 0x61 => signs.push(Sign::Arithmetic(A::Add, wide)),
            0x62 | 0x63 => signs.push(Sign::Arithmetic(A::FloatAdd, wide)),
            0x64 | 0x65 => signs.push(Sign::Arithmetic(A::Subtract, wide)),
            0x66 | 0x67 => signs.push(Sign::Arithmetic(A::FloatSubtract, wide)),
            0x68 | 0x69 => signs.push(Sign::Arithmetic(A::Multiply, wide)),
            0x6a | 0x6b => signs.push(Sign::Arithmetic(A::FloatMultiply, wide)),
            // Division by a constant is a multiplication and a shift, or a shift and a mask.
            0x6c | 0x6d | 0x70 | 0x71 if matches!(previous, 0x02..=0x14) => signs.extend([
                Sign::Arithmetic(A::Multiply, true),
                Sign::Arithmetic(A::ShiftRight, wide),
            ]),
            0x6c | 0x6d | 0x70 | 0x71 => signs.push(Sign::Arithmetic(A::Divide, wide)),
            0x6e | 0x6f => signs.push(Sign::Arithmetic(A::FloatDivide, wide)),
            0x74 | 0x75 => signs.push(Sign::Arithmetic(A::Negate, wide)),
            0x78 | 0x79 => signs.push(Sign::Arithmetic(A::ShiftLeft, wide)),
            0x7a | 0x7b => signs.push(Sign::Arithmetic(A::ShiftRight, wide)),
            0x7c | 0x7d => signs.push(Sign::Arithmetic(A::ShiftRightUnsigned, wide)),
            0x7e | 0x7f => signs.push(Sign::Arithmetic(A::And, wide)),
            0x80 | 0x81 => signs.push(Sign::Arithmetic(A::Or, wide)),
            0x82 | 0x83 => signs.push(Sign::Arithmetic(A::Xor, wide)),
            // iinc
            0x84 => {
                if let Operands::Increment(_, by) = instruction.operands {
                    number(&mut signs, by.into());
                }
                signs.push(Sign::Arithmetic(A::Add, false));
            }
            0x85 => signs.push(Sign::Arithmetic(A::Widen, true)),
            0x86 | 0x87 | 0x89..=0x90 => signs.push(Sign::Arithmetic(A::FloatConvert, false)),
            0x91..=0x93 => signs.push(Sign::Arithmetic(A::Narrow, false)),
            0x94 => signs.push(Sign::Arithmetic(A::Compare, true)),
            0x95..=0x98 => signs.push(Sign::Arithmetic(A::FloatCompare, code >= 0x97)),
            // ifxx, if_icmpxx, if_acmpxx, ifnull, ifnonnull
            0x9f..=0xa6 => signs.extend([Sign::Branch, Sign::Arithmetic(A::Compare, false)]),
            0x99..=0x9e | 0xc6 | 0xc7 => signs.push(Sign::Branch),
            0xaa | 0xab => {
                signs.push(Sign::Branch);
                match &instruction.operands {
                    Operands::Table { low, targets, .. } => {
                        let keys = (i64::from(*low)..).zip(targets.iter().take(MAX_KEYS));
                        signs.extend(keys.map(|(key, _)| Sign::Constant(key)));
                    }
                    Operands::Lookup { pairs, .. } => {
                        let keys = pairs.iter().take(MAX_KEYS).map(|(key, _)| *key);
                        signs.extend(keys.map(|key| Sign::Constant(key.into())));
                    }
                    _ => {}
                }
            }
            // getstatic, putstatic, getfield, putfield
            0xb2..=0xb5 => {
                is_step = true;
                if let Referent::Field(offset) = refer(instruction) {
                    let store = code & 1 == 1;
                    signs.push(Sign::Field { offset, store });
                }
            }
            // invokes
            0xb6..=0xba => {
                is_step = true;
                if code == 0xb6 || code == 0xb9 {
                    signs.push(Sign::ClassOf);
                }
                let methods = match refer(instruction) {
                    Referent::Methods(methods) => methods,
                    Referent::Intrinsic(method) => {
                        signs.push(Sign::Intrinsic);
                        vec![method]
                    }
                    _ => Vec::new(),
                };
                calls = Some(methods);
            }
            // new, newarray, anewarray, multianewarray
            0xbb | 0xbc | 0xbd | 0xc5 => {
                signs.push(Sign::Allocate);
                if let (true, Referent::Class(class)) = (code != 0xbc, refer(instruction)) {
                    signs.push(Sign::Class(class));
                }
            }
            0xbe => signs.push(Sign::Length),
            // checkcast, instanceof
            0xc0 | 0xc1 => {
                signs.push(Sign::ClassOf);
                if let Referent::Class(class) = refer(instruction) {
                    signs.push(Sign::Class(class));
                }
            }
            0xc2 | 0xc3 => signs.push(Sign::Lock),
            0xac..=0xb1 => signs.push(Sign::Return),
            // goto, athrow
            0xa7 | 0xbf | 0xc8 => is_step = true,
            _ => {}
        }
        if !is_step && signs.is_empty() {
            return;
        }
        let Ok(index) = u16::try_from(self.steps.len()) else {
            return;
        };
        self.steps.push(bci);
        self.signs
            .extend(signs.into_iter().map(|sign| (sign, index)));
        if let Some(methods) = calls {
            self.calls.push((index, methods));
        }
    }
}
