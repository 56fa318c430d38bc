//! The map's cells: what lay in each stretch of bytes of a zone at a time, and what samples
//! fell there.

use super::code_kind::{CodeKind, letters, name_of};
use super::zone_samples::ZoneSamples;
use rustc_hash::FxHashMap;
use vmscope_records::{ConstituentKind, ProcessKey, TimeNs};
use vmscope_symbolizer::addresses::Owner;
use vmscope_symbolizer::zone::{Presence, Residencies, Residency, ZoneRange};
use vmscope_symbolizer::{Profile, Stop};

/// What the map shows, for cells to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The number of what it is made from.
    pub ground: u64,
    /// Which zone.
    pub zone: (ProcessKey, u64),
    /// When.
    pub time: TimeNs,
    /// What changes since then are marked.
    pub before: Option<TimeNs>,
    /// The first cell's address.
    pub first: u64,
    /// Bytes of a cell.
    pub bytes: u64,
    /// How many cells there are.
    pub cells: usize,
    /// From when to when the time line goes, and its columns.
    pub line: (TimeNs, TimeNs, usize),
}

/// All there is of a sort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    /// What it is.
    pub kind: CodeKind,
    /// The letter that stands for it.
    pub letter: char,
    /// Constituents.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their samples, at any time that the filter takes.
    pub samples: u64,
}

/// A cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// What most of its bytes are, by [`Cells::totals`]; `None` that nothing is told to lie
    /// there.
    pub sort: Option<usize>,
    /// Where nothing lies: the VM tells that it is free.
    pub free: bool,
    /// Bytes that something lies on.
    pub used: u64,
    /// Samples of what lies there.
    pub samples: u64,
    /// Something came since the step before.
    pub came: bool,
    /// Something went.
    pub went: bool,
    /// What lies there may have come later, or be gone.
    pub maybe: bool,
}

/// Space that nothing is told to lie on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// How many pieces.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The largest piece's.
    pub largest: u64,
}

impl Gaps {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
        self.largest = self.largest.max(bytes);
    }
}

/// Signs on the map for space that the VM reports as free, and for space without any report.
pub const FREE: char = '.';
/// See [`FREE`].
pub const UNTOLD: char = ':';

/// A line of the map's legend: a kind of code, or a kind of unused space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegendRow {
    /// Sign on the map.
    pub sign: char,
    /// Name of the kind.
    pub name: String,
    /// Number of pieces.
    pub count: u64,
    /// Bytes of all pieces.
    pub bytes: u64,
    /// Samples during the residencies, at any time that the filter takes; `None` for unused space.
    pub samples: Option<u64>,
}

/// A zone at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    /// The cells, by address.
    pub cells: Vec<Cell>,
    /// By sort, most bytes first.
    pub totals: Vec<Total>,
    /// Bytes that something lies on.
    pub used: u64,
    /// What the VM tells to be free.
    pub free: Gaps,
    /// What nobody told of.
    pub untold: Gaps,
    /// Constituents that are not certain to be there.
    pub maybe: u64,
    /// How many came, and went, since the step before.
    pub came: u64,
    /// See `came`.
    pub went: u64,
    /// Compactions until then: how many, and when the last was seen.
    pub compactions: (u64, Option<TimeNs>),
    /// Changes in each column of the time line.
    pub line: Vec<u64>,
}

/// The zone that is wanted.
pub fn zone_of(residencies: &Residencies, zone: (ProcessKey, u64)) -> Option<&ZoneRange> {
    let mut zones = residencies.zones().iter();
    zones.find(|one| (one.process, one.start) == zone)
}

fn is_free(profile: &Profile, residency: &Residency) -> bool {
    let code = residency.constituent(&profile.trace);
    code.is_none_or(|code| code.kind == ConstituentKind::Free)
}

impl Cells {
    /// Kinds of unused space that the zone has: sign, name, pieces.
    pub fn gaps(&self) -> impl Iterator<Item = (char, &'static str, Gaps)> {
        let all = [(FREE, "free", self.free), (UNTOLD, "not told", self.untold)];
        all.into_iter().filter(|(.., gaps)| gaps.count > 0)
    }

    /// The map's legend: code by kind, most bytes first, then unused space.
    pub fn legend(&self) -> impl Iterator<Item = LegendRow> {
        let code = self.totals.iter().map(|total| LegendRow {
            sign: total.letter,
            name: name_of(&total.kind),
            count: total.count,
            bytes: total.bytes,
            samples: Some(total.samples),
        });
        let unused = self.gaps().map(|(sign, name, gaps)| LegendRow {
            sign,
            name: name.to_owned(),
            count: gaps.count,
            bytes: gaps.bytes,
            samples: None,
        });
        code.chain(unused)
    }

