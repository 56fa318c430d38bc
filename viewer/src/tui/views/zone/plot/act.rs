//! The plot as a pane: keys, mouse, search, palette.

use super::{ALL, Plot};
use crate::present::document::Document;
use crate::present::numbers::{percent, ratio};
use crate::queries::address_columns::{Columns, Wanted};
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::filter_state::FilterChange;
use crate::tui::jobs::{Question, QuestionId, Stamp};
use crate::tui::keys::Command;
use crate::tui::views::zone::pane::{HOT, MAX_CHOICES, Pane};
use crate::tui::views::zone::ranges::{Ranges, Table};
use crate::tui::views::zone::{names, plot_drawn};
use crate::tui::views::{Act, Choice, Click, Cx, Find, Press};
use crate::tui::widgets::data_table::Clicked;
use ratatui::Frame;
use ratatui::layout::Rect;
use vmscope_symbolizer::Stop;
use vmscope_symbolizer::addresses::Owner;

const INCLUDE_ALL: u16 = 0;
const ONLY_ZONES: u16 = 1;
const FIRST_SORT: u16 = 2;
const FIRST_STRETCH: u16 = 10;

impl Plot {
    fn toggle(&mut self, owner: Owner, ground: &ZoneSamples) -> Vec<Act> {
        if let Some(at) = self.left_out.iter().position(|out| *out == owner) {
            self.left_out.swap_remove(at);
        } else {
            let others = ground.addresses.stretches.iter();
            let mut others = others.filter(|one| one.owner != owner && self.includes(one.owner));
            if others.next().is_none() {
                return vec![Act::Say("at least one range must stay included".to_owned())];
            }
            self.left_out.push(owner);
        }
        Vec::new()
    }

