//! One adapter at work: its looks, and where what they find goes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use vmscope_process::{
    Adapter, AdapterError, KeySource, MAX_TOUCHED_OF_A_POLL, Poll, ProcessView, ThreadNews,
};
use vmscope_records::{
    Avma, InterpreterSource, Limit, LimitKind, ProcessKey, Record, TimeNs, VmIdentity,
};

use super::pace::Pace;
use crate::session::touched::Touched;
use crate::session::{Found, now};

/// How soon an adapter has its next turn at the earliest, whatever it wants.
const SOONEST: Duration = Duration::from_millis(5);

/// So many different troubles are told.
const MAX_TROUBLES: usize = 200;

/// An adapter at work.
pub(in crate::session) struct AtWork {
    family: &'static str,
    adapter: Box<dyn Adapter>,
    due: Instant,
    /// What samples touched since its last poll.
    touched: Vec<Avma>,
    /// What samples before this touched is among it, or was before.
    touched_until: TimeNs,
    has_polled: bool,
    /// Until when it has told all code.
    told_until: TimeNs,
    /// Whether there is no point in another look, but for the last one.
    is_stopped: bool,
    /// Nor in the last one.
    is_useless: bool,
}

/// Where what is found goes.
pub(in crate::session) struct Teller {
    keys: KeySource,
    out: Sender<Found>,
    /// What was said already.
    told: HashSet<String>,
    touched: Touched,
    pace: Pace,
}

impl AtWork {
    pub fn new(family: &'static str, adapter: Box<dyn Adapter>) -> Self {
        AtWork {
            family,
            adapter,
            due: Instant::now(),
            touched: Vec::new(),
            touched_until: TimeNs(0),
            has_polled: false,
            told_until: TimeNs(0),
            is_stopped: false,
            is_useless: false,
        }
    }

    /// Which VM it reads.
    pub fn identity(&self) -> VmIdentity {
        self.adapter.identity()
    }

    /// Where samples show what its VM's interpreter executes.
    pub fn sources(&self) -> Vec<InterpreterSource> {
        self.adapter.sample_needs().sources
    }

    /// Whether those of later families are not needed.
    pub fn tells_all_code(&self) -> bool {
        self.adapter.tells_all_code()
    }

    /// Takes what samples before `until` touched, ascending. Of too many addresses, because
    /// it has not looked for long, some are left out.
    pub fn touch(&mut self, touched: &[Avma], until: TimeNs, teller: &Teller) {
        self.touched_until = until;
        self.touched.extend_from_slice(touched);
        self.touched.sort_unstable();
        self.touched.dedup();
        let too_many = self.touched.len().saturating_sub(MAX_TOUCHED_OF_A_POLL);
        self.touched.truncate(MAX_TOUCHED_OF_A_POLL);
        teller.touched.miss(too_many);
    }

    /// When it wants its next turn; `None` where it can't go on.
    pub fn due(&self) -> Option<Instant> {
        (!self.is_stopped).then_some(self.due)
    }

    /// Until when it has told all code; one that can't go on has nothing more to tell.
    pub fn told_until(&self) -> TimeNs {
        if self.is_stopped {
            TimeNs(u64::MAX)
        } else {
            self.told_until
        }
    }

    /// Its turn, of a process that lives.
    pub fn turn(&mut self, view: &ProcessView, teller: &mut Teller) {
        self.poll(view, teller);
        self.due = Instant::now() + self.adapter.next_poll().max(SOONEST);
    }

    /// Puts its turn off: its process can't be looked at now.
    pub fn wait(&mut self, time: Duration) {
        self.due = Instant::now() + time;
    }

    /// Its end: a poll if it had none, and the last one.
    pub fn finish(mut self, view: &ProcessView, teller: &mut Teller) {
        if !self.has_polled {
            self.poll(view, teller);
        }
        if !self.is_useless {
            let mut poll = self.begin(view, teller);
            let result = self.adapter.finish(view, &mut poll);
            teller.send(poll);
            if let Err(error) = result {
                teller.trouble(self.family, &error);
            }
        }
    }

    fn begin(&mut self, view: &ProcessView, teller: &mut Teller) -> Poll {
        let poll = Poll::new(teller.keys.clone(), view.key(), Arc::new(now));
        let poll = poll.with_spare(teller.pace.spare());
        poll.with_touched(std::mem::take(&mut self.touched))
    }

