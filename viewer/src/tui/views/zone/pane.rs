//! Common parts of the two panes, plot and map.

use crate::present::document::Document;
use crate::present::text::line;
use crate::queries::zone_samples::ZoneSamples;
use crate::tui::jobs::{Question, QuestionId};
use crate::tui::keys::Command;
use crate::tui::views::{Act, Choice, Click, Cx, Find};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use vmscope_symbolizer::Stop;

/// Minimum screen width for a side list.
const WIDE: u16 = 120;

/// Minimum share of the maximum for a hot column or cell.
pub const HOT: f64 = 0.25;

/// Maximum number of palette lines for ranges or zones.
pub const MAX_CHOICES: u16 = 1_000;

/// A pane: one drawing of the same samples.
pub trait Pane {
    fn crumb(&self) -> &'static str;

    /// Commands of the other pane, with their message.
    fn missing(&self) -> (&'static [Command], &'static str);

    fn act(&mut self, command: Command, samples: &ZoneSamples, cx: &Cx<'_>) -> Vec<Act>;

    /// Returns to the previous zoom; `false` without one.
    fn zoom_back(&mut self) -> bool;

    /// Repeats a zoom that was left; `false` without one.
    fn zoom_forward(&mut self) -> bool {
        false
    }

    fn click(&mut self, click: Click, samples: &ZoneSamples, cx: &Cx<'_>) -> Vec<Act>;

    /// Asks for the picture of new samples.
    fn ask(&mut self, samples: &ZoneSamples, cx: &Cx<'_>) -> Option<Question>;

    fn take(&mut self, ended: QuestionId);

    /// Whether an answer is due.
    fn is_pending(&self) -> bool;

    /// Samples of the picture, possibly older than the newest samples.
    fn samples(&self) -> Option<&ZoneSamples>;

    /// Searches and selects; see [`View::find`](crate::tui::views::View::find).
    fn find(&mut self, pattern: &str, find: Find, samples: &ZoneSamples, cx: &Cx<'_>) -> bool;

    fn draw(&self, samples: &ZoneSamples, cx: &Cx<'_>, frame: &mut Frame<'_>, area: Rect);

    /// Content for copying and exporting; `None` after a stop.
    fn shown(&self, samples: &ZoneSamples, cx: &Cx<'_>, stop: &Stop) -> Option<Document>;

    fn choices(&self, samples: &ZoneSamples, cx: &Cx<'_>) -> Vec<Choice>;
}

/// Side list on wide screens.
pub fn side(area: Rect, columns: u16) -> Option<Rect> {
    (area.width >= WIDE).then(|| Rect {
        x: area.right().saturating_sub(columns),
        width: columns,
        ..area
    })
}

/// Draws a text, cut at the screen's edge.
pub fn put(buffer: &mut Buffer, (x, y): (u16, u16), text: &str, columns: usize, style: Style) {
    if buffer.area.contains(Position::new(x, y)) {
        let columns = columns.min(usize::from(buffer.area.right() - x));
        buffer.set_stringn(x, y, line(text, columns), columns, style);
    }
}
