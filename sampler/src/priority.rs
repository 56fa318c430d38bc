//! The draining thread's priority: as high as it may have.
//!
//! A drain that waits behind a busy target loses records when its rings fill up.
//! Real time at the lowest such priority is enough to come before everything
//! that is ordinary, and yields to everything that is really urgent.

use crate::sys;

/// What the thread got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// For the session record: `SCHED_FIFO 1`, `nice -20`, `nice 0`.
    pub words: String,
    /// Whether that is a real-time priority.
    pub real_time: bool,
}

/// Gives the calling thread `SCHED_FIFO` at the lowest real-time priority, else the
/// best nice value it may have, and says which. Threads and processes that it
/// starts under real time begin at the ordinary priority (`SCHED_RESET_ON_FORK`,
/// sched(7)). A nice value is inherited: start nothing from this thread.
#[must_use]
pub fn raise_this_thread() -> Scheduling {
    let priority = sys::lowest_fifo_priority();
    if sys::set_fifo(priority).is_ok() {
        return Scheduling {
            words: format!("SCHED_FIFO {priority}"),
            real_time: true,
        };
    }
    // RLIMIT_NICE may allow a part of the way, so each step is asked for.
    let now = sys::nice();
    let _best = (-20..now).find(|&nice| sys::set_nice(nice).is_ok());
    Scheduling {
        words: format!("nice {}", sys::nice()),
        real_time: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_priority_is_always_had_and_named() {
        // On a thread of its own, as the test runner's must stay as it is.
        let got = std::thread::spawn(raise_this_thread)
            .join()
            .expect("does not panic");
        assert_eq!(got.real_time, got.words.starts_with("SCHED_FIFO "));
        assert!(got.real_time || got.words.starts_with("nice "));
    }
}
