//! The rows about the machine and the caller's rights.

use nix::errno::Errno;

use super::super::facts::{Capability, Limit, MachineFacts, PerfProbe, Setting};
use super::{Group, Mark, Row, as_admin, row};

/// The oldest kernel that gives samples a clock of our choice
/// (`perf_event_attr.use_clockid`), without which they can't be put in order with records.
const OLDEST_KERNEL: (u32, u32) = (4, 1);
/// The first with `CAP_PERFMON`.
const PERFMON_KERNEL: (u32, u32) = (5, 8);
/// The kernel's own default for `perf_event_mlock_kb`: a ring of 512 KiB for each CPU,
/// and its head page.
const MLOCK_DEFAULT_KB: i64 = 516;

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

/// Whether the caller's own processes can be sampled in user space: as the probe found,
/// else as the settings promise.
pub(super) fn can_sample_user(machine: &MachineFacts, perf: Option<&PerfProbe>) -> bool {
    perf.map_or_else(|| settings_allow(machine, 2), |probe| probe.user.is_ok())
}

/// The same for the kernel.
pub(super) fn can_sample_kernel(machine: &MachineFacts, perf: Option<&PerfProbe>) -> bool {
    perf.map_or_else(|| settings_allow(machine, 1), |probe| probe.kernel.is_ok())
}

