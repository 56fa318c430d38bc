//! Text in the room there is, and nothing in it that disturbs a terminal: whatever comes from a
//! recording goes through here before it is shown.

use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Stands for what was cut off.
const DOTS: &str = "...";

/// So many marks may join one character.
const MAX_JOINED: usize = 4;

/// A name that can't disturb the terminal: control characters, those that change the
/// direction or the joining of text or can't be seen, a mark at the beginning that would
/// join what stands before it, and marks that are more in a row than a script needs, are
/// written as escapes. A name is whatever the target says
/// it is.
pub fn harmless(name: &str) -> String {
    let is_harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    let joins = |c: char| !c.is_control() && c.width() == Some(0);
    // At the beginning there is nothing of the name's own to join.
    let mut joined = MAX_JOINED;
    let mut is_odd = |c: char| {
        joined = if joins(c) { joined + 1 } else { 0 };
        joined > MAX_JOINED || is_harmful(c)
    };
    if name.is_ascii() && !name.contains(is_harmful) {
        return name.to_owned();
    }
    let mut clean = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        if is_odd(c) {
            clean.extend(c.escape_default());
        } else {
            clean.push(c);
        }
    }
    clean
}

/// A name in exactly `columns`: padded, or shortened in the middle, where names of
/// one family differ least.
pub fn fit(name: &str, columns: usize) -> String {
    let name = harmless(name);
    let width = name.width();
    if width <= columns {
        return format!("{name}{}", " ".repeat(columns - width));
    }
    if columns <= DOTS.len() {
        let head = take_columns(name.chars(), columns);
        return format!("{head}{}", " ".repeat(columns - head.width()));
    }
    let keep = columns - DOTS.len();
    let tail = keep / 3;
    let head = take_columns(name.chars(), keep - tail);
    let end: String = take_columns(name.chars().rev(), tail)
        .chars()
        .rev()
        .collect();
    let short = format!("{head}{DOTS}{end}");
    let pad = columns.saturating_sub(short.width());
    format!("{short}{}", " ".repeat(pad))
}

/// Text in at most `columns`, cut off at its end.
pub fn cut(text: &str, columns: usize) -> String {
    let text = harmless(text);
    if text.width() <= columns {
        return text;
    }
    if columns <= DOTS.len() {
        return take_columns(text.chars(), columns);
    }
    let head = take_columns(text.chars(), columns - DOTS.len());
    format!("{head}{DOTS}")
}

fn take_columns(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    let fits = chars.take_while(|c| {
        let width = c.width().unwrap_or(0);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    });
    fits.collect()
}

/// Text in lines of at most `columns`, each after the first indented by `indent`. A word
/// that is longer than a line (a path) is broken.
pub fn wrap(text: &str, columns: usize, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let options = textwrap::Options::new(columns).subsequent_indent(&margin);
    textwrap::fill(&harmless(text), options)
}

/// A name in exactly so many columns, shortened in the middle.
pub fn name(text: &str, columns: usize) -> String {
    fit(bounded(text).as_ref(), columns)
}

/// A text in at most so many columns, cut off at its end.
pub fn line(text: &str, columns: usize) -> String {
    cut(bounded(text).as_ref(), columns)
}

/// A text in exactly so many columns, flush right; cut off where it is longer.
pub fn right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let blanks = columns.saturating_sub(text.width());
    format!("{}{text}", " ".repeat(blanks))
}

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    harmless(text).width()
}

/// More of a name than this never fits a screen: what is behind it need not be looked at
/// at every stroke.
const ENOUGH: usize = 4096;

fn bounded(text: &str) -> Cow<'_, str> {
    if text.len() <= ENOUGH {
        return Cow::Borrowed(text);
    }
    let half = ENOUGH / 2;
    let head: String = text.chars().take(half).collect();
    let tail: Vec<char> = text.chars().rev().take(half).collect();
    Cow::Owned(head + &tail.into_iter().rev().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_in_the_middle_and_padded() {
        assert_eq!(
            fit(
                "SequenceableCollection>>replaceFrom:to:with:startingAt:",
                20
            )
            .width(),
            20
        );
        assert_eq!(fit("abc", 5), "abc  ");
        assert_eq!(fit("abcdefghij", 7), "abc...j");
        for columns in 0..5 {
            assert_eq!(fit("abcdefghij", columns).width(), columns);
            assert!(cut("abcdefghij", columns).width() <= columns);
        }
        assert_eq!(fit("漢字漢字漢字", 8).width(), 8);
    }

    #[test]
    fn names_cannot_send_escape_sequences() {
        assert_eq!(harmless("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(harmless("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(harmless("a\tb\u{ad}c"), "a\\tb\\u{ad}c");
        assert_eq!(harmless("\u{301}a\u{301}"), "\\u{301}a\u{301}");
        assert_eq!(harmless("naïve"), "naïve");
        let marks = |count: usize| "\u{301}".repeat(count);
        let four = format!("a{}b{}", marks(4), marks(4));
        assert_eq!(harmless(&four), four);
        let six = format!("a{}b", marks(6));
        let escaped = format!("a{}\\u{{301}}\\u{{301}}b", marks(4));
        assert_eq!(harmless(&six), escaped);
        assert_eq!(harmless("\u{301}\u{301}a"), "\\u{301}\\u{301}a");
    }

    #[test]
    fn text_is_cut_at_its_end() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcdefgh", 6), "abc...");
        assert_eq!(cut("漢字漢字", 6), "漢...");
    }

    #[test]
    fn text_is_wrapped() {
        assert_eq!(wrap("one two three", 8, 2), "one two\n  three");
    }

    #[test]
    fn names_of_any_length_fit() {
        let long = "漢".repeat(10_000) + "end";
        let short = name(&long, 21);
        assert_eq!(short.width(), 21);
        assert!(short.trim_end().ends_with("end"), "{short}");
        assert_eq!(right("12", 5), "   12");
        assert_eq!(right("123456", 5), "12...");
    }
}
