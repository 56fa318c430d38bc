//! Checks code before it runs: the interpreter trusts indices, depths and jumps.

use super::bytecodes::{DecodeError, Instruction, decode};
use super::{CompiledCode, Literal};

/// The most arguments of a method or block.
const MAX_ARGUMENTS: usize = 15;
/// The most temps of a frame.
const MAX_TEMPS: usize = 63;
/// The most literals, without the loader's two.
const MAX_LITERALS: usize = 32_765;
/// How deep blocks may nest.
const MAX_NESTING: usize = 500;

/// What is wrong with code, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("offset {offset}: {flaw}")]
pub struct VerifyError {
    /// Offset in the bytecodes of the code, or of a block in it.
    pub offset: usize,
    /// What is wrong.
    pub flaw: Flaw,
}

/// What is wrong with code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// Bytes that are no instruction.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// Numbers of arguments, temps or literals that fit neither the code nor its header.
    #[error("wrong number of arguments, temps or literals")]
    Header,
    /// Blocks in blocks in blocks.
    #[error("blocks nest too deep")]
    Nesting,
    /// A literal that is not there, or of a kind that the instruction cannot use.
    #[error("wrong literal {0}")]
    Literal(usize),
    /// A temp that is not there.
    #[error("no temp {0}")]
    Temp(usize),
    /// An instance variable that is not there.
    #[error("no instance variable {0}")]
    InstanceVariable(usize),
    /// A jump that leads out of the code, or into an instruction.
    #[error("a jump to {0}, where no instruction begins")]
    Target(i64),
    /// A path that reaches the end of the code.
    #[error("the code goes on beyond its end")]
    End,
    /// A stack with fewer values than the instruction pops.
    #[error("the stack is empty")]
    Underflow,
    /// A stack deeper than the code says.
    #[error("the stack is deeper than {0}")]
    Overflow(usize),
    /// Paths that meet with different depths.
    #[error("paths meet with different depths, {0} and {1}")]
    Depths(usize, usize),
    /// A block's instruction in a method, or the other way round.
    #[error("an instruction that does not belong here")]
    Misplaced,
    /// A primitive elsewhere than at the beginning, or another one than the code says.
    #[error("the primitive is not what the code says")]
    Primitive,
    /// Returns from the home of code that says it has none.
    #[error("closures return from their home, but nothing says so")]
    Home,
}

/// Verifies a method or do-it with its blocks. `instance_variables` is the number that the receiver has.
///
/// # Errors
///
/// The first flaw.
pub fn verify(code: &CompiledCode, instance_variables: usize) -> Result<(), VerifyError> {
    verify_unit(code, instance_variables, None)
}

/// The greatest depth of the operand stack on any path.
///
/// # Errors
///
/// Paths that have no such depth.
pub fn stack_depth(code: &CompiledCode) -> Result<usize, VerifyError> {
    Flow::new(code)?.run()
}

fn at(offset: usize, flaw: Flaw) -> VerifyError {
    VerifyError { offset, flaw }
}

/// Verifies a method, or a block that is in so many others.
fn verify_unit(
    code: &CompiledCode,
    instance_variables: usize,
    nesting: Option<usize>,
) -> Result<(), VerifyError> {
    if code.num_args > MAX_ARGUMENTS
        || code.num_args > code.num_temps
        || code.num_temps > MAX_TEMPS
        || code.temp_names.len() != code.num_temps
        || code.literals.len() > MAX_LITERALS
    {
        return Err(at(0, Flaw::Header));
    }
    let flow = Flow::new(code)?;
    for step in &flow.steps {
        let check = Check {
            code,
            instance_variables,
            is_block: nesting.is_some(),
        };
        let checked = check.step(step);
        checked.map_err(|flaw| at(step.offset, flaw))?;
    }
    let starts_with_primitive = matches!(
        flow.steps.first().map(|step| step.instruction),
        Some(Instruction::CallPrimitive(_))
    );
    if starts_with_primitive != (code.primitive != 0) {
        return Err(at(0, Flaw::Primitive));
    }
    let depth = flow.run()?;
    if depth > code.stack_depth {
        return Err(at(0, Flaw::Overflow(code.stack_depth)));
    }
    let nesting = nesting.map_or(0, |nesting| nesting + 1);
    for literal in &code.literals {
        if let Literal::Block(block) = literal {
            if nesting == MAX_NESTING {
                return Err(at(0, Flaw::Nesting));
            }
            verify_unit(block, instance_variables, Some(nesting))?;
        }
    }
    Ok(())
}

/// What a single instruction may refer to.
struct Check<'a> {
    code: &'a CompiledCode,
    instance_variables: usize,
    is_block: bool,
}

