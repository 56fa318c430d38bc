//! Generates bytecodes from the resolved tree.

use super::assembler::Assembler;
use super::bytecodes::{Instruction, SPECIAL_SELECTORS};
use super::frame::{Access, Frame, Location, POP_INTO, PUSH, STORE_INTO};
use super::tree::{Analysis, Body, Message, Node, Place, Statement, UnitId, VariableId};
use super::{CompiledCode, Literal, literals::Literals, verifier};
use crate::syntax::SyntaxError;
use crate::syntax::ast::{Method, MethodKind, Position};

/// Maximum number of elements of `{a. b}` and of temp vectors.
const MAX_ARRAY: usize = 127;

/// Generates code for a method or do-it.
pub fn generate(
    method: &Method,
    body: &Body,
    analysis: &Analysis,
    file: &str,
) -> Result<CompiledCode, SyntaxError> {
    let mut generator = Generator::new(analysis, file, 0, method.position)?;
    if method.primitive != 0 {
        generator.emit(Instruction::CallPrimitive(method.primitive));
    }
    generator.prologue(body)?;
    match method.kind {
        MethodKind::Method => {
            generator.statements(&body.statements)?;
            generator.emit(Instruction::ReturnReceiver);
        }
        MethodKind::DoIt => match body.statements.split_last() {
            Some((last, others)) => {
                generator.statements(others)?;
                generator.line(last.position);
                generator.return_node(&last.node)?;
            }
            None => generator.emit(Instruction::ReturnNil),
        },
    }
    let mut code = generator.finish()?;
    code.selector.clone_from(&method.selector);
    code.primitive = method.primitive;
    Ok(code)
}

/// Generates the code of one unit.
pub(super) struct Generator<'a> {
    analysis: &'a Analysis,
    file: &'a str,
    unit: UnitId,
    frame: Frame,
    literals: Literals,
    pub(super) code: Assembler,
    /// Start of the unit.
    start: Position,
    /// Start of the current node.
    position: Position,
}

pub(super) type Generated = Result<(), SyntaxError>;

impl<'a> Generator<'a> {
    fn new(
        analysis: &'a Analysis,
        file: &'a str,
        unit: UnitId,
        position: Position,
    ) -> Result<Self, SyntaxError> {
        let frame = Frame::new(analysis, unit).ok_or_else(|| {
            let message = format!("expected at most {} temps", Frame::MAX_TEMPS);
            SyntaxError::new(file, position, message)
        })?;
        Ok(Self {
            analysis,
            file,
            unit,
            frame,
            literals: Literals::default(),
            code: Assembler::new(),
            start: position,
            position,
        })
    }

    fn finish(self) -> Result<CompiledCode, SyntaxError> {
        let error = |message: &str| SyntaxError::new(self.file, self.start, message.to_owned());
        let Some((bytecodes, lines)) = self.code.finish() else {
            return Err(error(
                "expected shorter code: a jump or an index is too large",
            ));
        };
        let unit = &self.analysis.units[self.unit];
        let mut code = CompiledCode {
            selector: String::new(),
            num_args: unit.arguments.len(),
            num_temps: self.frame.names.len(),
            stack_depth: 0,
            primitive: 0,
            literals: self.literals.into_vec(),
            bytecodes,
            lines,
            temp_names: self.frame.names,
        };
        code.stack_depth = verifier::stack_depth(&code)
            .map_err(|flaw| error(&format!("the compiler made wrong code: {flaw}")))?;
        Ok(code)
    }

    fn error(&self, message: String) -> Generated {
        Err(SyntaxError::new(self.file, self.position, message))
    }

    pub(super) fn emit(&mut self, instruction: Instruction) {
        self.code.emit(instruction);
    }

    fn line(&mut self, position: Position) {
        self.position = position;
        self.code.line(position.line);
    }

    fn literal(&mut self, literal: Literal) -> Result<usize, SyntaxError> {
        self.literals.index(literal).ok_or_else(|| {
            let message = format!("expected at most {} literals", Literals::MAX);
            SyntaxError::new(self.file, self.position, message)
        })
    }

