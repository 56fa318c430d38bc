//! The pane of the method's callers or callees.

use crate::present::document::{Table, Value};
use crate::present::names::region_letter;
use crate::present::numbers::{count, percent, ratio, some};
use crate::present::text;
use crate::tui::theme::Role;
use crate::tui::views::Cx;
use crate::tui::widgets::list::ListState;
use crate::tui::widgets::table::{self, Col, Look, Piece};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use vmscope_symbolizer::annotate::{Call, Calls};

const COLUMNS: [Col; 6] = [
    Col::new("share", 7, true, 0),
    Col::new("", 8, false, 2),
    Col::new("samples", 8, true, 1),
    Col::new("inlined", 8, true, 3),
    Col::new("", 1, false, 0),
    Col::new("", 24, false, 0),
];

/// What the pane shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shows {
    /// It is closed.
    #[default]
    Nothing,
    /// Who called the method.
    Callers,
    /// Whom it called.
    Callees,
}

impl Shows {
    /// The next one.
    pub fn next(self) -> Self {
        match self {
            Shows::Nothing => Shows::Callers,
            Shows::Callers => Shows::Callees,
            Shows::Callees => Shows::Nothing,
        }
    }

    /// The one before.
    pub fn back(self) -> Self {
        self.next().next()
    }

    /// The calls that it shows.
    pub fn of(self, calls: &Calls) -> &[Call] {
        match self {
            Shows::Nothing => &[],
            Shows::Callers => &calls.callers,
            Shows::Callees => &calls.callees,
        }
    }
}

/// The rows of the pane's list, in an area: below its title and the heading.
pub fn list_area(area: Rect) -> Rect {
    Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(1),
        ..area
    }
}

/// What the pane is, and what of it is not known.
fn title(shows: Shows, calls: &Calls, cx: &Cx<'_>, focused: bool) -> String {
    let all = some(calls.samples, "sample", "samples");
    let (what, rest) = match shows {
        Shows::Callees => ("callees", format!("{} in itself", count(calls.own))),
        _ => (
            "callers",
            format!("{} of no known caller", count(calls.outermost)),
        ),
    };
    let samples = &cx.profile.trace.samples;
    let note = if cx.profile.trace.chains.is_empty() {
        "; no chains were recorded (--call-graph=fp does): inlining alone is known".to_owned()
    } else if samples.truncated_chains > 0 {
        let cut = some(samples.truncated_chains, "chain", "chains");
        format!("; {cut} of the recording were cut off")
    } else {
        String::new()
    };
    let mark = match focused {
        true => cx.theme.sign("▶", ">"),
        false => cx.theme.sign("─", "-"),
    };
    format!("{mark} {what}: of {all} with the method on the stack, {rest}{note}")
}

/// Draws the pane.
pub fn draw(
    cx: &Cx<'_>,
    (shows, calls): (Shows, Option<&Calls>),
    (list, focused): (ListState, bool),
    frame: &mut Frame<'_>,
    area: Rect,
) {
    let Some(calls) = calls else {
        let text = Line::styled("counting calls ...", cx.theme.style(Role::Dim));
        return frame.render_widget(text, area);
    };
    let head = Rect { height: 1, ..area };
    let title = text::line(&title(shows, calls, cx, focused), usize::from(area.width));
    let role = if focused { Role::Title } else { Role::Strong };
    frame.render_widget(Line::styled(title, cx.theme.style(role)), head);
    let rows = shows.of(calls);
    let look = Look {
        theme: cx.theme,
        columns: &COLUMNS,
        stretch: COLUMNS.len() - 1,
        sorted: None,
        rows: rows.len(),
        list,
    };
    table::draw(look, frame, list_area(area), |index| {
        let Some(call) = rows.get(index) else {
            return Vec::new();
        };
        let share = ratio(call.samples, calls.samples);
        let inlined = match call.inlined {
            0 => String::new(),
            inlined => count(inlined),
        };
        vec![
            Piece::of(Role::Heat(share), percent(share)),
            Piece::of(Role::Heat(share), cx.theme.bar(share, 8)),
            Piece::text(count(call.samples)),
            Piece::of(Role::Dim, inlined),
            Piece::of(
                Role::Region(call.region),
                region_letter(call.region).to_string(),
            ),
            Piece::text(&*call.name),
        ]
    });
}

/// For copying and exporting.
pub fn table(shows: Shows, calls: &Calls) -> Table {
    let title = match shows {
        Shows::Callees => "callees",
        _ => "callers",
    };
    let mut table = Table::new(title, &[">share", ">samples", ">inlined", "region", "name"]);
    for call in shows.of(calls) {
        table.rows.push(vec![
            Value::Share(ratio(call.samples, calls.samples)),
            Value::Count(call.samples),
            Value::Count(call.inlined),
            Value::Text(call.region.name().to_owned()),
            Value::Text(call.name.to_string()),
        ]);
    }
    table
}
