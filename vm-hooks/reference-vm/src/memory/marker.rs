//! The first phase of a full collection: marks all live objects.

use super::scavenger::owner_of;
use super::view::{Object, walk};
use super::{Format, Heap, Oop, Roots, classes};

/// Capacity of the mark stack. Further objects stay grey until the stack is empty; then the
/// collector searches the spaces for grey objects.
const STACK_LIMIT: usize = if cfg!(test) { 16 } else { 1 << 20 };

/// Marks the objects of new and old space that live. Permanent objects are roots, and never marked.
/// While lifetimes are tracked, it notes the holders of tracked objects.
struct Marker<'h, const TRACKS: bool> {
    heap: &'h mut Heap,
    /// Marked objects, not yet scanned.
    stack: Vec<Object>,
    /// Whether grey objects exist: marked, unscanned, missing from the stack.
    overflowed: bool,
    /// Ephemerons without a proof that their keys live.
    ephemerons: Vec<Object>,
    /// Weak objects. Their weak slots need an update.
    weak: Vec<Object>,
    /// Class indices of the holders of the stack's Arrays, in their order.
    owners: Vec<u32>,
    /// Number of marked objects.
    marked: u64,
}

impl Heap {
    /// Sets the mark of all live objects, fills the mourn queue, and replaces weak references to
    /// dead objects. Eden is empty. Returns the number of marked objects.
    pub(super) fn mark_live_objects(&mut self, roots: &mut dyn Roots) -> u64 {
        if self.lifetimes.is_on() {
            self.flag_tracked_objects();
            self.mark_live_objects_and::<true>(roots)
        } else {
            self.mark_live_objects_and::<false>(roots)
        }
    }

    fn mark_live_objects_and<const TRACKS: bool>(&mut self, roots: &mut dyn Roots) -> u64 {
        let mut marker = Marker::<TRACKS> {
            heap: self,
            stack: Vec::new(),
            overflowed: false,
            ephemerons: Vec::new(),
            weak: Vec::new(),
            owners: Vec::new(),
            marked: 0,
        };
        roots.visit(&mut |root| marker.mark(*root, classes::NO_CLASS));
        for index in 0..marker.heap.mourners.len() {
            marker.mark(marker.heap.mourners[index], classes::NO_CLASS);
        }
        for object in marker.heap.permanent_objects() {
            marker.scan(object, None);
        }
        marker.mark_reachable();
        marker.finish_ephemerons();
        marker.finish_weak_objects();
        marker.marked
    }

    /// The objects of old space.
    pub(super) fn old_objects(&self) -> impl Iterator<Item = Object> + use<> {
        // SAFETY: objects lie there without gaps; collectors replace only their contents.
        unsafe { walk(self.old.start(), self.old.free()) }
    }

    /// The objects of the permanent space.
    pub(super) fn permanent_objects(&self) -> impl Iterator<Item = Object> + use<> {
        // SAFETY: objects lie there without gaps, and stay.
        unsafe { walk(self.permanent.start(), self.permanent.free()) }
    }

    /// Survivors of the last scavenge that are still in new space.
    pub(super) fn survivors(&self) -> impl Iterator<Item = Object> + use<> {
        let past = &self.new_space.past;
        // SAFETY: objects lie there without gaps; full collections replace only their contents.
        unsafe { walk(past.start, past.free) }
    }
}

impl<const TRACKS: bool> Marker<'_, TRACKS> {
    /// Returns the object unless permanent or already marked.
    #[inline]
    fn unmarked(&self, oop: Oop) -> Option<Object> {
        if !self.heap.old.contains(oop) && !self.heap.is_new(oop) {
            return None;
        }
        // SAFETY: references into these spaces are objects.
        let object = unsafe { Object::new(oop) };
        (!object.header().is_marked()).then_some(object)
    }

    /// `holder`: class index of the object that refers to it.
    #[inline]
    fn mark(&mut self, oop: Oop, holder: u32) {
        let Some(object) = self.unmarked(oop) else {
            return;
        };
        self.marked += 1;
        let mut header = object.header().with_mark(true);
        if TRACKS && header.is_tracked() {
            header = header.with_tracked(false).with_hash(holder);
        }
        if self.stack.len() < STACK_LIMIT {
            object.set_header(header);
            self.stack.push(object);
            if TRACKS && header.format() == Format::INDEXED {
                self.owners.push(holder);
            }
        } else {
            object.set_header(header.with_grey(true));
            self.overflowed = true;
        }
    }

    /// Marks the objects referenced strongly by this object. `owner`: as in the scavenger.
    #[inline]
    fn scan(&mut self, object: Object, owner: Option<u32>) {
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
            Format::EPHEMERON if self.unmarked(object.first_slot()).is_some() => {
                self.ephemerons.push(object);
                0
            }
            _ => object.reference_count(),
        };
        object.visit(0..strong, |value| self.mark(value, holder));
    }

    /// Scans marked objects until none remains unscanned.
    fn mark_reachable(&mut self) {
        self.empty_stack();
        while std::mem::take(&mut self.overflowed) {
            for object in self.heap.survivors().chain(self.heap.old_objects()) {
                if object.header().is_grey() {
                    object.set_header(object.header().with_grey(false));
                    self.scan(object, None);
                    self.empty_stack();
                }
            }
        }
    }

    fn empty_stack(&mut self) {
        while let Some(object) = self.stack.pop() {
            let owner = owner_of::<TRACKS>(object, || self.owners.pop());
            self.scan(object, owner);
        }
    }

    /// As in the scavenger: all ephemerons with dead keys mourn together.
    fn finish_ephemerons(&mut self) {
        while !self.ephemerons.is_empty() {
            let mut progress = false;
            for object in std::mem::take(&mut self.ephemerons) {
                progress |= self.unmarked(object.first_slot()).is_none();
                self.scan(object, None);
            }
            if !progress {
                for object in std::mem::take(&mut self.ephemerons) {
                    object.set_header(object.header().with_format(Format::FIXED));
                    self.heap.mourners.push_back(object.oop());
                    self.scan(object, None);
                }
            }
            self.mark_reachable();
        }
    }

    /// Replaces weak references to dead objects by nil.
    fn finish_weak_objects(&mut self) {
        let nil = self.heap.nil();
        for object in std::mem::take(&mut self.weak) {
            let strong = self.heap.strong_count(object);
            object.update(strong..object.reference_count(), |value| {
                if self.unmarked(value).is_some() {
                    nil
                } else {
                    value
                }
            });
        }
    }
}