    /// Creates a scope's temp vector. Sets temps to nil if they still hold values of the last loop
    /// iteration.
    fn prologue(&mut self, body: &Body) -> Generated {
        let shared = self.analysis.shared_variables(body.scope).count();
        if shared > MAX_ARRAY {
            return self.error(format!(
                "expected at most {MAX_ARRAY} variables in closures"
            ));
        }
        if let Some(vector) = self.frame.vector(body.scope) {
            self.emit(Instruction::PushNewArray(shared));
            self.emit(Instruction::PopIntoTemp(vector));
        }
        let scope = &self.analysis.scopes[body.scope];
        if scope.loop_depth == 0 {
            return Ok(());
        }
        for id in &scope.variables {
            let variable = &self.analysis.variables[*id];
            if variable.assigned_first == Some(false)
                && !variable.argument
                && !self.analysis.is_shared(*id)
            {
                self.emit(Instruction::PushNil);
                self.access(&POP_INTO, &Place::Variable(*id))?;
            }
        }
        Ok(())
    }

    fn statements(&mut self, statements: &[Statement]) -> Generated {
        for statement in statements {
            self.line(statement.position);
            if statement.returns {
                self.return_node(&statement.node)?;
            } else {
                self.effect(&statement.node)?;
            }
        }
        Ok(())
    }

    fn return_node(&mut self, node: &Node) -> Generated {
        let in_method = self.analysis.units[self.unit].parent.is_none();
        let short = match node {
            Node::Receiver => Some(Instruction::ReturnReceiver),
            Node::Constant(Literal::True) => Some(Instruction::ReturnTrue),
            Node::Constant(Literal::False) => Some(Instruction::ReturnFalse),
            Node::Constant(Literal::Nil) => Some(Instruction::ReturnNil),
            _ => None,
        };
        if let Some(short) = short.filter(|_| in_method) {
            self.emit(short);
        } else {
            self.value(node)?;
            self.emit(Instruction::ReturnTop);
        }
        Ok(())
    }

    /// Generates an inlined block. Its value stays on the stack if `wanted`.
    pub(super) fn body(&mut self, body: &Body, wanted: bool) -> Generated {
        self.prologue(body)?;
        match body.statements.split_last() {
            Some((last, others)) if wanted && !last.returns => {
                self.statements(others)?;
                self.line(last.position);
                self.value(&last.node)
            }
            None if wanted => self.constant(&Literal::Nil),
            _ => self.statements(&body.statements),
        }
    }

    /// Generates a node. The value stays on the stack if `wanted`; otherwise nothing stays.
    fn node(&mut self, node: &Node, wanted: bool) -> Generated {
        match node {
            Node::Constant(literal) if wanted => self.constant(literal),
            Node::Receiver if wanted => {
                self.emit(Instruction::PushReceiver);
                Ok(())
            }
            Node::Read(place) if wanted => self.access(&PUSH, place),
            Node::Closure(unit, body) if wanted => self.closure(*unit, body),
            // Reads and constants have no side effect.
            Node::Constant(_) | Node::Receiver | Node::Read(_) | Node::Closure(..) => Ok(()),
            Node::Assignment(place, value) => {
                self.value(value)?;
                if wanted {
                    self.access(&STORE_INTO, place)
                } else {
                    self.access(&POP_INTO, place)
                }
            }
            Node::If(node) => self.branch(node, wanted),
            Node::IfNil(node) => self.nil_test(node, wanted),
            Node::While(node) => {
                self.while_loop(node)?;
                self.nil_if(wanted)
            }
            Node::Repeat(body) => self.repeat(body),
            Node::Count(node) => self.count(node, wanted),
            Node::Send(receiver, message) => {
                self.value(receiver)?;
                self.message(message)?;
                self.drop_unless(wanted);
                Ok(())
            }
            Node::Cascade(receiver, messages) => {
                self.cascade(receiver, messages)?;
                self.drop_unless(wanted);
                Ok(())
            }
            Node::Array(elements) => {
                self.array(elements)?;
                self.drop_unless(wanted);
                Ok(())
            }
        }
    }

    pub(super) fn value(&mut self, node: &Node) -> Generated {
        self.node(node, true)
    }

    fn effect(&mut self, node: &Node) -> Generated {
        self.node(node, false)
    }

    fn drop_unless(&mut self, wanted: bool) {
        if !wanted {
            self.emit(Instruction::Pop);
        }
    }

    pub(super) fn nil_if(&mut self, wanted: bool) -> Generated {
        if wanted {
            self.emit(Instruction::PushNil);
        }
        Ok(())
    }

