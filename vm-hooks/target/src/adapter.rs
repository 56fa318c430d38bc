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

use vmscope_records::{Avma, ConstituentKey, PcMap, VmIdentity};

use crate::{AdapterError, Look, ProcessView};

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
