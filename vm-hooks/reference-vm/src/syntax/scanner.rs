//! Scans characters into tokens.

use super::SyntaxError;
use super::ast::Position;
use num_bigint::BigInt;
use std::fmt;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Identifier(String),
    /// Includes the colon.
    Keyword(String),
    /// A run of binary characters.
    Binary(String),
    Integer(BigInt),
    Float(f64),
    Character(u32),
    String(String),
    Symbol(String),
    /// `:=`
    Assign,
    /// `#(`
    ArrayStart,
    /// `#[`
    BytesStart,
    /// One of `( ) [ ] { } . ; ^ :`
    Mark(char),
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identifier(text) | Self::Keyword(text) | Self::Binary(text) => f.write_str(text),
            Self::Integer(_) | Self::Float(_) => f.write_str("a number"),
            Self::Character(_) => f.write_str("a character"),
            Self::String(_) => f.write_str("a string"),
            Self::Symbol(text) => write!(f, "#{text}"),
            Self::Assign => f.write_str(":="),
            Self::ArrayStart => f.write_str("#("),
            Self::BytesStart => f.write_str("#["),
            Self::Mark(mark) => write!(f, "{mark}"),
            Self::End => f.write_str("the end of the text"),
        }
    }
}

/// A token with its position.
#[derive(Clone, Debug)]
pub struct Lexeme {
    pub token: Token,
    pub position: Position,
    /// Whether the token directly follows the previous token.
    pub adjacent: bool,
}

/// Scans `text`; `start` gives its position in the file. The last lexeme is `Token::End`.
///
/// `mark_width`: width of an exclamation mark in the file, 2 in chunks.
pub fn scan(
    file: &str,
    text: &str,
    start: Position,
    mark_width: u32,
) -> Result<Vec<Lexeme>, SyntaxError> {
    let mut scanner = Scanner {
        file,
        rest: text,
        position: start,
        mark_width,
    };
    let mut lexemes = Vec::new();
    loop {
        let adjacent = !scanner.skip_blanks()?;
        let position = scanner.position;
        let token = scanner.token()?;
        let end = token == Token::End;
        lexemes.push(Lexeme {
            token,
            position,
            adjacent,
        });
        if end {
            return Ok(lexemes);
        }
    }
}

/// Largest exponent of a literal. Bounds the cost: the scanner computes numbers.
const MAX_EXPONENT: u32 = 10_000;

struct Scanner<'a> {
    file: &'a str,
    rest: &'a str,
    position: Position,
    mark_width: u32,
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_letter_or_digit(c: char) -> bool {
    is_letter(c) || c.is_ascii_digit()
}

