//! A running adapter: its polls and their output.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use vmscope_process::{Adapter, AdapterError, KeySource, MAX_TOUCHED_OF_A_POLL, Poll, ProcessView};
use vmscope_records::{
    Avma, InterpreterSource, Limit, LimitKind, ProcessKey, Record, TimeNs, VmIdentity,
};

use super::pace::Pace;
use crate::session::describe::now;
use crate::session::messages::AdapterMessage;
use crate::session::progress::Progress;
use crate::session::touched::TouchedAddresses;

/// Shortest pause between two polls, whatever the adapter wants.
const MIN_PAUSE: Duration = Duration::from_millis(5);

/// Distinct limits per recording.
const MAX_LIMITS: usize = 200;

/// An adapter and its schedule.
pub(in crate::session) struct RunningAdapter {
    family: &'static str,
    /// The family's place in the order of all families.
    number: usize,
    adapter: Box<dyn Adapter>,
    due: Instant,
    /// Sampled addresses since the last poll.
    touched: Vec<Avma>,
    /// Sampled addresses before this time are in `touched`, or were polled.
    touched_until: TimeNs,
    is_opened: bool,
    has_polled: bool,
    has_unwinder: bool,
    /// Code before this time is complete.
    complete_until: TimeNs,
    /// All code was emitted once.
    knows_code: bool,
    /// Polling has ended; the last poll may follow.
    is_stopped: bool,
    /// The last poll is skipped too.
    is_failed: bool,
}

/// Output of all adapters of a session.
pub(in crate::session) struct Emitter {
    keys: KeySource,
    out: Sender<AdapterMessage>,
    /// Texts of emitted limits.
    emitted: HashSet<String>,
    touched: TouchedAddresses,
    pace: Pace,
    progress: Arc<Progress>,
}

impl RunningAdapter {
    /// `number`: the place of `family` in the order of all families.
    pub fn new((number, family): (usize, &'static str), adapter: Box<dyn Adapter>) -> Self {
        RunningAdapter {
            family,
            number,
            adapter,
            due: Instant::now(),
            touched: Vec::new(),
            touched_until: TimeNs(0),
            is_opened: false,
            has_polled: false,
            has_unwinder: false,
            complete_until: TimeNs(0),
            knows_code: false,
            is_stopped: false,
            is_failed: false,
        }
    }

    /// The adapter was opened before the recording ([`Adapter::open`]).
    pub fn opened(mut self) -> Self {
        self.is_opened = true;
        self
    }

    pub fn identity(&self) -> VmIdentity {
        self.adapter.identity()
    }

    pub fn sources(&self) -> Vec<InterpreterSource> {
        self.adapter.sample_needs().sources
    }

    /// Adapters of later families are not needed.
    pub fn tells_all_code(&self) -> bool {
        self.adapter.tells_all_code()
    }

    /// Adds sampled addresses before `until`, ascending. Beyond [`MAX_TOUCHED_OF_A_POLL`],
    /// addresses are dropped and counted.
    pub fn touch(&mut self, touched: &[Avma], until: TimeNs, emitter: &Emitter) {
        self.touched_until = until;
        if touched.is_empty() {
            return;
        }
        let has_others = !self.touched.is_empty();
        self.touched.extend_from_slice(touched);
        if has_others {
            // Two ascending runs: the stable sort merges them.
            self.touched.sort();
            self.touched.dedup();
        }
        let too_many = self.touched.len().saturating_sub(MAX_TOUCHED_OF_A_POLL);
        self.touched.truncate(MAX_TOUCHED_OF_A_POLL);
        emitter.touched.miss(too_many);
    }

    /// Time of the next poll; `None` once stopped.
    pub fn due(&self) -> Option<Instant> {
        (!self.is_stopped).then_some(self.due)
    }

    /// See [`Adapter::samples_within`].
    pub fn samples_within(&self) -> Duration {
        match self.is_stopped {
            true => Duration::MAX,
            false => self.adapter.samples_within(),
        }
    }

    /// Code before this time is complete; a stopped adapter emits no more.
    pub fn complete_until(&self) -> TimeNs {
        if self.is_stopped {
            TimeNs(u64::MAX)
        } else {
            self.complete_until
        }
    }

    /// Whether all code was emitted once; a stopped adapter emits no more.
    pub fn knows_code(&self) -> bool {
        self.knows_code || self.is_stopped
    }

    /// Polls a live process and schedules the next poll.
    pub fn poll(&mut self, view: &ProcessView, emitter: &mut Emitter) {
        self.poll_once(view, emitter);
        self.due = Instant::now() + self.adapter.next_poll().max(MIN_PAUSE);
    }

    pub fn postpone(&mut self, time: Duration) {
        self.due = Instant::now() + time;
    }

    /// Last poll, preceded by a first one if none has happened.
    pub fn finish(mut self, view: &ProcessView, emitter: &mut Emitter) {
        if !self.has_polled {
            self.poll_once(view, emitter);
        }
        if !self.is_failed {
            let mut poll = self.begin(view, emitter);
            let result = self.adapter.finish(view, &mut poll);
            emitter.emit_poll(poll);
            if let Err(error) = result {
                emitter.emit_error(self.family, &error);
            }
        }
    }

    fn begin(&mut self, view: &ProcessView, emitter: &mut Emitter) -> Poll {
        let poll = Poll::new(emitter.keys.clone(), view.key(), Arc::new(now));
        let poll = poll.with_spare(emitter.pace.spare());
        let poll = poll.with_touched_until(self.touched_until);
        poll.with_touched(std::mem::take(&mut self.touched))
    }

    fn ask_unwinder(&mut self, view: &ProcessView, emitter: &Emitter) {
        if !self.has_unwinder
            && let Some(unwinder) = self.adapter.unwinder(view)
        {
            self.has_unwinder = true;
            let message = AdapterMessage::Unwinder(view.key(), self.number, unwinder);
            let _ = emitter.out.send(message);
        }
    }

    fn poll_once(&mut self, view: &ProcessView, emitter: &mut Emitter) {
        self.has_polled = true;
        if !std::mem::replace(&mut self.is_opened, true) {
            let mut poll = Poll::new(emitter.keys.clone(), view.key(), Arc::new(now));
            self.adapter.open(view, &mut poll);
            emitter.emit_poll(poll);
        }
        // A first poll may take long: samples are waiting.
        self.ask_unwinder(view, emitter);
        let mut poll = self.begin(view, emitter);
        let result = self.adapter.poll(view, &mut poll);
        if result.is_ok() {
            // Interpreted methods are emitted for sampled addresses only.
            self.knows_code |= poll.told_until() > TimeNs(0);
            let complete = poll.told_until().min(self.touched_until);
            self.complete_until = self.complete_until.max(complete);
        }
        emitter.emit_poll(poll);
        self.ask_unwinder(view, emitter);
        if let Err(error) = result {
            emitter.emit_error(self.family, &error);
            self.is_stopped = error.is_final();
            // An exited process may have left files.
            self.is_failed = self.is_stopped && !matches!(error, AdapterError::Gone { .. });
        }
    }
}

impl Emitter {
    pub fn new(keys: KeySource, out: Sender<AdapterMessage>, touched: TouchedAddresses) -> Self {
        Emitter {
            keys,
            out,
            touched,
            emitted: HashSet::new(),
            pace: Pace::of(None),
            progress: Arc::default(),
        }
    }

