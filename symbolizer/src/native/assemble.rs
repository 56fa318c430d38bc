//! Joins the results of all hits to functions without overlaps.

use vmscope_records::{FileOffset, NativeFunction, NativeLines, SymbolSource};

use super::demangle::demangle;
use super::dwarf::Place;
use super::elf::Elf;
use super::table::Answer;

/// All results for one hit. Addresses are svma.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Symbol table's answer: equal for neighbouring hits in one function.
    pub(crate) answer: Answer,
    /// The section's start: equal for neighbouring hits in one function.
    pub(crate) section_start: u64,
    /// First address of the function or gap.
    pub(crate) start: u64,
    /// End address, exclusive.
    pub(crate) end: u64,
    /// Linkage name; in a gap, the section's name.
    pub(crate) linkage_name: String,
    /// Demangled; empty in a gap.
    pub(crate) name: String,
    pub(crate) source: SymbolSource,
    /// Whether the size comes from the symbol.
    pub(crate) sized: bool,
    /// The result from DWARF.
    pub(crate) place: Option<Place>,
}

impl Known {
    /// Adds DWARF's lines, and DWARF's function for hits without a symbol.
    pub(crate) fn add_place(&mut self, place: Option<Place>) {
        self.place = place;
        let Some(place) = &mut self.place else {
            return;
        };
        if self.source == SymbolSource::None
            && let Some(function) = &place.function
            && !function.linkage_name.is_empty()
        {
            self.linkage_name.clone_from(&function.linkage_name);
            self.name = demangle(&function.linkage_name);
            self.source = SymbolSource::DebugInfo;
            self.sized = true;
            self.start = self.start.max(function.start);
            self.end = self.end.min(function.end);
        }
        // Names the outermost frame like the function.
        if let Some(frame) = place.frames.last_mut()
            && !self.name.is_empty()
        {
            frame.function.clone_from(&self.name);
        }
    }
}

/// A range of file offsets around a hit.
trait Piece {
    fn range(&mut self) -> (&mut u64, &mut u64);
}

impl Piece for NativeFunction {
    fn range(&mut self) -> (&mut u64, &mut u64) {
        (&mut self.start.0, &mut self.size)
    }
}

impl Piece for NativeLines {
    fn range(&mut self) -> (&mut u64, &mut u64) {
        (&mut self.start.0, &mut self.end.0)
    }
}

/// Separates two overlapping ranges `(start, end)`: `before`, whose last hit is `last_hit`, and
/// `next`, whose first hit is `first_hit`. If one range contains the other, the outer range shrinks.
fn cut(before: (&mut u64, &mut u64), last_hit: u64, next: (&mut u64, &mut u64), first_hit: u64) {
    let end = if *next.0 > last_hit {
        (*before.1).min(*next.0)
    } else {
        (*before.1).min(first_hit)
    };
    *before.1 = end;
    *next.0 = (*next.0).max(end);
}

/// The functions of `hits` (ascending file offsets); `svmas` (ascending) and `known` have the
/// results.
pub(crate) fn functions(
    elf: &Elf<'_>,
    hits: &[FileOffset],
    svmas: &[u64],
    known: &[Known],
) -> Vec<NativeFunction> {
    // During construction, `size` holds the end.
    let mut functions: Vec<NativeFunction> = Vec::new();
    let mut last_hit = 0;
    // The uncut range of the last function: an equal range continues it.
    let mut last: Option<(u64, u64)> = None;
    for hit in hits {
        let Some((segment, svma)) = elf.address_of(hit.0) else {
            continue;
        };
        let Some(known) = svmas
            .binary_search(&svma)
            .ok()
            .and_then(|index| known.get(index))
        else {
            continue;
        };
        let first = segment.address;
        let offset_of = |address: u64| {
            let into = address.saturating_sub(first).min(segment.file_size);
            segment.offset.saturating_add(into)
        };
        let start = offset_of(known.start).min(hit.0);
        let end = offset_of(known.end).max(hit.0.saturating_add(1));
        let continues = last == Some((start, end))
            && functions
                .last()
                .is_some_and(|function| function.linkage_name == known.linkage_name);
        if !continues {
            last = Some((start, end));
            let mut function = NativeFunction {
                start: FileOffset(start),
                size: end,
                linkage_name: known.linkage_name.clone(),
                name: known.name.clone(),
                source: known.source,
                sized: known.sized,
                lines: Vec::new(),
            };
            if let Some(before) = functions.last_mut() {
                cut(before.range(), last_hit, function.range(), hit.0);
            }
            functions.push(function);
        }
        if let (Some(function), Some(place)) = (functions.last_mut(), &known.place) {
            let lines = NativeLines {
                start: FileOffset(offset_of(place.start).min(hit.0)),
                end: FileOffset(offset_of(place.end).max(hit.0.saturating_add(1))),
                frames: place.frames.clone(),
                exactness: place.exactness,
            };
            add_lines(&mut function.lines, lines, last_hit, hit.0);
        }
        last_hit = hit.0;
    }
    for function in &mut functions {
        let (start, end) = (function.start.0, function.size);
        function.size = end.saturating_sub(start);
        for lines in &mut function.lines {
            lines.start.0 = lines.start.0.max(start);
            lines.end.0 = lines.end.0.min(end);
        }
    }
    functions
}

/// Adds the lines around `hit`, which follows `last_hit`.
fn add_lines(all: &mut Vec<NativeLines>, mut lines: NativeLines, last_hit: u64, hit: u64) {
    let Some(before) = all.last_mut() else {
        all.push(lines);
        return;
    };
    let same = before.frames == lines.frames && before.exactness == lines.exactness;
    if same && before.end.0 > hit && lines.start.0 <= last_hit {
        // One piece with two hits: the intersection.
        before.start = before.start.max(lines.start);
        before.end = before.end.min(lines.end);
        return;
    }
    cut(before.range(), last_hit, lines.range(), hit);
    all.push(lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_of(before: (u64, u64), last_hit: u64, next: (u64, u64), hit: u64) -> [(u64, u64); 2] {
        let (mut before, mut next) = (before, next);
        cut(
            (&mut before.0, &mut before.1),
            last_hit,
            (&mut next.0, &mut next.1),
            hit,
        );
        [before, next]
    }

    #[test]
    fn pieces_do_not_overlap() {
        // Apart.
        assert_eq!(cut_of((0, 5), 2, (5, 9), 6), [(0, 5), (5, 9)]);
        // The first contains the second and ends at its start.
        assert_eq!(cut_of((0, 9), 1, (4, 6), 5), [(0, 4), (4, 6)]);
        // The second contains the first and begins at its end.
        assert_eq!(cut_of((4, 6), 5, (0, 9), 7), [(4, 6), (6, 9)]);
        // Equal ranges with different names.
        assert_eq!(cut_of((0, 9), 5, (0, 9), 7), [(0, 7), (7, 9)]);
    }
}
