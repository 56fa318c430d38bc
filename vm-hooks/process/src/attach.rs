//! Identity of a process and permission to attach: `/proc/PID/stat`, `status`, `cmdline` and `task`
//! (`proc(5)`).

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;

use nix::errno::Errno;
use procfs::process::{Stat, StatFlags, Status};
use procfs::{FromBufRead as _, FromRead as _};
use vmscope_records::{Pid, Tid};

use crate::MapsError;

/// Cap for files in `/proc/PID`. The target determines the length of `cmdline` and `environ`; other
/// files have a few kilobytes.
pub(crate) const MAX_PROC_FILE_BYTES: u64 = 2 << 20;
/// `kernel.threads-max` is lower on machines with less than a terabyte of memory.
const MAX_THREADS: usize = 1 << 20;

/// A refused attach. Each message names problem, reason and remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// No such process.
    #[error("there is no process {pid}; `ps -e` lists all processes")]
    NoSuchProcess {
        /// The requested number.
        pid: Pid,
    },
    /// The number belongs to a thread.
    #[error("{pid} is a thread of process {process} ({name}); attach to {process}")]
    Thread {
        /// The requested number.
        pid: Pid,
        /// The thread's process.
        process: Pid,
        /// The thread's name.
        name: String,
    },
    /// A kernel thread, without a program.
    #[error(
        "process {pid} ({name}) is a kernel thread; use `perf record -a` to profile the kernel"
    )]
    KernelThread {
        /// Process id.
        pid: Pid,
        /// Its name.
        name: String,
    },
    /// A zombie.
    #[error(
        "process {pid} ({name}) has ended (a zombie of process {parent}): nothing to attach to"
    )]
    Zombie {
        /// Process id.
        pid: Pid,
        /// Its name.
        name: String,
        /// Its parent.
        parent: Pid,
    },
    /// A process of another user.
    #[error(
        "process {pid} ({name}) belongs to user {owner}, and you are user {own}; run vmscope as \
         that user, or {}", rights(*own)
    )]
    NotYours {
        /// Process id.
        pid: Pid,
        /// Its name.
        name: String,
        /// Effective user id of the process.
        owner: u32,
        /// Effective user id of vmscope.
        own: u32,
    },
    /// A process of the same user, not dumpable or with additional rights.
    #[error(
        "process {pid} ({name}) is yours, but protected (setuid, capabilities or PR_SET_DUMPABLE); \
         run vmscope {}", rights(*own)
    )]
    Protected {
        /// Process id.
        pid: Pid,
        /// Its name.
        name: String,
        /// Effective user id of both.
        own: u32,
    },
    /// The process exited during attaching.
    #[error("process {pid} ended while vmscope was attaching to it; start the program again")]
    Ended {
        /// Process id.
        pid: Pid,
    },
    /// A file in `/proc` is unreadable.
    #[error("cannot read /proc/{pid}/{file}: is /proc mounted, without hidepid?")]
    Proc {
        /// Process id.
        pid: Pid,
        /// File name.
        file: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// The rights that user `own` needs. A root who is refused lacks capabilities, as in containers.
fn rights(own: u32) -> &'static str {
    match own {
        0 => {
            "with CAP_SYS_PTRACE and CAP_PERFMON, which root lacks here (containers: --cap-add \
             SYS_PTRACE --cap-add PERFMON)"
        }
        _ => "as root, or with CAP_SYS_PTRACE and CAP_PERFMON",
    }
}

/// A process as `/proc` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Process id.
    pub pid: Pid,
    /// Process id in its own pid namespace.
    pub inner_pid: Pid,
    /// Name (`comm`).
    pub name: String,
    /// Command line; empty if overwritten.
    pub command: Vec<String>,
    /// Path of the program as the target sees it; empty if unreadable.
    pub program: String,
    /// Effective user id.
    pub user: u32,
    /// Its tracer (debugger), if any.
    pub tracer: Option<Pid>,
    /// Start time in clock ticks since boot; distinguishes processes with the same reused id.
    pub start_ticks: u64,
}

impl ProcessFacts {
    /// The process's name for people: `comm`, or the program's file name if the program gave its main thread
    /// another name (Node.js 24: `MainThread`).
    #[must_use]
    pub fn display_name(&self) -> &str {
        let program = file_name(&self.program);
        // A script has its own name. Programs with titles change command line and name (`postgres: …`).
        let mut words = self.command.iter().take(2).map(|word| file_name(word));
        let is_own =
            program.starts_with(&self.name) || words.any(|word| word.starts_with(&self.name));
        match is_own || program.is_empty() {
            true => &self.name,
            false => program,
        }
    }
}

