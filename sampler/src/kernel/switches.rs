//! Samples missing because the threads were switched often.
//!
//! At each switch the kernel programs the sampling timer anew. This work counts as the thread's CPU
//! time, and no timer runs meanwhile: a thread loses some microseconds at each switch (docs/truth.md). Between
//! threads with equal inherited events, the kernel leaves the timer alone (`perf_event_context_sched_out`).

use vmscope_records::{Limit, LimitKind};

use super::limit;

/// Greatest loss at a switch, in ns. On virtual machines, 4,000 to 9,000 were measured.
const MAX_LOSS_NS: u64 = 15_000;
/// Least part of the CPU time without samples that needs an explanation: 1/50.
const LEAST_PART: u64 = 50;

/// CPU time and switches of threads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switches {
    /// CPU time, in ns.
    pub cpu_ns: u64,
    /// Sum of the samples' periods, in ns.
    pub sampled_ns: u64,
    /// Times that a CPU began to run one of the threads.
    pub slices: u64,
}

impl Switches {
    pub fn add(&mut self, of: Self) {
        self.cpu_ns = self.cpu_ns.saturating_add(of.cpu_ns);
        self.sampled_ns = self.sampled_ns.saturating_add(of.sampled_ns);
        self.slices = self.slices.saturating_add(of.slices);
    }

    /// The reason for missing samples, if switches explain them.
    pub fn limit(self, now: u64) -> Option<Limit> {
        let missing = self.cpu_ns.saturating_sub(self.sampled_ns);
        let explained = self.slices.saturating_mul(MAX_LOSS_NS);
        if missing == 0 || missing < self.cpu_ns / LEAST_PART || missing > explained {
            return None;
        }
        let each = missing / self.slices / 1_000;
        let text = format!(
            "the kernel switched to the threads {} times: {} µs of CPU time without samples each \
             time on average",
            self.slices,
            each.max(1)
        );
        Some(limit(now, LimitKind::Missing, text, ""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_explain_some_microseconds_each() {
        let of = |cpu_ms: u64, sampled_ms: u64, slices| Switches {
            cpu_ns: cpu_ms * 1_000_000,
            sampled_ns: sampled_ms * 1_000_000,
            slices,
        };
        let said = |of: Switches| of.limit(0).map(|limit| limit.text);
        let text = said(of(4_000, 3_200, 100_000)).expect("8 µs at each switch");
        assert!(text.contains("100000 times"), "{text}");
        assert!(text.contains("8 µs"), "{text}");
        // One sample in two hundred is missing.
        assert_eq!(said(of(4_000, 3_980, 100_000)), None);
        // 800 ms are missing, and a thousand switches cannot be the reason.
        assert_eq!(said(of(4_000, 3_200, 1_000)), None);
        assert_eq!(said(of(4_000, 4_100, 100_000)), None);
        assert_eq!(said(of(0, 0, 0)), None);
        // Threads together: one half loses all of it.
        let mut both = of(2_000, 2_000, 10);
        both.add(of(2_000, 1_200, 100_000));
        assert!(both.limit(0).is_some());
    }
}
