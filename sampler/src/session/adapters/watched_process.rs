//! One address space of the recording: VM recognition, its view, its adapters.

use std::time::{Duration, Instant};

use vmscope_process::{AdapterError, AdapterFamily, MapEntry, ProcessView, ProgramStamp};
use vmscope_records::TimeNs;

use super::running_adapter::{Emitter, RunningAdapter};
use crate::session::process_table::{AddressSpace, ProcessTable};

/// Pause before a repeated recognition: library unmapped yet, or VM not ready.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// The same in the first second: VMs start.
const RETRY_SOON: Duration = Duration::from_millis(50);

/// Recognition is repeated for this long.
const RETRY_FOR: Duration = Duration::from_secs(20);

/// Delay before recognition in a fork: most forks exec at once.
const FORK_SETTLES: Duration = Duration::from_millis(300);

/// Shortest pause before new mappings cause a recognition; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(40);

const LAST_PAUSE: Duration = Duration::from_secs(5);

/// Lifetime of a read mapping list, without reported mappings and with the same program.
const MAPPINGS_LAST: Duration = Duration::from_secs(2);

/// The kernel reports process starts in clock ticks of 10 ms.
const START_TOLERANCE_NS: u64 = 50_000_000;

/// An address space and its adapters.
pub(in crate::session) struct WatchedProcess {
    pub space: AddressSpace,
    view: Option<ProcessView>,
    /// Time and program of the last mapping list.
    seen: Option<(Instant, ProgramStamp)>,
    pub adapters: Vec<RunningAdapter>,
    /// Indexes of the recognised families.
    recognised: Vec<usize>,
    recognise_at: Option<Instant>,
    last_recognition: Option<Instant>,
    /// Version of `space` at the last conclusive recognition.
    recognised_version: Option<u64>,
    pause: Duration,
    since: Instant,
}

impl WatchedProcess {
    pub fn new(space: AddressSpace) -> Self {
        let mut watched = WatchedProcess {
            space,
            view: None,
            seen: None,
            adapters: Vec::new(),
            recognised: Vec::new(),
            recognise_at: None,
            last_recognition: None,
            recognised_version: None,
            pause: FIRST_PAUSE,
            since: Instant::now(),
        };
        watched.schedule();
        watched
    }

    /// Adds the view and the adapters, with family indexes, from before the recording.
    pub fn with_view(mut self, view: ProcessView, adapters: Vec<(usize, RunningAdapter)>) -> Self {
        self.view = Some(view.with_key(self.space.key));
        for (family, adapter) in adapters {
            self.recognised.push(family);
            self.adapters.push(adapter);
        }
        self.schedule();
        self
    }

    pub fn update(&mut self, space: AddressSpace) {
        self.seen = None;
        self.space = space;
        if let Some(view) = &self.view {
            self.space.code.keep_in(view);
        }
        self.schedule();
    }

    pub fn with_space(mut self, space: AddressSpace) -> Self {
        self.space = space;
        self
    }

    /// Next recognition or poll.
    pub fn due(&self) -> Option<Instant> {
        let adapters = self.adapters.iter().filter_map(RunningAdapter::due);
        adapters.chain(self.recognise_at).min()
    }

    pub fn is_recognition_due(&self) -> bool {
        self.recognise_at.is_some_and(|at| at <= Instant::now())
    }

    pub fn is_recognition_pending(&self) -> bool {
        self.recognise_at.is_some()
    }

    /// Asks the remaining families, through a refreshed view.
    pub fn recognise(
        &mut self,
        families: &[Box<dyn AdapterFamily>],
        process_table: &ProcessTable,
        emitter: &mut Emitter,
    ) {
        self.recognise_at = None;
        self.last_recognition = Some(Instant::now());
        self.pause = (self.pause * 2).min(LAST_PAUSE);
        // For an exited process, the table reports the end later.
        let Some(space) = process_table.claim(self.space.key) else {
            return;
        };
        self.space = space;
        if !self.refresh_view() {
            if self.space.main {
                self.retry_later();
            }
            return;
        }
        if self.recognise_in_view(families, emitter) {
            self.recognised_version = Some(self.space.version);
        } else {
            self.retry_later();
        }
        if self.adapters.is_empty() && self.space.main {
            self.retry_later();
        }
    }

