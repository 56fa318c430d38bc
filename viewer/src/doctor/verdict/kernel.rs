//! The row about the kernel's version.

use super::super::facts::MachineFacts;
use super::row::{Mark, Row, machine_row};

/// The oldest kernel that gives samples a clock of our choice
/// (`perf_event_attr.use_clockid`), without which they can't be put in order with records.
const OLDEST_KERNEL: (u32, u32) = (4, 1);

/// The first kernel with `CAP_PERFMON`.
pub(super) const PERFMON_KERNEL: (u32, u32) = (5, 8);

pub(super) fn too_old(machine: &MachineFacts) -> bool {
    release(&machine.kernel_release).is_some_and(|release| release < OLDEST_KERNEL)
}

/// Major and minor number of a release such as `6.1.0-13-amd64`.
pub(super) fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(super) fn kernel(machine: &MachineFacts) -> Row {
    let make = |mark, meaning: &str| {
        machine_row("kernel", mark, "kernel", &machine.kernel_release, meaning)
    };
    match release(&machine.kernel_release) {
        Some(release) if release < OLDEST_KERNEL => make(
            Mark::No,
            "too old: 4.1 or newer can time samples by CLOCK_MONOTONIC",
        ),
        Some(release) if release < PERFMON_KERNEL => make(
            Mark::Ok,
            "CAP_PERFMON came with 5.8: CAP_SYS_ADMIN in its stead",
        ),
        Some(_) => make(Mark::Ok, "has all that is asked of it"),
        None => make(Mark::Limited, "a version that can't be read"),
    }
}
