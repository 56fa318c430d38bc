//! How much of a processor adapters may use for what can wait.

use std::time::{Duration, Instant};

/// So much may be used at once: at the beginning, and after nothing was for a while.
const MOST: Duration = Duration::from_millis(300);

/// Grants the adapters of a session a share of the time, and takes from it what they used.
#[derive(Debug)]
pub(in crate::session) struct Pace {
    /// One part in so many of a processor's time; `None` for as much as is wanted.
    one_in: Option<u32>,
    /// What is left, in nanoseconds; less than none where more was used.
    left: i64,
    reckoned: Instant,
}

impl Pace {
    /// One part in `one_in` of a processor's time; `None` for as much as is wanted.
    pub fn of(one_in: Option<u32>) -> Self {
        Pace {
            one_in,
            left: nanoseconds(MOST),
            reckoned: Instant::now(),
        }
    }

    /// What is left now.
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

    /// So much was used.
    pub fn spend(&mut self, used: Duration) {
        self.pass(Duration::ZERO, used);
    }

    /// So much was granted since, and so much used.
    fn pass(&mut self, granted: Duration, used: Duration) {
        let left = self.left.saturating_add(nanoseconds(granted));
        // What is not used is not kept beyond what may be used at once.
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
        // What a poll wants is done whenever there is anything left for it.
        let mut pace = Pace::of(Some(100));
        let (mut used, poll) = (Duration::ZERO, 20 * MS);
        for _ in 0..40_000 {
            let cost = if pace.left > 0 { poll } else { MS / 10 };
            used += cost;
            pace.pass(25 * MS / 100, cost);
        }
        // A thousand seconds: ten of them, what may be used at once, and one poll.
        assert!(used <= 10_000 * MS + MOST + poll, "{used:?}");
        assert!(used >= 9_900 * MS, "{used:?}");
    }
}
