//! The rows about perf events: may they be opened, with the kernel, with how large a
//! ring, and with what names for the kernel's functions.

use nix::errno::Errno;

use super::super::facts::{Capability, MachineFacts, PerfProbe, Setting};
use super::rights::container_grant;
use super::row::{Mark, Row, as_admin, found, machine_row};

/// The kernel's own default for `perf_event_mlock_kb`: a ring of 512 KiB for each CPU,
/// and its head page.
const MLOCK_DEFAULT_KB: i64 = 516;

/// Whether the caller's own processes can be sampled in user space: as the probe found,
/// else as the settings promise.
pub(super) fn can_sample_user(machine: &MachineFacts, perf: Option<&PerfProbe>) -> bool {
    perf.map_or_else(|| settings_allow(machine, 2), |probe| probe.user.is_ok())
}

/// The same for the kernel.
pub(super) fn can_sample_kernel(machine: &MachineFacts, perf: Option<&PerfProbe>) -> bool {
    perf.map_or_else(|| settings_allow(machine, 1), |probe| probe.kernel.is_ok())
}

/// A kernel without the setting has no perf events at all; one that hides it is not
/// trusted to allow anything.
fn settings_allow(machine: &MachineFacts, up_to: i64) -> bool {
    match machine.paranoid {
        Setting::Value(paranoid) => paranoid <= up_to || machine.perfmon_capable(),
        Setting::Absent => false,
        Setting::Unreadable(_) => machine.perfmon_capable(),
    }
}

pub(super) fn user_samples(machine: &MachineFacts, perf: Option<&PerfProbe>) -> Row {
    let make = |mark, found: &str, meaning: &str| {
        machine_row("user_samples", mark, "perf_event_open", found, meaning)
    };
    let allowed = settings_allow(machine, 2);
    match perf.map(|probe| probe.user) {
        Some(Ok(())) => make(Mark::Ok, "works", "your processes can be sampled"),
        None if allowed => make(
            Mark::Ok,
            "not tried",
            "allowed by the settings below: your processes",
        ),
        None => make(Mark::No, "not tried", "forbidden by the settings below"),
        Some(Err(Errno::ENOSYS)) => make(
            Mark::No,
            "ENOSYS",
            "this kernel (or what imitates it) has no perf events",
        ),
        Some(Err(errno @ (Errno::EPERM | Errno::EACCES))) if allowed => {
            let found = format!("{errno:?}");
            if !machine.seccomp_filter {
                let meaning = "forbidden though the settings allow it: by a security module";
                return make(Mark::No, &found, meaning);
            }
            let meaning = "forbidden though the settings allow it: by a seccomp filter";
            make(Mark::No, &found, meaning).todo(container_grant(machine, &["PERFMON"]))
        }
        Some(Err(errno)) => make(
            Mark::No,
            &format!("{errno:?}"),
            "your processes can't be sampled",
        ),
    }
}

pub(super) fn kernel_samples(machine: &MachineFacts, perf: Option<&PerfProbe>) -> Row {
    let (mark, meaning) = match (
        can_sample_user(machine, perf),
        can_sample_kernel(machine, perf),
    ) {
        (_, true) => (Mark::Ok, "time in system calls and faults is sampled too"),
        (true, false) => (
            Mark::Limited,
            "only user space is sampled; delivery counts user time",
        ),
        (false, false) => (Mark::No, "no samples at all"),
    };
    let found = match perf.map(|probe| probe.kernel) {
        Some(Ok(())) => "work".to_owned(),
        Some(Err(errno)) => format!("{errno:?}"),
        None => "not tried".to_owned(),
    };
    machine_row("kernel_samples", mark, "kernel samples", found, meaning)
}

pub(super) fn paranoid(machine: &MachineFacts) -> Row {
    let make = |mark, meaning: &str| {
        let found = found(&machine.paranoid);
        machine_row(
            "perf_event_paranoid",
            mark,
            "perf_event_paranoid",
            found,
            meaning,
        )
    };
    let lower = |to: i64| as_admin(machine, &format!("sysctl kernel.perf_event_paranoid={to}"));
    match machine.paranoid {
        Setting::Absent => make(Mark::No, "this kernel was built without perf events"),
        _ if machine.perfmon_capable() => make(Mark::Ok, "does not bind you: you have the right"),
        Setting::Unreadable(_) => make(Mark::Limited, "nobody knows what is allowed"),
        Setting::Value(..=1) => make(Mark::Ok, "your processes, the kernel's part included"),
        Setting::Value(2) => {
            make(Mark::Limited, "your processes, without the kernel").todo(lower(1))
        }
        // Distributions' own: mainline knows no more than 2.
        Setting::Value(3..) => make(Mark::No, "nothing without CAP_PERFMON").todo(lower(1)),
    }
}

pub(super) fn mlock(machine: &MachineFacts) -> Row {
    let make = |mark, meaning: String| {
        let found = match &machine.mlock_kb {
            Setting::Value(kb) => format!("{kb} kB"),
            other => found(other),
        };
        machine_row(
            "perf_event_mlock_kb",
            mark,
            "perf_event_mlock_kb",
            found,
            meaning,
        )
    };
    let Some(kb) = machine.mlock_kb.value() else {
        return make(
            Mark::Limited,
            "nobody knows how large rings may be".to_owned(),
        );
    };
    if machine.capable(Capability::IpcLock) || machine.paranoid.value().is_some_and(|p| p < 0) {
        return make(Mark::Ok, "does not bind you: rings of any size".to_owned());
    }
    // A ring is a power of two of pages, and a head page. Pages of 4 KiB are assumed:
    // with larger ones the kernel's default is larger too.
    let pages = u64::try_from(kb / 4).unwrap_or(0).saturating_sub(1);
    let ring_kib = pages.checked_ilog2().map_or(0, |power| 4_u64 << power);
    let meaning = format!("rings of {ring_kib} KiB for each CPU, for all your recordings");
    if kb >= MLOCK_DEFAULT_KB {
        return make(Mark::Ok, meaning);
    }
    let todo = as_admin(
        machine,
        &format!("sysctl kernel.perf_event_mlock_kb={MLOCK_DEFAULT_KB}"),
    );
    make(Mark::Limited, format!("{meaning}: bursts may be lost")).todo(todo)
}

pub(super) fn kptr_restrict(machine: &MachineFacts, perf: Option<&PerfProbe>) -> Row {
    let make = |mark, meaning: &str| {
        let found = found(&machine.kptr_restrict);
        machine_row("kptr_restrict", mark, "kptr_restrict", found, meaning)
    };
    if machine.kernel_addresses {
        return make(Mark::Ok, "kernel functions have names");
    }
    let row = make(Mark::Limited, "kernel functions have no names");
    let to = match machine.kptr_restrict.value() {
        Some(2..) if machine.capable(Capability::Syslog) => 1,
        Some(1..) => 0,
        // Hidden because of perf_event_paranoid, whose row says what to do.
        _ if can_sample_kernel(machine, perf) => return row,
        _ => {
            return make(
                Mark::Limited,
                "kernel functions have no names at this paranoid level",
            );
        }
    };
    row.todo(as_admin(
        machine,
        &format!("sysctl kernel.kptr_restrict={to}"),
    ))
}
