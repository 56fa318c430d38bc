//! What was shown before: back and forward.

use super::lens::Lens;
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
    pub lens: Lens,
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
}

impl History {
    /// `now` is about to be left for something new.
    pub fn leave(&mut self, now: Spot) {
        self.after.clear();
        if self.before.len() >= MAX_STEPS {
            self.before.remove(0);
        }
        self.before.push(now);
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