    pub(super) fn constant(&mut self, literal: &Literal) -> Generated {
        let short = match literal {
            Literal::Nil => Some(Instruction::PushNil),
            Literal::True => Some(Instruction::PushTrue),
            Literal::False => Some(Instruction::PushFalse),
            Literal::Integer(value) => i16::try_from(value)
                .ok()
                .map(|value| Instruction::PushInteger(value.into())),
            Literal::Character(code_point) if *code_point < 0x8000 => {
                Some(Instruction::PushCharacter(*code_point))
            }
            _ => None,
        };
        let instruction = match short {
            Some(instruction) => instruction,
            None => Instruction::PushLiteral(self.literal(literal.clone())?),
        };
        self.emit(instruction);
        Ok(())
    }

    /// Reads or writes a variable.
    pub(super) fn access(&mut self, access: &Access, place: &Place) -> Generated {
        let instruction = match place {
            Place::Variable(id) => match self.location(*id)? {
                Location::Temp(temp) => (access.temp)(temp),
                Location::Vector(place) => (access.in_vector)(place),
            },
            Place::Instance(index) => (access.instance)(*index),
            Place::Binding(name) => (access.binding)(self.literal(Literal::Binding(name.clone()))?),
        };
        self.emit(instruction);
        Ok(())
    }

    fn location(&self, variable: VariableId) -> Result<Location, SyntaxError> {
        self.frame.location(self.analysis, variable).ok_or_else(|| {
            let message = "expected a variable of the frame".to_owned();
            SyntaxError::new(self.file, self.position, message)
        })
    }

    fn message(&mut self, message: &Message) -> Generated {
        for argument in &message.arguments {
            self.value(argument)?;
        }
        self.line(message.position);
        let num_args = message.arguments.len();
        let special = SPECIAL_SELECTORS
            .iter()
            .position(|special| *special == (message.selector.as_str(), num_args));
        if let Some(index) = special.filter(|_| !message.to_super) {
            self.emit(Instruction::SendSpecial(index));
            return Ok(());
        }
        let literal = self.literal(Literal::Symbol(message.selector.clone()))?;
        self.emit(if message.to_super {
            Instruction::SendSuper { literal, num_args }
        } else {
            Instruction::Send { literal, num_args }
        });
        Ok(())
    }

    fn cascade(&mut self, receiver: &Node, messages: &[Message]) -> Generated {
        self.value(receiver)?;
        for (index, message) in messages.iter().enumerate() {
            let last = index + 1 == messages.len();
            if !last {
                self.emit(Instruction::Dup);
            }
            self.message(message)?;
            self.drop_unless(last);
        }
        Ok(())
    }

    fn array(&mut self, elements: &[Node]) -> Generated {
        if elements.len() > MAX_ARRAY {
            return self.error(format!("expected at most {MAX_ARRAY} elements in braces"));
        }
        for element in elements {
            self.value(element)?;
        }
        self.emit(match elements.len() {
            0 => Instruction::PushNewArray(0),
            size => Instruction::PushArrayOf(size),
        });
        Ok(())
    }

    fn closure(&mut self, unit: UnitId, body: &Body) -> Generated {
        let mut block = Generator::new(self.analysis, self.file, unit, self.position)?;
        block.prologue(body)?;
        let others = match body.statements.split_last() {
            Some((last, others)) if !last.returns => {
                block.statements(others)?;
                block.line(last.position);
                Some(&last.node)
            }
            _ => {
                block.statements(&body.statements)?;
                None
            }
        };
        match others {
            None | Some(Node::Constant(Literal::Nil)) => block.emit(Instruction::BlockReturnNil),
            Some(last) => {
                block.value(last)?;
                block.emit(Instruction::BlockReturnTop);
            }
        }
        let copied = std::mem::take(&mut block.frame.copied);
        let code = block.finish()?;
        for entry in &copied {
            let Some(temp) = self.frame.slot(*entry) else {
                return self.error("expected a copied variable in the frame".to_owned());
            };
            self.emit(Instruction::PushTemp(temp));
        }
        let literal = self.literal(Literal::Block(Box::new(code)))?;
        self.emit(Instruction::PushClosure {
            literal,
            num_copied: copied.len(),
            ignores_outer: !self.analysis.units[unit].returns,
        });
        Ok(())
    }
}
