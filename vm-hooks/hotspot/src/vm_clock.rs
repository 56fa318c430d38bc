//! The JVM's own clock and its offset from `CLOCK_MONOTONIC`.
//!
//! A tick is a nanosecond of `CLOCK_MONOTONIC` since the VM's start (`os::elapsed_counter`).
//! The static variable `initial_time_count` has the time of the start; a library with a symbol
//! table has a local symbol for it. Without the symbol, two observations narrow the time down.
//! The VM publishes its start in milliseconds of wall-clock time. And new ticks found by a poll
//! lie between the previous poll and this one.

use vmscope_process::{LoadedModule, ProcessView};
use vmscope_records::{DurationNs, TimeNs};

use crate::perf_data::PerfData;

/// Names of the symbol: a file-local variable, in C++ or in C.
const SYMBOLS: [&str; 2] = ["_ZL18initial_time_count", "initial_time_count"];

/// Error bound of the published start. The VM truncates it to milliseconds and reads its two
/// clocks some microseconds apart, or more after losing its CPU.
const BEGIN_BEFORE_NS: i128 = 200_000;
const BEGIN_AFTER_NS: i128 = 1_100_000;

/// Deviation of observations that discards the calculated start: the wall clock was set, or the
/// target has another monotonic clock (time namespace).
const CONTRADICTION_NS: i128 = 50_000_000;

/// Conversion of JVM ticks to `CLOCK_MONOTONIC`.
#[derive(Clone, Debug, Default)]
pub struct VmClock {
    /// Exact time of tick 0, from the VM.
    exact: Option<i128>,
    /// Bounds of the time of tick 0 in nanoseconds.
    reckoned: Option<(i128, i128)>,
    /// Likewise, from observed ticks alone.
    observed: Option<(i128, i128)>,
}

impl VmClock {
    /// The clock of the JVM in `process`; `libjvm` is its library, if known.
    #[must_use]
    pub fn new(process: &ProcessView, libjvm: Option<&LoadedModule>, data: &PerfData) -> Self {
        let exact = libjvm.and_then(|libjvm| start_in_memory(process, libjvm));
        let mut clock = Self {
            exact,
            ..Self::default()
        };
        clock.reckon(data);
        clock
    }

    /// Reads the VM's start from `data` if still unknown; the VM publishes it after its start.
    pub fn reckon(&mut self, data: &PerfData) {
        let began = data.long("sun.rt.createVmBeginTime");
        let began = began.filter(|began| *began > 0 && self.reckoned.is_none());
        if let (Some(began), Some(offset)) = (began, wall_clock_offset()) {
            let began = i128::from(began) * 1_000_000 - offset;
            self.reckoned = Some((began - BEGIN_BEFORE_NS, began + BEGIN_AFTER_NS));
        }
    }

    /// A clock with tick 0 at `start`.
    #[must_use]
    pub fn starting_at(start: TimeNs) -> Self {
        Self {
            exact: Some(i128::from(start.0)),
            ..Self::default()
        }
    }

    /// Adds an observation: `ticks` were between `from` and `to`.
    pub fn observe(&mut self, ticks: i64, from: TimeNs, to: TimeNs) {
        let ticks = i128::from(ticks);
        let (low, high) = (i128::from(from.0) - ticks, i128::from(to.0) - ticks);
        let narrower = match self.observed {
            Some(known) => (known.0.max(low), known.1.min(high)),
            None => (low, high),
        };
        // The VM takes ticks shortly before it stores them. A thread that loses its CPU in
        // between contradicts earlier observations.
        self.observed = Some(if narrower.0 <= narrower.1 {
            narrower
        } else {
            (low, high)
        });
        let is_off = |known: (i128, i128)| {
            known.0 > high + CONTRADICTION_NS || known.1 < low - CONTRADICTION_NS
        };
        if self.exact.is_some_and(|exact| is_off((exact, exact))) {
            self.exact = None;
        }
        if self.reckoned.is_some_and(is_off) {
            self.reckoned = None;
        }
    }

    /// Bounds of the time of tick 0.
    fn start(&self) -> Option<(i128, i128)> {
        if let Some(exact) = self.exact {
            return Some((exact, exact));
        }
        match (self.reckoned, self.observed) {
            (Some(one), Some(other)) => {
                let both = (one.0.max(other.0), one.1.min(other.1));
                Some(if both.0 <= both.1 { both } else { one })
            }
            (one, other) => one.or(other),
        }
    }

    /// Time of `ticks`; `None` if unknown or impossible.
    #[must_use]
    pub fn time_of(&self, ticks: i64) -> Option<TimeNs> {
        let (low, high) = self.start()?;
        let time = low + (high - low) / 2 + i128::from(ticks);
        u64::try_from(time).ok().filter(|_| ticks > 0).map(TimeNs)
    }

    /// Known maximum error of [`VmClock::time_of`]; `None` if unknown.
    #[must_use]
    pub fn uncertainty(&self) -> Option<DurationNs> {
        let (low, high) = self.start()?;
        let half = u64::try_from((high - low + 1) / 2).unwrap_or(u64::MAX);
        Some(DurationNs(half))
    }
}

/// The variable in the VM's memory.
fn start_in_memory(process: &ProcessView, libjvm: &LoadedModule) -> Option<i128> {
    let found = process.symbols(libjvm, &SYMBOLS).ok()?;
    let symbol = found.into_iter().flatten().next()?;
    let value = process.memory().read_u64(symbol.address).ok()?;
    (value > 0).then_some(i128::from(value))
}

/// Wall-clock time minus `CLOCK_MONOTONIC`, in nanoseconds.
fn wall_clock_offset() -> Option<i128> {
    let began = vmscope_process::wall_time(TimeNs(0))?;
    let began = began.duration_since(std::time::UNIX_EPOCH).ok()?;
    i128::try_from(began.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_observed_narrows_it_down() {
        let mut clock = VmClock::default();
        assert_eq!(clock.time_of(5), None);
        assert_eq!(clock.uncertainty(), None);
        // Tick 0 was at 1000; polls are 100 apart.
        clock.observe(130, TimeNs(1100), TimeNs(1200));
        assert_eq!(clock.uncertainty(), Some(DurationNs(50)));
        clock.observe(290, TimeNs(1200), TimeNs(1300));
        clock.observe(305, TimeNs(1300), TimeNs(1400));
        // Bounds: 995 from the third poll, 1010 from the second.
        assert_eq!(clock.uncertainty(), Some(DurationNs(8)));
        assert_eq!(clock.time_of(400), Some(TimeNs(1402)));
        assert_eq!(clock.time_of(0), None, "never happened");
        // A contradiction resets the observations.
        clock.observe(100, TimeNs(1000), TimeNs(1050));
        assert_eq!(clock.uncertainty(), Some(DurationNs(25)));
    }

    #[test]
    fn a_start_that_is_contradicted_is_given_up() {
        let second = 1_000_000_000;
        let mut clock = VmClock::starting_at(TimeNs(5 * second));
        clock.observe(1, TimeNs(5 * second), TimeNs(6 * second));
        assert_eq!(clock.uncertainty(), Some(DurationNs(0)));
        // The target's clock differs from ours by hours.
        clock.observe(7, TimeNs(5000 * second), TimeNs(5001 * second));
        assert_eq!(clock.uncertainty(), Some(DurationNs(second / 2)));
        assert_eq!(clock.time_of(i64::MIN), None);
        clock.observe(i64::MAX, TimeNs(0), TimeNs(u64::MAX));
        assert!(clock.time_of(i64::MAX).is_some());
    }
}
