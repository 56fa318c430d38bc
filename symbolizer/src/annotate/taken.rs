//! A filter's samples, shared by all queries about methods.

use crate::profile::Profile;
use crate::summary::Filter;
use crate::time_buckets::{Counts, Selection, Stop};
use std::cell::OnceCell;

/// A filter's samples; counted on first use.
#[derive(Debug)]
pub struct Taken<'a> {
    pub(super) profile: &'a Profile,
    pub(super) selection: Selection,
    counts: OnceCell<Counts>,
}

impl<'a> Taken<'a> {
    /// Selects samples with `filter`; doesn't count yet.
    #[must_use]
    pub fn of(profile: &'a Profile, filter: &Filter) -> Self {
        Taken {
            profile,
            selection: Selection::new(profile, filter),
            counts: OnceCell::new(),
        }
    }

    /// Samples by site and thread; `None` if `stop` was requested first.
    pub(super) fn counts(&self, stop: &Stop) -> Option<&Counts> {
        if self.counts.get().is_none() {
            let counts = Counts::of_selection(self.profile, &self.selection, stop)?;
            // Always succeeds: the cell is empty.
            let _ = self.counts.set(counts);
        }
        self.counts.get()
    }
}
