//! Accuracy: limits with affected samples and remedies; tables of exactness by part, promised and
//! delivered samples, samples without a certain name.

pub(super) mod flow;
mod shown;
#[cfg(test)]
mod tests;

use super::empty::no_samples;
use super::{Act, Click, Cx, Find, Press, View, ViewId};
use crate::present::document::Document;
use crate::present::text::wrap;
use crate::queries::accuracy::{Accuracy, accuracy};
use crate::queries::truth::Concerns;
use crate::tui::filter_state::FilterChange;
use crate::tui::jobs::{Fetched, Question, QuestionId};
use crate::tui::keys::Command;
use crate::tui::theme::Role;
use crate::tui::widgets::pane::{Pane, beside};
use crate::tui::widgets::search::Search;
use flow::{Flowing, Item, limits, tables, text_of};
use ratatui::Frame;
use ratatui::layout::Rect;
use std::sync::Arc;
use vmscope_symbolizer::{Region, Stop};

/// Minimum width for tables beside the limits.
const WIDE: u16 = 150;

#[derive(Clone, Debug, Default)]
pub struct Truth {
    accuracy: Fetched<(), Accuracy>,
    /// Index in [`Truth::items`].
    selected: usize,
    search: Search,
}

/// Screen columns, each with its lines.
type Columns = Vec<(Rect, Vec<Flowing>)>;

/// First visible line: the selected item is in the middle of the screen, within the limits of
/// scrolling.
fn top(flow: &[Flowing], selected: Option<Item>, height: usize) -> usize {
    let is_here = |line: &Flowing| selected.is_some() && line.0 == selected;
    let Some(first) = flow.iter().position(is_here) else {
        return 0;
    };
    let lines = flow
        .iter()
        .skip(first)
        .take_while(|line| is_here(line))
        .count();
    let middle = first + lines / 2;
    middle
        .saturating_sub(height / 2)
        .min(flow.len().saturating_sub(height))
}

impl Truth {
    fn columns(&self, cx: &Cx<'_>, area: Rect) -> Columns {
        let Some(all) = self.accuracy.get() else {
            return Vec::new();
        };
        if area.width >= WIDE {
            let (left, right) = beside(area, area.width / 2);
            let lines = Self::lines(all, cx, left);
            let tables = tables(all, cx.theme, usize::from(right.width));
            return vec![(left, lines), (right, tables)];
        }
        let mut flow = Self::lines(all, cx, area);
        flow.extend(tables(all, cx.theme, usize::from(area.width)));
        vec![(area, flow)]
    }

    /// Limits, after a note about filters without samples.
    fn lines(all: &Accuracy, cx: &Cx<'_>, area: Rect) -> Vec<Flowing> {
        let width = usize::from(area.width);
        let lines = limits(all, cx.theme, width);
        if all.total > 0 || cx.filters.is_open() {
            return lines;
        }
        let text = wrap(&no_samples(cx), width.saturating_sub(2).max(1), 0);
        let said = text
            .lines()
            .map(|line| (None, vec![(Role::Strong, format!(" {line}"))]));
        said.chain(lines).collect()
    }

    /// Selectable items in order, independent of the width.
    fn items(&self) -> Vec<Item> {
        let Some(all) = self.accuracy.get() else {
            return Vec::new();
        };
        let lines = (0..all.lines.len()).map(Item::Line);
        let exact = (0..all.exact.len()).map(Item::Exact);
        let threads = (0..all.threads.len()).map(Item::Thread);
        let nameless = (0..all.nameless.len()).map(Item::Nameless);
        lines.chain(exact).chain(threads).chain(nameless).collect()
    }

    fn item(&self) -> Option<Item> {
        let items = self.items();
        let last = items.len().checked_sub(1)?;
        items.get(self.selected.min(last)).copied()
    }

    /// First item of each section, for Left and Right.
    fn sections(&self) -> Vec<usize> {
        let items = self.items();
        let kind = |item: &Item| std::mem::discriminant(item);
        let begins = items.iter().enumerate().filter(|(index, item)| {
            let before = index.checked_sub(1).and_then(|before| items.get(before));
            before.is_none_or(|before| kind(before) != kind(item))
        });
        begins.map(|(index, _)| index).collect()
    }

    fn text_of(&self, item: Item) -> Option<String> {
        Some(text_of(self.accuracy.get()?, item))
    }