    /// Selects a range, and moves the cursor to its hottest column.
    fn list(&mut self, ground: &ZoneSamples, to: usize) {
        let Some(stretch) = ground.addresses.stretches.get(to) else {
            return;
        };
        let hottest = self.columns().and_then(|columns| {
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

    /// Calls the list with its data and its height.
    fn in_list<T>(
        &self,
        samples: &ZoneSamples,
        cx: &Cx<'_>,
        call: impl FnOnce(&mut Table, &Ranges<'_>, usize) -> T,
    ) -> (Table, T) {
        let ranges = Ranges {
            plot: self,
            samples,
            cx,
        };
        let height = plot_drawn::list(cx.area).map_or(1, Table::height);
        let mut table = self.table(&ranges, height);
        let result = call(&mut table, &ranges, height);
        (table, result)
    }

    /// Moves to the nearest column with a bar.
    fn nearest(&mut self, column: usize) {
        let Some(columns) = self.columns() else {
            return;
        };
        let has_bar = |at: &usize| columns.bars.get(*at).is_some_and(Option::is_some);
        let all = (0..columns.bars.len()).filter(has_bar);
        if let Some(nearest) = all.min_by_key(|at| at.abs_diff(column)) {
            self.go_to(nearest);
        }
    }
}

impl Pane for Plot {
    fn crumb(&self) -> &'static str {
        "by address"
    }

    fn missing(&self) -> (&'static [Command], &'static str) {
        (
            &[Command::Sort, Command::Group, Command::GroupBack],
            "this key is for the map: m shows it",
        )
    }

    fn act(&mut self, command: Command, ground: &ZoneSamples, cx: &Cx<'_>) -> Vec<Act> {
        let most = self.columns().map_or(0, Columns::most);
        let width = self.columns().map_or(0, |columns| columns.bars.len());
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
            Command::Up | Command::Down => {
                let (table, _) = self.in_list(ground, cx, |table, ranges, height| {
                    table.act(command, ranges, height)
                });
                if let Some(row) = table.selected() {
                    self.list(ground, row);
                }
            }
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
                    None => vec![Act::Say("no samples in this column".to_owned())],
                };
            }
            Command::Only => {
                return match self.entry() {
                    Some(entry) => vec![Act::FilterChange(FilterChange::Entries(vec![entry]))],
                    None => vec![Act::Say("no samples in this column".to_owned())],
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
            Command::Own(number) if number < FIRST_STRETCH => {
                let (table, ()) = self.in_list(ground, cx, |table, ranges, height| {
                    table.choose(ranges, number.saturating_sub(FIRST_SORT), height);
                });
                self.table = table;
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

    fn zoom_back(&mut self) -> bool {
        self.mark = None;
        let whole = self.is_zoomed().then_some(ALL);
        let Some(range) = self.before.pop().or(whole) else {
            return false;
        };
        self.after.push(self.range);
        self.range = range;
        true
    }

    fn zoom_forward(&mut self) -> bool {
        let Some(range) = self.after.pop() else {
            return false;
        };
        self.before.push(self.range);
        self.range = range;
        true
    }

    fn click(&mut self, click: Click, ground: &ZoneSamples, cx: &Cx<'_>) -> Vec<Act> {
        match plot_drawn::hit(click.at, cx.area) {
            plot_drawn::Hit::Column(column) => match click.what {
                Press::Down => {
                    self.mark = None;
                    self.dragged = false;
                    self.nearest(column);
                }
                Press::Double => return self.act(Command::Open, ground, cx),
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
            plot_drawn::Hit::Ranges(area) => {
                let (table, clicked) = self.in_list(ground, cx, |table, ranges, _| {
                    table.click(click, ranges, area)
                });
                let row = table.selected();
                self.table = table;
                if let (Clicked::Row { twice, .. }, Some(row)) = (clicked, row) {
                    self.list(ground, row);
                    if twice {
                        return self.act(Command::Toggle, ground, cx);
                    }
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn ask(&mut self, ground: &ZoneSamples, cx: &Cx<'_>) -> Option<Question> {
        let wanted = Wanted {
            ground: ground.number,
            left_out: self.left_out.clone(),
            range: self.range,
            width: plot_drawn::width(cx.area),
        };
        let ground = ground.clone();
        let key = wanted.clone();
        // The sample number identifies the input; a filter stamp would be outdated.
        let stamp = Stamp::default();
        self.fetched.ask(key, stamp, move |_, stop| {
            let columns = Columns::of(&ground.addresses, &wanted, stop)?;
            Some((ground, columns))
        })
    }

    fn take(&mut self, ended: QuestionId) {
        self.fetched.take(ended);
    }

    fn is_pending(&self) -> bool {
        self.fetched.is_pending()
    }

    fn samples(&self) -> Option<&ZoneSamples> {
        self.fetched.get().map(|(samples, _)| samples)
    }

    fn find(&mut self, pattern: &str, find: Find, _ground: &ZoneSamples, cx: &Cx<'_>) -> bool {
        if let Some((low, high)) = range_of(pattern) {
            let Some(columns) = self.columns() else {
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
        let now = self.cursor().unwrap_or(0);
        let columns = self.fetched.get().map(|(_, columns)| columns);
        let bars = columns.map_or(&[][..], |columns| &columns.bars);
        let found = (self.search).find(pattern, find, bars.len(), now, |at, text| {
            let bar = bars.get(at).and_then(Option::as_ref);
            let entry = bar.and_then(|bar| bar.top);
            let entry = entry.map(|(entry, _)| &cx.profile.entries[entry]);
            entry.is_some_and(|entry| text.is_in(&entry.name))
        });
        found.select(|column| self.go_to(column))
    }

    fn draw(&self, ground: &ZoneSamples, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        self.draw_plot(ground, cx, frame, area);
    }

    fn shown(&self, ground: &ZoneSamples, cx: &Cx<'_>, stop: &Stop) -> Option<Document> {
        self.document(ground, cx, stop)
    }

    fn choices(&self, ground: &ZoneSamples, cx: &Cx<'_>) -> Vec<Choice> {
        let choice = |number, text: &str| Choice {
            text: text.to_owned(),
            number,
        };
        let mut choices = vec![
            choice(INCLUDE_ALL, "include all ranges of addresses"),
            choice(ONLY_ZONES, "include JIT code only"),
        ];
        let ranges = Ranges {
            plot: self,
            samples: ground,
            cx,
        };
        choices.extend(Table::choices(&ranges, FIRST_SORT));
        // Palette length and choice numbers are limited.
        let numbers = FIRST_STRETCH..FIRST_STRETCH + MAX_CHOICES;
        for (stretch, number) in ground.addresses.stretches.iter().zip(numbers) {
            let name = names::of_stretch(stretch, &ground.layout.residencies, cx);
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
}

/// Address, or range of two addresses, hexadecimal after `0x`.
fn range_of(text: &str) -> Option<(u64, Option<u64>)> {
    let hex = |text: &str| u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok();
    match text.split_once('-') {
        Some((low, high)) => Some((hex(low)?, hex(high))),
        None => Some((hex(text)?, None)),
    }
}
