//! The view `Overview`.

use super::{Act, Click, Cx, Find, View};
use crate::tui::jobs::{Answer, Question};
use crate::tui::keys::Command;
use crate::tui::shown::Shown;
use ratatui::Frame;
use ratatui::layout::Rect;

/// The view.
#[derive(Debug, Default)]
pub struct Overview {}

impl View for Overview {
    fn act(&mut self, _command: Command, _cx: &Cx<'_>) -> Vec<Act> {
        Vec::new()
    }

    fn click(&mut self, _click: Click, _cx: &Cx<'_>) -> Vec<Act> {
        Vec::new()
    }

    fn questions(&mut self, _cx: &Cx<'_>) -> Vec<Question> {
        Vec::new()
    }

    fn answer(&mut self, _number: u8, _answer: Option<Answer>, _cx: &Cx<'_>) {}

    fn find(&mut self, _pattern: &str, _find: Find, _cx: &Cx<'_>) -> bool {
        false
    }

    fn draw(&self, _cx: &Cx<'_>, _frame: &mut Frame<'_>, _area: Rect) {}

    fn shown(&self, _cx: &Cx<'_>) -> Shown {
        Shown::default()
    }

    fn is_pending(&self) -> bool {
        false
    }
}
