//! Facts, without judgement: the input of [`super::verdict`], which tests can make up.
//! [`super::gather`] collects the machine's facts, [`super::process`] the process's.

use std::time::Duration;

use nix::errno::Errno;

use super::modules::ModuleRow;

/// Relevant capabilities, by their bit in `CapEff` of `/proc/PID/status`
/// (`include/uapi/linux/capability.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// Lock memory beyond `RLIMIT_MEMLOCK`.
    IpcLock = 14,
    /// Read another user's process.
    SysPtrace = 19,
    /// Before Linux 5.8: sample the kernel and all processes.
    SysAdmin = 21,
    /// Real-time priority without `RLIMIT_RTPRIO`.
    SysNice = 23,
    /// Kernel addresses in `/proc/kallsyms`.
    Syslog = 34,
    /// Since Linux 5.8: sample the kernel and all processes.
    Perfmon = 38,
}

impl Capability {
    /// In display order.
    pub const ALL: [Self; 6] = [
        Self::Perfmon,
        Self::SysAdmin,
        Self::SysPtrace,
        Self::Syslog,
        Self::SysNice,
        Self::IpcLock,
    ];

    /// Name in `setcap`, and without `CAP_` in `docker --cap-add`.
    pub fn name(self) -> &'static str {
        match self {
            Self::IpcLock => "CAP_IPC_LOCK",
            Self::SysPtrace => "CAP_SYS_PTRACE",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::SysNice => "CAP_SYS_NICE",
            Self::Syslog => "CAP_SYSLOG",
            Self::Perfmon => "CAP_PERFMON",
        }
    }
}

/// A set of capabilities: the mask in `/proc/PID/status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    pub fn has(self, capability: Capability) -> bool {
        self.0 >> (capability as u8) & 1 == 1
    }
}

/// A setting under `/proc/sys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    Value(i64),
    /// Unknown to this kernel: no restriction.
    Absent,
    /// Unreadable; the reason.
    Unreadable(String),
}

impl Setting {
    pub fn value(&self) -> Option<i64> {
        match self {
            Self::Value(value) => Some(*value),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }
}

/// Result of opening and closing the default recording's events. It decides: settings do not show
/// seccomp filters, LSMs or hypervisors. Without a probe, doctor judges by the settings and says
/// so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfProbe {
    /// A cpu-clock event in user space.
    pub user: Result<(), Errno>,
    /// The same including the kernel.
    pub kernel: Result<(), Errno>,
}

/// A limit of `getrlimit`; `u64::MAX` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// In force.
    pub soft: u64,
    /// Bound for raises by the process itself.
    pub hard: u64,
}

/// The machine and vmscope's user.
#[derive(Clone, Debug)]
pub struct MachineFacts {
    /// As in `uname -r`.
    pub kernel_release: String,
    /// CPUs online, at least 1.
    pub cpus: u32,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: Setting,
    /// `kernel.perf_event_mlock_kb`, kB per CPU and user.
    pub mlock_kb: Setting,
    /// `kernel.kptr_restrict`.
    pub kptr_restrict: Setting,
    /// Whether vmscope sees non-zero addresses in `/proc/kallsyms`.
    pub kernel_addresses: bool,
    /// `kernel.yama.ptrace_scope`.
    pub ptrace_scope: Setting,
    /// Effective user id.
    pub uid: u32,
    pub user: Option<String>,
    /// Effective capabilities.
    pub capabilities: Capabilities,
    /// Bounding set: root's maximum; containers have few.
    pub bounding: Capabilities,
    /// Capabilities in other user namespaces do not count for the machine.
    pub initial_user_namespace: bool,
    /// `RLIMIT_RTPRIO`: maximum real-time priority; 0: none.
    pub rtprio: Limit,
    /// `RLIMIT_NICE`: 20 minus the best nice value.
    pub nice: Limit,
    /// `RLIMIT_NOFILE`.
    pub descriptors: Limit,
    /// Whether vmscope runs under a seccomp filter (`Seccomp: 2`).
    pub seccomp_filter: bool,
    /// Apparent container (`docker`, `podman`, `kubernetes` …) and its evidence.
    pub container: Option<(String, String)>,
}

