//! Making objects.

use super::header::MANY_SLOTS;
use super::object;
use super::{Format, Header, Heap, Oop};

impl Heap {
    /// Makes an object in eden. Pretenured classes, large objects and a full eden use old space.
    /// Reference slots contain nil, other slots 0. `None`: no memory.
    ///
    /// The object may be old: fill its slots with [`store`](Self::store), unless
    /// [`is_new`](Self::is_new) confirms a new object.
    #[must_use]
    #[inline]
    pub fn allocate(&mut self, class_index: u32, format: Format, slots: usize) -> Option<Oop> {
        if let Some(oop) = self.allocate_quickly(class_index, format, slots) {
            return Some(oop);
        }
        let oop = self.allocate_slowly(class_index, format, slots);
        self.note_birth(0, || 0);
        oop
    }

    /// The fast path of [`allocate`](Self::allocate): objects that need no attention. `None`: try
    /// [`allocate_slowly`](Self::allocate_slowly).
    #[must_use]
    #[inline]
    pub fn allocate_quickly(
        &mut self,
        class_index: u32,
        format: Format,
        slots: usize,
    ) -> Option<Oop> {
        self.allocate_below(self.eden.limit, class_index, format, slots)
    }

    /// Makes an object in eden that ends at `limit` or before.
    #[inline]
    pub(super) fn allocate_below(
        &mut self,
        limit: usize,
        class_index: u32,
        format: Format,
        slots: usize,
    ) -> Option<Oop> {
        let address = self.eden.free;
        if slots < MANY_SLOTS && address + object::size_for(slots) <= limit && !self.pretenuring {
            self.eden.free = address + object::size_for(slots);
            Some(self.initialize(address, class_index, format, slots))
        } else {
            None
        }
    }

    /// Makes an object in old space. If [`has_newborn`](Self::has_newborn), the caller notes the
    /// birth.
    #[must_use]
    pub fn allocate_old(&mut self, class_index: u32, format: Format, slots: usize) -> Option<Oop> {
        let before = self.allocated_bytes();
        let bytes = self.checked_size(slots)?;
        let address = self.take_old(bytes)?;
        let oop = self.initialize(address, class_index, format, slots);
        self.choose(oop, class_index, bytes, before);
        Some(oop)
    }

    /// Makes a permanent object: never moves, never dies.
    #[must_use]
    pub fn allocate_permanent(
        &mut self,
        class_index: u32,
        format: Format,
        slots: usize,
    ) -> Option<Oop> {
        let bytes = self.checked_size(slots)?;
        if !self.permanent.grow(bytes, |_| true) {
            return None;
        }
        let address = self.permanent.allocate(bytes)?;
        Some(self.initialize(address, class_index, format, slots))
    }

    #[inline]
    fn initialize(&self, address: usize, class_index: u32, format: Format, slots: usize) -> Oop {
        let filler = if format.is_pointers() {
            self.nil
        } else {
            Oop::NONE
        };
        let header = Header::new(class_index, format, slots);
        // SAFETY: the callers have taken this many bytes at the address from a space.
        unsafe { object::initialize(address, header, slots, filler) }
    }

    /// Size in bytes of an object with this slot count; `None` if no heap is large enough.
    fn checked_size(&self, slots: usize) -> Option<usize> {
        let most = self.parameters.max_old_bytes / object::WORD;
        (slots <= most).then(|| object::size_for(slots))
    }

    /// The slow path of [`allocate`](Self::allocate). If [`has_newborn`](Self::has_newborn), the
    /// caller notes the birth.
    #[must_use]
    #[cold]
    pub fn allocate_slowly(
        &mut self,
        class_index: u32,
        format: Format,
        slots: usize,
    ) -> Option<Oop> {
        self.lifetimes.newborn = None;
        let before = self.allocated_bytes();
        let limit = self.lifetimes.plain_limit;
        let oop = match self.allocate_below(limit, class_index, format, slots) {
            Some(oop) => oop,
            None => self.allocate_with_attention(class_index, format, slots)?,
        };
        if self.lifetime_rate().distance > 0 {
            let bytes = object::size_for(slots);
            self.choose(oop, class_index, bytes, before);
        }
        Some(oop)
    }

