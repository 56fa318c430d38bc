//! Text in limited space, safe for terminals: all recorded text passes through here before display.

use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Mark of omitted text.
const DOTS: &str = "...";

/// Maximum number of combining marks per character.
const MAX_JOINED: usize = 4;

/// Whether a character is a control character, is invisible, or changes direction or joining.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A name safe for the terminal; the target chooses its names. Escapes [harmful](is_harmful)
/// characters, leading combining marks, and more combining marks in a row than a script needs.
pub fn harmless(name: &str) -> String {
    let joins = |c: char| !c.is_control() && c.width() == Some(0);
    // A leading mark has no character of the name to join.
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

/// A name in exactly `columns`: padded, or shortened in the middle, where related names differ
/// least.
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

/// Text in at most `columns`, cut after a word, with an ellipsis. A first word that is too long is
/// cut itself.
pub fn cut_at_word(text: &str, columns: usize) -> String {
    let short = cut(text, columns);
    let head = short.strip_suffix(DOTS).filter(|_| short != harmless(text));
    let words = head.and_then(|head| head.get(..head.rfind(' ')?));
    match words {
        Some(words) => format!("{words} {DOTS}"),
        None => short,
    }
}

/// Text in at most `columns`, cut off without an ellipsis, which wastes narrow columns.
pub fn start(text: &str, columns: usize) -> String {
    take_columns(harmless(&bounded(text)).chars(), columns)
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

/// Text in lines of at most `columns`, all but the first indented by `indent`. Breaks words (paths)
/// longer than a line.
pub fn wrap(text: &str, columns: usize, indent: usize) -> String {
    let margin = " ".repeat(indent);
    let options = textwrap::Options::new(columns).subsequent_indent(&margin);
    textwrap::fill(&harmless(text), options)
}

/// A name in exactly `columns`, shortened in the middle.
pub fn name(text: &str, columns: usize) -> String {
    fit(bounded(text).as_ref(), columns)
}

/// Text in at most `columns`, cut off at its end.
pub fn line(text: &str, columns: usize) -> String {
    cut(bounded(text).as_ref(), columns)
}

/// Text in exactly `columns`, flush right, cut off at its end; a number too long is rounded.
pub fn right(text: &str, columns: usize) -> String {
    let text = match text.width() > columns {
        true => rounded(text, columns).unwrap_or_else(|| cut(text, columns)),
        false => harmless(text),
    };
    let blanks = columns.saturating_sub(text.width());
    format!("{}{text}", " ".repeat(blanks))
}

/// A count in millions, thousand millions …, with as many decimals as fit: `1.006M`.
fn rounded(count: &str, columns: usize) -> Option<String> {
    let digits = count.replace(',', "");
    // Else the text is no count.
    let count: u64 = digits.parse().ok()?;
    let units = ["k", "M", "G", "T", "P", "E"];
    let fitting = units.into_iter().zip(1u32..).flat_map(|(unit, power)| {
        let whole = 10u64.pow(3 * power);
        (0..=3).rev().filter_map(move |decimals: u32| {
            let step = whole / 10u64.pow(decimals);
            let steps = count / step + u64::from(count % step >= step.div_ceil(2));
            let (above, below) = (steps / 10u64.pow(decimals), steps % 10u64.pow(decimals));
            let width = decimals as usize;
            let text = match decimals {
                0 => format!("{above}{unit}"),
                _ => format!("{above}.{below:0width$}{unit}"),
            };
            (above < 1000).then_some(text)
        })
    });
    let mut fitting = fitting.filter(|text| text.len() <= columns);
    fitting.next()
}

/// Columns of a text.
pub fn width(text: &str) -> usize {
    harmless(text).width()
}

/// Names longer than any screen; bounds the work per keystroke.
const ENOUGH: usize = 4096;

pub(super) fn bounded(text: &str) -> Cow<'_, str> {
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
        assert_eq!(right("abcdef", 5), "ab...");
    }

    #[test]
    fn numbers_are_never_cut() {
        for (count, columns, wanted) in [
            ("123456", 5, " 123k"),
            ("1,006,123", 8, "1.006M"),
            ("1,006,123", 9, "1,006,123"),
            ("1,006,123", 4, "1.0M"),
            ("999,999", 5, "1.00M"),
            ("999,999", 4, "1.0M"),
            ("18,446,744,073,709,551,615", 10, "18.447E"),
        ] {
            let text = right(count, columns);
            assert_eq!(text.trim(), wanted.trim(), "{count} in {columns}");
            assert_eq!(text.width(), columns);
        }
    }
}
