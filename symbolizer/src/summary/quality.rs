//! Quality of the samples' resolution (docs/truth.md §5).

use crate::profile::{Entry, EntryKind, Region};
use vmscope_records::Exactness;

/// Quality of the filtered samples' resolution, in samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// In exact ranges.
    pub exact: u64,
    /// In approximate ranges.
    pub approximate: u64,
    /// In entries known only as a whole.
    pub method_only: u64,
    /// Without a name, or in interpreters without a known method.
    pub unresolved: u64,
    /// Claimed by two constituents.
    pub doubtful: u64,
    /// In interpreters with a known method: part of the counts above.
    pub interpreted: u64,
    /// In interpreters without a known method: part of `unresolved`.
    pub without_method: u64,
}

impl Quality {
    /// Counts samples of an entry in a range of this exactness.
    pub fn take(&mut self, entry: &Entry, exactness: Exactness, count: u64) {
        let counter = match (&entry.kind, exactness) {
            (EntryKind::Doubtful, _) => &mut self.doubtful,
            // For a waiting thread, the wait is the complete answer.
            _ if entry.region == Region::Idle => &mut self.exact,
            (EntryKind::Unnamed, _) => &mut self.unresolved,
            (_, Exactness::Exact) => &mut self.exact,
            (_, Exactness::Approximate) => &mut self.approximate,
            (_, Exactness::MethodOnly) => &mut self.method_only,
        };
        *counter += count;
    }

    /// Counts samples in interpreters without a known method.
    pub fn take_without_method(&mut self, count: u64) {
        self.unresolved += count;
        self.without_method += count;
    }

    /// All counted samples.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.exact + self.approximate + self.method_only + self.unresolved + self.doubtful
    }
}

/// Samples whose innermost method is inferred from evidence, without a record of the VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inferred {
    /// The samples.
    pub samples: u64,
    /// Sum of their errors, in percent of a sample.
    error: u64,
}

impl Inferred {
    /// Counts samples of a range with this [`vmscope_records::Cover::method_error`].
    pub fn take(&mut self, samples: u64, method_error: u8) {
        if method_error > 0 {
            self.samples += samples;
            self.error += samples * u64::from(method_error);
        }
    }

    /// Whether these are most of `samples`.
    #[must_use]
    pub fn is_most_of(self, samples: u64) -> bool {
        self.samples > samples / 2
    }

    /// Bound of the inference error of a share of `total` samples, 0 to 1: it holds for 95 % of the
    /// methods.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn error(self, total: u64) -> f64 {
        self.error as f64 / (100 * total.max(1)) as f64
    }
}

/// Whether the entry is JIT or interpreted code, named or not.
pub(super) fn is_vm_code(entry: &Entry) -> bool {
    match entry.kind {
        EntryKind::Code(_) | EntryKind::Doubtful => true,
        EntryKind::Unnamed => matches!(entry.region, Region::Generated | Region::Interpreter),
        EntryKind::Function(_) => false,
    }
}
