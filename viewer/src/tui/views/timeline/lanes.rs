//! What happened, by column: collections and their phases, code, the user's marks, losses.

use super::grid::Grid;
use crate::report::words::{count, harmless, some};
use crate::tui::jobs::Stop;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use rustc_hash::{FxHashMap, FxHashSet};
use unicode_width::UnicodeWidthChar;
use vmscope_records::{Collection, GoneReason, LossReason, ProcessKey, Stream, TimeNs};
use vmscope_symbolizer::trace::CodeStep;
use vmscope_symbolizer::{Filter, Profile, Region};

/// So many tiers have a lane of their own.
const TIERS: usize = 3;

/// A phase is shown by its name where it has so many columns.
const NAMED: usize = 4;

/// So many things are told of a column.
const NOTES: usize = 4;

/// A cell of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Glyph {
    /// Nothing.
    #[default]
    None,
    /// A character, of a text or a sign.
    Char(char),
    /// A sign that terminals without more than ASCII show otherwise.
    Sign(char, char),
    /// A height, 0 to 1.
    Height(f64),
}

/// A row of the timeline.
#[derive(Clone, Debug)]
pub struct Lane {
    /// What it is of.
    pub label: String,
    /// How it is drawn.
    pub role: Role,
    /// Lanes with a greater number go first where there is no room.
    pub rank: u8,
    /// A cell for each column.
    pub cells: Vec<Glyph>,
}

/// All lanes that have something, from top to bottom.
#[derive(Debug, Default)]
pub struct Lanes {
    /// The columns.
    pub grid: Grid,
    /// The rows.
    pub lanes: Vec<Lane>,
    /// Of each column what happened in it, in words.
    pub notes: Vec<Vec<String>>,
}

/// A collection's times, as far as they were observed: where only one of both was, both
/// are that.
pub fn times(one: &Collection) -> Option<(TimeNs, TimeNs)> {
    let from = one.begin.or(one.end)?;
    Some((from, one.end.unwrap_or(from).max(from)))
}

/// Whose collections and code are shown: those of the processes with threads that the
/// filter includes; `None` for all.
pub fn processes(profile: &Profile, filter: &Filter) -> Option<FxHashSet<ProcessKey>> {
    if filter.takes_all_threads() {
        return None;
    }
    let threads = (0u32..).take(profile.trace.threads.len());
    let threads = threads.filter(|thread| filter.takes_thread(*thread));
    Some(
        threads
            .filter_map(|thread| profile.trace.process_of(thread))
            .collect(),
    )
}

/// Milliseconds of a span, as people read them.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a recording")]
pub fn ms(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

struct Making<'a> {
    grid: Grid,
    profile: &'a Profile,
    begin: TimeNs,
    lanes: Vec<Lane>,
    notes: Vec<Vec<String>>,
    more: Vec<usize>,
}

impl Lanes {
    /// Gathers them; `None` when `stop` was wished before it was done. Times in words are
    /// counted from `begin`.
    pub fn of(
        profile: &Profile,
        grid: Grid,
        filter: &Filter,
        begin: TimeNs,
        stop: &Stop,
    ) -> Option<Self> {
        let mut making = Making {
            grid,
            profile,
            begin,
            lanes: Vec::new(),
            notes: vec![Vec::new(); grid.columns],
            more: vec![0; grid.columns],
        };
        let processes = processes(profile, filter);
        let takes = |process: ProcessKey| {
            let processes = processes.as_ref();
            processes.is_none_or(|processes| processes.contains(&process))
        };
        making.collections(&takes, stop)?;
        making.code(&takes, stop)?;
        making.marks();
        making.losses(stop)?;
        let mut notes = making.notes;
        for (notes, more) in notes.iter_mut().zip(making.more) {
            if more > 0 {
                notes.push(format!("and {} more", count(more as u64)));
            }
        }
        Some(Lanes {
            grid,
            lanes: making.lanes,
            notes,
        })
    }
}