    /// Asks `progress` for samples ([`Adapter::samples_within`]).
    pub fn with_progress(mut self, progress: Arc<Progress>) -> Self {
        self.progress = progress;
        self
    }

    /// Asks for the next samples within `time`.
    pub fn ask_for_samples(&self, time: Duration) {
        self.progress.ask_for_samples(time);
    }

    /// Limits the adapters' CPU time to `pace`.
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Names the recording's VM.
    pub fn emit_vm(&self, identity: VmIdentity) {
        // A failed send means that the writer has ended the session.
        let _ = self.out.send(AdapterMessage::Vm(identity));
    }

    /// Emits that adapters read `process`, and the interpreter sources in its samples.
    pub fn emit_reads(&self, process: ProcessKey, sources: Vec<InterpreterSource>) {
        let _ = self.out.send(AdapterMessage::Reads(process, sources));
    }

    /// Emits the time before which all code is known.
    pub fn emit_complete_until(&self, time: TimeNs) {
        let _ = self.out.send(AdapterMessage::CompleteUntil(time));
    }

    /// Emits that the code of all recognised VMs was read once.
    pub fn emit_code_known(&self) {
        let _ = self.out.send(AdapterMessage::CodeKnown);
    }

    /// Addresses sampled before this time are in the next [`Emitter::take_touched`].
    pub fn touched_until(&self) -> TimeNs {
        self.touched.until()
    }

    /// Addresses sampled in `process` since the last call, ascending.
    pub fn take_touched(&self, process: ProcessKey) -> Vec<Avma> {
        self.touched.take(process)
    }

    /// Dropped addresses.
    pub fn missed_touched(&self) -> u64 {
        self.touched.missed()
    }

    /// Emits the error of an adapter or family as a limit, once. An exited process is no error.
    pub fn emit_error(&mut self, family: &str, error: &AdapterError) {
        if matches!(error, AdapterError::Gone { .. }) {
            return;
        }
        let text = format!("{family} adapter: {}", error.in_full());
        self.emit_limit(text, error.remedy());
    }

    /// Emits a limit once.
    pub fn emit_limit(&mut self, text: String, remedy: &str) {
        let mut limit = Limit {
            time: now(),
            kind: LimitKind::AdapterIncomplete,
            text,
            remedy: remedy.to_owned(),
        };
        if self.is_new(&mut limit) {
            let _ = self.out.send(AdapterMessage::Limit(limit));
        }
    }

    /// Whether to emit a limit: new in this session, and within [`MAX_LIMITS`]. The last limit
    /// announces that further limits are omitted.
    fn is_new(&mut self, limit: &mut Limit) -> bool {
        if self.emitted.len() > MAX_LIMITS || self.emitted.contains(&limit.text) {
            return false;
        }
        if self.emitted.len() == MAX_LIMITS {
            "further VM limits are not listed".clone_into(&mut limit.text);
            limit.remedy.clear();
        }
        self.emitted.insert(limit.text.clone())
    }

    /// Emits a poll's records, new limits only.
    pub fn emit_poll(&mut self, poll: Poll) {
        self.pace.spend(poll.spent());
        let process = poll.process();
        let mut records = poll.finish();
        records.retain_mut(|record| match record {
            Record::Limit(limit) => self.is_new(limit),
            _ => true,
        });
        if !records.is_empty() {
            let _ = self.out.send(AdapterMessage::Poll(process, records));
        }
    }
}

#[cfg(test)]
mod tests;
