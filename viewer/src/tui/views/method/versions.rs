//! The method's versions: a strip of them, or a pane where there is room.

use crate::present::document::{Table, Value};
use crate::present::numbers::{count, ratio, some};
use crate::present::text::{self, width};
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::table::{self, Col, Look, Piece};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use vmscope_symbolizer::annotate::{Origin, Version};

/// Columns of the pane.
pub const PANE: u16 = 46;

const COLUMNS: [Col; 5] = [
    Col::new("version", 12, false, 0),
    Col::new("from", 7, true, 0),
    Col::new("to", 7, true, 0),
    Col::new("bytes", 7, true, 0),
    Col::new("samples", 7, true, 0),
];

/// The versions with which of them is shown: `None` for all together.
#[derive(Clone, Copy, Debug)]
pub struct Versions<'a> {
    /// All of them.
    pub all: &'a [Version],
    /// Which is shown.
    pub chosen: Option<Origin>,
    /// Whether they are of the newest samples only.
    pub are_newest: bool,
    /// Which two are side by side; steps change the second.
    pub pair: Option<(Origin, Origin)>,
}

/// What a version is called.
pub fn name(version: &Version) -> &str {
    match version.origin {
        Origin::Interpreted => "interpreted",
        Origin::Elsewhere => "inlined",
        Origin::Code(_) if version.tier.is_empty() => "compiled",
        Origin::Code(_) => &version.tier,
    }
}

/// What a version is, in as few words as tell it apart from most others.
pub fn short(version: &Version) -> String {
    format!("{} {}", name(version), count(version.samples))
}

/// When it was there: `0.8-3.1 s`; empty for what is no code.
fn times(version: &Version, cx: &Cx<'_>) -> String {
    let Some(since) = version.since else {
        return String::new();
    };
    let end = version
        .gone
        .map_or_else(String::new, |gone| format!("{:.1}", cx.seconds(gone)));
    format!("{:.1}-{end} s", cx.seconds(since))
}

