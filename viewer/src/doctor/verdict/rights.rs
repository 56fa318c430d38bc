//! Checks of the user's rights: ptrace, capabilities, priorities, descriptors.

use super::super::facts::{Capability, Facts, Limit, MachineFacts, Setting};
use super::machine::{PERFMON_KERNEL, release};
use super::row::{Finding, as_admin, found, limited, ok};

pub(super) fn ptrace_scope(machine: &MachineFacts, _: &Facts) -> Finding {
    let found = found(&machine.ptrace_scope);
    let relax = || as_admin(machine, "sysctl kernel.yama.ptrace_scope=0");
    match machine.ptrace_scope {
        Setting::Absent | Setting::Value(..=0) => ok(found, "VMs of your own user can be read"),
        Setting::Unreadable(_) => limited(found, "VMs may be unreadable"),
        // Yama 3 denies everybody, until a reboot.
        Setting::Value(3..) => {
            let meaning = "no VM can be read until a reboot without this setting";
            limited(found, meaning)
        }
        _ if machine.capabilities.has(Capability::SysPtrace) => {
            ok(found, "does not apply: you have CAP_SYS_PTRACE")
        }
        Setting::Value(1) => {
            let meaning = "only VMs started by vmscope can be read";
            limited(found, meaning).todo(relax())
        }
        Setting::Value(2) => limited(found, "no VM can be read").todo(relax()),
    }
}

pub(super) fn capabilities(machine: &MachineFacts, _: &Facts) -> Finding {
    use Capability::{IpcLock, Perfmon, SysAdmin, SysNice, SysPtrace, Syslog};
    let has = |capability| {
        machine.capable(capability)
            || (capability == SysPtrace && machine.capabilities.has(capability))
    };
    let held = Capability::ALL.into_iter().filter(|c| has(*c)).count();
    let found = match held {
        0 => "none".to_owned(),
        all if all == Capability::ALL.len() => "all useful ones".to_owned(),
        some => format!("{some} of {}", Capability::ALL.len()),
    };
    let knows_perfmon = release(&machine.kernel_release).is_none_or(|r| r >= PERFMON_KERNEL);
    let sampling = if knows_perfmon { Perfmon } else { SysAdmin };
    let is_sampling = machine.perfmon_capable();
    let wanted = [
        (sampling, !is_sampling, "others' processes"),
        (SysPtrace, !has(SysPtrace), "their memory"),
        (Syslog, !machine.kernel_addresses, "kernel names"),
        (SysNice, machine.rtprio.soft == 0, "real time"),
        (IpcLock, !has(IpcLock), "large rings"),
    ];
    let missing = wanted.iter().filter(|(cap, lack, _)| *lack && !has(*cap));
    let missing: Vec<_> = missing.collect();
    if missing.is_empty() {
        return ok(found, "complete");
    }
    let meaning = missing.iter();
    let meaning = meaning.map(|(capability, _, what)| format!("no {}: {what}", capability.name()));
    let finding = limited(found, meaning.collect::<Vec<_>>().join("; "));
    if !machine.initial_user_namespace {
        // A file's capabilities would count in this namespace alone.
        return finding;
    }
    if machine.confined() {
        let names = missing.iter();
        let names = names.map(|(c, ..)| c.name().trim_start_matches("CAP_"));
        return finding.todo(container_grant(machine, &names.collect::<Vec<_>>()));
    }
    if machine.uid == 0 {
        return finding.todo("run vmscope with root's full capabilities");
    }
    // setcap replaces the file's capabilities: held ones are named again.
    let names: Vec<_> = wanted
        .iter()
        .map(|(c, ..)| c.name().to_lowercase())
        .collect();
    let names = names.join(",");
    finding.todo(format!("sudo setcap {names}=ep \"$(command -v vmscope)\""))
}

/// Command that grants a container `capabilities`; usual seccomp filters allow what capabilities
/// allow.
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

pub(super) fn real_time(machine: &MachineFacts, _: &Facts) -> Finding {
    let Limit { soft, hard } = machine.rtprio;
    let found = match machine.capable(Capability::SysNice) {
        true => "CAP_SYS_NICE".to_owned(),
        false => format!("RTPRIO {}", limit_text(soft)),
    };
    if machine.capable(Capability::SysNice) || soft > 0 {
        return ok(found, "the drain thread can run with real-time priority");
    }
    let finding = limited(
        found,
        "the drain thread competes for CPUs; samples may be lost",
    );
    finding.todo(match hard {
        0 => limits_line(machine, "rtprio 10"),
        hard => format!("ulimit -r {}", limit_text(hard)),
    })
}

/// A line for pam_limits; effective from the next login.
fn limits_line(machine: &MachineFacts, what: &str) -> String {
    let user = machine
        .user
        .clone()
        .unwrap_or_else(|| format!("#{}", machine.uid));
    format!("line `{user} - {what}` in /etc/security/limits.d/vmscope.conf; log in again")
}

pub(super) fn nice(machine: &MachineFacts, _: &Facts) -> Finding {
    if machine.capable(Capability::SysNice) {
        return ok("CAP_SYS_NICE", "any nice value, if real time is refused");
    }
    // The kernel's arithmetic: 1..=40 stands for a nice value of 19..=-20.
    let best = 20 - i64::try_from(machine.nice.soft.min(40)).unwrap_or(40);
    if best < 0 {
        return ok(
            format!("down to {best}"),
            "the drain thread can get a better nice value",
        );
    }
    let found = format!("no less than {}", best.min(19));
    match machine.rtprio.soft {
        0 => limited(found, "no better nice value either"),
        _ => ok(found, "not needed with real-time priority"),
    }
}

pub(super) fn descriptors(machine: &MachineFacts, _: &Facts) -> Finding {
    // vmscope raises the soft limit itself.
    let Limit { hard, .. } = machine.descriptors;
    let threads = followable(hard, machine.cpus);
    let meaning = format!("enough for {threads} threads on {} CPUs", machine.cpus);
    // Few programs have more threads; the requested process has its own row.
    if threads >= 64 {
        return ok(limit_text(hard), meaning);
    }
    let meaning = format!("{meaning}; with more threads, short threads may be missed");
    limited(limit_text(hard), meaning)
}

/// Maximum number of threads with an event per CPU, beside a ring per CPU and 64 descriptors for
/// the rest of vmscope.
pub(super) fn followable(descriptors: u64, cpus: u32) -> u64 {
    (descriptors.saturating_sub(64) / u64::from(cpus.max(1))).saturating_sub(1)
}

pub(super) fn limit_text(limit: u64) -> String {
    if limit == u64::MAX {
        "unlimited".to_owned()
    } else {
        limit.to_string()
    }
}
