//! Test of the default recording's events, and the first event of all.

use std::io;
use std::os::fd::OwnedFd;
use std::thread::JoinHandle;

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
    let tid = pid.map_or(0, |Pid(pid)| living_threads(pid).next().unwrap_or(pid));
    Probe {
        user: open(tid, true).map(drop),
        kernel: open(tid, false).map(drop),
    }
}

/// Opens the default recording's event on thread `tid`; 0 is the calling thread
/// (`perf_event_open(2)`).
fn open(tid: u32, exclude_kernel: bool) -> io::Result<OwnedFd> {
    let recipe = Recipe {
        period_ns: SamplingRate::DEFAULT.period().0,
        extras: Extras::default(),
        exclude_kernel,
        inherit: true,
        inherit_thread: true,
        on_exec: false,
        wakeup_bytes: 1,
    };
    sys::perf_event_open(&recipe.sampling(), tid, None)
}

/// An event on a thread of vmscope. While one is open, further events open at once: for a machine's first
/// event, the kernel patches its code and waits for all CPUs (`account_event` in
/// `kernel/events/core.c`), some 10 ms.
#[derive(Debug)]
pub struct FirstEvent {
    _opened: Option<JoinHandle<Option<OwnedFd>>>,
}

impl FirstEvent {
    /// Opens the event in another thread, which then ends. Nothing depends on its success.
    #[must_use]
    pub fn open() -> Self {
        let thread = std::thread::Builder::new().name("vmscope-event".into());
        FirstEvent {
            _opened: thread.spawn(|| open(0, true).ok()).ok(),
        }
    }
}
