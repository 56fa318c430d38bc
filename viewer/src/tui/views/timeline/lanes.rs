//! Events by column: collections with phases, code, the user's marks, losses.

use crate::present::numbers::{count, some};
use crate::present::text::harmless;
use crate::queries::collections::takes_process;
use crate::queries::time_grid::Grid;
use crate::tui::jobs::Stop;
use crate::tui::theme::Role;
use crate::tui::widgets::chart::ms;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use unicode_width::UnicodeWidthChar;
use vmscope_records::{Collection, GoneReason, LossReason, ProcessKey, Stream, TimeNs};
use vmscope_symbolizer::trace::CodeStep;
use vmscope_symbolizer::{Filter, Profile, Region};

/// Maximum number of tiers with their own lane.
const TIERS: usize = 3;

/// Minimum number of columns for a phase's name.
const NAMED: usize = 4;

/// Maximum number of notes of a column.
const NOTES: usize = 4;

/// Cell of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Glyph {
    /// Blank.
    #[default]
    None,
    /// Character, and its substitute on ASCII terminals.
    Sign(char, char),
    /// Height, 0 to 1.
    Height(f64),
}

impl Glyph {
    fn of(c: char) -> Self {
        Glyph::Sign(c, if c.is_ascii() { c } else { '?' })
    }
}

/// Row of the timeline.
#[derive(Clone, Debug)]
pub struct Lane {
    pub label: String,
    pub role: Role,
    /// Small screens drop lanes with the greatest rank first.
    pub rank: u8,
    /// One cell per column.
    pub cells: Vec<Glyph>,
}

/// Lanes with events, from top to bottom.
#[derive(Debug, Default)]
pub struct Lanes {
    pub grid: Grid,
    pub lanes: Vec<Lane>,
    /// Events of each column in words.
    pub notes: Vec<Vec<String>>,
    /// Letters that stand for spans too short for their names.
    pub letters: BTreeSet<(char, String)>,
    /// Whether a number stands for several pauses of a column.
    pub has_counts: bool,
    /// Number of further events of each column.
    more: Vec<usize>,
    /// Zero of the times in words.
    begin: TimeNs,
}

/// Observed times of a collection; with one time only, that time twice.
pub fn times(one: &Collection) -> Option<(TimeNs, TimeNs)> {
    let from = one.begin.or(one.end)?;
    Some((from, one.end.unwrap_or(from).max(from)))
}

impl Lanes {
    /// Lanes of a recording; `None` after a stop. `begin` is the zero of times in words.
    pub fn of(
        profile: &Profile,
        grid: Grid,
        filter: &Filter,
        begin: TimeNs,
        stop: &Stop,
    ) -> Option<Self> {
        let mut all = Lanes {
            grid,
            begin,
            notes: vec![Vec::new(); grid.columns],
            more: vec![0; grid.columns],
            ..Lanes::default()
        };
        let takes = takes_process(profile, filter);
        all.collections(profile, &takes, stop)?;
        all.code(profile, &takes, stop)?;
        all.marks(profile);
        all.losses(profile, stop)?;
        for (notes, more) in all.notes.iter_mut().zip(&all.more) {
            if *more > 0 {
                notes.push(format!("and {} more", count(*more as u64)));
            }
        }
        Some(all)
    }

    fn note(&mut self, column: usize, text: impl FnOnce() -> String) {
        match (self.notes.get_mut(column), self.more.get_mut(column)) {
            (Some(notes), _) if notes.len() < NOTES => notes.push(text()),
            (_, Some(more)) => *more += 1,
            _ => {}
        }
    }

