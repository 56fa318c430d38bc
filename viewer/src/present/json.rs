//! JSON that a terminal may show: control, invisible and text-reversing characters of strings are
//! written as `\u` escapes. Readers of the JSON get the recorded characters.

#![expect(clippy::disallowed_methods, reason = "their output is escaped here")]

use super::text::is_harmful;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::fmt::Write as _;
use std::io::{self, Write};

/// JSON in many lines, newline-terminated.
///
/// # Errors
/// A value that JSON can't represent.
pub fn pretty(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(escaped(&serde_json::to_string_pretty(value)?) + "\n")
}

/// Writes JSON in one line.
///
/// # Errors
/// A failed write, a value that JSON can't represent.
pub fn write(out: &mut dyn Write, value: &impl Serialize) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Escaping))
}

struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        out.write_all(escaped(text).as_bytes())
    }
}

/// JSON with escapes for harmful characters, which JSON has in strings only. Newlines are layout:
/// `serde_json` has escaped those of strings.
fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if c == '\n' || !is_harmful(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string can't fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_hold_escapes_and_mean_the_same() {
        let name = "a\u{1b}]0;t\u{7}\u{7f}\u{9b}\n\u{202e}\u{e0041}\"é漢";
        let value = serde_json::json!({ name: [name, 1] });
        let mut line = Vec::new();
        write(&mut line, &value).unwrap();
        let line = String::from_utf8(line).unwrap();
        for text in [pretty(&value).unwrap(), line] {
            assert!(!text.contains(|c| c != '\n' && is_harmful(c)), "{text:?}");
            assert!(text.contains(r"\u007f\u009b\n\u202e\udb40\udc41"), "{text}");
            assert!(text.contains("é漢"), "{text}");
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&text).unwrap(),
                value
            );
        }
    }
}
