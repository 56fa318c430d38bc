//! Allocation by the running code, and its allocation sites.

use rustc_hash::{FxHashMap, FxHashSet};
use vmscope_publish::LifetimeRate;
use vmscope_publish::event::SiteFrame;

use super::objects;
use super::raw::{Fp, Ip};
use super::vm::{Vm, now_ns};
use crate::compiler::bytecodes;
use crate::image::Method;
use crate::memory::{Format, Oop};
use crate::publish::FINALIZATION_PROFILER;

/// Most known sites. Further sites are unknown: 0.
const MOST_SITES: usize = 1 << 16;
/// Number of entries in the cache of places; a power of two.
const PLACES: usize = 4096;
/// Number of births that are published together.
const BIRTHS: usize = 256;
/// Allocations by methods of this class, or of the profiler by finalization, count for their
/// callers.
const TRANSPARENT: &str = "Behavior";

/// Number of callers of an allocation site that may be the pretenured site: it copies a collection,
/// for instance, and the copying method allocates.
const CALLERS: usize = 3;

/// A frame of a site in a word: method id, then bytecode pc. 0: a frame to skip.
type Packed = u64;

/// Meaning of an address in code: the bytecode before it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct Place {
    /// Address of a bytecode or of machine code.
    pc: u64,
    frame: Packed,
    /// Site of the frame without callers.
    site: u32,
    is_pretenured: bool,
}

/// Number of births that share a reading of the clock.
const READINGS: u32 = 16;

/// The time of births. Reading the clock would be the larger part of a birth's cost, so up to
/// [`READINGS`] births share a reading. Each check for interrupts forgets the reading: a time is
/// late by no more than the heartbeat's period.
#[derive(Debug, Default)]
pub(crate) struct BirthClock {
    time: u64,
    left: u32,
}

impl BirthClock {
    fn time(&mut self) -> u64 {
        if self.left == 0 {
            *self = Self {
                time: now_ns(),
                left: READINGS,
            };
        }
        self.left -= 1;
        self.time
    }

    /// Forgets the reading.
    pub fn forget(&mut self) {
        self.left = 0;
    }
}

/// The allocation sites.
#[derive(Debug, Default)]
pub(crate) struct AllocationSites {
    /// Number of callers in a site.
    callers: usize,
    /// Cache of places, by address.
    places: Box<[Place]>,
    /// Sites by their frames, innermost first.
    ids: FxHashMap<Box<[Packed]>, u32>,
    /// Frames of all sites; index = id − 1.
    sites: Vec<Box<[Packed]>>,
    pub clock: BirthClock,
    /// Number of births without a site because the table is full.
    pub unknown: u64,
    /// Sites whose objects are allocated in old space: method names (`Foo>>bar`) and pcs of sends.
    wanted: Vec<(String, u32)>,
    /// The existing ones.
    pretenured: FxHashSet<Packed>,
}

impl AllocationSites {
    /// With these pretenured sites.
    pub fn new(wanted: Vec<(String, u32)>) -> Self {
        let places = if wanted.is_empty() { 0 } else { PLACES };
        Self {
            places: vec![Place::default(); places].into_boxed_slice(),
            wanted,
            ..Self::default()
        }
    }

    /// Whether sites are pretenured.
    #[inline(always)]
    pub fn has_pretenured(&self) -> bool {
        !self.pretenured.is_empty()
    }

    /// Searches for pretenured sites in new methods.
    pub fn find_pretenured(&mut self, methods: &[Method]) {
        if self.wanted.is_empty() {
            return;
        }
        for method in methods {
            let title = method.title();
            let of_method = self.wanted.iter().filter(|site| site.0 == title);
            let sites = of_method.map(|(_, pc)| method.id << 32 | u64::from(*pc));
            self.pretenured.extend(sites);
        }
        self.forget_places();
    }

    /// Sets the number of callers in later sites.
    pub fn set_callers(&mut self, callers: u32) {
        self.callers = callers.min(LifetimeRate::MOST_CALLERS) as usize;
        self.places = vec![Place::default(); PLACES].into_boxed_slice();
    }

    /// Forgets what addresses mean: code has moved.
    pub fn forget_places(&mut self) {
        self.places.fill(Place::default());
    }

