//! What the resolution of samples is worth (TRUTH.md §5).

use crate::profile::{Entry, EntryKind, Region};
use vmscope_records::Exactness;

/// What the filtered samples' resolution is worth, in samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// In ranges that are exact.
    pub exact: u64,
    /// In ranges that are approximate.
    pub approximate: u64,
    /// In entries of which only the whole is known.
    pub method_only: u64,
    /// Without a name.
    pub unresolved: u64,
    /// Claimed by two constituents.
    pub doubtful: u64,
    /// In interpreters that can show what they execute, and did: part of those above.
    pub interpreted: u64,
    /// In such interpreters, that did not show any method: part of those above, too.
    pub without_method: u64,
}

impl Quality {
    /// Counts samples of an entry, in a range that is worth so much.
    pub fn take(&mut self, entry: Option<&Entry>, exactness: Exactness, count: u64) {
        let (kind, region) = (entry.map(|e| &e.kind), entry.map(|e| e.region));
        let counter = match (kind, exactness) {
            (Some(EntryKind::Doubtful), _) => &mut self.doubtful,
            // Where a thread waits is the whole answer.
            _ if region == Some(Region::Idle) => &mut self.exact,
            (Some(EntryKind::Unnamed) | None, _) => &mut self.unresolved,
            (_, Exactness::Exact) => &mut self.exact,
            (_, Exactness::Approximate) => &mut self.approximate,
            (_, Exactness::MethodOnly) => &mut self.method_only,
        };
        *counter += count;
    }

    /// All samples that were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.exact + self.approximate + self.method_only + self.unresolved + self.doubtful
    }
}

/// Whether an entry is code that a VM made or interprets, named or not: no native code.
pub(super) fn is_vm_code(entry: &Entry) -> bool {
    match entry.kind {
        EntryKind::Code(_) | EntryKind::Doubtful => true,
        EntryKind::Unnamed => entry.region == Region::Generated,
        EntryKind::Function(_) => false,
    }
}
