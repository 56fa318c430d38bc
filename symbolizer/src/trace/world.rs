//! Everything that changes with time, as it is now: where an address is.
//!
//! A program repeats its addresses: a small cache answers for the maps. What changes
//! voids the cache for the addresses that it concerns alone, so that code which comes
//! and goes at one place leaves what is known of others.

use super::Place;
use super::interpreted::Interpreters;
use super::state::Change;
use crate::space::{Beginning, Mapped, Spaces};
use crate::zone::{Changed, Claim, Layer, Stay, ZoneEvent, Zones};
use rustc_hash::FxHashMap;
use vmscope_records::{Avma, CpuMode, InterpreterValue, ProcessKey, SampleDetail, TimeNs};

/// Slots of the cache at first: 2^15, 16 bytes each.
const CACHE_BITS: u32 = 15;

/// It grows with the places up to 2^22.
const MAX_CACHE_BITS: u32 = 22;

/// Slots for the kernel's addresses, whose places never change: 2^10.
const KERNEL_BITS: u32 = 10;

/// Addresses that become void together: 2^10 bytes.
const GRAIN_BITS: u32 = 10;

/// Slots for the times at which grains became void: 2^13. Grains that share one become
/// void together.
const STAMP_BITS: u32 = 13;

/// A change of more grains than this voids everything.
const MANY_GRAINS: u64 = 256;

/// The golden ratio's part of 2^64: the upper bits of a product with it depend on all
/// bits of the other factor (Fibonacci hashing).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Debug)]
pub(crate) struct World {
    spaces: Spaces,
    zones: Zones,
    interpreters: Interpreters,
    /// The address space that each thread of the trace is in.
    process_of: Vec<ProcessKey>,
    /// Counts the changes.
    clock: u32,
    /// The last change that voided everything.
    void: u32,
    /// The last change of each grain.
    stamps: Vec<u32>,
    cache: Vec<Known>,
    /// It has 2^n slots.
    cache_bits: u32,
    kernel: Vec<(Avma, u32)>,
    places: Vec<Place>,
    index: FxHashMap<Place, u32>,
}

/// A slot of the cache: where an address of a process was, after so many changes.
///
/// An address times [`GOLDEN`], which is odd, is another for every address. The upper
/// bits of that are the slot's number; the lower ones, with the process in their stead,
/// are kept.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    tag: u64,
    /// 0: nothing is known.
    at: u32,
    place: u32,
}

impl World {
    pub(crate) fn new(
        process_of: impl Iterator<Item = ProcessKey>,
        stays: Vec<Stay>,
        interpreters: Interpreters,
    ) -> Self {
        World {
            spaces: Spaces::default(),
            zones: Zones::new(stays),
            interpreters,
            process_of: process_of.collect(),
            clock: 1,
            void: 1,
            stamps: vec![0; 1 << STAMP_BITS],
            cache: vec![Known::default(); 1 << CACHE_BITS],
            cache_bits: CACHE_BITS,
            // The kernel has nothing at 0.
            kernel: vec![(Avma(0), 0); 1 << KERNEL_BITS],
            places: Vec::new(),
            index: FxHashMap::default(),
        }
    }

    /// How many forked processes could not have the code of their parents.
    pub(crate) fn disinherited(&self) -> u64 {
        self.zones.refused()
    }

    /// The zones, to let them grow.
    pub(crate) fn zones(&mut self) -> &mut Zones {
        &mut self.zones
    }

    /// More threads are known: the process of each is `of` its index, as it was told.
    pub(crate) fn know_threads(&mut self, count: usize, of: impl Fn(usize) -> ProcessKey) {
        let nobody = ProcessKey(u32::MAX);
        self.process_of
            .resize(count.max(self.process_of.len()), nobody);
        let unknown = self.process_of.iter_mut().enumerate();
        for (index, process) in unknown.filter(|(_, process)| **process == nobody) {
            *process = of(index);
        }
    }

    /// More is known of interpreters.
    pub(crate) fn know_interpreters(&mut self, interpreters: Interpreters) {
        self.interpreters = interpreters;
    }

    /// All places so far.
    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// From now on only these are the places, in this order.
    pub(crate) fn replace_places(&mut self, places: Vec<Place>) {
        self.index = places.iter().copied().zip(0..).collect();
        self.places = places;
        self.kernel.fill((Avma(0), 0));
        self.void_all();
    }

    /// A process is over, and no sample of it will come.
    pub(crate) fn forget(&mut self, process: ProcessKey) {
        self.zones.forget(process);
        self.spaces.forget(process);
        self.void_all();
    }

    pub(crate) fn into_places(self) -> Vec<Place> {
        self.places
    }