    /// Number of sites.
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// Ids and frames of the sites from index `first` on.
    pub fn frames(&self, first: usize) -> impl Iterator<Item = (u64, Vec<SiteFrame>)> {
        let sites = self.sites.iter().enumerate().skip(first);
        sites.map(|(at, frames)| {
            let frames = frames.iter().map(|frame| SiteFrame {
                method: frame >> 32,
                bytecode: u32::try_from(frame & u64::from(u32::MAX)).unwrap_or(0),
                reserved: 0,
            });
            (at as u64 + 1, frames.collect())
        })
    }

    /// Id of the site with these frames.
    fn intern(&mut self, frames: &[Packed]) -> u32 {
        if let Some(id) = self.ids.get(frames) {
            return *id;
        }
        if self.sites.len() >= MOST_SITES {
            self.unknown += 1;
            return 0;
        }
        self.sites.push(frames.into());
        let id = u32::try_from(self.sites.len()).unwrap_or(0);
        self.ids.insert(frames.into(), id);
        id
    }
}

/// Cache entry of an address.
#[inline(always)]
fn place_of(pc: u64) -> usize {
    (pc ^ pc >> 12) as usize & (PLACES - 1)
}

impl Vm {
    /// Makes an object. The running frame has saved its ip.
    #[inline(always)]
    pub(crate) fn allocate(&mut self, class: u32, format: Format, slots: usize) -> Option<Oop> {
        match self.heap.allocate_quickly(class, format, slots) {
            Some(oop) => Some(oop),
            None => self.allocate_slowly(class, format, slots),
        }
    }

    #[cold]
    #[inline(never)]
    fn allocate_slowly(&mut self, class: u32, format: Format, slots: usize) -> Option<Oop> {
        if let Some(seen) = self.heap.allocate_seen(class, format, slots) {
            if seen.1.is_some() || self.heap.notes_all() {
                let site = self.allocation_site();
                let clock = &mut self.allocation_sites.clock;
                self.heap
                    .note_seen(seen, class, slots, site, || clock.time());
                if self.heap.waiting_births() >= BIRTHS {
                    self.publish_births();
                }
            }
            return Some(seen.0);
        }
        self.allocate_with_record(class, format, slots)
    }

    #[inline(never)]
    fn allocate_with_record(&mut self, class: u32, format: Format, slots: usize) -> Option<Oop> {
        let oop = self.heap.allocate_slowly(class, format, slots);
        self.note_birth();
        oop
    }

    /// Makes an object in old space. The running frame has saved its ip.
    pub(super) fn allocate_old(&mut self, class: u32, format: Format, slots: usize) -> Option<Oop> {
        let oop = self.heap.allocate_old(class, format, slots);
        self.note_birth();
        oop
    }

    /// Notes the birth of the newest object, if tracked.
    #[inline(always)]
    fn note_birth(&mut self) {
        if self.heap.has_newborn() {
            let site = self.allocation_site();
            let clock = &mut self.allocation_sites.clock;
            self.heap.note_birth(site, || clock.time());
            if self.heap.waiting_births() >= BIRTHS {
                self.publish_births();
            }
        }
    }

    /// Notes the birth of an object that the program itself observes. Returns the object's id.
    pub(super) fn note_observed_birth(&mut self, oop: Oop, weight: f64) -> u64 {
        let site = self.allocation_site();
        let time = self.allocation_sites.clock.time();
        let object = self.heap.note_observed_birth(oop, site, weight, time);
        if self.heap.waiting_births() >= BIRTHS {
            self.publish_births();
        }
        object
    }

    /// Site of the running allocation; 0 if unknown.
    #[inline(always)]
    fn allocation_site(&mut self) -> u32 {
        let mut fp = self.running_frame();
        if fp.is_none() {
            return 0;
        }
        let mut pc = fp.ip();
        loop {
            let &Place { frame, site, .. } = self.place(fp, pc);
            if frame != 0 {
                if self.allocation_sites.callers == 0 {
                    return site;
                }
                return self.site_with_callers(fp, frame);
            }
            let Some((caller, caller_pc)) = self.caller_place(fp) else {
                return 0;
            };
            (fp, pc) = (caller, caller_pc);
        }
    }