    fn lane(&mut self, label: &str, role: Role, rank: u8, cells: Vec<Glyph>) {
        if cells.iter().any(|cell| *cell != Glyph::None) {
            let label = label.to_owned();
            self.lanes.push(Lane {
                label,
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

    fn collections(
        &mut self,
        profile: &Profile,
        takes: &dyn Fn(ProcessKey) -> bool,
        stop: &Stop,
    ) -> Option<()> {
        let grid = self.grid;
        let (mut pauses, mut concurrent, mut phases) = (self.empty(), self.empty(), self.empty());
        let mut begun = vec![0; grid.columns];
        let all = profile.trace.collections.iter();
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
            if one.scope.is_pause() {
                let begun = grid.has(from).then_some(&mut begun);
                self.put_span(&mut pauses, begun, columns, &one.kind);
            } else {
                self.put_span(&mut concurrent, None, columns, &one.kind);
            }
            let begin = self.begin;
            for column in columns.0..=columns.1 {
                self.note(column, || collection_in_words(one, (from, to), begin));
            }
            for phase in one.phases.iter().filter(|phase| phase.within.is_none()) {
                let times = phase.begin.zip(phase.end);
                let columns = times.and_then(|(from, to)| grid.columns_of(from, to));
                let Some((columns, (from, _))) = columns.zip(times) else {
                    continue;
                };
                if !one.scope.is_pause() && phase.stop_the_world {
                    let begun = grid.has(from).then_some(&mut begun);
                    self.put_span(&mut pauses, begun, columns, &phase.name);
                }
                if columns.1 - columns.0 + 1 >= NAMED {
                    self.put_span(&mut phases, None, columns, &phase.name);
                }
            }
        }
        let role = Role::Region(Region::Gc);
        self.lane("pauses", role, 0, pauses);
        self.lane("phases", role, 3, phases);
        self.lane("concurrent", role, 4, concurrent);
        Some(())
    }

    /// Writes a span with its name, shortened to the columns. `begun` counts the spans that begin in
    /// each column: from two on, the number replaces the first letter.
    fn put_span(
        &mut self,
        cells: &mut [Glyph],
        begun: Option<&mut Vec<u32>>,
        (first, last): (usize, usize),
        name: &str,
    ) {
        let length = last - first + 1;
        // One letter, or a word.
        let shown = if length >= NAMED { length - 1 } else { 1 };
        let mut words = narrow(name).take(shown);
        if let Some(letter) = narrow(name).next().filter(|_| shown == 1) {
            self.letters.insert((letter, name.to_owned()));
        }
        for slot in cells.iter_mut().skip(first).take(length) {
            *slot = words.next().map_or(Glyph::Sign('━', '='), Glyph::of);
        }
        if let Some(count) = begun.and_then(|begun| begun.get_mut(first)) {
            *count += 1;
            if let Some(slot) = cells.get_mut(first).filter(|_| *count > 1) {
                *slot = Glyph::of(char::from_digit(*count, 10).unwrap_or('+'));
                self.has_counts = true;
            }
        }
    }

    fn code(
        &mut self,
        profile: &Profile,
        takes: &dyn Fn(ProcessKey) -> bool,
        stop: &Stop,
    ) -> Option<()> {
        let grid = self.grid;
        let trace = &profile.trace;
        let begin = trace.session.as_ref().map_or(TimeNs(0), |one| one.time);
        let zeros = || vec![0u64; grid.columns];
        let mut made: FxHashMap<&str, Vec<u64>> = FxHashMap::default();
        let (mut gone, mut unloaded, mut moved) = (zeros(), zeros(), zeros());
        for event in trace.code_events.all() {
            if stop.is_stopped() {
                return None;
            }
            if !grid.has(event.time) || !takes(event.process) {
                continue;
            }
            let counts = match event.step {
                // The first poll found this code: its creation time is unknown.
                CodeStep::Came if event.earliest <= begin => continue,
                CodeStep::Came => made
                    .entry(trace.code_events.label(event))
                    .or_insert_with(zeros),
                CodeStep::Moved => &mut moved,
                CodeStep::Gone(GoneReason::Unloaded) => &mut unloaded,
                CodeStep::Gone(_) => &mut gone,
            };
            if let Some(slot) = counts.get_mut(grid.column_of(event.time)) {
                *slot += 1;
            }
        }
        let mut tiers: Vec<(&str, Vec<u64>)> = made.into_iter().collect();
        let total = |counts: &[u64]| counts.iter().sum::<u64>();
        tiers.sort_by(|(a, one), (b, other)| total(other).cmp(&total(one)).then(a.cmp(b)));
        let mut others = zeros();
        for (_, counts) in tiers.drain(TIERS.min(tiers.len())..) {
            for (slot, count) in others.iter_mut().zip(counts) {
                *slot += count;
            }
        }
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

    /// Adds a lane of heights.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn counted(&mut self, label: &str, words: &str, role: Role, rank: u8, counts: &[u64]) {
        let most = counts.iter().copied().max().unwrap_or(0);
        let cells = counts.iter().map(|&count| match count {
            0 => Glyph::None,
            _ => Glyph::Height(count as f64 / most as f64),
        });
        self.lane(label, role, rank, cells.collect());
        for (column, &n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            self.note(column, || format!("{} {words} {label}", count(n)));
        }
    }

    fn marks(&mut self, profile: &Profile) {
        let grid = self.grid;
        let mut cells = self.empty();
        for mark in profile
            .trace
            .marks
            .iter()
            .filter(|mark| grid.has(mark.time))
        {
            let column = grid.column_of(mark.time);
            // Later marks cover earlier words.
            let words = narrow(&mark.text).map(Glyph::of);
            let glyphs = std::iter::once(Glyph::Sign('◆', '*')).chain(words);
            let glyphs = glyphs.chain([Glyph::None]).take(24);
            for (slot, glyph) in cells.iter_mut().skip(column).zip(glyphs) {
                *slot = glyph;
            }
            let seconds = self.seconds(mark.time);
            self.note(column, || format!("mark at {seconds}: {}", mark.text));
        }
        self.lane("marks", Role::Key, 1, cells);
    }

    fn losses(&mut self, profile: &Profile, stop: &Stop) -> Option<()> {
        let mut cells = self.empty();
        let lost = profile.trace.lost.iter();
        for one in lost.filter(|one| one.reason != LossReason::KeepLastFull) {
            if stop.is_stopped() {
                return None;
            }
            let Some((first, last)) = self.grid.columns_of(one.from, one.to) else {
                continue;
            };
            let words = match one.stream {
                Stream::Samples => some(one.count, "sample", "samples"),
                _ => some(one.count, "record", "records"),
            };
            let (from, to) = (self.seconds(one.from), self.seconds(one.to));
            for column in first..=last {
                if let Some(slot) = cells.get_mut(column) {
                    *slot = Glyph::of('!');
                }
                self.note(column, || format!("lost {words} from {from} to {to}"));
            }
        }
        self.lane("lost", Role::Bad, 0, cells);
        Some(())
    }
}

/// Collector, kind, duration, time and cause of a collection; `begin` is the zero of the time.
pub fn collection_in_words(
    one: &Collection,
    (from, to): (TimeNs, TimeNs),
    begin: TimeNs,
) -> String {
    let mut words = Collection::label(&one.collector, &one.kind);
    let at = from.since(begin).as_secs_f64();
    words += &match (one.begin, one.end) {
        (Some(_), Some(_)) => format!(" {} at {at:.3} s", ms(to.since(from).0)),
        (Some(_), None) => format!(" from {at:.3} s, end not observed"),
        _ => format!(" until {at:.3} s, begin not observed"),
    };
    if !one.cause.is_empty() {
        words += &format!(" ({})", one.cause);
    }
    words
}

/// Characters of a name, one column each.
fn narrow(name: &str) -> impl Iterator<Item = char> + use<> {
    let short: String = name.chars().take(200).collect();
    let harmless: Vec<char> = harmless(&short).chars().collect();
    let one = |c: char| if c.width() == Some(1) { c } else { '?' };
    harmless.into_iter().map(one)
}