pub(super) fn kernel_too_old(machine: &MachineFacts) -> bool {
    release(&machine.kernel_release).is_some_and(|release| release < OLDEST_KERNEL)
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

/// Major and minor number of a release such as `6.1.0-13-amd64`.
fn release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn machine_row(
    id: &'static str,
    mark: Mark,
    what: &str,
    found: impl Into<String>,
    meaning: impl Into<String>,
) -> Row {
    row(id, Group::Machine, mark, what, found, meaning)
}

fn user_samples(machine: &MachineFacts, perf: Option<&PerfProbe>) -> Row {
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

/// What gives a container `capabilities`; the usual seccomp filters let through what the
/// capabilities allow.
fn container_grant(machine: &MachineFacts, capabilities: &[&str]) -> String {
    match machine.container.as_ref().map(|(kind, _)| kind.as_str()) {
        Some("kubernetes" | "kubepods") => {
            let list = capabilities.join("\", \"");
            format!("in the pod: securityContext.capabilities.add: [\"{list}\"]")
        }
        Some(kind @ ("docker" | "podman")) => {
            let adds: Vec<_> = capabilities
                .iter()
                .map(|c| format!("--cap-add {c}"))
                .collect();
            format!("{kind} run {} ...", adds.join(" "))
        }
        _ => format!(
            "start the container or service with CAP_{}",
            capabilities.join(", CAP_")
        ),
    }
}

fn kernel_samples(machine: &MachineFacts, perf: Option<&PerfProbe>) -> Row {
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

fn found(setting: &Setting) -> String {
    match setting {
        Setting::Value(value) => value.to_string(),
        Setting::Absent => "not there".to_owned(),
        Setting::Unreadable(why) => format!("unreadable: {why}"),
    }
}

fn paranoid(machine: &MachineFacts) -> Row {
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

fn mlock(machine: &MachineFacts) -> Row {
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

fn kptr_restrict(machine: &MachineFacts, perf: Option<&PerfProbe>) -> Row {
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

fn ptrace_scope(machine: &MachineFacts) -> Row {
    let make = |mark, meaning: &str| {
        let found = found(&machine.ptrace_scope);
        machine_row("ptrace_scope", mark, "yama ptrace_scope", found, meaning)
    };
    let relax = as_admin(machine, "sysctl kernel.yama.ptrace_scope=0");
    match machine.ptrace_scope {
        Setting::Absent | Setting::Value(..=0) => {
            make(Mark::Ok, "a VM's memory can be read (its own user's)")
        }
        Setting::Unreadable(_) => make(Mark::Limited, "a VM's memory may be unreadable"),
        // Yama 3 denies everybody, and can't be taken back before a reboot.
        Setting::Value(3..) => make(
            Mark::Limited,
            "no VM's memory can be read until a reboot without it",
        ),
        _ if machine.capabilities.has(Capability::SysPtrace) => {
            make(Mark::Ok, "does not bind you: you have CAP_SYS_PTRACE")
        }
        Setting::Value(1) => make(
            Mark::Limited,
            "only memory of VMs that vmscope starts can be read",
        )
        .todo(relax),
        Setting::Value(2) => make(Mark::Limited, "no VM's memory can be read").todo(relax),
    }
}

fn capabilities(machine: &MachineFacts) -> Row {
    let make = |mark, found: String, meaning: String| {
        machine_row("capabilities", mark, "capabilities", found, meaning)
    };
    let has = |capability| {
        machine.capable(capability)
            || (capability == Capability::SysPtrace && machine.capabilities.has(capability))
    };
    let held = Capability::ALL.into_iter().filter(|c| has(*c)).count();
    let found = match held {
        0 => "none".to_owned(),
        all if all == Capability::ALL.len() => "all that help".to_owned(),
        some => format!("{some} of {}", Capability::ALL.len()),
    };
    let knows_perfmon = release(&machine.kernel_release).is_none_or(|r| r >= PERFMON_KERNEL);
    let sampling = if knows_perfmon {
        Capability::Perfmon
    } else {
        Capability::SysAdmin
    };
    let wanted = [
        (sampling, !machine.perfmon_capable(), "others' processes"),
        (
            Capability::SysPtrace,
            !has(Capability::SysPtrace),
            "their memory",
        ),
        (
            Capability::Syslog,
            !machine.kernel_addresses,
            "kernel names",
        ),
        (Capability::SysNice, machine.rtprio.soft == 0, "real time"),
        (
            Capability::IpcLock,
            !has(Capability::IpcLock),
            "large rings",
        ),
    ];
    let missing: Vec<_> = wanted
        .iter()
        .filter(|(cap, lack, _)| *lack && !has(*cap))
        .collect();
    if missing.is_empty() {
        return make(Mark::Ok, found, "nothing is missing".to_owned());
    }
    let meaning = missing
        .iter()
        .map(|(capability, _, what)| format!("no {}: {what}", capability.name()))
        .collect::<Vec<_>>()
        .join("; ");
    let row = make(Mark::Limited, found, meaning);
    if machine.confined() && machine.initial_user_namespace {
        let names: Vec<_> = missing
            .iter()
            .map(|(c, ..)| c.name().trim_start_matches("CAP_"))
            .collect();
        return row.todo(container_grant(machine, &names));
    }
    if !machine.initial_user_namespace {
        // A file's capabilities would count in this namespace alone.
        return row;
    }
    if machine.uid == 0 {
        return row.todo("run vmscope with root's full capabilities");
    }
    // setcap replaces what the file had: what is held already has to be named again.
    let names: Vec<_> = wanted
        .iter()
        .map(|(c, ..)| c.name().to_lowercase())
        .collect();
    row.todo(format!(
        "sudo setcap {}=ep \"$(command -v vmscope)\"",
        names.join(",")
    ))
}

fn real_time(machine: &MachineFacts) -> Row {
    let make = |mark, found: String, meaning: &str| {
        machine_row("real_time", mark, "real-time priority", found, meaning)
    };
    if machine.capable(Capability::SysNice) {
        let found = "CAP_SYS_NICE".to_owned();
        return make(
            Mark::Ok,
            found,
            "the drain thread can run before all others",
        );
    }
    let found = format!("RTPRIO {}", limit_text(machine.rtprio.soft));
    if machine.rtprio.soft > 0 {
        return make(
            Mark::Ok,
            found,
            "the drain thread can run before all others",
        );
    }
    let row = make(
        Mark::Limited,
        found,
        "the drain thread competes; samples may be lost",
    );
    if machine.rtprio.hard > 0 {
        return row.todo(format!("ulimit -r {}", limit_text(machine.rtprio.hard)));
    }
    row.todo(limits_line(machine, "rtprio 10"))
}

/// A line for pam_limits, and that it counts from the next login on.
fn limits_line(machine: &MachineFacts, what: &str) -> String {
    let user = machine
        .user
        .clone()
        .unwrap_or_else(|| format!("#{}", machine.uid));
    format!("line `{user} - {what}` in /etc/security/limits.d/vmscope.conf; log in again")
}

fn nice(machine: &MachineFacts) -> Row {
    let make = |mark, found: String, meaning: &str| {
        machine_row("nice", mark, "nice value", found, meaning)
    };
    if machine.capable(Capability::SysNice) {
        return make(
            Mark::Ok,
            "CAP_SYS_NICE".to_owned(),
            "any, where real time is refused",
        );
    }
    // The kernel's own arithmetic: 1..=40 stands for a nice value of 19..=-20.
    let best = 20 - i64::try_from(machine.nice.soft.min(40)).unwrap_or(40);
    if best >= 0 {
        let found = format!("no less than {}", best.min(19));
        return match machine.rtprio.soft {
            0 => make(Mark::Limited, found, "nor can it be preferred otherwise"),
            _ => make(Mark::Ok, found, "not needed with real-time priority"),
        };
    }
    make(
        Mark::Ok,
        format!("down to {best}"),
        "the drain thread can be preferred",
    )
}

fn descriptors(machine: &MachineFacts) -> Row {
    let Limit { soft, hard } = machine.descriptors;
    let threads = followable(soft, machine.cpus);
    let meaning = format!("{threads} threads can be followed on {} CPUs", machine.cpus);
    let make =
        |mark, meaning| machine_row("descriptors", mark, "open files", limit_text(soft), meaning);
    // Few programs have more threads; a process that does has a row of its own.
    if threads >= 64 {
        return make(Mark::Ok, meaning);
    }
    let row = make(
        Mark::Limited,
        format!("{meaning}; with more, short ones may be missed"),
    );
    if hard > soft {
        row.todo(format!("ulimit -n {}", limit_text(hard)))
    } else {
        row
    }
}

/// How many threads can have an event per CPU, and leave vmscope 64 descriptors.
pub(super) fn followable(descriptors: u64, cpus: u32) -> u64 {
    descriptors.saturating_sub(64) / u64::from(cpus.max(1))
}

pub(super) fn limit_text(limit: u64) -> String {
    if limit == u64::MAX {
        "unlimited".to_owned()
    } else {
        limit.to_string()
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
