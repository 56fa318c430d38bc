//! The interface of VM families: how vmscope reads their VMs from outside.
//!
//! Life cycle of an adapter:
//!
//! ```text
//!   record -- CMD   family.launch_environment      before the target starts
//!                   family.launch_needs            before its VM is known
//!                   family.launched                pid known, target not yet running
//!   each program    family.recognise ─→ adapter    repeated while None and code is mapped:
//!                                                  a VM's library may load later
//!   once            adapter.identity, sample_needs
//!   ┌───────────→   adapter.poll                   emits changes into a Poll, which has
//!   │                                              the addresses hit by samples
//!   └─ next_poll    (a pause)
//!   at its end      adapter.finish                 after exit, exec or the end
//!                                                  of the recording
//!   at the end      family.recording_over
//! ```
//!
//! A program is one address space: the recorded process, each descendant, and each program that these
//! execute. A program that exited before recognition has the view [`ProcessView::exited`];
//! its adapter gets one poll and its `finish`.
//!
//! An adapter runs on its own thread beside the sampler. It never stops its target, never writes to
//! it, and checks every value: counts have caps, lists a maximum length, and bulk reads go through
//! [`crate::read_consistently`]. Unreadable data is reported ([`AdapterError`], [`Poll::limit`],
//! [`Poll::lost`]), never guessed.

use std::path::PathBuf;
use std::time::Duration;

use vmscope_records::{InterpreterSource, Pid, VmIdentity};

use crate::{AdapterError, Poll, ProcessView, Unwinder};

/// A family of VMs (HotSpot, Cog, writers of jitdump files). Stateless: an [`Adapter`] holds the
/// state of one process.
pub trait AdapterFamily: Send + Sync {
    /// Name for messages and `--adapter`.
    fn name(&self) -> &'static str;

    /// Makes an adapter if `process` runs a VM of this family; `None` if not, or not yet.
    ///
    /// Must be cheap for other processes: vmscope asks about every program of the recording, each
    /// compiler process of a build included. Check names of modules and symbols before reading
    /// memory. The process may have exited ([`ProcessView::exited`]). vmscope does not ask a family
    /// again after it returned an adapter.
    ///
    /// # Errors
    /// [`AdapterError`] if a VM of this family can't be read; [`AdapterError::NotReady`] requests
    /// another attempt soon.
    fn recognise(&self, process: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError>;

    /// Environment changes for a command that `record` is about to start, which make its VM report
    /// more about itself. Default: none; a profile should not need them.
    fn launch_environment(&self, launch: &Launch) -> Vec<EnvironmentChange> {
        let _ = launch;
        Vec::new()
    }

    /// Why this family, which reads its VMs from memory, can't read the VM of a command that `record`
    /// is about to start: a clause for a sentence. Default: `None`, also for commands without such a VM.
    fn launch_obstacle(&self, launch: &Launch) -> Option<String> {
        let _ = launch;
        None
    }

    /// Sample contents to request when `record` starts a command that may run a VM of this family.
    /// Each addition makes every sample of every program larger. The recording keeps them for
    /// samples inside interpreters only. Default: nothing.
    fn launch_needs(&self, launch: &Launch) -> SampleNeeds {
        let _ = launch;
        SampleNeeds::default()
    }

    /// Called when the command of [`AdapterFamily::launch_environment`] has become process `pid`,
    /// before its first instruction. Default: nothing.
    fn launched(&self, pid: Pid) {
        let _ = pid;
    }

    /// Called once, after the last adapter's `finish`, at any end of the recording except SIGKILL,
    /// even if it never began; the target may still run. Default: nothing.
    fn recording_over(&self) {}
}

/// A command about to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Program and arguments; invalid UTF-8 is replaced.
    pub command: Vec<String>,
    /// Working directory of the command; empty if unknown.
    pub folder: PathBuf,
    /// Whether files can be created in `folder`.
    pub folder_is_writable: bool,
    /// `--precise`: request exact positions, and names of interpreted functions, from the VM even if that
    /// slows it down. Otherwise a family requests only data that names of JIT code need.
    pub precise: bool,
    /// The program that the kernel executes: the command's, or the interpreter of its script. Empty if
    /// unknown.
    pub program: PathBuf,
    /// Why VMs shall write files about their code even if vmscope can read them from memory; `None`
    /// if they shall not.
    pub files: Option<FilesReason>,
}

