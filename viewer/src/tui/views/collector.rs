//! The collector: its collections as a table and over time, its pauses as a distribution,
//! and what is inside the collection that is selected.

mod chart;
mod empty;
mod inside;
pub(super) mod pauses;
pub(super) mod rows;
mod shown;
#[cfg(test)]
mod tests;
mod told;

use super::empty::no_samples;
use super::timeline::lanes::processes;
use super::{Act, Choice, Click, Cx, Find, Press, View};
use crate::report::words::{brief, bytes_short, count, percent, ratio, some};
use crate::tui::jobs::{Answer, Fetched, Question};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::lens::Narrow;
use crate::tui::shown::Shown;
use crate::tui::theme::{Role, Theme};
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::pane::{Pane, below, beside};
use crate::tui::widgets::search::Search;
use crate::tui::widgets::table::{self, Col, Look, Piece};
use inside::{Inside, inside_of};
use ratatui::Frame;
use ratatui::layout::Rect;
use rows::{By, Collections, Key, Row, collections_of};
use std::sync::Arc;
use told::Told;
use vmscope_symbolizer::Region;

const CAUSE: usize = 3;
const BAR: usize = 12;

/// From so many columns on the chart has something beside it.
const WIDE: u16 = 110;

const COLUMNS: [Col; 9] = [
    Col::new("time", 9, true, 0),
    Col::new("duration", 9, true, 0),
    Col::new("kind", 10, false, 0),
    Col::new("cause", 14, false, 0),
    Col::new("collector", 12, false, 3),
    Col::new("before > after", 14, true, 1),
    Col::new("heap", BAR, false, 4),
    Col::new("samples", 8, true, 2),
    Col::new("in GC", 7, true, 0),
];

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Mode, &[ch('m')], "chart/pauses/inside", "above the table: the chart, the pauses, what is inside the selected one"),
    own(Command::Sort, &[ch('s')], "sort", "sort by the next column"),
    own(Command::Reverse, &[ch('S')], "", "the other way round"),
    own(Command::Earlier, &[ch(','), ch('<')], "", "the collection before in time; its window, where one is chosen"),
    own(Command::Later, &[ch('.'), ch('>')], "", "the collection after it in time; its window, where one is chosen"),
];

/// What is shown above the table where there is room for one thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Chart,
    Pauses,
    Inside,
}

/// The view.
#[derive(Debug, Default)]
pub struct Collector {
    by: By,
    reverse: bool,
    form: Form,
    /// Where there is no room above the table: that the part is there instead of it.
    instead: bool,
    list: ListState,
    selected: Option<Key>,
    all: Fetched<(By, bool), Collections>,
    inside: Fetched<Key, Inside>,
    search: Search,
}

/// Where the parts are.
struct Places {
    head: Rect,
    parts: Vec<(Form, Rect)>,
    /// Also where a part is there instead of it: what is selected stays so.
    table: Rect,
    /// Whether there is room for a part and the table.
    has_both: bool,
}

impl Collector {
    fn places(&self, area: Rect) -> Places {
        let has_sums = self.all.get().is_some_and(Collections::has_sums);
        let head = if has_sums { 3 } else { 2 };
        let (head, rest) = below(area, head.min(area.height));
        let top = match area.height {
            0..=15 => 0,
            16..=29 => 9,
            height => (height / 3).min(18),
        };
        let has_both = top > 0;
        if !has_both {
            let parts = self.instead.then_some((self.form, rest));
            return Places {
                head,
                parts: parts.into_iter().collect(),
                table: rest,
                has_both,
            };
        }
        let (top, rest) = below(rest, top);
        let mut parts = Vec::new();
        let mut table = rest;
        if area.width < WIDE {
            parts.push((self.form, top));
        } else {
            let (left, right) = beside(top, area.width * 11 / 20);
            parts.push((Form::Chart, left));
            if area.width >= 160 && rest.height > 16 {
                parts.push((Form::Pauses, right));
                let (left, right) = beside(rest, area.width * 13 / 20);
                table = left;
                parts.push((Form::Inside, right));
            } else {
                let form = match self.form {
                    Form::Inside => Form::Inside,
                    _ => Form::Pauses,
                };
                parts.push((form, right));
            }
        }
        parts.retain(|(_, area)| area.height > 0);
        Places {
            head,
            parts,
            table,
            has_both,
        }
    }

    fn rows(&self) -> &[Row] {
        self.all.get().map_or(&[], |all| all.rows.as_slice())
    }

