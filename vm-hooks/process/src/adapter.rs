//! What a VM family implements so that vmscope can read its VMs from outside.
//!
//! The life of an adapter, and who calls what:
//!
//! ```text
//!   record -- CMD   family.launch_environment      before the target starts
//!                   family.launch_needs            before anybody knows which VM it runs
//!                   family.launched                it has a pid, and has yet to start
//!   each program    family.recognise ─→ adapter    again while it says None and code is mapped:
//!                                                  a VM's library may not be there yet
//!   once            adapter.identity, sample_needs
//!   ┌───────────→   adapter.look                   what is new, into a Poll, which knows
//!   │                                              the addresses that samples touched
//!   └─ next_poll    (a pause)
//!   at its end      adapter.finish                 the process is over, or runs another program,
//!                                                  or the recording is over
//!   at the end      family.recording_over
//! ```
//!
//! A program is an address space: the process that is recorded, each of its children
//! and grandchildren, and what each of them becomes by an exec. Of one that was over
//! before anybody could ask, the view is [`ProcessView::exited`]: the adapter that
//! is made for it has one poll and its `finish`.
//!
//! An adapter runs on a thread of its own beside the sampling; it never stops its
//! target, never writes to it, and believes nothing that it reads: every count has a
//! cap, every list a longest length, every bulk read is checked with
//! [`crate::read_consistently`]. What it can't read it says ([`AdapterError`],
//! [`Poll::limit`], [`Poll::lost`]) instead of guessing.

use std::path::PathBuf;
use std::time::Duration;

use vmscope_records::{Avma, InterpreterSource, Pid, VmIdentity};

use crate::{AdapterError, Poll, ProcessView};

/// A family of VMs (HotSpot, Cog, whatever writes jitdump files). Stateless: what it
/// knows about one process is in the [`Adapter`] it makes.
pub trait AdapterFamily: Send + Sync {
    /// Its name, for messages and `--adapter`.
    fn name(&self) -> &'static str;

    /// Makes an adapter if `process` runs a VM of this family, `None` if not (or not
    /// yet). Must be cheap where it is none, since every program of the recording is
    /// asked about, each compiler of a build among them: look at the names of modules
    /// and symbols before reading memory. The process may be over
    /// ([`ProcessView::exited`]). Whom it has recognised it is not asked about again.
    ///
    /// # Errors
    ///
    /// [`AdapterError`] when it is such a VM and yet can't be read:
    /// [`AdapterError::NotReady`] to be asked again soon.
    fn recognise(&self, process: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError>;

    /// What `record` should change in the environment of the command that it is about
    /// to start, so that its VM tells more about itself. None by default: a profile
    /// should not need it.
    fn launch_environment(&self, launch: &Launch) -> Vec<EnvironmentChange> {
        let _ = launch;
        Vec::new()
    }

    /// What samples should carry when `record` starts a command that may turn out to
    /// run a VM of this family: whoever asks for more makes each sample of each program
    /// dearer. What is not in an interpreter is not kept. Nothing by default.
    fn launch_needs(&self, launch: &Launch) -> SampleNeeds {
        let _ = launch;
        SampleNeeds::default()
    }

    /// The command for which [`AdapterFamily::launch_environment`] was asked has become
    /// process `pid`, which does not run yet. Nothing by default.
    fn launched(&self, pid: Pid) {
        let _ = pid;
    }

    /// There is nothing more to come: the recording is over, or never began. Called
    /// once, after the last adapter's `finish`, however the recording ended (but by
    /// SIGKILL); the target may still run. Nothing by default.
    fn recording_over(&self) {}
}

/// A command that is about to be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The program and its arguments; what is not UTF-8 in them is replaced.
    pub command: Vec<String>,
    /// The working folder that it starts in; empty where it is not known.
    pub folder: PathBuf,
    /// Whether files can be made in `folder`.
    pub folder_is_writable: bool,
    /// Whether the VM is to be asked for exact positions where that costs it something
    /// (`--precise`): without it a family only asks for what its VMs' code needs to have
    /// names.
    pub precise: bool,
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
    /// This is added at the end of what the variable holds, unless it is there already.
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
    /// Asked once. Of what is attached to it decides what is sampled; a command that is
    /// started, and what it starts, is recognised only when it runs and is sampled
    /// already, as [`AdapterFamily::launch_needs`] said. In both cases its sources say
    /// that there is an interpreter. Nothing by default.
    fn sample_needs(&self) -> SampleNeeds {
        SampleNeeds::default()
    }

    /// Tells `poll` what is new since the last poll; at the first one, everything.
    ///
    /// When reading all pc maps would take long, those of code that was hit are enough
    /// ([`Poll::touched`]): a constituent that is told again with the same key and its
    /// map has it from the beginning. When this fails in the middle, what `poll` holds by
    /// then is kept, and the next poll goes on from there: it must be true on its own.
    ///
    /// # Errors
    ///
    /// [`AdapterError`]; after one that [`AdapterError::is_final`], there is no
    /// further poll.
    fn poll(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError>;

    /// Whether it tells all generated code of its process by itself: then adapters of
    /// later families, which read what the VM or its agents wrote of the same code into
    /// files, are not asked. Asked before each poll of theirs; `false` by default.
    fn tells_all_code(&self) -> bool {
        false
    }

    /// How long to wait until the next poll: short while code comes and goes, long
    /// while it is quiet ([`crate::Cadence`] does that).
    fn next_poll(&self) -> Duration;

    /// The last poll, soon after the process ended or began another program, or at the
    /// recording's end. The process may be gone (`process` is not
    /// [`ProcessView::is_alive`] then, and has no memory): then only what can be told
    /// without it (files that it has left) is. By default a poll like any other.
    ///
    /// # Errors
    ///
    /// [`AdapterError`].
    fn finish(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        self.poll(process, poll)
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
    /// Where registers and stack show what an interpreter executes: they are recorded of
    /// samples in interpreters alone, and of those only what these places name. Until
    /// [`crate::Poll::interpreter`] has told where that is, all samples in memory of no
    /// file may be in one.
    pub sources: Vec<InterpreterSource>,
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
        for source in &other.sources {
            if !self.sources.contains(source) {
                self.sources.push(*source);
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
