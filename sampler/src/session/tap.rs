//! What a session records, handed on while it records: for a live view.
//!
//! The writer never waits for whoever takes it. What does not fit into the channel is
//! held back, but for samples, which are counted: other records are referred to later.
//!
//! With the records come marks of how far the story is told: all that is known of
//! times before [`Tapped::told_until`] has been handed on. An adapter that hangs does
//! not hold that up for longer than [`MAX_BEHIND`].

use crossbeam_channel::{
    Receiver, RecvTimeoutError, SendTimeoutError, Sender, TryRecvError, bounded,
};
use std::sync::Arc;
use std::time::Duration;
use vmscope_process::{ModuleFile, Modules};
use vmscope_records::{
    DurationNs, Limit, LimitKind, LossReason, Lost, ModuleKey, Record, Stream, TimeNs,
};

/// How far what adapters tell may lag behind the samples before these are handed on as
/// told all the same, in nanoseconds: a live picture is no older. What is told later still, as
/// where the first reading of a large VM's code takes longer than this, is late for the
/// picture, not for the recording.
pub const MAX_BEHIND: DurationNs = DurationNs(3_000_000_000);

/// What records other than samples may take that wait for room in the channel, in bytes.
const MAX_HELD_BACK: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };

/// How long the last batch may wait for room: nothing is sampled any more. A view that is
/// gone is not waited for.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// A batch of what was recorded.
#[derive(Debug)]
pub struct Tapped {
    /// The records, samples among them, in the order in which they were recorded. Where
    /// samples did not fit, a [`Record::Lost`] says how many, which the recording itself
    /// does not have.
    pub records: Vec<Record>,
    /// The files of the [`Record::Module`]s among them, open, as far as they could be.
    pub files: Vec<(ModuleKey, Arc<ModuleFile>)>,
    /// Everything that is known of times before this has been told. Never falls;
    /// `u64::MAX` when the recording is over.
    pub told_until: TimeNs,
}

/// A live view's end of the tap.
#[derive(Debug)]
pub struct Tap(Receiver<Tapped>);

/// The session's end of the tap ([`super::SessionOptions::tap`]).
#[derive(Debug)]
pub struct TapSource {
    out: Sender<Tapped>,
    records: Vec<Record>,
    /// So many of them are held back: there are no samples among them.
    held: usize,
    /// What these take, in bytes.
    held_bytes: usize,
    files: Vec<(ModuleKey, Arc<ModuleFile>)>,
    /// What did not fit and was dropped.
    lost: u64,
    lost_from: Option<TimeNs>,
    lost_to: TimeNs,
    /// What was dropped beside samples.
    dropped: u64,
    /// The newest sample.
    drained: TimeNs,
    /// Until when adapters have told.
    looked: TimeNs,
    /// What was said last.
    told_until: TimeNs,
    is_gone: bool,
}

/// A tap of which `batches` may wait to be taken; a session makes some 30 a second.
#[must_use]
pub fn tap(batches: usize) -> (TapSource, Tap) {
    let (out, taken) = bounded(batches.max(1));
    let source = TapSource {
        out,
        records: Vec::new(),
        held: 0,
        held_bytes: 0,
        files: Vec::new(),
        lost: 0,
        lost_from: None,
        lost_to: TimeNs(0),
        dropped: 0,
        drained: TimeNs(0),
        looked: TimeNs(0),
        told_until: TimeNs(0),
        is_gone: false,
    };
    (source, Tap(taken))
}