    #[inline(never)]
    fn allocate_with_attention(
        &mut self,
        class_index: u32,
        format: Format,
        slots: usize,
    ) -> Option<Oop> {
        self.count_for_stress();
        if self.triggers.refuse {
            self.triggers.refuse = false;
            self.set_eden_limit();
            return None;
        }
        let bytes = self.checked_size(slots)?;
        let large = bytes > self.new_space.eden_bytes() / 8;
        let address = if large || self.pretenured.contains(&class_index) {
            self.take_old(bytes)?
        } else {
            match self.take_eden(bytes) {
                Some(address) => address,
                None => self.take_old(bytes)?,
            }
        };
        Some(self.initialize(address, class_index, format, slots))
    }

    /// Takes bytes from eden, even beyond the collection threshold.
    fn take_eden(&mut self, bytes: usize) -> Option<usize> {
        let address = self.eden.free;
        if address + bytes > self.triggers.eden_threshold {
            self.triggers.want("eden is full");
        }
        let fits = bytes <= self.triggers.eden_end.saturating_sub(address);
        if fits {
            self.eden.free = address + bytes;
        }
        self.set_eden_limit();
        fits.then_some(address)
    }

    /// Allocates bytes in old space; grows old space if permitted.
    fn take_old(&mut self, bytes: usize) -> Option<usize> {
        let within = self.old.used() + bytes <= self.parameters.max_old_bytes;
        if !within || !self.grow_old(bytes + self.triggers.reserve) {
            self.triggers.full_wanted = true;
            self.triggers.want("old space is full");
            return None;
        }
        let address = self.old.allocate(bytes)?;
        self.counters.allocated_bytes += bytes as u64;
        if self.old.used() >= self.triggers.full_threshold {
            self.triggers.want("old space has grown");
        }
        Some(address)
    }

    /// Makes sure that old space has `needed` free bytes. Returns whether this succeeded.
    fn grow_old(&mut self, needed: usize) -> bool {
        let segments = self.old.count();
        let grown = self
            .old
            .grow(needed, |capacity| self.marks.reserve(capacity));
        self.counters.grows += (self.old.count() - segments) as u64;
        grown
    }

    /// Sets old space's size limit for the next full collection, from its size after the last one.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a threshold need not be exact; the cast saturates"
    )]
    pub(super) fn set_full_threshold(&mut self) {
        let used = self.triggers.after_full;
        let growth = (used as f64 * self.parameters.full_gc_ratio) as usize;
        let growth = growth.max(self.parameters.growth_headroom);
        self.triggers.full_threshold = used.saturating_add(growth);
    }

    /// After a collection: eden is empty. It may be filled as far as old space has room for all
    /// of new space's objects, so that the next scavenge always finds room.
    pub(super) fn reopen_eden(&mut self) {
        let eden = self.new_space.eden_bytes();
        let survivors = self.new_space.past.used();
        let usable = if self.grow_old(eden + survivors) {
            eden
        } else {
            let free = self.old.free_bytes().saturating_sub(survivors);
            free.min(eden) / object::WORD * object::WORD
        };
        let start = self.new_space.eden_start;
        self.triggers.reserve = usable + survivors;
        self.triggers.eden_end = start + usable;
        self.triggers.eden_threshold = self.triggers.eden_end - usable / 64;
        self.eden.free = start;
        let allocated = self.allocated_bytes();
        self.lifetimes.draw_point(start, allocated);
        self.set_eden_limit();
    }

    /// Sets the address limit of [`allocate_quickly`](Self::allocate_quickly).
    pub(super) fn set_eden_limit(&mut self) {
        let free = self.eden.free;
        let asks_always = self.parameters.stress.collect_every > 0 || self.triggers.refuse;
        let limit = if asks_always {
            0
        } else if free < self.triggers.eden_threshold {
            self.triggers.eden_threshold
        } else {
            self.triggers.eden_end
        };
        self.lifetimes.plain_limit = limit;
        self.eden.limit = if self.lifetimes.sees_every_object() {
            0
        } else {
            limit.min(self.lifetimes.point())
        };
    }

    /// Bytes of all objects so far, without permanent objects.
    pub(super) fn allocated_bytes(&self) -> u64 {
        self.counters.allocated_bytes + self.eden_used() as u64
    }

    fn count_for_stress(&mut self) {
        let every = self.parameters.stress.collect_every;
        if every == 0 {
            return;
        }
        self.triggers.countdown -= 1;
        if self.triggers.countdown == 0 {
            self.triggers.countdown = every;
            self.triggers.want("stress");
        }
    }
}
