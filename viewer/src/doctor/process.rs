//! Collects the facts of one process from `/proc/PID`, and tries to read a word of its memory.

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use procfs::process::{Process, StatFlags, Status};
use procfs::{FromBufRead as _, ProcResult};
use vmscope_process::{
    AdapterFamily, LiveMemory, Maps, Memory as _, MemoryError, examine, read_maps,
};

use super::facts::{Existence, ProcessFacts, Reading, Vms};
use super::{gather, modules, vm};

/// Collects the facts of `pid`, and asks `families` about its VMs. Failures are facts, not errors:
/// the process may end at any moment.
pub fn poll(pid: i32, families: impl FnOnce() -> Vec<Box<dyn AdapterFamily>>) -> ProcessFacts {
    let mut facts = ProcessFacts {
        pid,
        existence: Existence::Missing,
        name: String::new(),
        uid: None,
        user: None,
        nspid: Vec::new(),
        threads: 0,
        tracer: None,
        maps: Reading::NotTried,
        memory: Reading::NotTried,
        vms: Vms::NotAsked,
        modules: Vec::new(),
        modules_left_out: 0,
    };
    // kill(0) and kill(-1) address groups.
    if pid <= 0 {
        return facts;
    }
    let Ok((process, status)) = Process::new(pid).and_then(|p| Ok((p, status_of(pid)?))) else {
        // With `hidepid`, signals still find the process.
        if matches!(kill(Pid::from_raw(pid), None), Ok(()) | Err(Errno::EPERM)) {
            facts.existence = Existence::Hidden;
        }
        return facts;
    };
    facts.existence = existence(&process, pid, status.tgid, &status.state);
    facts.uid = Some(status.ruid);
    facts.user = gather::user_name(status.ruid);
    facts.nspid = status.nspid.unwrap_or_default();
    facts.threads = status.threads;
    facts.name = status.name;
    if status.tracerpid != 0 {
        let name = Process::new(status.tracerpid).and_then(|tracer| tracer.stat());
        facts.tracer = Some((
            status.tracerpid,
            name.map_or_else(|_| String::new(), |s| s.comm),
        ));
    }
    if !facts.existence.has_program() {
        return facts;
    }
    let Ok(target) = u32::try_from(pid).map(vmscope_records::Pid) else {
        return facts;
    };
    match read_maps(target) {
        Ok(maps) => {
            facts.maps = Reading::Done;
            facts.memory = read_a_word(target, &maps);
            facts.vms = vm::poll(target, families);
            if let Ok((rows, left_out)) = modules::of_process(target) {
                facts.modules = rows;
                facts.modules_left_out = left_out;
            }
        }
        Err(error) => facts.maps = Reading::Failed(errno(&error.source)),
    }
    facts
}

/// `Process::status`, which rejects names of invalid UTF-8.
fn status_of(pid: i32) -> ProcResult<Status> {
    let status = std::fs::read(format!("/proc/{pid}/status"))?;
    Status::from_buf_read(String::from_utf8_lossy(&status).as_bytes())
}

fn existence(process: &Process, pid: i32, tgid: i32, state: &str) -> Existence {
    if tgid != pid {
        return Existence::ThreadOf(tgid);
    }
    // A process outlives its main thread.
    let target = u32::try_from(pid).map(vmscope_records::Pid);
    match state.chars().next() {
        Some('Z' | 'X') if !target.is_ok_and(|pid| examine(pid).is_ok()) => {
            return Existence::Zombie;
        }
        Some('T') => return Existence::Stopped,
        _ => {}
    }
    let kernel = process
        .stat()
        .is_ok_and(|stat| StatFlags::from_bits_retain(stat.flags).contains(StatFlags::PF_KTHREAD));
    if kernel {
        Existence::KernelThread
    } else {
        Existence::Process
    }
}

/// Reads eight bytes at the start of a readable mapping, of a file if possible: file mappings don't
/// vanish meanwhile, nor fault on devices.
fn read_a_word(pid: vmscope_records::Pid, maps: &Maps) -> Reading {
    let mut entries = maps.entries.iter();
    let Some(map) = entries.find(|map| map.readable && map.path().is_some()) else {
        return Reading::NotTried;
    };
    match LiveMemory::new(pid).read_u64(map.start) {
        Ok(_) => Reading::Done,
        Err(MemoryError::Denied { .. }) => Reading::Failed(Errno::EPERM),
        Err(MemoryError::Gone { .. }) => Reading::Failed(Errno::ESRCH),
        Err(_) => Reading::Failed(Errno::EIO),
    }
}

fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_read() {
        let pid = i32::try_from(std::process::id()).expect("a pid");
        let facts = poll(pid, Vec::new);
        assert_eq!(facts.existence, Existence::Process);
        assert_eq!(facts.maps, Reading::Done);
        assert_eq!(facts.memory, Reading::Done);
        assert!(!facts.modules.is_empty());
    }

    #[test]
    fn groups_and_strangers_are_missing() {
        for pid in [0, -1, i32::MIN, i32::MAX] {
            assert_eq!(poll(pid, Vec::new).existence, Existence::Missing, "{pid}");
        }
    }

    #[test]
    fn a_child_that_ended_is_a_zombie() {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let pid = i32::try_from(child.id()).expect("a pid");
        // The parent reaps the child after this loop only.
        let mut seen = poll(pid, Vec::new).existence;
        for _ in 0..2000 {
            if seen == Existence::Zombie {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
            seen = poll(pid, Vec::new).existence;
        }
        child.wait().expect("it ended");
        assert_eq!(seen, Existence::Zombie);
        assert_eq!(poll(pid, Vec::new).existence, Existence::Missing);
    }
}
