//! What a VM family implements so that vmscope can read its VMs from outside.
//!
//! The life of an adapter, and who calls what:
//!
//! ```text
//!   record -- CMD   family.launch_environment      before the target starts
//!   attach, exec    family.recognise ─→ adapter    again a little later while it says None:
//!                                                  a VM's library may not be mapped yet
//!   once            adapter.identity, sample_needs
//!   ┌───────────→   adapter.look                   what is new, into a Look
//!   │               adapter.pc_map                 for constituents that samples hit
//!   └─ next_look    (a pause)
//!   at the end      adapter.finish                 also when the target is gone already
//! ```
//!
//! An adapter runs on a thread of its own beside the sampling; it never stops its
//! target, never writes to it, and believes nothing that it reads: every count has a
//! cap, every list a longest length, every bulk read is checked with
//! [`crate::read_consistently`]. What it can't read it says ([`AdapterError`],
//! [`Look::limit`], [`Look::lost`]) instead of guessing.

use std::time::Duration;

use vmscope_records::{Avma, ConstituentKey, PcMap, Pid, VmIdentity};

use crate::{Look, MemoryError, ProcessView, SymbolError};

/// A family of VMs (HotSpot, Cog, whatever writes jitdump files). Stateless: what it
/// knows about one process is in the [`Adapter`] it makes.
pub trait AdapterFamily: Send + Sync {
    /// Its name, for messages and `--adapter`.
    fn name(&self) -> &'static str;

    /// Makes an adapter if `process` runs a VM of this family, `None` if not (or not
    /// yet). Must be cheap where it is none: look at the names of modules and symbols
    /// before reading memory.
    ///
    /// # Errors
    ///
    /// [`AdapterError`] when it is such a VM and yet can't be read:
    /// [`AdapterError::NotReady`] to be asked again soon.
    fn recognise(&self, process: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError>;

    /// What `record` should change in the environment of the command that it is about
    /// to start, so that its VM tells more about itself. None by default: a profile
    /// should not need it.
    fn launch_environment(&self, command: &[String]) -> Vec<EnvironmentChange> {
        let _ = command;
        Vec::new()
    }
}

/// One change to the environment of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvironmentChange {
    /// The variable gets this value if it is not set already.
    SetDefault {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// This is added at the end of what the variable holds.
    Append {
        /// Its name.
        name: String,
        /// What comes between an old value and the new one.
        separator: String,
        /// What is added.
        value: String,
    },
}

/// What reads one VM in one process.
pub trait Adapter: Send {
    /// What VM this is, as it says itself.
    fn identity(&self) -> VmIdentity;

    /// What each sample should carry so that this adapter's code can be resolved.
    /// Asked once, before sampling begins. Nothing by default.
    fn sample_needs(&self) -> SampleNeeds {
        SampleNeeds::default()
    }

    /// Tells `look` what is new since the last look; at the first one, everything.
    ///
    /// It may leave the pc maps of constituents to [`Adapter::pc_map`], when reading
    /// them all would take long. When it fails in the middle, what `look` holds by
    /// then is kept, and the next look goes on from there: it must be true on its own.
    ///
    /// # Errors
    ///
    /// [`AdapterError`]; after one that [`AdapterError::is_final`], there is no
    /// further look.
    fn look(&mut self, process: &ProcessView, look: &mut Look) -> Result<(), AdapterError>;

    /// The pc map of a constituent for which [`Adapter::look`] gave none. Methods that
    /// it refers to and that were not told yet are told to `look`. By default there
    /// are no such maps.
    ///
    /// # Errors
    ///
    /// [`AdapterError::Absent`] when the constituent is gone by now.
    fn pc_map(
        &mut self,
        process: &ProcessView,
        constituent: ConstituentKey,
        look: &mut Look,
    ) -> Result<PcMap, AdapterError> {
        let _ = (process, constituent, look);
        Ok(PcMap::None)
    }

    /// How long to wait until the next look: short while code comes and goes, long
    /// while it is quiet ([`crate::Cadence`] does that).
    fn next_look(&self) -> Duration;

    /// The last look. The process may be gone: then only what can be told without it
    /// (files that it has left) is. By default a look like any other.
    ///
    /// # Errors
    ///
    /// [`AdapterError`].
    fn finish(&mut self, process: &ProcessView, look: &mut Look) -> Result<(), AdapterError> {
        self.look(process, look)
    }
}

/// What samples must carry beside time, thread and pc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleNeeds {
    /// Which user registers, a bit for each in the kernel's numbering
    /// (`arch/*/include/uapi/asm/perf_regs.h`).
    pub registers: u64,
    /// How many bytes of the stack, from the stack pointer up; each sample grows by
    /// that.
    pub stack_bytes: u32,
    /// Addresses of 64-bit words to be read while the thread stands still, by engines
    /// that stop it.
    pub words: Vec<Avma>,
}

