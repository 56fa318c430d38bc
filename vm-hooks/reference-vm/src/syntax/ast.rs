//! The syntax tree of a method or do-it.

use crate::compiler::Literal;

/// A place in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A name where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Its first character.
    pub position: Position,
}

/// What falling off the end answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// A method of a class: it answers its receiver.
    Method,
    /// Statements: they answer the value of the last.
    DoIt,
}

/// A method or a do-it.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// Method or do-it.
    pub kind: MethodKind,
    /// The selector; of a do-it `DoIt`.
    pub selector: String,
    /// Arguments.
    pub arguments: Vec<Name>,
    /// Number of the primitive, or 0.
    pub primitive: usize,
    /// Temps; first that of the primitive's error code, if there is one.
    pub temps: Vec<Name>,
    /// Statements.
    pub statements: Vec<Statement>,
    /// Where it begins.
    pub position: Position,
}

/// A statement. Only the last of a list can be a return.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Whether it begins with `^`.
    pub returns: bool,
    /// The expression.
    pub expression: Expression,
    /// Where it begins.
    pub position: Position,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// What it is.
    pub kind: ExpressionKind,
    /// Where it begins; of a send the selector.
    pub position: Position,
    /// Nodes on the longest way down from here, with this one. The parser bounds it.
    pub height: usize,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind {
    /// A literal, also `nil`, `true` and `false`.
    Literal(Literal),
    /// A variable, `self` or `super`.
    Variable(String),
    /// `name := value`.
    Assignment(Name, Box<Expression>),
    /// A message to a receiver.
    Send(Box<Expression>, Message),
    /// Several messages to one receiver.
    Cascade(Box<Expression>, Vec<Message>),
    /// A block.
    Block(Block),
    /// `{a. b}`.
    Array(Vec<Expression>),
}

impl ExpressionKind {
    /// The greatest height of the expressions in it.
    #[must_use]
    pub fn height_below(&self) -> usize {
        let arguments = |message: &Message| highest(&message.arguments);
        match self {
            Self::Literal(_) | Self::Variable(_) => 0,
            Self::Assignment(_, value) => value.height,
            Self::Send(receiver, message) => receiver.height.max(arguments(message)),
            Self::Cascade(receiver, messages) => {
                let highest = messages.iter().map(arguments).max();
                receiver.height.max(highest.unwrap_or(0))
            }
            Self::Block(block) => {
                let statements = block.statements.iter();
                highest(statements.map(|statement| &statement.expression))
            }
            Self::Array(elements) => highest(elements),
        }
    }
}

fn highest<'a>(expressions: impl IntoIterator<Item = &'a Expression>) -> usize {
    let heights = expressions.into_iter().map(|expression| expression.height);
    heights.max().unwrap_or(0)
}

/// A selector with arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The selector.
    pub selector: String,
    /// As many as the selector wants.
    pub arguments: Vec<Expression>,
    /// Where the selector begins.
    pub position: Position,
}

/// A block.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Arguments.
    pub arguments: Vec<Name>,
    /// Temps.
    pub temps: Vec<Name>,
    /// Statements.
    pub statements: Vec<Statement>,
}