/// Reason for files of VMs that vmscope reads from memory otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesReason {
    /// The user requested them.
    Asked,
    /// The command's VM can't be read ([`AdapterFamily::launch_obstacle`]).
    Obstacle(String),
}

/// A change of a command's environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvironmentChange {
    /// Sets the variable unless already set.
    SetDefault {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// Appends to the variable unless already contained in it.
    Append {
        /// Its name.
        name: String,
        /// Separator between the old value and the addition.
        separator: String,
        /// Text to append.
        value: String,
    },
}

/// Reads one VM in one process.
pub trait Adapter: Send {
    /// The VM's description of itself.
    fn identity(&self) -> VmIdentity;

    /// Sample contents needed to resolve this adapter's code. Asked once. An attach configures
    /// sampling from them; launched commands and their children are sampled as
    /// [`AdapterFamily::launch_needs`] requested before recognition. In both cases `sources`
    /// announces an interpreter. Default: nothing.
    fn sample_needs(&self) -> SampleNeeds {
        SampleNeeds::default()
    }

    /// Reads what [`Adapter::unwinder`] needs. The recorder calls it once: for attached processes before
    /// sampling begins, so that their first samples have callers; else before the first poll. After a
    /// failure, polls repeat it and return the error. Default: nothing.
    fn open(&mut self, process: &ProcessView, poll: &mut Poll) {
        let _ = (process, poll);
    }

    /// Emits all changes since the last poll into `poll`; at the first poll, everything.
    ///
    /// If reading all pc maps would take long, maps of sampled code suffice ([`Poll::touched`]): a
    /// constituent emitted again with its key and a map gets the map retroactively. After an error
    /// the recorder keeps all records in `poll` (they must be valid without further ones), and the
    /// next poll continues.
    ///
    /// # Errors
    /// [`AdapterError`]; no poll follows if [`AdapterError::is_final`].
    fn poll(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError>;

    /// Whether the adapter emits all generated code of its process. If so, adapters of later
    /// families, which read files about the same code, are not polled. Asked before each of their
    /// polls; default: `false`.
    fn tells_all_code(&self) -> bool {
        false
    }

    /// Unwind rules of the VM's code. The recorder asks before and after each poll until the adapter
    /// answers. Default: none; chains of callers end at the VM's code.
    fn unwinder(&mut self, process: &ProcessView) -> Option<Box<dyn Unwinder>> {
        let _ = process;
        None
    }

    /// Pause until the next poll: short while code changes, long while it is stable (see
    /// [`crate::Cadence`]).
    fn next_poll(&self) -> Duration;

    /// Maximum age of samples in [`Poll::touched`] that the adapter asks for: short while the VM frees code,
    /// since freed code has no name. The recorder may deliver them later. Asked after each poll; default:
    /// any age.
    fn samples_within(&self) -> Duration {
        Duration::MAX
    }

    /// The last poll, soon after the process exited or executed another program, or at the end of
    /// the recording. An exited process ([`ProcessView::is_alive`] is false) has no memory; only
    /// data available elsewhere, such as files left behind, can be emitted. Default: an ordinary
    /// poll.
    ///
    /// # Errors
    /// [`AdapterError`].
    fn finish(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        self.poll(process, poll)
    }
}

/// Sample contents beside time, thread and pc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleNeeds {
    /// User registers, one bit each in the kernel's numbering
    /// (`arch/*/include/uapi/asm/perf_regs.h`).
    pub registers: u64,
    /// Bytes of stack per sample, from the stack pointer upwards.
    pub stack_bytes: u32,
    /// Locations of registers and stack slots that show an interpreter's position. Only these
    /// locations are recorded, for samples inside interpreters only. Until
    /// [`crate::Poll::interpreter`] emits the interpreter's ranges, any sample in memory without a
    /// file counts as inside.
    pub sources: Vec<InterpreterSource>,
}

impl SampleNeeds {
    /// Union of both needs.
    #[must_use]
    pub fn with(mut self, other: &SampleNeeds) -> SampleNeeds {
        self.registers |= other.registers;
        self.stack_bytes = self.stack_bytes.max(other.stack_bytes);
        for source in &other.sources {
            if !self.sources.contains(source) {
                self.sources.push(*source);
            }
        }
        self
    }
}

/// Answers of all families about a process.
#[derive(Default)]
pub struct Recognised {
    /// Adapters with the names of their families. Several are normal: a VM read from outside may
    /// also write a perf map.
    pub adapters: Vec<(&'static str, Box<dyn Adapter>)>,
    /// Families that recognised a VM but can't read it, with the reason.
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
