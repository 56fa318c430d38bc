//! What was shown before: back and forward.

use super::filter_state::FilterState;
use super::views::ViewId;
use vmscope_symbolizer::EntryId;

/// So many steps are remembered.
const MAX_STEPS: usize = 200;

/// What was shown.
#[derive(Clone, Debug)]
pub struct Spot {
    /// Which view.
    pub view: ViewId,
    /// With which filters.
    pub filters: FilterState,
    /// Which entry was open.
    pub subject: Option<EntryId>,
    /// How many seconds of a running process the window follows, if it does.
    pub span: Option<u64>,
}

/// The steps before and after what is shown now.
#[derive(Debug, Default)]
pub struct History {
    before: Vec<Spot>,
    after: Vec<Spot>,
    /// How often something was left.
    left: u64,
}

impl History {
    /// `now` is about to be left for something new.
    pub fn leave(&mut self, now: Spot) {
        self.after.clear();
        if self.before.len() >= MAX_STEPS {
            self.before.remove(0);
        }
        self.before.push(now);
        self.left += 1;
    }

    /// How often something was left so far.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Makes one step of all since `left`: they came of one command.
    pub fn join(&mut self, left: u64) {
        let more = self.left.saturating_sub(left).saturating_sub(1);
        let more = usize::try_from(more).unwrap_or(usize::MAX);
        self.before.truncate(self.before.len().saturating_sub(more));
    }

    /// The filters of all steps.
    pub fn lenses(&mut self) -> impl Iterator<Item = &mut FilterState> {
        let steps = self.before.iter_mut().chain(&mut self.after);
        steps.map(|spot| &mut spot.filters)
    }

    /// Goes back from `now`; `None` at the beginning.
    pub fn back(&mut self, now: Spot) -> Option<Spot> {
        let spot = self.before.pop()?;
        self.after.push(now);
        Some(spot)
    }

    /// Goes forward from `now`; `None` at the end.
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
