//! Collections and their phases.

use super::{Glyph, Making, NAMED, ms, narrow, times};
use crate::tui::jobs::Stop;
use crate::tui::theme::Role;
use vmscope_records::{Collection, ProcessKey, TimeNs};
use vmscope_symbolizer::Region;

impl Making<'_> {
    pub(super) fn collections(
        &mut self,
        takes: &dyn Fn(ProcessKey) -> bool,
        stop: &Stop,
    ) -> Option<()> {
        let grid = self.grid;
        let (mut pauses, mut concurrent, mut phases) = (self.empty(), self.empty(), self.empty());
        let mut begun = vec![0usize; grid.columns];
        let all = self.profile.trace.collections.iter();
        let mut all: Vec<&Collection> = all.filter(|one| takes(one.process)).collect();
        all.sort_by_key(|one| times(one));
        for one in all {
            if stop.is_stopped() {
                return None;
            }
            let Some((from, to)) = times(one) else {
                continue;
            };
            let Some(columns) = grid.columns_of(from, to) else {
                continue;
            };
            if one.stop_the_world {
                put_span(&mut pauses, &mut begun, columns, grid.has(from), &one.kind);
            } else {
                put_span(&mut concurrent, &mut Vec::new(), columns, true, &one.kind);
            }
            let begin = self.begin;
            for column in columns.0..=columns.1 {
                self.note(column, || collection_in_words(one, (from, to), begin));
            }
            for phase in &one.phases {
                let (Some(from), Some(to)) = (phase.begin, phase.end) else {
                    continue;
                };
                let Some(columns) = grid.columns_of(from, to) else {
                    continue;
                };
                if !one.stop_the_world && phase.stop_the_world && phase.within.is_none() {
                    let inside = grid.has(from);
                    put_span(&mut pauses, &mut begun, columns, inside, &phase.name);
                }
                if phase.within.is_none() && columns.1 - columns.0 + 1 >= NAMED {
                    put_span(&mut phases, &mut Vec::new(), columns, true, &phase.name);
                }
            }
        }
        self.lane("pauses", Role::Region(Region::Gc), 0, pauses);
        self.lane("phases", Role::Region(Region::Gc), 3, phases);
        self.lane("concurrent", Role::Region(Region::Gc), 4, concurrent);
        Some(())
    }
}

pub(in crate::tui::views::timeline) fn collection_in_words(
    one: &Collection,
    (from, to): (TimeNs, TimeNs),
    recording: TimeNs,
) -> String {
    let mut words = Collection::label(&one.collector, &one.kind);
    let at = from.since(recording).as_secs_f64();
    words += &match (one.begin, one.end) {
        (Some(_), Some(_)) => format!(" {} at {at:.3} s", ms(to.since(from).0)),
        (Some(_), None) => format!(" from {at:.3} s, end not seen"),
        _ => format!(" until {at:.3} s, begin not seen"),
    };
    if !one.cause.is_empty() {
        words += &format!(" ({})", one.cause);
    }
    words
}

/// Puts a span with its name, or as much of it as fits; where several begin in one column,
/// their number.
fn put_span(
    cells: &mut [Glyph],
    begun: &mut [usize],
    (first, last): (usize, usize),
    begins: bool,
    name: &str,
) {
    let length = last - first + 1;
    let words: Vec<char> = narrow(name).take(length.min(200)).collect();
    // One letter, or with room a word.
    let shown = if length >= NAMED { length - 1 } else { 1 };
    for (offset, slot) in cells.iter_mut().skip(first).take(length).enumerate() {
        let letter = words.get(offset).filter(|_| offset < shown);
        *slot = letter.map_or(Glyph::Sign('━', '='), |&c| Glyph::Char(c));
    }
    let Some(count) = begun.get_mut(first).filter(|_| begins) else {
        return;
    };
    *count += 1;
    if *count > 1
        && let Some(slot) = cells.get_mut(first)
    {
        let digit = char::from_digit(u32::try_from(*count).unwrap_or(99), 10);
        *slot = Glyph::Char(digit.unwrap_or('+'));
    }
}
