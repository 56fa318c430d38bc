//! Whether the default recording's events can be opened here, tried out.

use std::io;

use vmscope_records::Pid;

use super::attr::{Extras, Recipe};
use crate::rate::SamplingRate;
use crate::sys;

/// What came of opening an event and closing it again.
#[derive(Debug)]
pub struct Probe {
    /// The default recording's event on user space alone.
    pub user: io::Result<()>,
    /// The same with the kernel included.
    pub kernel: io::Result<()>,
}

/// Opens the default recording's event on process `pid` (its main thread), or on the
/// calling thread, and closes it again without having started it.
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
        let tid = pid.map_or(0, |pid| pid.0);
        sys::perf_event_open(&recipe.sampling(), tid, None).map(drop)
    };
    Probe {
        user: open(true),
        kernel: open(false),
    }
}
