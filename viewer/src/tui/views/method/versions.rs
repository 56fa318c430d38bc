//! Versions of a method: one-line strip, or pane on wide screens.

use crate::present::document::Value;
use crate::present::numbers::{count, ratio, some};
use crate::present::text::{self, width};
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::data_table::{Column, DataTable, Piece, Room, Rows};
use crate::tui::widgets::search::Finder;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use vmscope_records::TimeNs;
use vmscope_symbolizer::annotate::{Origin, Version};

/// Width of the pane.
pub const PANE: u16 = 46;

const NAME: usize = 0;
const WHOLE_NAME: usize = 1;
const FROM: usize = 2;
const TO: usize = 3;
const BYTES: usize = 4;
const SAMPLES: usize = 5;

/// Table of the pane: row 0 stands for all versions together, row n for version n - 1.
pub type Table = DataTable<usize, Option<Origin>>;

/// Versions, with the shown selection.
#[derive(Clone, Copy)]
pub struct Versions<'a> {
    /// State of the program.
    pub cx: Cx<'a>,
    pub all: &'a [Version],
    /// The version shown alone; `None` for all together.
    pub chosen: Option<Origin>,
    /// Whether counts cover the newest samples only.
    pub are_newest: bool,
    /// The first two versions side by side; keys change the second.
    pub pair: Option<(Origin, Origin)>,
}

/// Name of a version.
pub fn name(version: &Version) -> &str {
    match version.origin {
        Origin::Interpreted => "interpreted",
        Origin::Elsewhere => "inlined",
        Origin::Code(_) if version.tier.is_empty() => "compiled",
        Origin::Code(_) => &version.tier,
    }
}

/// Short label of a version.
pub fn short(version: &Version) -> String {
    format!("{} {}", name(version), count(version.samples))
}

impl<'a> Versions<'a> {
    /// Label of a version: name, residency (`0.8-3.1 s`), size, samples.
    pub fn label(self, version: &Version) -> String {
        let mut parts = vec![name(version).to_owned()];
        let seconds = |time| format!("{:.1}", self.cx.seconds(time));
        if let Some(since) = version.since {
            let end = version.gone.map_or_else(String::new, seconds);
            parts.push(format!("{}-{end} s", seconds(since)));
        }
        if let Some(bytes) = version.bytes {
            parts.push(format!("{} B", count(bytes)));
        }
        parts.push(some(version.samples, "sample", "samples"));
        if version.gone.is_some() {
            parts.push("(gone)".to_owned());
        }
        parts.join(" ")
    }

    /// Label of the version of an origin; empty for an unknown one.
    pub fn label_of(self, origin: Origin) -> String {
        let version = self.of(origin);
        version.map_or_else(String::new, |version| self.label(version))
    }

    /// Whether there are several versions.
    pub fn is_several(self) -> bool {
        self.all.len() > 1
    }

