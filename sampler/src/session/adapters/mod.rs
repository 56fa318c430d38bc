//! The adapters' thread: recognises VMs in the recording's address spaces and polls their adapters.
//!
//! The process table ([`super::process_table`]) lags the target by some tenths of a second. A view
//! of a live process is therefore checked against the kernel's mappings; an exited process is read
//! through files opened at their mapping.

mod pace;
mod running_adapter;
mod watched_process;

pub(super) use pace::Pace;
pub(super) use running_adapter::{Emitter, RunningAdapter};
pub(super) use watched_process::WatchedProcess;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use vmscope_process::AdapterFamily;
use vmscope_records::{ProcessKey, TimeNs, VmIdentity};

use super::process_table::{AddressSpace, ProcessTable};

/// Longest wait between two reads of the process table.
const MAX_WAIT: Duration = Duration::from_millis(50);

/// Adapters running at a time.
const MAX_ADAPTERS: usize = 1024;

/// Time for recognition in ended processes after the recording's end.
const END_BUDGET: Duration = Duration::from_secs(10);

/// The recording's VM families; dropping them announces the recording's end.
#[derive(Default)]
pub(super) struct Families(pub Vec<Box<dyn AdapterFamily>>);

impl Drop for Families {
    fn drop(&mut self) {
        for family in &self.0 {
            family.recording_over();
        }
    }
}

/// The VM named in the recording.
pub(super) struct IdentifiedVm {
    space: ProcessKey,
    main: bool,
    identity: VmIdentity,
}

pub(super) struct AdapterThread {
    pub families: Families,
    pub process_table: ProcessTable,
    pub emitter: Emitter,
    /// Live address spaces.
    pub watched: BTreeMap<ProcessKey, WatchedProcess>,
    pub identified: Option<IdentifiedVm>,
    pub last_polls: Instant,
    /// Last emitted [`Emitter::emit_complete_until`].
    pub complete_until: TimeNs,
    /// [`Emitter::emit_code_known`] was called.
    pub knows_code: bool,
    /// Address spaces without a recognition.
    pub not_examined: u64,
}

impl AdapterThread {
    pub fn new(families: Families, process_table: ProcessTable, emitter: Emitter) -> Self {
        AdapterThread {
            families,
            process_table,
            emitter,
            watched: BTreeMap::new(),
            identified: None,
            last_polls: Instant::now(),
            complete_until: TimeNs(0),
            knows_code: false,
            not_examined: 0,
        }
    }

    /// Runs until the process table closes.
    pub fn run(mut self) {
        for watched in self.watched.values() {
            identify_vm(&mut self.identified, watched, &self.emitter);
            watched.emit_reads(&self.emitter);
        }
        loop {
            let (batch, goes_on) = self.process_table.take_changes();
            let began = Instant::now();
            for space in batch {
                let in_time = goes_on || began.elapsed() < END_BUDGET;
                self.take(space, in_time);
                if goes_on && self.last_polls.elapsed() > MAX_WAIT {
                    self.poll_due();
                }
            }
            if !goes_on {
                break;
            }
            self.poll_due();
            let next = self.watched.values().filter_map(WatchedProcess::due).min();
            let pause = next.map_or(MAX_WAIT, |due| {
                due.saturating_duration_since(Instant::now())
            });
            self.process_table.wait(pause.min(MAX_WAIT));
        }
        self.end();
    }

    /// Takes a changed address space; an ended one gets its last polls.
    fn take(&mut self, space: AddressSpace, in_time: bool) {
        let key = space.key;
        if !space.has_ended() {
            match self.watched.get_mut(&key) {
                Some(watched) => watched.update(space),
                None => {
                    self.watched.insert(key, WatchedProcess::new(space));
                }
            }
            return;
        }
        let mut watched = match self.watched.remove(&key) {
            Some(watched) => watched.with_space(space),
            None => WatchedProcess::new(space),
        };
        let families = if in_time { &self.families.0[..] } else { &[] };
        self.not_examined += u64::from(!in_time);
        watched.end(families, &mut self.emitter);
        identify_vm(&mut self.identified, &watched, &self.emitter);
        watched.finish(&mut self.emitter);
    }

