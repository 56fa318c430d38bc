//! Priorities of vmscope's threads, so that a busy machine does not starve them.
//!
//! A drain delayed by a busy target loses records to ring overflow. The lowest real-time priority
//! precedes all ordinary threads and yields to other real-time threads. The other threads get the
//! best nice value.

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
    improve_nice(sys::nice());
    Scheduling {
        words: format!("nice {}", sys::nice()),
        real_time: false,
    }
}

/// Sets the best nice value below `now`; RLIMIT_NICE may allow intermediate values only.
fn improve_nice(now: i32) {
    let _best = (-20..now).find(|&nice| sys::set_nice(nice).is_ok());
}

/// The best nice value that the user may have, for the calling thread and the threads that it
/// starts. Dropping it restores the calling thread's value.
///
/// Start no other programs meanwhile: they inherit the value.
#[derive(Debug)]
pub struct Favoured {
    before: i32,
}

impl Favoured {
    /// Favours the calling thread.
    #[must_use]
    pub fn begin() -> Self {
        let before = sys::nice();
        improve_nice(before);
        Self { before }
    }
}

impl Drop for Favoured {
    fn drop(&mut self) {
        // A worse value is always allowed.
        let _ = sys::set_nice(self.before);
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

    #[test]
    fn threads_are_favoured_until_the_end_only() {
        std::thread::spawn(|| {
            let before = sys::nice();
            let favoured = Favoured::begin();
            let inherited = std::thread::spawn(sys::nice).join();
            let raised = inherited.expect("does not panic");
            assert_eq!(raised, sys::nice());
            assert!(raised <= before);
            drop(favoured);
            assert_eq!(sys::nice(), before);
        })
        .join()
        .expect("does not panic");
    }
}
