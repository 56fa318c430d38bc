//! Numbers with distinct types.

use std::fmt;

/// Declares a number type: ordered, hashable, printed plainly.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty), $format:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl $name {
            /// The plain number.
            #[must_use]
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "(", $format, ")"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }
    };
}

number! {
    /// A run-time address ("actual virtual memory address") in the address space of a process or
    /// the kernel, like a sampled pc.
    Avma(u64), "{:#x}"
}
number! {
    /// A byte offset in a mapped file: a run-time address relative to its mapping, independent of
    /// the file's headers. In the vdso: offset in its image.
    FileOffset(u64), "{:#x}"
}
number! {
    /// Position of a bytecode in its method, in the VM's numbering (HotSpot: bci; Cog: zero-based
    /// byte after the object header).
    BytecodePc(u32), "{}"
}
number! {
    /// An instant on `CLOCK_MONOTONIC`, in nanoseconds.
    TimeNs(u64), "{}"
}
number! {
    /// A duration in nanoseconds.
    DurationNs(u64), "{}"
}
number! {
    /// A process id in vmscope's pid namespace.
    Pid(u32), "{}"
}
number! {
    /// A thread id in vmscope's pid namespace. The kernel reuses ids: records refer to threads by
    /// [`ThreadKey`].
    Tid(u32), "{}"
}
number! {
    /// One address space of a recording. A fork creates another one, and so does an exec, although
    /// the pid stays.
    ProcessKey(u32), "{}"
}
number! {
    /// One thread, from start to end.
    ThreadKey(u32), "{}"
}
number! {
    /// One file (or vdso) with mapped code.
    ModuleKey(u32), "{}"
}
number! {
    /// One lifetime of a constituent, unique in the recording. Recompiled code and code at a reused
    /// address get another key; moved code keeps its key.
    ConstituentKey(u64), "{}"
}
number! {
    /// One method of a VM, unique in the recording.
    MethodKey(u64), "{}"
}
number! {
    /// One class of a VM, unique in the recording.
    ClassKey(u64), "{}"
}
number! {
    /// One allocation site of a VM, unique in the recording.
    SiteKey(u64), "{}"
}
number! {
    /// One collection of a collector, unique in the recording.
    CollectionKey(u64), "{}"
}
number! {
    /// One sampled object, unique in its process.
    ObjectKey(u64), "{}"
}

impl ThreadKey {
    const PLACEHOLDER: u32 = 1 << 31;

    /// Placeholder for the key of thread `tid`. Adapters know threads by tid; the recorder knows their
    /// keys. No recording contains placeholders.
    #[must_use]
    pub const fn of_tid(tid: Tid) -> Self {
        // The kernel's ids are below 2²².
        ThreadKey(tid.0 | Self::PLACEHOLDER)
    }

    /// Thread id of a placeholder; `None` for keys.
    #[must_use]
    pub const fn placeholder(self) -> Option<Tid> {
        match self.0 & Self::PLACEHOLDER {
            0 => None,
            _ => Some(Tid(self.0 & !Self::PLACEHOLDER)),
        }
    }
}

impl TimeNs {
    /// Duration from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: TimeNs) -> DurationNs {
        DurationNs(self.0.saturating_sub(earlier.0))
    }

    /// Adds `by`; saturates.
    #[must_use]
    pub const fn plus(self, by: DurationNs) -> TimeNs {
        TimeNs(self.0.saturating_add(by.0))
    }

    /// Subtracts `by`; saturates at zero.
    #[must_use]
    pub const fn minus(self, by: DurationNs) -> TimeNs {
        TimeNs(self.0.saturating_sub(by.0))
    }
}

impl DurationNs {
    /// Duration in seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        std::time::Duration::from_nanos(self.0).as_secs_f64()
    }
}

impl From<std::time::Duration> for DurationNs {
    /// Saturates after 584 years.
    fn from(duration: std::time::Duration) -> Self {
        DurationNs(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Avma {
    /// Adds `by` bytes; `None` past the end of the address space.
    #[must_use]
    pub const fn checked_add(self, by: u64) -> Option<Avma> {
        match self.0.checked_add(by) {
            Some(sum) => Some(Avma(sum)),
            None => None,
        }
    }

    /// Distance from `base` in bytes; `None` if `self` lies before it.
    #[must_use]
    pub const fn offset_from(self, base: Avma) -> Option<u64> {
        self.0.checked_sub(base.0)
    }
}

/// The GNU build-id of an ELF file (note `NT_GNU_BUILD_ID`), 1 to 64 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(Box<[u8]>);

impl BuildId {
    /// Maximum length of accepted build-ids.
    pub const MAX_BYTES: usize = 64;

    /// `bytes` as a build-id; `None` for zero or more than [`Self::MAX_BYTES`] bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (1..=Self::MAX_BYTES)
            .contains(&bytes.len())
            .then(|| Self(bytes.into()))
    }

    /// Bytes of the note's description.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for BuildId {
    /// Lower-case hexadecimal, as in `/usr/lib/debug/.build-id`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// Processor architecture of registers and code, as ELF's `e_machine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    /// x86-64 (`EM_X86_64`).
    X86_64,
    /// 64-bit ARM (`EM_AARCH64`).
    Aarch64,
    /// Another one, by its `e_machine`.
    Other(u16),
}

impl Arch {
    /// ELF value (`e_machine`).
    #[must_use]
    pub const fn elf_machine(self) -> u16 {
        match self {
            Arch::X86_64 => 62,
            Arch::Aarch64 => 183,
            Arch::Other(machine) => machine,
        }
    }

    /// Architecture with ELF value `machine`.
    #[must_use]
    pub const fn from_elf_machine(machine: u16) -> Self {
        match machine {
            62 => Arch::X86_64,
            183 => Arch::Aarch64,
            other => Arch::Other(other),
        }
    }

    /// Architecture of this program.
    #[must_use]
    pub const fn of_this_machine() -> Self {
        if cfg!(target_arch = "aarch64") {
            Arch::Aarch64
        } else {
            Arch::X86_64
        }
    }
}
