//! From tokens to the syntax tree.

use super::SyntaxError;
use super::ast::{
    Block, Expression, ExpressionKind, Message, Method, MethodKind, Name, Position, Statement,
};
use super::scanner::{Lexeme, Token};

/// How deep parentheses, blocks and the like may nest.
const MAX_NESTING: usize = 200;
/// How many nodes may lie on a way from a statement down: chains of messages count, too.
const MAX_HEIGHT: usize = 400;

/// Names that are no variables of the program.
pub fn is_reserved(name: &str) -> bool {
    matches!(
        name,
        "nil" | "true" | "false" | "self" | "super" | "thisContext"
    )
}

/// A parser of one method or do-it.
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

    /// Parses a method: pattern, pragmas, temps, statements.
    pub fn method(mut self) -> Result<Method, SyntaxError> {
        let position = self.position();
        let (selector, arguments) = self.pattern()?;
        let mut method = Method {
            kind: MethodKind::Method,
            selector,
            arguments,
            primitive: 0,
            temps: Vec::new(),
            statements: Vec::new(),
            position,
        };
        self.pragmas(&mut method)?;
        method.temps.extend(self.temps()?);
        self.pragmas(&mut method)?;
        method.statements = self.statements(&Token::End)?;
        Ok(method)
    }

    /// Parses temps and statements.
    pub fn do_it(mut self) -> Result<Method, SyntaxError> {
        Ok(Method {
            kind: MethodKind::DoIt,
            selector: "DoIt".to_owned(),
            arguments: Vec::new(),
            primitive: 0,
            position: self.position(),
            temps: self.temps()?,
            statements: self.statements(&Token::End)?,
        })
    }

    pub(super) fn peek(&self) -> &Token {
        self.lexemes.get(self.next).map_or(&END, |l| &l.token)
    }

    pub(super) fn position(&self) -> Position {
        let lexeme = self.lexemes.get(self.next).or(self.lexemes.last());
        lexeme.map_or(Position { line: 1, column: 1 }, |lexeme| lexeme.position)
    }

    /// Whether the next token follows the one before without a blank.
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

    /// Takes the next token if it is `token`.
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

    fn name(&mut self) -> Result<Name, SyntaxError> {
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

    fn pattern(&mut self) -> Result<(String, Vec<Name>), SyntaxError> {
        match self.peek().clone() {
            Token::Identifier(selector) => {
                self.next += 1;
                Ok((selector, Vec::new()))
            }
            Token::Binary(selector) => {
                self.next += 1;
                Ok((selector, vec![self.name()?]))
            }
            Token::Keyword(_) => {
                let mut selector = String::new();
                let mut arguments = Vec::new();
                while let Token::Keyword(part) = self.peek() {
                    selector += part;
                    self.next += 1;
                    arguments.push(self.name()?);
                }
                Ok((selector, arguments))
            }
            _ => self.expected("a method's selector"),
        }
    }

    /// `<primitive: 60>`, `<primitive: 60 error: code>`; others are skipped.
    fn pragmas(&mut self, method: &mut Method) -> Result<(), SyntaxError> {
        let end = Token::Binary(">".to_owned());
        while self.accept(&Token::Binary("<".to_owned())) {
            if self.accept(&Token::Keyword("primitive:".to_owned())) {
                method.primitive = match self.peek() {
                    // `callPrimitive` has 13 bits for it.
                    Token::Integer(number) => match u16::try_from(number) {
                        Ok(number @ 1..0x2000) => usize::from(number),
                        _ => return self.expected("a primitive's number from 1 to 8191"),
                    },
                    _ => return self.expected("a primitive's number"),
                };
                self.next += 1;
                if self.accept(&Token::Keyword("error:".to_owned())) {
                    method.temps.push(self.name()?);
                }
            } else {
                while !matches!(self.peek(), Token::End) && *self.peek() != end {
                    self.next += 1;
                }
            }
            self.expect(&end)?;
        }
        Ok(())
    }

    fn temps(&mut self) -> Result<Vec<Name>, SyntaxError> {
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

    /// Names up to a bar, which is taken.
    fn temp_names(&mut self) -> Result<Vec<Name>, SyntaxError> {
        let mut names = Vec::new();
        while !self.accept(&Token::Binary("|".to_owned())) {
            names.push(self.name()?);
        }
        Ok(names)
    }

    /// Statements up to `end`, which is taken.
    fn statements(&mut self, end: &Token) -> Result<Vec<Statement>, SyntaxError> {
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

    /// The rest of a cascade, whose receiver is that of the last message of `first`.
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

    /// A block behind its bracket.
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

    /// The elements of `{a. b}` behind the brace.
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
