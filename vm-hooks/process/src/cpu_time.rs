//! CPU time of threads.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// CPU time of this thread (`CLOCK_THREAD_CPUTIME_ID`): on a busy machine, the cost to other
/// threads, not elapsed time. Zero if the clock is unavailable.
#[must_use]
pub fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_work_and_not_while_waiting() {
        let before = cpu_time();
        let mut value = 1_u64;
        while cpu_time() < before + Duration::from_millis(5) {
            value = std::hint::black_box(value.wrapping_mul(3));
        }
        let worked = cpu_time();
        std::thread::sleep(Duration::from_millis(50));
        assert!(cpu_time() - worked < Duration::from_millis(40));
    }
}
