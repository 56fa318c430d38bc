//! Documents on lifetimes as views: what objects cost the collector, and how long they live. Lines on
//! top, one of the document's tables below them, and all figures of the selected row at the bottom.

mod page;
#[cfg(test)]
mod tests;

use super::empty::say;
use super::{Act, Choice, Click, Cx, Find, View};
use crate::lifetimes::{By, HOW, Loaded, Wanted, collector, has_any, objects};
use crate::present::document::{Document, Part, Table as Shown, Value};
use crate::present::encode::short_cell;
use crate::present::numbers::some;
use crate::present::text::{width, wrap};
use crate::queries::method::entry_named_in;
use crate::tui::filter_state::FilterChange;
use crate::tui::jobs::{Fetched, Question, QuestionId, Stamp};
use crate::tui::keys::{Binding, Command, ch, own};
use crate::tui::theme::Role;
use crate::tui::widgets::data_table::{Clicked, DataTable};
use crate::tui::widgets::pane::{Bit, Pane, below};
use page::Page;
use ratatui::Frame;
use ratatui::layout::Rect;
use vmscope_symbolizer::lifetimes::groups::Thresholds;
use vmscope_symbolizer::{EntryId, Stop};

#[rustfmt::skip]
const BINDINGS: &[Binding] = &[
    own(Command::Mode, &[ch('m')], "table", "next table of this view"),
    own(Command::Group, &[ch('b')], "group", "next grouping: site, method, class, class and site"),
    own(Command::GroupBack, &[ch('B')], "", "previous grouping"),
    own(Command::Sort, &[ch('s')], "sort", "sort by the next column"),
    own(Command::Reverse, &[ch('S')], "", "reverse the sort order"),
];

/// Groupings in the order of key presses.
const GROUPINGS: [By; 4] = [By::Site, By::Method, By::Class, By::ClassAndSite];

/// Number of the first palette line that sorts, behind the groupings.
const SORT: u16 = 4;

/// Maximum number of rows for groups of the collector's time.
const ROWS: usize = 10_000;

/// Minimum height of the view for the selected row's figures.
const DETAIL_FROM: u16 = 14;

/// Lines of the selected row's figures.
const DETAIL: u16 = 3;

/// What a view shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Costs,
    Lifetimes,
}

impl Subject {
    fn document(self, loaded: &Loaded<'_>, by: By) -> Document {
        let wanted = Wanted {
            rows: ROWS,
            // All groups: a table can be searched.
            thresholds: Thresholds {
                most_allocated: 0.0,
                ..Thresholds::default()
            },
            ..Wanted::new(by)
        };
        match self {
            Subject::Costs => collector::document(loaded, &wanted),
            Subject::Lifetimes => objects::document(loaded, &wanted),
        }
    }
}

/// A document, with the widths of its tables' columns.
#[derive(Debug)]
struct Answer {
    document: Document,
    /// By table, then by column.
    widths: Vec<Vec<usize>>,
    /// The grouping's noun, which heads the names of groups.
    by: &'static str,
}

impl Answer {
    fn of(document: Document, by: &'static str) -> Self {
        Answer {
            widths: tables(&document).map(page::widths).collect(),
            document,
            by,
        }
    }

    fn lines(&self) -> impl Iterator<Item = &String> {
        let texts = self.document.parts.iter().filter_map(|part| match part {
            Part::Text(lines) => Some(lines),
            Part::Table(_) | Part::Chart(_) => None,
        });
        texts.flatten()
    }

    /// A table, by number.
    fn page(&self, at: usize) -> Option<Page<'_>> {
        Some(Page {
            table: tables(&self.document).nth(at)?,
            widths: self.widths.get(at)?,
        })
    }

    /// The number of the first table about groups.
    fn first(&self) -> usize {
        let is_of_groups = |table: &Shown| {
            let first = table.columns.first();
            first.is_some_and(|column| column.name == self.by)
        };
        tables(&self.document).position(is_of_groups).unwrap_or(0)
    }
}