    /// Polls the adapters that are due.
    pub fn poll_due(&mut self, emitter: &mut Emitter) {
        let now = Instant::now();
        let is_due = |adapter: &RunningAdapter| adapter.due().is_some_and(|due| due <= now);
        if !self.adapters.iter().any(is_due) {
            return;
        }
        let can_poll = self.refresh_view();
        self.touch(emitter);
        let mut is_told = false;
        for adapter in &mut self.adapters {
            if is_due(adapter) {
                match self.view.as_ref().filter(|_| can_poll && !is_told) {
                    Some(view) => adapter.poll(view, emitter),
                    // The view is stale until the table reports the exit or exec, or an earlier
                    // adapter emits all code.
                    None => adapter.postpone(RETRY_AFTER),
                }
            }
            is_told |= adapter.tells_all_code();
        }
    }

    /// Exit or exec: asks families whose last answer predates the final state.
    /// [`WatchedProcess::finish`] follows.
    pub fn end(&mut self, families: &[Box<dyn AdapterFamily>], emitter: &mut Emitter) {
        let told = || self.space.code.iter().map(|mapped| mapped.entry.clone());
        let (pid, key) = (self.space.pid, self.space.key);
        let view = match self.view.take() {
            Some(view) => view.into_departed(told()),
            None => {
                // The kernel maps a program before its loader and libraries.
                let files = told().filter(|entry| entry.path().is_some());
                let program = files.map(|file| file.display_name()).next();
                ProcessView::exited(pid, told().collect())
                    .with_key(key)
                    .begun(self.space.began)
                    .called(&self.space.name, &program.unwrap_or_default())
            }
        };
        self.space.code.keep_in(&view);
        self.view = Some(view);
        self.recognise_at = None;
        if self.recognised_version != Some(self.space.version) && self.space.may_run_code() {
            self.recognise_in_view(families, emitter);
        }
    }

    /// Skips recognition: too many adapters run.
    pub fn give_up(&mut self) {
        self.recognise_at = None;
        self.recognised_version = Some(self.space.version);
    }

    /// Last poll of every adapter, at the end of process or recording.
    pub fn finish(&mut self, emitter: &mut Emitter) {
        // Adapters also finish without a live process.
        let _ = self.refresh_view();
        self.touch(emitter);
        if let Some(view) = &self.view {
            for adapter in self.adapters.drain(..) {
                let is_told = adapter.tells_all_code();
                adapter.finish(view, emitter);
                if is_told {
                    break;
                }
            }
        }
    }

    /// The adapters that are polled: none behind the first that emits all code.
    fn polled(&self) -> impl Iterator<Item = &RunningAdapter> {
        let mut is_told = false;
        self.adapters.iter().take_while(move |adapter| {
            let goes_on = !is_told;
            is_told |= adapter.tells_all_code();
            goes_on
        })
    }

    /// Code before this time is complete; `None` without adapters.
    pub fn complete_until(&self) -> Option<TimeNs> {
        self.polled().map(RunningAdapter::complete_until).min()
    }

    /// See [`vmscope_process::Adapter::samples_within`].
    pub fn samples_within(&self) -> Duration {
        let all = self.polled().map(RunningAdapter::samples_within);
        all.min().unwrap_or(Duration::MAX)
    }

    /// Whether all polled adapters have emitted all code once.
    pub fn knows_code(&self) -> bool {
        self.polled().all(RunningAdapter::knows_code)
    }

    pub fn emit_reads(&self, emitter: &Emitter) {
        if !self.adapters.is_empty() {
            let sources = self
                .adapters
                .iter()
                .flat_map(RunningAdapter::sources)
                .collect();
            emitter.emit_reads(self.space.key, sources);
        }
    }

    fn touch(&mut self, emitter: &Emitter) {
        let until = emitter.touched_until();
        let touched = emitter.take_touched(self.space.key);
        for adapter in &mut self.adapters {
            adapter.touch(&touched, until, emitter);
        }
    }

