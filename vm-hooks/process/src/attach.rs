//! What a process is and whether it can be looked at, before anything else is done
//! to it: `/proc/PID/stat`, `status`, `cmdline` and `task` (`proc(5)`).

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;

use nix::errno::Errno;
use procfs::process::{Stat, StatFlags, Status};
use procfs::{FromBufRead as _, FromRead as _};
use vmscope_records::{Pid, Tid};

use crate::MapsError;

/// The files in `/proc/PID` that are read whole end after a few kilobytes, but for
/// `cmdline` and `environ`, which the target chooses: of those at most this much is read.
pub(crate) const MAX_PROC_FILE_BYTES: u64 = 2 << 20;
/// More threads than this are not listed; `kernel.threads-max` is below it on
/// machines of less than a terabyte.
const MAX_THREADS: usize = 1 << 20;

/// Why a process can't be attached to. Each message says what, why, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// There is none.
    #[error("there is no process {pid}; `ps -e` lists those there are")]
    NoSuchProcess {
        /// The number asked for.
        pid: Pid,
    },
    /// It is the number of a thread.
    #[error("{pid} is a thread of process {process} ({name}); attach to {process}")]
    Thread {
        /// The number asked for.
        pid: Pid,
        /// The process it belongs to.
        process: Pid,
        /// The thread's name.
        name: String,
    },
    /// It has no program of its own.
    #[error(
        "process {pid} ({name}) is a thread of the kernel: it runs no program; \
         use `perf record -a` to profile the kernel"
    )]
    KernelThread {
        /// Which.
        pid: Pid,
        /// Its name.
        name: String,
    },
    /// It has ended.
    #[error(
        "process {pid} ({name}) has ended and only waits to be collected by process {parent} \
         (a zombie), or its main thread has; there is nothing left to attach to"
    )]
    Zombie {
        /// Which.
        pid: Pid,
        /// Its name.
        name: String,
        /// Its parent.
        parent: Pid,
    },
    /// It belongs to someone else.
    #[error(
        "process {pid} ({name}) belongs to user {owner}, and you are user {own}; \
         run vmscope as that user, or with CAP_SYS_PTRACE and CAP_PERFMON (as root, say)"
    )]
    NotYours {
        /// Which.
        pid: Pid,
        /// Its name.
        name: String,
        /// Whose it is (effective user id).
        owner: u32,
        /// Who we are (effective user id).
        own: u32,
    },
    /// It belongs to us, and yet the kernel does not let us look at it.
    #[error(
        "process {pid} ({name}) is yours, but does not let itself be looked at (it changed its \
         user or capabilities, or asked for it with PR_SET_DUMPABLE); run vmscope with \
         CAP_SYS_PTRACE and CAP_PERFMON (as root, say)"
    )]
    Protected {
        /// Which.
        pid: Pid,
        /// Its name.
        name: String,
    },
    /// It ended while we looked.
    #[error("process {pid} ended while vmscope was attaching to it; start it again")]
    Ended {
        /// Which.
        pid: Pid,
    },
    /// `/proc` did not answer as it should.
    #[error("can't read /proc/{pid}/{file}; is /proc mounted, and not with hidepid?")]
    Proc {
        /// Of which process.
        pid: Pid,
        /// Which file.
        file: &'static str,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

/// What `/proc` says about a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Its number.
    pub pid: Pid,
    /// Its number in its own pid namespace, as it sees itself.
    pub inner_pid: Pid,
    /// Its name (`comm`).
    pub name: String,
    /// Its command line; empty where it has overwritten it.
    pub command: Vec<String>,
    /// The program's path as the target sees it; empty where it can't be read.
    pub program: String,
    /// Its effective user id.
    pub user: u32,
    /// Who is tracing it, if anybody is.
    pub tracer: Option<Pid>,
    /// When it started, in clock ticks since boot: with the number, it tells a
    /// process from a later one with the same number.
    pub start_ticks: u64,
}

/// A thread of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Its number.
    pub tid: Tid,
    /// Its number in the process's own pid namespace, as the VM knows it.
    pub inner_tid: Tid,
    /// Its name; may be empty.
    pub name: String,
}