fn tables(document: &Document) -> impl Iterator<Item = &Shown> {
    document.parts.iter().filter_map(|part| match part {
        Part::Table(table) => Some(table),
        Part::Text(_) | Part::Chart(_) => None,
    })
}

type Table = DataTable<usize, usize>;

/// The view.
#[derive(Clone, Debug)]
pub struct Documents {
    subject: Subject,
    /// Index in [`GROUPINGS`].
    grouping: usize,
    /// Number of the chosen table; `None` for the first about groups.
    at: Option<usize>,
    table: Table,
    answer: Fetched<usize, Result<Answer, String>>,
}

/// Areas.
struct Places {
    lines: Vec<Vec<Bit>>,
    head: Rect,
    title: Rect,
    table: Rect,
    detail: Rect,
}

impl Documents {
    pub fn new(subject: Subject) -> Self {
        Documents {
            subject,
            grouping: 0,
            at: None,
            table: Table::default(),
            answer: Fetched::default(),
        }
    }

    fn answered(&self) -> Option<&Answer> {
        self.answer.get()?.as_ref().ok()
    }

    fn at(&self, answer: &Answer) -> usize {
        self.at.unwrap_or_else(|| answer.first())
    }

    fn page(&self) -> Option<Page<'_>> {
        let answer = self.answered()?;
        answer.page(self.at(answer))
    }

    fn places(&self, cx: &Cx<'_>, area: Rect) -> Places {
        let columns = usize::from(area.width).saturating_sub(2).max(20);
        let mut lines: Vec<Vec<Bit>> = Vec::new();
        if !cx.filters.kinds().is_empty() {
            let text = " Filters do not apply here: lifetimes are of the whole recording";
            lines.push(vec![(Role::Warning, text.to_owned())]);
        }
        for line in self.answered().into_iter().flat_map(Answer::lines) {
            let wrapped = wrap(line, columns, 2);
            lines.extend(
                wrapped
                    .lines()
                    .map(|line| vec![(Role::Text, format!(" {line}"))]),
            );
        }
        let most = usize::from(area.height / 3);
        if lines.len() > most {
            let more = lines.len() - most.saturating_sub(1);
            lines.truncate(most.saturating_sub(1));
            let more = some(more as u64, "more line", "more lines");
            lines.push(vec![(Role::Dim, format!(" {more} (y copies all)"))]);
        }
        let (head, rest) = below(area, u16::try_from(lines.len()).unwrap_or(0));
        let (title, rest) = below(rest, 1);
        let detail = if area.height < DETAIL_FROM { 0 } else { DETAIL };
        let (table, detail) = below(rest, rest.height.saturating_sub(detail));
        Places {
            lines,
            head,
            title,
            table,
            detail,
        }
    }

    /// Calls the table with data and height; `None` before the first answer.
    fn with_table<T>(
        &mut self,
        cx: &Cx<'_>,
        call: impl FnOnce(&mut Table, &Page<'_>, usize) -> T,
    ) -> Option<T> {
        let height = Table::height(self.places(cx, cx.area).table);
        let mut table = std::mem::take(&mut self.table);
        let result = self.page().map(|page| call(&mut table, &page, height));
        self.table = table;
        result
    }

    fn group_by(&mut self, grouping: usize) {
        self.grouping = grouping % GROUPINGS.len();
    }

    fn next_table(&mut self, cx: &Cx<'_>) {
        let next = self.answered().map(|answer| {
            let count = answer.widths.len().max(1);
            (self.at(answer) + 1) % count
        });
        self.at = next.or(self.at);
        self.table = Table::default();
        self.with_table(cx, |table, page, height| table.arrange(page, height));
    }

    /// Acts on the method that the selected row names.
    fn on_method(&self, cx: &Cx<'_>, act: impl Fn(EntryId) -> Act) -> Vec<Act> {
        let row = self.table.selected().zip(self.page());
        let name = row.and_then(|(row, page)| page.table.rows.get(row)?.first());
        let Some(Value::Text(name)) = name else {
            return Vec::new();
        };
        let entry = entry_named_in(name, cx.profile, cx.summary.map(AsRef::as_ref));
        let none = "no method with samples is named in this row (b groups by site or method)";
        vec![entry.map_or_else(|| Act::Say(none.to_owned()), act)]
    }

    /// All figures of the selected row.
    fn detail(&self, columns: usize) -> Vec<Vec<Bit>> {
        let row = self.table.selected().zip(self.page());
        let Some((row, page)) = row else {
            return Vec::new();
        };
        let cells = page.table.rows.get(row).into_iter().flatten();
        let mut cells = page.table.columns.iter().zip(cells);
        let name = cells
            .next()
            .map_or_else(String::new, |(_, name)| short_cell(name));
        let mut lines = vec![vec![(Role::Strong, format!(" {name}"))]];
        let mut line = String::new();
        for (column, value) in cells.filter(|(_, value)| **value != Value::Empty) {
            let text = format!(" {}: {};", column.name, short_cell(value));
            if !line.is_empty() && width(&line) + width(&text) > columns {
                lines.push(vec![(Role::Dim, std::mem::take(&mut line))]);
            }
            line.push_str(&text);
        }
        line.pop();
        lines.push(vec![(Role::Dim, line)]);
        lines
    }
}