impl SampleNeeds {
    /// What serves both.
    #[must_use]
    pub fn with(mut self, other: &SampleNeeds) -> SampleNeeds {
        self.registers |= other.registers;
        self.stack_bytes = self.stack_bytes.max(other.stack_bytes);
        for word in &other.words {
            if !self.words.contains(word) {
                self.words.push(*word);
            }
        }
        self
    }
}

/// What asking all families about a process came to.
#[derive(Default)]
pub struct Recognised {
    /// The adapters, each with its family's name. More than one is normal: a VM that
    /// is read from outside may also write a perf map.
    pub adapters: Vec<(&'static str, Box<dyn Adapter>)>,
    /// The families that know the VM and can't read it, with the reason.
    pub failures: Vec<(&'static str, AdapterError)>,
}

impl std::fmt::Debug for Recognised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.adapters.iter().map(|(name, _)| name).collect();
        f.debug_struct("Recognised")
            .field("adapters", &names)
            .field("failures", &self.failures)
            .finish()
    }
}

/// Asks each of `families` about `process`.
#[must_use]
pub fn recognise(families: &[Box<dyn AdapterFamily>], process: &ProcessView) -> Recognised {
    let mut all = Recognised::default();
    for family in families {
        match family.recognise(process) {
            Ok(Some(adapter)) => all.adapters.push((family.name(), adapter)),
            Ok(None) => {}
            Err(error) => all.failures.push((family.name(), error)),
        }
    }
    all
}

/// Why an adapter could not read its VM.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdapterError {
    /// The target is gone.
    #[error("process {pid} is gone")]
    Gone {
        /// Which it was.
        pid: Pid,
    },
    /// Memory could not be read.
    #[error("the VM's {what} can't be read")]
    Memory {
        /// What was read.
        what: &'static str,
        /// Why.
        #[source]
        source: MemoryError,
    },
    /// The symbols of one of its modules could not be looked up.
    #[error("the VM's symbols can't be looked up")]
    Symbols(#[from] SymbolError),
    /// A symbol that this adapter can't do without is not there (stripped, or
    /// another version).
    #[error("the VM has no symbol {name}")]
    MissingSymbol {
        /// Its name.
        name: String,
    },
    /// The VM's description of itself lacks something.
    #[error("the VM does not describe {name}")]
    MissingField {
        /// What is missing, as the VM would call it (`nmethod._state`).
        name: String,
    },
    /// A version that this adapter does not know how to read.
    #[error("{vm} {version} is not supported ({supported} is)")]
    UnsupportedVersion {
        /// The VM.
        vm: &'static str,
        /// The version it says it is.
        version: String,
        /// What is supported, in words.
        supported: &'static str,
    },
    /// The VM has not got that far in its start.
    #[error("the VM's {what} is not set up yet")]
    NotReady {
        /// What is not.
        what: &'static str,
    },
    /// The VM is in the middle of changing it: [`crate::read_consistently`] tries
    /// again.
    #[error("the VM is changing its {what}")]
    Busy {
        /// What it changes.
        what: &'static str,
    },
    /// It kept changing while it was read.
    #[error("the VM's {what} changed during each of {attempts} attempts to read it")]
    Torn {
        /// What was read.
        what: &'static str,
        /// How often.
        attempts: u32,
    },
    /// What was read can't be.
    #[error("the VM's {what} can't be {value:#x} (at {at})")]
    Implausible {
        /// What was read.
        what: &'static str,
        /// Its value.
        value: u64,
        /// Where it was read.
        at: Avma,
    },
    /// There is more of it than is believed; also: a list that runs in a circle.
    #[error("more than {cap} of the VM's {what}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many are believed.
        cap: u64,
    },
    /// It is not there, or not any more.
    #[error("constituent {key} is not there (any more)")]
    Absent {
        /// Which.
        key: ConstituentKey,
    },
    /// A file that the VM writes could not be read.
    #[error("{path} can't be read")]
    File {
        /// Its path.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl AdapterError {
    /// For `map_err` around the reading of `what`.
    pub fn reading(what: &'static str) -> impl Fn(MemoryError) -> AdapterError {
        move |source| match source {
            MemoryError::Gone { pid } => AdapterError::Gone { pid },
            source => AdapterError::Memory { what, source },
        }
    }

    /// Whether a further look can't go better: the process is gone, its memory may
    /// not be read, or this is not a VM that the adapter can read.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            AdapterError::Gone { .. }
            | AdapterError::MissingSymbol { .. }
            | AdapterError::MissingField { .. }
            | AdapterError::UnsupportedVersion { .. } => true,
            AdapterError::Memory { source, .. } => source.is_final(),
            _ => false,
        }
    }

    /// The one thing to do about it, for people; empty where nothing helps.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            AdapterError::Memory { source, .. } => source.remedy(),
            AdapterError::MissingSymbol { .. } => "use a build of the VM that is not stripped",
            _ => "",
        }
    }
}
