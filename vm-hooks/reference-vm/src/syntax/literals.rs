//! Literals: numbers with a sign, literal arrays, byte arrays.

use super::SyntaxError;
use super::parser::Parser;
use super::scanner::Token;
use crate::compiler::Literal;

impl Parser<'_> {
    /// Parses an optional literal, including `nil`, `true` and `false`.
    pub(super) fn literal(&mut self) -> Result<Option<Literal>, SyntaxError> {
        let literal = match self.peek() {
            Token::Identifier(name) => match name.as_str() {
                "nil" => Literal::Nil,
                "true" => Literal::True,
                "false" => Literal::False,
                _ => return Ok(None),
            },
            Token::Integer(value) => Literal::Integer(value.clone()),
            Token::Float(value) => Literal::Float(*value),
            Token::Character(code_point) => Literal::Character(*code_point),
            Token::String(text) => Literal::String(text.clone().into_bytes()),
            Token::Symbol(text) => Literal::Symbol(text.clone()),
            Token::Binary(sign) if sign == "-" => return Ok(self.negative_number()),
            Token::ArrayStart => {
                self.take();
                return self.nested(Self::array).map(Some);
            }
            Token::BytesStart => {
                self.take();
                return self.bytes().map(Some);
            }
            _ => return Ok(None),
        };
        self.take();
        Ok(Some(literal))
    }

    /// Parses a number after a minus sign; no blank may intervene.
    fn negative_number(&mut self) -> Option<Literal> {
        let literal = match self.peek_second()? {
            lexeme if !lexeme.adjacent => return None,
            lexeme => match &lexeme.token {
                Token::Integer(value) => Literal::Integer(-value),
                Token::Float(value) => Literal::Float(-value),
                _ => return None,
            },
        };
        self.take();
        self.take();
        Some(literal)
    }

    /// Parses elements of a literal array up to its end.
    fn array(&mut self) -> Result<Literal, SyntaxError> {
        let mut elements = Vec::new();
        while !self.accept(&Token::Mark(')')) {
            elements.push(self.element()?);
        }
        Ok(Literal::Array(elements))
    }

    fn element(&mut self) -> Result<Literal, SyntaxError> {
        if let Some(literal) = self.literal()? {
            return Ok(literal);
        }
        match self.peek() {
            Token::Mark('(') => {
                self.take();
                self.nested(Self::array)
            }
            Token::Mark('[') => {
                self.take();
                self.bytes()
            }
            Token::Identifier(_) | Token::Keyword(_) => {
                let mut symbol = self.take().to_string();
                while symbol.ends_with(':') && self.adjacent() {
                    match self.peek() {
                        Token::Identifier(part) | Token::Keyword(part) => symbol += part,
                        _ => break,
                    }
                    self.take();
                }
                Ok(Literal::Symbol(symbol))
            }
            Token::Binary(_) => Ok(Literal::Symbol(self.take().to_string())),
            _ => self.expected("a literal or )"),
        }
    }

    /// Parses elements of a byte array up to its end.
    fn bytes(&mut self) -> Result<Literal, SyntaxError> {
        let mut bytes = Vec::new();
        while !self.accept(&Token::Mark(']')) {
            match self.peek() {
                Token::Integer(value) => match u8::try_from(value) {
                    Ok(byte) => bytes.push(byte),
                    Err(_) => return self.expected("a byte"),
                },
                _ => return self.expected("a byte or ]"),
            }
            self.take();
        }
        Ok(Literal::Bytes(bytes))
    }
}
