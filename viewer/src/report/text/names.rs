//! What entries are called on a page.

use super::Page;
use crate::present::entries::{label_of, name_of};
use vmscope_symbolizer::EntryId;

impl Page<'_> {
    pub(super) fn samples_of(&self, id: EntryId) -> u64 {
        self.summary.entries.get(id as usize).copied().unwrap_or(0)
    }

    /// What an entry is called in full.
    pub(super) fn name_of(&self, id: EntryId) -> String {
        name_of(self.profile, &self.namesakes, id)
    }

    /// The same in at most so many columns.
    pub(super) fn label_of(&self, id: EntryId, columns: usize) -> String {
        label_of(self.profile, &self.namesakes, id, true, columns)
    }
}
