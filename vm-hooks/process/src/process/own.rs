//! A process's user, start time and environment.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};
use vmscope_records::TimeNs;

use super::{ProcessView, Source};
use crate::attach::{MAX_PROC_FILE_BYTES, read_bounded};

/// Environment variables: names and values.
pub type Environment = Vec<(Vec<u8>, Vec<u8>)>;

impl ProcessView {
    /// Start time (`CLOCK_MONOTONIC`, precise to 10 ms); of an exited process, the time from
    /// [`ProcessView::begun`]. `None` if unknown.
    #[must_use]
    pub fn started(&self) -> Option<TimeNs> {
        self.started
    }

    /// Sets the start of this program in an exited process.
    #[must_use]
    pub fn begun(mut self, began: TimeNs) -> Self {
        self.started = Some(began);
        self
    }

    /// Effective user id at inspection; `None` without one.
    #[must_use]
    pub fn user(&self) -> Option<u32> {
        self.user
    }

    /// Initial environment of the program, unless overwritten. Entries without `=` are dropped.
    ///
    /// # Errors
    /// I/O errors: `EACCES` for another user's process, `ENOENT` after the exit or without a live
    /// process, [`io::ErrorKind::FileTooLarge`] beyond 2 MiB.
    pub fn environment(&self) -> io::Result<Environment> {
        if !matches!(self.source, Source::Live { .. }) || !self.is_alive() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let bytes = read_bounded(&format!("/proc/{}/environ", self.pid))?;
        if bytes.len() as u64 >= MAX_PROC_FILE_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let variables = bytes.split(|byte| *byte == 0).filter_map(|variable| {
            let equals = variable.iter().position(|byte| *byte == b'=')?;
            let (name, value) = variable.split_at_checked(equals)?;
            Some((name.to_vec(), value.get(1..)?.to_vec()))
        });
        Ok(variables.collect())
    }
}

/// Converts clock ticks since boot to a time. Ticks follow `CLOCK_BOOTTIME`, which counts suspended
/// time.
pub(super) fn time_of_ticks(ticks: u64) -> Option<TimeNs> {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    let per_second = u128::try_from(per_second).ok().filter(|hz| *hz > 0)?;
    let since_boot = u128::from(ticks) * 1_000_000_000 / per_second;
    let suspended =
        clock(ClockId::CLOCK_BOOTTIME)?.saturating_sub(clock(ClockId::CLOCK_MONOTONIC)?);
    let started = since_boot.saturating_sub(suspended.as_nanos());
    u64::try_from(started).ok().map(TimeNs)
}

/// Wall-clock time of `time` (`CLOCK_MONOTONIC`), if no clock was set since and the machine was not
/// suspended.
#[must_use]
pub fn wall_time(time: TimeNs) -> Option<SystemTime> {
    let ahead = clock(ClockId::CLOCK_REALTIME)?.checked_sub(clock(ClockId::CLOCK_MONOTONIC)?)?;
    UNIX_EPOCH.checked_add(ahead.checked_add(Duration::from_nanos(time.0))?)
}

/// Current time on `CLOCK_MONOTONIC`.
#[must_use]
pub fn monotonic_time() -> Option<TimeNs> {
    let now = clock(ClockId::CLOCK_MONOTONIC)?;
    u64::try_from(now.as_nanos()).ok().map(TimeNs)
}

fn clock(clock: ClockId) -> Option<Duration> {
    clock_gettime(clock).map(Duration::from).ok()
}
