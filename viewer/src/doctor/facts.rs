//! What doctor looks at, as plain data: everything [`super::verdict`] decides from.
//!
//! No judgement is made here, so a machine can be made up in a test. [`super::gather`]
//! fills in the machine's side, [`super::process`] the process's.

use std::time::Duration;

use nix::errno::Errno;

use super::modules::ModuleRow;

/// Capabilities that matter here, by their bit in `CapEff` of `/proc/PID/status`
/// (`include/uapi/linux/capability.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// Lock memory beyond `RLIMIT_MEMLOCK`.
    IpcLock = 14,
    /// Read another user's process.
    SysPtrace = 19,
    /// The old way to sample the kernel and everybody's processes.
    SysAdmin = 21,
    /// Real-time priority without `RLIMIT_RTPRIO`.
    SysNice = 23,
    /// Kernel addresses in `/proc/kallsyms`.
    Syslog = 34,
    /// Sample the kernel and everybody's processes (since Linux 5.8).
    Perfmon = 38,
}

impl Capability {
    /// Those that doctor lists, in its order.
    pub const ALL: [Self; 6] = [
        Self::Perfmon,
        Self::SysAdmin,
        Self::SysPtrace,
        Self::Syslog,
        Self::SysNice,
        Self::IpcLock,
    ];

    /// The name that `setcap` and `docker --cap-add` know, the latter without `CAP_`.
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

/// A set of capabilities: the mask as `/proc/PID/status` prints it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Whether `capability` is in the set.
    pub fn has(self, capability: Capability) -> bool {
        self.0 >> (capability as u8) & 1 == 1
    }
}

/// A setting under `/proc/sys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Its value.
    Value(i64),
    /// This kernel has no such setting: what it would restrict is not restricted.
    Absent,
    /// It is there and can't be read; why.
    Unreadable(String),
}

impl Setting {
    /// The value, where there is one.
    pub fn value(&self) -> Option<i64> {
        match self {
            Self::Value(value) => Some(*value),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }
}

/// What became of opening the events that the default recording needs, and closing them
/// again: the one fact that counts, because settings don't tell all (a seccomp filter, an
/// LSM, a hypervisor).
///
/// The sampler makes it; without one, doctor derives what it can from the settings and
/// says that it was not tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfProbe {
    /// A cpu-clock event on user space alone: opened, or with what error it was not.
    pub user: Result<(), Errno>,
    /// The same with the kernel included.
    pub kernel: Result<(), Errno>,
}

/// A limit of `getrlimit`: soft (in force) and hard (up to where it may be raised);
/// `u64::MAX` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// In force.
    pub soft: u64,
    /// Up to where a process may raise it itself.
    pub hard: u64,
}

/// The machine, and who asks.
#[derive(Clone, Debug)]
pub struct MachineFacts {
    /// As `uname -r` prints it.
    pub kernel_release: String,
    /// CPUs online; at least 1.
    pub cpus: u32,
    /// `kernel.perf_event_paranoid`.
    pub paranoid: Setting,
    /// `kernel.perf_event_mlock_kb`, kilobytes per CPU and user.
    pub mlock_kb: Setting,
    /// `kernel.kptr_restrict`.
    pub kptr_restrict: Setting,
    /// Whether `/proc/kallsyms` shows us addresses (not only zeros).
    pub kernel_addresses: bool,
    /// `kernel.yama.ptrace_scope`.
    pub ptrace_scope: Setting,
    /// The effective user id of vmscope.
    pub uid: u32,
    /// That user's name, where it has one.
    pub user: Option<String>,
    /// Effective capabilities of vmscope.
    pub capabilities: Capabilities,
    /// Those that even root can have here: a container's are few.
    pub bounding: Capabilities,
    /// Whether those count for the whole machine: in a user namespace they don't.
    pub initial_user_namespace: bool,
    /// `RLIMIT_RTPRIO`: the highest real-time priority that may be asked for; 0 is none.
    pub rtprio: Limit,
    /// `RLIMIT_NICE`: the best nice value that may be asked for is 20 minus this.
    pub nice: Limit,
    /// `RLIMIT_NOFILE`.
    pub descriptors: Limit,
    /// Whether a seccomp filter is on vmscope (`Seccomp: 2`).
    pub seccomp_filter: bool,
    /// The container that vmscope seems to run in (`docker`, `podman`, `kubernetes` …),
    /// and by what it was recognised.
    pub container: Option<(String, String)>,
}

