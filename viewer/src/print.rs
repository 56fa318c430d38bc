//! The only code that writes to standard output and standard error. Processes choose their names,
//! paths and arguments; no character of these may act on the terminal, whatever a message's
//! source.

#![expect(clippy::disallowed_methods, reason = "all others print through here")]

use crate::present::json;
use crate::present::numbers::count;
use crate::present::text::harmless;
use anstream::AutoStream;
use clap::ColorChoice;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// Writes `vmscope: text` on stderr, apart from the data: one line, whatever the names in it hold.
pub fn say(text: &str) {
    // Stderr may be closed.
    let _ = writeln!(io::stderr(), "vmscope: {}", harmless(text));
}

/// An error with a list: a line for each item.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ListError {
    pub message: String,
    pub list: Vec<String>,
}

/// Maximum number of items in an error.
const MAX_ITEMS: usize = 10;

impl ListError {
    /// An error with the first names of a list, each with its samples.
    pub fn of_names(message: String, [samples, name]: [&str; 2], all: &[(u64, &str)]) -> Self {
        let mut list = vec![format!("{samples:>11}  {name}")];
        let shown = all.iter().take(MAX_ITEMS);
        list.extend(shown.map(|(samples, name)| format!("{:>11}  {name}", count(*samples))));
        if all.len() > MAX_ITEMS {
            let more = count((all.len() - MAX_ITEMS) as u64);
            list.push(format!("{:>11}  ({more} more)", "..."));
        }
        ListError { message, list }
    }
}

/// Writes an error with its causes on stderr.
pub fn say_error(error: &anyhow::Error) {
    say(&format!("{error:#}"));
    let list = error.downcast_ref::<ListError>();
    for line in list.map_or(&[][..], |error| &error.list) {
        let _ = writeln!(io::stderr(), "{}", harmless(line));
    }
}

/// Replaces the current line of a terminal on stderr.
pub fn replace_line(text: &str) {
    let _ = write!(io::stderr(), "\r\x1b[K{}", harmless(text));
}

/// Buffered standard output, for a [`Printer`].
pub fn stdout() -> impl Write {
    io::BufWriter::new(io::stdout().lock())
}

/// Standard output for the embedded VM's program: its bytes as they are.
pub fn program_output() -> Box<dyn Write> {
    Box::new(io::BufWriter::new(io::stdout()))
}

/// Standard error for the embedded VM's program.
pub fn program_errors() -> Box<dyn Write> {
    Box::new(io::stderr())
}

pub fn is_stdout_terminal() -> bool {
    io::stdout().is_terminal()
}

pub fn is_stderr_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Standard output, or a replacement.
pub struct Printer<'a>(&'a mut dyn Write);

impl<'a> Printer<'a> {
    pub fn new(out: &'a mut dyn Write) -> Self {
        Printer(out)
    }

    /// Writes lines without styles.
    ///
    /// # Errors
    /// A failed write.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(harmless_lines(text, false).as_bytes())
    }

    /// Writes lines with their styles, or without where the terminal or the user wants none.
    ///
    /// # Errors
    /// A failed write.
    pub fn styled(&mut self, text: &str, color: ColorChoice) -> io::Result<()> {
        let text = harmless_lines(text, true);
        let is_styled = match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never,
        };
        match is_styled {
            true => self.0.write_all(text.as_bytes()),
            false => write!(self.0, "{}", anstream::adapter::strip_str(&text)),
        }
    }

    /// Writes JSON.
    ///
    /// # Errors
    /// A failed write.
    pub fn json(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        Ok(self.0.write_all(json::pretty(value)?.as_bytes())?)
    }

    /// Writes JSON of any size, in one line.
    ///
    /// # Errors
    /// A failed write.
    pub fn json_line(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        json::write(self.0, value)?;
        Ok(self.0.write_all(b"\n")?)
    }

    /// For data in a format with rules of its own, and for text that another printer wrote.
    pub fn data(&mut self) -> &mut dyn Write {
        self.0
    }
}

/// Lines in which only newlines and, `with_styles`, colours and weights (ECMA-48 SGR) act on the
/// terminal.
fn harmless_lines(text: &str, with_styles: bool) -> String {
    let mut lines = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let mut rest = line;
        while let Some((before, style, after)) = split_at_style(rest).filter(|_| with_styles) {
            lines.push_str(&harmless(before));
            lines.push_str(style);
            rest = after;
        }
        lines.push_str(&harmless(rest));
        lines.push_str(end);
    }
    lines
}

/// The text before the first style, the style, and the text behind it.
fn split_at_style(text: &str) -> Option<(&str, &str, &str)> {
    for (at, begin) in text.match_indices("\x1b[") {
        let (before, from) = text.split_at(at);
        let parameters = from.get(begin.len()..)?;
        let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';');
        if let Some(end) = end.filter(|end| parameters[*end..].starts_with('m')) {
            let (style, after) = from.split_at(begin.len() + end + 1);
            return Some((before, style, after));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(print: impl FnOnce(&mut Printer<'_>) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        print(&mut Printer::new(&mut bytes)).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_a_section_forgets_to_escape_is_escaped_here() {
        let text = "a\u{1b}]0;title\u{7}\n\u{9b}2J\u{202e}\r\n\u{1b}[2Jb\n";
        let escaped = "a\\u{1b}]0;title\\u{7}\n\\u{9b}2J\\u{202e}\\r\n\\u{1b}[2Jb\n";
        assert_eq!(printed(|out| out.text(text)), escaped);
        assert_eq!(
            printed(|out| out.styled(text, ColorChoice::Always)),
            escaped
        );
        assert_eq!(printed(|out| out.styled(text, ColorChoice::Never)), escaped);
    }

    #[test]
    fn only_styled_text_keeps_styles() {
        let text = "\u{1b}[1m\u{1b}[32ma\u{1b}[0m b\n";
        assert_eq!(printed(|out| out.styled(text, ColorChoice::Always)), text);
        assert_eq!(printed(|out| out.styled(text, ColorChoice::Never)), "a b\n");
        let plain = printed(|out| out.text(text));
        assert!(!plain.contains('\u{1b}'), "{plain}");
    }
}
