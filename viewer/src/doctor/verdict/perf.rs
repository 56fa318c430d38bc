//! Checks of perf events: permission, kernel samples, ring size, kernel names.

use nix::errno::Errno;

use super::super::facts::{Capability, Facts, MachineFacts, Setting};
use super::rights::container_grant;
use super::row::{Finding, as_admin, found, limited, no, ok};

/// The kernel's default for `perf_event_mlock_kb`: a ring of 512 KiB per CPU with its head page.
const MLOCK_DEFAULT_KB: i64 = 516;

/// Whether the user's own processes can be sampled in user space: the probe decides, without a
/// probe the settings.
pub(super) fn can_sample_user(facts: &Facts) -> bool {
    let allowed = || settings_allow(&facts.machine, 2);
    facts.perf.map_or_else(allowed, |probe| probe.user.is_ok())
}

/// The same for the kernel.
pub(super) fn can_sample_kernel(facts: &Facts) -> bool {
    let allowed = || settings_allow(&facts.machine, 1);
    facts
        .perf
        .map_or_else(allowed, |probe| probe.kernel.is_ok())
}

/// A kernel without the setting has no perf events; a hidden setting may allow nothing.
fn settings_allow(machine: &MachineFacts, up_to: i64) -> bool {
    match machine.paranoid {
        Setting::Value(paranoid) => paranoid <= up_to || machine.perfmon_capable(),
        Setting::Absent => false,
        Setting::Unreadable(_) => machine.perfmon_capable(),
    }
}

pub(super) fn user_samples(machine: &MachineFacts, facts: &Facts) -> Finding {
    let is_allowed = settings_allow(machine, 2);
    let errno = match facts.perf.map(|probe| probe.user) {
        Some(Ok(())) => return ok("works", "your processes can be sampled"),
        None if is_allowed => {
            return ok(
                "not tried",
                "the settings below allow sampling your processes",
            );
        }
        None => return no("not tried", "the settings below forbid sampling"),
        Some(Err(errno)) => errno,
    };
    let found = format!("{errno:?}");
    match errno {
        Errno::ENOSYS => no(found, "this kernel (or its emulation) has no perf events"),
        Errno::EPERM | Errno::EACCES if is_allowed && machine.seccomp_filter => {
            let meaning = "forbidden by a seccomp filter, despite the settings";
            no(found, meaning).todo(container_grant(machine, &["PERFMON"]))
        }
        Errno::EPERM | Errno::EACCES if is_allowed => {
            let meaning = "forbidden by a security module, despite the settings";
            no(found, meaning)
        }
        _ => no(found, "your processes cannot be sampled"),
    }
}

pub(super) fn kernel_samples(_: &MachineFacts, facts: &Facts) -> Finding {
    let found = match facts.perf.map(|probe| probe.kernel) {
        Some(Ok(())) => "work".to_owned(),
        Some(Err(errno)) => format!("{errno:?}"),
        None => "not tried".to_owned(),
    };
    match (can_sample_user(facts), can_sample_kernel(facts)) {
        (_, true) => ok(found, "time in system calls and faults is sampled too"),
        (true, false) => {
            let meaning = "user space only; expected samples follow user time";
            limited(found, meaning)
        }
        (false, false) => no(found, "no samples at all"),
    }
}

pub(super) fn paranoid(machine: &MachineFacts, _: &Facts) -> Finding {
    let found = found(&machine.paranoid);
    let lower = || as_admin(machine, "sysctl kernel.perf_event_paranoid=1");
    match machine.paranoid {
        Setting::Absent => no(found, "this kernel was built without perf events"),
        _ if machine.perfmon_capable() => ok(found, "does not apply: you have the capability"),
        Setting::Unreadable(_) => limited(found, "permissions unknown"),
        Setting::Value(..=1) => ok(found, "your processes, including kernel time"),
        Setting::Value(2) => limited(found, "your processes, without the kernel").todo(lower()),
        // Values of distributions: mainline's maximum is 2.
        Setting::Value(3..) => no(found, "nothing without CAP_PERFMON").todo(lower()),
    }
}

pub(super) fn mlock(machine: &MachineFacts, _: &Facts) -> Finding {
    let Setting::Value(kb) = machine.mlock_kb else {
        let found = found(&machine.mlock_kb);
        return limited(found, "maximum ring size unknown");
    };
    let found = format!("{kb} kB");
    if machine.capable(Capability::IpcLock) || machine.paranoid.value().is_some_and(|p| p < 0) {
        return ok(found, "does not apply: rings of any size");
    }
    // A ring has a power of two of pages, and a head page. Assumes pages of 4 KiB: with larger
    // pages, the kernel's default is larger too.
    let pages = u64::try_from(kb / 4).unwrap_or(0).saturating_sub(1);
    let ring_kib = pages.checked_ilog2().map_or(0, |power| 4_u64 << power);
    let meaning = format!("rings of {ring_kib} KiB per CPU, shared by all your recordings");
    if kb >= MLOCK_DEFAULT_KB {
        return ok(found, meaning);
    }
    let command = format!("sysctl kernel.perf_event_mlock_kb={MLOCK_DEFAULT_KB}");
    limited(found, format!("{meaning}: bursts may get lost")).todo(as_admin(machine, &command))
}

pub(super) fn kptr_restrict(machine: &MachineFacts, facts: &Facts) -> Finding {
    let found = found(&machine.kptr_restrict);
    if machine.kernel_addresses {
        return ok(found, "kernel functions have names");
    }
    let meaning = "kernel functions have no names";
    let to = match machine.kptr_restrict.value() {
        Some(2..) if machine.capable(Capability::Syslog) => 1,
        Some(1..) => 0,
        _ if can_sample_kernel(facts) => return limited(found, meaning),
        // The row of perf_event_paranoid has the remedy.
        _ => return limited(found, format!("{meaning} at this paranoid level")),
    };
    let command = format!("sysctl kernel.kptr_restrict={to}");
    limited(found, meaning).todo(as_admin(machine, &command))
}
