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

/// A number of bytes in at most three digits with its unit: `1.5 MiB`.
pub fn bytes(bytes: u64) -> String {
    let (value, unit) = scaled(bytes);
    match unit {
        "" => format!("{value} B"),
        unit => format!("{value} {unit}iB"),
    }
}

/// The same in at most five columns: `1.5M`.
pub fn bytes_short(bytes: u64) -> String {
    let (value, unit) = scaled(bytes);
    format!("{value}{unit}")
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn scaled(bytes: u64) -> (String, &'static str) {
    let mut value = bytes as f64;
    let mut unit = "";
    for next in ["K", "M", "G", "T", "P", "E"] {
        // What would be rounded to 1024 is one of the next unit.
        if value < 1023.5 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    (three_digits(value), unit)
}

/// A time in at most three digits with its unit: `1.5 ms`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn brief(ns: u64) -> String {
    let mut value = ns as f64;
    let mut unit = "ns";
    for next in ["us", "ms", "s"] {
        if value < 999.5 {
            break;
        }
        (value, unit) = (value / 1000.0, next);
    }
    format!("{} {unit}", three_digits(value))
}

/// A number that is not negative in three digits, or as many as its whole part has; without
/// zeros at its end.
fn three_digits(value: f64) -> String {
    let digits = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => text,
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
    fn bytes_and_times_have_three_digits_of_the_unit_that_fits() {
        for (number, text, short) in [
            (0, "0 B", "0"),
            (1_023, "1023 B", "1023"),
            (1_024, "1 KiB", "1K"),
            (1_536, "1.5 KiB", "1.5K"),
            (10_752, "10.5 KiB", "10.5K"),
            (1_048_064, "1 MiB", "1M"),
            (1_258_291, "1.2 MiB", "1.2M"),
            (327_155_712, "312 MiB", "312M"),
            (u64::MAX, "16 EiB", "16E"),
        ] {
            assert_eq!(
                (bytes(number).as_str(), bytes_short(number).as_str()),
                (text, short)
            );
        }
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1 us"),
            (999_499, "999 us"),
            (999_500, "1 ms"),
            (12_340_000, "12.3 ms"),
            (1_234_000_000, "1.23 s"),
            (12_345_000_000_000, "12345 s"),
        ] {
            assert_eq!(brief(ns), text);
        }
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