    fn row(&self) -> Option<&Row> {
        self.rows().get(self.list.selected())
    }

    fn select(&mut self, index: usize, cx: &Cx<'_>) {
        let height = table::height(self.places(cx.area).table);
        self.list.select(index, self.rows().len(), height);
        self.selected = self.row().map(|row| row.key);
    }

    /// The collection's own time for all views.
    fn window_of(row: &Row) -> Vec<Act> {
        match row.span() {
            Some((from, to)) => vec![Act::Narrow(Narrow::Window(Some((from, to))))],
            None => {
                let text = format!(
                    "{} of this collection was observed: it has no window",
                    row.seen()
                );
                vec![Act::Say(text)]
            }
        }
    }

    /// Goes to the collection before or after the selected one in time. Where a window is
    /// chosen, other collections are not in the table, but they are in the trace.
    fn neighbour(&mut self, later: bool, cx: &Cx<'_>) -> Vec<Act> {
        let Some(row) = self.row().cloned() else {
            return Vec::new();
        };
        if cx.lens.window().is_some() {
            let processes = processes(cx.profile, cx.lens.filter());
            let spans = cx.profile.trace.collections.iter().filter(|one| {
                let processes = processes.as_ref();
                processes.is_none_or(|processes| processes.contains(&one.process))
            });
            let spans = spans.filter_map(|one| Some((one.begin?, one.end?, Row::key_of(one))));
            let spans = spans.filter(|(from, to, _)| from < to && *from <= cx.end);
            let next = if later {
                spans.filter(|one| one.0 > row.time).min_by_key(|one| one.0)
            } else {
                spans.filter(|one| one.0 < row.time).max_by_key(|one| one.0)
            };
            return match next {
                Some((from, to, key)) => {
                    self.selected = Some(key);
                    vec![Act::Narrow(Narrow::Window(Some((from, to))))]
                }
                None => vec![Act::Say("there is no further collection".to_owned())],
            };
        }
        let others = self.rows().iter().enumerate();
        let next = if later {
            others
                .filter(|(_, one)| one.time > row.time)
                .min_by_key(|(_, one)| one.time)
        } else {
            others
                .filter(|(_, one)| one.time < row.time)
                .max_by_key(|(_, one)| one.time)
        };
        if let Some((index, _)) = next {
            self.select(index, cx);
        }
        Vec::new()
    }

    fn head(cx: &Cx<'_>, all: &Collections, pane: &Pane<'_>, frame: &mut Frame<'_>) {
        let seen = count(all.rows.len() as u64);
        let counted = match all.counted {
            Some(counted) => {
                format!("{counted:.0} collections by the VM's count, {seen} seen")
            }
            None => format!("{seen} collections seen"),
        };
        let observed = format!(", {} whole", count(all.observed));
        let took = all.took.map_or_else(String::new, |ns| {
            let (from, to) = all.window;
            let elapsed = to.since(from).as_secs_f64().max(1e-9);
            format!(", {:.0} ms ({})", ns / 1e6, percent(ns / 1e9 / elapsed))
        });
        let of = if all.narrowed {
            ", of the whole process"
        } else {
            ""
        };
        pane.line(
            frame,
            0,
            &[
                (Role::Strong, format!(" {counted}{of}")),
                (Role::Text, format!("{observed}{took}")),
            ],
        );
        let parts = all.parts.iter().take(8);
        let parts = parts.map(|(name, samples)| format!("{name} {}", count(*samples)));
        let parts = parts.collect::<Vec<_>>().join(", ");
        if all.total == 0 {
            let text = format!(" {}", no_samples(cx));
            return pane.line(frame, 1, &[(Role::Dim, text)]);
        }
        let about = if all.cut > 0 { "~" } else { "" };
        let samples = format!(
            " {about}{} in the collector ({})",
            some(all.in_collector, "sample", "samples"),
            percent(ratio(all.in_collector, all.total))
        );
        pane.line(
            frame,
            1,
            &[
                (Role::Region(Region::Gc), samples),
                (Role::Dim, format!(": {parts}")),
            ],
        );
        if all.has_sums() {
            let text = " ~ ? older samples are known by sums over time, which reach beyond it";
            pane.line(frame, 2, &[(Role::Warning, text.to_owned())]);
        }
    }