impl Check<'_> {
    fn step(&self, step: &Step) -> Result<(), Flaw> {
        use Instruction as I;
        match step.instruction {
            I::PushReceiverVariable(index)
            | I::PopIntoReceiverVariable(index)
            | I::StoreIntoReceiverVariable(index) => {
                if index >= self.instance_variables {
                    return Err(Flaw::InstanceVariable(index));
                }
            }
            I::PushLiteralVariable(index)
            | I::PopIntoLiteralVariable(index)
            | I::StoreIntoLiteralVariable(index) => match self.literal(index)? {
                Literal::Binding(_) => {}
                _ => return Err(Flaw::Literal(index)),
            },
            I::PushLiteral(index) => match self.literal(index)? {
                Literal::Binding(_) | Literal::Block(_) => return Err(Flaw::Literal(index)),
                _ => {}
            },
            I::Send { literal, num_args } | I::SendSuper { literal, num_args } => {
                match self.literal(literal)? {
                    Literal::Symbol(_) if num_args <= MAX_ARGUMENTS => {}
                    _ => return Err(Flaw::Literal(literal)),
                }
            }
            I::PushTemp(temp) | I::PopIntoTemp(temp) | I::StoreIntoTemp(temp) => self.temp(temp)?,
            I::PushInVector(place) | I::StoreInVector(place) | I::PopInVector(place) => {
                self.temp(place.vector)?;
            }
            I::PushClosure {
                literal,
                num_copied,
                ignores_outer,
            } => {
                let Literal::Block(block) = self.literal(literal)? else {
                    return Err(Flaw::Literal(literal));
                };
                if block.num_args.saturating_add(num_copied) > block.num_temps {
                    return Err(Flaw::Header);
                }
                if ignores_outer && returns_from_home(block) {
                    return Err(Flaw::Home);
                }
                if !ignores_outer && !self.code.needs_token {
                    return Err(Flaw::Home);
                }
            }
            I::CallPrimitive(number) => {
                if self.is_block || step.offset != 0 || number != self.code.primitive {
                    return Err(Flaw::Primitive);
                }
            }
            _ => {}
        }
        let misplaced = if self.is_block {
            // In a block only the top can be returned from the home.
            step.instruction.is_method_return() && step.instruction != I::ReturnTop
        } else {
            step.instruction.is_block_return()
        };
        if misplaced {
            return Err(Flaw::Misplaced);
        }
        Ok(())
    }

    fn literal(&self, index: usize) -> Result<&Literal, Flaw> {
        self.code.literals.get(index).ok_or(Flaw::Literal(index))
    }

    fn temp(&self, index: usize) -> Result<(), Flaw> {
        if index < self.code.num_temps {
            Ok(())
        } else {
            Err(Flaw::Temp(index))
        }
    }
}

/// Whether a block needs its home: it, or a closure that it creates, returns from there.
fn returns_from_home(block: &CompiledCode) -> bool {
    let mut offset = 0;
    while let Ok((instruction, length)) = decode(&block.bytecodes, offset) {
        match instruction {
            Instruction::PushClosure {
                ignores_outer: false,
                ..
            } => return true,
            instruction if instruction.is_method_return() => return true,
            _ => offset += length,
        }
    }
    false
}

/// An instruction where it stands.
struct Step {
    offset: usize,
    end: usize,
    instruction: Instruction,
}

/// The paths through code.
struct Flow {
    steps: Vec<Step>,
    /// For each offset the index of the instruction that begins there.
    step_at: Vec<Option<usize>>,
}

impl Flow {
    fn new(code: &CompiledCode) -> Result<Self, VerifyError> {
        let mut flow = Self {
            steps: Vec::new(),
            step_at: vec![None; code.bytecodes.len()],
        };
        let mut offset = 0;
        while let Some(step) = flow.step_at.get_mut(offset) {
            let (instruction, length) =
                decode(&code.bytecodes, offset).map_err(|error| at(offset, error.into()))?;
            *step = Some(flow.steps.len());
            flow.steps.push(Step {
                offset,
                end: offset + length,
                instruction,
            });
            offset += length;
        }
        Ok(flow)
    }

    /// Follows every path. The greatest depth of the stack.
    fn run(&self) -> Result<usize, VerifyError> {
        let mut depths: Vec<Option<usize>> = vec![None; self.steps.len()];
        let mut greatest = 0;
        let mut waiting = vec![(0, 0)];
        while let Some((index, depth)) = waiting.pop() {
            let (Some(step), Some(known)) = (self.steps.get(index), depths.get_mut(index)) else {
                let end = self.steps.last().map_or(0, |step| step.end);
                return Err(at(end, Flaw::End));
            };
            match *known {
                Some(known) if known == depth => continue,
                Some(known) => return Err(at(step.offset, Flaw::Depths(known, depth))),
                None => *known = Some(depth),
            }
            let (pops, pushes) = step.instruction.stack_effect();
            let Some(below) = depth.checked_sub(pops) else {
                return Err(at(step.offset, Flaw::Underflow));
            };
            let depth = below + pushes;
            greatest = greatest.max(depth);
            if let Some(distance) = step.instruction.jump_distance() {
                waiting.push((self.target(step, distance)?, depth));
            }
            let goes_on =
                !step.instruction.is_return() && !matches!(step.instruction, Instruction::Jump(_));
            if goes_on {
                waiting.push((index + 1, depth));
            }
        }
        Ok(greatest)
    }

    fn target(&self, step: &Step, distance: i32) -> Result<usize, VerifyError> {
        let end = i64::try_from(step.end).unwrap_or(i64::MAX);
        let target = end.saturating_add(distance.into());
        let found = usize::try_from(target)
            .ok()
            .and_then(|offset| self.step_at.get(offset).copied().flatten());
        found.ok_or(at(step.offset, Flaw::Target(target)))
    }
}
