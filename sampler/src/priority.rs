//! Priorities of vmscope's threads, so that a busy machine does not starve them.
//!
//! A drain delayed by a busy target loses records to ring overflow. The lowest real-time priority
//! precedes all ordinary threads and yields to other real-time threads. The other threads get the
//! best nice value.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::sys::{self, Heirs};

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
    if sys::set_fifo(priority, Heirs::Ordinary).is_ok() {
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

/// The user's best permitted nice value, for the calling thread and the threads that it
/// starts: until [`Favoured::end`], or until the program's exit, since exiting is work, too.
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

    /// Restores the calling thread's value.
    pub fn end(&self) {
        // A worse value is always allowed.
        let _ = sys::set_nice(self.before);
    }

    /// Runs `work` with the value from before.
    pub fn pause<T>(&self, work: impl FnOnce() -> T) -> T {
        let _ = sys::set_nice(self.before);
        let result = work();
        improve_nice(self.before);
        result
    }
}

/// Longest real-time priority of [`promptly`]: the targets wait so long at most.
const PROMPT: Duration = Duration::from_millis(500);

/// Runs short work for which a user waits: at real-time priority, if allowed, with all threads that
/// it starts. Work that takes longer than half a second continues at its ordinary priority.
pub fn promptly<T>(work: impl FnOnce() -> T) -> T {
    promptly_for(PROMPT, work)
}

fn promptly_for<T>(longest: Duration, work: impl FnOnce() -> T) -> T {
    let lowest = sys::lowest_fifo_priority();
    // Threads of equal priority wait for each other: the watch needs a higher priority.
    if sys::set_fifo(lowest + 1, Heirs::Same).is_err() {
        return work();
    }
    let (done, is_done) = channel::<()>();
    std::thread::scope(|scope| {
        let watch = std::thread::Builder::new().spawn_scoped(scope, move || {
            if is_done.recv_timeout(longest) == Err(RecvTimeoutError::Timeout) {
                end_real_time();
            }
        });
        if watch.is_err() || sys::set_fifo(lowest, Heirs::Same).is_err() {
            end_real_time();
        }
        let result = work();
        drop(done);
        let _ = sys::set_ordinary(0);
        result
    })
}

/// Ends the real-time priority of this program's threads that hand it on.
fn end_real_time() {
    let tids = || std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let ended = |tid: &str| {
        let tid = tid.parse().ok()?;
        sys::hands_on_fifo(tid).then(|| sys::set_ordinary(tid).ok())?
    };
    let end_all = || {
        tids()
            .flatten()
            .filter_map(|tid| ended(tid.file_name().to_str()?))
            .count()
    };
    // A thread may have started others meanwhile.
    while end_all() > 0 {}
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
            assert_eq!(favoured.pause(sys::nice), before);
            assert_eq!(sys::nice(), raised);
            favoured.end();
            assert_eq!(sys::nice(), before);
        })
        .join()
        .expect("does not panic");
    }

    /// Whether this thread and one that it starts have real-time priority.
    fn are_real_time() -> (bool, bool) {
        let heir = std::thread::spawn(|| sys::hands_on_fifo(0)).join();
        (sys::hands_on_fifo(0), heir.expect("does not panic"))
    }

    #[test]
    fn prompt_work_has_real_time_priority_to_its_end() {
        std::thread::spawn(|| {
            let allowed = raise_this_thread().real_time;
            sys::set_ordinary(0).expect("allowed");
            assert_eq!(promptly(are_real_time), (allowed, allowed));
            assert_eq!(are_real_time(), (false, false));
        })
        .join()
        .expect("does not panic");
    }

    #[test]
    fn long_work_and_its_threads_lose_the_priority() {
        std::thread::spawn(|| {
            promptly_for(Duration::ZERO, || {
                let heir = std::thread::spawn(|| while sys::hands_on_fifo(0) {});
                while sys::hands_on_fifo(0) {}
                heir.join().expect("does not panic");
            });
        })
        .join()
        .expect("does not panic");
    }
}
