//! Accuracy under a filter: limits, delivery by thread, exactness by part, samples without a certain
//! name.

use super::truth::{About, Exact, TruthLine, exactness_of, truth_of};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vmscope_symbolizer::profile::EntryKind;
use vmscope_symbolizer::{EntryId, Profile, Stop, Summary, ThreadId};

/// Maximum number of listed entries.
const MAX_ENTRIES: usize = 1_000;

/// Kinds of accuracy lines in display order.
pub const ABOUT: [(About, &str); 6] = [
    (About::Damage, "Damage"),
    (About::Losses, "Losses"),
    (About::Delivery, "Delivery"),
    (About::Resolution, "Resolution"),
    (About::Changes, "Code that changed"),
    (About::Limits, "Permissions and limits"),
];

/// Promised and delivered samples of a thread.
#[derive(Clone, Debug)]
pub struct ThreadRow {
    pub thread: ThreadId,
    pub name: String,
    pub samples: u64,
    pub promised: Option<f64>,
}

/// Why samples have no certain name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    NoName,
    Doubtful,
    /// In an interpreter, without a visible method.
    MethodUnknown,
}

impl Why {
    pub fn word(self) -> &'static str {
        match self {
            Why::NoName => "no name",
            Why::Doubtful => "doubtful",
            Why::MethodUnknown => "method unknown",
        }
    }
}

/// Entry of samples without a certain name.
#[derive(Clone, Debug)]
pub struct Nameless {
    pub entry: EntryId,
    pub name: String,
    pub place: String,
    pub why: Why,
    pub samples: u64,
}

/// Accuracy under a filter.
#[derive(Clone, Debug, Default)]
pub struct Accuracy {
    /// Of a native program.
    pub is_native: bool,
    /// Limits in the order of [`ABOUT`], the worst first.
    pub lines: Vec<TruthLine>,
    pub threads: Vec<ThreadRow>,
    pub exact: Vec<Exact>,
    pub nameless: Vec<Nameless>,
    /// Number of unlisted entries, and their samples.
    pub left_out: (u64, u64),
    pub total: u64,
    pub promised: Option<f64>,
}

impl Accuracy {
    /// Share of affected samples. Lost samples count as part of the whole.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn share(&self, line: &TruthLine) -> Option<f64> {
        let samples = line.samples? as f64;
        let of = match line.about {
            About::Losses => self.total as f64 + samples,
            About::Delivery => self.promised.unwrap_or(self.total as f64),
            _ => self.total as f64,
        };
        Some(if of > 0.0 {
            (samples / of).min(1.0)
        } else {
            0.0
        })
    }
}

/// Accuracy of a summary; `None` after a stop.
pub fn accuracy(profile: &Profile, summary: &Summary, stop: &Stop) -> Option<Accuracy> {
    let mut lines = truth_of(profile, summary);
    lines.sort_by_key(|line| line.about);
    let threads = summary.threads.iter().map(|one| {
        let thread = &profile.trace.threads[one.thread].thread;
        ThreadRow {
            thread: one.thread,
            name: thread.name.clone(),
            samples: one.samples,
            promised: one.promised,
        }
    });
    let threads = threads.collect();
    let mut without_method: FxHashMap<EntryId, u64> = FxHashMap::default();
    for (&site, &samples) in &summary.without_method {
        *without_method.entry(profile.sites[site].entry).or_default() += samples;
    }
    let entries = profile.entries.enumerated().zip(&summary.entries);
    let nameless = entries.filter_map(|((id, entry), &samples)| {
        let (why, samples) = match (without_method.get(&id), &entry.kind) {
            (Some(&without_method), _) => (Why::MethodUnknown, without_method),
            (None, EntryKind::Unnamed) => (Why::NoName, samples),
            (None, EntryKind::Doubtful) => (Why::Doubtful, samples),
            (None, _) => return None,
        };
        (samples > 0).then(|| Nameless {
            entry: id,
            name: entry.name.clone(),
            place: entry.module.clone(),
            why,
            samples,
        })
    });
    let mut nameless: Vec<Nameless> = nameless.collect();
    nameless.sort_by_key(|row| Reverse(row.samples));
    let rest = nameless.get(MAX_ENTRIES..).unwrap_or_default();
    let left_out = (rest.len() as u64, rest.iter().map(|row| row.samples).sum());
    nameless.truncate(MAX_ENTRIES);
    let all = Accuracy {
        is_native: profile.is_native(),
        lines,
        threads,
        exact: exactness_of(profile, summary),
        nameless,
        left_out,
        total: summary.total,
        promised: summary.promised,
    };
    (!stop.is_stopped()).then_some(all)
}
