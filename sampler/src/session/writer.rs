//! The writing thread: keys, modules, encoding, the file.

use super::describe::now;
use super::messages::{AdapterMessage, Message};
use super::native_hits::NativeHits;
use super::process_table::ProcessTable;
use super::progress::Progress;
use super::recorder::Recorder;
use super::secrets::{mask_text, mask_words};
use super::sink::{Kept, Saved, Sink, SinkError};
use super::tap::TapSource;
use crate::engine::EngineEvent;
use crossbeam_channel::{Receiver, never, select};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use vmscope_process::Modules;
use vmscope_records::recording::Written;
use vmscope_records::{
    DurationNs, EndReason, Fact, Limit, Pid, ProcessKey, Record, RecordingEnd, Session, TimeNs,
};

/// Interval between chunks. A crash costs this time, and two or more rounds of the drain thread.
const FLUSH_EVERY: Duration = Duration::from_millis(300);

/// Largest age of incoming samples while the inbox is empty.
const SOON_DRAINED: DurationNs = DurationNs(1_000_000_000);

/// Result of the writer thread.
#[derive(Debug)]
pub(super) struct Finished {
    pub reason: EndReason,
    pub written: Written,
    pub lost: u64,
    pub unseen: u64,
    pub ended: TimeNs,
    pub modules: Modules,
    pub hits: NativeHits,
    pub kept: Option<Kept>,
    pub failure: Option<SinkError>,
}

/// Marks the recording as ended when the writer ends, panics included.
struct Done(Arc<Progress>, Option<ProcessTable>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.done.store(true, Ordering::Release);
        if let Some(table) = &self.1 {
            table.close();
        }
    }
}

pub(super) struct WriterThread {
    sink: Option<Sink>,
    progress: Arc<Progress>,
    session: Session,
    limits: Vec<Limit>,
    environment: Vec<String>,
    keep_secrets: bool,
    process_table: Option<ProcessTable>,
    recorder: Recorder,
    records: Vec<Record>,
    began: TimeNs,
    failure: Option<SinkError>,
    tap: Option<TapSource>,
}

impl WriterThread {
    pub fn new(
        sink: Sink,
        progress: Arc<Progress>,
        session: Session,
        limits: Vec<Limit>,
        (environment, keep_secrets): (Vec<String>, bool),
        recorder: Recorder,
        tap: Option<TapSource>,
    ) -> Self {
        let began = session.time;
        WriterThread {
            sink: Some(sink),
            progress,
            session,
            limits,
            environment,
            keep_secrets,
            process_table: recorder.process_table().cloned(),
            recorder,
            records: Vec::new(),
            began,
            failure: None,
            tap,
        }
    }