    fn open(&self, cx: &Cx<'_>) -> Vec<Act> {
        let (Some(all), Some(item)) = (self.accuracy.get(), self.item()) else {
            return Vec::new();
        };
        let hot = |narrow: Vec<FilterChange>| {
            let mut acts: Vec<Act> = narrow.into_iter().map(Act::FilterChange).collect();
            acts.push(Act::Show(ViewId::Hot));
            acts
        };
        match item {
            Item::Line(index) => match all.lines.get(index).map(|line| line.concerns) {
                Some(Concerns::Window(from, to)) => {
                    // Losses at a single instant need a window that is not empty.
                    let to = to.plus(vmscope_records::DurationNs(1));
                    vec![Act::FilterChange(FilterChange::Window(Some((from, to))))]
                }
                Some(Concerns::Threads) => vec![Act::Show(ViewId::Threads)],
                Some(Concerns::Interpreter) => {
                    hot(vec![FilterChange::Regions(vec![Region::Interpreter])])
                }
                Some(Concerns::Everything) | None => {
                    let text = "this limit has no entries, threads or times to show";
                    vec![Act::Say(text.to_owned())]
                }
                Some(concerns) => {
                    let Some(summary) = cx.summary else {
                        return Vec::new();
                    };
                    let entries = concerns.entries(cx.profile, summary);
                    if entries.is_empty() {
                        return vec![Act::Say("no entries with such samples".to_owned())];
                    }
                    let mut acts = hot(vec![FilterChange::Entries(entries)]);
                    if matches!(concerns, Concerns::Worth(..)) {
                        let text = "entries with such samples; they may also have other samples";
                        acts.push(Act::Say(text.to_owned()));
                    }
                    acts
                }
            },
            Item::Thread(index) => {
                let row = all.threads.get(index);
                let only = row.map(|row| [row.thread].into_iter().collect());
                vec![Act::FilterChange(FilterChange::Threads(only))]
            }
            Item::Exact(index) => {
                let Some(row) = all.exact.get(index) else {
                    return Vec::new();
                };
                let mut narrow = vec![FilterChange::Regions(vec![row.region])];
                // Only tiers are filters; other parts are not.
                if cx
                    .profile
                    .entries
                    .iter()
                    .any(|entry| entry.tier == row.part)
                {
                    narrow.push(FilterChange::Tiers(vec![row.part.clone()]));
                }
                hot(narrow)
            }
            Item::Nameless(index) => all.nameless.get(index).map_or_else(Vec::new, |row| {
                hot(vec![FilterChange::Entries(vec![row.entry])])
            }),
        }
    }
}

impl View for Truth {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let last = self.items().len().saturating_sub(1);
        let now = self.selected.min(last);
        let page = usize::from(cx.area.height / 2).max(1);
        let to = match command {
            Command::Up => now.saturating_sub(1),
            Command::Down => now + 1,
            Command::PageUp | Command::HalfUp => now.saturating_sub(page),
            Command::PageDown | Command::HalfDown => now + page,
            Command::First => 0,
            Command::Last => last,
            Command::Left => {
                let sections = self.sections().into_iter().rev();
                sections.into_iter().find(|&at| at < now).unwrap_or(0)
            }
            Command::Right => {
                let mut sections = self.sections().into_iter();
                sections.find(|&at| at > now).unwrap_or(now)
            }
            Command::Open | Command::Only => return self.open(cx),
            _ => now,
        };
        self.selected = to.min(last);
        Vec::new()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        match click.what {
            Press::WheelUp => return self.act(Command::Up, cx),
            Press::WheelDown => return self.act(Command::Down, cx),
            Press::Drag | Press::Up => return Vec::new(),
            Press::Down | Press::Double => {}
        }
        let item = self.item();
        let columns = self.columns(cx, cx.area);
        let hit = columns.iter().find(|(area, _)| area.contains(click.at));
        let found = hit.and_then(|(area, flow)| {
            let line = usize::from(click.at.y - area.y);
            let top = top(flow, item, usize::from(area.height));
            flow.get(top + line)?.0
        });
        // The first click may have scrolled: a double click opens the selected item.
        if click.what == Press::Double {
            return self.open(cx);
        }
        let index = found.and_then(|found| self.items().iter().position(|one| *one == found));
        if let Some(index) = index {
            self.selected = index;
        }
        Vec::new()
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let Some(summary) = cx.summary.map(Arc::clone) else {
            return Vec::new();
        };
        let asked = self.accuracy.ask((), cx.summed, move |profile, stop| {
            accuracy(profile, &summary, stop)
        });
        asked.into_iter().collect()
    }

    fn answer(&mut self, ended: QuestionId, _cx: &Cx<'_>) {
        let was = self.item().and_then(|item| self.text_of(item));
        self.accuracy.take(ended);
        // The selection follows the item's text.
        let now = self.items();
        let found = now.iter().position(|&item| self.text_of(item) == was);
        self.selected = found.unwrap_or(self.selected.min(now.len().saturating_sub(1)));
    }

    fn find(&mut self, pattern: &str, find: Find, _cx: &Cx<'_>) -> bool {
        let (items, now) = (self.items(), self.selected);
        let all = self.accuracy.get();
        let found = (self.search).find(pattern, find, items.len(), now, |row, text| {
            let item = all.zip(items.get(row));
            item.is_some_and(|(all, item)| text.is_in(&text_of(all, *item)))
        });
        found.select(|row| self.selected = row)
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let item = self.item();
        for (area, flow) in self.columns(cx, area) {
            let height = usize::from(area.height);
            let pane = Pane {
                theme: cx.theme,
                area,
            };
            let lines = flow.iter().skip(top(&flow, item, height)).take(height);
            for (row, (of, bits)) in lines.enumerate() {
                pane.marked(frame, row, bits, of.is_some() && *of == item);
            }
        }
    }

    fn shown(&self, _cx: &Cx<'_>, _stop: &Stop) -> Option<Document> {
        Some(self.accuracy.get().map(shown::shown).unwrap_or_default())
    }

    fn is_pending(&self) -> bool {
        self.accuracy.is_pending()
    }
}