    /// Makes them; `None` when `stop` was wished before.
    pub fn of(
        profile: &Profile,
        ground: &ZoneSamples,
        wanted: &Wanted,
        stop: &Stop,
    ) -> Option<Self> {
        let Some(zone) = zone_of(&ground.layout.residencies, wanted.zone) else {
            return Some(Cells::default());
        };
        let mut cells = Cells {
            cells: vec![Cell::default(); wanted.cells],
            line: vec![0; wanted.line.2],
            ..Cells::default()
        };
        let all = ground.layout.residencies.at(zone, wanted.time);
        let (told_free, there): (Vec<_>, Vec<_>) =
            all.partition(|(residency, _)| is_free(profile, residency));
        let kinds = cells.total(profile, &there);
        cells.space(zone, &there, &told_free, wanted);
        if stop.is_stopped() {
            return None;
        }
        cells.fill(ground, wanted, &there, &kinds, stop)?;
        cells.changes(profile, ground, wanted, zone);
        Some(cells)
    }

    /// Counts by sort. Returns the index of each constituent's.
    fn total(&mut self, profile: &Profile, there: &[(&Residency, Presence)]) -> Vec<usize> {
        let mut by_kind: FxHashMap<CodeKind, usize> = FxHashMap::default();
        let mut kinds = Vec::with_capacity(there.len());
        for (residency, presence) in there {
            let code = residency.constituent(&profile.trace);
            let kind = CodeKind {
                kind: code.map_or(ConstituentKind::Stub, |code| code.kind.clone()),
                tier: code.map_or_else(String::new, |code| code.tier.clone()),
            };
            let next = self.totals.len();
            let index = *by_kind.entry(kind.clone()).or_insert(next);
            if index == next {
                self.totals.push(Total {
                    kind,
                    letter: ' ',
                    count: 0,
                    bytes: 0,
                    samples: 0,
                });
            }
            if let Some(total) = self.totals.get_mut(index) {
                total.count += 1;
                // Sizes are the recording's, and what may be there overlaps freely.
                total.bytes = total.bytes.saturating_add(residency.size());
            }
            self.maybe += u64::from(*presence == Presence::Maybe);
            kinds.push(index);
        }
        // Most bytes first; the letters go by name, so that they stay as time goes on.
        let mut order: Vec<usize> = (0..self.totals.len()).collect();
        let key = |at: &usize| {
            let total = self.totals.get(*at);
            total.map(|total| (std::cmp::Reverse(total.bytes), name_of(&total.kind)))
        };
        order.sort_by_key(key);
        let mut place = vec![0; order.len()];
        for (rank, &at) in order.iter().enumerate() {
            if let Some(slot) = place.get_mut(at) {
                *slot = rank;
            }
        }
        let totals: Vec<Total> = order
            .iter()
            .filter_map(|&at| self.totals.get(at).cloned())
            .collect();
        self.totals = totals;
        letters(&mut self.totals);
        let rank = |at: usize| place.get(at).copied().unwrap_or(0);
        kinds.into_iter().map(rank).collect()
    }

    /// What is used, what is free, and what nobody told of; code is by address.
    fn space(
        &mut self,
        zone: &ZoneRange,
        there: &[(&Residency, Presence)],
        told_free: &[(&Residency, Presence)],
        wanted: &Wanted,
    ) {
        let mut end = zone.start;
        let mut gaps = Vec::new();
        for (residency, _) in there {
            gaps.push((end, residency.start));
            end = end.max(residency.end);
        }
        gaps.push((end, zone.end));
        gaps.retain(|(from, to)| from < to);
        let mut free = told_free.iter().map(|(residency, _)| *residency).peekable();
        for (mut from, to) in gaps {
            while from < to {
                while free.next_if(|residency| residency.end <= from).is_some() {}
                let next = free.peek().map_or((to, to), |residency| {
                    (
                        residency.start.clamp(from, to),
                        residency.end.clamp(from, to),
                    )
                });
                if from < next.0 {
                    self.untold.add(next.0 - from);
                }
                if next.0 < next.1 {
                    self.is_free(next.0, next.1, wanted);
                }
                from = next.1.max(next.0);
            }
        }
        let unused = self.free.bytes + self.untold.bytes;
        self.used = (zone.end - zone.start).saturating_sub(unused);
    }

