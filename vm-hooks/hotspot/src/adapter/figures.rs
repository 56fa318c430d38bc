//! Report figures of the code cache.

use std::collections::BTreeMap;

use vmscope_process::Poll;
use vmscope_records::{CounterMeaning, TimeNs};

use crate::code::{HeapBounds, Nmethod, tier};

/// Interval of reports in nanoseconds.
const EVERY: u64 = 1_000_000_000;

const SECTION: &str = "Code cache";

/// Counts of one reading of the code cache.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Total bytes of blobs.
    pub used: u64,
    /// Nmethods by tier.
    pub methods: BTreeMap<&'static str, u64>,
    /// Blobs other than nmethods.
    pub others: u64,
}

impl Counts {
    /// Counts a compiled method.
    pub fn method(&mut self, nmethod: &Nmethod) {
        let tier = tier(nmethod.level.into());
        *self.methods.entry(tier).or_default() += 1;
    }
}

/// Figures across readings.
#[derive(Debug, Default)]
pub(super) struct Figures {
    told: Option<TimeNs>,
    /// Number of nmethods at the previous reading.
    before: Option<u64>,
    /// Numbers of nmethods created and freed since the first reading.
    came: u64,
    went: u64,
}

impl Figures {
    /// Adds the counts of a reading with `came` new nmethods; reports figures once per interval and
    /// at the end.
    pub fn tell(
        &mut self,
        heaps: &[HeapBounds],
        counts: Counts,
        came: u64,
        is_last: bool,
        poll: &mut Poll,
    ) {
        let all: u64 = counts.methods.values().sum();
        if let Some(before) = self.before.replace(all) {
            self.came += came;
            self.went += before.saturating_add(came).saturating_sub(all);
        }
        let is_due = |then: TimeNs| poll.began().since(then).0 >= EVERY;
        if !is_last && !self.told.is_none_or(is_due) {
            return;
        }
        self.told = Some(poll.began());
        let committed = heaps
            .iter()
            .map(|heap| heap.high.0.saturating_sub(heap.low.0));
        let committed: u64 = committed.sum();
        let mut gauge = |name: &str, unit: &str, value: u64| {
            poll.counter(SECTION, name, unit, CounterMeaning::Gauge, number(value));
        };
        gauge("used", "bytes", counts.used);
        gauge("committed", "bytes", committed);
        gauge("compiled methods", "", all);
        for (tier, count) in &counts.methods {
            gauge(&format!("compiled methods, {tier}"), "", *count);
        }
        gauge("stubs and adapters", "", counts.others);
        let mut total = |name: &str, value: u64| {
            poll.counter(SECTION, name, "", CounterMeaning::Total, number(value));
        };
        total("compiled methods added", self.came);
        total("compiled methods removed", self.went);
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for a report")]
fn number(value: u64) -> f64 {
    value as f64
}
