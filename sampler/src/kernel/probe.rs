//! Test of the default recording's events.

use std::io;

use vmscope_records::Pid;

use super::attr::{Extras, Recipe};
use super::open::living_threads;
use crate::rate::SamplingRate;
use crate::sys;

/// Results of opening events.
#[derive(Debug)]
pub struct Probe {
    /// User space only.
    pub user: io::Result<()>,
    /// Kernel included.
    pub kernel: io::Result<()>,
}

/// Opens and closes the default recording's event on a thread of `pid` that has not ended, or on
/// the calling thread, without starting it.
#[must_use]
pub fn probe(pid: Option<Pid>) -> Probe {
    let open = |exclude_kernel| {
        let recipe = Recipe {
            period_ns: SamplingRate::DEFAULT.period().0,
            extras: Extras::default(),
            exclude_kernel,
            inherit: true,
            inherit_thread: true,
            on_exec: false,
            wakeup_bytes: 1,
        };
        // 0 is the calling thread (perf_event_open(2)).
        let tid = pid.map_or(0, |Pid(pid)| living_threads(pid).next().unwrap_or(pid));
        sys::perf_event_open(&recipe.sampling(), tid, None).map(drop)
    };
    Probe {
        user: open(true),
        kernel: open(false),
    }
}
