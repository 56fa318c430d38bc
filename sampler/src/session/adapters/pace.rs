//! The adapters' budget of CPU time for deferrable work.

use std::time::{Duration, Instant};

/// Largest credit: initially, and after idle time.
const MOST: Duration = Duration::from_millis(300);

/// Grants adapters a share of a CPU's time, and deducts their usage.
#[derive(Debug)]
pub(in crate::session) struct Pace {
    /// Share: one part in `one_in` of a CPU's time; `None`: unlimited.
    one_in: Option<u32>,
    /// Credit in nanoseconds; negative after overuse.
    left: i64,
    reckoned: Instant,
}

impl Pace {
    /// Grants one part in `one_in` of a CPU's time; `None`: unlimited.
    pub fn of(one_in: Option<u32>) -> Self {
        Pace {
            one_in,
            left: nanoseconds(MOST),
            reckoned: Instant::now(),
        }
    }

    /// Current credit.
    pub fn spare(&mut self) -> Duration {
        let Some(one_in) = self.one_in else {
            return Duration::MAX;
        };
        let now = Instant::now();
        let time = now.saturating_duration_since(self.reckoned);
        self.reckoned = now;
        self.pass(time / one_in.max(1), Duration::ZERO);
        Duration::from_nanos(u64::try_from(self.left).unwrap_or(0))
    }

    pub fn spend(&mut self, used: Duration) {
        self.pass(Duration::ZERO, used);
    }

    fn pass(&mut self, granted: Duration, used: Duration) {
        let left = self.left.saturating_add(nanoseconds(granted));
        // Unused time accumulates up to [`MOST`] only.
        self.left = left
            .min(nanoseconds(MOST))
            .saturating_sub(nanoseconds(used));
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_is_used_is_taken_and_grows_again_up_to_a_bound() {
        let mut pace = Pace::of(Some(100));
        pace.spend(350 * MS);
        assert_eq!(pace.left, -50_000_000);
        assert!(pace.spare() < MS, "but for what this test takes");
        pace.left = -50_000_000;
        pace.pass(60 * MS, Duration::ZERO);
        assert_eq!(pace.left, 10_000_000);
        pace.pass(3_600_000 * MS, Duration::ZERO);
        assert_eq!(pace.left, 300_000_000);
        assert_eq!(Pace::of(None).spare(), Duration::MAX);
    }

    #[test]
    fn over_a_long_time_no_more_is_used_than_its_share() {
        // Polls do deferrable work whenever credit is left.
        let mut pace = Pace::of(Some(100));
        let (mut used, poll) = (Duration::ZERO, 20 * MS);
        for _ in 0..40_000 {
            let cost = if pace.left > 0 { poll } else { MS / 10 };
            used += cost;
            pace.pass(25 * MS / 100, cost);
        }
        // In a thousand seconds: ten seconds, the largest credit, and one poll.
        assert!(used <= 10_000 * MS + MOST + poll, "{used:?}");
        assert!(used >= 9_900 * MS, "{used:?}");
    }
}