/// What a version is, in words.
pub fn label(version: &Version, cx: &Cx<'_>) -> String {
    let mut parts = vec![name(version).to_owned()];
    let times = times(version, cx);
    if !times.is_empty() {
        parts.push(times);
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

impl<'a> Versions<'a> {
    /// Whether there is anything to choose from.
    pub fn is_several(self) -> bool {
        self.all.len() > 1
    }

    /// The version after the one that is shown, or before it; behind the last, all.
    pub fn step(self, later: bool) -> Option<Origin> {
        let origin = |at: usize| self.all.get(at).map(|version| version.origin);
        match (self.at(), later) {
            (None, true) => origin(0),
            (None, false) => origin(self.all.len().checked_sub(1)?),
            (Some(at), true) => origin(at + 1),
            (Some(at), false) => origin(at.checked_sub(1)?),
        }
    }

    /// A version.
    pub fn of(self, origin: Origin) -> Option<&'a Version> {
        self.all.get(self.place_of(origin)?)
    }

    /// Its place among them.
    pub fn place_of(self, origin: Origin) -> Option<usize> {
        self.all.iter().position(|version| version.origin == origin)
    }

    /// The one that steps go on from.
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

    /// The pieces of the strip, with where each begins; those before the one that is shown
    /// may be left out.
    fn strip(self, cx: &Cx<'_>, columns: usize) -> Vec<(Option<Origin>, String, usize)> {
        let newest = if self.are_newest { " newest" } else { "" };
        let all = format!("all {}{newest}", count(self.samples()));
        let mut pieces = vec![(None, all)];
        let others = self.all.iter();
        // The columns of those that are side by side say more of them.
        let text = |version| match self.pair {
            Some(_) => short(version),
            None => label(version, cx),
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

    /// Draws the strip.
    pub fn draw_strip(self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let columns = usize::from(area.width);
        let pieces = self.strip(cx, columns);
        let mut spans = Vec::new();
        if pieces.first().is_some_and(|(_, _, column)| *column > 0) {
            let more = cx.theme.sign("‹ ", "< ");
            spans.push(Span::styled(more, cx.theme.style(Role::Dim)));
        }
        for (number, (origin, text, _)) in pieces.into_iter().enumerate() {
            if number > 0 {
                spans.push(Span::styled("|", cx.theme.style(Role::Dim)));
            }
            let steps = self.pair.map_or(self.chosen, |(_, second)| Some(second));
            let role = match origin {
                _ if origin == steps => Role::Selected,
                _ if self.is_shown(origin) => Role::Strong,
                _ => Role::Text,
            };
            spans.push(Span::styled(text, cx.theme.style(role)));
        }
        frame.render_widget(Line::from(spans), area);
    }

    /// Which version is at a column of the strip.
    pub fn in_strip(self, cx: &Cx<'_>, columns: usize, at: usize) -> Option<Option<Origin>> {
        let mut pieces = self.strip(cx, columns).into_iter();
        let here = |(_, text, from): &(Option<Origin>, String, usize)| {
            (*from..*from + width(text)).contains(&at)
        };
        pieces.find(here).map(|(origin, ..)| origin)
    }

    /// The list of the pane: all together, then each.
    fn list(self, height: usize) -> ListState {
        let mut list = ListState::default();
        let rows = self.all.len() + 1;
        list.select(self.at().map_or(0, |at| at + 1), rows, height);
        list
    }

    /// Draws the pane.
    pub fn draw_pane(self, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect) {
        let look = Look {
            theme: cx.theme,
            columns: &COLUMNS,
            stretch: 0,
            sorted: None,
            rows: self.all.len() + 1,
            list: self.list(table::height(area)),
        };
        let all = self.samples();
        table::draw(look, frame, area, |index| {
            let Some(version) = index.checked_sub(1).and_then(|at| self.all.get(at)) else {
                let blank = || Piece::text("");
                let name = Piece::text(if self.are_newest {
                    "the newest"
                } else {
                    "all together"
                });
                return vec![name, blank(), blank(), blank(), Piece::text(count(all))];
            };
            let role = if version.gone.is_some() || version.samples == 0 {
                Role::Dim
            } else {
                Role::Text
            };
            let seconds = |time| format!("{:.2}s", cx.seconds(time));
            let time = |time: Option<_>| time.map_or_else(String::new, seconds);
            let bytes = version.bytes.map_or_else(String::new, count);
            let heat = Role::Heat(ratio(version.samples, all));
            vec![
                Piece::of(role, name(version)),
                Piece::of(role, time(version.since)),
                Piece::of(role, time(version.gone)),
                Piece::of(role, bytes),
                Piece::of(heat, count(version.samples)),
            ]
        });
    }

    /// Which version is at a line of the pane below its heading.
    pub fn in_pane(self, line: usize, height: usize) -> Option<Option<Origin>> {
        let rows = self.all.len() + 1;
        let row = self.list(height).top(rows, height) + line;
        match row.checked_sub(1) {
            None => Some(None),
            Some(at) => self.all.get(at).map(|version| Some(version.origin)),
        }
    }

    /// For copying and exporting.
    pub fn table(self, cx: &Cx<'_>) -> Table {
        let columns = ["version", "name", ">from s", ">to s", ">bytes", ">samples"];
        let mut table = Table::new("versions", &columns);
        for version in self.all {
            let time = |time: Option<_>| {
                time.map_or(Value::Empty, |time| Value::Seconds(cx.seconds(time)))
            };
            table.rows.push(vec![
                Value::Text(name(version).to_owned()),
                Value::Text(version.name.clone()),
                time(version.since),
                time(version.gone),
                version.bytes.map_or(Value::Empty, Value::Bytes),
                Value::Count(version.samples),
            ]);
        }
        table
    }
}
