//! Pauses between readings: long pauses after costly readings.

use std::time::Duration;

use vmscope_process::cpu_time;
use vmscope_records::TimeNs;

/// The earliest time of the next reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    next: TimeNs,
    /// Length of a pause, in CPU times of the reading before.
    rest: u32,
    shortest: Duration,
    /// Length of pauses that later pauses make up for.
    credit: Duration,
    /// CPU time of all readings.
    total: Duration,
}

impl Pace {
    /// For readings of everything: at most half a percent of a CPU.
    pub const WHOLE: Pace = Pace::new(200, Duration::from_secs(1), Duration::ZERO);

    /// For readings of sampled code: at most two percent of a CPU. A single costly reading, as at the begin, does not
    /// delay the next: meanwhile a collection may free code that no reading has seen.
    pub const HITS: Pace = Pace::new(50, Duration::ZERO, Duration::from_millis(500));

    /// For readings of new scripts' functions, which may take one percent of a CPU. Each new worker brings a thousand
    /// functions or more.
    pub const SCRIPTS: Pace = Pace::new(100, Duration::ZERO, Duration::from_millis(500));

    const fn new(rest: u32, shortest: Duration, credit: Duration) -> Self {
        Pace {
            next: TimeNs(0),
            rest,
            shortest,
            credit,
            total: Duration::ZERO,
        }
    }

    /// Whether a reading is due: only the credit's length of pauses is left.
    pub fn is_due(self, now: TimeNs) -> bool {
        later(now, self.credit) >= self.next
    }

    /// Reads, and begins the pause.
    pub fn reading<T>(&mut self, now: TimeNs, read: impl FnOnce() -> T) -> T {
        let before = cpu_time();
        let done = read();
        self.spent(now, cpu_time().saturating_sub(before));
        done
    }

    /// CPU time of all readings so far.
    pub fn total(self) -> Duration {
        self.total
    }

    /// Begins the pause after a reading that took `cost` of CPU time.
    pub fn spent(&mut self, now: TimeNs, cost: Duration) {
        let pause = cost.saturating_mul(self.rest).max(self.shortest);
        self.total = self.total.saturating_add(cost);
        let owed = self.next.min(later(now, self.credit));
        self.next = later(now.max(owed), pause);
    }
}

fn later(time: TimeNs, by: Duration) -> TimeNs {
    let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
    TimeNs(time.0.saturating_add(by))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_as_long_as_the_cost_demands() {
        let ms = Duration::from_millis;
        let at = |ms: u64| TimeNs(ms * 1_000_000);
        let mut pace = Pace::WHOLE;
        assert!(pace.is_due(TimeNs(0)));
        pace.spent(at(1000), ms(7));
        assert!(!pace.is_due(at(2399)) && pace.is_due(at(2400)));
        pace.spent(at(2000), Duration::ZERO);
        assert!(!pace.is_due(at(2999)) && pace.is_due(at(3000)));
        pace.spent(at(1), Duration::MAX);
        assert!(!pace.is_due(at(1 << 40)));
    }

    #[test]
    fn a_single_costly_reading_is_made_up_for_later() {
        let ms = Duration::from_millis;
        let at = |ms: u64| TimeNs(ms * 1_000_000);
        let mut pace = Pace::HITS;
        pace.spent(at(1000), ms(8));
        assert!(pace.is_due(at(1000)));
        pace.spent(at(1000), ms(8));
        assert!(!pace.is_due(at(1299)) && pace.is_due(at(1300)));
        // Credit does not grow with time.
        pace.spent(at(9000), ms(12));
        assert!(!pace.is_due(at(9099)) && pace.is_due(at(9100)));
    }
}
