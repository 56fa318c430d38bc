//! Text of bytecode listings, in one style for all VMs.

/// Maximum characters of a displayed string.
const MAX_SHOWN: usize = 60;

/// Maximum length of a line in characters.
const MAX_LINE: usize = 512;

/// Displayed string constant: quoted, escaped as in Java and JavaScript, cut short. `is_whole`:
/// whether `text` is not cut already.
#[must_use]
pub fn quoted(text: &str, is_whole: bool) -> String {
    let mut shown = String::from("\"");
    let mut characters = text.chars();
    for character in characters.by_ref().take(MAX_SHOWN) {
        match character {
            '"' => shown.push_str("\\\""),
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if c.is_control() || is_invisible(c) => {
                shown.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => shown.push(c),
        }
    }
    if characters.next().is_some() || !is_whole {
        shown.push('…');
    }
    shown.push('"');
    shown
}

/// Characters that move or reorder the text after them.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A listing's line, cut after 512 characters.
#[must_use]
pub fn shortened(mut line: String) -> String {
    if let Some((end, _)) = line.char_indices().nth(MAX_LINE) {
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_short_and_on_one_line() {
        assert_eq!(quoted("a\n\"b\"\\\u{7}", true), r#""a\n\"b\"\\\u0007""#);
        assert_eq!(quoted(&"x".repeat(61), true).chars().count(), 63);
        assert_eq!(quoted("x", false), "\"x…\"");
        assert_eq!(shortened("é".repeat(600)).chars().count(), 513);
    }
}
