//! Methods and do-its: patterns and pragmas.

use super::SyntaxError;
use super::ast::{Method, MethodKind, Name};
use super::parser::Parser;
use super::scanner::Token;

impl Parser<'_> {
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

    fn pattern(&mut self) -> Result<(String, Vec<Name>), SyntaxError> {
        match self.peek().clone() {
            Token::Identifier(selector) => {
                self.take();
                Ok((selector, Vec::new()))
            }
            Token::Binary(selector) => {
                self.take();
                Ok((selector, vec![self.name()?]))
            }
            Token::Keyword(_) => {
                let mut selector = String::new();
                let mut arguments = Vec::new();
                while let Token::Keyword(part) = self.peek() {
                    selector += part;
                    self.take();
                    arguments.push(self.name()?);
                }
                Ok((selector, arguments))
            }
            _ => self.expected("a method's selector"),
        }
    }

    /// Parses `<primitive: 60>` and `<primitive: 60 error: code>`; skips other pragmas.
    fn pragmas(&mut self, method: &mut Method) -> Result<(), SyntaxError> {
        let end = Token::Binary(">".to_owned());
        while self.accept(&Token::Binary("<".to_owned())) {
            if self.accept(&Token::Keyword("primitive:".to_owned())) {
                method.primitive = match self.peek() {
                    // `callPrimitive` encodes the number in 13 bits.
                    Token::Integer(number) => match u16::try_from(number) {
                        Ok(number @ 1..0x2000) => usize::from(number),
                        _ => return self.expected("a primitive's number from 1 to 8191"),
                    },
                    _ => return self.expected("a primitive's number"),
                };
                self.take();
                if self.accept(&Token::Keyword("error:".to_owned())) {
                    method.temps.push(self.name()?);
                }
            } else {
                while !matches!(self.peek(), Token::End) && *self.peek() != end {
                    self.take();
                }
            }
            self.expect(&end)?;
        }
        Ok(())
    }
}