impl Making<'_> {
    fn note(&mut self, column: usize, text: impl FnOnce() -> String) {
        let Some(notes) = self.notes.get_mut(column) else {
            return;
        };
        if notes.len() < NOTES {
            notes.push(text());
        } else if let Some(more) = self.more.get_mut(column) {
            *more += 1;
        }
    }

    fn lane(&mut self, label: &str, role: Role, rank: u8, cells: Vec<Glyph>) {
        if cells.iter().any(|cell| *cell != Glyph::None) {
            self.lanes.push(Lane {
                label: label.to_owned(),
                role,
                rank,
                cells,
            });
        }
    }

    fn empty(&self) -> Vec<Glyph> {
        vec![Glyph::None; self.grid.columns]
    }

    fn seconds(&self, time: TimeNs) -> String {
        format!("{:.3} s", time.since(self.begin).as_secs_f64())
    }

    fn collections(&mut self, takes: &dyn Fn(ProcessKey) -> bool, stop: &Stop) -> Option<()> {
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

    fn code(&mut self, takes: &dyn Fn(ProcessKey) -> bool, stop: &Stop) -> Option<()> {
        let grid = self.grid;
        let trace = &self.profile.trace;
        let begin = trace.session.as_ref().map_or(TimeNs(0), |one| one.time);
        let zeros = || vec![0u64; grid.columns];
        let mut made: FxHashMap<&str, Vec<u64>> = FxHashMap::default();
        let (mut gone, mut unloaded, mut moved) = (zeros(), zeros(), zeros());
        let events = trace.code_events.all().iter();
        for event in events {
            if stop.is_stopped() {
                return None;
            }
            if !grid.has(event.time) || !takes(event.process) {
                continue;
            }
            let column = grid.column_of(event.time);
            let counts = match event.step {
                // What was there at the first look was made nobody knows when.
                CodeStep::Came if event.earliest <= begin => continue,
                CodeStep::Came => made
                    .entry(trace.code_events.label(event))
                    .or_insert_with(zeros),
                CodeStep::Moved => &mut moved,
                CodeStep::Gone(GoneReason::Unloaded) => &mut unloaded,
                CodeStep::Gone(_) => &mut gone,
            };
            if let Some(slot) = counts.get_mut(column) {
                *slot += 1;
            }
        }
        let mut tiers: Vec<(&str, Vec<u64>)> = made.into_iter().collect();
        let total = |counts: &[u64]| counts.iter().sum::<u64>();
        tiers.sort_by(|(a, one), (b, other)| total(other).cmp(&total(one)).then(a.cmp(b)));
        let mut others = zeros();
        for (_, counts) in tiers.iter().skip(TIERS) {
            for (slot, count) in others.iter_mut().zip(counts) {
                *slot += count;
            }
        }
        tiers.truncate(TIERS);
        let generated = Role::Region(Region::Generated);
        for ((tier, counts), rank) in tiers.into_iter().zip(2..) {
            self.counted(tier, "made by", generated, rank, &counts);
        }
        self.counted("other code", "made:", generated, 7, &others);
        self.counted("deoptimised", "pieces of code", Role::Warning, 5, &unloaded);
        self.counted("code gone", "pieces of", Role::Dim, 8, &gone);
        self.counted("code moved", "pieces of", Role::Title, 6, &moved);
        Some(())
    }

    /// A lane of heights, by how often something happened.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn counted(&mut self, label: &str, words: &str, role: Role, rank: u8, counts: &[u64]) {
        let most = counts.iter().copied().max().unwrap_or(0);
        if most == 0 {
            return;
        }
        let cell = |&count: &u64| match count {
            0 => Glyph::None,
            _ => Glyph::Height(count as f64 / most as f64),
        };
        let cells = counts.iter().map(cell).collect();
        self.lane(label, role, rank, cells);
        for (column, &n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            self.note(column, || format!("{} {words} {label}", count(n)));
        }
    }

    fn marks(&mut self) {
        let grid = self.grid;
        let mut cells = self.empty();
        let marks = self.profile.trace.marks.iter();
        let marks: Vec<_> = marks.filter(|mark| grid.has(mark.time)).collect();
        for mark in marks {
            let column = grid.column_of(mark.time);
            // What comes later covers the words before it.
            let sign = [Glyph::Sign('◆', '*')].into_iter();
            let words = narrow(&mark.text).map(Glyph::Char);
            let glyphs = sign.chain(words).chain([Glyph::None]).take(24);
            for (slot, glyph) in cells.iter_mut().skip(column).zip(glyphs) {
                *slot = glyph;
            }
            let seconds = self.seconds(mark.time);
            self.note(column, || format!("mark at {seconds}: {}", mark.text));
        }
        self.lane("marks", Role::Key, 1, cells);
    }

    fn losses(&mut self, stop: &Stop) -> Option<()> {
        let grid = self.grid;
        let mut cells = self.empty();
        let lost = self.profile.trace.lost.iter();
        let lost = lost.filter(|one| one.reason != LossReason::KeepLastFull);
        for one in lost {
            if stop.is_stopped() {
                return None;
            }
            let Some((first, last)) = grid.columns_of(one.from, one.to) else {
                continue;
            };
            for slot in cells.get_mut(first..=last).into_iter().flatten() {
                *slot = Glyph::Char('!');
            }
            let words = match one.stream {
                Stream::Samples => some(one.count, "sample", "samples"),
                _ => some(one.count, "record", "records"),
            };
            let (from, to) = (self.seconds(one.from), self.seconds(one.to));
            for column in first..=last {
                self.note(column, || format!("lost {words} from {from} to {to}"));
            }
        }
        self.lane("lost", Role::Bad, 0, cells);
        Some(())
    }
}

