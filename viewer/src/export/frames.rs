//! What a site is in a stack: its function and those that it was inlined through, each
//! with a name for people.

use crate::report::words::harmless;
use std::borrow::Cow;
use vmscope_symbolizer::profile::{self, Site};
use vmscope_symbolizer::{Entry, Profile, Region, SiteId};

/// What stands for a function without a name.
const NAMELESS: &str = "(no name)";

/// A function of a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// The entry of the report that its site belongs to.
    pub entry: &'a Entry,
    /// The place.
    pub place: &'a profile::Frame,
    /// 0 for the function that the machine code was made for, 1 for what was inlined
    /// into that, and so on.
    pub inline_depth: u32,
}

impl Frame<'_> {
    /// Whether it was inlined into the frame before it.
    pub(super) fn is_inlined(&self) -> bool {
        self.inline_depth > 0
    }

    /// The function's name with its tier, as reports have it, and nothing in it that
    /// disturbs a terminal.
    pub(super) fn name(&self) -> String {
        let name = match harmless(&self.place.name) {
            name if name.trim().is_empty() => NAMELESS.to_owned(),
            name => name,
        };
        match tier(self.entry) {
            "" => name,
            tier => format!("{name} ({})", harmless(tier)),
        }
    }

    /// The source file; empty where it is not known.
    pub(super) fn file(&self) -> String {
        harmless(&self.place.file)
    }

    /// The line, 1-based; 0 where it is not known.
    pub(super) fn line(&self) -> u32 {
        self.place.line.unwrap_or(0)
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

/// The frames of a site, the outermost first; without those that were inlined unless
/// `inlined`.
pub(super) fn frames_of(
    profile: &Profile,
    site: SiteId,
    inlined: bool,
) -> impl Iterator<Item = Frame<'_>> {
    let found = profile.sites.get(site as usize).and_then(|site| {
        let entry = profile.entries.get(site.entry as usize)?;
        Some((site, entry))
    });
    let places = found.into_iter().flat_map(|(site, entry)| {
        let places = places_of(site).zip(0..);
        places.map(move |(place, inline_depth)| Frame {
            entry,
            place,
            inline_depth,
        })
    });
    places.take(if inlined { usize::MAX } else { 1 })
}

fn places_of(site: &Site) -> impl Iterator<Item = &profile::Frame> {
    site.via.iter().rev().chain([&site.frame])
}

/// The mark at the end of a frame's name by which flame graph tools tell kinds of code
/// apart (async-profiler's, which inferno and others know).
pub(super) fn mark(frame: &Frame<'_>) -> &'static str {
    match frame.entry.region {
        Region::Kernel => "_[k]",
        _ if frame.is_inlined() => "_[i]",
        Region::Generated => "_[j]",
        _ => "",
    }
}

/// What a region is called in a legend.
pub(super) fn region_name(region: Region, native: bool) -> &'static str {
    match region {
        Region::Generated => "Generated code",
        Region::Interpreter => "Interpreter",
        Region::Gc => "Garbage collector",
        Region::Compiler => "Compiler",
        Region::Vm if native => "Program",
        Region::Vm => "VM",
        Region::Library => "Libraries",
        Region::Kernel => "Kernel",
        Region::Idle => "Not running",
        Region::Unknown => "Unknown",
    }
}

/// A name as one field of a line: nothing in it ends the field, the line or the name.
/// What it is a name of can't be told from others by more than `longest` characters.
pub(super) fn field(name: &str, longest: usize) -> Cow<'_, str> {
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
