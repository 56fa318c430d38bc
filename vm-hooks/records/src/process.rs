//! Processes, their threads, and what is mapped into them.

use crate::{
    Avma, BuildId, DurationNs, FileOffset, ModuleKey, Pid, ProcessKey, ThreadKey, Tid, TimeNs,
};

/// An address space from its start (attach, fork, or exec) on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The key that other records use.
    pub key: ProcessKey,
    /// From when on; the start of the recording for a process that was there.
    pub time: TimeNs,
    /// Its process id.
    pub pid: Pid,
    /// The address space it was forked from or exec'ed out of. A forked one starts
    /// with its parent's mappings and code, which are not written again; an exec'ed
    /// one (same pid as its parent) starts empty. A forked one that is told again
    /// without a parent has replaced its program and kept its key: nothing of what it
    /// had is there from then on.
    pub parent: Option<ProcessKey>,
    /// The program's name (`comm`) when it was first seen.
    pub name: String,
}

/// An address space ended (by exit, or by an exec), or the recording did while it
/// was alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    /// Which.
    pub key: ProcessKey,
    /// When.
    pub time: TimeNs,
    /// Whether it was still alive (the recording ended first).
    pub alive: bool,
    /// CPU time that all its threads together used during the recording, threads too
    /// short to be asked one by one included; where known.
    pub cpu: Option<DurationNs>,
    /// The user part of `cpu`, where known.
    pub cpu_user: Option<DurationNs>,
}

/// What a thread does in its VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ThreadRole {
    /// Runs the program.
    Mutator,
    /// Works for the garbage collector.
    Collector,
    /// Works for a compiler.
    Compiler,
    /// Ticks for the VM (Cog's heartbeat, HotSpot's watcher thread).
    Heartbeat,
    /// The VM's own other work (HotSpot's VM thread, signal dispatch).
    Vm,
    /// Not known, or none of these.
    #[default]
    Other,
}

/// A thread from its start (or the recording's) on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The key that other records use.
    pub key: ThreadKey,
    /// The address space it runs in.
    pub process: ProcessKey,
    /// Its thread id.
    pub tid: Tid,
    /// From when on.
    pub time: TimeNs,
    /// Its name when it was first seen; may be empty.
    pub name: String,
    /// Its role as far as known then.
    pub role: ThreadRole,
    /// CPU time it had used before the recording began.
    pub cpu_before: DurationNs,
}

/// A thread's name or role became known, or changed, or it went on in another
/// address space (exec).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadUpdate {
    /// Which.
    pub key: ThreadKey,
    /// When.
    pub time: TimeNs,
    /// The new name, if that changed.
    pub name: Option<String>,
    /// The new role, if that changed.
    pub role: Option<ThreadRole>,
    /// The new address space, if that changed: from `time` on.
    pub process: Option<ProcessKey>,
}

/// A thread ended, or the recording did while it was alive. From the CPU time
/// follows how many samples were promised (TRUTH.md §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadEnd {
    /// Which.
    pub key: ThreadKey,
    /// When.
    pub time: TimeNs,
    /// Whether the thread was still alive (the recording ended first).
    pub alive: bool,
    /// CPU time it used during the recording, user and kernel.
    pub cpu: DurationNs,
    /// Whether `cpu` was measured; else it is reckoned from the samples, for a thread
    /// that was over before it could be asked.
    pub cpu_measured: bool,
    /// The user part of `cpu`, where it is known.
    pub cpu_user: Option<DurationNs>,
}

/// How much CPU time a thread had used at a time: written some times a second while
/// it changes, so that promised samples are known for every window of time, and in
/// a recording that was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadCpu {
    /// Which.
    pub key: ThreadKey,
    /// When it was read.
    pub time: TimeNs,
    /// CPU time since the recording began, user and kernel.
    pub cpu: DurationNs,
    /// The user part of `cpu`, where it is known.
    pub cpu_user: Option<DurationNs>,
}

/// In which state a module's file was found when its mapping first appeared.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModuleState {
    /// The file that is mapped could be opened.
    Opened,
    /// The file is gone (or never had a name), and could not be opened.
    Deleted,
    /// Another file has that name now (device, inode or build-id differ).
    Replaced,
    /// It could not be opened; why.
    Unreadable(String),
    /// Not a file: the vdso.
    Vdso,
}

/// A file that code is mapped from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The key that other records use.
    pub key: ModuleKey,
    /// When it first appeared.
    pub time: TimeNs,
    /// Its path as the target sees it (`[vdso]` for the vdso).
    pub path: String,
    /// Its build-id, of the mapped file where that could be read.
    pub build_id: Option<BuildId>,
    /// Device (`st_dev` as in the maps: major << 32 | minor) and inode; zero for the vdso.
    pub device: u64,
    /// See `device`.
    pub inode: u64,
    /// Size of the file in bytes; 0 where unknown.
    pub size: u64,
    /// Whether it is the program of a process, not a library.
    pub main: bool,
    /// How it was found.
    pub state: ModuleState,
}

/// A range of a process's addresses became a mapping. It replaces whatever part
/// of older mappings it overlaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The address space.
    pub process: ProcessKey,
    /// From when on (the recording's start for those that were there).
    pub time: TimeNs,
    /// First address.
    pub start: Avma,
    /// First address after it.
    pub end: Avma,
    /// Where in the file `start` lies.
    pub offset: FileOffset,
    /// The file; `None` for anonymous memory.
    pub module: Option<ModuleKey>,
    /// The name of anonymous memory (`[heap]`, `//anon`, `[stack]`), else empty.
    pub name: String,
    /// Whether it may be executed.
    pub executable: bool,
}

/// A range of a process's addresses is not mapped any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmapping {
    /// The address space.
    pub process: ProcessKey,
    /// From when on.
    pub time: TimeNs,
    /// First address.
    pub start: Avma,
    /// First address after it.
    pub end: Avma,
}
