//! The second pass: the samples, each put where its address was at its time.
//!
//! What changes with time is applied as its time comes, so that a lookup costs the
//! same however often addresses were reused. A program repeats its addresses: as long
//! as nothing changes, a small cache answers for the maps.

use super::state::Change;
use super::{ChainTree, Place, Trace, TraceError};
use crate::space::{Mapped, Spaces};
use crate::zone::{Claim, Code, ZoneEvent, Zones};
use rustc_hash::FxHashMap;
use std::io::{Read, Seek};
use vmscope_records::recording::{Item, Reader};
use vmscope_records::{Avma, CallChain, Content, CpuMode, ProcessKey, Sample, ThreadKey, TimeNs};

/// Slots of the cache: 2^13, 32 bytes each.
const CACHE_BITS: u32 = 13;

impl Trace {
    /// Reads the samples, with the changes applied as their time comes.
    pub(super) fn place_samples<R: Read + Seek>(
        &mut self,
        reader: &mut Reader<R>,
        changes: Vec<(TimeNs, Change)>,
    ) -> Result<(), TraceError> {
        // Address spaces and code zones do not see each other: two streams.
        let mut zone_events = self.code.events().into_iter().peekable();
        let mut changes = changes.into_iter().peekable();
        let mut now = World::new(self.threads.iter().map(|thread| thread.thread.process));
        let mut last = LastThread::default();
        let mut latest = TimeNs(0);
        reader.rewind();
        while let Some(chunk) = reader.next_chunk(Content::SAMPLES)? {
            // What is not only samples was counted in the first pass.
            let first_seen = u64::from(chunk.content() == Content::SAMPLES);
            for item in chunk.items() {
                let batch = match item {
                    Item::Samples(batch) => batch,
                    Item::Record(_) => continue,
                    Item::Unknown(_) => {
                        self.unknown_records += first_seen;
                        continue;
                    }
                    Item::Malformed(..) => {
                        self.malformed_records += first_seen;
                        continue;
                    }
                };
                if self.keep_samples {
                    self.samples.reserve(batch.len());
                }
                for sample in batch {
                    self.disordered_samples += u64::from(sample.time < latest);
                    latest = latest.max(sample.time);
                    while let Some((_, change)) = changes.next_if(|(time, _)| *time <= sample.time)
                    {
                        let forked = match &change {
                            Change::Begin(process) => self.is_fork(process),
                            _ => false,
                        };
                        now.change(change, forked);
                    }
                    while let Some((_, event)) =
                        zone_events.next_if(|(time, _)| *time <= sample.time)
                    {
                        now.zone(event, &self.code);
                    }
                    self.place_sample(&sample, &mut now, &mut last);
                }
            }
        }
        self.places = now.places;
        Ok(())
    }

    fn place_sample(&mut self, sample: &Sample, now: &mut World, last: &mut LastThread) {
        if last.key != Some(sample.thread) {
            last.key = Some(sample.thread);
            last.index = self.thread_number(sample.thread);
        }
        let thread = last.index;
        let process = now.process_of(thread);
        let place = now.place(process, sample.pc, sample.mode);
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
struct LastThread {
    key: Option<ThreadKey>,
    index: u32,
}

/// Everything that changes with time, as it is now.
#[derive(Debug)]
struct World {
    spaces: Spaces,
    zones: Zones,
    /// The address space that each thread of the trace is in.
    process_of: Vec<ProcessKey>,
    /// Counts the changes: what the cache knows from before one is void.
    epoch: u64,
    cache: Vec<Known>,
    places: Vec<Place>,
    index: FxHashMap<Place, u32>,
}

/// A slot of the cache: where an address of a process was, in an epoch.
#[derive(Clone, Copy, Debug)]
struct Known {
    address: Avma,
    epoch: u64,
    process: ProcessKey,
    place: u32,
}

impl World {
    fn new(process_of: impl Iterator<Item = ProcessKey>) -> Self {
        // No epoch is 0.
        let nothing = Known {
            address: Avma(0),
            epoch: 0,
            process: ProcessKey(0),
            place: 0,
        };
        World {
            spaces: Spaces::default(),
            zones: Zones::default(),
            process_of: process_of.collect(),
            epoch: 1,
            cache: vec![nothing; 1 << CACHE_BITS],
            places: Vec::new(),
            index: FxHashMap::default(),
        }
    }

    fn change(&mut self, change: Change, forked: bool) {
        self.epoch += 1;
        match change {
            Change::Begin(process) => self.spaces.begin(&process, forked),
            Change::Map(mapping) => self.spaces.map(&mapping),
            Change::Unmap(unmapping) => self.spaces.unmap(&unmapping),
            Change::Exec(thread, process) => {
                if let Some(slot) = self.process_of.get_mut(thread as usize) {
                    *slot = process;
                }
            }
        }
    }

    fn zone(&mut self, event: ZoneEvent, code: &Code) {
        self.epoch += 1;
        self.zones.apply(event, code);
    }

    /// A thread that was never told of is in no process.
    fn process_of(&self, thread: u32) -> ProcessKey {
        let process = self.process_of.get(thread as usize);
        process.copied().unwrap_or(ProcessKey(u32::MAX))
    }

    /// The index of the place of an address, found or made.
    fn place(&mut self, process: ProcessKey, address: Avma, mode: CpuMode) -> u32 {
        match mode {
            CpuMode::Kernel => return self.intern(Place::Kernel(address)),
            CpuMode::Idle => return self.intern(Place::Idle),
            _ => {}
        }
        // Fibonacci hashing: the upper bits of the product depend on all of the address.
        let hash = (address.0 ^ u64::from(process.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = usize::try_from(hash >> (64 - CACHE_BITS)).unwrap_or(0);
        if let Some(known) = self.cache.get(slot)
            && known.epoch == self.epoch
            && known.address == address
            && known.process == process
        {
            return known.place;
        }
        let place = self.find(process, address);
        let place = self.intern(place);
        if let Some(known) = self.cache.get_mut(slot) {
            *known = Known {
                address,
                epoch: self.epoch,
                process,
                place,
            };
        }
        place
    }

    fn find(&self, process: ProcessKey, address: Avma) -> Place {
        match self.zones.lookup(process, address) {
            Some(Claim::One(code, offset)) => return Place::Code(code, offset),
            Some(Claim::Doubtful) => return Place::Doubtful,
            None => {}
        }
        match self.spaces.lookup(process, address) {
            Some(Mapped::File(module, offset)) => Place::Native(module, offset),
            Some(Mapped::Anonymous) => Place::Generated,
            None => Place::Unmapped,
        }
    }

    fn intern(&mut self, place: Place) -> u32 {
        *self.index.entry(place).or_insert_with(|| {
            self.places.push(place);
            // More than 2^32 distinct places would not fit into memory either.
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        })
    }
}