    /// Runs until engine and adapters have ended. The `attached` processes get the first keys, in
    /// their order.
    pub fn run(
        mut self,
        mut inbox: Receiver<Message>,
        mut from_adapters: Receiver<AdapterMessage>,
        attached: &[Pid],
    ) -> Finished {
        let _done = Done(Arc::clone(&self.progress), self.process_table.clone());
        self.records
            .push(Record::Session(Box::new(self.session.clone())));
        self.records.extend(
            std::mem::take(&mut self.limits)
                .into_iter()
                .map(Record::Limit),
        );
        if !self.environment.is_empty() {
            self.records.push(Record::Fact(Fact {
                process: ProcessKey(0),
                time: self.began,
                name: "environment".to_owned(),
                value: self.environment.join(" "),
            }));
        }
        for &pid in attached {
            let name = (self.recorder.modules.core_name()).unwrap_or_else(|| name_of(pid));
            let begun = self
                .recorder
                .begin_process(pid, name, self.began, &mut self.records);
            if let Err(error) = begun {
                // The engine reports a process that has exited meanwhile.
                self.records.push(Record::Limit(Limit {
                    time: self.began,
                    kind: vmscope_records::LimitKind::NoSymbols,
                    text: format!("cannot read the process's memory map: {error}"),
                    remedy: String::new(),
                }));
            }
        }
        self.put_records();
        self.flush();
        let mut flushed = Instant::now();
        let mut adapters_done = false;
        let mut ending = None;
        let (ended, reason, detail) = loop {
            let left = FLUSH_EVERY.saturating_sub(flushed.elapsed());
            select! {
                recv(inbox) -> message => match message {
                    Ok(Message::Events(events)) => {
                        self.take_events(events);
                        if inbox.is_empty() {
                            self.drained(now().minus(SOON_DRAINED));
                        }
                    }
                    Ok(Message::Mark(mark)) => {
                        self.records.push(Record::Mark(mark));
                        self.put_records();
                    }
                    // The copy exists even if its requester is gone.
                    Ok(Message::Save(path, answer)) => drop(answer.send(self.save(path))),
                    Ok(Message::End(time, reason, detail)) => {
                        ending = Some((time, reason, detail));
                        if let Some(sink) = &mut self.sink {
                            sink.sampled_until(time);
                        }
                        if let Some(table) = &self.process_table {
                            table.close();
                        }
                    }
                    Err(_) if ending.is_none() => {
                        let why = "the drain thread failed: please report this".to_owned();
                        break (now(), EndReason::Other, why);
                    }
                    // Messages of adapters may still follow.
                    Err(_) => inbox = never(),
                },
                recv(from_adapters) -> found => match found {
                    Ok(found) => self.take_found(found),
                    Err(_) => {
                        adapters_done = true;
                        self.progress.knows_code.store(true, Ordering::Release);
                        self.adapters_complete(TimeNs(u64::MAX));
                        from_adapters = never();
                    }
                },
                default(left) => {}
            }
            if adapters_done && let Some(ending) = ending.take() {
                break ending;
            }
            if flushed.elapsed() >= FLUSH_EVERY {
                self.release();
                self.put_records();
                self.flush();
                flushed = Instant::now();
            }
        };
        self.finish(ended, reason, detail)
    }

    fn take_events(&mut self, events: Vec<EngineEvent>) {
        let mut latest = TimeNs::default();
        for event in events {
            if let EngineEvent::Sample(sample) = &event {
                self.progress.take_stack(sample);
                latest = latest.max(sample.time);
            }
            self.recorder.take(event, &mut self.records);
        }
        self.recorder.publish_touched();
        self.touched_until(self.before_waiting(latest));
        self.put_records();
    }

    /// `time`, or the time of the first waiting sample.
    fn before_waiting(&self, time: TimeNs) -> TimeNs {
        let waiting = self.recorder.waiting_since();
        waiting.map_or(time, |waiting| waiting.min(time))
    }

    /// Addresses sampled before `time` are in the process table.
    fn touched_until(&self, time: TimeNs) {
        if let Some(table) = &self.process_table {
            table.touched().known_until(time);
        }
    }

    /// Passes on samples that need not wait any longer.
    fn release(&mut self) {
        if self.recorder.waiting_since().is_some() {
            self.recorder.release(now(), &mut self.records);
            self.recorder.publish_touched();
        }
    }

    fn take_found(&mut self, found: AdapterMessage) {
        match found {
            AdapterMessage::Poll(process, records) => {
                self.recorder.take_poll(process, records, &mut self.records);
                self.release();
            }
            AdapterMessage::Limit(limit) => self.records.push(Record::Limit(limit)),
            AdapterMessage::Reads(process, sources) => self.recorder.take_reads(process, sources),
            AdapterMessage::Unwinder(process, family, unwinder) => {
                self.recorder.take_unwinder(process, (family, unwinder));
            }
            AdapterMessage::CompleteUntil(time) => self.adapters_complete(time),
            AdapterMessage::CodeKnown => self.progress.knows_code.store(true, Ordering::Release),
            AdapterMessage::Vm(identity) => {
                self.session.vm = identity;
                self.records
                    .push(Record::Session(Box::new(self.session.clone())));
            }
        }
        self.put_records();
    }

