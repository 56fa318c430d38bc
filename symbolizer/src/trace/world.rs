//! Address spaces and code zones at one time, for the lookup of addresses.
//!
//! A program repeats its addresses, so a small cache answers most lookups. Changes void only
//! their own addresses: code that comes and goes at one place leaves other cached places
//! valid.

use super::interpreted::Interpreters;
use super::known::{Cache, slot};
use super::near::Nearby;
use super::places::Places;
use super::state::Change;
use super::{Place, TraceThread};
use crate::ids::{IndexVec, PlaceId, PlacementId, ThreadId};
use crate::space::{Beginning, Mapped, Spaces};
use crate::zone::{Changed, Claim, Layer, Placement, ZoneEvent, Zones};
use vmscope_records::{
    Avma, CpuMode, InterpreterValue, ProcessKey, SampleDetail, ThreadRole, TimeNs,
};

/// Slots for kernel addresses, whose places never change: 2^10.
const KERNEL_BITS: u32 = 10;

/// Addresses voided together: 2^10 bytes.
const GRAIN_BITS: u32 = 10;

/// Slots for the last changes of grains: 2^16. Grains with a common slot are voided together. A
/// fuzzer makes them for each input.
const STAMP_BITS: u32 = if cfg!(fuzzing) { 6 } else { 16 };

/// A change of more grains than this voids everything.
const MANY_GRAINS: u64 = 256;

/// No process.
const NOWHERE: ProcessKey = ProcessKey(u32::MAX);

#[derive(Debug)]
pub(crate) struct World {
    spaces: Spaces,
    zones: Zones,
    interpreters: Interpreters,
    /// The threads' address spaces.
    process_of: IndexVec<ThreadId, ProcessKey>,
    /// Counts the changes.
    clock: u32,
    /// The last change that voided everything.
    void: u32,
    /// The last change of each grain.
    stamps: Vec<u32>,
    cache: Cache,
    kernel: Vec<(Avma, Option<PlaceId>)>,
    nearby: Nearby,
    pub(super) places: Places,
}

impl World {
    pub(crate) fn new(
        process_of: impl Iterator<Item = ProcessKey>,
        placements: IndexVec<PlacementId, Placement>,
        interpreters: Interpreters,
    ) -> Self {
        World {
            spaces: Spaces::default(),
            zones: Zones::new(placements),
            interpreters,
            process_of: process_of.collect(),
            clock: 1,
            void: 1,
            stamps: vec![0; 1 << STAMP_BITS],
            cache: Cache::new(),
            kernel: vec![(Avma(0), None); 1 << KERNEL_BITS],
            nearby: Nearby::new(),
            places: Places::default(),
        }
    }

    /// The number of forked processes without the code of their parents.
    pub(crate) fn disinherited(&self) -> u64 {
        self.zones.refused()
    }

    /// The zones, for adding placements.
    pub(crate) fn zones(&mut self) -> &mut Zones {
        &mut self.zones
    }

    /// Adds threads.
    pub(crate) fn know_threads(&mut self, threads: &IndexVec<ThreadId, TraceThread>) {
        for (id, thread) in threads.enumerated() {
            let process = self.process_of.slot(id, NOWHERE);
            if *process == NOWHERE {
                *process = thread.thread.process;
            }
        }
    }

    /// Frees indices of threads.
    pub(crate) fn forget_threads(&mut self, threads: &[ThreadId]) {
        for &thread in threads {
            *self.process_of.slot(thread, NOWHERE) = NOWHERE;
        }
    }

    /// The number of known address spaces.
    #[cfg(test)]
    pub(crate) fn spaces(&self) -> usize {
        self.spaces.len()
    }

    /// Replaces the rules of interpreters.
    pub(crate) fn know_interpreters(&mut self, interpreters: Interpreters) {
        self.interpreters = interpreters;
    }

    /// All places so far.
    pub(crate) fn places(&self) -> &IndexVec<PlaceId, Place> {
        &self.places.all
    }

    /// Replaces all places.
    pub(crate) fn replace_places(&mut self, places: IndexVec<PlaceId, Place>) {
        self.places = Places::new(places);
        self.kernel.fill((Avma(0), None));
        self.void_all();
    }

    /// Drops an ended process, which gets no more samples.
    pub(crate) fn forget(&mut self, process: ProcessKey) {
        self.zones.forget(process);
        self.spaces.forget(process);
        self.void_all();
    }

    pub(crate) fn into_places(self) -> IndexVec<PlaceId, Place> {
        self.places.all
    }