impl Tap {
    /// The next batch, if there is one within `wait`.
    ///
    /// # Errors
    /// [`TapEnded`] when the recording is over and everything was taken.
    pub fn take(&self, wait: Duration) -> Result<Option<Tapped>, TapEnded> {
        match self.0.recv_timeout(wait) {
            Ok(tapped) => Ok(Some(tapped)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(TapEnded),
        }
    }

    /// The next batch, if there is one now.
    ///
    /// # Errors
    /// [`TapEnded`] when the recording is over and everything was taken.
    pub fn try_take(&self) -> Result<Option<Tapped>, TapEnded> {
        match self.0.try_recv() {
            Ok(tapped) => Ok(Some(tapped)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(TapEnded),
        }
    }
}

/// The recording is over: there is nothing more to be tapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the recording is over")]
pub struct TapEnded;

impl TapSource {
    /// Takes what is being recorded.
    pub(super) fn record(&mut self, records: &[Record], modules: &Modules) {
        if self.is_gone {
            return;
        }
        for record in records {
            match record {
                Record::Sample(sample) => self.drained = self.drained.max(sample.time),
                Record::Module(module) => {
                    let file = modules.file(module.key);
                    self.files.extend(file.map(|file| (module.key, file)));
                }
                _ => {}
            }
        }
        self.records.extend_from_slice(records);
    }

    /// All samples before `time` have been recorded.
    pub(super) fn drained(&mut self, time: TimeNs) {
        self.drained = self.drained.max(time);
    }

    /// Adapters have told all that they know of times before `time`. That falls when one
    /// more begins; what was said already stays said.
    pub(super) fn looked(&mut self, time: TimeNs) {
        self.looked = time;
    }

    /// Hands on what there is, as far as there is room.
    pub(super) fn send(&mut self) {
        if self.is_gone {
            return;
        }
        let at_least = self.drained.minus(MAX_BEHIND);
        let until = self.looked.max(at_least).min(self.drained);
        let until = until.max(self.told_until);
        if self.records.is_empty() && self.lost == 0 && until == self.told_until {
            return;
        }
        // Nobody else sends: where there is room now, there is room then.
        if self.out.is_full() {
            self.hold_back();
            return;
        }
        let tapped = self.batch(until);
        match self.out.try_send(tapped) {
            Ok(()) => self.told_until = until,
            Err(_) => self.is_gone = true,
        }
    }

    /// Hands on the last of it. Returns how many samples the view, if there is one, neither
    /// got nor was told to be lost.
    pub(super) fn end(mut self) -> u64 {
        if self.is_gone {
            return 0;
        }
        if self.dropped > 0 {
            self.records.push(Record::Limit(Limit {
                time: self.lost_to,
                kind: LimitKind::NotSampled,
                text: format!(
                    "{} records did not reach the live view, which was held up: what it shows of \
                     code, threads and mappings may lack names",
                    self.dropped
                ),
                remedy: "look at the recording".to_owned(),
            }));
        }
        let samples = self.records.iter();
        let samples = samples.filter(|record| matches!(record, Record::Sample(_)));
        let unseen = samples.count() as u64 + self.lost;
        let tapped = self.batch(TimeNs(u64::MAX));
        match self.out.send_timeout(tapped, LAST_WAIT) {
            // A view that is gone does not want to know.
            Ok(()) | Err(SendTimeoutError::Disconnected(_)) => 0,
            Err(SendTimeoutError::Timeout(_)) => unseen,
        }
    }

    fn batch(&mut self, told_until: TimeNs) -> Tapped {
        let mut records = std::mem::take(&mut self.records);
        (self.held, self.held_bytes) = (0, 0);
        let count = std::mem::take(&mut self.lost);
        if let Some(from) = self.lost_from.take().filter(|_| count > 0) {
            records.push(Record::Lost(Lost {
                stream: Stream::Samples,
                reason: LossReason::ChannelOverrun,
                count,
                from,
                to: self.lost_to,
                thread: None,
            }));
        }
        Tapped {
            records,
            files: std::mem::take(&mut self.files),
            told_until,
        }
    }

    /// Counts the samples that came since and holds the rest back.
    fn hold_back(&mut self) {
        for record in self.records.split_off(self.held) {
            if let Record::Sample(sample) = record {
                self.lost += 1;
                self.lost_from.get_or_insert(sample.time);
                self.lost_to = self.lost_to.max(sample.time);
                continue;
            }
            let bytes = bytes_of(&record);
            if self.held_bytes.saturating_add(bytes) <= MAX_HELD_BACK {
                self.held_bytes += bytes;
                self.records.push(record);
            } else {
                self.dropped += 1;
                self.lost_to = self.lost_to.max(record.time().unwrap_or_default());
            }
        }
        self.held = self.records.len();
    }
}

/// About what a record takes, in bytes: those kinds that can be large are looked into.
fn bytes_of(record: &Record) -> usize {
    let beside = match record {
        Record::Constituent(code) => {
            let cases = code.cases.iter();
            let cases = cases.map(|case| size_of_val(case) + case.class.len() + case.target.len());
            size_of_val(code.as_ref())
                + code.name.len()
                + code.map.heap_bytes()
                + cases.sum::<usize>()
        }
        Record::Method(method) => size_of_val(method.as_ref()) + method.heap_bytes(),
        Record::Symbols(symbols) => {
            let functions = symbols.functions.iter();
            let functions =
                functions.map(|one| size_of_val(one) + one.linkage_name.len() + one.name.len());
            symbols.note.len() + functions.sum::<usize>()
        }
        _ => 0,
    };
    size_of::<Record>() + beside
}

#[cfg(test)]
mod tests;
