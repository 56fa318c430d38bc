//! The plot: what is selected, included and zoomed to.

use super::columns::{Columns, Wanted};
use super::{Ground, names};
use crate::report::words::{count, percent, ratio};
use crate::tui::jobs::{Answer, Fetched, Question};
use crate::tui::keys::Command;
use crate::tui::lens::Narrow;
use crate::tui::shown::{Axis, Cell, Chart, Part, Shown, Table};
use crate::tui::views::{Act, Choice, Click, Cx, Find, Press};
use crate::tui::widgets::search::Search;
use std::sync::Arc;
use vmscope_symbolizer::EntryId;
use vmscope_symbolizer::addresses::{Owner, Stretch};

/// All addresses.
const ALL: (u64, u64) = (0, u64::MAX);

/// A hot column has this part of the hottest one's samples.
const HOT: f64 = 0.25;

const INCLUDE_ALL: u16 = 0;
const ONLY_ZONES: u16 = 1;
const FIRST_STRETCH: u16 = 10;

/// So many ranges can be chosen in the palette, by address; the list has all.
const MAX_CHOICES: u16 = 1_000;

/// The plot.
#[derive(Debug)]
pub struct Plot {
    left_out: Vec<Owner>,
    range: (u64, u64),
    before: Vec<(u64, u64)>,
    after: Vec<(u64, u64)>,
    /// The address of the cursor's column; the hottest one's before it was moved.
    at: Option<u64>,
    /// Where a selection began.
    mark: Option<u64>,
    dragged: bool,
    search: Search,
    /// Which stretch of the list is selected; the cursor's own where none is.
    listed: Option<Owner>,
    pub(super) columns: Fetched<Wanted, Columns>,
}

impl Default for Plot {
    fn default() -> Self {
        Plot {
            left_out: Vec::new(),
            range: ALL,
            before: Vec::new(),
            after: Vec::new(),
            at: None,
            mark: None,
            dragged: false,
            search: Search::default(),
            listed: None,
            columns: Fetched::default(),
        }
    }
}

impl Plot {
    pub fn ask(&mut self, ground: &Ground, cx: &Cx<'_>) -> Option<Question> {
        let wanted = Wanted {
            ground: ground.number,
            left_out: self.left_out.clone(),
            range: self.range,
            width: super::plot_drawn::width(cx.area),
        };
        let addresses = Arc::clone(&ground.addresses);
        let key = wanted.clone();
        // The number says what it is made from; a stamp of the lens would be older.
        let stamp = crate::tui::jobs::Stamp::default();
        self.columns.ask(1, key, stamp, move |profile, stop| {
            Columns::of(profile, &addresses, &wanted, stop)
        })
    }

    /// Returns the number of the ground that the columns are made from.
    pub fn take(&mut self, answer: Option<Answer>) -> Option<u64> {
        self.columns.take(answer);
        self.columns.answered().map(|(wanted, _)| wanted.ground)
    }

    pub fn is_pending(&self) -> bool {
        self.columns.is_pending()
    }

    /// The cursor's column.
    pub fn cursor(&self) -> Option<usize> {
        let columns = self.columns.get()?;
        let at = self.at.and_then(|at| columns.column_of(at));
        at.or_else(|| columns.hottest())
    }

    /// The columns that are selected.
    pub fn selection(&self) -> Option<(usize, usize)> {
        let columns = self.columns.get()?;
        let (mark, cursor) = (columns.column_of(self.mark?)?, self.cursor()?);
        Some((mark.min(cursor), mark.max(cursor)))
    }

    /// Whether a stretch is shown.
    pub fn includes(&self, owner: Owner) -> bool {
        !self.left_out.contains(&owner)
    }

    /// Whether the plot shows less than all addresses.
    pub fn is_zoomed(&self) -> bool {
        self.range != ALL
    }

    /// The stretch that is selected in the list.
    pub fn listed(&self, ground: &Ground) -> Option<usize> {
        let stretches = &ground.addresses.stretches;
        let listed = self.listed.and_then(|owner| {
            let is_it = |stretch: &Stretch| stretch.owner == owner;
            stretches.iter().position(is_it)
        });
        listed.or_else(|| {
            let columns = self.columns.get()?;
            let bar = columns.bars.get(self.cursor()?)?.as_ref()?;
            columns.pieces.get(bar.piece).map(|piece| piece.stretch)
        })
    }

    /// The entry under the cursor.
    fn entry(&self) -> Option<EntryId> {
        let bar = self.columns.get()?.bars.get(self.cursor()?)?.as_ref()?;
        bar.top.map(|(entry, _)| entry)
    }