    fn table(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.rows();
        let heap = rows
            .iter()
            .filter_map(|row| row.before.max(row.after))
            .max();
        let longest = rows.iter().filter_map(Row::length).max().unwrap_or(0);
        let sorted = match self.by {
            By::Time => 0,
            By::Duration | By::Seen => 1,
            By::Kind => 2,
            By::Cause => CAUSE,
            By::Collector => 4,
            By::Before | By::After => 5,
            By::Samples => 7,
            By::InCollector => 8,
        };
        let look = Look {
            theme: cx.theme,
            columns: &COLUMNS,
            stretch: CAUSE,
            sorted: Some((sorted, self.by.falls() == self.reverse)),
            rows: rows.len(),
            list: self.list,
        };
        table::draw(look, frame, area, |index| {
            let Some(row) = rows.get(index) else {
                return Vec::new();
            };
            let (duration, role) = match row.length() {
                Some(length) => (brief(length), Role::Heat(ratio(length, longest))),
                None => (row.seen().to_owned(), Role::Warning),
            };
            let or_blank = |told: Option<Told>| told.map_or_else(String::new, Told::words);
            let arrow = cx.theme.sign("→", ">");
            let told = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), bytes_short);
            let around = match (row.before, row.after) {
                (None, None) => String::new(),
                (before, after) => format!("{} {arrow} {:>5}", told(before), told(after)),
            };
            vec![
                Piece::text(format!("{:.3}", cx.seconds(row.time))),
                Piece::of(role, duration),
                Piece::text(row.kind.clone()),
                Piece::text(row.cause.clone()),
                Piece::of(Role::Dim, row.collector.clone()),
                Piece::text(around),
                Piece::of(Role::Region(Region::Gc), heap_bar(cx.theme, row, heap)),
                Piece::of(Role::Dim, or_blank(row.samples())),
                Piece::text(or_blank(row.in_collector())),
            ]
        });
    }
}

/// What is left of the heap, what was freed, and what was free before.
fn heap_bar(theme: &Theme, row: &Row, heap: Option<u64>) -> String {
    let Some((heap, after)) = heap.zip(row.after).filter(|(heap, _)| *heap > 0) else {
        return String::new();
    };
    let cells = |bytes: u64| {
        let cells = u128::from(bytes) * BAR as u128 / u128::from(heap);
        usize::try_from(cells).unwrap_or(BAR).min(BAR)
    };
    let left = cells(after).max(usize::from(after > 0));
    let freed = cells(row.before.unwrap_or(after)).saturating_sub(left);
    let (full, freed_sign) = (theme.sign("█", "#"), theme.sign("░", "-"));
    format!("{}{}", full.repeat(left), freed_sign.repeat(freed))
}

