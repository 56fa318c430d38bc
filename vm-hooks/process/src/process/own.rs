//! What a process says of itself beside its memory: whose it is, since when it runs,
//! what it was given.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};
use vmscope_records::TimeNs;

use super::{ProcessView, Source};
use crate::attach::{MAX_PROC_FILE_BYTES, read_bounded};

/// The variables of an environment, names and values.
pub type Environment = Vec<(Vec<u8>, Vec<u8>)>;

impl ProcessView {
    /// When it was started (`CLOCK_MONOTONIC`, to a hundredth of a second); of one that
    /// is over what was known of it ([`ProcessView::begun`]). `None` where it is not
    /// known.
    #[must_use]
    pub fn started(&self) -> Option<TimeNs> {
        self.started
    }

    /// The same view, of a process that is over and ran this program since `began`.
    #[must_use]
    pub fn begun(mut self, began: TimeNs) -> Self {
        self.started = Some(began);
        self
    }

    /// Its effective user id when it was looked at; `None` where it was not.
    #[must_use]
    pub fn user(&self) -> Option<u32> {
        self.user
    }

    /// The environment that its program was started with, unless it has overwritten it
    /// since. What has no `=` is left out.
    ///
    /// # Errors
    ///
    /// What the system says: `EACCES` for another user's process, `ENOENT` for one that
    /// is gone or none; [`io::ErrorKind::FileTooLarge`] where it is longer than 2 MiB.
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

/// When a process was started, by the clock ticks since boot that the kernel tells: on
/// `CLOCK_BOOTTIME`, which goes on while the machine is suspended.
pub(super) fn time_of_ticks(ticks: u64) -> Option<TimeNs> {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    let per_second = u128::try_from(per_second).ok().filter(|hz| *hz > 0)?;
    let since_boot = u128::from(ticks) * 1_000_000_000 / per_second;
    let suspended =
        clock(ClockId::CLOCK_BOOTTIME)?.saturating_sub(clock(ClockId::CLOCK_MONOTONIC)?);
    let started = since_boot.saturating_sub(suspended.as_nanos());
    u64::try_from(started).ok().map(TimeNs)
}

/// What a wall clock showed at `time` (`CLOCK_MONOTONIC`), if neither was set since and
/// the machine was not suspended.
#[must_use]
pub fn wall_time(time: TimeNs) -> Option<SystemTime> {
    let ahead = clock(ClockId::CLOCK_REALTIME)?.checked_sub(clock(ClockId::CLOCK_MONOTONIC)?)?;
    UNIX_EPOCH.checked_add(ahead.checked_add(Duration::from_nanos(time.0))?)
}

fn clock(clock: ClockId) -> Option<Duration> {
    clock_gettime(clock).map(Duration::from).ok()
}
