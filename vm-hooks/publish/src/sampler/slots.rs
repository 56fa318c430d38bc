//! The threads that registered for sampling, in static memory: a late signal must find its slot
//! even if the publisher has ended.
#![allow(
    unsafe_code,
    reason = "a slot holds a publisher for the signal handler, as a pointer"
)]

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence};

use crate::layout;
use crate::publisher::Shared;

/// Maximum number of a thread's stack ranges: the thread's own stack, and the VM's further stacks.
pub(crate) const STACKS: usize = 4;

/// A registered thread.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Thread id; 0 marks a free slot, [`TAKEN`] a slot during a change.
    tid: AtomicU32,
    /// Counts the registrations in this slot.
    generation: AtomicU64,
    /// The publisher, kept alive by the slot.
    owner: AtomicPtr<Shared>,
    /// Sending time of a pending signal, else 0.
    pub(super) pending: AtomicU64,
    /// Ranges of the thread's stacks: first address, first address after the stack.
    stacks: [[AtomicU64; 2]; STACKS],
}

/// Thread id that marks a slot during a change. No thread has this id.
const TAKEN: u32 = u32::MAX;

static SLOTS: [Slot; layout::THREADS] = [const {
    Slot {
        tid: AtomicU32::new(0),
        generation: AtomicU64::new(0),
        owner: AtomicPtr::new(ptr::null_mut()),
        pending: AtomicU64::new(0),
        stacks: [const { [const { AtomicU64::new(0) }; 2] }; STACKS],
    }
}; layout::THREADS];

/// Number of slots to search. Later slots were never taken.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The slots to search: all slots taken so far, and perhaps unused slots.
pub(crate) fn slots() -> &'static [Slot] {
    let used = USED.load(Ordering::Acquire);
    SLOTS.get(..used).unwrap_or(&SLOTS)
}

/// The slot at a signal's address value, with the slot's index. `None` for other addresses.
pub(super) fn slot_at(address: usize) -> Option<(usize, &'static Slot)> {
    let offset = address.checked_sub(SLOTS.as_ptr().addr())?;
    let size = size_of::<Slot>();
    let index = offset / size;
    (offset % size == 0)
        .then(|| SLOTS.get(index))
        .flatten()
        .map(|slot| (index, slot))
}

/// The slot of the calling thread.
pub(crate) fn mine() -> Option<(usize, &'static Slot)> {
    let tid = current();
    let mut slots = slots().iter().enumerate();
    slots.find(|(_, slot)| slot.tid.load(Ordering::Relaxed) == tid)
}

/// Thread id of the calling thread.
pub(crate) fn current() -> u32 {
    // SAFETY: plain system call.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// Takes a free slot for the calling thread, and returns its index.
pub(crate) fn take(owner: &Arc<Shared>, stacks: &[[u64; 2]]) -> Option<usize> {
    let order = (Ordering::Acquire, Ordering::Relaxed);
    let (index, slot) = SLOTS.iter().enumerate().find(|(_, slot)| {
        let taken = slot.tid.compare_exchange(0, TAKEN, order.0, order.1);
        taken.is_ok()
    })?;
    let shared = Arc::into_raw(Arc::clone(owner)).cast_mut();
    slot.owner.store(shared, Ordering::Relaxed);
    slot.pending.store(0, Ordering::Relaxed);
    for (at, place) in slot.stacks.iter().enumerate() {
        let range = stacks.get(at).copied().unwrap_or_default();
        for (place, address) in place.iter().zip(range) {
            place.store(address, Ordering::Relaxed);
        }
    }
    slot.generation.fetch_add(1, Ordering::Relaxed);
    slot.tid.store(current(), Ordering::Release);
    USED.fetch_max(index + 1, Ordering::AcqRel);
    Some(index)
}

impl Slot {
    /// Thread id, if a thread has the slot.
    pub(super) fn tid(&self) -> Option<u32> {
        let tid = self.tid.load(Ordering::Acquire);
        (tid != 0 && tid != TAKEN).then_some(tid)
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Whether the publisher `shared` registered the thread.
    pub(crate) fn is_of(&self, shared: &Shared) -> bool {
        ptr::eq(self.owner.load(Ordering::Relaxed), shared)
    }

    /// The publisher, for the slot's own thread: no other thread frees the slot of a living thread,
    /// so the publisher stays alive meanwhile.
    ///
    /// # Safety
    ///
    /// The caller is the slot's thread, or the thread's signal handler.
    pub(super) unsafe fn owner(&self) -> Option<&Shared> {
        // SAFETY: the slot keeps the publisher until its thread gives it back.
        unsafe { self.owner.load(Ordering::Relaxed).as_ref() }
    }

    /// The range of the stack that `address` lies in.
    pub(super) fn stack(&self, address: u64) -> Option<(u64, u64)> {
        let mut ranges = self.stacks.iter().map(|[start, end]| {
            let get = |place: &AtomicU64| place.load(Ordering::Relaxed);
            (get(start), get(end))
        });
        ranges.find(|&(start, end)| start <= address && address < end)
    }

    /// Frees the slot. `tid` is the slot's thread: either the calling thread, or an ended thread.
    pub(crate) fn free(&self, tid: u32) {
        let order = (Ordering::AcqRel, Ordering::Relaxed);
        if (self.tid.compare_exchange(tid, TAKEN, order.0, order.1)).is_err() {
            return;
        }
        // From here on, the signal handler of this thread finds an empty slot.
        compiler_fence(Ordering::SeqCst);
        let owner = self.owner.swap(ptr::null_mut(), Ordering::AcqRel);
        if !owner.is_null() {
            // SAFETY: `take` made the pointer from an `Arc`, and the swap passed ownership to this
            // call.
            drop(unsafe { Arc::from_raw(owner.cast_const()) });
        }
        self.tid.store(0, Ordering::Release);
    }
}

/// The range of the calling thread's own stack.
pub(crate) fn own_stack() -> Option<[u64; 2]> {
    // SAFETY: a structure of numbers and pointers, which the next call fills.
    let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
    // SAFETY: plain call.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: fills the local structure.
    if unsafe { libc::pthread_getattr_np(thread, &raw mut attributes) } != 0 {
        return None;
    }
    let (mut start, mut size) = (ptr::null_mut(), 0);
    // SAFETY: reads the structure that was filled.
    let got = unsafe {
        libc::pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut size)
    };
    // SAFETY: an earlier call filled the structure, and later code never uses it.
    unsafe { libc::pthread_attr_destroy(&raw mut attributes) };
    let start = start.addr() as u64;
    (got == 0).then(|| [start, start.saturating_add(size as u64)])
}
