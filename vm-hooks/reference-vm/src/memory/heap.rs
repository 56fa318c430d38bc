//! The heap: spaces, object sets and counters.

use super::new_space::NewSpace;
use super::object;
use super::segments::Segments;
use super::view::Object;
use super::{Oop, Parameters, Sizes, Statistics};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// No memory for a heap.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The system lacks a free address range of this size.
    #[error("cannot reserve {bytes} bytes of addresses for the heap")]
    Reserve {
        /// Size of the range.
        bytes: usize,
        /// Why not.
        source: io::Error,
    },
    /// The system lacks memory for a reserved range.
    #[error("cannot get {bytes} bytes of memory for the heap")]
    Commit {
        /// Size of the range.
        bytes: usize,
        /// Why not.
        source: io::Error,
    },
}

/// References from outside of the heap: stacks and the VM's own.
pub trait Roots {
    /// Calls `visit` with every root, once each. Collections change them when objects move.
    fn visit(&mut self, visit: &mut dyn FnMut(&mut Oop));
}

/// Eden's allocation pointer and fast-path limit. Machine code allocates with these.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EdenPointers {
    /// Address of the next object.
    pub free: usize,
    /// Objects beyond this address need [`Heap::allocate`].
    pub limit: usize,
}

/// All objects.
///
/// The heap trusts its callers: oops must be objects of this heap at their current addresses, with
/// enough slots for the call. The interpreter checks program input before calling.
#[derive(Debug)]
pub struct Heap {
    pub(super) eden: EdenPointers,
    /// Whether a class is pretenured.
    pub(super) pretenuring: bool,
    pub(super) nil: Oop,
    pub(super) new_space: NewSpace,
    pub(super) old: Segments,
    pub(super) permanent: Segments,
    /// Old and permanent objects with possible references to new objects; each has its remembered
    /// bit set.
    pub(super) remembered: Vec<Oop>,
    /// Ephemerons whose keys died, the oldest first.
    pub(super) mourners: VecDeque<Oop>,
    /// Class indices whose objects are allocated in old space.
    pub(super) pretenured: FxHashSet<u32>,
    /// Numbers of fixed fields, of classes whose objects are weak.
    pub(super) fixed_fields: FxHashMap<u32, usize>,
    pub(super) triggers: Triggers,
    pub(super) parameters: Parameters,
    /// All counters except sizes; [`statistics`](Self::statistics) adds sizes.
    pub(super) counters: Statistics,
    pub(super) marks: super::compactor::Marks,
    pub(super) lifetimes: super::lifetimes::Lifetimes,
    /// State of the generator of hashes.
    hash_state: u32,
}

/// Conditions for collecting, and for refusing allocations.
#[derive(Debug)]
pub(super) struct Triggers {
    /// The interpreter's stack limit.
    alarm: Arc<AtomicU64>,
    /// Why a collection is wanted.
    pub wanted: Option<&'static str>,
    /// Whether the next collection is full.
    pub full_wanted: bool,
    /// Beyond this address in eden, a collection is wanted.
    pub eden_threshold: usize,
    /// Address limit of eden objects: a fuller new space might not fit in old space.
    pub eden_end: usize,
    /// Bytes that must stay free in old space, for new space's survivors.
    pub reserve: usize,
    /// Old-space size in bytes after the last full collection.
    pub after_full: usize,
    /// Old-space size in bytes that triggers a full collection.
    pub full_threshold: usize,
    /// The next allocation fails: old space is too large even after a full collection.
    pub refuse: bool,
    /// Stress mode: allocations left until the next forced collection.
    pub countdown: u64,
    /// Collections so far, full and not.
    pub collections: u64,
}

