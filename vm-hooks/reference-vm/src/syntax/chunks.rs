//! Chunk files: `!` ends a chunk; `!!` inside a chunk encodes one exclamation mark.

use super::ast::{Method, Position};
use super::definitions::{definition, methods_header};
use super::parser::Parser;
use super::scanner::{Token, scan};
use super::{DoItSource, Item, MethodSource, SyntaxError};

/// Parses a chunk file. `file`: name for errors and items.
///
/// # Errors
///
/// Reports the first syntax error.
pub fn parse_file(file: &str, text: &str) -> Result<Vec<Item>, SyntaxError> {
    let mut items = Vec::new();
    let mut header: Option<Header> = None;
    for chunk in Chunks::new(text) {
        if chunk.text.is_empty() {
            header = None;
            continue;
        }
        if let Some(header) = &header {
            items.push(Item::Method(header.method(file, chunk)?));
            continue;
        }
        let lexemes = scan(file, &chunk.text, chunk.start, 2)?;
        if lexemes.iter().all(|lexeme| lexeme.token == Token::End) {
            continue;
        }
        let ast = Parser::new(file, lexemes).do_it()?;
        if let Some((class, meta, category)) = methods_header(&ast) {
            header = Some(Header {
                class,
                meta,
                category,
            });
        } else if let Some(item) = definition(file, &ast)? {
            items.push(item);
        } else {
            items.push(Item::DoIt(DoItSource {
                file: file.to_owned(),
                line: chunk.start.line,
                source: chunk.text,
                ast,
            }));
        }
    }
    Ok(items)
}

/// Parses statements outside chunks: exclamation marks need no doubling.
///
/// # Errors
///
/// Reports the first syntax error.
pub fn parse_expression(file: &str, text: &str) -> Result<DoItSource, SyntaxError> {
    let start = Position { line: 1, column: 1 };
    let lexemes = scan(file, text, start, 1)?;
    Ok(DoItSource {
        file: file.to_owned(),
        line: 1,
        source: text.to_owned(),
        ast: Parser::new(file, lexemes).do_it()?,
    })
}

/// `Foo methodsFor: 'x'`
struct Header {
    class: String,
    meta: bool,
    category: String,
}

impl Header {
    fn method(&self, file: &str, chunk: Chunk) -> Result<MethodSource, SyntaxError> {
        let lexemes = scan(file, &chunk.text, chunk.start, 2)?;
        let ast: Method = Parser::new(file, lexemes).method()?;
        Ok(MethodSource {
            class: self.class.clone(),
            meta: self.meta,
            category: self.category.clone(),
            file: file.to_owned(),
            line: chunk.start.line,
            source: chunk.text,
            ast,
        })
    }
}

/// A chunk without leading blanks.
struct Chunk {
    text: String,
    start: Position,
}

struct Chunks<'a> {
    rest: &'a str,
    position: Position,
}

impl<'a> Chunks<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            position: Position { line: 1, column: 1 },
        }
    }

    fn next_character(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let c = characters.next()?;
        self.rest = characters.as_str();
        if c == '\n' {
            self.position.line = self.position.line.saturating_add(1);
            self.position.column = 1;
        } else {
            self.position.column = self.position.column.saturating_add(1);
        }
        Some(c)
    }
}

impl Iterator for Chunks<'_> {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        if self.rest.trim().is_empty() {
            return None;
        }
        let mut text = String::new();
        let mut start = self.position;
        while let Some(c) = self.next_character() {
            if c == '!' {
                if !self.rest.starts_with('!') {
                    break;
                }
                self.next_character();
            }
            if text.is_empty() && c.is_whitespace() {
                start = self.position;
            } else {
                text.push(c);
            }
        }
        Some(Chunk { text, start })
    }
}
