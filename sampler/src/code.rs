//! Reads a VM's current code through adapters, without sampling, recording or stopping the VM.

mod table;

pub use table::CodeTable;

use crate::session::now;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vmscope_process::{
    Adapter, AdapterError, AdapterFamily, KeySource, MAX_TOUCHED_OF_A_POLL, Poll, ProcessView,
    ProgramStamp, Recognised, recognise,
};
use vmscope_records::{
    Avma, Constituent, ConstituentKey, ConstituentKind, PcMap, Pid, Record, TimeNs, VmIdentity,
};

/// Longest wait for the first complete reading.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// Longest wait for pc maps.
const MAPS_WITHIN: Duration = Duration::from_secs(120);

/// Longest wait for the next pc map. Adapters delay maps by up to a second.
const SETTLES: Duration = Duration::from_millis(1500);

/// Pause between two polls.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// Maximum age of mappings before vmscope rereads the mappings.
const MAPPINGS_LAST: Duration = Duration::from_secs(2);

/// Distance of touched addresses. Adapters may map large code around touched addresses only.
const STEP: u64 = 1024;

/// A VM's code.
#[derive(Debug)]
pub struct CodeNow {
    /// The VM.
    pub vm: VmIdentity,
    /// Its code.
    pub table: CodeTable,
}

/// Errors of [`read_code`]. Each message names problem, reason and remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// No adapter knows the process's VM.
    #[error(
        "no known VM runs in process {pid} ({name}), and it writes no jitdump or perf map: it has \
         no code that vmscope can list; `vmscope attach {pid}` profiles native programs"
    )]
    NoVm {
        /// Process id.
        pid: Pid,
        /// Its name.
        name: String,
    },
    /// No adapter knows a VM in a core file.
    #[error(
        "no known VM is in the core file of process {pid}; the VM's binary may be missing here: \
         `--root` gives the folder of its files, `--symbols` its symbols"
    )]
    NoVmInCore {
        /// Process id; 0 if unknown.
        pid: Pid,
    },
    /// The VM can't be read.
    #[error("cannot read the code of {vm} in process {pid}: {why}")]
    Unreadable {
        /// Process id.
        pid: Pid,
        /// The VM.
        vm: String,
        /// Reason and remedy.
        why: String,
    },
    /// The VM lists no code.
    #[error("{vm} in process {pid} lists no code{why}")]
    NoCode {
        /// Process id.
        pid: Pid,
        /// The VM.
        vm: String,
        /// Limits with their remedies; empty if none.
        why: String,
    },
    /// The process ended, or executed another program.
    #[error("process {pid} ended, or executed another program, while vmscope read its code")]
    Ended {
        /// Process id.
        pid: Pid,
    },
}

/// An adapter at work.
struct Running {
    family: &'static str,
    adapter: Box<dyn Adapter>,
    /// A poll has reported all code.
    is_whole: bool,
    /// No poll follows.
    is_over: bool,
    error: Option<AdapterError>,
}

struct Reading<'v> {
    view: &'v ProcessView,
    program: Option<ProgramStamp>,
    adapters: Vec<Running>,
    keys: KeySource,
    table: CodeTable,
    refreshed: Instant,
}

