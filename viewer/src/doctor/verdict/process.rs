//! Checks of the requested process.

use nix::errno::Errno;

use super::super::facts::{Existence, Facts, MachineFacts, ProcessFacts, Reading, Vms};
use super::rights::followable;
use super::row::{Finding, as_admin, limited, no, ok};

/// Whether the default recording could follow the process. The kernel lets everybody sample it who
/// may *read* it (ptrace access mode read, which its maps need too). `CAP_PERFMON` without readable
/// maps would yield addresses without names.
pub(super) fn can_attach(process: &ProcessFacts, facts: &Facts) -> bool {
    process.existence.has_program()
        && process.maps == Reading::Done
        && facts.process_perf.is_none_or(|probe| probe.user.is_ok())
        && process.threads.saturating_add(64) <= facts.machine.descriptors.hard
}

/// Whether the process has a readable, publishing VM, and thus a sampler.
pub(super) fn publishes(process: &ProcessFacts) -> bool {
    let Vms::Asked(vms) = &process.vms else {
        return false;
    };
    let mut vms = vms.iter();
    vms.any(|vm| vm.family == "publish" && vm.trouble.is_none())
}

pub(super) fn existence(process: &ProcessFacts) -> Finding {
    let (pid, name) = (process.pid, process.name.as_str());
    match process.existence {
        Existence::Process => ok(name, "runs"),
        Existence::Stopped => limited(name, "stopped by a signal: no samples until it continues")
            .todo(format!("kill -CONT {pid}")),
        Existence::Missing => {
            let todo = "find its pid: pgrep -l NAME";
            no("missing", "no such process").todo(todo)
        }
        Existence::Hidden => {
            let meaning = "exists, but /proc is mounted with hidepid";
            no("hidden", meaning).todo(format!("sudo vmscope doctor {pid}"))
        }
        Existence::Zombie => no(name, "a zombie: exited, not reaped by its parent"),
        Existence::KernelThread => no(name, "a kernel thread, without a program"),
        Existence::ThreadOf(leader) => no(name, format!("a thread of process {leader}"))
            .todo(format!("vmscope attach {leader}")),
    }
}

pub(super) fn owner(process: &ProcessFacts, facts: &Facts) -> Option<Finding> {
    let found = match (process.uid, &process.user) {
        (_, Some(user)) => user.clone(),
        (Some(uid), None) => format!("uid {uid}"),
        (None, None) => "unknown".to_owned(),
    };
    Some(match process.maps {
        _ if process.uid == Some(facts.machine.uid) => ok(found, "yours"),
        // CAP_SYS_PTRACE counts in the process's own user namespace: hence the attempt.
        Reading::Done => ok(found, "another user's; you have the capability"),
        _ => no(found, "another user's"),
    })
}

pub(super) fn maps(process: &ProcessFacts, facts: &Facts) -> Option<Finding> {
    let machine = &facts.machine;
    let Reading::Failed(errno) = process.maps else {
        let meaning = "attach and names work";
        return Some(ok("readable", meaning));
    };
    let meaning = match (errno, process.uid == Some(machine.uid)) {
        (Errno::ESRCH, _) => return Some(no("ESRCH", "exited meanwhile")),
        _ if machine.perfmon_capable() => "samples would have no names",
        (_, true) => "protected (setuid, capabilities or prctl): attach fails",
        (_, false) => "another user's: attach fails",
    };
    let finding = no(format!("{errno:?}"), meaning);
    Some(match machine.uid {
        0 if machine.confined() => finding.todo("start the container with --cap-add SYS_PTRACE"),
        0 => finding.todo("run vmscope with CAP_SYS_PTRACE"),
        _ => finding.todo(format!("sudo vmscope attach {}", process.pid)),
    })
}

/// Without remedy: other rows have it.
pub(super) fn events(_: &ProcessFacts, facts: &Facts) -> Option<Finding> {
    let probe = facts.process_perf?;
    Some(match (probe.user, probe.kernel) {
        (Ok(()), Ok(())) => ok("works", "can be sampled, user space and kernel"),
        (Ok(()), Err(_)) => ok("works", "can be sampled, user space only"),
        (Err(errno), _) => no(format!("{errno:?}"), "cannot be sampled"),
    })
}

pub(super) fn memory(process: &ProcessFacts, facts: &Facts) -> Option<Finding> {
    let machine = &facts.machine;
    let errno = match process.memory {
        Reading::Done => return Some(ok("readable", "vmscope can read a VM in it")),
        Reading::NotTried => return Some(no("not tried", "its mappings are unreadable")),
        Reading::Failed(errno) => errno,
    };
    let found = format!("{errno:?}");
    let named = "only native code gets names";
    Some(match (errno, machine.ptrace_scope.value()) {
        (Errno::ENOSYS, _) => no(found, "this kernel cannot read other processes' memory"),
        // Readable maps exclude another user or a non-dumpable process as causes.
        (Errno::EPERM, Some(3..)) => {
            let meaning = format!("forbidden by yama until a reboot: {named}");
            no(found, meaning)
        }
        (Errno::EPERM, Some(1..)) => no(found, format!("forbidden by yama: {named}"))
            .todo(as_admin(machine, "sysctl kernel.yama.ptrace_scope=0")),
        (Errno::EPERM, _) if machine.seccomp_filter => {
            no(found, format!("forbidden by a seccomp filter: {named}"))
                .todo("start the container with --cap-add SYS_PTRACE")
        }
        _ => no(found, named),
    })
}

pub(super) fn tracer(process: &ProcessFacts, _: &Facts) -> Option<Finding> {
    let Some((pid, name)) = &process.tracer else {
        return Some(ok("none", "no debugger or tracer is attached"));
    };
    let finding = limited(
        format!("{name} ({pid})"),
        "this debugger or tracer stops the process: shares may be distorted",
    );
    Some(finding.todo(format!("detach {name} ({pid})")))
}

pub(super) fn threads(process: &ProcessFacts, facts: &Facts) -> Option<Finding> {
    let found = process.threads.to_string();
    let MachineFacts {
        descriptors, cpus, ..
    } = facts.machine;
    // vmscope raises the soft limit itself.
    let finding = if process.threads <= followable(descriptors.hard, cpus) {
        let meaning = "few enough: new threads are sampled from their start";
        return Some(ok(found, meaning));
    } else if process.threads.saturating_add(64) <= descriptors.hard {
        let meaning = "too many for an event per CPU: new threads are sampled late";
        limited(found, meaning)
    } else {
        no(found, "more threads than file descriptors")
    };
    // An event per CPU and thread, a ring per CPU, and what else is open.
    let enough = (process.threads + 1) * u64::from(cpus) + 64;
    let command = format!("prlimit --nofile={enough} vmscope attach {}", process.pid);
    Some(finding.todo(as_admin(&facts.machine, &command)))
}

pub(super) fn namespaces(process: &ProcessFacts, _: &Facts) -> Option<Finding> {
    let ids: Vec<_> = process.nspid.iter().map(ToString::to_string).collect();
    let meaning = "runs in a container; files are opened through its root";
    (ids.len() > 1).then(|| ok(ids.join(" > "), meaning))
}
