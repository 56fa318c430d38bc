//! Facts for recognition of a method's bytecodes in machine code.

use vmscope_records::Avma;

use crate::bytecode::{Instruction, Operands, instructions, op};

/// Maximum bytecodes of an analysed method (`HugeMethodLimit` is 8000).
const MAX_BYTECODES: usize = 16_000;

/// Maximum number of keys per `switch` used as signs.
const MAX_KEYS: usize = 64;

/// An arithmetic operation, as an instruction shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Negate,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
    And,
    Or,
    Xor,
    FloatAdd,
    FloatSubtract,
    FloatMultiply,
    FloatDivide,
    Compare,
    FloatCompare,
    FloatConvert,
    Widen,
    Narrow,
}

/// A bytecode's effect that an instruction shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// Read or write of a field at an offset.
    Field {
        offset: u32,
        store: bool,
    },
    /// Read or write of an array element.
    Element {
        /// Bytes of an element; 4 for compressed oops.
        width: u8,
        store: bool,
    },
    /// Read of an array's length.
    Length,
    /// Read of an object's class.
    ClassOf,
    Class(Avma),
    Constant(i64),
    /// Calculation; `true` for 64 bits.
    Arithmetic(Arithmetic, bool),
    Branch,
    Allocate,
    Lock,
    /// Operation on many elements at once.
    Vector,
    /// Return; a sign only of the compiled method itself.
    Return,
    /// Intrinsic code of a method that works on arrays.
    Intrinsic,
}

/// Possible targets of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Targets {
    /// Methods, likely targets first.
    Known(Vec<Avma>),
    /// Methods of equal name in some classes: [`super::MethodSource::targets`] finds them.
    Named(Box<NamedTargets>),
}

/// Addresses of the symbols of a name and a signature, and of classes, likely ones first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTargets {
    pub name: Avma,
    pub signature: Avma,
    pub classes: Vec<Avma>,
}

/// Operand of a bytecode, as visible in code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Referent {
    /// Unknown, or unresolved in the VM so far.
    #[default]
    Unknown,
    Field(u32),
    /// A call.
    Call(Targets),
    /// Target of a call that the compiler may replace with intrinsic code for arrays.
    Intrinsic(Avma),
    Class(Avma),
    /// A number (bit pattern for floating point).
    Constant(i64),
}

/// A call of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Index of the step.
    pub step: u16,
    /// Whether all calls are of one method, whatever the receiver.
    pub is_direct: bool,
    pub targets: Targets,
}

/// Facts of a method's bytecodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodFacts {
    pub size: u32,
    /// Indexes of bytecodes with an effect, ascending. Never empty.
    pub steps: Vec<u16>,
    /// Signs of bytecodes, with the index of the step.
    pub signs: Vec<(Sign, u16)>,
    /// Calls in the order of the bytecodes.
    pub calls: Vec<Call>,
    /// Whether all bytecodes of the method were decoded.
    is_whole: bool,
}