/// Last component of a path.
#[must_use]
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// A thread of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Thread id.
    pub tid: Tid,
    /// Thread id in the process's own pid namespace, as the VM knows it.
    pub inner_tid: Tid,
    /// Its name; may be empty.
    pub name: String,
}

/// Reads the identity of process `pid` and rejects processes without a program to profile.
///
/// # Errors
/// [`AttachError`].
pub fn examine(pid: Pid) -> Result<ProcessFacts, AttachError> {
    let stat = read_stat(pid)?;
    let name = stat.comm.clone();
    if stat.flags & StatFlags::PF_KTHREAD.bits() != 0 {
        return Err(AttachError::KernelThread { pid, name });
    }
    if has_ended(&stat) && living_thread(pid).is_none() {
        let parent = Pid(u32::try_from(stat.ppid).unwrap_or_default());
        return Err(AttachError::Zombie { pid, name, parent });
    }
    let living = living(pid);
    let status = read_status(pid, &format!("/proc/{pid}/status"))?;
    let process = positive(status.tgid);
    if process != pid.get() {
        let process = Pid(process);
        return Err(AttachError::Thread { pid, process, name });
    }
    let inner = status.nspid.as_ref().and_then(|pids| pids.last().copied());
    let command = read_bounded(&format!("/proc/{living}/cmdline"))
        .map_err(|source| proc_error(pid, "cmdline", source))?;
    let program = std::fs::read_link(format!("/proc/{living}/exe"));
    Ok(ProcessFacts {
        pid,
        inner_pid: inner.map_or(pid, |inner| Pid(positive(inner))),
        name,
        command: split_command(&command),
        program: program.map_or_else(
            |_| String::new(),
            |path| {
                let path = path.to_string_lossy();
                // Mark of the kernel for a deleted program.
                path.strip_suffix(" (deleted)").unwrap_or(&path).to_owned()
            },
        ),
        user: status.euid,
        tracer: (status.tracerpid > 0).then(|| Pid(positive(status.tracerpid))),
        start_ticks: stat.starttime,
    })
}

/// Processes with a name (`comm`) or a program file of this name that the caller may examine, by
/// pid, without the caller.
#[must_use]
pub fn processes_named(name: &str) -> Vec<ProcessFacts> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_named = |facts: &ProcessFacts| facts.name == name || file_name(&facts.program) == name;
    // Opening the mappings takes the right to attach; `examine` alone does not.
    let is_allowed = |pid: Pid| File::open(format!("/proc/{pid}/maps")).is_ok();
    let others = pids.filter(|pid: &u32| *pid != std::process::id());
    let mut found: Vec<ProcessFacts> = others
        .filter_map(|pid| examine(Pid(pid)).ok())
        .filter(|facts| is_named(facts) && is_allowed(facts.pid))
        .collect();
    found.sort_unstable_by_key(|facts| facts.pid.0);
    found
}

/// Start time of process `pid`; `None` after its exit.
pub(crate) fn start_ticks(pid: Pid) -> Option<u64> {
    let stat = read_stat(pid).ok()?;
    (!has_ended(&stat) || living_thread(pid).is_some()).then_some(stat.starttime)
}

fn has_ended(stat: &Stat) -> bool {
    matches!(stat.state, 'Z' | 'X' | 'x')
}

/// A living thread of process `pid`, other than its main thread: any has the process's memory and
/// files in `/proc`.
fn living_thread(pid: Pid) -> Option<Pid> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let tids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut others = tids.map(Pid).filter(|tid| *tid != pid);
    others.find(|tid| read_stat(*tid).is_ok_and(|stat| !has_ended(&stat)))
}

/// The id with a usable `/proc` folder for process `pid`: `pid` itself, or a living thread's id if
/// the main thread has ended, and thereby lost memory and files.
pub(crate) fn living(pid: Pid) -> Pid {
    let has_ended = read_stat(pid).is_ok_and(|stat| has_ended(&stat));
    let other = has_ended.then(|| living_thread(pid));
    other.flatten().unwrap_or(pid)
}

/// Identity of the program in a process, cheap to read: an exec changes the addresses of code and
/// stack, unless the kernel hides them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramStamp {
    /// In clock ticks since boot.
    start_ticks: u64,
    /// Start addresses of code and stack; 0 if hidden.
    places: [u64; 2],
}

