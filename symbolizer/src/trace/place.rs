//! Placing samples: each sample gets the place of its address at its time.
//!
//! Changes are applied in time order, so a lookup costs the same however often addresses were
//! reused.

use super::ahead::each_item;
use super::interpreted::Interpreters;
use super::state::{Change, Changes, MAX_MAPPINGS};
use super::world::World;
use super::{Place, Trace, TraceError, Watch};
use crate::ids::{ChainId, ThreadId};
use crate::zone::ZoneEvent;
use std::io::{Read, Seek};
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::vec::IntoIter;
use vmscope_records::recording::{Item, Reader};
use vmscope_records::{
    Avma, CallChain, ChainEnd, Content, CpuMode, Limit, LimitKind, ProcessKey, Sample, ThreadKey,
    ThreadRole, TimeNs,
};

/// Maximum number of callers in a sample, kernel and program each: the engine's greatest depth.
const MAX_CALLERS: usize = u16::MAX as usize;

/// The number of samples whose addresses are prefetched together.
const WARM: usize = 64;

impl Trace {
    /// The second pass: reads and places the samples of a recording.
    pub(crate) fn place_samples<R: Read + Seek + Send>(
        &mut self,
        reader: &mut Reader<R>,
        (mut changes, is_storm): (Changes, bool),
        watch: Watch,
    ) -> Result<(), TraceError> {
        let history = self.code.history();
        self.code.forget_keys();
        let mut zone_events = history.events.into_iter().peekable();
        let process_of = self.threads.iter().map(|thread| thread.thread.process);
        let interpreters = Interpreters::new(self);
        let world = World::new(process_of, history.placements, interpreters);
        let mut placing = Placing::new(world);
        if let Some(end) = self.end.as_ref().filter(|_| self.keep_samples) {
            // A sample takes a byte at least, whatever the recording claims.
            let (_, bytes) = reader.progress();
            let count = end
                .samples
                .min(bytes)
                .min(self.max_memory / size_of::<u64>() as u64);
            let count = usize::try_from(count).unwrap_or(0);
            self.samples.expect(count);
        }
        let (mut mappings, mut number) = (0, changes.len() as u64);
        let wanted = match is_storm {
            true => Content(Content::SAMPLES.0 | Content::STATE.0),
            false => Content::SAMPLES,
        };
        let unread = each_item(reader, wanted, (1, watch), |content, item, _| {
            // The first pass counted the items of mixed chunks.
            let first_seen = u64::from(content == Content::SAMPLES);
            let batch = match item {
                Item::Samples(batch) => batch,
                Item::Record(record) => {
                    // State comes before the samples that need it.
                    if let Some((time, change)) = Change::of_mapping(record) {
                        mappings += 1;
                        if is_storm && mappings > MAX_MAPPINGS {
                            changes.insert((time, number), change);
                            number += 1;
                            placing.expect_more();
                        }
                    }
                    return match self.is_full_of(&changes) {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    };
                }
                Item::Unknown(_) => {
                    self.unknown_records += first_seen;
                    return ControlFlow::Continue(());
                }
                Item::Malformed(..) => {
                    self.malformed_records += first_seen;
                    return ControlFlow::Continue(());
                }
            };
            if self.keep_samples {
                self.samples.reserve(batch.len());
            }
            placing.place(self, &batch, &mut changes, &mut zone_events)
        })?;
        if let Some((offset, length)) = unread {
            self.note_unread(offset, length);
        }
        self.tell_disinherited(placing.world.disinherited(), placing.latest);
        self.places = placing.world.into_places();
        Ok(())
    }

    /// Applies a change.
    fn bring_about(&self, change: Change, now: &mut World) {
        let holds = match &change {
            Change::Begin(process) => self.is_fork(process),
            Change::Map(mapping) => self.is_file_with_code(mapping),
            _ => false,
        };
        now.change(change, holds);
    }

    fn tell_disinherited(&mut self, processes: u64, time: TimeNs) {
        if processes > 0 {
            self.limits.push(Limit {
                time,
                kind: LimitKind::Other,
                text: format!(
                    "{processes} forked processes inherited too much JIT code: it has no names \
                     there"
                ),
                remedy: "record fewer processes, or for a shorter time".into(),
            });
        }
    }

    fn place_sample(&mut self, sample: &Sample, now: &mut World, last: &mut LastThread) {
        let thread = match last.thread {
            Some((key, id)) if key == sample.thread => id,
            _ => {
                let id = self.thread_number(sample.thread);
                last.thread = Some((sample.thread, id));
                last.role = match self.asks_for_roles {
                    true => self.threads[id].thread.role,
                    false => ThreadRole::Other,
                };
                id
            }
        };
        let process = now.process_of(thread);
        last.process = process;
        let place = now.place(process, sample.pc, sample.mode);
        let mut place = now.on_thread(place, last.role);
        if sample.mode == CpuMode::User
            && let Some(detail) = &sample.detail
        {
            place = now.interpreted(process, (sample.pc, place), (sample.time, detail));
        }
        let chain = sample.detail.as_ref().and_then(|d| d.chain.as_ref());
        let chain =
            chain.and_then(|chain| self.chain_node(chain, sample.mode, (process, last.role), now));
        if !self.keep_samples {
            return;
        }
        let samples = &mut self.samples;
        if chain.is_some() && samples.chains.is_empty() {
            samples.chains.resize(samples.times.len(), None);
        }
        if chain.is_some() || !samples.chains.is_empty() {
            samples.chains.push(chain);
        }
        samples.times.push(sample.time);
        samples.threads.push(thread);
        samples.places.push(place);
    }

