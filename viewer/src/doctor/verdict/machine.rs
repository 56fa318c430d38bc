//! The rows about the machine, in their order; those that are neither about perf events
//! nor about rights are here.

use super::super::facts::{MachineFacts, PerfProbe, Setting};
use super::perf::{kernel_samples, kptr_restrict, mlock, paranoid, user_samples};
use super::rights::{capabilities, descriptors, nice, ptrace_scope, real_time};
use super::{Group, Mark, Row, row};

/// The oldest kernel that gives samples a clock of our choice
/// (`perf_event_attr.use_clockid`), without which they can't be put in order with records.
const OLDEST_KERNEL: (u32, u32) = (4, 1);
/// The first with `CAP_PERFMON`.
pub(super) const PERFMON_KERNEL: (u32, u32) = (5, 8);
pub(super) fn rows(machine: &MachineFacts, perf: Option<&PerfProbe>) -> Vec<Row> {
    vec![
        user_samples(machine, perf),
        kernel_samples(machine, perf),
        paranoid(machine),
        mlock(machine),
        kptr_restrict(machine, perf),
        ptrace_scope(machine),
        capabilities(machine),
        real_time(machine),
        nice(machine),
        descriptors(machine),
        kernel(machine),
        container(machine),
    ]
}

pub(super) fn kernel_too_old(machine: &MachineFacts) -> bool {
    release(&machine.kernel_release).is_some_and(|release| release < OLDEST_KERNEL)
}

/// Major and minor number of a release such as `6.1.0-13-amd64`.
pub(super) fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(super) fn machine_row(
    id: &'static str,
    mark: Mark,
    what: &str,
    found: impl Into<String>,
    meaning: impl Into<String>,
) -> Row {
    row(id, Group::Machine, mark, what, found, meaning)
}

pub(super) fn found(setting: &Setting) -> String {
    match setting {
        Setting::Value(value) => value.to_string(),
        Setting::Absent => "not there".to_owned(),
        Setting::Unreadable(why) => format!("unreadable: {why}"),
    }
}

fn kernel(machine: &MachineFacts) -> Row {
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

fn container(machine: &MachineFacts) -> Row {
    let found = match (&machine.container, machine.initial_user_namespace) {
        (Some((kind, by)), true) => format!("{kind} ({by})"),
        (Some((kind, _)), false) => format!("{kind}, user namespace"),
        (None, true) => "none".to_owned(),
        (None, false) => "user namespace".to_owned(),
    };
    let make = |mark, meaning: &str| machine_row("container", mark, "container", &found, meaning);
    if !machine.initial_user_namespace {
        return make(
            Mark::Limited,
            "capabilities held in it don't count for the kernel's events",
        );
    }
    if machine.seccomp_filter {
        return make(
            Mark::Ok,
            "a seccomp filter is on: it may forbid what settings allow",
        );
    }
    make(Mark::Ok, "nothing is filtered")
}