    /// Reason why no shown version has machine code.
    pub fn why_no_machine(self) -> &'static str {
        let mut shown = (self.all.iter()).filter(|version| {
            let origin = Some(version.origin);
            self.chosen.is_none() || origin == self.chosen
        });
        let is_code = |version: &Version| matches!(version.origin, Origin::Code(_));
        if shown.clone().any(is_code) {
            return "the VM reported no machine code for these lines";
        }
        if shown
            .clone()
            .any(|version| version.origin == Origin::Elsewhere)
        {
            return "the method ran inlined only: its machine code is in its callers";
        }
        match shown.next() {
            Some(_) => "the method was interpreted only: no machine code",
            None => "vmscope shows machine code of JIT code only",
        }
    }

    /// The next or previous version; behind the last, all together.
    pub fn step(self, later: bool) -> Option<Origin> {
        let origin = |at: usize| self.all.get(at).map(|version| version.origin);
        match (self.at(), later) {
            (None, true) => origin(0),
            (None, false) => origin(self.all.len().checked_sub(1)?),
            (Some(at), true) => origin(at + 1),
            (Some(at), false) => origin(at.checked_sub(1)?),
        }
    }

    /// The version of an origin.
    pub fn of(self, origin: Origin) -> Option<&'a Version> {
        self.all.get(self.place_of(origin)?)
    }

    /// Index of a version.
    pub fn place_of(self, origin: Origin) -> Option<usize> {
        self.all.iter().position(|version| version.origin == origin)
    }

    /// Index of the version from which keys step.
    fn at(self) -> Option<usize> {
        self.place_of(self.pair.map(|(_, second)| second).or(self.chosen)?)
    }

    fn is_shown(self, origin: Option<Origin>) -> bool {
        match self.pair {
            Some((first, second)) => [Some(first), Some(second)].contains(&origin),
            None => origin == self.chosen,
        }
    }

    fn samples(self) -> u64 {
        self.all.iter().map(|version| version.samples).sum()
    }

    /// Pieces of the strip with their columns. Short strips omit versions before the shown version.
    fn strip(self, columns: usize) -> Vec<(Option<Origin>, String, usize)> {
        let newest = if self.are_newest { " newest" } else { "" };
        let all = format!("all {}{newest}", count(self.samples()));
        let mut pieces = vec![(None, all)];
        let others = self.all.iter();
        // Labels above the columns say more of versions side by side.
        let text = |version| match self.pair {
            Some(_) => short(version),
            None => self.label(version),
        };
        pieces.extend(others.map(|version| (Some(version.origin), text(version))));
        let at = self.at().map_or(0, |at| at + 1);
        let needed = |from: usize| -> usize {
            let shown = pieces.get(from..=at).unwrap_or_default();
            shown.iter().map(|(_, text)| width(text) + 4).sum()
        };
        let first = (0..=at).find(|&from| needed(from) + 2 <= columns);
        let first = first.unwrap_or(at);
        let mut column = usize::from(first > 0) * 2;
        let mut placed = Vec::new();
        for (origin, text) in pieces.into_iter().skip(first) {
            let text = text::line(&text, columns);
            let shown = if self.is_shown(origin) {
                format!("[{text}]")
            } else {
                format!(" {text} ")
            };
            let taken = width(&shown);
            placed.push((origin, shown, column));
            column += taken + 1;
        }
        placed
    }

    pub fn draw_strip(self, frame: &mut Frame<'_>, area: Rect) {
        let columns = usize::from(area.width);
        let pieces = self.strip(columns);
        let mut spans = Vec::new();
        if pieces.first().is_some_and(|(_, _, column)| *column > 0) {
            let more = self.cx.theme.sign("‹ ", "< ");
            spans.push(Span::styled(more, self.cx.theme.style(Role::Dim)));
        }
        for (number, (origin, text, _)) in pieces.into_iter().enumerate() {
            if number > 0 {
                spans.push(Span::styled("|", self.cx.theme.style(Role::Dim)));
            }
            let steps = self.pair.map_or(self.chosen, |(_, second)| Some(second));
            let role = match origin {
                _ if origin == steps => Role::Selected,
                _ if self.is_shown(origin) => Role::Strong,
                _ => Role::Text,
            };
            spans.push(Span::styled(text, self.cx.theme.style(role)));
        }
        frame.render_widget(Line::from(spans), area);
    }

    /// Version at a strip column.
    pub fn in_strip(self, columns: usize, at: usize) -> Option<Option<Origin>> {
        let mut pieces = self.strip(columns).into_iter();
        let here = |(_, text, from): &(Option<Origin>, String, usize)| {
            (*from..*from + width(text)).contains(&at)
        };
        pieces.find(here).map(|(origin, ..)| origin)
    }

    /// Table of the pane, with the chosen version selected.
    pub fn table(self, area: Rect) -> Table {
        let mut table = Table::default();
        table.expect(self.pair.map(|(_, second)| second).or(self.chosen));
        table.arrange(&self, Table::height(area));
        table
    }
}

impl Rows for Versions<'_> {
    type Row = usize;
    type Key = Option<Origin>;

    fn columns(&self, _width: u16) -> Vec<Column> {
        vec![
            Column::left("version", "version", 12),
            Column::left("", "name", 0),
            Column::right("from", "from s", 7),
            Column::right("to", "to s", 7),
            Column::right("bytes", "bytes", 7),
            Column::right("samples", "samples", 7),
        ]
    }

    fn stretch(&self) -> usize {
        NAME
    }

    fn sorts(&self) -> Vec<usize> {
        Vec::new()
    }

    fn children(&self, _parent: Option<usize>) -> Vec<usize> {
        (0..=self.all.len()).collect()
    }

    fn key(&self, row: usize) -> Option<Origin> {
        let at = row.checked_sub(1)?;
        Some(self.all[at].origin)
    }

    fn value(&self, row: usize, column: usize) -> Value {
        let Some(version) = row.checked_sub(1).map(|at| &self.all[at]) else {
            return match (column, self.are_newest) {
                (NAME, true) => Value::Text("the newest".to_owned()),
                (NAME, false) => Value::Text("all versions".to_owned()),
                (SAMPLES, _) => Value::Count(self.samples()),
                _ => Value::Empty,
            };
        };
        let seconds = |time: Option<TimeNs>| {
            time.map_or(Value::Empty, |time| Value::Seconds(self.cx.seconds(time)))
        };
        match column {
            NAME => Value::Text(name(version).to_owned()),
            WHOLE_NAME => Value::Text(version.name.clone()),
            FROM => seconds(version.since),
            TO => seconds(version.gone),
            BYTES => version.bytes.map_or(Value::Empty, Value::Bytes),
            _ => Value::Count(version.samples),
        }
    }

    fn cell(&self, row: usize, column: usize, _room: &Room<'_>) -> Vec<Piece> {
        let version = row.checked_sub(1).map(|at| &self.all[at]);
        let role = match version {
            Some(version) if column == SAMPLES => {
                Role::Heat(ratio(version.samples, self.samples()))
            }
            Some(version) if version.gone.is_some() || version.samples == 0 => Role::Dim,
            _ => Role::Text,
        };
        let text = match self.value(row, column) {
            Value::Text(text) => text,
            Value::Seconds(seconds) => format!("{seconds:.2}s"),
            Value::Count(number) | Value::Bytes(number) => count(number),
            Value::Share(_) | Value::Empty => String::new(),
        };
        Piece::cell(role, text)
    }

    fn fits(&self, row: usize, text: &mut Finder) -> bool {
        row.checked_sub(1)
            .is_some_and(|at| text.is_in(&self.all[at].name))
    }
}
