//! What a session records, handed on while it records: for a live view.
//!
//! The writer never waits for whoever takes it. What does not fit into the channel is
//! held back, but for samples, which are counted: other records are referred to later.
//!
//! With the records come marks of how far the story is told: all that is known of
//! times before [`Tapped::told_until`] has been handed on. An adapter that hangs does
//! not hold that up for longer than [`MAX_BEHIND`].

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, TrySendError, bounded};
use std::sync::Arc;
use std::time::Duration;
use vmscope_records::{
    DurationNs, Limit, LimitKind, LossReason, Lost, ModuleKey, Record, Stream, TimeNs,
};
use vmscope_target::{ModuleFile, Modules};

/// How far what adapters tell may lag behind the samples before these are handed on as
/// told all the same, in nanoseconds: a live picture is no older. What is told later still, as
/// where the first reading of a large VM's code takes longer than this, is late for the
/// picture, not for the recording.
pub const MAX_BEHIND: DurationNs = DurationNs(3_000_000_000);

/// Records other than samples that may wait for room in the channel.
const MAX_HELD_BACK: usize = 1 << 20;

/// How long the last batch may wait for room: nothing is sampled any more.
const LAST_WAIT: Duration = Duration::from_secs(1);

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
        let tapped = self.batch(until);
        match self.out.try_send(tapped) {
            Ok(()) => self.told_until = until,
            Err(TrySendError::Full(tapped)) => self.keep(tapped),
            Err(TrySendError::Disconnected(_)) => self.is_gone = true,
        }
    }

    /// Hands on the last of it.
    pub(super) fn end(mut self) {
        if self.is_gone {
            return;
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
        let tapped = self.batch(TimeNs(u64::MAX));
        // A view that is gone or held up does not want to know.
        let _ = self.out.send_timeout(tapped, LAST_WAIT);
    }

    fn batch(&mut self, told_until: TimeNs) -> Tapped {
        let mut records = std::mem::take(&mut self.records);
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

    /// Counts the samples that did not fit and holds the rest back.
    fn keep(&mut self, tapped: Tapped) {
        self.files = tapped.files;
        for record in tapped.records {
            match record {
                Record::Sample(sample) => {
                    self.lost += 1;
                    self.lost_from.get_or_insert(sample.time);
                    self.lost_to = self.lost_to.max(sample.time);
                }
                // Said again with what was lost since.
                Record::Lost(lost) if lost.reason == LossReason::ChannelOverrun => {
                    self.lost += lost.count;
                    let from = self.lost_from.map_or(lost.from, |from| from.min(lost.from));
                    self.lost_from = Some(from);
                    self.lost_to = self.lost_to.max(lost.to);
                }
                other if self.records.len() < MAX_HELD_BACK => self.records.push(other),
                other => {
                    self.dropped += 1;
                    self.lost_to = self.lost_to.max(other.time().unwrap_or_default());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
