//! A running process: growth, pause, saving.

use super::{App, open};
use crate::tui::filter_state::FilterChange;
use crate::tui::jobs::Slot;
use crate::tui::live::LiveState;
use std::time::Duration;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{Profile, ThreadId};

/// CPU budget for answers, per second of growth: 1 % of a CPU. New questions wait until the budget
/// covers the CPU time of previous answers.
const PAID: Duration = Duration::from_millis(10);

/// Maximum debt: five seconds of the budget.
const MOST_DEBT: Duration = Duration::from_millis(50);

impl App {
    /// Handles news of a running process.
    pub(super) fn live_news(&mut self, profile: Option<&Profile>, state: LiveState) {
        // A finished process ends the pause.
        if self.paused && !state.ended.is_empty() {
            self.paused = false;
            self.filters.hold(None);
        }
        if let Some(profile) = profile.filter(|_| !self.paused) {
            self.banner = open::banner(profile, Some(&state));
            self.has_grown = true;
        }
        self.debt = match state.ended.is_empty() {
            true => self.debt.saturating_sub(PAID),
            // The final state shows at once.
            false => Duration::ZERO,
        };
        self.live = Some(state);
    }

    /// Switches to the grown profile; returns `true` after a switch. Waits until the screen's
    /// questions are answered: a switch every second would never let slow answers finish, and the
    /// budget makes slow questions rare.
    pub(super) fn grow(&mut self, profile: Option<&Profile>) -> bool {
        let is_shown = |slot: &Slot| slot.is_shown_in(self.current);
        let is_asking = self.running.keys().any(is_shown);
        let Some(profile) = profile.filter(|_| self.has_grown && !self.paused && !is_asking) else {
            return false;
        };
        if !self.debt.is_zero() {
            return false;
        }
        self.has_grown = false;
        self.generation += 1;
        self.bounds = open::bounds(profile, self.live.as_ref().map(|live| live.until));
        self.follow_span();
        self.drop_threads(profile);
        true
    }

    /// Removes exited threads from the filters after the profile merged them: other threads reuse
    /// their indices.
    fn drop_threads(&mut self, profile: &Profile) {
        let is_gone = |thread: ThreadId| profile.trace.threads[thread].is_nobody();
        for filters in self.history.lenses() {
            filters.drop_threads(is_gone);
        }
        if self.filters.drop_threads(is_gone) {
            let text = "ended threads were merged with others and removed from the filter";
            text.clone_into(&mut self.message);
        }
    }

    /// Moves the window of the last seconds.
    pub(super) fn follow_span(&mut self) {
        if let Some(seconds) = self.span {
            let (begin, end) = self.bounds;
            let from = end.0.saturating_sub(seconds.saturating_mul(1_000_000_000));
            let window = (TimeNs(from.max(begin.0)), TimeNs(end.0.saturating_add(1)));
            self.filters.narrow(FilterChange::Window(Some(window)));
        }
    }

    /// Charges an answer's CPU time to the budget.
    pub(super) fn owe(&mut self, took: Duration) {
        self.debt = (self.debt + took).min(MOST_DEBT);
    }

    /// Handles the result of saving.
    pub(super) fn saved(&mut self, saved: Result<String, String>) {
        self.quit_asked = false;
        self.is_saved |= saved.is_ok();
        self.message = saved.unwrap_or_else(|why| why);
    }
}
