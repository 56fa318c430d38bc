//! Facts, figures and collections, from the VM's statistics.
//!
//! The VM stores numbers only. A [`Look`] reads them all; the difference of two looks shows the
//! collections in between ([`collections`]).

mod collections;
mod compactions;
mod figures;
mod look;
mod parameters;

use vmscope_process::{AdapterError, Memory, Poll, monotonic_time, wall_time};
use vmscope_records::TimeNs;

use crate::Variables;
use collections::Collections;
use compactions::Compactions;
use look::{Look, Reader};

pub(crate) use look::NAMES;

/// Interval of figures in nanoseconds.
const FIGURES_EVERY: u64 = 1_000_000_000;

/// Seconds from 1901, where the VM's clock begins, to 1970.
const EPOCH_SECONDS: u64 = 2_177_452_800;

/// Reader of one VM's statistics.
#[derive(Debug, Default)]
pub struct VmData {
    /// Made at the first poll.
    reader: Option<Reader>,
    collections: Collections,
    compactions: Compactions,
    /// Time of the last figures.
    figures_at: Option<TimeNs>,
    /// Look of the last figures.
    figures_of: Option<Look>,
}

impl VmData {
    /// Reports collections since the last poll, and figures once a second and at the last poll.
    ///
    /// # Errors
    /// Failed reads; [`AdapterError::Torn`] if the numbers change during each attempt.
    pub fn poll(
        &mut self,
        variables: &Variables,
        memory: &dyn Memory,
        (clock, is_last): (VmClock, bool),
        poll: &mut Poll,
    ) -> Result<(), AdapterError> {
        let next = self.figures_at.map(|at| at.0.saturating_add(FIGURES_EVERY));
        let is_due = is_last || next.is_none_or(|next| poll.began().0 >= next);
        let new = || Reader::new(variables, memory.pointer_bytes());
        let look = self.reader.get_or_insert_with(new).read(memory, is_due)?;
        let read_at = poll.now();
        if self.figures_at.is_none() {
            look.tell_missing(poll);
            parameters::tell_facts(look, poll);
        }
        self.collections.take(look, clock, read_at, poll);
        self.compactions.take(look, read_at, poll);
        if is_due && self.figures_of.as_ref() != Some(look) {
            figures::tell(look, poll);
            parameters::tell(look, poll);
            self.collections.tell_totals(look, poll);
            compactions::tell_totals(look, poll);
            self.figures_at = Some(poll.began());
            self.figures_of = Some(look.clone());
        }
        Ok(())
    }
}

/// Converts times of the VM's clock: microseconds since 1901, universal time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmClock {
    /// A time of the VM's clock in microseconds, and the same time on `CLOCK_MONOTONIC`.
    same: Option<(u64, TimeNs)>,
}

impl VmClock {
    /// The clock of a VM on this machine now.
    #[must_use]
    pub fn now() -> Self {
        let same = || {
            let now = monotonic_time()?;
            let wall = wall_time(now)?.duration_since(std::time::UNIX_EPOCH).ok()?;
            let wall = u64::try_from(wall.as_micros()).ok()?;
            Some((wall.checked_add(EPOCH_SECONDS * 1_000_000)?, now))
        };
        VmClock { same: same() }
    }

    /// A clock that shows `micros` at `time`.
    #[cfg(test)]
    fn showing(micros: u64, time: TimeNs) -> Self {
        VmClock {
            same: Some((micros, time)),
        }
    }

    /// The clock of a VM whose times mean nothing here: a core file's.
    #[must_use]
    pub fn unknown() -> Self {
        VmClock { same: None }
    }

    fn time_of(self, micros: u64) -> Option<TimeNs> {
        let (same, time) = self.same?;
        let ns = |micros: u64| micros.checked_mul(1000);
        Some(TimeNs(match micros.checked_sub(same) {
            Some(after) => time.0.checked_add(ns(after)?)?,
            None => time.0.checked_sub(ns(same.checked_sub(micros)?)?)?,
        }))
    }
}

#[cfg(test)]
mod tests;
