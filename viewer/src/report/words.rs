//! Numbers and names as a report prints them.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands for what was cut off.
const DOTS: &str = "...";

/// So many marks may join one character.
const MAX_JOINED: usize = 4;

/// A count with a comma before every three digits, as VMProfiler prints bytes.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count of things, in the right number.
pub fn some(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A share as a percentage with two digits.
pub fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

/// `part` of `whole`; 0 when there is no whole.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(3_801_936), "3,801,936");
    }

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
}
