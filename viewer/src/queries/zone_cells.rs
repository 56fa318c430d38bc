//! Cells of the zone map: contents of each address range at a time, with samples.

use super::code_kind::{CodeKind, letters, name_of};
use super::zone_samples::ZoneSamples;
use rustc_hash::FxHashMap;
use vmscope_records::{ConstituentKind, ProcessKey, TimeNs};
use vmscope_symbolizer::addresses::Owner;
use vmscope_symbolizer::zone::{Presence, Residencies, Residency, ZoneRange};
use vmscope_symbolizer::{Profile, Stop};

/// Request for cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Version of the input.
    pub ground: u64,
    /// Process and start.
    pub zone: (ProcessKey, u64),
    pub time: TimeNs,
    /// Marks changes since this time.
    pub before: Option<TimeNs>,
    /// First address.
    pub first: u64,
    /// Bytes per cell.
    pub bytes: u64,
    /// Number of cells.
    pub cells: usize,
    /// Time line: begin, end, number of columns.
    pub line: (TimeNs, TimeNs, usize),
}

/// Totals of a kind of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    pub kind: CodeKind,
    /// Letter on the map.
    pub letter: char,
    /// Number of constituents.
    pub count: u64,
    pub bytes: u64,
    /// Samples during the residencies, at any time in the filter.
    pub samples: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Kind of most bytes: index in [`Cells::totals`]; `None` without constituents.
    pub sort: Option<usize>,
    /// Whether the VM reports free space here.
    pub free: bool,
    /// Occupied bytes.
    pub used: u64,
    pub samples: u64,
    /// Whether code appeared since the previous step.
    pub came: bool,
    /// Whether code disappeared since the previous step.
    pub went: bool,
    /// Whether this code may have appeared later, or disappeared already.
    pub maybe: bool,
}

/// Unoccupied space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Number of gaps.
    pub count: u64,
    pub bytes: u64,
    /// Bytes of the largest gap.
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
    /// Samples during the residencies, at any time in the filter; `None` for unused space.
    pub samples: Option<u64>,
}

/// A zone at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    /// By address.
    pub cells: Vec<Cell>,
    /// By kind, most bytes first.
    pub totals: Vec<Total>,
    /// Occupied bytes.
    pub used: u64,
    /// Reported as free by the VM.
    pub free: Gaps,
    /// Without any report.
    pub untold: Gaps,
    /// Number of constituents with uncertain presence.
    pub maybe: u64,
    /// Number of constituents that appeared since the previous step.
    pub came: u64,
    /// Number of constituents that disappeared since the previous step.
    pub went: u64,
    /// Compactions so far: number, time of the last.
    pub compactions: (u64, Option<TimeNs>),
    /// Changes by column of the time line.
    pub line: Vec<u64>,
}

pub fn zone_of(residencies: &Residencies, zone: (ProcessKey, u64)) -> Option<&ZoneRange> {
    let mut zones = residencies.zones().iter();
    zones.find(|one| (one.process, one.start) == zone)
}

fn is_free(profile: &Profile, residency: &Residency) -> bool {
    let code = residency.constituent(&profile.trace);
    code.is_none_or(|code| code.kind == ConstituentKind::Free)
}

impl Cells {
    /// Kinds of unused space in the zone: sign, name, gaps.
    pub fn gaps(&self) -> impl Iterator<Item = (char, &'static str, Gaps)> {
        let all = [
            (FREE, "free", self.free),
            (UNTOLD, "not reported", self.untold),
        ];
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

    /// Computes the cells; `None` after a stop.
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

    /// Totals by kind; returns each constituent's index.
    fn total(&mut self, profile: &Profile, there: &[(&Residency, Presence)]) -> Vec<usize> {
        // A zone may have 100,000 constituents: names are copied once for each kind.
        let mut by_kind: FxHashMap<(&ConstituentKind, &str), usize> = FxHashMap::default();
        let mut kinds = Vec::with_capacity(there.len());
        for (residency, presence) in there {
            let code = residency.constituent(&profile.trace);
            let (kind, tier) = code.map_or((&ConstituentKind::Stub, ""), |code| {
                (&code.kind, code.tier.as_str())
            });
            let next = self.totals.len();
            let index = *by_kind.entry((kind, tier)).or_insert(next);
            if index == next {
                self.totals.push(Total {
                    kind: CodeKind {
                        kind: kind.clone(),
                        tier: tier.to_owned(),
                    },
                    letter: ' ',
                    count: 0,
                    bytes: 0,
                    samples: 0,
                });
            }
            if let Some(total) = self.totals.get_mut(index) {
                total.count += 1;
                // Recorded sizes; uncertain constituents overlap freely.
                total.bytes = total.bytes.saturating_add(residency.size());
            }
            self.maybe += u64::from(*presence == Presence::Maybe);
            kinds.push(index);
        }
        // Most bytes first; letters by name, stable over time.
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

    /// Occupied, free and unreported space; `there` is sorted by address.
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

    /// Cells of an address range.
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
            // A constituent may cover all cells.
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
                // Initial constituents did not appear.
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
