//! Processes, their threads and mappings.

use crate::{
    Avma, BuildId, DurationNs, FileOffset, ModuleKey, Pid, ProcessKey, ThreadKey, Tid, TimeNs,
};

/// An address space from its start (attach, fork, or exec).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Key for other records.
    pub key: ProcessKey,
    /// Start time; start of the recording for earlier processes.
    pub time: TimeNs,
    /// Process id.
    pub pid: Pid,
    /// The previous address space of a fork or exec. After a fork (another pid), the child starts
    /// with its parent's mappings and code, which are not written again; after an exec (same pid),
    /// it starts empty. A forked process written again without a parent has executed another
    /// program under its old key: all its earlier contents are gone.
    pub parent: Option<ProcessKey>,
    /// Program name at first observation: `comm`, or the program's file name if its main thread has another name.
    pub name: String,
}

/// End of an address space by exit or exec, or of the recording before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    /// The address space.
    pub key: ProcessKey,
    /// Time of the end.
    pub time: TimeNs,
    /// Whether the recording ended first.
    pub alive: bool,
    /// CPU time of all threads during the recording, if known, including threads too short for
    /// single readings.
    pub cpu: Option<DurationNs>,
    /// User part of `cpu`, if known.
    pub cpu_user: Option<DurationNs>,
}

/// A thread's role in its VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ThreadRole {
    /// Runs the program.
    Mutator,
    /// Works for the garbage collector.
    Collector,
    /// Works for a compiler.
    Compiler,
    /// The VM's timer thread (Cog's heartbeat, HotSpot's watcher thread).
    Heartbeat,
    /// Other work of the VM (HotSpot's VM thread, signal dispatch).
    Vm,
    /// Another role, or unknown.
    #[default]
    Other,
}

/// A thread from its start or the recording's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Key for other records.
    pub key: ThreadKey,
    /// Its address space.
    pub process: ProcessKey,
    /// Thread id.
    pub tid: Tid,
    /// Start time.
    pub time: TimeNs,
    /// Name at first observation; may be empty.
    pub name: String,
    /// Role, if already known.
    pub role: ThreadRole,
    /// CPU time before the recording.
    pub cpu_before: DurationNs,
}

/// A changed name or role of a thread, or its change to another address space (exec).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadUpdate {
    /// The thread.
    pub key: ThreadKey,
    /// Time of the change.
    pub time: TimeNs,
    /// New name, if changed.
    pub name: Option<String>,
    /// New role, if changed.
    pub role: Option<ThreadRole>,
    /// New address space from `time`, if changed.
    pub process: Option<ProcessKey>,
}

/// End of a thread, or end of recording a living thread. The CPU time determines the number of
/// expected samples (docs/truth.md §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadEnd {
    /// The thread.
    pub key: ThreadKey,
    /// Time of the end.
    pub time: TimeNs,
    /// Whether the recording ended first.
    pub alive: bool,
    /// CPU time during the recording, user and kernel.
    pub cpu: DurationNs,
    /// Whether `cpu` was measured; otherwise (short threads) estimated from samples.
    pub cpu_measured: bool,
    /// User part of `cpu`, if known.
    pub cpu_user: Option<DurationNs>,
}

/// A reading of a thread's CPU time. Written a few times per second while it changes, so that the
/// number of expected samples is known for every time window, even in truncated recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadCpu {
    /// The thread.
    pub key: ThreadKey,
    /// Time of reading.
    pub time: TimeNs,
    /// CPU time since the recording's start, user and kernel.
    pub cpu: DurationNs,
    /// User part of `cpu`, if known.
    pub cpu_user: Option<DurationNs>,
}

/// State of a module's file at its first mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModuleState {
    /// Opened.
    Opened,
    /// Deleted, or never named, and not accessible otherwise.
    Deleted,
    /// Another file has the name now (device, inode or build-id differ).
    Replaced,
    /// Opening failed, with a reason.
    Unreadable(String),
    /// Not a file: the vdso.
    Vdso,
}

/// Whether a mapping's path names shared memory instead of a file on disk (`proc_pid_maps(5)`). VMs that map their code
/// zone twice (.NET), or share it with children (PHP), generate code into such memory.
#[must_use]
pub fn is_shared_memory(path: &[u8]) -> bool {
    let starts: [&[u8]; 3] = [b"/memfd:", b"/dev/zero", b"/SYSV"];
    starts.iter().any(|start| path.starts_with(start))
}

/// A file with mapped code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Key for other records.
    pub key: ModuleKey,
    /// Time of the first mapping.
    pub time: TimeNs,
    /// Path as the target sees it (`[vdso]` for the vdso).
    pub path: String,
    /// Build-id of the mapped file, if readable.
    pub build_id: Option<BuildId>,
    /// Device (as in `/proc/PID/maps`: major << 32 | minor); zero for the vdso.
    pub device: u64,
    /// Inode; zero for the vdso.
    pub inode: u64,
    /// File size in bytes; 0 if unknown.
    pub size: u64,
    /// Whether the module is the program; false for libraries.
    pub main: bool,
    /// State of the file.
    pub state: ModuleState,
}

/// A mapped address range. Replaces overlapping parts of older mappings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The address space.
    pub process: ProcessKey,
    /// Time of mapping; start of the recording for earlier mappings.
    pub time: TimeNs,
    /// First address.
    pub start: Avma,
    /// First address after the range.
    pub end: Avma,
    /// File offset of `start`.
    pub offset: FileOffset,
    /// File; `None` for anonymous memory.
    pub module: Option<ModuleKey>,
    /// Name of anonymous memory (`[heap]`, `//anon`, `[stack]`), else empty.
    pub name: String,
    /// Executable.
    pub executable: bool,
}

impl Mapping {
    /// File offset of address 0, wrapped around; equal for all parts of a mapping.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.offset.0.wrapping_sub(self.start.0)
    }

    /// Whether `older` mapped its addresses equally: a repeated mapping, e.g. after a change of
    /// protection.
    #[must_use]
    pub fn repeats(&self, older: &Mapping) -> bool {
        (older.start <= self.start && self.end <= older.end)
            && (self.module, &self.name, self.executable)
                == (older.module, &older.name, older.executable)
            && (self.module.is_none() || self.base() == older.base())
    }
}

/// An unmapped address range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmapping {
    /// The address space.
    pub process: ProcessKey,
    /// Time of unmapping.
    pub time: TimeNs,
    /// First address.
    pub start: Avma,
    /// First address after the range.
    pub end: Avma,
}
