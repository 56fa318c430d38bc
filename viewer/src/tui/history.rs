//! History of places: back and forward.

use super::filter_state::FilterState;
use super::view_id::ViewId;
use vmscope_symbolizer::EntryId;

/// Maximum number of steps.
const MAX_STEPS: usize = 200;

/// Place in the history.
#[derive(Clone, Debug)]
pub struct Spot {
    /// View.
    pub view: ViewId,
    /// Filters.
    pub filters: FilterState,
    /// Open entry.
    pub subject: Option<EntryId>,
    /// Span in seconds that the window follows; `None` for a fixed window.
    pub span: Option<u64>,
}

/// Steps before and after the current place.
#[derive(Debug, Default)]
pub struct History {
    before: Vec<Spot>,
    after: Vec<Spot>,
    /// Number of departures.
    left: u64,
}

impl History {
    /// Records place `now` before a new one.
    pub fn leave(&mut self, now: Spot) {
        self.after.clear();
        if self.before.len() >= MAX_STEPS {
            self.before.remove(0);
        }
        self.before.push(now);
        self.left += 1;
    }

    /// Number of departures so far.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Merges all steps since `left`, which one command made.
    pub fn join(&mut self, left: u64) {
        let more = self.left.saturating_sub(left).saturating_sub(1);
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        self.before.truncate(self.before.len().saturating_sub(more));
    }

    /// Filters of all steps.
    pub fn lenses(&mut self) -> impl Iterator<Item = &mut FilterState> {
        let steps = self.before.iter_mut().chain(&mut self.after);
        steps.map(|spot| &mut spot.filters)
    }

    /// Step back from `now`; `None` at the beginning.
    pub fn back(&mut self, now: Spot) -> Option<Spot> {
        let spot = self.before.pop()?;
        self.after.push(now);
        Some(spot)
    }

    /// Step forward from `now`; `None` at the end.
    pub fn forward(&mut self, now: Spot) -> Option<Spot> {
        let spot = self.after.pop()?;
        self.before.push(now);
        Some(spot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_command_left_is_one_step() {
        let spot = |view| Spot {
            view,
            filters: FilterState::default(),
            subject: None,
            span: None,
        };
        let mut history = History::default();
        history.leave(spot(ViewId::Overview));
        let left = history.left();
        history.leave(spot(ViewId::Hot));
        history.leave(spot(ViewId::Zone));
        history.join(left);
        let none = history.left();
        history.join(none);
        let back = history.back(spot(ViewId::Truth)).map(|spot| spot.view);
        assert_eq!(back, Some(ViewId::Hot));
        let back = history.back(spot(ViewId::Hot)).map(|spot| spot.view);
        assert_eq!(back, Some(ViewId::Overview));
    }
}
