//! Text in the room there is: everything that comes from a recording goes through here
//! before it is drawn.

use crate::report::words::{cut, fit, harmless};
use std::borrow::Cow;
use unicode_width::UnicodeWidthStr;

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
    fn names_of_any_length_fit() {
        let long = "漢".repeat(10_000) + "end";
        let short = name(&long, 21);
        assert_eq!(short.width(), 21);
        assert!(short.trim_end().ends_with("end"), "{short}");
        assert_eq!(right("12", 5), "   12");
        assert_eq!(right("123456", 5), "12...");
    }
}
