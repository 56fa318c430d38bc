//! Resolves the syntax tree: binds names to variables and finds variables shared by closures.
//!
//! The resolver visits variables in text order. Closures copy variables without later assignments.
//! An assignment counts as later in three cases: inside a closure, behind the closure in the text,
//! or inside an inlined loop that does not contain the variable's declaration.

use super::Scope as Names;
use super::tree::{
    Analysis, Body, Message, Node, Place, Scope, ScopeId, Statement, Unit, UnitId, Variable,
    VariableId,
};
use crate::syntax::SyntaxError;
use crate::syntax::ast::{self, Expression, ExpressionKind, Name, Position};

/// Maximum number of variables declared by a unit.
const MAX_DECLARED: usize = 255;
/// Maximum number of arguments of methods, blocks and messages.
const MAX_ARGUMENTS: usize = 15;

/// Resolves a method or do-it. Its unit comes first in the analysis.
pub fn resolve(
    method: &ast::Method,
    file: &str,
    names: &dyn Names,
) -> Result<(Body, Analysis), SyntaxError> {
    let mut resolver = Resolver {
        names,
        file,
        analysis: Analysis::default(),
        scope: 0,
    };
    resolver.analysis.units.push(Unit::default());
    resolver.open_scope(None, 0, 0);
    resolver.check_arguments(method.arguments.len(), method.position)?;
    let body = resolver.unit(0, &method.arguments, &method.temps, &method.statements)?;
    Ok((body, resolver.analysis))
}

pub(super) struct Resolver<'a> {
    names: &'a dyn Names,
    file: &'a str,
    analysis: Analysis,
    /// The innermost scope.
    scope: ScopeId,
}