impl Triggers {
    pub fn want(&mut self, cause: &'static str) {
        self.wanted.get_or_insert(cause);
        self.alarm.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Minimum eden: in smaller edens, objects with an overflow header might not count as large.
const LEAST_EDEN: usize = 32 << 10;
/// No system has more addresses.
const MOST_OLD: usize = 1 << 47;
/// The permanent space's addresses.
const PERMANENT_BYTES: usize = if cfg!(miri) { 1 << 20 } else { 1 << 30 };
/// The remembered set's table at the start.
const REMEMBERED_CAPACITY: usize = 1024;

impl Heap {
    /// An empty heap. The heap stores `u64::MAX` in `alarm` to request a collection.
    ///
    /// # Errors
    /// The system lacks memory or a free address range.
    pub fn new(parameters: &Parameters, alarm: Arc<AtomicU64>) -> Result<Self, MemoryError> {
        let mut parameters = parameters.clone();
        parameters.eden_bytes = parameters.eden_bytes.max(LEAST_EDEN);
        parameters.max_old_bytes = parameters.max_old_bytes.min(MOST_OLD);
        parameters.tenuring_threshold = parameters.tenuring_threshold.min(100);
        let new_space = NewSpace::new(parameters.eden_bytes)?;
        // Scavenges may exceed the limit temporarily.
        let beyond = 2 * (new_space.eden_bytes() + new_space.past.capacity());
        let old = Segments::new(
            parameters.max_old_bytes + beyond,
            parameters.growth_headroom,
        )?;
        let permanent = Segments::new(PERMANENT_BYTES, parameters.growth_headroom)?;
        let mut heap = Self {
            eden: EdenPointers {
                free: new_space.eden_start,
                limit: new_space.eden_start,
            },
            pretenuring: false,
            nil: Oop::NONE,
            old,
            permanent,
            remembered: Vec::with_capacity(REMEMBERED_CAPACITY),
            mourners: VecDeque::new(),
            pretenured: FxHashSet::default(),
            fixed_fields: FxHashMap::default(),
            triggers: Triggers {
                alarm,
                wanted: None,
                full_wanted: false,
                eden_threshold: new_space.eden_end - new_space.eden_bytes() / 64,
                eden_end: new_space.eden_end,
                reserve: 0,
                after_full: 0,
                full_threshold: 0,
                refuse: false,
                countdown: parameters.stress.collect_every,
                collections: 0,
            },
            new_space,
            parameters,
            counters: Statistics::default(),
            marks: super::compactor::Marks::default(),
            lifetimes: super::lifetimes::Lifetimes::default(),
            hash_state: 0x9E37_79B9,
        };
        heap.set_full_threshold();
        heap.reopen_eden();
        heap.counters.grows = 0;
        Ok(heap)
    }

    /// Sets the nil object, the initial value of reference slots.
    pub fn set_nil(&mut self, nil: Oop) {
        self.nil = nil;
    }

    /// The object nil.
    #[must_use]
    #[inline]
    pub fn nil(&self) -> Oop {
        self.nil
    }

    /// Whether `oop` is an object in new space, movable by any collection.
    #[must_use]
    #[inline]
    pub fn is_new(&self, oop: Oop) -> bool {
        self.new_space.contains(oop)
    }

    /// Replaces an object's slot, with the write barrier: an old object joins the remembered set
    /// when given a reference to a new object.
    #[inline]
    pub fn store(&mut self, object: Oop, index: usize, value: Oop) {
        debug_assert!(
            // SAFETY: the interpreter stores only in objects.
            index < unsafe { object::num_slots(object) }
        );
        // SAFETY: the interpreter stores only in existing slots; it checks indices.
        unsafe { object::set_slot(object, index, value) };
        if self.is_new(value) && !self.is_new(object) {
            self.remember(object);
        }
    }

    /// Adds an object (unless new) to the remembered set, after stores without the write barrier.
    #[inline(never)]
    pub fn remember(&mut self, oop: Oop) {
        if self.is_new(oop) {
            return;
        }
        // SAFETY: the caller's objects are objects; `view` is forgotten at once.
        let view = unsafe { Object::new(oop) };
        let header = view.header();
        if header.is_remembered() {
            return;
        }
        view.set_header(header.with_remembered(true));
        if self.remembered.len() == self.remembered.capacity() {
            self.counters.remembered_overflows += 1;
        }
        self.remembered.push(oop);
    }

    /// The object's identity hash: 22 bits, never 0. Assigned when first asked for.
    pub fn identity_hash(&mut self, oop: Oop) -> u32 {
        // SAFETY: the caller's objects are objects; `view` is forgotten at once.
        let view = unsafe { Object::new(oop) };
        let header = view.header();
        if header.hash() != 0 {
            return header.hash();
        }
        let hash = self.next_hash();
        view.set_header(header.with_hash(hash));
        hash
    }

    fn next_hash(&mut self) -> u32 {
        loop {
            // Marsaglia's xorshift. The state is nonzero, but its high bits may be zero.
            self.hash_state ^= self.hash_state << 13;
            self.hash_state ^= self.hash_state >> 17;
            self.hash_state ^= self.hash_state << 5;
            let hash = self.hash_state >> 10;
            if hash != 0 {
                return hash;
            }
        }
    }

    /// Takes the oldest ephemeron from the mourn queue.
    pub fn next_mourner(&mut self) -> Option<Oop> {
        self.mourners.pop_front()
    }

    /// Whether ephemerons wait in the mourn queue.
    #[must_use]
    pub fn has_mourners(&self) -> bool {
        !self.mourners.is_empty()
    }

    /// Sets whether objects of this class are allocated in old space.
    pub fn pretenure_class(&mut self, class_index: u32, on: bool) {
        if on {
            self.pretenured.insert(class_index);
        } else {
            self.pretenured.remove(&class_index);
        }
        self.pretenuring = !self.pretenured.is_empty();
    }

    /// Sets the number of fixed fields in weak objects of this class. Fixed fields are strong; only
    /// indexed fields are weak.
    pub fn set_fixed_fields(&mut self, class_index: u32, fields: usize) {
        self.fixed_fields.insert(class_index, fields);
    }

    /// The effective parameters, adjusted to possible values.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Changes parameters of the running heap: the tenuring threshold, the growth headroom, the shrink
    /// threshold and the full-GC ratio. The others stay as they were.
    pub fn change_parameters(&mut self, change: impl FnOnce(&mut Parameters)) {
        let before = self.parameters.clone();
        change(&mut self.parameters);
        self.parameters.eden_bytes = before.eden_bytes;
        self.parameters.max_old_bytes = before.max_old_bytes;
        self.parameters.stress = before.stress;
        self.parameters.tenuring_threshold = self.parameters.tenuring_threshold.min(100);
        self.old.set_headroom(self.parameters.growth_headroom);
        self.set_full_threshold();
    }

    /// Counters and present sizes.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let eden_used = self.eden_used() as u64;
        Statistics {
            allocated_bytes: self.counters.allocated_bytes + eden_used,
            segments: self.old.count() as u64,
            remembered: self.remembered.len() as u64,
            eden_used,
            old_used: self.old.used() as u64,
            old_free: self.old.free_bytes() as u64,
            old_total: self.old.capacity() as u64,
            permanent_used: self.permanent.used() as u64,
            mourners: self.mourners.len() as u64,
            ..self.counters
        }
    }

    /// Used bytes and capacities, as reported to observers.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        Sizes {
            eden_used: self.eden_used(),
            eden_capacity: self.new_space.eden_bytes(),
            survivor_used: self.new_space.past.used(),
            survivor_capacity: self.new_space.past.capacity(),
            old_used: self.old.used(),
            old_capacity: self.old.capacity(),
        }
    }

    /// Address ranges: of new space, of old space's segments, of the permanent space's.
    pub fn ranges(&self) -> (Range<usize>, Vec<Range<usize>>, Vec<Range<usize>>) {
        let old = self.old.ranges().collect();
        (
            self.new_space.range(),
            old,
            self.permanent.ranges().collect(),
        )
    }

    pub(super) fn eden_used(&self) -> usize {
        self.eden.free - self.new_space.eden_start
    }

    /// Number of strong slots at the start of a weak object.
    pub(super) fn strong_count(&self, weak: Object) -> usize {
        let class_index = weak.header().class_index();
        let fixed = self.fixed_fields.get(&class_index).copied();
        fixed.unwrap_or(0).min(weak.reference_count())
    }
}
