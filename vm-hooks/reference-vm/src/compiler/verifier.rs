//! Checks code before it runs: the interpreter trusts indices, depths and jumps.

use super::bytecodes::{DecodeError, Instruction, decode};
use super::{CompiledCode, Literal};

/// Maximum number of arguments of a method or block.
const MAX_ARGUMENTS: usize = 15;
/// Maximum number of temps of a frame.
const MAX_TEMPS: usize = 63;
/// Maximum number of literals, without the loader's two literals.
const MAX_LITERALS: usize = 32_765;
/// Maximum nesting depth of blocks.
const MAX_NESTING: usize = 500;

/// A flaw in code, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("offset {offset}: {flaw}")]
pub struct VerifyError {
    /// Bytecode offset in the code, or in a nested block.
    pub offset: usize,
    /// The flaw.
    pub flaw: Flaw,
}

/// A flaw in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// Bytes that encode no instruction.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// Counts of arguments, temps or literals that contradict the code or exceed its header.
    #[error("wrong number of arguments, temps or literals")]
    Header,
    /// Blocks nested too deep.
    #[error("blocks nest too deep")]
    Nesting,
    /// A missing literal, or a literal of the wrong kind.
    #[error("wrong literal {0}")]
    Literal(usize),
    /// A nonexistent temp.
    #[error("no temp {0}")]
    Temp(usize),
    /// A nonexistent instance variable.
    #[error("no instance variable {0}")]
    InstanceVariable(usize),
    /// A jump target outside the code or inside an instruction.
    #[error("a jump to {0}, where no instruction begins")]
    Target(i64),
    /// A path that runs past the code's end.
    #[error("the code goes on beyond its end")]
    End,
    /// Fewer values on the stack than the instruction pops.
    #[error("the stack is empty")]
    Underflow,
    /// A stack deeper than declared.
    #[error("the stack is deeper than {0}")]
    Overflow(usize),
    /// Paths that meet with different depths.
    #[error("paths meet with different depths, {0} and {1}")]
    Depths(usize, usize),
    /// A block instruction in a method, or a method instruction in a block.
    #[error("an instruction that does not belong here")]
    Misplaced,
    /// A primitive at the wrong place, or with a number that contradicts the code.
    #[error("the primitive is not what the code says")]
    Primitive,
    /// A closure without a home whose code returns from the home method.
    #[error("a closure without a home returns from its home")]
    Home,
}

/// Verifies a method or do-it, blocks included. `instance_variables`: number of the receiver's
/// instance variables.
///
/// # Errors
///
/// The first flaw.
pub fn verify(code: &CompiledCode, instance_variables: usize) -> Result<(), VerifyError> {
    verify_unit(code, instance_variables, None)
}

/// Greatest operand stack depth over all paths.
///
/// # Errors
///
/// Inconsistent paths: no depth is defined.
pub fn stack_depth(code: &CompiledCode) -> Result<usize, VerifyError> {
    Flow::new(code)?.run()
}

fn at(offset: usize, flaw: Flaw) -> VerifyError {
    VerifyError { offset, flaw }
}

/// Verifies a method (`nesting` = `None`) or a block; `nesting` counts enclosing blocks.
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

/// Bounds for the operands of one instruction.
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
            | I::StoreIntoReceiverVariable(index)
                if index >= self.instance_variables =>
            {
                return Err(Flaw::InstanceVariable(index));
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
            }
            I::CallPrimitive(number)
                if self.is_block || step.offset != 0 || number != self.code.primitive =>
            {
                return Err(Flaw::Primitive);
            }
            _ => {}
        }
        let misplaced = if self.is_block {
            // Blocks have one kind of method return: the top, returned from the home method.
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

/// Whether a block needs its home method: the block or a nested closure returns from there.
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

/// An instruction with its position.
struct Step {
    offset: usize,
    end: usize,
    instruction: Instruction,
}

/// The paths through code.
struct Flow {
    steps: Vec<Step>,
    /// Per offset: index of the instruction that begins there.
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

    /// Follows every path. Returns the greatest stack depth.
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