/// Why there is nothing to show; `None` for a recording with lifetimes.
fn missing(cx: &Cx<'_>) -> Option<String> {
    if !cx.lifetimes.has_source() {
        let text = "Lifetimes of objects are shown after the recording: W saves it, `vmscope view` \
                    opens it.";
        return Some(text.to_owned());
    }
    let is_empty = cx.profile.trace.classes.is_empty();
    is_empty.then(none)
}

fn none() -> String {
    format!("This recording has no lifetimes of objects.\n\n{HOW}")
}

impl View for Documents {
    fn copied(&self) -> Box<dyn View> {
        Box::new(self.clone())
    }

    fn bindings(&self) -> &'static [Binding] {
        BINDINGS
    }

    fn act(&mut self, command: Command, cx: &Cx<'_>) -> Vec<Act> {
        let is_done = self.with_table(cx, |table, page, height| table.act(command, page, height));
        if is_done == Some(true) {
            return Vec::new();
        }
        match command {
            Command::Open => return self.on_method(cx, Act::Annotate),
            Command::Only => {
                let only = |entry| Act::FilterChange(FilterChange::Entries(vec![entry]));
                return self.on_method(cx, only);
            }
            Command::Mode => self.next_table(cx),
            Command::Group => self.group_by(self.grouping + 1),
            Command::GroupBack => self.group_by(self.grouping + GROUPINGS.len() - 1),
            Command::Own(line) => match usize::from(line) {
                grouping if grouping < GROUPINGS.len() => self.group_by(grouping),
                _ => {
                    let line = line - SORT;
                    self.with_table(cx, |table, page, height| table.choose(page, line, height));
                }
            },
            _ => {}
        }
        Vec::new()
    }

    fn click(&mut self, click: Click, cx: &Cx<'_>) -> Vec<Act> {
        let area = self.places(cx, cx.area).table;
        match self.with_table(cx, |table, page, _| table.click(click, page, area)) {
            Some(Clicked::Row { twice: true, .. }) => self.act(Command::Open, cx),
            _ => Vec::new(),
        }
    }

    fn questions(&mut self, cx: &Cx<'_>) -> Vec<Question> {
        if missing(cx).is_some() {
            return Vec::new();
        }
        let stamp = Stamp {
            filters: 0,
            ..cx.stamp
        };
        let (subject, by, cache) = (self.subject, GROUPINGS[self.grouping], cx.lifetimes.clone());
        let asked = self.answer.ask(self.grouping, stamp, move |profile, stop| {
            let lifetimes = match cache.get(&profile.trace, stop)? {
                Ok(lifetimes) => lifetimes,
                Err(why) => return Some(Err(why)),
            };
            if !has_any(&lifetimes) {
                return Some(Err(none()));
            }
            let loaded = Loaded {
                trace: &profile.trace,
                lifetimes: &lifetimes,
            };
            let document = (!stop.is_stopped()).then(|| subject.document(&loaded, by))?;
            Some(Ok(Answer::of(document, Wanted::new(by).by)))
        });
        asked.into_iter().collect()
    }

    fn answer(&mut self, ended: QuestionId, cx: &Cx<'_>) {
        if self.answer.take(ended) {
            // Another grouping has other rows and columns.
            self.table = Table::default();
            self.with_table(cx, |table, page, height| table.arrange(page, height));
        }
    }

    fn find(&mut self, pattern: &str, find: Find, cx: &Cx<'_>) -> bool {
        let found = self.with_table(cx, |table, page, height| {
            table.find(pattern, find, page, height)
        });
        found == Some(true)
    }

    fn draw(&self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        if let Some(why) = missing(cx) {
            return say(&why, cx, frame, area);
        }
        let answer = match self.answer.get() {
            None => return say("Reading lifetimes ...", cx, frame, area),
            Some(Err(why)) => return say(why, cx, frame, area),
            Some(Ok(answer)) => answer,
        };
        let theme = cx.theme;
        let places = self.places(cx, area);
        let mut draw = |lines: &[Vec<Bit>], area| {
            let pane = Pane { theme, area };
            let lines = lines.iter().enumerate();
            lines.for_each(|(row, line)| pane.line(frame, row, line));
        };
        draw(&places.lines, places.head);
        let Some(page) = self.page() else {
            return;
        };
        let (at, count) = (self.at(answer) + 1, answer.widths.len());
        let title = vec![
            (Role::Title, format!(" {}", page.table.title)),
            (Role::Dim, format!("  (table {at} of {count})")),
        ];
        draw(&[title], places.title);
        let columns = usize::from(area.width);
        draw(&self.detail(columns), places.detail);
        self.table.draw(&page, theme, frame, places.table);
    }

    fn shown(&self, _cx: &Cx<'_>, _stop: &Stop) -> Option<Document> {
        let Some(answer) = self.answered() else {
            return Some(Document::default());
        };
        let mut document = answer.document.clone();
        let mut tables = document.parts.iter_mut().filter_map(|part| match part {
            Part::Table(table) => Some(table),
            Part::Text(_) | Part::Chart(_) => None,
        });
        // The table on the screen keeps its order.
        if let (Some(table), Some(page)) = (tables.nth(self.at(answer)), self.page()) {
            let rows = self.table.visible();
            table.rows = rows
                .filter_map(|row| page.table.rows.get(row).cloned())
                .collect();
        }
        Some(document)
    }

    fn choices(&self, _cx: &Cx<'_>) -> Vec<Choice> {
        let choice = |(by, number): (By, u16)| Choice {
            text: format!("group by {}", Wanted::new(by).by),
            number,
        };
        let mut choices: Vec<Choice> = GROUPINGS.into_iter().zip(0..).map(choice).collect();
        if let Some(page) = self.page() {
            choices.extend(Table::choices(&page, SORT));
        }
        choices
    }

    fn crumb(&self, _cx: &Cx<'_>) -> String {
        let by = format!("by {}", Wanted::new(GROUPINGS[self.grouping]).by);
        let sorted = self.page().map(|page| self.table.crumb(&page));
        match sorted.filter(|sorted| !sorted.is_empty()) {
            Some(sorted) => format!("{by}, {sorted}"),
            None => by,
        }
    }

    fn is_pending(&self) -> bool {
        self.answer.is_pending()
    }
}