    /// Frame and address where a frame's caller goes on.
    #[inline(always)]
    fn caller_place(&self, fp: Fp) -> Option<(Fp, Ip)> {
        let caller = fp.caller();
        if caller.is_none() {
            return None;
        }
        let ret = fp.return_address();
        let is_machine = ret != self.jit.return_to_interpreter && self.jit.is_machine(ret.0);
        let pc = if is_machine {
            Ip::from_word(ret)
        } else {
            caller.ip()
        };
        Some((caller, pc))
    }

    /// Meaning of an address in the code of a frame.
    #[inline(always)]
    fn place(&mut self, fp: Fp, pc: Ip) -> &Place {
        let word = pc.word().0;
        let at = place_of(word);
        // A reference: a copy through memory is the largest part of an allocation's cost.
        if self.allocation_sites.places[at].pc != word {
            self.find_place(fp, pc);
        }
        &self.allocation_sites.places[at]
    }

    #[cold]
    #[inline(never)]
    fn find_place(&mut self, fp: Fp, pc: Ip) {
        let ip = self.bytecode_ip(pc);
        let frame = match self.image.method(fp.method()) {
            Some(method) if is_transparent(method) => 0,
            Some(method) => method.id << 32 | u64::from(bytecode_before(method, ip)),
            None => 0,
        };
        let has_own_site = frame != 0 && self.allocation_sites.callers == 0;
        let site = match has_own_site {
            true => self.allocation_sites.intern(&[frame]),
            false => 0,
        };
        let word = pc.word().0;
        self.allocation_sites.places[place_of(word)] = Place {
            // Each birth counts a full table: the next birth must not find this entry.
            pc: if has_own_site && site == 0 { 0 } else { word },
            frame,
            site,
            is_pretenured: self.allocation_sites.pretenured.contains(&frame),
        };
    }

    /// Whether the running allocation's site, or one of its nearest callers, is pretenured.
    pub(super) fn is_pretenured_site(&mut self) -> bool {
        let mut fp = self.running_frame();
        if fp.is_none() {
            return false;
        }
        let (mut pc, mut left) = (fp.ip(), 1 + CALLERS);
        while left > 0 {
            let place = self.place(fp, pc);
            if place.is_pretenured {
                return true;
            }
            left -= usize::from(place.frame != 0);
            let Some(caller) = self.caller_place(fp) else {
                return false;
            };
            (fp, pc) = caller;
        }
        false
    }

    #[cold]
    #[inline(never)]
    fn site_with_callers(&mut self, mut fp: Fp, innermost: Packed) -> u32 {
        let mut frames = vec![innermost];
        while frames.len() <= self.allocation_sites.callers
            && let Some((caller, pc)) = self.caller_place(fp)
        {
            let method = self.image.method(caller.method());
            let id = method.map_or(0, |method| method.id);
            let frame = match self.place(caller, pc).frame {
                0 => id << 32 | u64::from(method_pc(self, caller, pc)),
                frame => frame,
            };
            frames.push(frame);
            fp = caller;
        }
        self.allocation_sites.intern(&frames)
    }
}

/// Whether a method's allocations count for its callers.
fn is_transparent(method: &Method) -> bool {
    method.class == TRANSPARENT || method.file == FINALIZATION_PROFILER
}

/// Bytecode pc of a frame whose method is transparent.
fn method_pc(vm: &Vm, fp: Fp, pc: Ip) -> u32 {
    let ip = vm.bytecode_ip(pc);
    let method = vm.image.method(fp.method());
    method.map_or(0, |method| bytecode_before(method, ip))
}

/// Bytecode pc of the instruction that ends at `ip`.
fn bytecode_before(method: &Method, ip: Ip) -> u32 {
    let first = method.first_pc();
    let start = objects::body(method.oop) as usize + first as usize - 1;
    let Some(end) = (ip.0 as usize).checked_sub(start) else {
        return first;
    };
    let code = &method.code.bytecodes;
    let mut offset = 0;
    while let Ok((_, length)) = bytecodes::decode(code, offset)
        && offset + length < end
    {
        offset += length;
    }
    first + u32::try_from(offset).unwrap_or(0)
}
