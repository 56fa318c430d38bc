//! A running process: its profile grows, is held, is saved.

use super::{App, open};
use crate::tui::filter_state::FilterChange;
use crate::tui::jobs::Slot;
use crate::tui::live::LiveNews;
use std::time::Duration;
use vmscope_records::TimeNs;
use vmscope_symbolizer::Profile;

/// A running process's picture grows each second, and is asked about anew when the answers
/// before were paid off with so much a second: they take a hundredth of a processor, however
/// much there is to be gone through.
const PAID: Duration = Duration::from_millis(10);

/// No answer is paid off for longer than this takes: five seconds.
const MOST_DEBT: Duration = Duration::from_millis(50);

impl App {
    /// The profile has grown, or sampling has ended.
    pub(super) fn live_news(&mut self, profile: Option<&Profile>, news: LiveNews) {
        let LiveNews::Grown(state) = news;
        // Data that can't grow any more is not held back.
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
            // The last time that it grows is shown at once.
            false => Duration::ZERO,
        };
        self.live = Some(state);
    }

    /// Turns to the profile as it has grown, once all that is shown was answered about it as
    /// it was: asked anew each second, what takes longer than that would never be answered.
    /// And what takes long is asked for the less often.
    /// Returns whether it did.
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

    /// Drops threads from the filters that are over and were summed up with others: another
    /// thread will have their place.
    fn drop_threads(&mut self, profile: &Profile) {
        let is_gone = |thread: u32| {
            let thread = profile.trace.threads.get(thread as usize);
            thread.is_some_and(|thread| thread.is_nobody())
        };
        for filters in self.history.lenses() {
            filters.drop_threads(is_gone);
        }
        if self.filters.drop_threads(is_gone) {
            let text = "threads that were chosen are over and summed up with others: the filter \
                        is without them";
            text.clone_into(&mut self.message);
        }
    }

    /// Moves the window along, where only the last seconds are shown.
    pub(super) fn follow_span(&mut self) {
        if let Some(seconds) = self.span {
            let (begin, end) = self.bounds;
            let from = end.0.saturating_sub(seconds.saturating_mul(1_000_000_000));
            let window = (TimeNs(from.max(begin.0)), TimeNs(end.0.saturating_add(1)));
            self.filters.narrow(FilterChange::Window(Some(window)));
        }
    }

    /// An answer took so long.
    pub(super) fn owe(&mut self, took: Duration) {
        self.debt = (self.debt + took).min(MOST_DEBT);
    }

    /// What was recorded is saved, or not.
    pub(super) fn saved(&mut self, saved: Result<String, String>) {
        self.quit_asked = false;
        self.is_saved |= saved.is_ok();
        self.message = saved.unwrap_or_else(|why| why);
    }
}