    /// Recognises VMs and polls adapters as far as they are due.
    fn poll_due(&mut self) {
        let mut at_work: usize = self.watched.values().map(|one| one.adapters.len()).sum();
        for watched in self.watched.values_mut() {
            if watched.is_recognition_due() {
                let before = watched.adapters.len();
                if at_work < MAX_ADAPTERS {
                    watched.recognise(&self.families.0, &self.process_table, &mut self.emitter);
                } else {
                    watched.give_up();
                    self.not_examined += 1;
                }
                at_work += watched.adapters.len() - before;
                identify_vm(&mut self.identified, watched, &self.emitter);
            }
            watched.poll_due(&mut self.emitter);
            identify_vm(&mut self.identified, watched, &self.emitter);
        }
        self.last_polls = Instant::now();
        let within = self.watched.values().map(WatchedProcess::samples_within);
        self.emitter
            .ask_for_samples(within.min().unwrap_or(Duration::MAX));
        if !self.knows_code && self.watched.values().all(WatchedProcess::knows_code) {
            self.knows_code = true;
            self.emitter.emit_code_known();
        }
        self.emit_complete_until();
    }

    /// Emits the time before which all code is known. Address spaces without adapters count as
    /// complete, also those whose VM is yet unrecognised.
    fn emit_complete_until(&mut self) {
        let told = self
            .watched
            .values()
            .filter_map(WatchedProcess::complete_until)
            .min();
        let told = told.unwrap_or(TimeNs(u64::MAX));
        if told != self.complete_until {
            self.complete_until = told;
            self.emitter.emit_complete_until(told);
        }
    }

    /// The recording's end: last polls, and limits for all that was omitted.
    fn end(mut self) {
        let began = Instant::now();
        for watched in self.watched.values_mut() {
            if watched.is_recognition_pending() && began.elapsed() < END_BUDGET {
                watched.recognise(&self.families.0, &self.process_table, &mut self.emitter);
                identify_vm(&mut self.identified, watched, &self.emitter);
            }
            watched.finish(&mut self.emitter);
        }
        let missed = self.process_table.missed();
        let not_examined = missed.spaces + self.not_examined;
        if not_examined > 0 {
            let text = format!(
                "{not_examined} programs were not examined for a VM (too many processes): their \
                 JIT code has no names"
            );
            self.emitter.emit_limit(text, "");
        }
        let missed_touched = self.emitter.missed_touched();
        if missed_touched > 0 {
            let text = format!(
                "{missed_touched} sampled addresses in JIT code were not looked up (too many at \
                 once): some samples may lack a name, or bytecode and line"
            );
            self.emitter.emit_limit(text, "");
        }
        if missed.mappings > 0 {
            let text = format!(
                "{} memory mappings were not read (too many files in a process): JIT code in them \
                 may have no names",
                missed.mappings
            );
            self.emitter.emit_limit(text, "");
        }
    }
}

/// Names the recording's VM: the first adapter of a launched or attached process, else the first
/// adapter of any process.
fn identify_vm(identified: &mut Option<IdentifiedVm>, watched: &WatchedProcess, emitter: &Emitter) {
    let (space, main) = (watched.space.key, watched.space.main);
    let told = identified.as_ref();
    let is_same = told.is_some_and(|told| told.space == space);
    let is_better = told.is_none_or(|told| main && !told.main);
    let Some(first) = watched.adapters.first().filter(|_| is_same || is_better) else {
        return;
    };
    let identity = first.identity();
    // Adapters may learn the version in a poll only.
    if is_same && told.is_some_and(|told| told.identity == identity) {
        return;
    }
    emitter.emit_vm(identity.clone());
    *identified = Some(IdentifiedVm {
        space,
        main,
        identity,
    });
}