fn is_binary(c: char) -> bool {
    "+-*/\\~<>=@%|&?,!".contains(c)
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn peek_second(&self) -> Option<char> {
        self.rest.chars().nth(1)
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let c = characters.next()?;
        self.rest = characters.as_str();
        match c {
            '\n' => {
                self.position.line = self.position.line.saturating_add(1);
                self.position.column = 1;
            }
            _ => {
                let width = if c == '!' { self.mark_width } else { 1 };
                self.position.column = self.position.column.saturating_add(width);
            }
        }
        Some(c)
    }

    fn take_while(&mut self, mut wanted: impl FnMut(char) -> bool) -> &'a str {
        let before = self.rest;
        while self.peek().is_some_and(&mut wanted) {
            self.next();
        }
        &before[..before.len() - self.rest.len()]
    }

    fn error<T>(&self, position: Position, message: String) -> Result<T, SyntaxError> {
        Err(SyntaxError::new(self.file, position, message))
    }

    /// Skips white space and comments. Returns whether any were present.
    fn skip_blanks(&mut self) -> Result<bool, SyntaxError> {
        let before = self.rest.len();
        loop {
            self.take_while(char::is_whitespace);
            if self.peek() != Some('"') {
                return Ok(self.rest.len() != before);
            }
            let start = self.position;
            self.next();
            self.take_while(|c| c != '"');
            if self.next().is_none() {
                return self.error(
                    start,
                    "expected the end of this comment, found the end of the text".to_owned(),
                );
            }
        }
    }

    fn token(&mut self) -> Result<Token, SyntaxError> {
        let position = self.position;
        let Some(c) = self.peek() else {
            return Ok(Token::End);
        };
        if is_letter(c) {
            return Ok(self.word());
        }
        if c.is_ascii_digit() {
            return self.number();
        }
        if is_binary(c) {
            return Ok(Token::Binary(self.binary()));
        }
        match c {
            '\'' => Ok(Token::String(self.string()?)),
            '#' => self.hash(),
            '$' => {
                self.next();
                match self.next() {
                    Some(c) => Ok(Token::Character(u32::from(c))),
                    None => self.error(
                        position,
                        "expected a character after $, found the end of the text".to_owned(),
                    ),
                }
            }
            ':' if self.peek_second() == Some('=') => {
                self.next();
                self.next();
                Ok(Token::Assign)
            }
            '(' | ')' | '[' | ']' | '{' | '}' | '.' | ';' | '^' | ':' => {
                self.next();
                Ok(Token::Mark(c))
            }
            _ => self.error(position, format!("expected Smalltalk, found {c:?}")),
        }
    }

    /// An identifier or a keyword.
    fn word(&mut self) -> Token {
        let name = self.take_while(is_letter_or_digit).to_owned();
        if self.at_keyword_colon() {
            self.next();
            return Token::Keyword(name + ":");
        }
        Token::Identifier(name)
    }

    fn at_keyword_colon(&self) -> bool {
        self.peek() == Some(':') && self.peek_second() != Some('=')
    }

    /// Scans binary characters. A number's minus sign ends the run.
    fn binary(&mut self) -> String {
        let mut run = String::new();
        while let Some(c) = self.peek().filter(|c| is_binary(*c)) {
            let digit_follows = self.peek_second().is_some_and(|c| c.is_ascii_digit());
            if c == '-' && digit_follows && !run.is_empty() {
                break;
            }
            run.push(c);
            self.next();
        }
        run
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        let start = self.position;
        self.next();
        let mut text = String::new();
        loop {
            text += self.take_while(|c| c != '\'');
            if self.next().is_none() {
                return self.error(
                    start,
                    "expected the end of this string, found the end of the text".to_owned(),
                );
            }
            if self.peek() != Some('\'') {
                return Ok(text);
            }
            self.next();
            text.push('\'');
        }
    }

    fn hash(&mut self) -> Result<Token, SyntaxError> {
        let start = self.position;
        self.next();
        match self.peek() {
            Some('(') => {
                self.next();
                Ok(Token::ArrayStart)
            }
            Some('[') => {
                self.next();
                Ok(Token::BytesStart)
            }
            Some('\'') => Ok(Token::Symbol(self.string()?)),
            Some(c) if is_letter(c) => {
                let mut name = String::new();
                loop {
                    name += self.take_while(is_letter_or_digit);
                    if !self.at_keyword_colon() {
                        return Ok(Token::Symbol(name));
                    }
                    self.next();
                    name.push(':');
                }
            }
            Some(c) if is_binary(c) => Ok(Token::Symbol(self.binary())),
            _ => self.error(
                start,
                "expected a symbol or a literal array, found #".to_owned(),
            ),
        }
    }

    fn number(&mut self) -> Result<Token, SyntaxError> {
        let start = self.position;
        let digits = self.take_while(|c| c.is_ascii_digit());
        let token = match (self.peek(), self.peek_second()) {
            (Some('r'), _) => {
                self.next();
                self.radix_digits(start, digits)?
            }
            (Some('.'), Some('0'..='9')) => {
                self.next();
                let fraction = self.take_while(|c| c.is_ascii_digit());
                let exponent = self.exponent()?.unwrap_or(0);
                match format!("{digits}.{fraction}e{exponent}").parse() {
                    Ok(value) => Token::Float(value),
                    Err(_) => return self.error(start, "expected a float".to_owned()),
                }
            }
            _ => {
                let value = digits.parse().unwrap_or_default();
                let exponent_position = self.position;
                let Ok(exponent) = u32::try_from(self.exponent()?.unwrap_or(0)) else {
                    return self.error(
                        exponent_position,
                        "expected a positive exponent of an integer".to_owned(),
                    );
                };
                Token::Integer(
                    BigInt::from(10).pow(exponent)
                        * BigInt::from_biguint(num_bigint::Sign::Plus, value),
                )
            }
        };
        match self.peek() {
            Some(c) if is_letter(c) => self.error(
                self.position,
                format!("expected a blank after a number, found {c}"),
            ),
            _ => Ok(token),
        }
    }

    fn radix_digits(&mut self, start: Position, radix: &str) -> Result<Token, SyntaxError> {
        let Some(radix) = radix.parse().ok().filter(|radix| (2..=36).contains(radix)) else {
            return self.error(start, "expected a radix from 2 to 36".to_owned());
        };
        let position = self.position;
        let digits = self.take_while(|c| !c.is_ascii_lowercase() && c.is_digit(radix));
        match BigInt::parse_bytes(digits.as_bytes(), radix) {
            Some(value) => Ok(Token::Integer(value)),
            None => self.error(position, format!("expected digits of radix {radix}")),
        }
    }

    /// Scans a number's optional exponent.
    fn exponent(&mut self) -> Result<Option<i32>, SyntaxError> {
        let mut ahead = self.rest.chars();
        if ahead.next() != Some('e') {
            return Ok(None);
        }
        let first = ahead.next();
        let negative = first == Some('-');
        let digit = if negative { ahead.next() } else { first };
        if !digit.is_some_and(|c| c.is_ascii_digit()) {
            return Ok(None);
        }
        let position = self.position;
        self.next();
        if negative {
            self.next();
        }
        let digits = self.take_while(|c| c.is_ascii_digit());
        match digits.parse::<u32>() {
            Ok(value) if value <= MAX_EXPONENT => {
                let value = value.cast_signed();
                Ok(Some(if negative { -value } else { value }))
            }
            _ => self.error(
                position,
                format!("expected an exponent of at most {MAX_EXPONENT}"),
            ),
        }
    }
}
