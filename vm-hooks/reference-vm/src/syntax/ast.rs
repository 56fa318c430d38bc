//! Syntax tree of a method or do-it.

use crate::compiler::Literal;

/// A place in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A name with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Its first character.
    pub position: Position,
}

/// Answer of code without a final return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// A method of a class: it answers its receiver.
    Method,
    /// Statements answer the last statement's value.
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
    /// Temps. An error-code temp of the primitive comes first.
    pub temps: Vec<Name>,
    /// Statements.
    pub statements: Vec<Statement>,
    /// Start of the method.
    pub position: Position,
}

/// A statement. Returns occur only as last statements.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Whether it begins with `^`.
    pub returns: bool,
    /// The expression.
    pub expression: Expression,
    /// Start of the statement.
    pub position: Position,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// Kind of the expression.
    pub kind: ExpressionKind,
    /// Start of the expression; for sends, start of the selector.
    pub position: Position,
    /// Height: number of nodes on the longest downward path, this node included. Bounded by the
    /// parser.
    pub height: usize,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind {
    /// A literal, including `nil`, `true` and `false`.
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
    /// Maximum height of the contained expressions.
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
    /// One argument per parameter of the selector.
    pub arguments: Vec<Expression>,
    /// Start of the selector.
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
