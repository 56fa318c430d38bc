//! From the resolved tree to bytecodes.

use super::assembler::Assembler;
use super::bytecodes::{Instruction, SPECIAL_SELECTORS};
use super::frame::{Frame, Location};
use super::tree::{
    Analysis, Arm, Body, Count, If, IfNil, Message, Node, Place, Statement, UnitId, VariableId,
    While,
};
use super::{CompiledCode, Literal, literals::Literals, verifier};
use crate::syntax::SyntaxError;
use crate::syntax::ast::{Method, MethodKind, Position};

/// The most elements of `{a. b}` and of a temp vector.
const MAX_ARRAY: usize = 127;

/// Generates the code of a method or do-it.
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
struct Generator<'a> {
    analysis: &'a Analysis,
    file: &'a str,
    unit: UnitId,
    frame: Frame,
    literals: Literals,
    code: Assembler,
    /// The place in the source, for lines and errors.
    position: Position,
}

type Generated = Result<(), SyntaxError>;

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
            position,
        })
    }

    fn finish(self) -> Result<CompiledCode, SyntaxError> {
        let error = |message: &str| SyntaxError::new(self.file, self.position, message.to_owned());
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
            needs_token: unit.needs_token,
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

    fn emit(&mut self, instruction: Instruction) {
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

    /// Makes the temp vector of a scope, and sets temps to nil that hold the last round's values.
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
                self.pop_into(&Place::Variable(*id))?;
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

    /// The code of an inlined block, whose value is left on the stack if it is `wanted`.
    fn body(&mut self, body: &Body, wanted: bool) -> Generated {
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

    /// Code that leaves the value on the stack if it is `wanted`, and nothing otherwise.
    fn node(&mut self, node: &Node, wanted: bool) -> Generated {
        match node {
            Node::Constant(literal) if wanted => self.constant(literal),
            Node::Receiver if wanted => {
                self.emit(Instruction::PushReceiver);
                Ok(())
            }
            Node::Read(place) if wanted => self.push(place),
            Node::Closure(unit, body) if wanted => self.closure(*unit, body),
            // Without an effect.
            Node::Constant(_) | Node::Receiver | Node::Read(_) | Node::Closure(..) => Ok(()),
            Node::Assignment(place, value) => {
                self.value(value)?;
                if wanted {
                    self.store_into(place)
                } else {
                    self.pop_into(place)
                }
            }
            Node::If(node) => self.branch(node, wanted),
            Node::IfNil(node) => self.nil_test(node, wanted),
            Node::While(node) => {
                self.while_loop(node)?;
                self.nil_if(wanted)
            }
            Node::Repeat(body) => {
                let start = self.code.label();
                self.code.bind(start);
                self.body(body, false)?;
                self.code.jump(start);
                Ok(())
            }
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

    fn value(&mut self, node: &Node) -> Generated {
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

    fn nil_if(&mut self, wanted: bool) -> Generated {
        if wanted {
            self.emit(Instruction::PushNil);
        }
        Ok(())
    }

    fn constant(&mut self, literal: &Literal) -> Generated {
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

    fn push(&mut self, place: &Place) -> Generated {
        let instruction = match place {
            Place::Variable(id) => match self.location(*id)? {
                Location::Temp(temp) => Instruction::PushTemp(temp),
                Location::Vector(place) => Instruction::PushInVector(place),
            },
            Place::Instance(index) => Instruction::PushReceiverVariable(*index),
            Place::Binding(name) => {
                Instruction::PushLiteralVariable(self.literal(Literal::Binding(name.clone()))?)
            }
        };
        self.emit(instruction);
        Ok(())
    }

    fn pop_into(&mut self, place: &Place) -> Generated {
        let instruction = match place {
            Place::Variable(id) => match self.location(*id)? {
                Location::Temp(temp) => Instruction::PopIntoTemp(temp),
                Location::Vector(place) => Instruction::PopInVector(place),
            },
            Place::Instance(index) => Instruction::PopIntoReceiverVariable(*index),
            Place::Binding(name) => {
                Instruction::PopIntoLiteralVariable(self.literal(Literal::Binding(name.clone()))?)
            }
        };
        self.emit(instruction);
        Ok(())
    }

    fn store_into(&mut self, place: &Place) -> Generated {
        let instruction = match place {
            Place::Variable(id) => match self.location(*id)? {
                Location::Temp(temp) => Instruction::StoreIntoTemp(temp),
                Location::Vector(place) => Instruction::StoreInVector(place),
            },
            Place::Instance(index) => Instruction::StoreIntoReceiverVariable(*index),
            Place::Binding(name) => {
                Instruction::StoreIntoLiteralVariable(self.literal(Literal::Binding(name.clone()))?)
            }
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

    fn arm(&mut self, arm: &Arm, wanted: bool) -> Generated {
        match arm {
            Arm::Body(body) => self.body(body, wanted),
            Arm::Constant(literal) if wanted => self.constant(literal),
            Arm::Constant(_) => Ok(()),
        }
    }

    fn branch(&mut self, node: &If, wanted: bool) -> Generated {
        self.value(&node.condition)?;
        // The arm that is a constant comes last.
        let (first, second, skip) = match node.when_true {
            Arm::Body(_) => (&node.when_true, &node.when_false, false),
            Arm::Constant(_) => (&node.when_false, &node.when_true, true),
        };
        let other = self.code.label();
        self.code.jump_if(skip, other);
        self.arm(first, wanted)?;
        if !wanted && matches!(second, Arm::Constant(_)) {
            self.code.bind(other);
            return Ok(());
        }
        let end = self.code.label();
        self.code.jump(end);
        self.code.bind(other);
        self.arm(second, wanted)?;
        self.code.bind(end);
        Ok(())
    }

    fn is_nil(&mut self) {
        self.emit(Instruction::PushNil);
        let identical = SPECIAL_SELECTORS.iter().position(|s| s.0 == "==");
        self.emit(Instruction::SendSpecial(identical.unwrap_or(0)));
    }

    fn nil_test(&mut self, node: &IfNil, wanted: bool) -> Generated {
        self.value(&node.value)?;
        let end = self.code.label();
        let Some((argument, otherwise)) = &node.otherwise else {
            // ifNil: the value stays on the stack.
            if wanted {
                self.emit(Instruction::Dup);
            }
            self.is_nil();
            self.code.jump_if(false, end);
            if wanted {
                self.emit(Instruction::Pop);
            }
            if let Some(body) = &node.when_nil {
                self.body(body, wanted)?;
            }
            self.code.bind(end);
            return Ok(());
        };
        if let Some(argument) = argument {
            self.store_into(&Place::Variable(*argument))?;
        }
        self.is_nil();
        let nil = self.code.label();
        self.code.jump_if(true, nil);
        self.body(otherwise, wanted)?;
        if wanted || node.when_nil.is_some() {
            self.code.jump(end);
        }
        self.code.bind(nil);
        match &node.when_nil {
            Some(body) => self.body(body, wanted)?,
            None => self.nil_if(wanted)?,
        }
        self.code.bind(end);
        Ok(())
    }

    fn while_loop(&mut self, node: &While) -> Generated {
        let start = self.code.label();
        let end = self.code.label();
        self.code.bind(start);
        self.body(&node.condition, true)?;
        self.code.jump_if(!node.wanted, end);
        if let Some(body) = &node.body {
            self.body(body, false)?;
        }
        self.code.jump(start);
        self.code.bind(end);
        Ok(())
    }

    fn count(&mut self, node: &Count, wanted: bool) -> Generated {
        let counter = Place::Variable(node.counter);
        self.value(&node.first)?;
        if wanted && !node.answers_limit {
            self.store_into(&counter)?;
        } else {
            self.pop_into(&counter)?;
        }
        let keep_limit = wanted && node.answers_limit;
        let limit_variable = node.limit_variable.map(Place::Variable);
        if limit_variable.is_some() || keep_limit {
            self.value(&node.limit)?;
        }
        match &limit_variable {
            Some(limit) if keep_limit => self.store_into(limit)?,
            Some(limit) => self.pop_into(limit)?,
            None => {}
        }
        let start = self.code.label();
        let end = self.code.label();
        self.code.bind(start);
        self.push(&counter)?;
        match &limit_variable {
            Some(limit) => self.push(limit)?,
            None => self.value(&node.limit)?,
        }
        self.arithmetic(if node.ascending { "<=" } else { ">=" });
        self.code.jump_if(false, end);
        self.body(&node.body, false)?;
        self.push(&counter)?;
        self.constant(&node.step)?;
        self.arithmetic("+");
        self.pop_into(&counter)?;
        self.code.jump(start);
        self.code.bind(end);
        Ok(())
    }

    fn arithmetic(&mut self, selector: &str) {
        let index = SPECIAL_SELECTORS.iter().position(|s| s.0 == selector);
        self.emit(Instruction::SendSpecial(index.unwrap_or(0)));
    }
}