impl MachineFacts {
    /// Whether vmscope has `capability` where the kernel asks for it in the initial user
    /// namespace (`capable()`), as it does for everything but `CAP_SYS_PTRACE`.
    pub fn capable(&self, capability: Capability) -> bool {
        self.initial_user_namespace && self.capabilities.has(capability)
    }

    /// Whether the machine's settings are out of reach even for root: as in a container,
    /// not in a machine that merely looks like one.
    pub fn confined(&self) -> bool {
        !self.initial_user_namespace || !self.bounding.has(Capability::SysAdmin)
    }

    /// `perfmon_capable()` of the kernel: `CAP_PERFMON` or `CAP_SYS_ADMIN`.
    pub fn perfmon_capable(&self) -> bool {
        self.capable(Capability::Perfmon) || self.capable(Capability::SysAdmin)
    }
}

/// What kind of thing a pid is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Existence {
    /// No such process.
    Missing,
    /// It exists, and `/proc` does not show it to us (`hidepid`).
    Hidden,
    /// An ordinary process.
    Process,
    /// It has ended, and its parent has not taken note.
    Zombie,
    /// A thread of the kernel: there is no program in it.
    KernelThread,
    /// A thread of the process named, not a process.
    ThreadOf(i32),
}

/// What became of an attempt to read something of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It was read.
    Done,
    /// The kernel said no.
    Failed(Errno),
    /// It was not tried, because there was nothing to try it on.
    NotTried,
}

/// What came of asking the families of VMs about the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vms {
    /// It can't be looked at, or was not.
    NotAsked,
    /// They did not answer within that time.
    TooLong(Duration),
    /// Those that know it, each family for itself; none where no VM is known to run in it.
    Asked(Vec<VmFacts>),
}

/// What the adapter of a family says of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmFacts {
    /// The family.
    pub family: String,
    /// Which VM it is, in its adapter's words; empty where it can't be read at all.
    pub kind: String,
    /// Its version; may be empty.
    pub version: String,
    /// What it tells of itself, by name.
    pub facts: Vec<(String, String)>,
    /// What one poll found; `None` where there was none.
    pub reading: Option<VmReading>,
    /// What limits what can be told of it.
    pub limits: Vec<Trouble>,
    /// Why it can't be read, or not to the end.
    pub trouble: Option<Trouble>,
}

/// How much of everything one poll found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmReading {
    /// Pieces of code.
    pub code: u64,
    /// Methods.
    pub methods: u64,
    /// Collections.
    pub collections: u64,
    /// Figures.
    pub counters: u64,
    /// Threads whose role or name it knows.
    pub threads: u64,
    /// Methods that are being compiled.
    pub compiling: u64,
    /// Things that could not be read.
    pub lost: u64,
}

/// Something that is in the way, and what helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What it is, a sentence.
    pub text: String,
    /// What helps; may be empty.
    pub remedy: String,
}

/// The process asked about.
#[derive(Clone, Debug)]
pub struct ProcessFacts {
    /// As given.
    pub pid: i32,
    /// What it is. The rest is empty unless `/proc/PID/status` could be read.
    pub existence: Existence,
    /// Its name (`comm`).
    pub name: String,
    /// Its real user id.
    pub uid: Option<u32>,
    /// That user's name, where it has one.
    pub user: Option<String>,
    /// Its ids from our pid namespace inwards; more than one means a container.
    pub nspid: Vec<i32>,
    /// Threads now.
    pub threads: u64,
    /// Who traces it: pid and name.
    pub tracer: Option<(i32, String)>,
    /// Whether `/proc/PID/maps` can be read (ptrace access mode *read*).
    pub maps: Reading,
    /// Whether one word of its memory could be read (ptrace access mode *attach*).
    pub memory: Reading,
    /// The VMs in it.
    pub vms: Vms,
    /// Its modules; empty where the maps can't be read.
    pub modules: Vec<ModuleRow>,
    /// How many more modules there were than doctor looks at.
    pub modules_left_out: usize,
}

/// Everything doctor knows.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The machine and the caller.
    pub machine: MachineFacts,
    /// The probe of `perf_event_open` on vmscope itself, if one was made.
    pub perf: Option<PerfProbe>,
    /// The same on the process.
    pub process_perf: Option<PerfProbe>,
    /// The process asked about.
    pub process: Option<ProcessFacts>,
}
