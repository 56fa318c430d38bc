//! The plot's columns: which addresses each stands for, and what samples fell there.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use vmscope_symbolizer::addresses::{Addresses, Owner, Stretch};
use vmscope_symbolizer::{EntryId, Stop};

/// A piece of the axis is at least so wide.
const LEAST_WIDE: usize = 3;

/// A gap is no part of a piece when it is longer than this part of what is shown.
const PARTS: u64 = 8;

/// No gap is cut out that is shorter.
const LEAST_GAP: u64 = 4096;

/// Pieces begin and end at multiples of this.
const ROUND: u64 = 64;

/// No more names than VMProfiler's strip has.
const MAX_NAMES: usize = 50;

/// What the plot shows, for columns to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The number of what it is made from.
    pub ground: u64,
    /// Which stretches are left out.
    pub left_out: Vec<Owner>,
    /// The lowest address, and the first above the highest.
    pub range: (u64, u64),
    /// How many columns there are.
    pub width: usize,
}

/// A piece of the axis: addresses without gaps, on a scale of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The stretch that it is of.
    pub stretch: usize,
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Its first column.
    pub column: usize,
    /// How many it has.
    pub width: usize,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The piece that it is of.
    pub piece: usize,
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Samples.
    pub samples: u64,
    /// The entry with most of them, and how many it has.
    pub top: Option<(EntryId, u64)>,
}

/// A name below the axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Whose.
    pub entry: EntryId,
    /// The column where it has most samples.
    pub column: usize,
    /// Its samples.
    pub samples: u64,
}

/// All columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// The pieces, by address.
    pub pieces: Vec<Piece>,
    /// A bar for each column; none between pieces.
    pub bars: Vec<Option<Bar>>,
    /// Names, most samples first.
    pub names: Vec<Name>,
    /// Samples in all bars.
    pub samples: u64,
    /// Ranges for which there was no room, and the samples in them.
    pub undrawn: (usize, u64),
}

impl Piece {
    /// The addresses of one of its columns.
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
    /// Makes them; `None` when `stop` was wished before.
    pub fn of(addresses: &Arc<Addresses>, wanted: &Wanted, stop: &Stop) -> Option<Self> {
        let (pieces, undrawn) = pieces(addresses, wanted);
        let mut columns = Columns {
            bars: vec![None; wanted.width],
            undrawn,
            ..Columns::default()
        };
        // Where each entry has its most samples in one column, and all it has.
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
                // An entry's points lie side by side mostly.
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

    /// The column that an address is in; of several, the first.
    pub fn column_of(&self, address: u64) -> Option<usize> {
        let has = |bar: &Option<Bar>| {
            let bar = bar.as_ref();
            bar.is_some_and(|bar| (bar.start..bar.end).contains(&address))
        };
        self.bars.iter().position(has)
    }

    /// The columns in which something is from an address to another, both included.
    pub fn columns_of(&self, low: u64, high: u64) -> Option<(usize, usize)> {
        let bars = || self.bars.iter().enumerate();
        let bars = || bars().filter_map(|(at, bar)| Some((at, bar.as_ref()?)));
        let mut inside = bars().filter(|(_, bar)| low < bar.end && bar.start <= high);
        let (first, _) = inside.next()?;
        let last = inside.next_back().map_or(first, |(at, _)| at);
        Some((first, last))
    }

    /// The column with most samples.
    pub fn hottest(&self) -> Option<usize> {
        let bars = self.bars.iter().enumerate();
        let bars = bars.filter_map(|(at, bar)| Some((bar.as_ref()?.samples, at)));
        let hottest = bars.max_by_key(|&(samples, at)| (samples, std::cmp::Reverse(at)));
        hottest.map(|(_, at)| at)
    }

    /// The most samples that a column has.
    pub fn most(&self) -> u64 {
        let samples = self.bars.iter().flatten().map(|bar| bar.samples);
        samples.max().unwrap_or(0)
    }

    /// The share of all samples up to and with each column.
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

/// How wide a stretch is drawn against others: wide ones are not to hide all others.
#[expect(clippy::cast_precision_loss, reason = "columns of a terminal")]
fn weight(size: u64) -> f64 {
    (size.max(1) as f64).sqrt()
}

/// A part of a stretch that has samples: gaps of more than an eighth of what is shown of it
/// are cut out.
struct Part {
    stretch: usize,
    start: u64,
    end: u64,
    samples: u64,
}

/// The parts of what is shown of a stretch.
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

/// The pieces that fit: of too many, those with most samples.
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