    fn is_free(&mut self, from: u64, to: u64, wanted: &Wanted) {
        self.free.add(to - from);
        let range = Self::range(wanted, from, to);
        for cell in self.cells.get_mut(range).into_iter().flatten() {
            cell.free = true;
        }
    }

    /// The cells that some addresses lie in.
    fn range(wanted: &Wanted, start: u64, end: u64) -> std::ops::Range<usize> {
        let bytes = wanted.bytes.max(1);
        let cell = |address: u64| {
            let cell = address.saturating_sub(wanted.first) / bytes;
            usize::try_from(cell).unwrap_or(usize::MAX)
        };
        if end <= wanted.first || start >= end {
            return 0..0;
        }
        let to = cell(end - 1).saturating_add(1).min(wanted.cells);
        cell(start).min(to)..to
    }

    fn fill(
        &mut self,
        ground: &ZoneSamples,
        wanted: &Wanted,
        there: &[(&Residency, Presence)],
        kinds: &[usize],
        stop: &Stop,
    ) -> Option<()> {
        let (process, start) = wanted.zone;
        let mut stretches = ground.addresses.stretches.iter();
        let stretch = stretches.find(|one| one.owner == Owner::Zone(process, start));
        let mut most = vec![0u64; wanted.cells];
        for (&(residency, presence), &sort) in there.iter().zip(kinds) {
            // Each may lie on all cells.
            if stop.is_stopped() {
                return None;
            }
            let range = Self::range(wanted, residency.start, residency.end);
            for at in range {
                let from = wanted
                    .first
                    .saturating_add(wanted.bytes.saturating_mul(at as u64));
                let to = from.saturating_add(wanted.bytes);
                let bytes = residency
                    .end
                    .min(to)
                    .saturating_sub(residency.start.max(from));
                let (Some(cell), Some(most)) = (self.cells.get_mut(at), most.get_mut(at)) else {
                    continue;
                };
                cell.used = cell.used.saturating_add(bytes);
                cell.maybe |= presence == Presence::Maybe;
                if bytes > *most {
                    *most = bytes;
                    cell.sort = Some(sort);
                }
            }
            let points = stretch.map_or(&[][..], |one| one.points(residency.start..residency.end));
            for point in points
                .iter()
                .filter(|point| point.code() == Some(residency.code))
            {
                if let Some(total) = self.totals.get_mut(sort) {
                    total.samples += point.samples;
                }
                let at = Self::range(wanted, point.address, point.address.saturating_add(1));
                if let Some(cell) = self.cells.get_mut(at).and_then(|cells| cells.first_mut()) {
                    cell.samples += point.samples;
                }
            }
        }
        Some(())
    }

    fn changes(
        &mut self,
        profile: &Profile,
        ground: &ZoneSamples,
        wanted: &Wanted,
        zone: &ZoneRange,
    ) {
        let (from, to, columns) = wanted.line;
        let span = u128::from(to.since(from).0).max(1);
        let column = |time: TimeNs| {
            let part = u128::from(time.since(from).0) * columns as u128 / span;
            usize::try_from(part)
                .unwrap_or(usize::MAX)
                .min(columns.saturating_sub(1))
        };
        for residency in ground.layout.residencies.in_zone(zone) {
            if is_free(profile, residency) {
                continue;
            }
            for time in [Some(residency.from), residency.until]
                .into_iter()
                .flatten()
            {
                // What was there when it began did not come.
                if from < time
                    && time <= to
                    && let Some(slot) = self.line.get_mut(column(time))
                {
                    *slot += 1;
                }
            }
            let Some(before) = wanted.before else {
                continue;
            };
            let (was, is) = (
                residency.at(before).is_some(),
                residency.at(wanted.time).is_some(),
            );
            if was == is {
                continue;
            }
            self.came += u64::from(is);
            self.went += u64::from(was);
            let range = Self::range(wanted, residency.start, residency.end);
            for cell in self.cells.get_mut(range).into_iter().flatten() {
                cell.came |= is;
                cell.went |= was;
            }
        }
        let compactions = ground.layout.residencies.compactions(zone);
        let until = compactions.partition_point(|(time, _)| *time <= wanted.time);
        let last = until.checked_sub(1).and_then(|at| compactions.get(at));
        self.compactions = (until as u64, last.map(|(time, _)| *time));
    }
}