fn collection_in_words(
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

/// Characters of a name that each take one column.
fn narrow(name: &str) -> impl Iterator<Item = char> + use<> {
    let short: String = name.chars().take(200).collect();
    let harmless: Vec<char> = harmless(&short).chars().collect();
    let one = |c: char| if c.width() == Some(1) { c } else { '?' };
    harmless.into_iter().map(one)
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

/// The collections and marks that are shown, nearest to a time: the next one not before
/// `after`, or the last one before `before`.
pub fn nearest(
    cx: &Cx<'_>,
    (before, after): (TimeNs, TimeNs),
    is_next: bool,
) -> Option<(TimeNs, String)> {
    let (trace, begin) = (&cx.profile.trace, cx.begin);
    let processes = processes(cx.profile, cx.lens.filter());
    let takes = |one: &&Collection| {
        let processes = processes.as_ref();
        processes.is_none_or(|processes| processes.contains(&one.process))
    };
    let is_beyond = |time: TimeNs| {
        if is_next {
            // What came after the picture was held is not shown.
            time >= after && time <= cx.end
        } else {
            time < before
        }
    };
    let distance = |time: TimeNs| {
        if is_next {
            time.since(after).0
        } else {
            before.since(time).0
        }
    };
    let collections = trace.collections.iter().filter(takes);
    let collections = collections.filter_map(|one| Some((times(one)?, one)));
    let collection = collections
        .filter(|((from, _), _)| is_beyond(*from))
        .min_by_key(|((from, _), _)| distance(*from));
    let marks = trace.marks.iter().filter(|mark| is_beyond(mark.time));
    let mark = marks.min_by_key(|mark| distance(mark.time));
    match (collection, mark) {
        (Some(((from, to), one)), mark)
            if mark.is_none_or(|mark| distance(from) <= distance(mark.time)) =>
        {
            Some((from, collection_in_words(one, (from, to), begin)))
        }
        (_, Some(mark)) => Some((mark.time, format!("mark: {}", mark.text))),
        _ => None,
    }
}