    fn chain_node(
        &mut self,
        chain: &CallChain,
        mode: CpuMode,
        (process, role): (ProcessKey, ThreadRole),
        now: &mut World,
    ) -> Option<ChainId> {
        let user = chain.user.get(..MAX_CALLERS).unwrap_or(&chain.user);
        let kernel = chain.kernel.get(..MAX_CALLERS).unwrap_or(&chain.kernel);
        let is_cut = user.len() < chain.user.len() || kernel.len() < chain.kernel.len();
        let mut node = None;
        let mut is_broken = false;
        // From the outermost inwards. A return address belongs to the call before it;
        // the user pc below a kernel sample is no return address.
        for (depth, address) in user.iter().enumerate().rev() {
            let is_pc = depth == 0 && mode == CpuMode::Kernel;
            let call = if is_pc {
                *address
            } else {
                Avma(address.0.saturating_sub(1))
            };
            let place = now.place(process, call, CpuMode::User);
            let mut place = now.on_thread(place, role);
            let mut is_caller = now.places.all[place] != Place::Unmapped;
            // During execve, samples still show the pc of the earlier program, which is no longer mapped.
            let is_lone_pc = is_pc && user.len() == 1;
            // An interpreted caller has the address of its bytecode. Where nothing is mapped, a frame
            // pointer leads to no caller: what lies outside is no caller, either.
            if !is_caller && let Some(interpreted) = now.interpreted_caller(process, call) {
                (place, is_caller) = (interpreted, true);
            } else if !is_caller
                && !is_lone_pc
                && !matches!(chain.end, ChainEnd::Unknown | ChainEnd::Depth)
            {
                (place, is_caller) = (now.unknown_code(), true);
            }
            is_broken |= !is_caller;
            node = match is_caller {
                true => Some(self.chains.put(node, place)),
                false => None,
            };
        }
        let end = match chain.end {
            _ if is_broken => ChainEnd::Broken,
            _ if is_cut => ChainEnd::Depth,
            end => end,
        };
        self.samples.chain_ends.count(end, chain);
        for address in kernel.iter().rev() {
            let call = Avma(address.0.saturating_sub(1));
            let place = now.place(process, call, CpuMode::Kernel);
            node = Some(self.chains.put(node, place));
        }
        node
    }
}

/// The one way of placing samples, for finished and growing recordings.
#[derive(Debug)]
pub(crate) struct Placing {
    pub world: World,
    /// The time of the latest sample.
    pub latest: TimeNs,
    /// No change comes before this time.
    next: TimeNs,
    last: LastThread,
}

/// Pending changes in time order.
pub(crate) trait Upcoming<T> {
    /// The time of the next change.
    fn next_time(&mut self) -> Option<TimeNs>;
    /// Takes the next change.
    fn take_next(&mut self) -> Option<T>;
}

impl Upcoming<Change> for Changes {
    fn next_time(&mut self) -> Option<TimeNs> {
        self.first_key_value().map(|((time, _), _)| *time)
    }

    fn take_next(&mut self) -> Option<Change> {
        self.pop_first().map(|(_, change)| change)
    }
}

impl Upcoming<ZoneEvent> for Peekable<IntoIter<ZoneEvent>> {
    fn next_time(&mut self) -> Option<TimeNs> {
        self.peek().map(|event| event.time)
    }

    fn take_next(&mut self) -> Option<ZoneEvent> {
        self.next()
    }
}

impl Placing {
    pub fn new(world: World) -> Self {
        Placing {
            world,
            latest: TimeNs(0),
            next: TimeNs(0),
            last: LastThread::default(),
        }
    }

    /// Places samples and adds them to the trace; breaks where its memory is full.
    pub fn place(
        &mut self,
        trace: &mut Trace,
        samples: &[Sample],
        changes: &mut impl Upcoming<Change>,
        events: &mut impl Upcoming<ZoneEvent>,
    ) -> ControlFlow<()> {
        // Its role may be new.
        self.last.thread = None;
        for part in samples.chunks(WARM) {
            let addresses = part.iter().map(|sample| sample.pc);
            self.world.warm(self.last.process, addresses);
            for sample in part {
                trace.disordered_samples += u64::from(sample.time < self.latest);
                self.latest = self.latest.max(sample.time);
                self.advance(trace, sample.time, changes, events);
                trace.place_sample(sample, &mut self.world, &mut self.last);
                if sample.detail.is_some() && trace.is_full(&self.world) {
                    return ControlFlow::Break(());
                }
            }
            if trace.is_full(&self.world) {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    /// Applies all changes up to and including `time`.
    pub fn advance(
        &mut self,
        trace: &Trace,
        time: TimeNs,
        changes: &mut impl Upcoming<Change>,
        events: &mut impl Upcoming<ZoneEvent>,
    ) {
        while self.next <= time {
            let (change, event) = (changes.next_time(), events.next_time());
            let Some(first) = change.into_iter().chain(event).min() else {
                self.next = TimeNs(u64::MAX);
                return;
            };
            if first > time {
                self.next = first;
            } else if event == Some(first) {
                // Before changes: a fork inherits the present code.
                if let Some(event) = events.take_next() {
                    self.world.zone(event);
                }
            } else if let Some(change) = changes.take_next() {
                trace.bring_about(change, &mut self.world);
            }
        }
    }

    /// Pending changes were added.
    pub fn expect_more(&mut self) {
        self.next = TimeNs(0);
    }

    /// Threads may have new indices.
    pub fn forget_last_thread(&mut self) {
        self.last = LastThread::default();
    }
}

/// The thread of the last sample: mostly the next one's, too.
#[derive(Debug, Default)]
struct LastThread {
    thread: Option<(ThreadKey, ThreadId)>,
    process: ProcessKey,
    /// Its role, if region rules ask for roles.
    role: ThreadRole,
}