    /// Something changes. Of a process that begins, `holds` says whether it was forked;
    /// of a mapping, whether it is of a file with code.
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
            // The address spaces stay as they are.
            Change::Exec(thread, process) => {
                if let Some(slot) = self.process_of.get_mut(thread as usize) {
                    *slot = process;
                }
            }
        }
    }

    pub(crate) fn zone(&mut self, event: ZoneEvent) {
        // What is known of a pc does not depend on data.
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

    /// Voids what is known of `[start, end)`.
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
            // As good as new.
            self.cache.fill(Known::default());
            self.stamps.fill(0);
            self.void = 1;
            1
        });
    }

    /// A thread that was never told of is in no process.
    pub(crate) fn process_of(&self, thread: u32) -> ProcessKey {
        let process = self.process_of.get(thread as usize);
        process.copied().unwrap_or(ProcessKey(u32::MAX))
    }

    /// The index of the place of an address, found or made.
    pub(crate) fn place(&mut self, process: ProcessKey, address: Avma, mode: CpuMode) -> u32 {
        match mode {
            CpuMode::Kernel => return self.kernel_place(address),
            CpuMode::Idle => return self.intern(Place::Idle),
            _ => {}
        }
        // A key that is not below 2^15 is nobody's in practice.
        if process.0 >> CACHE_BITS != 0 {
            let place = self.find(process, address);
            return self.intern(place);
        }
        let slot = slot(address.0, self.cache_bits);
        let tag = address.0.wrapping_mul(GOLDEN) << self.cache_bits | u64::from(process.0);
        let grain = stamp_slot(process, address.0 >> GRAIN_BITS);
        let void = self.stamps.get(grain).map_or(self.void, |stamp| *stamp);
        let void = void.max(self.void);
        // A place may be in either slot of a pair, which are in one line of memory.
        let pair = [slot, slot ^ 1].map(|slot| self.cache.get(slot).copied().unwrap_or_default());
        if let Some(known) = pair.iter().find(|k| k.tag == tag && k.at >= void) {
            return known.place;
        }
        let slot = if pair[0].at > pair[1].at {
            slot ^ 1
        } else {
            slot
        };
        let place = self.find(process, address);
        let place = self.intern(place);
        if self.grow_cache() {
            return place;
        }
        if let Some(known) = self.cache.get_mut(slot) {
            let at = self.clock;
            *known = Known { tag, at, place };
        }
        place
    }

    /// Grows the cache until it has two slots for each place. Returns whether it did: slots
    /// are others then.
    fn grow_cache(&mut self) -> bool {
        let grows = self.places.len() * 2 > self.cache.len() && self.cache_bits < MAX_CACHE_BITS;
        if grows {
            self.cache_bits = (self.cache_bits + 2).min(MAX_CACHE_BITS);
            self.cache = vec![Known::default(); 1 << self.cache_bits];
        }
        grows
    }

    /// Brings what the cache knows of these addresses near: loads that do not wait for one
    /// another are much faster than one after the other.
    pub(super) fn warm(&self, addresses: impl Iterator<Item = Avma>) {
        let slots = addresses.map(|address| slot(address.0, self.cache_bits));
        let known = slots.filter_map(|slot| self.cache.get(slot));
        std::hint::black_box(known.fold(0, |sum, known| sum ^ known.place));
    }

    /// The index of the place of a sample at `place`, if that is in an interpreter which
    /// shows in `detail` what it executes: else `place` itself.
    pub(crate) fn interpreted(
        &mut self,
        process: ProcessKey,
        (pc, place): (Avma, u32),
        (time, detail): (TimeNs, &SampleDetail),
    ) -> u32 {
        let Some(rules) = self.interpreters.at(process, pc) else {
            return place;
        };
        let Some(&Place::Code(handler, _)) = self.places.get(place as usize) else {
            return place;
        };
        for source in &rules.sources {
            let Some(value) = source.place.value(detail) else {
                continue;
            };
            let layer = match source.holds {
                InterpreterValue::Bytecode => Layer::Bytecodes,
                InterpreterValue::Method => Layer::Methods,
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
            return self.intern(found);
        }
        place
    }

    fn kernel_place(&mut self, address: Avma) -> u32 {
        let slot = slot(address.0, KERNEL_BITS);
        if let Some((known, place)) = self.kernel.get(slot)
            && *known == address
            && address.0 != 0
        {
            return *place;
        }
        let place = self.intern(Place::Kernel(address));
        if let Some(known) = self.kernel.get_mut(slot) {
            *known = (address, place);
        }
        place
    }

    fn find(&self, process: ProcessKey, address: Avma) -> Place {
        match self.zones.lookup(process, Layer::Code, address) {
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

fn slot(key: u64, bits: u32) -> usize {
    usize::try_from(key.wrapping_mul(GOLDEN) >> (64 - bits)).unwrap_or(0)
}

fn stamp_slot(process: ProcessKey, grain: u64) -> usize {
    slot(grain ^ u64::from(process.0) << 40, STAMP_BITS)
}