impl View for Collector {
    fn bindings(&self) -> &'static [Binding] {
        BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let height = table::height(self.places(cx.area).table);
        let rows = self.rows().len();
        if self.list.act(command, rows, height) {
            self.selected = self.row().map(|row| row.key);
            return Vec::new();
        }
        match command {
            Command::Open | Command::Only => self.row().map_or_else(Vec::new, Self::window_of),
            Command::Mode => {
                let has_both = self.places(cx.area).has_both;
                if !has_both && !self.instead {
                    self.instead = true;
                    return Vec::new();
                }
                // The table comes after the last part.
                self.instead = !has_both && self.form != Form::Inside;
                // Where the chart is always there, it has no turn.
                let both = has_both && cx.area.width >= WIDE;
                self.form = match self.form {
                    Form::Chart if both => Form::Inside,
                    Form::Inside if both => Form::Pauses,
                    Form::Chart => Form::Pauses,
                    Form::Pauses => Form::Inside,
                    Form::Inside => Form::Chart,
                };
                Vec::new()
            }
            Command::Sort => {
                let now = By::ALL.iter().position(|by| *by == self.by).unwrap_or(0);
                self.by = By::ALL.get(now + 1).copied().unwrap_or_default();
                Vec::new()
            }
            Command::Own(number) => {
                let by = By::ALL.get(usize::from(number));
                self.by = by.copied().unwrap_or(self.by);
                Vec::new()
            }
            Command::Reverse => {
                self.reverse = !self.reverse;
                Vec::new()
            }
            Command::Earlier => self.neighbour(false, cx),
            Command::Later => self.neighbour(true, cx),
            _ => Vec::new(),
        }
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let places = self.places(cx.area);
        let on_chart = places
            .parts
            .iter()
            .find(|(_, area)| area.contains(click.at));
        if let Some(&(Form::Chart, area)) = on_chart
            && matches!(click.what, Press::Down | Press::Double)
        {
            let theme = cx.theme;
            let all = self.all.get();
            let near = all.and_then(|all| chart::at(all, &Pane { theme, area }, click.at.x));
            let index = near.and_then(|key| self.rows().iter().position(|row| row.key == key));
            if let Some(index) = index {
                self.select(index, cx);
            }
        } else {
            let (rows, height) = (self.rows().len(), table::height(places.table));
            let is_wheel = matches!(click.what, Press::WheelUp | Press::WheelDown);
            let line = click.at.y.checked_sub(places.table.y + 1);
            let is_hidden = !places.has_both && self.instead;
            let is_out = line.is_none() || !places.table.contains(click.at);
            if !is_wheel && (is_hidden || is_out) {
                return Vec::new();
            }
            let line = usize::from(line.unwrap_or(0));
            let is_row = self.list.press(click.what, line, rows, height);
            self.selected = self.row().map(|row| row.key);
            if !is_row {
                return Vec::new();
            }
        }
        if click.what == Press::Double {
            return self.act(Command::Open, cx);
        }
        Vec::new()
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        let mut questions = Vec::new();
        let filter = cx.lens.filter().clone();
        // Asked anew when there is another summary, and not before that is of these filters.
        let summary = cx.summary.filter(|_| cx.summed.lens == cx.stamp.lens);
        if let Some(summary) = summary.map(Arc::clone) {
            let (filter, order) = (filter.clone(), (self.by, self.reverse));
            let window = cx.window();
            questions.extend(self.all.ask(0, order, cx.summed, move |profile, stop| {
                let mut all = collections_of(profile, &filter, &summary, order, stop)?;
                all.window = window;
                Some(all)
            }));
        }
        if let Some(key) = self.row().map(|row| row.key) {
            questions.extend(self.inside.ask(1, key, cx.stamp, move |profile, stop| {
                inside_of(profile, &filter, key, stop)
            }));
        }
        questions
    }

    fn answer(&mut self, number: u8, answer: Option<Answer>, cx: &Cx<'_>) {
        if number == 1 {
            return self.inside.take(answer);
        }
        self.all.take(answer);
        let found = self
            .rows()
            .iter()
            .position(|row| Some(row.key) == self.selected);
        let height = table::height(self.places(cx.area).table);
        self.list.keep(found, self.rows().len(), height);
        self.selected = self.row().map(|row| row.key);
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        let rows = self.all.get().map_or(&[][..], |all| &all.rows);
        let now = self.list.selected();
        let found = (self.search).find(pattern, find, rows.len(), now, |row, text| {
            let row = rows.get(row);
            row.is_some_and(|row| text.is_in_words(&[&row.kind, &row.cause, &row.collector]))
        });
        found.select(|row| self.select(row, cx))
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let Some(all) = self.all.get() else {
            return;
        };
        let theme = cx.theme;
        if all.rows.is_empty() {
            return empty::draw(cx, all, &Pane { theme, area }, frame);
        }
        let places = self.places(area);
        let head = Pane {
            theme,
            area: places.head,
        };
        Self::head(cx, all, &head, frame);
        for (form, area) in places.parts {
            let pane = Pane { theme, area };
            match form {
                Form::Chart => chart::draw(cx, all, self.row().map(|row| row.key), &pane, frame),
                Form::Pauses => pauses::draw(all, &pane, frame),
                Form::Inside => inside::draw(cx, self.row(), self.inside.get(), &pane, frame),
            }
        }
        if places.has_both || !self.instead {
            self.table(cx, frame, places.table);
        }
    }

    fn shown(&self, cx: &Cx<'_>) -> Shown {
        let all = self.all.get().cloned().unwrap_or_default();
        shown::shown(cx, &all, self.row(), self.inside.get())
    }

    fn choices(&self, _cx: &Cx<'_>) -> Vec<Choice> {
        let choices = By::ALL.into_iter().zip(0..).map(|(by, number)| Choice {
            text: format!("sort by {}", by.name()),
            number,
        });
        choices.collect()
    }

    fn crumb(&self, _cx: &Cx<'_>) -> String {
        match (self.by, self.reverse) {
            (By::Time, false) => String::new(),
            (by, false) => format!("by {}", by.name()),
            (by, true) => format!("by {}, reversed", by.name()),
        }
    }

    fn is_pending(&self) -> bool {
        self.all.is_pending() || self.inside.is_pending()
    }
}
