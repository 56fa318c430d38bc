//! What happened, by column: collections and their phases, code, the user's marks, losses.

mod collections;

use crate::present::numbers::{count, some};
use crate::present::text::harmless;
use crate::queries::collections::processes;
use crate::queries::time_grid::Grid;
use crate::tui::jobs::Stop;
use crate::tui::theme::Role;
pub(super) use collections::collection_in_words;
use rustc_hash::FxHashMap;
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

/// Characters of a name that each take one column.
fn narrow(name: &str) -> impl Iterator<Item = char> + use<> {
    let short: String = name.chars().take(200).collect();
    let harmless: Vec<char> = harmless(&short).chars().collect();
    let one = |c: char| if c.width() == Some(1) { c } else { '?' };
    harmless.into_iter().map(one)
}
