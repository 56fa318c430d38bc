//! One adapter at work: its looks, and where what they find goes.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use vmscope_records::{
    CodeChange, Constituent, ConstituentKind, Limit, LimitKind, PcMap, Record, VmIdentity,
};
use vmscope_target::{Adapter, AdapterError, KeySource, Look, ProcessView, ThreadNews};

use crate::session::{Found, now};

/// Constituents of all adapters whose pc maps are still to be read; beyond that they
/// are read by nobody and resolve to their method only.
const MAX_MAPS_WAITING: usize = 1 << 20;

/// How long pc maps are read before the next look has its turn.
const MAPS_FOR: Duration = Duration::from_millis(50);

/// So many different troubles are told.
const MAX_TROUBLES: usize = 200;

/// An adapter at work.
pub(in crate::session) struct AtWork {
    family: &'static str,
    adapter: Box<dyn Adapter>,
    due: Instant,
    waiting: VecDeque<Constituent>,
    has_looked: bool,
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
    /// Constituents of all adapters that wait for their pc maps.
    waiting: usize,
}

impl AtWork {
    pub fn new(family: &'static str, adapter: Box<dyn Adapter>) -> Self {
        AtWork {
            family,
            adapter,
            due: Instant::now(),
            waiting: VecDeque::new(),
            has_looked: false,
            is_stopped: false,
            is_useless: false,
        }
    }

    /// Which VM it reads.
    pub fn identity(&self) -> VmIdentity {
        self.adapter.identity()
    }

    /// When it wants its next turn; `None` where it can't go on.
    pub fn due(&self) -> Option<Instant> {
        (!self.is_stopped).then_some(self.due)
    }

    /// Its turn, of a process that lives.
    pub fn turn(&mut self, view: &ProcessView, teller: &mut Teller) {
        self.look(view, teller);
        if !self.is_stopped {
            self.read_maps(view, teller);
        }
        self.due = Instant::now() + self.adapter.next_look();
    }

    /// Puts its turn off: its process can't be looked at now.
    pub fn wait(&mut self, time: Duration) {
        self.due = Instant::now() + time;
    }

    /// Its end: a look if it had none, and the last one.
    pub fn finish(mut self, view: &ProcessView, teller: &mut Teller) {
        if !self.has_looked {
            self.look(view, teller);
        }
        if !self.is_useless {
            let mut look = teller.begin(view);
            let result = self.adapter.finish(view, &mut look);
            teller.send(look);
            if let Err(error) = result {
                teller.trouble(self.family, &error);
            }
        }
        teller.waiting -= self.waiting.len();
    }

    fn look(&mut self, view: &ProcessView, teller: &mut Teller) {
        self.has_looked = true;
        let mut look = teller.begin(view);
        let result = self.adapter.look(view, &mut look);
        if self.adapter.has_late_maps() {
            teller.send_and_note(look, &mut self.waiting);
        } else {
            teller.send(look);
        }
        if let Err(error) = result {
            teller.trouble(self.family, &error);
            self.is_stopped = error.is_final();
            // A process that is gone may have left files.
            self.is_useless = self.is_stopped && !matches!(error, AdapterError::Gone { .. });
        }
    }

    /// Reads pc maps that the look left for later.
    fn read_maps(&mut self, view: &ProcessView, teller: &mut Teller) {
        let until = Instant::now() + MAPS_FOR;
        let mut look = teller.begin(view);
        while let Some(mut constituent) = self.waiting.pop_front() {
            teller.waiting -= 1;
            match self.adapter.pc_map(view, constituent.key, &mut look) {
                Ok(PcMap::None) | Err(AdapterError::Absent { .. }) => {}
                Ok(map) => {
                    constituent.map = map;
                    look.code(CodeChange::Seen(constituent));
                }
                Err(error) => {
                    teller.trouble(self.family, &error);
                    if error.is_final() {
                        teller.waiting -= self.waiting.len();
                        self.waiting.clear();
                    }
                }
            }
            if Instant::now() > until {
                break;
            }
        }
        teller.send(look);
    }
}

impl Teller {
    pub fn new(keys: KeySource, out: Sender<Found>) -> Self {
        Teller {
            keys,
            out,
            told: HashSet::new(),
            waiting: 0,
        }
    }

    /// Says which VM the recording is of.
    pub fn vm(&self, identity: VmIdentity) {
        // A writer that is gone ends the session by itself.
        let _ = self.out.send(Found::Vm(identity));
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

    fn begin(&self, view: &ProcessView) -> Look {
        Look::new(self.keys.clone(), view.key(), Arc::new(now))
    }

    /// Sends what a look found, and notes in `waiting` what is without a pc map.
    fn send_and_note(&mut self, look: Look, waiting: &mut VecDeque<Constituent>) {
        let (records, threads) = self.take(look);
        for record in &records {
            if let Record::Constituent(constituent) = record {
                let has_inside = matches!(
                    constituent.kind,
                    ConstituentKind::Method | ConstituentKind::Block
                );
                let wants_map = has_inside && constituent.map == PcMap::None;
                if wants_map && self.waiting < MAX_MAPS_WAITING {
                    waiting.push_back((**constituent).clone());
                    self.waiting += 1;
                }
            }
        }
        self.tell(records, threads);
    }

    fn send(&mut self, look: Look) {
        let (records, threads) = self.take(look);
        self.tell(records, threads);
    }

    /// What a look found, without the limits that were told before; what it knows of
    /// compilers is sent at once.
    fn take(&mut self, mut look: Look) -> (Vec<Record>, Vec<ThreadNews>) {
        let compilations = look.take_compilations();
        if !compilations.is_empty() {
            // A writer that is gone ends the session by itself.
            let _ = self.out.send(Found::Compiled(look.process(), compilations));
        }
        let (mut records, threads) = look.finish();
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
