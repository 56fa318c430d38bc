//! The rows about the process asked about.

use nix::errno::Errno;

use super::super::facts::{Existence, MachineFacts, PerfProbe, ProcessFacts, Reading};
use super::rights::{followable, limit_text};
use super::row::{Group, Mark, Row, as_admin, row};

pub(super) fn rows(
    machine: &MachineFacts,
    process: &ProcessFacts,
    perf: Option<&PerfProbe>,
) -> Vec<Row> {
    let mut rows = vec![existence(process)];
    if process.existence != Existence::Process {
        return rows;
    }
    rows.push(owner(machine, process));
    rows.push(maps(machine, process));
    if let Some(probe) = perf {
        rows.push(events(probe));
    }
    rows.push(memory(machine, process));
    rows.push(tracer(process));
    rows.push(threads(machine, process));
    if process.nspid.len() > 1 {
        rows.push(namespaces(process));
    }
    rows
}

/// Whether the default recording could follow it. The kernel lets who may *read* a
/// process (ptrace access mode read, which its maps need too) sample it. Who may sample it
/// by `CAP_PERFMON` and not read its maps would get addresses that nothing names.
pub(super) fn can_attach(
    machine: &MachineFacts,
    process: &ProcessFacts,
    perf: Option<&PerfProbe>,
) -> bool {
    process.existence == Existence::Process
        && process.maps == Reading::Done
        && perf.is_none_or(|probe| probe.user.is_ok())
        && process.threads.saturating_add(64) <= machine.descriptors.soft
}

fn process_row(
    id: &'static str,
    mark: Mark,
    what: &str,
    found: impl Into<String>,
    meaning: impl Into<String>,
) -> Row {
    row(id, Group::Process, mark, what, found, meaning)
}

fn existence(process: &ProcessFacts) -> Row {
    let make = |mark, found: &str, meaning: &str| {
        let what = format!("process {}", process.pid);
        process_row("existence", mark, &what, found, meaning)
    };
    match process.existence {
        Existence::Process => make(Mark::Ok, &process.name, "runs"),
        Existence::Missing => make(Mark::No, "not there", "there is no such process")
            .todo("look for the right one: pgrep -l NAME"),
        Existence::Hidden => make(
            Mark::No,
            "hidden",
            "it exists; /proc is mounted with hidepid",
        )
        .todo(format!("sudo vmscope doctor {}", process.pid)),
        Existence::Zombie => make(
            Mark::No,
            &process.name,
            "a zombie: it has ended, and waits to be taken note of",
        ),
        Existence::KernelThread => make(
            Mark::No,
            &process.name,
            "a thread of the kernel: there is no program in it",
        ),
        Existence::ThreadOf(leader) => make(
            Mark::No,
            &process.name,
            &format!("a thread of process {leader}"),
        )
        .todo(format!("vmscope attach {leader}")),
    }
}

fn owner(machine: &MachineFacts, process: &ProcessFacts) -> Row {
    let found = match (process.uid, &process.user) {
        (_, Some(user)) => user.clone(),
        (Some(uid), None) => format!("uid {uid}"),
        (None, None) => "unknown".to_owned(),
    };
    let make = |mark, meaning| process_row("owner", mark, "whose it is", found, meaning);
    if process.uid == Some(machine.uid) {
        return make(Mark::Ok, "yours");
    }
    // CAP_SYS_PTRACE counts in the process's own user namespace, so it was tried.
    match process.maps {
        Reading::Done => make(Mark::Ok, "not yours, and you have the right"),
        _ => make(Mark::No, "not yours"),
    }
}

fn maps(machine: &MachineFacts, process: &ProcessFacts) -> Row {
    let make =
        |mark, found: &str, meaning: &str| process_row("maps", mark, "mappings", found, meaning);
    let Reading::Failed(errno) = process.maps else {
        return make(
            Mark::Ok,
            "readable",
            "it can be attached to, and its code named",
        );
    };
    let meaning = match (errno, process.uid == Some(machine.uid)) {
        (Errno::ESRCH, _) => return make(Mark::No, "ESRCH", "it ended while it was looked at"),
        _ if machine.perfmon_capable() => "it could be sampled, but nothing named",
        (_, true) => "it keeps others out (setuid, capabilities or prctl): not attachable",
        (_, false) => "another user's: it can't be attached to",
    };
    let row = make(Mark::No, &format!("{errno:?}"), meaning);
    match machine.uid {
        0 if machine.confined() => row.todo("start the container with --cap-add SYS_PTRACE"),
        0 => row.todo("run vmscope with CAP_SYS_PTRACE"),
        _ => row.todo(format!("sudo vmscope attach {}", process.pid)),
    }
}