/// Polls a process up and checks that it is one that can be attached to.
///
/// # Errors
///
/// [`AttachError`].
pub fn examine(pid: Pid) -> Result<ProcessFacts, AttachError> {
    let stat = read_stat(pid)?;
    let name = stat.comm.clone();
    if stat.flags & StatFlags::PF_KTHREAD.bits() != 0 {
        return Err(AttachError::KernelThread { pid, name });
    }
    if matches!(stat.state, 'Z' | 'X' | 'x') {
        let parent = Pid(u32::try_from(stat.ppid).unwrap_or_default());
        return Err(AttachError::Zombie { pid, name, parent });
    }
    let status = read_status(pid, &format!("/proc/{pid}/status"))?;
    let process = positive(status.tgid);
    if process != pid.get() {
        let process = Pid(process);
        return Err(AttachError::Thread { pid, process, name });
    }
    let inner = status.nspid.as_ref().and_then(|pids| pids.last().copied());
    let command = read_bounded(&format!("/proc/{pid}/cmdline"))
        .map_err(|source| proc_error(pid, "cmdline", source))?;
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    Ok(ProcessFacts {
        pid,
        inner_pid: inner.map_or(pid, |inner| Pid(positive(inner))),
        name,
        command: split_command(&command),
        program: program.map_or_else(
            |_| String::new(),
            |path| {
                let path = path.to_string_lossy();
                // The kernel's mark of a program that has lost its name.
                path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned()
            },
        ),
        user: status.euid,
        tracer: (status.tracerpid > 0).then(|| Pid(positive(status.tracerpid))),
        start_ticks: stat.starttime,
    })
}

/// When process `pid` started, in clock ticks since boot; `None` when it is gone or
/// has ended.
pub(crate) fn start_ticks(pid: Pid) -> Option<u64> {
    let stat = read_stat(pid).ok()?;
    (!matches!(stat.state, 'Z' | 'X' | 'x')).then_some(stat.starttime)
}

/// Which program a process runs, as far as one cheap reading tells: an exec gives it new
/// places, unless they may not be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramStamp {
    /// When it started, in clock ticks since boot.
    start_ticks: u64,
    /// Where its code and its stack begin; 0 where that may not be known.
    places: [u64; 2],
}

impl ProgramStamp {
    /// Whether it is of the process that started then.
    pub(crate) fn is_since(self, start_ticks: u64) -> bool {
        self.start_ticks == start_ticks
    }
}

/// What [`program_stamp`] reads of process `pid`; `None` when it is gone. Its first thread's
/// file says the same, and the process's own has the figures of all threads summed up first.
pub(crate) fn open_stat(pid: Pid) -> Option<File> {
    File::open(format!("/proc/{pid}/task/{pid}/stat")).ok()
}

/// The stamp of the process whose `stat` that is; `None` when it is gone or has ended.
pub(crate) fn program_stamp(stat: &File) -> Option<ProgramStamp> {
    // A name of 15 characters and 50 numbers.
    let mut bytes = [0; 2048];
    let length = stat.read_at(&mut bytes, 0).ok()?;
    let stat = Stat::from_read(bytes.get(..length)?).ok()?;
    (!matches!(stat.state, 'Z' | 'X' | 'x')).then_some(ProgramStamp {
        start_ticks: stat.starttime,
        places: [stat.startcode, stat.startstack],
    })
}

/// What it means for `process` that its mappings can't be read.
pub(crate) fn explain(process: &ProcessFacts, error: MapsError) -> AttachError {
    let (pid, name) = (process.pid, process.name.clone());
    let own = nix::unistd::geteuid().as_raw();
    match error.source.kind() {
        io::ErrorKind::PermissionDenied if process.user != own => AttachError::NotYours {
            pid,
            name,
            owner: process.user,
            own,
        },
        io::ErrorKind::PermissionDenied => AttachError::Protected { pid, name },
        _ => proc_error(pid, "maps", error.source),
    }
}

/// The threads of process `pid`, in no particular order. Those that end meanwhile
/// are left out.
///
/// # Errors
///
/// What the system says: `ENOENT` or `ESRCH` when the process is gone.
pub fn list_threads(pid: Pid, inner_pid: Pid) -> io::Result<Vec<ThreadInfo>> {
    let mut threads = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/task"))?.take(MAX_THREADS) {
        let name = entry?.file_name();
        let Some(tid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(name) = read_bounded(&format!("/proc/{pid}/task/{tid}/comm")) else {
            continue;
        };
        let inner = if inner_pid == pid {
            tid
        } else {
            let status = read_status(pid, &format!("/proc/{pid}/task/{tid}/status"));
            let pids = status.ok().and_then(|status| status.nspid);
            let Some(inner) = pids.and_then(|pids| pids.last().copied()) else {
                continue;
            };
            positive(inner)
        };
        threads.push(ThreadInfo {
            tid: Tid(tid),
            inner_tid: Tid(inner),
            name: String::from_utf8_lossy(name.trim_ascii_end()).into_owned(),
        });
    }
    Ok(threads)
}

fn read_stat(pid: Pid) -> Result<Stat, AttachError> {
    let bytes = read_bounded(&format!("/proc/{pid}/stat")).map_err(|source| {
        if source.kind() == io::ErrorKind::NotFound {
            AttachError::NoSuchProcess { pid }
        } else {
            proc_error(pid, "stat", source)
        }
    })?;
    Stat::from_read(&*bytes).map_err(|error| proc_error(pid, "stat", io::Error::other(error)))
}

