//! Named frames of a site in a stack: its function, and the functions that inlined it.

use crate::present::functions::{NAMELESS, name_of};
use crate::present::shorten::label;
use crate::present::text::harmless;
use std::borrow::Cow;
pub(super) use vmscope_symbolizer::stacks::{StackFrame as Frame, frames_of};
use vmscope_symbolizer::{Profile, Region};

/// Texts of a frame.
pub(super) trait FrameText {
    /// Name with begin and tier, safe for terminals.
    fn name(&self, profile: &Profile) -> String;

    /// Source file; empty if unknown.
    fn file(&self) -> String;

    /// Line, 1-based; 0 if unknown.
    fn line(&self) -> u32;
}

impl FrameText for Frame<'_> {
    fn name(&self, profile: &Profile) -> String {
        let begin = profile.begin_of(self.place);
        name_of(&self.place.name, begin.as_ref(), &self.entry.tier)
    }

    fn file(&self) -> String {
        harmless(&self.place.file)
    }

    fn line(&self) -> u32 {
        self.place.line.unwrap_or(0)
    }
}

/// Colors of a region: RGB of flame graphs, name in the Firefox Profiler (one has to be grey
/// there).
pub(super) fn colors(region: Region) -> ([u8; 3], &'static str) {
    match region {
        Region::Generated => ([0x5f, 0xc8, 0x55], "green"),
        Region::Interpreter => ([0x45, 0xc4, 0xb8], "lightblue"),
        Region::Gc => ([0xe8, 0x6a, 0x5c], "red"),
        Region::Compiler => ([0xb0, 0x84, 0xe0], "purple"),
        Region::Vm => ([0xe6, 0xc4, 0x4a], "yellow"),
        Region::Library => ([0x72, 0xa8, 0xe6], "blue"),
        Region::Kernel => ([0xee, 0x96, 0x4a], "orange"),
        Region::Idle => ([0xe8, 0xe8, 0xe8], "transparent"),
        Region::Unknown => ([0xb4, 0xb4, 0xb4], "grey"),
    }
}

/// Suffix of a frame's name by which flame graph tools distinguish kinds of code: async-profiler's,
/// known to inferno and others.
pub(crate) fn mark(region: Region, is_inlined: bool) -> &'static str {
    match region {
        Region::Kernel => "_[k]",
        _ if is_inlined => "_[i]",
        Region::Generated => "_[j]",
        _ => "",
    }
}

/// A name as one field of a line, at most `longest` characters long; no character ends the field, the
/// line or the name.
pub(crate) fn field(name: &str, longest: usize) -> Cow<'_, str> {
    let is_plain = |c: char| c != ';' && !(c.is_whitespace() && c != ' ') && !is_no_xml(c);
    let mut text = if name.chars().all(is_plain) {
        Cow::Borrowed(name.trim())
    } else {
        let clean = name.chars().map(|c| match c {
            // As in inferno and the FlameGraph scripts.
            ';' => ':',
            c if c.is_whitespace() => ' ',
            c if is_no_xml(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        });
        Cow::Owned(clean.collect::<String>().trim().to_owned())
    };
    if text.chars().nth(longest).is_some() {
        text = Cow::Owned(label(&text, "", longest));
    }
    // A number behind a blank would become a count.
    if let Some((head, tail)) = text.rsplit_once(' ')
        && tail.starts_with(|c: char| c.is_ascii_digit())
        && tail.chars().all(|c| c.is_ascii_digit() || c == '.')
    {
        text = Cow::Owned(format!("{head}_{tail}"));
    }
    // A leading `#` would become a comment.
    if text.starts_with('#') {
        text = Cow::Owned(format!("_{text}"));
    }
    if text.is_empty() {
        Cow::Borrowed(NAMELESS)
    } else {
        text
    }
}

/// Characters without representation in XML 1.0.
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
            ("abcdefghijklmnopqrstu", "abcdefghij...qrstu"),
        ] {
            assert_eq!(field(name, 18), wanted, "{name:?}");
        }
    }
}