    /// Applies a change. `holds` is true for the begin of a forked process, and for a mapping of
    /// a file's code.
    pub(crate) fn change(&mut self, change: Change, holds: bool) {
        match change {
            Change::Begin(process) => {
                match self.spaces.begin(&process, holds) {
                    Beginning::New => {
                        if let Some(parent) = process.parent.filter(|_| holds) {
                            self.zones.fork(parent, process.key);
                        }
                    }
                    Beginning::Anew => self.zones.disinherit(process.key),
                    Beginning::Again => {}
                }
                self.void_all();
            }
            Change::End(process) => self.zones.end(process),
            Change::Map(mapping) => {
                let (process, time) = (mapping.process, mapping.time);
                let mut range = (mapping.start.0, mapping.end.0);
                if holds && self.spaces.is_new(&mapping) {
                    range = self.zones.cover(process, range, time);
                }
                self.spaces.map(&mapping);
                self.void(process, range.0, range.1);
            }
            Change::Unmap(unmapping) => {
                self.spaces.unmap(&unmapping);
                self.void(unmapping.process, unmapping.start.0, unmapping.end.0);
            }
            // Address spaces do not change.
            Change::Exec(thread, process) => {
                *self.process_of.slot(thread, NOWHERE) = process;
            }
        }
    }

    pub(crate) fn zone(&mut self, event: ZoneEvent) {
        // Places of pcs do not depend on data.
        if let Some(Changed {
            process,
            layer: Layer::Code,
            start,
            end,
        }) = self.zones.apply(event)
        {
            self.void(process, start, end);
        }
    }

    /// Voids the cache for `[start, end)`.
    fn void(&mut self, process: ProcessKey, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let (first, last) = (start >> GRAIN_BITS, (end - 1) >> GRAIN_BITS);
        if last - first >= MANY_GRAINS {
            self.void_all();
            return;
        }
        self.tick();
        for grain in first..=last {
            if let Some(stamp) = self.stamps.get_mut(stamp_slot(process, grain)) {
                *stamp = self.clock;
            }
        }
    }

    fn void_all(&mut self) {
        self.tick();
        self.void = self.clock;
    }

    fn tick(&mut self) {
        self.clock = self.clock.checked_add(1).unwrap_or_else(|| {
            // An empty cache needs no history.
            self.cache.clear();
            self.nearby.clear();
            self.stamps.fill(0);
            self.void = 1;
            1
        });
    }

    /// The process of a thread; unknown threads have none.
    pub(crate) fn process_of(&self, thread: ThreadId) -> ProcessKey {
        self.process_of.get(thread).copied().unwrap_or(NOWHERE)
    }

    /// The place of an address, found or made.
    pub(crate) fn place(&mut self, process: ProcessKey, address: Avma, mode: CpuMode) -> PlaceId {
        match mode {
            CpuMode::Kernel => return self.kernel_place(address),
            CpuMode::Idle => return self.places.intern(Place::Idle),
            _ => {}
        }
        let Some(key) = self.cache.key(process, address) else {
            let place = self.find(process, address, self.clock);
            return self.places.intern(place);
        };
        let grain = stamp_slot(process, address.0 >> GRAIN_BITS);
        let void = self.stamps.get(grain).map_or(self.void, |stamp| *stamp);
        let void = void.max(self.void);
        let known = self.cache.get(key);
        if let Some((place, at)) = known
            && at >= void
        {
            return place;
        }
        let place = self.find(process, address, void);
        // Changes nearby mostly keep the place. Renumbered places leave stale ids here.
        let same = known.filter(|(known, _)| self.places.all.get(*known) == Some(&place));
        let (place, key) = match same {
            Some((known, _)) => (known, Some(key)),
            None => {
                let place = self.places.intern(place);
                self.cache.grow(self.places.all.len());
                (place, self.cache.key(process, address))
            }
        };
        if let Some(key) = key {
            self.cache.put(key, self.clock, place);
        }
        place
    }

    /// Prefetches the cache for these addresses, as addresses of one process.
    pub(super) fn warm(&self, process: ProcessKey, addresses: impl Iterator<Item = Avma> + Clone) {
        self.cache.warm(addresses.clone());
        let grains = addresses.map(|address| stamp_slot(process, address.0 >> GRAIN_BITS));
        let stamps = grains.filter_map(|grain| self.stamps.get(grain));
        std::hint::black_box(stamps.fold(0, |sum, stamp| sum ^ stamp));
    }