    fn finish(mut self, ended: TimeNs, reason: EndReason, detail: String) -> Finished {
        self.recorder.finish(&mut self.records);
        self.put_records();
        let end = self.end(ended, reason, detail);
        let mut written = Written::default();
        let mut kept = None;
        if let Some(sink) = self.sink.take() {
            match sink.end(end.clone()) {
                Ok(all) => (written, kept) = all,
                Err(error) => {
                    written = error.written();
                    self.failure.get_or_insert(error);
                }
            }
        }
        // The file first: a stalled view delays the end.
        let mut unseen = 0;
        if let Some(mut tap) = self.tap.take() {
            tap.record(&[Record::End(end)], &self.recorder.modules);
            unseen = tap.end();
        }
        Finished {
            reason: if self.failure.is_some() {
                EndReason::WriteFailed
            } else {
                reason
            },
            written,
            lost: self.recorder.lost,
            unseen,
            ended,
            modules: self.recorder.modules,
            hits: self.recorder.hits,
            kept,
            failure: self.failure,
        }
    }

    fn end(&self, time: TimeNs, reason: EndReason, detail: String) -> RecordingEnd {
        let reason = if self.failure.is_some() {
            EndReason::WriteFailed
        } else {
            reason
        };
        let detail = self.failure.as_ref().map_or(detail, ToString::to_string);
        RecordingEnd {
            time,
            reason,
            detail,
            samples: 0,
            recorder_cpu_ns: own_cpu_ns(),
        }
    }

    fn save(&mut self, path: PathBuf) -> Result<Saved, SinkError> {
        let end = self.end(now(), EndReason::Saved, String::new());
        let Some(sink) = &mut self.sink else {
            let error = std::io::Error::other("the recording has ended");
            return Err(SinkError::Create { path, error });
        };
        let written = sink.save_copy(&path, end)?;
        let modules = self.recorder.modules.clone();
        Ok(Saved {
            modules,
            path,
            written,
        })
    }

    /// Samples before `time` are complete.
    fn drained(&mut self, time: TimeNs) {
        let time = self.before_waiting(time);
        self.touched_until(time);
        if let Some(tap) = &mut self.tap {
            tap.drained(time);
            tap.send();
        }
    }

    /// Adapters' records before `time` are complete.
    fn adapters_complete(&mut self, time: TimeNs) {
        if let Some(tap) = &mut self.tap {
            tap.adapters_complete(time);
            tap.send();
        }
    }

    fn put_records(&mut self) {
        for record in self.records.iter_mut().filter(|_| !self.keep_secrets) {
            match record {
                Record::Session(session) => {
                    session.command = mask_words(std::mem::take(&mut session.command));
                }
                Record::Fact(fact) => fact.value = mask_text(&fact.value),
                _ => {}
            }
        }
        if let Some(tap) = &mut self.tap {
            tap.record(&self.records, &self.recorder.modules);
            tap.send();
        }
        for record in self.records.drain(..) {
            if self.failure.is_none()
                && let Some(sink) = &mut self.sink
                && let Err(error) = sink.put(record)
            {
                self.failure = Some(error);
                self.progress.ask_to_stop(EndReason::WriteFailed);
            }
        }
        self.progress
            .samples
            .store(self.recorder.samples, Ordering::Relaxed);
        self.progress
            .lost
            .store(self.recorder.lost, Ordering::Relaxed);
    }

    fn flush(&mut self) {
        if self.failure.is_none()
            && let Some(sink) = &mut self.sink
        {
            if let Err(error) = sink.flush() {
                self.failure = Some(error);
                self.progress.ask_to_stop(EndReason::WriteFailed);
            } else {
                self.progress.bytes.store(sink.bytes(), Ordering::Relaxed);
            }
        }
    }
}

/// A process's name; empty if unreadable.
fn name_of(pid: Pid) -> String {
    let facts = vmscope_process::examine(pid);
    facts.map_or_else(|_| String::new(), |facts| facts.display_name().to_owned())
}

/// CPU time of this process.
fn own_cpu_ns() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| {
        let spent = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        u64::try_from(spent).unwrap_or(0).saturating_mul(1000)
    })
}
