//! The rows about what the caller may do: ptrace, capabilities, priorities, descriptors.

use super::super::facts::{Capability, Limit, MachineFacts, Setting};
use super::kernel::{PERFMON_KERNEL, release};
use super::row::{Mark, Row, as_admin, found, machine_row};

pub(super) fn ptrace_scope(machine: &MachineFacts) -> Row {
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

pub(super) fn capabilities(machine: &MachineFacts) -> Row {
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

/// What gives a container `capabilities`; the usual seccomp filters let through what the
/// capabilities allow.
pub(super) fn container_grant(machine: &MachineFacts, capabilities: &[&str]) -> String {
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

pub(super) fn real_time(machine: &MachineFacts) -> Row {
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

pub(super) fn nice(machine: &MachineFacts) -> Row {
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

pub(super) fn descriptors(machine: &MachineFacts) -> Row {
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
