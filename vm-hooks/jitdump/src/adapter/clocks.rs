//! Reading the clocks by which a dump's times are judged.

use nix::time::{ClockId, clock_gettime};
use vmscope_process::ProcessView;
use vmscope_records::TimeNs;

use crate::clock::{DumpClock, Moment, ahead_of};

const NS_A_SECOND: u64 = 1_000_000_000;

/// Which clock the dump of `process` follows, by the time of its first piece of code.
pub(super) fn judge_clock(first: u64, arch_timestamps: bool, process: &ProcessView) -> DumpClock {
    if arch_timestamps {
        return DumpClock::Unknown;
    }
    let offset = |who: &str| {
        let text = std::fs::read_to_string(format!("/proc/{who}/timens_offsets"));
        text.ok().and_then(|text| ahead_of(&text)).unwrap_or(0)
    };
    let pid = process.pid().to_string();
    // Most exited processes ran in vmscope's own time namespace.
    let theirs = if process.is_alive() { &pid } else { "self" };
    let ahead = offset(theirs).saturating_sub(offset("self"));
    let moment = Moment {
        monotonic: now(),
        wall: read(ClockId::CLOCK_REALTIME),
    };
    // For an exited process, the start may be the recording's start.
    let started = process.started().filter(|_| process.is_live());
    DumpClock::judge(first, ahead, started, moment)
}

/// `CLOCK_MONOTONIC` now.
pub(crate) fn now() -> TimeNs {
    TimeNs(read(ClockId::CLOCK_MONOTONIC))
}

fn read(clock: ClockId) -> u64 {
    // Linux always has these clocks; their times are after 1970.
    clock_gettime(clock).map_or(0, |time| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
        let rest = u64::try_from(time.tv_nsec()).unwrap_or(0);
        seconds.saturating_mul(NS_A_SECOND).saturating_add(rest)
    })
}
