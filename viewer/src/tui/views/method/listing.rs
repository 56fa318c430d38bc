//! The listing: which of its lines are shown, and which are hot.

use super::items::{Item, What};
use super::sides::Side;
use rustc_hash::FxHashSet;

/// A line is hot with this share of the method's samples, or as many as the hottest has.
const HOT_SHARE: u64 = 50;

/// Inlined code is open at first where it has this share of the method's samples.
const OPEN_SHARE: u64 = 100;

/// The lines of a listing, and which of them are on view.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// All of them.
    pub items: Vec<Item>,
    /// Samples of the method: what shares are of.
    pub samples: u64,
    /// Numbers of those that are not folded away.
    pub visible: Vec<usize>,
    /// Numbers of those that are hot, in the order of the listing.
    pub hot: Vec<usize>,
    /// Most samples of one line.
    pub most: u64,
    /// What the user opened that is closed at first, or the other way round.
    toggled: FxHashSet<u64>,
}

impl Listing {
    /// Takes new lines; what was folded stays so.
    pub fn take(&mut self, items: Vec<Item>, samples: u64) {
        self.items = items;
        self.samples = samples;
        self.most = self.items.iter().map(|item| item.own).max().unwrap_or(0);
        self.find_hot(&[]);
        self.unfold();
    }

    /// Finds the hot lines: of versions side by side, those that are hot in any of them.
    pub fn find_hot(&mut self, sides: &[Side]) {
        let is_hot = |own: u64, (samples, most): (u64, u64)| {
            own >= samples.div_ceil(HOT_SHARE).min(most).max(1)
        };
        let items = self.items.iter().enumerate();
        let hot = items.filter(|(_, item)| match sides {
            [] => is_hot(item.own, (self.samples, self.most)),
            sides => {
                (sides.iter()).any(|side| is_hot(side.here(item).own, (side.samples, side.most)))
            }
        });
        self.hot = hot.map(|(number, _)| number).collect();
    }

    /// Whether what was inlined at a line is shown.
    pub fn is_open(&self, item: &Item) -> bool {
        let inside = match item.what {
            What::Place => item.all.saturating_sub(item.own),
            _ => item.all,
        };
        let at_first = inside.saturating_mul(OPEN_SHARE) >= self.samples;
        item.has_children && (at_first != self.toggled.contains(&item.id))
    }

    /// Opens or closes a line.
    pub fn toggle(&mut self, number: usize) {
        let Some(item) = self.items.get(number).filter(|item| item.has_children) else {
            return;
        };
        if !self.toggled.remove(&item.id) {
            self.toggled.insert(item.id);
        }
        self.unfold();
    }

    /// Opens or closes all lines.
    pub fn set_all(&mut self, open: bool) {
        let changed = self.items.iter().filter(|item| {
            let is_open = self.is_open(item);
            item.has_children && is_open != open
        });
        let changed: Vec<u64> = changed.map(|item| item.id).collect();
        for id in changed {
            if !self.toggled.remove(&id) {
                self.toggled.insert(id);
            }
        }
        self.unfold();
    }

    /// Opens what a line is folded into.
    pub fn reveal(&mut self, number: usize) {
        let mut inner = number;
        while let Some(outer) = self.parent(inner) {
            let is_closed = self
                .items
                .get(outer)
                .is_some_and(|item| !self.is_open(item));
            if is_closed {
                self.toggle(outer);
            }
            inner = outer;
        }
    }

    /// The line that one is inlined at.
    pub fn parent(&self, number: usize) -> Option<usize> {
        let depth = self.items.get(number)?.depth;
        let before = self.items.get(..number)?;
        before.iter().rposition(|item| item.depth < depth)
    }

    fn unfold(&mut self) {
        let mut visible = Vec::with_capacity(self.items.len());
        let mut closed_at = None;
        for (number, item) in self.items.iter().enumerate() {
            if closed_at.is_some_and(|depth| item.depth > depth) {
                continue;
            }
            closed_at = (item.has_children && !self.is_open(item)).then_some(item.depth);
            visible.push(number);
        }
        self.visible = visible;
    }

    /// The samples that a line shows, of those of its own and those with what was inlined
    /// there, which has lines of its own where it is not folded away.
    pub fn shown_of(&self, item: &Item, own: u64, all: u64) -> u64 {
        match item.what {
            What::Place if self.is_open(item) => own,
            _ => all,
        }
    }

    /// The hot line after (or before) the line `from` of all, round the ends: which of
    /// them, and its number.
    pub fn next_hot(&self, from: usize, forward: bool) -> Option<(usize, usize)> {
        let at = if forward {
            let after = self.hot.iter().position(|&hot| hot > from);
            after.unwrap_or(0)
        } else {
            let before = self.hot.iter().rposition(|&hot| hot < from);
            before.unwrap_or(self.hot.len().checked_sub(1)?)
        };
        Some((at, *self.hot.get(at)?))
    }
}
