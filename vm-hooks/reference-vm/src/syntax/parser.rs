//! Parses tokens into the syntax tree.

use super::SyntaxError;
use super::ast::{Block, Expression, ExpressionKind, Message, Name, Position, Statement};
use super::scanner::{Lexeme, Token};

/// Maximum nesting depth of parentheses, blocks and braces.
const MAX_NESTING: usize = 200;
/// Maximum tree height below a statement. Each message of a chain adds a node.
const MAX_HEIGHT: usize = 400;

/// Whether `name` is reserved: programs cannot declare it as a variable.
pub fn is_reserved(name: &str) -> bool {
    matches!(
        name,
        "nil" | "true" | "false" | "self" | "super" | "thisContext"
    )
}

/// Parser for a single method or do-it.
pub struct Parser<'a> {
    file: &'a str,
    lexemes: Vec<Lexeme>,
    next: usize,
    nesting: usize,
}

static END: Token = Token::End;

impl<'a> Parser<'a> {
    pub fn new(file: &'a str, lexemes: Vec<Lexeme>) -> Self {
        Self {
            file,
            lexemes,
            next: 0,
            nesting: 0,
        }
    }

    pub(super) fn peek(&self) -> &Token {
        self.lexemes.get(self.next).map_or(&END, |l| &l.token)
    }

    pub(super) fn position(&self) -> Position {
        let lexeme = self.lexemes.get(self.next).or(self.lexemes.last());
        lexeme.map_or(Position { line: 1, column: 1 }, |lexeme| lexeme.position)
    }

    /// Whether the next token follows the previous token without a blank.
    pub(super) fn adjacent(&self) -> bool {
        self.lexemes.get(self.next).is_some_and(|l| l.adjacent)
    }

    pub(super) fn peek_second(&self) -> Option<&Lexeme> {
        self.lexemes.get(self.next + 1)
    }

