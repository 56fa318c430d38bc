//! The resolved tree: names are variables, and inlined messages are control structures.

use super::Literal;
use crate::syntax::ast::Position;

/// A variable of a method or block. Index into `Analysis::variables`.
pub type VariableId = usize;
/// A scope. Index into `Analysis::scopes`.
pub type ScopeId = usize;
/// A method, or a block that becomes a closure: what has a frame. Index into `Analysis::units`.
pub type UnitId = usize;

/// What the resolver finds out about variables, scopes and units.
#[derive(Default)]
pub struct Analysis {
    pub variables: Vec<Variable>,
    pub scopes: Vec<Scope>,
    pub units: Vec<Unit>,
}

pub struct Variable {
    pub name: String,
    pub scope: ScopeId,
    /// An argument of a method or block, or a hidden variable: the program cannot assign it.
    pub argument: bool,
    /// A closure uses it.
    pub captured: bool,
    /// It may be assigned after a closure has copied it.
    pub reassigned: bool,
    /// Its first use in the text is an assignment that cannot be skipped.
    pub assigned_first: Option<bool>,
}

pub struct Scope {
    pub parent: Option<ScopeId>,
    pub unit: UnitId,
    /// Number of inlined loops of the unit around it.
    pub loop_depth: usize,
    pub variables: Vec<VariableId>,
}

#[derive(Default)]
pub struct Unit {
    /// `None`: the method.
    pub parent: Option<UnitId>,
    pub arguments: Vec<VariableId>,
    /// Its scopes; first its own, then those of inlined blocks.
    pub scopes: Vec<ScopeId>,
    /// Variables of outer units that it or a unit in it uses.
    pub outer_variables: Vec<VariableId>,
    /// Whether it or a unit in it returns from the method.
    pub returns: bool,
    /// Whether a unit directly in it `returns`.
    pub needs_token: bool,
}

impl Analysis {
    /// Whether a variable lives in a temp vector.
    pub fn is_shared(&self, variable: VariableId) -> bool {
        let variable = &self.variables[variable];
        variable.captured && variable.reassigned
    }

    /// The variables of a scope that live in its temp vector, in order.
    pub fn shared_variables(&self, scope: ScopeId) -> impl Iterator<Item = VariableId> {
        let variables = self.scopes[scope].variables.iter().copied();
        variables.filter(|variable| self.is_shared(*variable))
    }

    /// The unit that declares a variable.
    pub fn unit_of(&self, variable: VariableId) -> UnitId {
        self.scopes[self.variables[variable].scope].unit
    }
}

/// Where a name leads.
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

/// The statements of a unit or of an inlined block.
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

/// `ifNil:` family. Without a body, nil answers nil, and another value itself.
pub struct IfNil {
    pub value: Node,
    pub when_nil: Option<Body>,
    /// Its argument, if there is one, is the value.
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
    /// Where the limit is kept, unless it is a constant.
    pub limit_variable: Option<VariableId>,
    pub step: Literal,
    pub ascending: bool,
    pub body: Body,
    /// Whether it answers the limit (`timesRepeat:`); otherwise the first value.
    pub answers_limit: bool,
}
