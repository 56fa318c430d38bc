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
}

impl Pace {
    /// For readings of everything: at most half a percent of a CPU.
    pub const WHOLE: Pace = Pace::new(200, Duration::from_secs(1));

    /// For readings of sampled code: at most two percent of a CPU.
    pub const HITS: Pace = Pace::new(50, Duration::ZERO);

    const fn new(rest: u32, shortest: Duration) -> Self {
        Pace {
            next: TimeNs(0),
            rest,
            shortest,
        }
    }

    /// Whether the pause is over.
    pub fn is_due(self, now: TimeNs) -> bool {
        now >= self.next
    }

    /// Reads, and begins the pause.
    pub fn reading<T>(&mut self, now: TimeNs, read: impl FnOnce() -> T) -> T {
        let before = cpu_time();
        let done = read();
        self.spent(now, cpu_time().saturating_sub(before));
        done
    }

    /// Begins the pause after a reading that took `cost` of CPU time.
    pub fn spent(&mut self, now: TimeNs, cost: Duration) {
        let pause = cost.saturating_mul(self.rest).max(self.shortest);
        let pause = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        self.next = TimeNs(now.0.saturating_add(pause));
    }
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
}