impl Resolver<'_> {
    pub(super) fn error<T>(
        &self,
        position: Position,
        message: impl Into<String>,
    ) -> Result<T, SyntaxError> {
        Err(SyntaxError::new(self.file, position, message.into()))
    }

    fn check_arguments(&self, count: usize, position: Position) -> Result<(), SyntaxError> {
        if count > MAX_ARGUMENTS {
            let message = format!("expected at most {MAX_ARGUMENTS} arguments, found {count}");
            return self.error(position, message);
        }
        Ok(())
    }

    fn unit_id(&self) -> UnitId {
        self.analysis.scopes[self.scope].unit
    }

    fn open_scope(&mut self, parent: Option<ScopeId>, unit: UnitId, loop_depth: usize) {
        self.scope = self.analysis.scopes.len();
        self.analysis.units[unit].scopes.push(self.scope);
        self.analysis.scopes.push(Scope {
            parent,
            unit,
            loop_depth,
            variables: Vec::new(),
        });
    }

    fn declare(&mut self, name: &Name, argument: bool) -> Result<VariableId, SyntaxError> {
        let declared = &self.analysis.scopes[self.scope].variables;
        if declared
            .iter()
            .any(|id| self.analysis.variables[*id].name == name.text)
        {
            let message = format!("expected another name, found {} again", name.text);
            return self.error(name.position, message);
        }
        self.add_variable(name.text.clone(), argument, name.position)
    }

    /// Adds a hidden variable: the program cannot name it.
    pub(super) fn hidden(
        &mut self,
        name: &str,
        position: Position,
    ) -> Result<VariableId, SyntaxError> {
        self.add_variable(format!("<{name}>"), true, position)
    }

    fn add_variable(
        &mut self,
        name: String,
        argument: bool,
        position: Position,
    ) -> Result<VariableId, SyntaxError> {
        let scopes = self.analysis.units[self.unit_id()].scopes.iter();
        let declared: usize = scopes
            .map(|scope| self.analysis.scopes[*scope].variables.len())
            .sum();
        if declared >= MAX_DECLARED {
            let message = format!("expected at most {MAX_DECLARED} variables");
            return self.error(position, message);
        }
        let id = self.analysis.variables.len();
        self.analysis.variables.push(Variable {
            name,
            scope: self.scope,
            argument,
            captured: false,
            reassigned: false,
            assigned_first: None,
        });
        self.analysis.scopes[self.scope].variables.push(id);
        Ok(id)
    }

    /// Resolves a unit's content. The caller has opened the unit's scope.
    fn unit(
        &mut self,
        unit: UnitId,
        arguments: &[Name],
        temps: &[Name],
        statements: &[ast::Statement],
    ) -> Result<Body, SyntaxError> {
        for argument in arguments {
            let id = self.declare(argument, true)?;
            self.analysis.units[unit].arguments.push(id);
        }
        self.rest_of_body(temps, statements)
    }

    fn rest_of_body(
        &mut self,
        temps: &[Name],
        statements: &[ast::Statement],
    ) -> Result<Body, SyntaxError> {
        for temp in temps {
            self.declare(temp, false)?;
        }
        let scope = self.scope;
        let statements = statements
            .iter()
            .map(|statement| self.statement(statement))
            .collect::<Result<_, _>>()?;
        Ok(Body { scope, statements })
    }

    fn statement(&mut self, statement: &ast::Statement) -> Result<Statement, SyntaxError> {
        let node = self.expression(&statement.expression)?;
        if statement.returns {
            let mut unit = self.unit_id();
            while let Some(parent) = self.analysis.units[unit].parent {
                self.analysis.units[unit].returns = true;
                unit = parent;
            }
        }
        Ok(Statement {
            returns: statement.returns,
            node,
            position: statement.position,
        })
    }

    /// Body of an inlined block, with the block's optional argument.
    pub(super) fn inlined_body(
        &mut self,
        block: &ast::Block,
        in_loop: bool,
    ) -> Result<(Option<VariableId>, Body), SyntaxError> {
        let outer = self.scope;
        let Scope {
            unit, loop_depth, ..
        } = self.analysis.scopes[outer];
        self.open_scope(Some(outer), unit, loop_depth + usize::from(in_loop));
        let mut argument = None;
        for name in &block.arguments {
            argument = Some(self.declare(name, true)?);
        }
        let body = self.rest_of_body(&block.temps, &block.statements)?;
        self.scope = outer;
        Ok((argument, body))
    }

    fn closure(&mut self, block: &ast::Block, position: Position) -> Result<Node, SyntaxError> {
        self.check_arguments(block.arguments.len(), position)?;
        let outer = self.scope;
        let unit = self.analysis.units.len();
        self.analysis.units.push(Unit {
            parent: Some(self.unit_id()),
            ..Unit::default()
        });
        self.open_scope(Some(outer), unit, 0);
        let body = self.unit(unit, &block.arguments, &block.temps, &block.statements)?;
        self.scope = outer;
        Ok(Node::Closure(unit, body))
    }

    pub(super) fn expression(&mut self, expression: &Expression) -> Result<Node, SyntaxError> {
        let position = expression.position;
        match &expression.kind {
            ExpressionKind::Literal(literal) => Ok(Node::Constant(literal.clone())),
            ExpressionKind::Variable(name) => match name.as_str() {
                "self" => Ok(Node::Receiver),
                "super" => self.error(position, "expected a message to super"),
                _ => Ok(Node::Read(self.read(name, position)?)),
            },
            ExpressionKind::Assignment(name, value) => {
                let value = self.expression(value)?;
                Ok(Node::Assignment(self.assign(name)?, Box::new(value)))
            }
            ExpressionKind::Send(receiver, message) => {
                if let Some(node) = self.inlined(receiver, message)? {
                    return Ok(node);
                }
                let (receiver, to_super) = self.receiver(receiver)?;
                let message = self.message(message, to_super)?;
                Ok(Node::Send(Box::new(receiver), message))
            }
            ExpressionKind::Cascade(receiver, messages) => {
                let (receiver, to_super) = self.receiver(receiver)?;
                let messages = messages
                    .iter()
                    .map(|message| self.message(message, to_super))
                    .collect::<Result<_, _>>()?;
                Ok(Node::Cascade(Box::new(receiver), messages))
            }
            ExpressionKind::Block(block) => self.closure(block, position),
            ExpressionKind::Array(elements) => Ok(Node::Array(self.expressions(elements)?)),
        }
    }

    fn expressions(&mut self, expressions: &[Expression]) -> Result<Vec<Node>, SyntaxError> {
        expressions
            .iter()
            .map(|expression| self.expression(expression))
            .collect()
    }

    /// Resolves a receiver. The flag marks `super`.
    fn receiver(&mut self, receiver: &Expression) -> Result<(Node, bool), SyntaxError> {
        match &receiver.kind {
            ExpressionKind::Variable(name) if name == "super" => Ok((Node::Receiver, true)),
            _ => Ok((self.expression(receiver)?, false)),
        }
    }

    fn message(&mut self, message: &ast::Message, to_super: bool) -> Result<Message, SyntaxError> {
        self.check_arguments(message.arguments.len(), message.position)?;
        Ok(Message {
            selector: message.selector.clone(),
            arguments: self.expressions(&message.arguments)?,
            to_super,
            position: message.position,
        })
    }

    /// Finds a variable by name in the unit or an outer unit.
    fn find(&self, name: &str) -> Option<VariableId> {
        let mut scope = Some(self.scope);
        while let Some(id) = scope {
            let Scope {
                parent, variables, ..
            } = &self.analysis.scopes[id];
            let mut variables = variables.iter().copied();
            if let Some(found) = variables.find(|id| self.analysis.variables[*id].name == name) {
                return Some(found);
            }
            scope = *parent;
        }
        None
    }

    fn place(&self, name: &str, position: Position) -> Result<Place, SyntaxError> {
        if let Some(variable) = self.find(name) {
            return Ok(Place::Variable(variable));
        }
        if let Some(index) = self.names.instance_variable(name) {
            return Ok(Place::Instance(index));
        }
        let capitalised = name.starts_with(|c: char| c.is_ascii_uppercase());
        if capitalised || self.names.is_class_variable(name) || self.names.is_global(name) {
            return Ok(Place::Binding(name.to_owned()));
        }
        let message = format!("expected a declared variable, found undeclared variable {name}");
        self.error(position, message)
    }

    fn read(&mut self, name: &str, position: Position) -> Result<Place, SyntaxError> {
        let place = self.place(name, position)?;
        if let Place::Variable(variable) = place {
            self.note_use(variable);
            self.analysis.variables[variable]
                .assigned_first
                .get_or_insert(false);
        }
        Ok(place)
    }

    fn assign(&mut self, name: &Name) -> Result<Place, SyntaxError> {
        let place = self.place(&name.text, name.position)?;
        if let Place::Variable(id) = place {
            if self.analysis.variables[id].argument {
                let message = format!("expected a variable, found the argument {}", name.text);
                return self.error(name.position, message);
            }
            let outer = self.note_use(id);
            let loop_depth = |scope: ScopeId| self.analysis.scopes[scope].loop_depth;
            let in_inner_loop =
                loop_depth(self.scope) > loop_depth(self.analysis.variables[id].scope);
            let variable = &mut self.analysis.variables[id];
            variable.reassigned |= outer || variable.captured || in_inner_loop;
            let same_scope = variable.scope == self.scope;
            variable.assigned_first.get_or_insert(same_scope);
        }
        Ok(place)
    }

    /// Records a use by the current unit. Returns whether an outer unit declares the variable.
    fn note_use(&mut self, variable: VariableId) -> bool {
        let owner = self.analysis.unit_of(variable);
        let mut unit = self.unit_id();
        if unit == owner {
            return false;
        }
        self.analysis.variables[variable].captured = true;
        while unit != owner {
            let Unit {
                outer_variables,
                parent,
                ..
            } = &mut self.analysis.units[unit];
            if !outer_variables.contains(&variable) {
                outer_variables.push(variable);
            }
            match parent {
                Some(parent) => unit = *parent,
                None => break,
            }
        }
        true
    }
}
