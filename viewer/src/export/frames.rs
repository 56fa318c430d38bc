//! What a site is in a stack: its function and those that it was inlined through, each
//! with a name for people.

use crate::present::text::harmless;
use std::borrow::Cow;
pub(super) use vmscope_symbolizer::stacks::{StackFrame as Frame, frames_of};
use vmscope_symbolizer::{Entry, Region};

/// What stands for a function without a name.
pub(crate) const NAMELESS: &str = "(no name)";

/// What formats say of a frame.
pub(super) trait FrameText {
    /// The function's name with its tier, as reports have it, and nothing in it that
    /// disturbs a terminal.
    fn name(&self) -> String;

    /// The source file; empty where it is not known.
    fn file(&self) -> String;

    /// The line, 1-based; 0 where it is not known.
    fn line(&self) -> u32;
}

impl FrameText for Frame<'_> {
    fn name(&self) -> String {
        name_of(&self.place.name, tier(self.entry))
    }

    fn file(&self) -> String {
        harmless(&self.place.file)
    }

    fn line(&self) -> u32 {
        self.place.line.unwrap_or(0)
    }
}

/// A function's name with its tier, and nothing in it that disturbs a terminal.
pub(crate) fn name_of(name: &str, tier: &str) -> String {
    let name = match harmless(name) {
        name if name.trim().is_empty() => NAMELESS.to_owned(),
        name => name,
    };
    match tier {
        "" => name,
        tier => format!("{name} ({})", harmless(tier)),
    }
}

/// Which compiler or level made the code; empty for native code.
pub(super) fn tier(entry: &Entry) -> &str {
    &entry.tier
}

/// Which part of its region an entry is of: what a format that has two levels of
/// categories shows as the second.
pub(super) fn part(entry: &Entry) -> &str {
    tier(entry)
}

/// The mark at the end of a frame's name by which flame graph tools tell kinds of code
/// apart (async-profiler's, which inferno and others know).
pub(crate) fn mark(region: Region, is_inlined: bool) -> &'static str {
    match region {
        Region::Kernel => "_[k]",
        _ if is_inlined => "_[i]",
        Region::Generated => "_[j]",
        _ => "",
    }
}

/// A name as one field of a line: nothing in it ends the field, the line or the name.
/// What it is a name of can't be told from others by more than `longest` characters.
pub(crate) fn field(name: &str, longest: usize) -> Cow<'_, str> {
    let is_plain = |c: char| c != ';' && !(c.is_whitespace() && c != ' ') && !is_no_xml(c);
    let mut text = if name.chars().all(is_plain) {
        Cow::Borrowed(name.trim())
    } else {
        let clean = name.chars().map(|c| match c {
            // As inferno and the FlameGraph scripts do it.
            ';' => ':',
            c if c.is_whitespace() => ' ',
            c if is_no_xml(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        });
        Cow::Owned(clean.collect::<String>().trim().to_owned())
    };
    if text.chars().nth(longest).is_some() {
        let head: String = text.chars().take(longest - longest / 3).collect();
        let tail = text.chars().rev().take(longest / 3).collect::<Vec<_>>();
        text = Cow::Owned(head + "..." + &tail.iter().rev().collect::<String>());
    }
    // A number behind a blank would be taken for a count.
    if let Some((head, tail)) = text.rsplit_once(' ')
        && tail.starts_with(|c: char| c.is_ascii_digit())
        && tail.chars().all(|c| c.is_ascii_digit() || c == '.')
    {
        text = Cow::Owned(format!("{head}_{tail}"));
    }
    // A line that begins with it would be taken for a comment.
    if text.starts_with('#') {
        text = Cow::Owned(format!("_{text}"));
    }
    if text.is_empty() {
        Cow::Borrowed(NAMELESS)
    } else {
        text
    }
}

/// Characters that XML 1.0 has no way to write.
fn is_no_xml(c: char) -> bool {
    (c.is_control() && !c.is_whitespace()) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn a_field_ends_where_its_name_ends() {
        for (name, wanted) in [
            ("plain(int, char)", "plain(int, char)"),
            ("a;b", "a:b"),
            ("a\nb\tc\u{2028}d", "a b c d"),
            ("a\u{1b}b\u{ffff}", "a\u{fffd}b\u{fffd}"),
            ("  a ", "a"),
            ("", "(no name)"),
            ("\n", "(no name)"),
            ("count 12", "count_12"),
            ("1.5 2.5", "1.5_2.5"),
            ("v8 11.x", "v8 11.x"),
            ("# comment", "_# comment"),
            ("abcdefghijklmnopqrstu", "abcdefghijkl...pqrstu"),
        ] {
            assert_eq!(field(name, 18), wanted, "{name:?}");
        }
    }
}