    fn go_to(&mut self, column: usize) {
        let bar = (self.columns.get()).and_then(|columns| columns.bars.get(column)?.as_ref());
        if let Some(start) = bar.map(|bar| bar.start) {
            self.at = Some(start);
            self.listed = None;
        }
    }

    /// To the nearest column beside the cursor that has a bar and that `fits` takes.
    fn step(&mut self, back: bool, fits: impl Fn(u64) -> bool) {
        let Some((columns, now)) = self.columns.get().zip(self.cursor()) else {
            return;
        };
        let is_fit = |column: &usize| {
            let bar = columns.bars.get(*column).and_then(Option::as_ref);
            bar.is_some_and(|bar| fits(bar.samples))
        };
        let found = if back {
            (0..now).rev().find(is_fit)
        } else {
            (now + 1..columns.bars.len()).find(is_fit)
        };
        if let Some(found) = found {
            self.go_to(found);
        }
    }

    fn zoom_to(&mut self, range: (u64, u64)) {
        if range != self.range && range.0 < range.1 {
            self.before.push(self.range);
            self.after.clear();
            self.range = range;
        }
        self.mark = None;
    }

    /// The addresses of some columns.
    fn addresses(&self, (from, to): (usize, usize)) -> Option<(u64, u64)> {
        let bars = &self.columns.get()?.bars;
        let mut bars = bars.get(from..=to)?.iter().flatten();
        let first = bars.next()?;
        let last = bars.last().unwrap_or(first);
        Some((first.start, last.end))
    }

    fn zoom_in(&mut self) -> Vec<Act> {
        let around = || {
            let width = self.columns.get()?.bars.len();
            let cursor = self.cursor()?;
            let half = (width / 8).max(1);
            let columns = self.columns.get()?;
            let piece = columns.bars.get(cursor)?.as_ref()?.piece;
            // A stretch first, then a part of it.
            let piece = columns.pieces.get(piece)?;
            if columns.pieces.len() > 1 {
                return Some((piece.start, piece.end));
            }
            let last = piece.column + piece.width.saturating_sub(1);
            self.addresses((cursor.saturating_sub(half), (cursor + half).min(last)))
        };
        let selected = self.selection();
        let range = match selected {
            Some(selection) => self.addresses(selection),
            None => around(),
        };
        if let Some((start, end)) = range.filter(|(start, end)| start < end) {
            self.zoom_to((start, end));
            return Vec::new();
        }
        vec![Act::Say("this is as near as it gets".to_owned())]
    }

    /// Goes back to what was shown before zooming in; whether there was anything.
    pub fn zoom_back(&mut self) -> bool {
        self.mark = None;
        let whole = self.is_zoomed().then_some(ALL);
        let Some(range) = self.before.pop().or(whole) else {
            return false;
        };
        self.after.push(self.range);
        self.range = range;
        true
    }

    /// Zooms in again; whether there was anything to zoom in to.
    pub fn zoom_forward(&mut self) -> bool {
        let Some(range) = self.after.pop() else {
            return false;
        };
        self.before.push(self.range);
        self.range = range;
        true
    }

    fn toggle(&mut self, owner: Owner, ground: &Ground) -> Vec<Act> {
        if let Some(at) = self.left_out.iter().position(|out| *out == owner) {
            self.left_out.swap_remove(at);
        } else {
            let others = ground.addresses.stretches.iter();
            let mut others = others.filter(|one| one.owner != owner && self.includes(one.owner));
            if others.next().is_none() {
                return vec![Act::Say("one range at least is included".to_owned())];
            }
            self.left_out.push(owner);
        }
        Vec::new()
    }

    /// To the stretch before or after in the list, and with the cursor to where it is hot.
    fn list(&mut self, ground: &Ground, to: impl Fn(usize) -> usize) {
        let stretches = &ground.addresses.stretches;
        let now = self.listed(ground).unwrap_or(0);
        let to = to(now).min(stretches.len().saturating_sub(1));
        let Some(stretch) = stretches.get(to) else {
            return;
        };
        let hottest = self.columns.get().and_then(|columns| {
            let of = columns
                .pieces
                .iter()
                .position(|piece| piece.stretch == to)?;
            let bars = columns.bars.iter().flatten().filter(|bar| bar.piece == of);
            bars.max_by_key(|bar| (bar.samples, std::cmp::Reverse(bar.start)))
                .map(|bar| bar.start)
        });
        if hottest.is_some() {
            self.at = hottest;
        }
        self.listed = Some(stretch.owner);
    }

