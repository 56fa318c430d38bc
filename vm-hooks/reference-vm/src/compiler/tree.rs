//! The resolved tree: variables replace names, control structures replace inlined messages.

use super::Literal;
use crate::syntax::ast::Position;

/// A method's or block's variable. Index into `Analysis::variables`.
pub type VariableId = usize;
/// A scope. Index into `Analysis::scopes`.
pub type ScopeId = usize;
/// A unit with its own frame: a method or a closure's block. Index into `Analysis::units`.
pub type UnitId = usize;

/// The resolver's results: variables, scopes and units.
#[derive(Default)]
pub struct Analysis {
    pub variables: Vec<Variable>,
    pub scopes: Vec<Scope>,
    pub units: Vec<Unit>,
}

pub struct Variable {
    pub name: String,
    pub scope: ScopeId,
    /// A read-only variable: an argument of a method or block, or a hidden variable.
    pub argument: bool,
    /// A closure uses it.
    pub captured: bool,
    /// An assignment may follow a closure's copy.
    pub reassigned: bool,
    /// The first use in the text is an assignment on every path.
    pub assigned_first: Option<bool>,
}

pub struct Scope {
    pub parent: Option<ScopeId>,
    pub unit: UnitId,
    /// Number of enclosing inlined loops of the unit.
    pub loop_depth: usize,
    pub variables: Vec<VariableId>,
}

#[derive(Default)]
pub struct Unit {
    /// `None`: the method.
    pub parent: Option<UnitId>,
    pub arguments: Vec<VariableId>,
    /// The unit's scopes: the unit's own scope first, then scopes of inlined blocks.
    pub scopes: Vec<ScopeId>,
    /// Outer variables used by this unit or by nested units.
    pub outer_variables: Vec<VariableId>,
    /// Whether this unit or a nested unit returns from the method.
    pub returns: bool,
}

impl Analysis {
    /// Whether a temp vector stores a variable.
    pub fn is_shared(&self, variable: VariableId) -> bool {
        let variable = &self.variables[variable];
        variable.captured && variable.reassigned
    }

    /// A scope's variables in its temp vector, ordered by index.
    pub fn shared_variables(&self, scope: ScopeId) -> impl Iterator<Item = VariableId> {
        let variables = self.scopes[scope].variables.iter().copied();
        variables.filter(|variable| self.is_shared(*variable))
    }

    /// The unit that declares a variable.
    pub fn unit_of(&self, variable: VariableId) -> UnitId {
        self.scopes[self.variables[variable].scope].unit
    }
}

/// Meaning of a name.
#[derive(Clone)]
pub enum Place {
    Variable(VariableId),
    Instance(usize),
    Binding(String),
}

pub enum Node {
    Constant(Literal),
    Receiver,
    Read(Place),
    Assignment(Place, Box<Node>),
    Send(Box<Node>, Message),
    Cascade(Box<Node>, Vec<Message>),
    Array(Vec<Node>),
    Closure(UnitId, Body),
    If(Box<If>),
    IfNil(Box<IfNil>),
    While(Box<While>),
    Repeat(Body),
    Count(Box<Count>),
}

pub struct Message {
    pub selector: String,
    pub arguments: Vec<Node>,
    pub to_super: bool,
    pub position: Position,
}

/// Statements of a unit or inlined block.
pub struct Body {
    pub scope: ScopeId,
    pub statements: Vec<Statement>,
}

pub struct Statement {
    pub returns: bool,
    pub node: Node,
    pub position: Position,
}

/// `ifTrue:` family, `and:`, `or:`
pub struct If {
    pub condition: Node,
    pub when_true: Arm,
    pub when_false: Arm,
}

pub enum Arm {
    Body(Body),
    Constant(Literal),
}

/// `ifNil:` family. Without a body, nil answers nil; other receivers answer themselves.
pub struct IfNil {
    pub value: Node,
    pub when_nil: Option<Body>,
    /// The optional argument receives the value.
    pub otherwise: Option<(Option<VariableId>, Body)>,
}

/// `whileTrue` family: runs as long as the condition answers `wanted`.
pub struct While {
    pub condition: Body,
    pub wanted: bool,
    pub body: Option<Body>,
}

/// `to:do:`, `to:by:do:`, `timesRepeat:`
pub struct Count {
    pub counter: VariableId,
    pub first: Node,
    pub limit: Node,
    /// Variable that stores a non-constant limit.
    pub limit_variable: Option<VariableId>,
    pub step: Literal,
    pub ascending: bool,
    pub body: Body,
    /// Whether it answers the limit (`timesRepeat:`); otherwise the first value.
    pub answers_limit: bool,
}
