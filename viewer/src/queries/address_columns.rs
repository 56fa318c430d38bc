//! Columns of the address plot: address ranges with samples.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use vmscope_symbolizer::addresses::{Addresses, Owner, Stretch};
use vmscope_symbolizer::{EntryId, Stop};

/// Minimum width of an axis piece, in columns.
const LEAST_WIDE: usize = 3;

/// Gaps above this fraction of the visible range split a piece.
const PARTS: u64 = 8;

/// Minimum size of a cut gap, in bytes.
const LEAST_GAP: u64 = 4096;

/// Alignment of pieces, in bytes.
const ROUND: u64 = 64;

/// Maximum number of names, as in VMProfiler's strip.
const MAX_NAMES: usize = 50;

/// Request for columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Version of the input.
    pub ground: u64,
    /// Hidden stretches.
    pub left_out: Vec<Owner>,
    /// Address range: first, end.
    pub range: (u64, u64),
    /// Number of columns.
    pub width: usize,
}

/// Piece of the axis: a gapless address range with its own scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of its stretch.
    pub stretch: usize,
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// First column.
    pub column: usize,
    /// Number of columns.
    pub width: usize,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Index of its piece.
    pub piece: usize,
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Samples.
    pub samples: u64,
    /// Hottest entry with samples.
    pub top: Option<(EntryId, u64)>,
}

/// Name below the axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Entry.
    pub entry: EntryId,
    /// Its hottest column.
    pub column: usize,
    /// Samples.
    pub samples: u64,
}

/// All columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// Pieces by address.
    pub pieces: Vec<Piece>,
    /// Bar of each column; `None` between pieces.
    pub bars: Vec<Option<Bar>>,
    /// Names, most samples first.
    pub names: Vec<Name>,
    /// Samples in all bars.
    pub samples: u64,
    /// Number of undrawn ranges, and their samples.
    pub undrawn: (usize, u64),
}

impl Piece {
    /// Address range of a column.
    fn addresses(&self, column: usize) -> (u64, u64) {
        let edge = |column: usize| {
            let size = u128::from(self.end - self.start);
            let inside = size * column as u128 / (self.width as u128).max(1);
            self.start
                .saturating_add(u64::try_from(inside).unwrap_or(u64::MAX))
        };
        (edge(column), edge(column + 1))
    }
}

impl Columns {
    /// Computes the columns; `None` after a stop.
    pub fn of(addresses: &Arc<Addresses>, wanted: &Wanted, stop: &Stop) -> Option<Self> {
        let (pieces, undrawn) = pieces(addresses, wanted);
        let mut columns = Columns {
            bars: vec![None; wanted.width],
            undrawn,
            ..Columns::default()
        };
        // By entry: samples in its hottest column, that column, all samples.
        let mut names: FxHashMap<EntryId, (u64, usize, u64)> = FxHashMap::default();
        for (index, piece) in pieces.iter().enumerate() {
            let Some(stretch) = addresses.stretches.get(piece.stretch) else {
                continue;
            };
            for column in 0..piece.width {
                if stop.is_stopped() {
                    return None;
                }
                let (start, end) = piece.addresses(column);
                let mut by_entry: FxHashMap<EntryId, u64> = FxHashMap::default();
                let mut samples = 0;
                // Points of one entry mostly lie side by side.
                let points = stretch.points(start..end);
                for same in points.chunk_by(|a, b| a.entry == b.entry) {
                    let here: u64 = same.iter().map(|point| point.samples).sum();
                    samples += here;
                    if let Some(first) = same.first() {
                        *by_entry.entry(first.entry).or_default() += here;
                    }
                }
                let at = piece.column + column;
                for (&entry, &here) in &by_entry {
                    let name = names.entry(entry).or_insert((0, at, 0));
                    name.2 += here;
                    if (here, std::cmp::Reverse(at)) > (name.0, std::cmp::Reverse(name.1)) {
                        (name.0, name.1) = (here, at);
                    }
                }
                let most =
                    |(entry, samples): &(EntryId, u64)| (*samples, std::cmp::Reverse(*entry));
                let top = by_entry.into_iter().max_by_key(most);
                columns.samples += samples;
                if let Some(slot) = columns.bars.get_mut(at) {
                    *slot = Some(Bar {
                        piece: index,
                        start,
                        end,
                        samples,
                        top,
                    });
                }
            }
        }
        let name = |(entry, (_, column, samples))| Name {
            entry,
            column,
            samples,
        };
        columns.names = names.into_iter().map(name).collect();
        columns
            .names
            .sort_by_key(|name| (std::cmp::Reverse(name.samples), name.entry));
        columns.names.truncate(MAX_NAMES);
        columns.pieces = pieces;
        Some(columns)
    }