impl MachineFacts {
    /// Whether vmscope has `capability` in the initial user namespace, where the kernel checks all
    /// but `CAP_SYS_PTRACE` (`capable()`).
    pub fn capable(&self, capability: Capability) -> bool {
        self.initial_user_namespace && self.capabilities.has(capability)
    }

    /// Whether even root can't change the machine's settings: true in containers, false on machines
    /// that merely resemble one.
    pub fn confined(&self) -> bool {
        !self.initial_user_namespace || !self.bounding.has(Capability::SysAdmin)
    }

    /// The kernel's `perfmon_capable()`: `CAP_PERFMON` or `CAP_SYS_ADMIN`.
    pub fn perfmon_capable(&self) -> bool {
        self.capable(Capability::Perfmon) || self.capable(Capability::SysAdmin)
    }
}

/// Kind of a pid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Existence {
    Missing,
    /// `/proc` hides it (`hidepid`).
    Hidden,
    Process,
    /// A process that a signal has stopped.
    Stopped,
    /// Exited, not reaped.
    Zombie,
    KernelThread,
    /// A thread of another process.
    ThreadOf(i32),
}

impl Existence {
    /// Whether doctor can examine a program of the process.
    pub fn has_program(&self) -> bool {
        matches!(self, Existence::Process | Existence::Stopped)
    }
}

/// Result of an attempt to read the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    Done,
    Failed(Errno),
    /// Nothing to try it on.
    NotTried,
}

/// Answers of the VM families about the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vms {
    NotAsked,
    /// No answer within this time.
    TooLong(Duration),
    /// One per family that knows the process.
    Asked(Vec<VmFacts>),
}

/// Answer of a family's adapter about the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmFacts {
    pub family: String,
    /// The VM, in its adapter's words; empty for unreadable VMs.
    pub kind: String,
    /// May be empty.
    pub version: String,
    /// Facts about itself: name, value.
    pub facts: Vec<(String, String)>,
    /// Counts of one poll.
    pub reading: Option<VmReading>,
    /// Limits of accuracy.
    pub limits: Vec<Trouble>,
    /// Reason of a failed or partial poll.
    pub trouble: Option<Trouble>,
}

/// Counts of one poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmReading {
    pub code: u64,
    pub methods: u64,
    pub collections: u64,
    pub counters: u64,
    /// Threads with a known role or name.
    pub threads: u64,
    /// Methods under compilation.
    pub compiling: u64,
    /// Unreadable items.
    pub lost: u64,
}

/// An obstacle with its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// A sentence.
    pub text: String,
    /// May be empty.
    pub remedy: String,
}

/// The requested process.
#[derive(Clone, Debug)]
pub struct ProcessFacts {
    /// As given.
    pub pid: i32,
    /// Further fields are empty without a readable `/proc/PID/status`.
    pub existence: Existence,
    /// `comm`.
    pub name: String,
    /// Real user id.
    pub uid: Option<u32>,
    pub user: Option<String>,
    /// Ids from vmscope's pid namespace inwards; several mean a container.
    pub nspid: Vec<i32>,
    pub threads: u64,
    /// Pid and name.
    pub tracer: Option<(i32, String)>,
    /// Readability of `/proc/PID/maps` (ptrace access mode *read*).
    pub maps: Reading,
    /// Readability of one word of memory (ptrace access mode *attach*).
    pub memory: Reading,
    pub vms: Vms,
    /// Empty without readable maps.
    pub modules: Vec<ModuleRow>,
    /// Number of unexamined modules.
    pub modules_left_out: usize,
}

#[derive(Clone, Debug)]
pub struct Facts {
    pub machine: MachineFacts,
    /// Probe of `perf_event_open` on vmscope itself.
    pub perf: Option<PerfProbe>,
    /// The same on the process.
    pub process_perf: Option<PerfProbe>,
    pub process: Option<ProcessFacts>,
}