    pub fn act(&mut self, command: Command, ground: &Ground) -> Vec<Act> {
        let most = self.columns.get().map_or(0, Columns::most);
        let width = self.columns.get().map_or(0, |columns| columns.bars.len());
        match command {
            Command::Left => self.step(true, |_| true),
            Command::Right => self.step(false, |_| true),
            Command::PageUp | Command::HalfUp => {
                let to = self.cursor().unwrap_or(0).saturating_sub(width / 8);
                self.nearest(to);
            }
            Command::PageDown | Command::HalfDown => {
                let to = self.cursor().unwrap_or(0).saturating_add(width / 8);
                self.nearest(to.min(width.saturating_sub(1)));
            }
            Command::First => self.nearest(0),
            Command::Last => self.nearest(width.saturating_sub(1)),
            Command::NextHot => self.step(false, |samples| ratio(samples, most) >= HOT),
            Command::PreviousHot => self.step(true, |samples| ratio(samples, most) >= HOT),
            Command::Up => self.list(ground, |now| now.saturating_sub(1)),
            Command::Down => self.list(ground, |now| now + 1),
            Command::Select => {
                let at = self.cursor().and_then(|at| self.addresses((at, at)));
                self.mark = if self.mark.is_some() {
                    None
                } else {
                    at.map(|(start, _)| start)
                };
            }
            Command::Cancel => self.mark = None,
            Command::ZoomIn => return self.zoom_in(),
            Command::Open if self.mark.is_some() => return self.zoom_in(),
            Command::ZoomOut | Command::Earlier => {
                self.zoom_back();
            }
            Command::Later => {
                self.zoom_forward();
            }
            Command::Open => {
                return match self.entry() {
                    Some(entry) => vec![Act::Annotate(entry)],
                    None => vec![Act::Say("no samples fell on this column".to_owned())],
                };
            }
            Command::Only => {
                return match self.entry() {
                    Some(entry) => vec![Act::Narrow(Narrow::Entries(vec![entry]))],
                    None => vec![Act::Say("no samples fell on this column".to_owned())],
                };
            }
            Command::Toggle => {
                let listed = self.listed(ground);
                let stretch = listed.and_then(|at| ground.addresses.stretches.get(at));
                if let Some(owner) = stretch.map(|stretch| stretch.owner) {
                    self.listed = Some(owner);
                    return self.toggle(owner, ground);
                }
            }
            Command::Own(INCLUDE_ALL) => self.left_out.clear(),
            Command::Own(ONLY_ZONES) => {
                let others = ground.addresses.stretches.iter().map(|one| one.owner);
                let others = others.filter(|owner| !matches!(owner, Owner::Zone(..)));
                self.left_out = others.collect();
            }
            Command::Own(number) => {
                let at = usize::from(number.saturating_sub(FIRST_STRETCH));
                if let Some(stretch) = ground.addresses.stretches.get(at) {
                    return self.toggle(stretch.owner, ground);
                }
            }
            _ => {}
        }
        Vec::new()
    }

    /// To the column, or the one with a bar nearest to it.
    fn nearest(&mut self, column: usize) {
        let Some(columns) = self.columns.get() else {
            return;
        };
        let has_bar = |at: &usize| columns.bars.get(*at).is_some_and(Option::is_some);
        let all = (0..columns.bars.len()).filter(has_bar);
        if let Some(nearest) = all.min_by_key(|at| at.abs_diff(column)) {
            self.go_to(nearest);
        }
    }

    pub fn click(&mut self, click: Click, ground: &Ground, cx: &Cx<'_>) -> Vec<Act> {
        match super::plot_drawn::hit(click.at, cx.area) {
            super::plot_drawn::Hit::Column(column) => match click.what {
                Press::Down => {
                    self.mark = None;
                    self.dragged = false;
                    self.nearest(column);
                }
                Press::Double => return self.act(Command::Open, ground),
                Press::Drag => {
                    if !self.dragged {
                        self.dragged = true;
                        self.mark = self.cursor().and_then(|at| {
                            let (start, _) = self.addresses((at, at))?;
                            Some(start)
                        });
                    }
                    self.nearest(column);
                }
                Press::Up => {
                    if std::mem::take(&mut self.dragged)
                        && self.selection().is_some_and(|(from, to)| from < to)
                    {
                        return self.zoom_in();
                    }
                    self.mark = None;
                }
                Press::WheelUp => {
                    self.nearest(column);
                    return self.zoom_in();
                }
                Press::WheelDown => {
                    self.zoom_back();
                }
            },
            super::plot_drawn::Hit::Row(row) if click.what == Press::Down => {
                self.list(ground, |_| row);
            }
            super::plot_drawn::Hit::Row(_) if click.what == Press::Double => {
                return self.act(Command::Toggle, ground);
            }
            _ => {}
        }
        Vec::new()
    }