    pub(super) fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    /// Consumes the next token if it equals `token`.
    pub(super) fn accept(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.next += 1;
        }
        found
    }

    pub(super) fn expect(&mut self, token: &Token) -> Result<(), SyntaxError> {
        if self.accept(token) {
            return Ok(());
        }
        self.expected(&token.to_string())
    }

    pub(super) fn expected<T>(&self, what: &str) -> Result<T, SyntaxError> {
        let message = format!("expected {what}, found {}", self.peek());
        Err(SyntaxError::new(self.file, self.position(), message))
    }

    /// Runs `parse` one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        if self.nesting == MAX_NESTING {
            return self.expected(&format!("at most {MAX_NESTING} levels of nesting"));
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    pub(super) fn node(
        &self,
        kind: ExpressionKind,
        position: Position,
    ) -> Result<Expression, SyntaxError> {
        let height = kind.height_below() + 1;
        if height > MAX_HEIGHT {
            let message = format!("expected an expression of at most {MAX_HEIGHT} levels");
            return Err(SyntaxError::new(self.file, position, message));
        }
        Ok(Expression {
            kind,
            position,
            height,
        })
    }

    pub(super) fn name(&mut self) -> Result<Name, SyntaxError> {
        let position = self.position();
        match self.peek() {
            Token::Identifier(text) if !is_reserved(text) => {
                let text = text.clone();
                self.next += 1;
                Ok(Name { text, position })
            }
            _ => self.expected("the name of a variable"),
        }
    }

    pub(super) fn temps(&mut self) -> Result<Vec<Name>, SyntaxError> {
        let bar = Token::Binary("|".to_owned());
        let mut temps = Vec::new();
        while !self.accept(&Token::Binary("||".to_owned())) {
            if !self.accept(&bar) {
                return Ok(temps);
            }
            temps.extend(self.temp_names()?);
        }
        Ok(temps)
    }

    /// Parses temp names; consumes the closing bar.
    fn temp_names(&mut self) -> Result<Vec<Name>, SyntaxError> {
        let mut names = Vec::new();
        while !self.accept(&Token::Binary("|".to_owned())) {
            names.push(self.name()?);
        }
        Ok(names)
    }

    /// Parses statements; consumes `end`.
    pub(super) fn statements(&mut self, end: &Token) -> Result<Vec<Statement>, SyntaxError> {
        let period = Token::Mark('.');
        let mut statements = Vec::new();
        loop {
            while self.accept(&period) {}
            if self.accept(end) {
                return Ok(statements);
            }
            let position = self.position();
            let returns = self.accept(&Token::Mark('^'));
            statements.push(Statement {
                returns,
                expression: self.expression()?,
                position,
            });
            if returns {
                while self.accept(&period) {}
            }
            if returns || *self.peek() != period {
                self.expect(end)?;
                return Ok(statements);
            }
        }
    }

    fn expression(&mut self) -> Result<Expression, SyntaxError> {
        self.nested(|parser| {
            let second = parser.peek_second().map(|lexeme| &lexeme.token);
            if second == Some(&Token::Assign) && matches!(parser.peek(), Token::Identifier(_)) {
                let name = parser.name()?;
                parser.next += 1;
                let value = parser.expression()?;
                let position = name.position;
                return parser.node(ExpressionKind::Assignment(name, Box::new(value)), position);
            }
            let receiver = parser.primary()?;
            parser.messages_to(receiver)
        })
    }

    /// Unary, binary and keyword messages, and a cascade.
    fn messages_to(&mut self, receiver: Expression) -> Result<Expression, SyntaxError> {
        let mut expression = self.binary_messages_to(receiver)?;
        if matches!(self.peek(), Token::Keyword(_)) {
            let message = self.keyword_message()?;
            expression = self.send(expression, message)?;
        }
        if *self.peek() == Token::Mark(';') {
            return self.cascade(expression);
        }
        Ok(expression)
    }

    fn unary_messages_to(&mut self, receiver: Expression) -> Result<Expression, SyntaxError> {
        let mut expression = receiver;
        while let Token::Identifier(_) = self.peek() {
            let message = self.unary_message();
            expression = self.send(expression, message)?;
        }
        Ok(expression)
    }

    fn binary_messages_to(&mut self, receiver: Expression) -> Result<Expression, SyntaxError> {
        let mut expression = self.unary_messages_to(receiver)?;
        while let Token::Binary(_) = self.peek() {
            let message = self.binary_message()?;
            expression = self.send(expression, message)?;
        }
        Ok(expression)
    }

    fn unary_message(&mut self) -> Message {
        let position = self.position();
        Message {
            selector: self.take().to_string(),
            arguments: Vec::new(),
            position,
        }
    }

    fn binary_message(&mut self) -> Result<Message, SyntaxError> {
        let position = self.position();
        let selector = self.take().to_string();
        let operand = self.primary()?;
        Ok(Message {
            selector,
            arguments: vec![self.unary_messages_to(operand)?],
            position,
        })
    }

    fn keyword_message(&mut self) -> Result<Message, SyntaxError> {
        let position = self.position();
        let mut selector = String::new();
        let mut arguments = Vec::new();
        while let Token::Keyword(part) = self.peek() {
            selector += part;
            self.next += 1;
            let operand = self.primary()?;
            arguments.push(self.binary_messages_to(operand)?);
        }
        Ok(Message {
            selector,
            arguments,
            position,
        })
    }

    fn send(&self, receiver: Expression, message: Message) -> Result<Expression, SyntaxError> {
        let position = message.position;
        self.node(ExpressionKind::Send(Box::new(receiver), message), position)
    }

    /// Parses a cascade's remaining messages. The receiver of the last message in `first` receives
    /// all messages.
    fn cascade(&mut self, first: Expression) -> Result<Expression, SyntaxError> {
        let position = first.position;
        let ExpressionKind::Send(receiver, message) = first.kind else {
            return self.expected("a message in front of a cascade");
        };
        let mut messages = vec![message];
        while self.accept(&Token::Mark(';')) {
            messages.push(match self.peek() {
                Token::Identifier(_) => self.unary_message(),
                Token::Binary(_) => self.binary_message()?,
                Token::Keyword(_) => self.keyword_message()?,
                _ => return self.expected("a message of the cascade"),
            });
        }
        self.node(ExpressionKind::Cascade(receiver, messages), position)
    }

    fn primary(&mut self) -> Result<Expression, SyntaxError> {
        let position = self.position();
        match self.peek() {
            Token::Identifier(name) if name == "thisContext" => {
                self.expected("an expression (this VM has no thisContext)")
            }
            Token::Identifier(name) if !matches!(name.as_str(), "nil" | "true" | "false") => {
                let name = name.clone();
                self.next += 1;
                self.node(ExpressionKind::Variable(name), position)
            }
            Token::Mark('(') => {
                self.next += 1;
                let expression = self.expression()?;
                self.expect(&Token::Mark(')'))?;
                Ok(expression)
            }
            Token::Mark('[') => {
                self.next += 1;
                let block = self.block()?;
                self.node(ExpressionKind::Block(block), position)
            }
            Token::Mark('{') => {
                self.next += 1;
                let elements = self.elements()?;
                self.node(ExpressionKind::Array(elements), position)
            }
            _ => match self.literal()? {
                Some(literal) => self.node(ExpressionKind::Literal(literal), position),
                None => self.expected("an expression"),
            },
        }
    }

    /// Parses a block after its opening bracket.
    fn block(&mut self) -> Result<Block, SyntaxError> {
        let mut arguments = Vec::new();
        while self.accept(&Token::Mark(':')) {
            arguments.push(self.name()?);
        }
        let end = Token::Mark(']');
        let mut temps = Vec::new();
        if arguments.is_empty() {
            temps = self.temps()?;
        } else if self.accept(&Token::Binary("||".to_owned())) {
            // `[:a || b | …]`: the second bar begins the temps.
            temps = self.temp_names()?;
        } else if self.accept(&Token::Binary("|".to_owned())) {
            temps = self.temps()?;
        } else if *self.peek() != end {
            return self.expected("|");
        }
        Ok(Block {
            arguments,
            temps,
            statements: self.statements(&end)?,
        })
    }

    /// Parses elements of `{a. b}` after the opening brace.
    fn elements(&mut self) -> Result<Vec<Expression>, SyntaxError> {
        let end = Token::Mark('}');
        let mut elements = Vec::new();
        while !self.accept(&end) {
            elements.push(self.expression()?);
            if !self.accept(&Token::Mark('.')) && *self.peek() != end {
                return self.expected(". or }");
            }
        }
        Ok(elements)
    }
}