/// Reads a process's code through the adapters of `families`, in bounded time. `with_maps` also
/// requests pc maps of all methods, since some adapters make no maps otherwise. Ends early when
/// `is_stopped`.
///
/// # Errors
/// [`CodeError`].
pub fn read_code(
    view: &ProcessView,
    families: Vec<Box<dyn AdapterFamily>>,
    with_maps: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Result<CodeNow, CodeError> {
    let code = read(view, &families, with_maps, is_stopped);
    for family in &families {
        family.recording_over();
    }
    code
}

fn read(
    view: &ProcessView,
    families: &[Box<dyn AdapterFamily>],
    with_maps: bool,
    is_stopped: &dyn Fn() -> bool,
) -> Result<CodeNow, CodeError> {
    let began = Instant::now();
    let goes_on = |since: Instant, time| since.elapsed() < time && !is_stopped();
    let program = view.stamp();
    let mut recognised = recognise(families, view);
    while is_awaited(&recognised) && goes_on(began, READ_WITHIN) {
        std::thread::sleep(PAUSES.1);
        // Unreadable mappings stay as they were.
        let _ = view.refresh();
        recognised = recognise(families, view);
    }
    let mut reading = Reading::new(view, program, recognised)?;
    while !reading.poll(Vec::new())? && goes_on(began, READ_WITHIN) {
        reading.pause();
    }
    if !reading.is_whole() {
        let text = format!(
            "the VM's code was not read within {} s: some is missing",
            READ_WITHIN.as_secs()
        );
        reading.table.limit(text);
    }
    if with_maps {
        reading.read_maps(&goes_on)?;
    }
    reading.finish()
}

/// Whether no adapter works yet because a VM is still starting.
fn is_awaited(recognised: &Recognised) -> bool {
    let is_starting =
        |(_, error): &(_, AdapterError)| matches!(error, AdapterError::NotReady { .. });
    recognised.adapters.is_empty() && recognised.failures.iter().any(is_starting)
}

impl<'v> Reading<'v> {
    fn new(
        view: &'v ProcessView,
        program: Option<ProgramStamp>,
        recognised: Recognised,
    ) -> Result<Self, CodeError> {
        let pid = view.pid();
        if recognised.adapters.is_empty() {
            let mut failures = recognised.failures.into_iter();
            return Err(match failures.next() {
                Some((family, error)) => unreadable(pid, family.to_owned(), &error),
                None => no_vm(view),
            });
        }
        let running = |(family, adapter)| Running {
            family,
            adapter,
            is_whole: false,
            is_over: false,
            error: None,
        };
        Ok(Reading {
            view,
            program,
            adapters: recognised.adapters.into_iter().map(running).collect(),
            keys: KeySource::new(),
            table: CodeTable::default(),
            refreshed: Instant::now(),
        })
    }

    /// Polls adapters with the addresses `touched` (ascending), and stops after an adapter that
    /// reports all code. Returns [`Reading::is_whole`].
    fn poll(&mut self, touched: Vec<Avma>) -> Result<bool, CodeError> {
        self.each(touched, Running::poll)?;
        Ok(self.is_whole())
    }

    fn each(
        &mut self,
        touched: Vec<Avma>,
        poll_one: impl Fn(&mut Running, &ProcessView, &mut Poll),
    ) -> Result<(), CodeError> {
        let view = self.view;
        if view.stamp() != self.program {
            return Err(CodeError::Ended { pid: view.pid() });
        }
        if self.refreshed.elapsed() > MAPPINGS_LAST {
            let _ = view.refresh();
            self.refreshed = Instant::now();
        }
        for one in &mut self.adapters {
            let poll = Poll::new(self.keys.clone(), view.key(), Arc::new(now));
            let mut poll = poll.with_touched(touched.clone());
            poll_one(one, view, &mut poll);
            for record in poll.finish() {
                if !is_in_file(&record, view) {
                    self.table.take(record);
                }
            }
            if one.adapter.tells_all_code() {
                break;
            }
        }
        Ok(())
    }

    /// Whether the polled adapters have reported all code.
    fn is_whole(&self) -> bool {
        for one in &self.adapters {
            if !one.is_whole && !one.is_over {
                return false;
            }
            if one.adapter.tells_all_code() {
                break;
            }
        }
        true
    }

    fn pause(&self) {
        let pauses = self.adapters.iter().map(|one| one.adapter.next_poll());
        let pause = pauses.min().unwrap_or_default();
        std::thread::sleep(pause.clamp(PAUSES.0, PAUSES.1));
    }

    /// Touches all methods without a pc map, and waits for the maps. Methods discovered during the
    /// wait do not prolong the wait.
    fn read_maps(&mut self, goes_on: &dyn Fn(Instant, Duration) -> bool) -> Result<(), CodeError> {
        let began = Instant::now();
        let mut asked = FxHashSet::default();
        let until = self.table.last_key();
        let mut least = usize::MAX;
        let mut last_map = Instant::now();
        while goes_on(began, MAPS_WITHIN) {
            let touched = self.unasked(&mut asked);
            self.poll(touched)?;
            let lacking = lacking_maps(&self.table);
            let lacking = lacking.filter(|one| Some(one.key) <= until).count();
            if lacking < least {
                (least, last_map) = (lacking, Instant::now());
            }
            if lacking == 0 || last_map.elapsed() > SETTLES {
                return Ok(());
            }
            self.pause();
        }
        let text = "reading pc maps took too long: some code has none";
        self.table.limit(text.to_owned());
        Ok(())
    }

    /// Addresses in code without a pc map and not in `asked`, up to a poll's maximum. Adds the code
    /// to `asked`.
    fn unasked(&self, asked: &mut FxHashSet<ConstituentKey>) -> Vec<Avma> {
        let mut touched = Vec::new();
        for one in lacking_maps(&self.table) {
            if asked.contains(&one.key) {
                continue;
            }
            let bytes = one.end.0.saturating_sub(one.start.0);
            let addresses = usize::try_from(bytes.div_ceil(STEP)).unwrap_or(usize::MAX);
            let room = MAX_TOUCHED_OF_A_POLL - touched.len();
            if addresses > room && !touched.is_empty() {
                break;
            }
            asked.insert(one.key);
            let steps = (0..addresses.min(room) as u64).map(|step| step * STEP);
            touched.extend(steps.map(|offset| Avma(one.start.0.saturating_add(offset))));
        }
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// Polls each adapter a last time. An empty table is an error.
    fn finish(mut self) -> Result<CodeNow, CodeError> {
        self.each(Vec::new(), Running::finish)?;
        let pid = self.view.pid();
        let is_empty = self.table.is_empty();
        for one in &self.adapters {
            let Some(error) = &one.error else {
                continue;
            };
            if is_empty {
                return Err(unreadable(pid, in_words(&one.adapter.identity()), error));
            }
            let text = format!("{} adapter: {}", one.family, in_full(error));
            self.table.limit(text);
        }
        let Some(first) = self.adapters.first() else {
            return Err(no_vm(self.view));
        };
        let vm = first.adapter.identity();
        if is_empty {
            let limits = self.table.limits().into_iter();
            let why = limits.map(|limit| format!("; {limit}")).collect();
            let vm = in_words(&vm);
            return Err(CodeError::NoCode { pid, vm, why });
        }
        Ok(CodeNow {
            vm,
            table: self.table,
        })
    }
}

impl Running {
    fn poll(&mut self, view: &ProcessView, poll: &mut Poll) {
        if self.is_over {
            return;
        }
        self.error = self.adapter.poll(view, poll).err();
        self.is_over = self.error.as_ref().is_some_and(AdapterError::is_final);
        // A zero pause means: the adapter has more data.
        let has_more = self.adapter.next_poll() == Duration::ZERO;
        self.is_whole |= self.error.is_none() && poll.told_until() > TimeNs(0) && !has_more;
    }

    fn finish(&mut self, view: &ProcessView, poll: &mut Poll) {
        if !self.is_over {
            self.error = self.adapter.finish(view, poll).err();
        }
    }
}

/// Whether a record is about an interpreter in C: its code is a file's, and no part of a code zone.
fn is_in_file(record: &Record, view: &ProcessView) -> bool {
    let Record::Constituent(one) = record else {
        return false;
    };
    let mapping = || view.mapping_at(one.start);
    one.kind == ConstituentKind::Interpreter
        && mapping().is_some_and(|mapping| mapping.path().is_some())
}

/// Methods and blocks without a pc map.
fn lacking_maps(table: &CodeTable) -> impl Iterator<Item = &Constituent> {
    table.constituents().filter(|one| {
        matches!(one.kind, ConstituentKind::Method | ConstituentKind::Block)
            && one.map == PcMap::None
    })
}

fn no_vm(view: &ProcessView) -> CodeError {
    let pid = view.pid();
    if !view.is_live() {
        return CodeError::NoVmInCore { pid };
    }
    CodeError::NoVm {
        pid,
        name: view.name().to_owned(),
    }
}

fn unreadable(pid: Pid, vm: String, error: &AdapterError) -> CodeError {
    match error {
        AdapterError::Gone { .. } => CodeError::Ended { pid },
        error => CodeError::Unreadable {
            pid,
            vm,
            why: in_full(error),
        },
    }
}

/// Message, causes and remedy.
fn in_full(error: &AdapterError) -> String {
    match error.remedy() {
        "" => error.in_full(),
        remedy => format!("{}; {remedy}", error.in_full()),
    }
}

fn in_words(vm: &VmIdentity) -> String {
    format!("{} {}", vm.kind, vm.version).trim_end().to_owned()
}

#[cfg(test)]
mod tests;
