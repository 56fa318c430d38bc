//! Minimal parsing of /proc: the engine reads hundreds of threads a second.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

/// Fields of `/proc/…/stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub name: String,
    /// `R`, `S`, `Z`, …
    pub state: u8,
    /// `PF_…` of `include/linux/sched.h`.
    pub flags: u64,
    /// In clock ticks.
    pub user_ticks: u64,
    /// In clock ticks.
    pub system_ticks: u64,
}

/// `PF_KTHREAD`: a kernel thread.
const PF_KTHREAD: u64 = 0x0020_0000;

/// `PF_EXITING`: a thread that exits or has exited.
const PF_EXITING: u64 = 0x4;

impl Stat {
    pub fn is_kernel_thread(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }

    pub fn is_exiting(&self) -> bool {
        self.flags & PF_EXITING != 0
    }

    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// The user part of `cpu_ns`, by the kernel's own scaling of ticks (`cputime_adjust`), which
    /// shows 10 ms units; `None` without ticks.
    pub fn user_part(&self, cpu_ns: u64) -> Option<u64> {
        let ticks = self.user_ticks.checked_add(self.system_ticks)?;
        if ticks == 0 {
            return None;
        }
        let part = u128::from(cpu_ns) * u128::from(self.user_ticks) / u128::from(ticks);
        u64::try_from(part).ok()
    }
}

/// Parses `pid (name) state ppid …`. The name may contain blanks and brackets; the last bracket
/// ends it (proc_pid_stat(5)).
fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let open = bytes.iter().position(|byte| *byte == b'(')?;
    let close = bytes.iter().rposition(|byte| *byte == b')')?;
    let name = bytes.get(open + 1..close)?;
    let rest = std::str::from_utf8(bytes.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    // Counted from the state, field 3: flags are field 9, utime 14, stime 15.
    let state = *fields.next()?.as_bytes().first()?;
    let flags = fields.nth(5)?.parse().ok()?;
    let user_ticks = fields.nth(4)?.parse().ok()?;
    let system_ticks = fields.next()?.parse().ok()?;
    Some(Stat {
        name: String::from_utf8_lossy(name).into_owned(),
        state,
        flags,
        user_ticks,
        system_ticks,
    })
}

fn stat_at(path: &str) -> io::Result<Stat> {
    parse_stat(&fs::read(path)?).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

pub(crate) fn thread_stat(pid: u32, tid: u32) -> io::Result<Stat> {
    stat_at(&format!("/proc/{pid}/task/{tid}/stat"))
}

pub(crate) fn process_stat(pid: u32) -> io::Result<Stat> {
    stat_at(&format!("/proc/{pid}/stat"))
}

/// A thread's time on CPUs (`/proc/PID/task/TID/schedstat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// CPU time, in ns.
    pub cpu_ns: u64,
    /// Times that a CPU began to run the thread.
    pub slices: u64,
}

/// The time on CPUs of a living thread.
pub(crate) fn thread_scheduled(pid: u32, tid: u32) -> io::Result<Scheduled> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat"))?;
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    // Between the two: the time that the thread waited for a CPU.
    match (fields.next(), fields.nth(1)) {
        (Some(Ok(cpu_ns)), Some(Ok(slices))) => Ok(Scheduled { cpu_ns, slices }),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// CPU time of a living thread, in ns.
pub(crate) fn thread_cpu_ns(pid: u32, tid: u32) -> io::Result<u64> {
    thread_scheduled(pid, tid).map(|scheduled| scheduled.cpu_ns)
}

/// The tids of a process, ascending.
pub(crate) fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let mut tids = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let name = entry?.file_name();
        if let Some(tid) = name.to_str().and_then(|name| name.parse().ok()) {
            tids.push(tid);
        }
    }
    tids.sort_unstable();
    Ok(tids)
}

/// The processes that a process started and that live, ascending; those whose starting thread has ended may be
/// left out (proc_pid_children(5)).
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let lists = threads(pid).unwrap_or_default().into_iter();
    let lists =
        lists.filter_map(|tid| fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).ok());
    let mut children = Vec::new();
    for list in lists {
        let pids = list.split_ascii_whitespace();
        children.extend(pids.filter_map(|pid| pid.parse::<u32>().ok()));
    }
    children.sort_unstable();
    children
}

/// Device and inode of a process's program.
pub(crate) fn program(pid: u32) -> io::Result<(u64, u64)> {
    let program = fs::metadata(format!("/proc/{pid}/exe"))?;
    Ok((program.dev(), program.ino()))
}

/// The process of a thread.
pub(crate) fn process_of(tid: u32) -> io::Result<u32> {
    // Names may be invalid UTF-8.
    let status = fs::read(format!("/proc/{tid}/status"))?;
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|id| id.trim().parse().ok())
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The uid of a process.
pub(crate) fn owner(pid: u32) -> io::Result<u32> {
    Ok(fs::metadata(format!("/proc/{pid}"))?.uid())
}

/// A number of `/proc/sys/kernel`.
pub(crate) fn kernel_setting(name: &str) -> Option<i64> {
    let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
    text.trim().parse().ok()
}

/// Online CPUs; `None` if unreadable.
pub(crate) fn online_cpus() -> Option<Vec<u32>> {
    parse_cpu_list(&fs::read_to_string("/sys/devices/system/cpu/online").ok()?)
}

/// Parses `0-3,8,10-11`, up to 65536 CPUs.
fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        if to >= 65_536 {
            return None;
        }
        cpus.extend(from..=to);
    }
    (!cpus.is_empty()).then_some(cpus)
}

/// Interval between comparisons with /proc.
pub(crate) const POLL_EVERY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_brackets() {
        let stat = parse_stat(b"7 (a) b (c)) S 1 7 7 0 -1 2097216 0 0 0 0 30 10 0 0 20 0 1 0 5 0")
            .expect("is one");
        assert_eq!(stat.name, "a) b (c)");
        assert_eq!(stat.state, b'S');
        assert!(stat.is_kernel_thread());
        assert_eq!((stat.user_ticks, stat.system_ticks), (30, 10));
        assert_eq!(stat.user_part(1000), Some(750));
    }

    #[test]
    fn torn_ones_are_none() {
        for text in ["", "7", "7 (a", "7 (a)", "7 (a) S 1", ") ("] {
            assert_eq!(parse_stat(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn cpu_lists() {
        assert_eq!(parse_cpu_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        for text in ["", "a", "0-99999999", "3-"] {
            assert_eq!(parse_cpu_list(text), None, "{text}");
        }
    }

    #[test]
    fn this_process_can_be_read() {
        let pid = std::process::id();
        assert!(threads(pid).expect("readable").contains(&pid));
        assert_eq!(process_of(pid).expect("readable"), pid);
        assert!(thread_cpu_ns(pid, pid).is_ok());
        assert!(!process_stat(pid).expect("readable").is_kernel_thread());
    }
}
