//! Live copy of a session's records, for a live view.
//!
//! The writer never waits for the view. Records that overflow the channel are held back; samples
//! are dropped and counted. Each batch carries the time before which records are complete
//! ([`Tapped::complete_until`]); a hanging adapter delays it by at most [`MAX_BEHIND`].

use crossbeam_channel::{
    Receiver, RecvTimeoutError, SendTimeoutError, Sender, TryRecvError, bounded,
};
use std::sync::Arc;
use std::time::Duration;
use vmscope_process::{ModuleFile, Modules};
use vmscope_records::{
    DurationNs, Limit, LimitKind, LossReason, Lost, ModuleKey, Record, Stream, TimeNs,
};

/// Longest lag of adapters' records behind the samples, in nanoseconds. Records with a longer lag,
/// e.g. of the first read of a large VM's code, come late for the view, not for the recording.
pub const MAX_BEHIND: DurationNs = DurationNs(3_000_000_000);

/// Memory limit in bytes of held-back records.
const MAX_HELD_BACK: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };

/// Longest wait for room for the last batch.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// A batch of records.
#[derive(Debug)]
pub struct Tapped {
    /// Records in recording order. A [`Record::Lost`] counts dropped samples; the recording itself
    /// lacks it.
    pub records: Vec<Record>,
    /// Open files of the batch's [`Record::Module`]s, as far as available.
    pub files: Vec<(ModuleKey, Arc<ModuleFile>)>,
    /// Records before this time are complete. Never falls; `u64::MAX` at the recording's end.
    pub complete_until: TimeNs,
}

/// The view's end of the tap.
#[derive(Debug)]
pub struct Tap(Receiver<Tapped>);

/// The session's end of the tap ([`super::SessionOptions::tap`]).
#[derive(Debug)]
pub struct TapSource {
    out: Sender<Tapped>,
    records: Vec<Record>,
    /// Number of records held back, samples excluded.
    held: usize,
    /// Their size in bytes.
    held_bytes: usize,
    files: Vec<(ModuleKey, Arc<ModuleFile>)>,
    /// Dropped samples.
    lost: u64,
    lost_from: Option<TimeNs>,
    lost_to: TimeNs,
    /// Dropped records other than samples.
    dropped: u64,
    /// Samples before this time are complete.
    drained: TimeNs,
    /// Adapters' records before this time are complete.
    adapters_complete: TimeNs,
    /// Last sent completion time.
    complete_until: TimeNs,
    is_gone: bool,
}

/// A tap with room for `batches`; a session makes some 30 a second.
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
        adapters_complete: TimeNs(0),
        complete_until: TimeNs(0),
        is_gone: false,
    };
    (source, Tap(taken))
}

impl Tap {
    /// The next batch within `wait`.
    ///
    /// # Errors
    /// [`TapEnded`] after the last batch.
    pub fn take(&self, wait: Duration) -> Result<Option<Tapped>, TapEnded> {
        match self.0.recv_timeout(wait) {
            Ok(tapped) => Ok(Some(tapped)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(TapEnded),
        }
    }

    /// The next batch, without waiting.
    ///
    /// # Errors
    /// [`TapEnded`] after the last batch.
    pub fn try_take(&self) -> Result<Option<Tapped>, TapEnded> {
        match self.0.try_recv() {
            Ok(tapped) => Ok(Some(tapped)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(TapEnded),
        }
    }
}

/// The recording has ended, and all batches were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the recording has ended")]
pub struct TapEnded;

impl TapSource {
    /// Adds records.
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

    /// Samples before `time` are complete.
    pub(super) fn drained(&mut self, time: TimeNs) {
        self.drained = self.drained.max(time);
    }

    /// Adapters' records before `time` are complete. Falls when another adapter starts; the sent
    /// time never falls.
    pub(super) fn adapters_complete(&mut self, time: TimeNs) {
        self.adapters_complete = time;
    }

    /// Sends a batch if the channel has room.
    pub(super) fn send(&mut self) {
        if self.is_gone {
            return;
        }
        let at_least = self.drained.minus(MAX_BEHIND);
        let until = self.adapters_complete.max(at_least).min(self.drained);
        let until = until.max(self.complete_until);
        if self.records.is_empty() && self.lost == 0 && until == self.complete_until {
            return;
        }
        // No other sender exists, so the room stays.
        if self.out.is_full() {
            self.hold_back();
            return;
        }
        let tapped = self.batch(until);
        match self.out.try_send(tapped) {
            Ok(()) => self.complete_until = until,
            Err(_) => self.is_gone = true,
        }
    }

    /// Sends the last batch. Returns the samples neither delivered nor reported as lost.
    pub(super) fn end(mut self) -> u64 {
        if self.is_gone {
            return 0;
        }
        if self.dropped > 0 {
            self.records.push(Record::Limit(Limit {
                time: self.lost_to,
                kind: LimitKind::NotSampled,
                text: format!(
                    "{} records did not reach the live view (too slow): code and threads may lack \
                     names there",
                    self.dropped
                ),
                remedy: "record with --output and open the file".to_owned(),
            }));
        }
        let samples = self.records.iter();
        let samples = samples.filter(|record| matches!(record, Record::Sample(_)));
        let unseen = samples.count() as u64 + self.lost;
        let tapped = self.batch(TimeNs(u64::MAX));
        match self.out.send_timeout(tapped, LAST_WAIT) {
            // The view is gone.
            Ok(()) | Err(SendTimeoutError::Disconnected(_)) => 0,
            Err(SendTimeoutError::Timeout(_)) => unseen,
        }
    }

    fn batch(&mut self, complete_until: TimeNs) -> Tapped {
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
            complete_until,
        }
    }

    /// Counts new samples as lost; holds other records back.
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

/// Approximate size of a record in bytes, heap of the large kinds included.
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