impl MethodFacts {
    /// Facts of bytecodes in the VM's form; `refer` resolves an instruction's operand.
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
        facts.is_whole = (1..=MAX_BYTECODES).contains(&bytecodes.len());
        let bytecodes = bytecodes.get(..MAX_BYTECODES).unwrap_or(bytecodes);
        let mut previous = 0;
        for instruction in instructions(bytecodes) {
            let Ok(instruction) = instruction else {
                facts.is_whole = false;
                break;
            };
            facts.take((&instruction, previous), oop_bytes, &mut refer);
            previous = instruction.opcode;
        }
        if facts.steps.is_empty() {
            facts.steps.push(0);
        }
        facts.steps.shrink_to_fit();
        facts.signs.shrink_to_fit();
        facts.calls.shrink_to_fit();
        facts
    }

    /// Facts of a method with unknown bytecodes.
    #[must_use]
    pub fn unknown() -> Self {
        MethodFacts {
            steps: vec![0],
            ..MethodFacts::default()
        }
    }

    /// Whether the condition `holds` for every call of the method (call, bytecode index). False if some bytecodes were
    /// not decoded.
    #[must_use]
    pub fn has_only(&self, holds: impl Fn(&Call, u16) -> bool) -> bool {
        self.is_whole && (self.calls.iter()).all(|call| holds(call, self.bci_of(call)))
    }

    /// Bytecode index of a call.
    #[must_use]
    pub fn bci_of(&self, call: &Call) -> u16 {
        self.steps.get(usize::from(call.step)).copied().unwrap_or(0)
    }

    /// Memory use in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let calls = size_of::<Call>() + size_of::<NamedTargets>() + size_of::<Avma>();
        size_of::<Self>()
            + size_of_val(self.steps.as_slice())
            + size_of_val(self.signs.as_slice())
            + self.calls.len() * calls
    }

    /// Index of the step at `bci`, or of the preceding step.
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
        let code = instruction.opcode;
        let bci = u16::try_from(instruction.bci.0).unwrap_or(u16::MAX);
        let mut is_step = bci == 0;
        // The second of two adjacent bytecodes is the long or double variant.
        let wide = code & 1 == 1;
        let mut signs: Vec<Sign> = Vec::new();
        let mut calls = None;
        let number = |signs: &mut Vec<Sign>, value: i64| signs.push(Sign::Constant(value));
        match code {
            op::ICONST_M1..=op::ICONST_5 => number(&mut signs, i64::from(code) - 3),
            op::LCONST_0 | op::LCONST_1 => number(&mut signs, i64::from(code) - 9),
            op::FCONST_0..=op::FCONST_2 => {
                let value = f32::from(code - op::FCONST_0);
                number(&mut signs, i64::from(value.to_bits()));
            }
            op::DCONST_0 | op::DCONST_1 => {
                let value = f64::from(code - op::DCONST_0);
                number(&mut signs, value.to_bits().cast_signed());
            }
            op::BIPUSH | op::SIPUSH => {
                if let Operands::Value(value) = instruction.operands {
                    number(&mut signs, value.into());
                }
            }
            op::LDC..=op::LDC2_W => {
                if let Referent::Constant(value) = refer(instruction) {
                    number(&mut signs, value);
                }
            }
            // The range check reads the length.
            op::IALOAD..=op::SALOAD | op::IASTORE..=op::SASTORE => {
                let store = code >= op::IASTORE;
                let width = match (code - if store { op::IASTORE } else { op::IALOAD }) & 7 {
                    0 | 2 => 4,
                    1 | 3 => 8,
                    4 => oop_bytes,
                    5 => 1,
                    _ => 2,
                };
                signs.extend([Sign::Element { width, store }, Sign::Length, Sign::Vector]);
            }
            op::IADD | op::LADD => signs.push(Sign::Arithmetic(A::Add, wide)),
            op::FADD | op::DADD => signs.push(Sign::Arithmetic(A::FloatAdd, wide)),
            op::ISUB | op::LSUB => signs.push(Sign::Arithmetic(A::Subtract, wide)),
            op::FSUB | op::DSUB => signs.push(Sign::Arithmetic(A::FloatSubtract, wide)),
            op::IMUL | op::LMUL => signs.push(Sign::Arithmetic(A::Multiply, wide)),
            op::FMUL | op::DMUL => signs.push(Sign::Arithmetic(A::FloatMultiply, wide)),
            // A division by a constant becomes multiplication and shift, or shift and mask.
            op::IDIV | op::LDIV | op::IREM | op::LREM
                if matches!(previous, op::ICONST_M1..=op::LDC2_W) =>
            {
                signs.extend([
                    Sign::Arithmetic(A::Multiply, true),
                    Sign::Arithmetic(A::ShiftRight, wide),
                ])
            }
            op::IDIV | op::LDIV | op::IREM | op::LREM => {
                signs.push(Sign::Arithmetic(A::Divide, wide))
            }
            op::FDIV | op::DDIV => signs.push(Sign::Arithmetic(A::FloatDivide, wide)),
            op::INEG | op::LNEG => signs.push(Sign::Arithmetic(A::Negate, wide)),
            op::ISHL | op::LSHL => signs.push(Sign::Arithmetic(A::ShiftLeft, wide)),
            op::ISHR | op::LSHR => signs.push(Sign::Arithmetic(A::ShiftRight, wide)),
            op::IUSHR | op::LUSHR => signs.push(Sign::Arithmetic(A::ShiftRightUnsigned, wide)),
            op::IAND | op::LAND => signs.push(Sign::Arithmetic(A::And, wide)),
            op::IOR | op::LOR => signs.push(Sign::Arithmetic(A::Or, wide)),
            op::IXOR | op::LXOR => signs.push(Sign::Arithmetic(A::Xor, wide)),
            op::IINC => {
                if let Operands::Increment(_, by) = instruction.operands {
                    number(&mut signs, by.into());
                }
                signs.push(Sign::Arithmetic(A::Add, false));
            }
            op::I2L => signs.push(Sign::Arithmetic(A::Widen, true)),
            op::I2F | op::I2D | op::L2F..=op::D2F => {
                signs.push(Sign::Arithmetic(A::FloatConvert, false))
            }
            op::I2B..=op::I2S => signs.push(Sign::Arithmetic(A::Narrow, false)),
            op::LCMP => signs.push(Sign::Arithmetic(A::Compare, true)),
            op::FCMPL..=op::DCMPG => {
                signs.push(Sign::Arithmetic(A::FloatCompare, code >= op::DCMPL))
            }
            op::IF_ICMPEQ..=op::IF_ACMPNE => {
                signs.extend([Sign::Branch, Sign::Arithmetic(A::Compare, false)])
            }
            op::IFEQ..=op::IFLE | op::IFNULL | op::IFNONNULL => signs.push(Sign::Branch),
            op::TABLESWITCH | op::LOOKUPSWITCH => {
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
            op::GETSTATIC..=op::PUTFIELD => {
                is_step = true;
                if let Referent::Field(offset) = refer(instruction) {
                    let store = code & 1 == 1;
                    signs.push(Sign::Field { offset, store });
                }
            }
            op::INVOKEVIRTUAL..=op::INVOKEDYNAMIC => {
                is_step = true;
                if code == op::INVOKEVIRTUAL || code == op::INVOKEINTERFACE {
                    signs.push(Sign::ClassOf);
                }
                calls = Some(match refer(instruction) {
                    Referent::Call(targets) => targets,
                    Referent::Intrinsic(method) => {
                        signs.push(Sign::Intrinsic);
                        Targets::Known(vec![method])
                    }
                    _ => Targets::Known(Vec::new()),
                });
            }
            op::NEW | op::NEWARRAY | op::ANEWARRAY | op::MULTIANEWARRAY => {
                signs.push(Sign::Allocate);
                if let (true, Referent::Class(class)) = (code != op::NEWARRAY, refer(instruction)) {
                    signs.push(Sign::Class(class));
                }
            }
            op::ARRAYLENGTH => signs.push(Sign::Length),
            op::CHECKCAST | op::INSTANCEOF => {
                signs.push(Sign::ClassOf);
                if let Referent::Class(class) = refer(instruction) {
                    signs.push(Sign::Class(class));
                }
            }
            op::MONITORENTER | op::MONITOREXIT => signs.push(Sign::Lock),
            op::IRETURN..=op::RETURN => signs.push(Sign::Return),
            op::GOTO | op::ATHROW | op::GOTO_W => is_step = true,
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
        if let Some(targets) = calls {
            self.calls.push(Call {
                step: index,
                is_direct: matches!(code, op::INVOKESPECIAL | op::INVOKESTATIC),
                targets,
            });
        }
    }
}
