//! Which clock a dump's times follow.
//!
//! The format wants the clock of the samples, and VMs that follow it write
//! `CLOCK_MONOTONIC` in nanoseconds; V8 does so for its code, but heads the file with
//! microseconds of wall-clock time. So the head's time says nothing: the first piece
//! of code does.

use vmscope_records::TimeNs;

/// A time later than now by more than this belongs to another clock.
const SLACK_NS: u64 = 1_000_000_000;

/// How far apart two readings of the wall clock can be for a dump of a running
/// process: a year.
const YEAR_NS: u64 = 366 * 24 * 3600 * 1_000_000_000;

/// The clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub monotonic: TimeNs,
    /// `CLOCK_REALTIME`, nanoseconds since 1970.
    pub wall: u64,
}

/// Conversion from a dump's times to the recording's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DumpClock {
    /// `CLOCK_MONOTONIC` of a time namespace that is so many nanoseconds ahead.
    Monotonic(i64),
    /// `CLOCK_REALTIME`, so many nanoseconds ahead of `CLOCK_MONOTONIC`.
    Wall(u64),
    /// Another one: only the order can be used.
    Unknown,
}

/// What a time namespace adds to `CLOCK_MONOTONIC`, in nanoseconds, by the text of
/// `/proc/PID/timens_offsets` (`time_namespaces(7)`: seconds and nanoseconds).
pub(crate) fn ahead_of(timens_offsets: &str) -> Option<i64> {
    let line = timens_offsets.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        // Older kernels number the clocks: CLOCK_MONOTONIC is 1.
        matches!(words.next()?, "monotonic" | "1").then_some(words)
    });
    let mut words = line?;
    let seconds: i64 = words.next()?.parse().ok()?;
    let nanoseconds: i64 = words.next()?.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

impl DumpClock {
    /// Judges by the time of a dump's first piece of code. `ahead` is what the
    /// target's time namespace adds to `CLOCK_MONOTONIC`; `started` when the process
    /// that wrote the dump started, where that is known.
    pub fn judge(first: u64, ahead: i64, started: Option<TimeNs>, now: Moment) -> Self {
        let clock = DumpClock::Monotonic(ahead);
        if let Some(time) = clock.time(first, now.monotonic)
            && started.is_none_or(|started| started.0 <= time.0.saturating_add(SLACK_NS))
        {
            return clock;
        }
        if first.abs_diff(now.wall) < YEAR_NS {
            return DumpClock::Wall(now.wall.saturating_sub(now.monotonic.0));
        }
        DumpClock::Unknown
    }

    /// The time on `CLOCK_MONOTONIC` that the dump calls `raw`; `None` where it can't be
    /// one.
    pub fn time(self, raw: u64, now: TimeNs) -> Option<TimeNs> {
        let time = match self {
            DumpClock::Monotonic(ahead) => raw.checked_add_signed(ahead.checked_neg()?)?,
            DumpClock::Wall(ahead) => raw.checked_sub(ahead)?,
            DumpClock::Unknown => return None,
        };
        (time != 0 && time <= now.0.saturating_add(SLACK_NS)).then_some(TimeNs(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment {
        monotonic: TimeNs(500_000_000_000),
        wall: 1_795_267_506_738_948_000,
    };
    const STARTED: Option<TimeNs> = Some(TimeNs(400_000_000_000));

    #[test]
    fn a_dump_follows_the_clock_that_its_first_code_fits() {
        let judge = |first, ahead| DumpClock::judge(first, ahead, STARTED, NOW);
        assert_eq!(judge(450_000_000_000, 0), DumpClock::Monotonic(0));
        assert_eq!(judge(450_000_000_000, -60_000_000_000), DumpClock::Unknown);
        assert_eq!(
            judge(430_000_000_000, -30_000_000_000),
            DumpClock::Monotonic(-30_000_000_000)
        );
        let wall = judge(NOW.wall - 5_000_000_000, 0);
        assert_eq!(
            wall.time(NOW.wall - 5_000_000_000, NOW.monotonic),
            Some(TimeNs(495_000_000_000))
        );
        assert_eq!(judge(450_000_000, 0), DumpClock::Unknown, "microseconds");
        assert_eq!(judge(0, 0), DumpClock::Unknown);
        assert_eq!(judge(u64::MAX, 0), DumpClock::Unknown);
    }

    #[test]
    fn offsets_of_time_namespaces_are_read() {
        let text = "monotonic      -12345         250000000\nboottime 7 0\n";
        assert_eq!(ahead_of(text), Some(-12_344_750_000_000));
        assert_eq!(ahead_of("boottime 7 0\n"), None);
        assert_eq!(ahead_of("monotonic 9223372036854775807 0"), None);
        assert_eq!(ahead_of(""), None);
    }

    #[test]
    fn a_time_that_is_yet_to_come_is_none() {
        let clock = DumpClock::Monotonic(0);
        assert_eq!(clock.time(600_000_000_000, NOW.monotonic), None);
        assert_eq!(clock.time(0, NOW.monotonic), None);
        assert_eq!(DumpClock::Unknown.time(1, NOW.monotonic), None);
    }
}
