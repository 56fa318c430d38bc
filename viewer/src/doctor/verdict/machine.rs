//! Checks of kernel version and container.

use super::super::facts::{Facts, MachineFacts};
use super::row::{Finding, limited, no, ok};

/// The oldest kernel with selectable sample clocks (`perf_event_attr.use_clockid`), without which
/// samples and records can't be ordered.
const OLDEST_KERNEL: (u32, u32) = (4, 1);

/// The first kernel with `CAP_PERFMON`.
pub(super) const PERFMON_KERNEL: (u32, u32) = (5, 8);

pub(super) fn is_too_old(machine: &MachineFacts) -> bool {
    release(&machine.kernel_release).is_some_and(|release| release < OLDEST_KERNEL)
}

/// Major and minor number of a release such as `6.1.0-13-amd64`.
pub(super) fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(super) fn kernel(machine: &MachineFacts, _: &Facts) -> Finding {
    let found = machine.kernel_release.as_str();
    match release(found) {
        Some(release) if release < OLDEST_KERNEL => {
            let meaning = "too old: sample times by CLOCK_MONOTONIC need 4.1 or newer";
            no(found, meaning)
        }
        Some(release) if release < PERFMON_KERNEL => {
            let meaning = "no CAP_PERFMON before 5.8: use CAP_SYS_ADMIN";
            ok(found, meaning)
        }
        Some(_) => ok(found, "has all required features"),
        None => limited(found, "unknown version format"),
    }
}

pub(super) fn container(machine: &MachineFacts, _: &Facts) -> Finding {
    let found = match (&machine.container, machine.initial_user_namespace) {
        (Some((kind, by)), true) => format!("{kind} ({by})"),
        (Some((kind, _)), false) => format!("{kind}, user namespace"),
        (None, true) => "none".to_owned(),
        (None, false) => "user namespace".to_owned(),
    };
    if !machine.initial_user_namespace {
        let meaning = "its capabilities do not count for perf events";
        return limited(found, meaning);
    }
    ok(
        found,
        match machine.seccomp_filter {
            true => "a seccomp filter is active and may override settings",
            false => "no seccomp filter",
        },
    )
}
