//! Steps between views and filters; requests of views.

use super::App;
use crate::tui::filter_state::FilterChange;
use crate::tui::history::Spot;
use crate::tui::view_id::ViewId;
use crate::tui::views::Act;

impl App {
    /// Current place in the history.
    pub(super) fn spot(&self) -> Spot {
        Spot {
            view: self.current,
            filters: self.filters.clone(),
            subject: self.subject,
            span: self.span,
        }
    }

    /// Goes to an earlier or later place; without one, shows `none`.
    pub(super) fn restore(&mut self, spot: Option<Spot>, none: &str) {
        match spot {
            Some(spot) => {
                self.current = spot.view;
                self.subject = spot.subject;
                self.filters.restore(spot.filters);
                self.span = spot.span;
                self.follow_span();
            }
            None => self.message = none.to_owned(),
        }
    }

    /// Executes a view's request.
    pub(super) fn acts(&mut self, acts: Vec<Act>) {
        let left = self.history.left();
        for act in acts {
            match act {
                Act::FilterChange(narrow) => self.narrow(narrow),
                Act::Annotate(entry) => {
                    self.history.leave(self.spot());
                    self.subject = Some(entry);
                    self.current = ViewId::Method;
                }
                Act::Show(id) => self.show(id),
                Act::Say(text) => self.message = text,
            }
        }
        self.history.join(left);
    }

    /// Shows another view.
    pub(super) fn show(&mut self, id: ViewId) {
        if id != self.current {
            self.history.leave(self.spot());
            self.current = id;
        }
    }

    /// Changes the filters.
    pub(super) fn narrow(&mut self, narrow: FilterChange) {
        let before = self.spot();
        let window = self.filters.window();
        if self.filters.narrow(narrow) {
            self.history.leave(before);
            // A chosen window no longer follows the process.
            if self.filters.window() != window {
                self.span = None;
            }
        }
    }
}
