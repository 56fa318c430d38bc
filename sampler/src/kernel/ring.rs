//! The kernel's ring of records: one page of control, then 2^n pages of data.
//!
//! ```text
//!   page 0            data (2^n pages, positions modulo its size)
//!  ┌───────────────┐ ┌────────────────────────────────────────────┐
//!  │ data_head  ──────────────────────────────────▶│ kernel writes │
//!  │ data_tail  ──────────▶│ ours to read ........ │               │
//!  └───────────────┘ └────────────────────────────────────────────┘
//! ```
//!
//! Ordering (`kernel/events/ring_buffer.c`, `perf_output_put_handle`, Linux 6.18: "kernel: LOAD
//! ->data_tail, STORE $data, smp_wmb(), STORE ->data_head; user: LOAD ->data_head, smp_rmb(), LOAD
//! $data, smp_mb(), STORE ->data_tail"): the acquire load of the head pairs with the write barrier
//! before its store; the release store of the tail keeps the data reads before the kernel's
//! overwrites.
//!
//! A closure borrows each record in place, or a copy of a record that continues at the ring's begin. The kernel does
//! not write between tail and head, and the tail moves after the round. A sample with a stack has some 33 KB: a copy
//! of each took a twentieth of vmscope's CPU time. Sizes are checked: a record smaller than its header or larger than
//! the readable data ends the round, and the rest is dropped and counted.
#![expect(
    unsafe_code,
    reason = "maps and reads memory that is shared with the kernel"
)]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;

/// The bytes of `struct perf_event_header`: type u32, misc u16, size u16.
const HEADER: usize = 8;

/// A record's header and body.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawRecord<'a> {
    /// `PERF_RECORD_…`.
    pub kind: u32,
    /// `PERF_RECORD_MISC_…`.
    pub misc: u16,
    /// Bytes after the header.
    pub body: &'a [u8],
}

/// Result of [`RingMemory::read`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    pub records: u64,
    /// The rest of the round was invalid and dropped.
    pub garbage: bool,
}

/// Pointers into a ring; the creator guarantees the memory.
#[derive(Debug)]
struct RingMemory {
    head: *mut u64,
    tail: *mut u64,
    data: *const u8,
    /// A power of two.
    data_len: usize,
    /// Copy of a record across the ring's end; at most 64 KiB, since sizes are u16.
    record: Vec<u8>,
}

/// Stores the tail at the end of a round, also after a panic.
struct TailGuard {
    tail: *mut u64,
    position: u64,
}

impl Drop for TailGuard {
    fn drop(&mut self) {
        // SAFETY: `tail` points to data_tail, aligned to 8, in memory that outlives
        // the round; the kernel only reads it, with READ_ONCE.
        let tail = unsafe { AtomicU64::from_ptr(self.tail) };
        tail.store(self.position, Ordering::Release);
    }
}

impl RingMemory {
    /// # Safety
    /// `base` points to `page` bytes of control page followed by `data_len` bytes,
    /// a power of two, mapped as long as this lives.
    unsafe fn new(base: *mut u8, page: usize, data_len: usize) -> Self {
        let head = std::mem::offset_of!(perf_event_mmap_page, data_head);
        let tail = std::mem::offset_of!(perf_event_mmap_page, data_tail);
        Self {
            head: base.wrapping_add(head).cast(),
            tail: base.wrapping_add(tail).cast(),
            data: base.wrapping_add(page),
            data_len,
            record: Vec::new(),
        }
    }

    /// Offset of ring position `at` in the data.
    fn offset(data_len: usize, at: u64) -> usize {
        // The remainder is below data_len, a usize.
        usize::try_from(at % (data_len as u64)).unwrap_or(0)
    }