    fn poll(&mut self, view: &ProcessView, teller: &mut Teller) {
        self.has_polled = true;
        let mut poll = self.begin(view, teller);
        let result = self.adapter.poll(view, &mut poll);
        if result.is_ok() {
            // Of what an interpreter executes it tells what samples touched.
            let told = poll.told_until().min(self.touched_until);
            self.told_until = self.told_until.max(told);
        }
        teller.send(poll);
        if let Err(error) = result {
            teller.trouble(self.family, &error);
            self.is_stopped = error.is_final();
            // A process that is gone may have left files.
            self.is_useless = self.is_stopped && !matches!(error, AdapterError::Gone { .. });
        }
    }
}

impl Teller {
    pub fn new(keys: KeySource, out: Sender<Found>, touched: Touched) -> Self {
        Teller {
            keys,
            out,
            touched,
            told: HashSet::new(),
            pace: Pace::of(None),
        }
    }

    /// The same, for adapters that may take no more than `pace` grants.
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Says which VM the recording is of.
    pub fn vm(&self, identity: VmIdentity) {
        // A writer that is gone ends the session by itself.
        let _ = self.out.send(Found::Vm(identity));
    }

    /// Says that adapters read an address space now, and where samples show what its
    /// interpreters execute.
    pub fn reads(&self, process: ProcessKey, sources: Vec<InterpreterSource>) {
        let _ = self.out.send(Found::Reads(process, sources));
    }

    /// Says until when adapters have told all code.
    pub fn told(&self, time: TimeNs) {
        let _ = self.out.send(Found::Told(time));
    }

    /// What samples before this touched is among what is taken from now on.
    pub fn touched_until(&self) -> TimeNs {
        self.touched.until()
    }

    /// What samples touched in an address space since this was asked last, ascending.
    pub fn take_touched(&self, process: ProcessKey) -> Vec<Avma> {
        self.touched.take(process)
    }

    /// How many addresses that samples touched could not be told.
    pub fn missed_touched(&self) -> u64 {
        self.touched.missed()
    }

    /// Says what an adapter can't do, or a family; what is said already is not said
    /// again. That a process is gone is no trouble: its end is in the recording.
    pub fn trouble(&mut self, family: &str, error: &AdapterError) {
        if matches!(error, AdapterError::Gone { .. }) {
            return;
        }
        let text = format!("{family} adapter: {}", error.in_full());
        self.limit(text, error.remedy());
    }

    /// Says what limits the recording, once.
    pub fn limit(&mut self, text: String, remedy: &str) {
        let mut limit = Limit {
            time: now(),
            kind: LimitKind::AdapterIncomplete,
            text,
            remedy: remedy.to_owned(),
        };
        if self.is_new(&mut limit) {
            self.tell(vec![Record::Limit(limit)], Vec::new());
        }
    }

    /// Whether a limit is to be told: it was not yet, by whatever adapter of whatever
    /// process, and there are not too many. The first one too many becomes the word
    /// for all that follow.
    fn is_new(&mut self, limit: &mut Limit) -> bool {
        if self.told.len() > MAX_TROUBLES || self.told.contains(&limit.text) {
            return false;
        }
        if self.told.len() == MAX_TROUBLES {
            "further troubles of adapters are not listed".clone_into(&mut limit.text);
            limit.remedy.clear();
        }
        self.told.insert(limit.text.clone())
    }

    fn send(&mut self, poll: Poll) {
        self.pace.spend(poll.spent());
        let (records, threads) = self.take(poll);
        self.tell(records, threads);
    }

    /// What a poll found, without the limits that were told before; what it knows of
    /// compilers is sent at once.
    fn take(&mut self, mut poll: Poll) -> (Vec<Record>, Vec<ThreadNews>) {
        let compilations = poll.take_compilations();
        if !compilations.is_empty() {
            // A writer that is gone ends the session by itself.
            let _ = self.out.send(Found::Compiled(poll.process(), compilations));
        }
        let (mut records, threads) = poll.finish();
        records.retain_mut(|record| match record {
            Record::Limit(limit) => self.is_new(limit),
            _ => true,
        });
        (records, threads)
    }

    fn tell(&self, records: Vec<Record>, threads: Vec<ThreadNews>) {
        if !records.is_empty() || !threads.is_empty() {
            // A writer that is gone ends the session by itself.
            let _ = self.out.send(Found::Looked(records, threads));
        }
    }
}

#[cfg(test)]
mod tests;