impl ProgramStamp {
    pub(crate) fn is_since(self, start_ticks: u64) -> bool {
        self.start_ticks == start_ticks
    }
}

/// Opens the `stat` file of the first thread for [`program_stamp`]. The file of the process costs
/// more: the kernel sums up all threads.
pub(crate) fn open_stat(pid: Pid) -> Option<File> {
    File::open(format!("/proc/{pid}/task/{pid}/stat")).ok()
}

/// Opens the memory of a process (`proc_pid_mem(5)`). The file stays that of the present program.
pub(crate) fn open_memory(pid: Pid) -> Option<File> {
    File::open(format!("/proc/{pid}/mem")).ok()
}

/// Whether the program whose memory was opened still runs: after its exit or exec, reads find the end.
pub(crate) fn has_memory(memory: &File) -> bool {
    !matches!(memory.read_at(&mut [0], 0), Ok(0))
}

/// Stamp from an open `stat` file; `None` after the exit.
pub(crate) fn program_stamp(stat: &File) -> Option<ProgramStamp> {
    // A name of 15 characters and 50 numbers.
    let mut bytes = [0; 2048];
    let length = stat.read_at(&mut bytes, 0).ok()?;
    let stat = Stat::from_read(bytes.get(..length)?).ok()?;
    let places = |stat: &Stat| [stat.startcode, stat.startstack];
    // An ending main thread has no memory, while the program may go on.
    let other = (stat.startcode == 0)
        .then(|| living_thread(Pid(positive(stat.pid))))
        .flatten()
        .and_then(|tid| read_stat(tid).ok());
    (!has_ended(&stat) || other.is_some()).then(|| ProgramStamp {
        start_ticks: stat.starttime,
        places: places(other.as_ref().unwrap_or(&stat)),
    })
}

/// Reason for unreadable mappings of `process`.
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
        io::ErrorKind::PermissionDenied => AttachError::Protected { pid, name, own },
        _ => proc_error(pid, "maps", error.source),
    }
}

/// Threads of process `pid`, unordered, without threads that end during the listing.
///
/// # Errors
/// I/O errors; `ENOENT` or `ESRCH` if the process is gone.
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
    // procfs rejects names with invalid UTF-8.
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

/// Arguments, each with a terminating zero. A title written over them counts as one argument,
/// padded with zeros.
fn split_command(bytes: &[u8]) -> Vec<String> {
    let end = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1);
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
    fn a_name_of_the_main_thread_is_not_the_processs() {
        let me = examine(Pid(std::process::id())).unwrap();
        let shown = |name: &str, program: &str, command: &[&str]| {
            let facts = ProcessFacts {
                name: name.to_owned(),
                program: program.to_owned(),
                command: command.iter().map(|word| (*word).to_owned()).collect(),
                ..me.clone()
            };
            facts.display_name().to_owned()
        };
        let node = "/usr/bin/node";
        assert_eq!(shown("MainThread", node, &["node", "app.js"]), "node");
        assert_eq!(shown("node", node, &["node", "app.js"]), "node");
        assert_eq!(shown("app.js", node, &["node", "/x/app.js"]), "app.js");
        let title = &["postgres: writer"];
        assert_eq!(shown("postgres", "/usr/lib/14/server", title), "postgres");
        // A name has at most 15 bytes.
        let long = "/x/a_program_of_a_long_name";
        assert_eq!(shown("a_program_of_a_", long, &[]), "a_program_of_a_");
        assert_eq!(shown("MainThread", "", &["node"]), "MainThread");
    }

    #[test]
    fn there_is_no_such_process() {
        for pid in [0, 0x7fff_fff0, u32::MAX] {
            assert!(matches!(attach(pid), AttachError::NoSuchProcess { .. }));
        }
    }

    #[test]
    fn a_kernel_thread_is_told_as_such() {
        // kthreadd is process 2 in the first pid namespace only.
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
    fn root_is_not_told_to_become_root() {
        let refused = |own| {
            let (pid, name, owner) = (Pid(1), "init".to_owned(), 7);
            let protected = AttachError::Protected {
                pid,
                name: name.clone(),
                own,
            };
            let anothers = AttachError::NotYours {
                pid,
                name,
                owner,
                own,
            };
            [protected.to_string(), anothers.to_string()]
        };
        assert!(refused(0).iter().all(|text| !text.contains("as root")));
        assert!(refused(0).iter().all(|text| text.contains("--cap-add")));
        assert!(refused(1000).iter().all(|text| text.contains("as root")));
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