    /// Copies `to.len()` bytes at ring position `at`, across the end if necessary.
    fn copy(data: *const u8, data_len: usize, at: u64, to: &mut [u8]) {
        let start = Self::offset(data_len, at);
        let first = to.len().min(data_len - start);
        let (low, high) = to.split_at_mut(first);
        // SAFETY: start + first <= data_len; `to` is ours; between tail and head the
        // kernel does not write.
        unsafe { std::ptr::copy_nonoverlapping(data.wrapping_add(start), low.as_mut_ptr(), first) };
        // SAFETY: `high` is the rest of the record: callers request at most data_len in all, so it
        // ends before `start`.
        unsafe { std::ptr::copy_nonoverlapping(data, high.as_mut_ptr(), high.len()) };
    }

    fn read(&mut self, mut lend: impl FnMut(RawRecord<'_>)) -> Round {
        // SAFETY: `head` points to data_head, aligned to 8, in memory that outlives
        // this borrow; the kernel writes it with WRITE_ONCE.
        let head = unsafe { AtomicU64::from_ptr(self.head) }.load(Ordering::Acquire);
        // SAFETY: the guard's argument holds: only this thread writes the tail.
        let tail = unsafe { AtomicU64::from_ptr(self.tail) }.load(Ordering::Relaxed);
        let mut round = Round::default();
        let mut guard = TailGuard {
            tail: self.tail,
            position: tail,
        };
        let data_len = self.data_len as u64;
        while guard.position != head {
            let left = head.wrapping_sub(guard.position);
            if left > data_len || left < HEADER as u64 {
                round.garbage = true;
                break;
            }
            let mut header = [0u8; HEADER];
            Self::copy(self.data, self.data_len, guard.position, &mut header);
            let [k0, k1, k2, k3, m0, m1, s0, s1] = header;
            let size = usize::from(u16::from_ne_bytes([s0, s1]));
            if size < HEADER || size as u64 > left {
                round.garbage = true;
                break;
            }
            let body = guard.position.wrapping_add(HEADER as u64);
            let start = Self::offset(self.data_len, body);
            let length = size - HEADER;
            let body = if length <= self.data_len - start {
                // SAFETY: start + length <= data_len, and these bytes are mapped as long as this lives. They lie
                // between tail and head, where the kernel does not write; the guard moves the tail after
                // the last use.
                unsafe { std::slice::from_raw_parts(self.data.wrapping_add(start), length) }
            } else {
                self.record.resize(length, 0);
                Self::copy(self.data, self.data_len, body, &mut self.record);
                &self.record
            };
            guard.position = guard.position.wrapping_add(size as u64);
            round.records += 1;
            lend(RawRecord {
                kind: u32::from_ne_bytes([k0, k1, k2, k3]),
                misc: u16::from_ne_bytes([m0, m1]),
                body,
            });
        }
        // Everything is read or invalid.
        guard.position = head;
        round
    }
}

/// A mapped ring.
#[derive(Debug)]
pub(super) struct Ring {
    memory: RingMemory,
    base: *mut libc::c_void,
    len: usize,
}

// SAFETY: this value alone owns the mapping, and the kernel lets any thread read it; the type is not `Sync`, so
// only a single thread reads at a time.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps an event's ring: `data_pages` (a power of two) and the control page.
    ///
    /// # Errors
    /// Errors of `mmap(2)`: EPERM beyond `perf_event_mlock_kb` and RLIMIT_MEMLOCK.
    pub fn map(event: BorrowedFd<'_>, data_pages: usize, page: usize) -> io::Result<Self> {
        if !data_pages.is_power_of_two() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let data_len = data_pages
            .checked_mul(page)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let len = data_len
            .checked_add(page)
            .ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `len` bytes are mapped there until this value is dropped.
        let memory = unsafe { RingMemory::new(base.cast(), page, data_len) };
        Ok(Self { memory, base, len })
    }

    /// Lends every readable record to `lend`, then frees the space.
    pub fn read(&mut self, lend: impl FnMut(RawRecord<'_>)) -> Round {
        self.memory.read(lend)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with that length; nothing refers to it any more.
        let _ = unsafe { libc::munmap(self.base, self.len) };
    }
}

#[cfg(test)]
#[expect(clippy::panic, reason = "tests fail by it")]
mod tests;
