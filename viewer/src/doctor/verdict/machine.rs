//! The rows about the machine, in their order, and the row about its container.

use super::super::facts::{MachineFacts, PerfProbe};
use super::kernel::kernel;
use super::perf::{kernel_samples, kptr_restrict, mlock, paranoid, user_samples};
use super::rights::{capabilities, descriptors, nice, ptrace_scope, real_time};
use super::row::{Mark, Row, machine_row};

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