    /// First column that contains an address.
    pub fn column_of(&self, address: u64) -> Option<usize> {
        let has = |bar: &Option<Bar>| {
            let bar = bar.as_ref();
            bar.is_some_and(|bar| (bar.start..bar.end).contains(&address))
        };
        self.bars.iter().position(has)
    }

    /// Columns with samples between two addresses, both included.
    pub fn columns_of(&self, low: u64, high: u64) -> Option<(usize, usize)> {
        let bars = || self.bars.iter().enumerate();
        let bars = || bars().filter_map(|(at, bar)| Some((at, bar.as_ref()?)));
        let mut inside = bars().filter(|(_, bar)| low < bar.end && bar.start <= high);
        let (first, _) = inside.next()?;
        let last = inside.next_back().map_or(first, |(at, _)| at);
        Some((first, last))
    }

    /// Column with most samples.
    pub fn hottest(&self) -> Option<usize> {
        let bars = self.bars.iter().enumerate();
        let bars = bars.filter_map(|(at, bar)| Some((bar.as_ref()?.samples, at)));
        let hottest = bars.max_by_key(|&(samples, at)| (samples, std::cmp::Reverse(at)));
        hottest.map(|(_, at)| at)
    }

    /// Maximum of samples per column.
    pub fn most(&self) -> u64 {
        let samples = self.bars.iter().flatten().map(|bar| bar.samples);
        samples.max().unwrap_or(0)
    }

    /// Cumulative share of samples by column.
    pub fn integral(&self) -> Vec<f64> {
        let mut sum = 0;
        let bars = self.bars.iter();
        let share = |bar: &Option<Bar>| {
            sum += bar.as_ref().map_or(0, |bar| bar.samples);
            crate::present::numbers::ratio(sum, self.samples)
        };
        bars.map(share).collect()
    }
}

/// Relative width of a stretch, damped so that wide stretches leave room for others.
#[expect(clippy::cast_precision_loss, reason = "columns of a terminal")]
fn weight(size: u64) -> f64 {
    (size.max(1) as f64).sqrt()
}

/// Part of a stretch with samples; gaps above an eighth of its visible range are cut.
struct Part {
    stretch: usize,
    start: u64,
    end: u64,
    samples: u64,
}

/// Parts of a stretch's visible range.
fn parts(index: usize, stretch: &Stretch, range: (u64, u64), parts: &mut Vec<Part>) {
    let (start, end) = (stretch.start.max(range.0), stretch.end.min(range.1));
    if start >= end {
        return;
    }
    let far = ((end - start) / PARTS).max(LEAST_GAP);
    let points = stretch.points(start..end);
    for part in points.chunk_by(|a, b| b.address - a.address <= far) {
        let (Some(first), Some(last)) = (part.first(), part.last()) else {
            continue;
        };
        let from = first.address / ROUND * ROUND;
        let to = (last.address / ROUND)
            .saturating_add(1)
            .saturating_mul(ROUND);
        parts.push(Part {
            stretch: index,
            start: from.max(start),
            end: to.min(end),
            samples: part.iter().map(|point| point.samples).sum(),
        });
    }
}

/// Pieces that fit; with too many, the hottest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "columns of a terminal"
)]
fn pieces(addresses: &Addresses, wanted: &Wanted) -> (Vec<Piece>, (usize, u64)) {
    let mut chosen: Vec<Part> = Vec::new();
    for (index, stretch) in addresses.stretches.iter().enumerate() {
        if !wanted.left_out.contains(&stretch.owner) {
            parts(index, stretch, wanted.range, &mut chosen);
        }
    }
    let room = (wanted.width + 1) / (LEAST_WIDE + 1);
    let mut undrawn = (0, 0);
    if chosen.len() > room {
        chosen.sort_by_key(|part| (std::cmp::Reverse(part.samples), part.stretch, part.start));
        for part in chosen.drain(room..) {
            undrawn = (undrawn.0 + 1, undrawn.1 + part.samples);
        }
        chosen.sort_by_key(|part| (part.stretch, part.start));
    }
    let spare = (wanted.width + 1).saturating_sub(chosen.len() * (LEAST_WIDE + 1));
    let all: f64 = chosen
        .iter()
        .map(|part| weight(part.end - part.start))
        .sum();
    let (mut column, mut sum, mut given) = (0, 0.0, 0);
    let mut pieces = Vec::new();
    for part in &chosen {
        sum += weight(part.end - part.start);
        let until = ((spare as f64 * sum / all.max(1.0)).round() as usize).min(spare);
        let width = LEAST_WIDE + until.saturating_sub(given);
        given = until.max(given);
        pieces.push(Piece {
            stretch: part.stretch,
            start: part.start,
            end: part.end,
            column,
            width,
        });
        column += width + 1;
    }
    (pieces, undrawn)
}