fn read_status(pid: Pid, path: &str) -> Result<Status, AttachError> {
    let error = |source| proc_error(pid, "status", source);
    let bytes = read_bounded(path).map_err(error)?;
    // procfs gives up on a name that is not UTF-8.
    let text = String::from_utf8_lossy(&bytes);
    Status::from_buf_read(text.as_bytes()).map_err(|failed| error(io::Error::other(failed)))
}

fn proc_error(pid: Pid, file: &'static str, source: io::Error) -> AttachError {
    let gone = source.kind() == io::ErrorKind::NotFound
        || source.raw_os_error() == Some(Errno::ESRCH as i32);
    if gone {
        return AttachError::Ended { pid };
    }
    AttachError::Proc { pid, file, source }
}

pub(crate) fn read_bounded(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(MAX_PROC_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The arguments, each ended by a zero; a program that has overwritten them with a
/// title leaves one, with zeros after it.
fn split_command(bytes: &[u8]) -> Vec<String> {
    let end = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1);
    // The last argument may be empty, but not all of what was overwritten.
    let arguments = bytes.get(..end).unwrap_or_default();
    if arguments.is_empty() {
        return Vec::new();
    }
    let arguments = arguments.split(|byte| *byte == 0);
    arguments
        .map(|argument| String::from_utf8_lossy(argument).into_owned())
        .collect()
}

fn positive(number: i32) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::ProcessView;

    fn attach(pid: u32) -> AttachError {
        ProcessView::open(Pid(pid)).expect_err("this can't be attached to")
    }

    #[test]
    fn there_is_no_such_process() {
        for pid in [0, 0x7fff_fff0, u32::MAX] {
            assert!(matches!(attach(pid), AttachError::NoSuchProcess { .. }));
        }
    }

    #[test]
    fn a_kernel_thread_is_told_as_such() {
        // kthreadd is process 2 wherever the pid namespace is the first one.
        let second = read_stat(Pid(2));
        if second.is_ok_and(|stat| stat.comm == "kthreadd") {
            let error = attach(2);
            assert!(matches!(error, AttachError::KernelThread { .. }), "{error}");
        }
    }

    #[test]
    fn a_zombie_is_told_as_such() {
        let mut child = Command::new("true").spawn().unwrap();
        let error = loop {
            match ProcessView::open(Pid(child.id())) {
                Err(AttachError::Ended { .. }) | Ok(_) => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                Err(error) => break error,
            }
        };
        let AttachError::Zombie { parent, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(parent.get(), std::process::id());
        child.wait().unwrap();
        assert!(matches!(
            attach(child.id()),
            AttachError::NoSuchProcess { .. }
        ));
    }

    #[test]
    fn a_thread_is_told_from_a_process() {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let (named, started) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("a thread".to_owned())
            .spawn(move || {
                let _ = named.send(());
                wait.recv()
            })
            .unwrap();
        // A thread gives itself its name.
        started.recv().unwrap();
        let me = Pid(std::process::id());
        let threads = list_threads(me, me).unwrap();
        let other = threads.iter().find(|thread| thread.name == "a thread");
        let error = attach(other.unwrap().tid.get());
        assert!(
            matches!(&error, AttachError::Thread { process, .. } if *process == me),
            "{error}"
        );
        drop(stop);
        let _ = thread.join().unwrap();
    }

    #[test]
    fn someone_elses_process_is_told_as_such() {
        let error = |kind: io::ErrorKind, user| {
            let facts = ProcessFacts {
                pid: Pid(7),
                inner_pid: Pid(7),
                name: "vm".to_owned(),
                command: Vec::new(),
                program: String::new(),
                user,
                tracer: None,
                start_ticks: 0,
            };
            let source = kind.into();
            explain(
                &facts,
                MapsError {
                    pid: Pid(7),
                    source,
                },
            )
        };
        let own = nix::unistd::geteuid().as_raw();
        let denied = io::ErrorKind::PermissionDenied;
        assert!(matches!(
            error(denied, own + 1),
            AttachError::NotYours { .. }
        ));
        assert!(matches!(error(denied, own), AttachError::Protected { .. }));
        let gone = error(io::ErrorKind::NotFound, own);
        assert!(matches!(gone, AttachError::Ended { .. }));
        let message = error(denied, own + 1).to_string();
        assert!(message.contains("belongs to user") && message.contains("run vmscope as"));
    }

    #[test]
    fn command_lines_are_split_at_zeros() {
        let split = |bytes: &[u8]| split_command(bytes);
        assert_eq!(split(b"a\0b c\0"), ["a", "b c"]);
        assert_eq!(split(b"nginx: master\0\0\0\0"), ["nginx: master"]);
        assert_eq!(split(b""), [""; 0]);
        assert_eq!(split(b"\xff\0"), ["\u{fffd}"]);
    }
}