    /// Refreshes the view; `false` if it shows another program.
    fn refresh_view(&mut self) -> bool {
        let code = &self.space.code;
        let is_it = |maps: &[MapEntry]| code.is_seen_in(maps);
        if let Some(view) = &self.view {
            let Some(stamp) = view.stamp() else {
                // A core file does not change.
                return !view.is_live() && view.is_alive();
            };
            // Reading the mappings is slow, and blocks the target's mmap.
            let is_known = |(at, known): (Instant, ProgramStamp)| {
                known == stamp && at.elapsed() < MAPPINGS_LAST
            };
            if self.seen.is_some_and(is_known) {
                return true;
            }
            let is_it = view.refresh_if(is_it).is_ok_and(|is_it| is_it);
            self.seen = is_it.then(|| (Instant::now(), stamp));
            return is_it;
        }
        let Ok(view) = ProcessView::open(self.space.pid) else {
            return false;
        };
        if !is_it(&view.mappings()) || !may_have_begun(&view, self.space.began) {
            return false;
        }
        let view = view.with_key(self.space.key);
        code.keep_in(&view);
        self.view = Some(view);
        true
    }

    /// Asks the remaining families; whether all answers were conclusive.
    fn recognise_in_view(
        &mut self,
        families: &[Box<dyn AdapterFamily>],
        emitter: &mut Emitter,
    ) -> bool {
        let Some(view) = &self.view else {
            return false;
        };
        let mut all_answered = true;
        let before = self.adapters.len();
        for (index, family) in families.iter().enumerate() {
            if self.recognised.contains(&index) {
                continue;
            }
            match family.recognise(view) {
                Ok(Some(adapter)) => {
                    // Adapters keep the order of their families.
                    let at = self.recognised.partition_point(|known| *known < index);
                    let at = at.min(self.adapters.len());
                    self.recognised.insert(at, index);
                    let adapter = RunningAdapter::new((index, family.name()), adapter);
                    self.adapters.insert(at, adapter);
                }
                Ok(None) => {}
                Err(error @ AdapterError::NotReady { .. }) => {
                    all_answered = false;
                    if self.since.elapsed() + RETRY_AFTER >= RETRY_FOR {
                        emitter.emit_error(family.name(), &error);
                    }
                }
                Err(error) => emitter.emit_error(family.name(), &error),
            }
        }
        if self.adapters.len() > before {
            self.emit_reads(emitter);
        }
        all_answered
    }

    fn retry_later(&mut self) {
        if self.since.elapsed() < RETRY_FOR {
            let starts = self.since.elapsed() < Duration::from_secs(1);
            let at = Instant::now() + if starts { RETRY_SOON } else { RETRY_AFTER };
            self.recognise_at = Some(self.recognise_at.map_or(at, |other| other.min(at)));
        }
    }

    /// Schedules the next recognition if the space has changed.
    fn schedule(&mut self) {
        if self.recognised_version == Some(self.space.version) {
            return;
        }
        let now = Instant::now();
        let soon = match self.last_recognition {
            Some(last) => (last + self.pause).max(now),
            None if self.space.has_own => now,
            // A fork without known mappings.
            None if self.space.code.is_empty() => return,
            None => now + FORK_SETTLES,
        };
        self.recognise_at = Some(self.recognise_at.map_or(soon, |at| at.min(soon)));
    }
}

/// Whether the process in `view` existed at `began`; otherwise its pid was reused.
fn may_have_begun(view: &ProcessView, began: TimeNs) -> bool {
    let latest = began.0.saturating_add(START_TOLERANCE_NS);
    view.started().is_none_or(|started| started.0 <= latest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_records::Pid;

    #[test]
    fn a_number_that_was_used_again_is_told_apart() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let view = ProcessView::open(Pid(child.id())).unwrap();
        let now = crate::session::describe::now();
        assert!(may_have_begun(&view, now));
        let before = TimeNs(now.0.saturating_sub(60_000_000_000));
        assert!(!may_have_begun(&view, before), "a minute before it started");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