    /// The interpreted place of a sample in an interpreter, if `detail` shows a method; the place
    /// with its caller in code without a frame; otherwise `place` itself.
    pub(crate) fn interpreted(
        &mut self,
        process: ProcessKey,
        (pc, place): (Avma, PlaceId),
        (time, detail): (TimeNs, &SampleDetail),
    ) -> PlaceId {
        let Some(rules) = self.interpreters.at(process, pc) else {
            return place;
        };
        let Place::Code(handler, _) = self.places.all[place] else {
            return place;
        };
        for source in &rules.sources {
            let Some(value) = source.place.value(detail) else {
                continue;
            };
            let layer = match source.holds {
                InterpreterValue::Bytecode => Layer::Bytecodes,
                InterpreterValue::Method => Layer::Methods,
                InterpreterValue::Caller => {
                    // The return address belongs to the call before it.
                    let call = Avma(value.saturating_sub(1));
                    let Some(Claim::One(caller, offset)) =
                        self.zones.lookup(process, Layer::Code, call)
                    else {
                        continue;
                    };
                    let code = handler;
                    let called = Place::Called {
                        code,
                        caller,
                        offset,
                    };
                    return self.places.intern(called);
                }
            };
            let found = match self.zones.lookup(process, layer, Avma(value)) {
                Some(Claim::One(bytecodes, bytecode)) if layer == Layer::Bytecodes => {
                    Place::Interpreted {
                        handler,
                        bytecodes,
                        bytecode,
                    }
                }
                Some(Claim::One(method, 0)) => Place::Entering { handler, method },
                Some(Claim::One(..)) => continue,
                None => {
                    self.zones.miss(process, layer, Avma(value), time);
                    continue;
                }
                Some(Claim::Doubtful) => Place::Doubtful,
            };
            return self.places.intern(found);
        }
        place
    }

    /// The place of an interpreted caller, whose bytecode or method object is at `at`.
    pub(crate) fn interpreted_caller(&mut self, process: ProcessKey, at: Avma) -> Option<PlaceId> {
        let claim = |layer| self.zones.lookup(process, layer, at);
        let found = match claim(Layer::Bytecodes).or_else(|| claim(Layer::Methods)) {
            Some(Claim::One(data, offset)) => Place::Interpreted {
                handler: data,
                bytecodes: data,
                bytecode: offset,
            },
            Some(Claim::Doubtful) => Place::Doubtful,
            None => return None,
        };
        Some(self.places.intern(found))
    }

    /// The place of generated code without a constituent.
    pub(crate) fn unknown_code(&mut self) -> PlaceId {
        self.places.intern(Place::Generated)
    }

    /// The place of native code on a thread with a role.
    pub(crate) fn on_thread(&mut self, place: PlaceId, role: ThreadRole) -> PlaceId {
        // First, because a look at the place mostly waits for memory.
        if role == ThreadRole::Other {
            return place;
        }
        match self.places.all[place] {
            Place::Native(module, offset, ThreadRole::Other) => {
                self.places.intern(Place::Native(module, offset, role))
            }
            _ => place,
        }
    }

    fn kernel_place(&mut self, address: Avma) -> PlaceId {
        let (known, place) = &mut self.kernel[slot(address.0, KERNEL_BITS)];
        if *known != address {
            (*known, *place) = (address, None);
        }
        *place.get_or_insert_with(|| self.places.intern(Place::Kernel(address)))
    }

    /// Finds the place of an address; cached ranges count from `void` changes on.
    fn find(&mut self, process: ProcessKey, address: Avma, void: u32) -> Place {
        if let Some((code, offset)) = self.nearby.find(process, address, void) {
            return Place::Code(code, offset);
        }
        let (claim, near) = self.zones.lookup_near(process, Layer::Code, address);
        if let Some(near) = near {
            self.nearby.put(process, address, near, self.clock);
        }
        match claim {
            Some(Claim::One(code, offset)) => return Place::Code(code, offset),
            Some(Claim::Doubtful) => return Place::Doubtful,
            None => {}
        }
        match self.spaces.lookup(process, address) {
            Some(Mapped::File(module, offset)) => Place::Native(module, offset, ThreadRole::Other),
            Some(Mapped::Anonymous) => Place::Generated,
            None => Place::Unmapped,
        }
    }
}

fn stamp_slot(process: ProcessKey, grain: u64) -> usize {
    slot(grain ^ u64::from(process.0) << 40, STAMP_BITS)
}
