//! The scavenger: copies new space's live objects to the future survivor space, or to old space.

use super::view::Object;
use super::{Format, Heap, Observer, Oop, Roots, classes};
use std::collections::VecDeque;

/// Results of a scavenge.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Bytes copied to old space.
    pub tenured_bytes: usize,
    /// Bytes copied in all.
    pub survived_bytes: usize,
    /// Number of copied objects.
    pub survived_objects: u64,
}

/// One scavenge. Cheney's algorithm: copied objects that are not yet scanned lie between a scan
/// address and the free address, in the future survivor space and in old space. While lifetimes are
/// tracked, it notes the holders of the copied objects.
struct Scavenger<'h, const TRACKS: bool> {
    heap: &'h mut Heap,
    /// Which objects go to old space.
    tenuring: Tenuring,
    /// Scan address in the future survivor space.
    survivor_scan: usize,
    /// Scan address in old space.
    old_scan: usize,
    /// Ephemerons without a proof that their keys live.
    ephemerons: Vec<Object>,
    /// Weak objects. Their weak slots need an update.
    weak: Vec<Object>,
    /// Class indices of the holders of the future survivor space's unscanned Arrays, in their order.
    survivor_owners: VecDeque<u32>,
    /// The same for old space.
    old_owners: VecDeque<u32>,
    outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tenuring {
    None,
    Past,
    All,
}

impl Heap {
    /// Empties eden and the past survivor space.
    pub(super) fn run_scavenger(
        &mut self,
        roots: &mut dyn Roots,
        observer: &mut dyn Observer,
    ) -> Outcome {
        if self.lifetimes.is_on() {
            self.run_scavenger_that::<true>(roots, observer)
        } else {
            self.run_scavenger_that::<false>(roots, observer)
        }
    }

    fn run_scavenger_that<const TRACKS: bool>(
        &mut self,
        roots: &mut dyn Roots,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let past = &self.new_space.past;
        let threshold = self.parameters.tenuring_threshold;
        let tenuring = if threshold == 0 {
            Tenuring::All
        } else if past.used() * 100 > past.capacity() * threshold {
            Tenuring::Past
        } else {
            Tenuring::None
        };
        self.counters.allocated_bytes += self.eden_used() as u64;
        let mut scavenger = Scavenger::<TRACKS> {
            survivor_scan: self.new_space.future.start,
            old_scan: self.old.free(),
            heap: self,
            tenuring,
            ephemerons: Vec::new(),
            weak: Vec::new(),
            survivor_owners: VecDeque::new(),
            old_owners: VecDeque::new(),
            outcome: Outcome::default(),
        };
        scavenger.run(roots, observer);
        let mut outcome = scavenger.outcome;
        let spaces = &mut self.new_space;
        std::mem::swap(&mut spaces.past, &mut spaces.future);
        spaces.future.free = spaces.future.start;
        let survivors = spaces.past.used();
        outcome.survived_bytes = survivors + outcome.tenured_bytes;
        self.counters.survivors_bytes = survivors as u64;
        self.counters.tenured_bytes += outcome.tenured_bytes as u64;
        outcome
    }
}

/// Class index of the holder of an Array, from `next`; `None` for other objects, for an Array that a
/// root holds, and unless lifetimes are tracked.
#[inline]
pub(super) fn owner_of<const TRACKS: bool>(
    object: Object,
    next: impl FnOnce() -> Option<u32>,
) -> Option<u32> {
    if !TRACKS || object.header().format() != Format::INDEXED {
        return None;
    }
    next().filter(|owner| *owner != classes::NO_CLASS)
}

