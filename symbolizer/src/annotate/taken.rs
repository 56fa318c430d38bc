//! What a filter takes, for all that is asked of a method under it.

use crate::profile::Profile;
use crate::summary::Filter;
use crate::time_buckets::{Counts, Selection, Stop};
use std::cell::OnceCell;

/// What a filter takes of a profile; counted when that is first asked for.
#[derive(Debug)]
pub struct Taken<'a> {
    pub(super) profile: &'a Profile,
    pub(super) selection: Selection,
    counts: OnceCell<Counts>,
}

impl<'a> Taken<'a> {
    /// What `filter` takes.
    #[must_use]
    pub fn of(profile: &'a Profile, filter: &Filter) -> Self {
        Taken {
            profile,
            selection: Selection::new(profile, filter),
            counts: OnceCell::new(),
        }
    }

    /// The samples of each site and thread; `None` when `stop` was wished before they were
    /// counted.
    pub(super) fn counts(&self, stop: &Stop) -> Option<&Counts> {
        if self.counts.get().is_none() {
            let counts = Counts::of_selection(self.profile, &self.selection, stop)?;
            // Nobody else can have set it.
            let _ = self.counts.set(counts);
        }
        self.counts.get()
    }
}