/// Its mappings' row says what to do where both are denied; where only this is, the
/// machine's rows do.
fn events(probe: &PerfProbe) -> Row {
    let make = |mark, found: &str, meaning: &str| {
        process_row("events", mark, "perf_event_open", found, meaning)
    };
    match (probe.user, probe.kernel) {
        (Ok(()), Ok(())) => make(Mark::Ok, "works", "it can be sampled, in the kernel too"),
        (Ok(()), Err(_)) => make(Mark::Ok, "works", "it can be sampled in user space"),
        (Err(errno), _) => make(Mark::No, &format!("{errno:?}"), "it can't be sampled"),
    }
}

fn memory(machine: &MachineFacts, process: &ProcessFacts) -> Row {
    let make =
        |mark, found: &str, meaning: &str| process_row("memory", mark, "memory", found, meaning);
    let errno = match process.memory {
        Reading::Done => return make(Mark::Ok, "readable", "a VM in it can be asked"),
        Reading::NotTried => return make(Mark::No, "not tried", "its mappings can't be read"),
        Reading::Failed(errno) => errno,
    };
    let found = format!("{errno:?}");
    let yama = machine.ptrace_scope.value().unwrap_or(0);
    let relax = || as_admin(machine, "sysctl kernel.yama.ptrace_scope=0");
    match errno {
        Errno::ENOSYS => make(Mark::No, &found, "this kernel can't read another's memory"),
        // Its maps were readable, so neither its user nor its dumpability is in the way.
        Errno::EPERM if yama >= 3 => make(
            Mark::No,
            &found,
            "forbidden by yama until a reboot: native code alone is named",
        ),
        Errno::EPERM if yama >= 1 => make(
            Mark::No,
            &found,
            "forbidden by yama: native code alone is named",
        )
        .todo(relax()),
        Errno::EPERM if machine.seccomp_filter => make(
            Mark::No,
            &found,
            "forbidden by a seccomp filter: native code alone is named",
        )
        .todo("start the container with --cap-add SYS_PTRACE"),
        _ => make(Mark::No, &found, "native code alone is named"),
    }
}

fn tracer(process: &ProcessFacts) -> Row {
    let make =
        |mark, found: &str, meaning: &str| process_row("tracer", mark, "traced by", found, meaning);
    match &process.tracer {
        None => make(Mark::Ok, "nobody", "the stop engine could trace it"),
        Some((pid, name)) => make(
            Mark::Limited,
            &format!("{name} ({pid})"),
            "the kernel engine alone can sample it",
        )
        .todo(format!("end {name} ({pid}), if the stop engine is wanted")),
    }
}

fn threads(machine: &MachineFacts, process: &ProcessFacts) -> Row {
    let make = |mark, meaning: &str| {
        process_row(
            "threads",
            mark,
            "threads",
            process.threads.to_string(),
            meaning,
        )
    };
    let limit = machine.descriptors;
    let room = |descriptors| followable(descriptors, machine.cpus);
    if process.threads <= room(limit.soft) {
        return make(Mark::Ok, "few enough: new ones are seen from their start");
    }
    let row = if process.threads.saturating_add(64) <= limit.soft {
        make(
            Mark::Limited,
            "too many for an event per CPU: new threads are found late",
        )
    } else {
        make(Mark::No, "more than there are descriptors")
    };
    if process.threads <= room(limit.hard) {
        return row.todo(format!("ulimit -n {}", limit_text(limit.hard)));
    }
    row
}

fn namespaces(process: &ProcessFacts) -> Row {
    let ids: Vec<_> = process.nspid.iter().map(ToString::to_string).collect();
    let meaning = "it runs in a container; files are opened through its own root";
    process_row(
        "nspid",
        Mark::Ok,
        "pid, seen from inside",
        ids.join(" > "),
        meaning,
    )
}
