//! Priority of the drain thread.
//!
//! A drain delayed by a busy target loses records to ring overflow. The lowest real-time priority
//! precedes all ordinary threads and yields to other real-time threads.

use crate::sys;

/// Scheduling of the drain thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// For the session record: `SCHED_FIFO 1`, `nice -20`, `nice 0`.
    pub words: String,
    /// Whether the priority is real-time.
    pub real_time: bool,
}

/// Sets `SCHED_FIFO` at the lowest priority for the calling thread, else the best available nice
/// value. Threads started under `SCHED_FIFO` get ordinary priority (`SCHED_RESET_ON_FORK`,
/// sched(7)); nice values are inherited, so start nothing from this thread.
#[must_use]
pub fn raise_this_thread() -> Scheduling {
    let priority = sys::lowest_fifo_priority();
    if sys::set_fifo(priority).is_ok() {
        return Scheduling {
            words: format!("SCHED_FIFO {priority}"),
            real_time: true,
        };
    }
    // RLIMIT_NICE may allow intermediate values only.
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
        // In a separate thread, to keep the test runner's priority.
        let got = std::thread::spawn(raise_this_thread)
            .join()
            .expect("does not panic");
        assert_eq!(got.real_time, got.words.starts_with("SCHED_FIFO "));
        assert!(got.real_time || got.words.starts_with("nice "));
    }
}
