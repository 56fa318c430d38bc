//! The second pass: the samples, each put where its address was at its time.
//!
//! What changes with time is applied as its time comes, so that a lookup costs the
//! same however often addresses were reused.

use super::ahead::each_item;
use super::interpreted::Interpreters;
use super::state::Change;
use super::world::World;
use super::{ChainTree, Trace, TraceError, Watch};
use std::io::{Read, Seek};
use vmscope_records::recording::{Item, Reader};
use vmscope_records::{
    Avma, CallChain, Content, CpuMode, Limit, LimitKind, ProcessKey, Sample, ThreadKey, TimeNs,
};

/// So many samples' addresses are looked up together.
const WARM: usize = 64;

impl Trace {
    /// Reads the samples, with the changes applied as their time comes.
    pub(crate) fn place_samples<R: Read + Seek + Send>(
        &mut self,
        reader: &mut Reader<R>,
        changes: Vec<(TimeNs, Change)>,
        watch: Watch,
    ) -> Result<(), TraceError> {
        let history = self.code.history();
        self.code.forget_keys();
        let mut zone_events = history.events.into_iter().peekable();
        let mut changes = changes.into_iter().peekable();
        let process_of = self.threads.iter().map(|thread| thread.thread.process);
        let interpreters = Interpreters::new(self);
        let mut now = World::new(process_of, history.stays, interpreters);
        if let Some(end) = self.end.as_ref().filter(|_| self.keep_samples) {
            // A sample takes a byte at least, whatever the recording says of itself.
            let (_, bytes) = reader.progress();
            let count = usize::try_from(end.samples.min(bytes)).unwrap_or(0);
            self.samples.expect(count);
        }
        // When the next of both comes.
        let mut next = TimeNs(0);
        let mut last = LastThread::default();
        let mut latest = TimeNs(0);
        each_item(reader, Content::SAMPLES, (1, watch), |content, item| {
            // What is not only samples was counted in the first pass.
            let first_seen = u64::from(content == Content::SAMPLES);
            let batch = match item {
                Item::Samples(batch) => batch,
                Item::Record(_) => return,
                Item::Unknown(_) => {
                    self.unknown_records += first_seen;
                    return;
                }
                Item::Malformed(..) => {
                    self.malformed_records += first_seen;
                    return;
                }
            };
            if self.keep_samples {
                self.samples.reserve(batch.len());
            }
            for part in batch.chunks(WARM) {
                now.warm(last.process, part.iter().map(|sample| sample.pc));
                for sample in part {
                    self.disordered_samples += u64::from(sample.time < latest);
                    latest = latest.max(sample.time);
                    while next <= sample.time {
                        let change = changes.peek().map(|(time, _)| *time);
                        let event = zone_events.peek().map(|event| event.time);
                        let Some(first) = change.into_iter().chain(event).min() else {
                            next = TimeNs(u64::MAX);
                            break;
                        };
                        if first > sample.time {
                            next = first;
                        } else if event == Some(first) {
                            // First, because a fork hands on the code that is there.
                            zone_events
                                .next()
                                .into_iter()
                                .for_each(|event| now.zone(event));
                        } else if let Some((_, change)) = changes.next() {
                            self.bring_about(change, &mut now);
                        }
                    }
                    self.place_sample(sample, &mut now, &mut last);
                }
            }
        })?;
        self.tell_disinherited(now.disinherited(), latest);
        self.places = now.into_places();
        Ok(())
    }

    /// Something changes.
    pub(crate) fn bring_about(&self, change: Change, now: &mut World) {
        let holds = match &change {
            Change::Begin(process) => self.is_fork(process),
            Change::Map(mapping) => self.is_file_with_code(mapping),
            _ => false,
        };
        now.change(change, holds);
    }

    pub(crate) fn tell_disinherited(&mut self, processes: u64, time: TimeNs) {
        if processes > 0 {
            self.limits.push(Limit {
                time,
                kind: LimitKind::Other,
                text: format!(
                    "{processes} forked processes had more generated code of their parents \
                     than could be kept in mind: it has no names in them"
                ),
                remedy: "record fewer processes, or for a shorter time".into(),
            });
        }
    }

    pub(crate) fn place_sample(&mut self, sample: &Sample, now: &mut World, last: &mut LastThread) {
        if last.key != Some(sample.thread) {
            last.key = Some(sample.thread);
            last.index = self.thread_number(sample.thread);
        }
        let thread = last.index;
        let process = now.process_of(thread);
        last.process = process;
        let mut place = now.place(process, sample.pc, sample.mode);
        if sample.mode == CpuMode::User
            && let Some(detail) = &sample.detail
        {
            place = now.interpreted(process, (sample.pc, place), (sample.time, detail));
        }
        let chain = sample.detail.as_ref().and_then(|d| d.chain.as_ref());
        let node = chain.map_or(ChainTree::NONE, |chain| {
            self.chain_node(chain, sample.mode, process, now)
        });
        if !self.keep_samples {
            return;
        }
        let samples = &mut self.samples;
        if node != ChainTree::NONE && samples.chains.is_empty() {
            samples.chains.resize(samples.times.len(), ChainTree::NONE);
        }
        if node != ChainTree::NONE || !samples.chains.is_empty() {
            samples.chains.push(node);
        }
        samples.times.push(sample.time);
        samples.threads.push(thread);
        samples.places.push(place);
    }

    fn chain_node(
        &mut self,
        chain: &CallChain,
        mode: CpuMode,
        process: ProcessKey,
        now: &mut World,
    ) -> u32 {
        self.samples.truncated_chains += u64::from(chain.truncated);
        let mut node = ChainTree::NONE;
        // From the outermost inwards. A return address belongs to the call before it;
        // the user pc below a kernel sample is no return address.
        for (depth, address) in chain.user.iter().enumerate().rev() {
            let is_pc = depth == 0 && mode == CpuMode::Kernel;
            let call = if is_pc {
                *address
            } else {
                Avma(address.0.saturating_sub(1))
            };
            let place = now.place(process, call, CpuMode::User);
            node = self.chains.child(node, place);
        }
        for address in chain.kernel.iter().rev() {
            let call = Avma(address.0.saturating_sub(1));
            let place = now.place(process, call, CpuMode::Kernel);
            node = self.chains.child(node, place);
        }
        node
    }
}

/// Samples of one thread mostly come one after the other.
#[derive(Debug, Default)]
pub(crate) struct LastThread {
    key: Option<ThreadKey>,
    index: u32,
    process: ProcessKey,
}