impl<const TRACKS: bool> Scavenger<'_, TRACKS> {
    fn run(&mut self, roots: &mut dyn Roots, observer: &mut dyn Observer) {
        observer.phase_begin("roots");
        roots.visit(&mut |root| *root = self.forward_root(*root));
        for index in 0..self.heap.mourners.len() {
            self.heap.mourners[index] = self.forward_root(self.heap.mourners[index]);
        }
        observer.phase_end();

        observer.phase_begin("remembered set");
        self.scan_remembered_set();
        observer.phase_end();

        observer.phase_begin("copying");
        self.copy_reachable();
        observer.phase_end();

        observer.phase_begin("ephemerons");
        self.finish_ephemerons();
        self.finish_weak_objects();
        observer.phase_end();
    }

    /// The root's new value. A root may be visited twice: the future space's objects stay.
    fn forward_root(&mut self, root: Oop) -> Oop {
        if self.heap.new_space.future.contains(root) {
            root
        } else {
            self.forward(root, classes::NO_CLASS)
        }
    }

    /// New address of a reachable object. Copies the object unless already copied. `holder`: class
    /// index of the object that refers to it.
    #[inline]
    fn forward(&mut self, oop: Oop, holder: u32) -> Oop {
        if !self.heap.is_new(oop) {
            return oop;
        }
        // SAFETY: references into new space point to objects, or to forwarded old copies.
        let object = unsafe { Object::new(oop) };
        if object.is_forwarded() {
            object.first_slot()
        } else {
            self.copy(object, holder)
        }
    }

    /// Copies an object, and leaves a forwarder behind.
    #[inline]
    fn copy(&mut self, object: Object, holder: u32) -> Oop {
        self.outcome.survived_objects += 1;
        let size = object.size();
        let header = object.header();
        let tenure = match self.tenuring {
            Tenuring::None => false,
            Tenuring::Past => self.heap.new_space.past.contains(object.oop()),
            Tenuring::All => true,
        };
        let survivor = if tenure {
            None
        } else {
            self.heap.new_space.future.allocate(size)
        };
        let address = survivor.unwrap_or_else(|| self.take_old(size));
        // SAFETY: the space just provided this address for an object of this size.
        let copy = unsafe { object.copy_to(address, size) };
        object.forward(header, copy.oop(), holder);
        if TRACKS && header.format() == Format::INDEXED {
            let owners = match survivor {
                Some(_) => &mut self.survivor_owners,
                None => &mut self.old_owners,
            };
            owners.push_back(holder);
        }
        if TRACKS
            && let Some(census) = &mut self.heap.lifetimes.census
            && object.oop().address() < self.heap.new_space.eden_end
        {
            let (from, to) = (object.oop().address(), copy.oop().address());
            census.moved.push((from, to));
        }
        copy.oop()
    }

    fn take_old(&mut self, size: usize) -> usize {
        self.outcome.tenured_bytes += size;
        self.heap.counters.tenures += 1;
        let address = self.heap.old.allocate(size);
        address.expect("eden is only filled as far as old space has room")
    }

    /// Scans the remembered set. Objects without references to new objects leave the set; weak
    /// objects and ephemerons may return later.
    fn scan_remembered_set(&mut self) {
        let mut remembered = std::mem::take(&mut self.heap.remembered);
        remembered.retain(|&oop| {
            // SAFETY: the remembered set has old and permanent objects.
            let object = unsafe { Object::new(oop) };
            let refers_to_new = self.scan(object, None);
            if !refers_to_new {
                object.set_header(object.header().with_remembered(false));
            }
            refers_to_new
        });
        self.heap.remembered = remembered;
    }

    /// Scans copied objects, copying further objects, until no unscanned copy remains.
    fn copy_reachable(&mut self) {
        loop {
            while self.survivor_scan < self.heap.new_space.future.free {
                // SAFETY: copied objects lie here without gaps.
                let object = unsafe { Object::first_at(self.survivor_scan) };
                self.survivor_scan = object.end();
                let owner = owner_of::<TRACKS>(object, || self.survivor_owners.pop_front());
                self.scan(object, owner);
            }
            if self.old_scan == self.heap.old.free() {
                return;
            }
            while self.old_scan < self.heap.old.free() {
                // SAFETY: tenured objects lie here without gaps.
                let object = unsafe { Object::first_at(self.old_scan) };
                self.old_scan = object.end();
                let owner = owner_of::<TRACKS>(object, || self.old_owners.pop_front());
                self.scan_and_remember(object, owner);
            }
        }
    }

    /// Updates strong references. Returns whether any reference points to a new object. `owner`: class
    /// index of an Array's known holder, which counts as the holder of the elements.
    #[inline]
    fn scan(&mut self, object: Object, owner: Option<u32>) -> bool {
        let header = object.header();
        let holder = match TRACKS {
            true => owner.unwrap_or(header.class_index()),
            false => classes::NO_CLASS,
        };
        let strong = match header.format() {
            Format::WEAK => {
                self.weak.push(object);
                self.heap.strong_count(object)
            }
            Format::EPHEMERON if self.may_be_dead(object.first_slot()) => {
                self.ephemerons.push(object);
                0
            }
            _ => object.reference_count(),
        };
        let mut refers_to_new = false;
        object.update(0..strong, |value| {
            let value = self.forward(value, holder);
            refers_to_new |= self.heap.is_new(value);
            value
        });
        refers_to_new
    }

    /// Scans an object, possibly old or permanent.
    #[inline]
    fn scan_and_remember(&mut self, object: Object, owner: Option<u32>) {
        if self.scan(object, owner) {
            self.heap.remember(object.oop());
        }
    }

    /// Whether an unscanned object's reference points to an uncopied object.
    fn may_be_dead(&self, oop: Oop) -> bool {
        if !self.heap.is_new(oop) {
            return false;
        }
        // SAFETY: references into new space point to objects, or to forwarded old copies.
        !unsafe { Object::new(oop) }.is_forwarded()
    }

    /// Scans ephemerons with live keys. When no such ephemeron remains, the other ephemerons mourn:
    /// they become strong, and keep their keys. Scanning the keys may reach further ephemerons.
    fn finish_ephemerons(&mut self) {
        while !self.ephemerons.is_empty() {
            let mut progress = false;
            for object in std::mem::take(&mut self.ephemerons) {
                progress |= !self.may_be_dead(object.first_slot());
                self.scan_and_remember(object, None);
            }
            if !progress {
                for object in std::mem::take(&mut self.ephemerons) {
                    object.set_header(object.header().with_format(Format::FIXED));
                    self.heap.mourners.push_back(object.oop());
                    self.scan_and_remember(object, None);
                }
            }
            self.copy_reachable();
        }
    }

    /// Replaces weak references to dead objects by nil.
    fn finish_weak_objects(&mut self) {
        let nil = self.heap.nil();
        for object in std::mem::take(&mut self.weak) {
            let strong = self.heap.strong_count(object);
            let mut refers_to_new = false;
            object.update(strong..object.reference_count(), |value| {
                let value = if self.may_be_dead(value) {
                    nil
                } else {
                    // Copied before: the holder is known.
                    self.forward(value, classes::NO_CLASS)
                };
                refers_to_new |= self.heap.is_new(value);
                value
            });
            if refers_to_new {
                self.heap.remember(object.oop());
            }
        }
    }
}