    pub fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        if let Some((low, high)) = range_of(pattern) {
            let Some(columns) = self.columns.get() else {
                return false;
            };
            let found = columns.columns_of(low, high.unwrap_or(low));
            let start = |at: usize| Some(columns.bars.get(at)?.as_ref()?.start);
            let Some((first, last)) = found else {
                return false;
            };
            (self.at, self.mark) = match high {
                Some(_) => (start(last), start(first)),
                None => (Some(low), None),
            };
            return true;
        }
        let bars = self.columns.get().map_or(&[][..], |columns| &columns.bars);
        let now = self.cursor().unwrap_or(0);
        let found = (self.search).find(pattern, find, bars.len(), now, |at, text| {
            let bar = bars.get(at).and_then(Option::as_ref);
            let entry = bar.and_then(|bar| bar.top);
            let entry = entry.and_then(|(entry, _)| cx.profile.entries.get(entry as usize));
            entry.is_some_and(|entry| text.is_in(&entry.name))
        });
        found.select(|column| self.go_to(column))
    }

    pub fn choices(&self, ground: &Ground, cx: &Cx<'_>) -> Vec<Choice> {
        let choice = |number, text: &str| Choice {
            text: text.to_owned(),
            number,
        };
        let mut choices = vec![
            choice(INCLUDE_ALL, "include all ranges of addresses"),
            choice(ONLY_ZONES, "include generated code only"),
        ];
        // A palette has no room for more, nor have the numbers.
        let numbers = FIRST_STRETCH..FIRST_STRETCH + MAX_CHOICES;
        for (stretch, number) in ground.addresses.stretches.iter().zip(numbers) {
            let name = names::of_stretch(stretch, &ground.lives, cx);
            let what = if self.includes(stretch.owner) {
                "leave out"
            } else {
                "include"
            };
            let share = percent(ratio(stretch.samples(), ground.addresses.total));
            choices.push(choice(number, &format!("{what} {name} ({share})")));
        }
        choices
    }

    pub fn shown(&self, ground: &Ground, cx: &Cx<'_>) -> Shown {
        let mut parts = Vec::new();
        let all = &ground.addresses;
        if let Some(columns) = self.columns.get() {
            let share = percent(ratio(columns.samples, all.total));
            let text = format!("{share} of {} samples", count(all.total));
            parts.push(Part::Text(vec![text]));
            let bars = || columns.bars.iter().flatten();
            let integral = columns.integral().into_iter().zip(&columns.bars);
            let line = integral.filter_map(|(share, bar)| bar.as_ref().map(|_| share));
            let labels = columns.pieces.iter().filter_map(|piece| {
                let stretch = all.stretches.get(piece.stretch)?;
                Some(names::of_stretch(stretch, &ground.lives, cx))
            });
            #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
            parts.push(Part::Chart(Chart::Histogram {
                title: "samples by address".to_owned(),
                axis: Axis {
                    name: "address".to_owned(),
                    labels: labels.collect(),
                },
                columns: bars().map(|bar| bar.samples as f64).collect(),
                line: line.collect(),
            }));
            let mut table = Table::new("", &["from", "to", ">samples", ">share", "most in"]);
            for bar in bars().filter(|bar| bar.samples > 0) {
                let top = bar.top.map_or_else(String::new, |(entry, _)| {
                    let entry = cx.profile.entries.get(entry as usize);
                    entry.map_or_else(String::new, |entry| entry.name.clone())
                });
                table.rows.push(vec![
                    Cell::Text(format!("{:#x}", bar.start)),
                    Cell::Text(format!("{:#x}", bar.end)),
                    Cell::Count(bar.samples),
                    Cell::Share(ratio(bar.samples, all.total)),
                    Cell::Text(top),
                ]);
            }
            parts.push(Part::Table(table));
        }
        let heads = [
            "range", "included", "from", "to", ">bytes", ">samples", ">share",
        ];
        let mut table = Table::new("", &heads);
        for stretch in &all.stretches {
            let included = if self.includes(stretch.owner) {
                "yes"
            } else {
                "no"
            };
            table.rows.push(vec![
                Cell::Text(names::of_stretch(stretch, &ground.lives, cx)),
                Cell::Text(included.to_owned()),
                Cell::Text(format!("{:#x}", stretch.start)),
                Cell::Text(format!("{:#x}", stretch.end)),
                Cell::Bytes(stretch.size()),
                Cell::Count(stretch.samples()),
                Cell::Share(ratio(stretch.samples(), all.total)),
            ]);
        }
        parts.push(Part::Table(table));
        Shown {
            title: "Samples by address".to_owned(),
            parts,
        }
    }
}

/// An address, or two as a range, in hexadecimal digits after `0x`.
fn range_of(text: &str) -> Option<(u64, Option<u64>)> {
    let hex = |text: &str| u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok();
    match text.split_once('-') {
        Some((low, high)) => Some((hex(low)?, hex(high))),
        None => Some((hex(text)?, None)),
    }
}
