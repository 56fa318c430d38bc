//! A page cache for memory reads: a poll reads thousands of small items close together.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use vmscope_records::Avma;

use crate::{Memory, MemoryError};

/// Bytes per read, the smallest unit of a process's memory map. Data of the VM lie far apart:
/// larger reads copy more than they save.
const PAGE: u64 = 4096;

/// Maximum number of cached pages (16 MiB); then the cache drops all pages.
const MAX_PAGES: usize = 1 << 12;

/// Number of pages that [`Pages::expect`] reads at once: 256 KiB fit into a CPU's cache.
const PAGES_AT_ONCE: usize = 64;

/// Maximum number of pages per poll (4 GiB), even with damaged lists: about a hundred times the
/// size of a large program's classes.
const MAX_READ: u64 = 1 << 20;

/// Cached memory of a process for one poll. Every read returns data as old as its page's first
/// read since [`Pages::renew`].
pub struct Pages<'m> {
    memory: &'m dyn Memory,
    kept: Mutex<FxHashMap<u64, Arc<Page>>>,
    /// Number of pages read.
    read: AtomicU64,
}

/// Maximum number of buffers kept for later pages (4 MiB): new memory costs as much as reading.
const MAX_SPARE: usize = 1 << 10;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer with any contents.
fn spare() -> Vec<u8> {
    let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
    spare.ok().flatten().unwrap_or_default()
}

/// The readable bytes from a page's begin on.
struct Page(Vec<u8>);

impl Drop for Page {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.0);
        // At the thread's end, the buffers are gone.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < MAX_SPARE {
                spare.push(bytes);
            }
        });
    }
}

impl std::fmt::Debug for Pages<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages")
            .field("kept", &self.kept().len())
            .finish_non_exhaustive()
    }
}

impl<'m> Pages<'m> {
    /// An empty cache over `memory`.
    #[must_use]
    pub fn new(memory: &'m dyn Memory) -> Self {
        Pages {
            memory,
            kept: Mutex::default(),
            read: AtomicU64::new(0),
        }
    }

    /// The memory itself, for bulk reads.
    #[must_use]
    pub fn memory(&self) -> &'m dyn Memory {
        self.memory
    }

    /// Drops all pages. Call this before the first read of a newly found object: cached pages may
    /// be older.
    pub fn renew(&self) {
        self.kept().clear();
    }

    fn kept(&self) -> MutexGuard<'_, FxHashMap<u64, Arc<Page>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn page(&self, number: u64) -> Result<Arc<Page>, MemoryError> {
        if let Some(page) = self.kept().get(&number) {
            return Ok(Arc::clone(page));
        }
        if self.read.fetch_add(1, Ordering::Relaxed) >= MAX_READ {
            return Err(MemoryError::Unmapped {
                at: Avma(number.saturating_mul(PAGE)),
                wanted: usize::try_from(PAGE).unwrap_or(0),
                got: 0,
            });
        }
        let page = Arc::new(self.read_page(number)?);
        let mut kept = self.kept();
        if kept.len() >= MAX_PAGES {
            kept.clear();
        }
        kept.insert(number, Arc::clone(&page));
        Ok(page)
    }

    fn read_page(&self, number: u64) -> Result<Page, MemoryError> {
        let mut bytes = spare();
        bytes.resize(usize::try_from(PAGE).unwrap_or(0), 0);
        let start = Avma(number.saturating_mul(PAGE));
        let got = match self.memory.read_partial(start, &mut bytes) {
            Err(error) if error.is_final() => return Err(error),
            got => got.unwrap_or(0),
        };
        bytes.truncate(got);
        Ok(Page(bytes))
    }
}

impl Memory for Pages<'_> {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let Some(from) = at.0.checked_add(done as u64) else {
                break;
            };
            let page = self.page(from / PAGE)?;
            let within = usize::try_from(from % PAGE).unwrap_or(0);
            let readable = page.0.get(within..).unwrap_or_default();
            let length = rest.len().min(readable.len());
            let Some(piece) = readable.get(..length).filter(|piece| !piece.is_empty()) else {
                break;
            };
            if let Some(into) = rest.get_mut(..length) {
                into.copy_from_slice(piece);
            }
            done += length;
        }
        Ok(done)
    }

    fn expect(&self, addresses: &[Avma]) -> Result<(), MemoryError> {
        let mut numbers: Vec<u64> = addresses.iter().map(|at| at.0 / PAGE).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut kept = self.kept();
        numbers.retain(|number| !kept.contains_key(number));
        numbers.truncate(MAX_PAGES.saturating_sub(kept.len()));
        let left = MAX_READ.saturating_sub(self.read.load(Ordering::Relaxed));
        numbers.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        self.read.fetch_add(numbers.len() as u64, Ordering::Relaxed);
        let length = usize::try_from(PAGE).unwrap_or(0);
        let mut bytes = Vec::new();
        for numbers in numbers.chunks(PAGES_AT_ONCE) {
            let starts = numbers.iter().map(|number| Avma(number * PAGE));
            let starts: Vec<Avma> = starts.collect();
            let read = self.memory.read_each(&starts, length, &mut bytes)?;
            for ((number, bytes), is_whole) in numbers.iter().zip(bytes.chunks(length)).zip(read) {
                if is_whole {
                    let mut page = spare();
                    page.clear();
                    page.extend_from_slice(bytes);
                    kept.insert(*number, Arc::new(Page(page)));
                }
            }
        }
        Ok(())
    }

    fn pointer_bytes(&self) -> usize {
        self.memory.pointer_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU8;

    use super::*;
    use crate::testing::FakeMemory;

    /// All bytes have one value, which changes.
    struct Changing(AtomicU8);

    impl Memory for Changing {
        fn read_partial(&self, _: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
            buffer.fill(self.0.load(Ordering::Relaxed));
            Ok(buffer.len())
        }
    }

    #[test]
    fn what_was_read_is_as_old_as_its_page_until_that_is_forgotten() {
        let memory = Changing(AtomicU8::new(7));
        let pages = Pages::new(&memory);
        assert_eq!(pages.read_u8(Avma(0x1_0000)).unwrap(), 7);
        memory.0.store(9, Ordering::Relaxed);
        assert_eq!(pages.read_u8(Avma(0x1_0fff)).unwrap(), 7);
        pages.renew();
        assert_eq!(pages.read_u8(Avma(0x1_0fff)).unwrap(), 9);
    }

    #[test]
    fn expected_pages_are_read_at_once() {
        let memory = Changing(AtomicU8::new(7));
        let pages = Pages::new(&memory);
        let places = (0..200).map(|index| Avma(0x1_0000 + index * 0x1234));
        let places: Vec<Avma> = places.collect();
        pages.expect(&places).unwrap();
        memory.0.store(9, Ordering::Relaxed);
        for at in places {
            assert_eq!(pages.read_u8(at).unwrap(), 7);
        }
        assert_eq!(pages.read_u8(Avma(0x9000_0000)).unwrap(), 9);
    }

    #[test]
    fn expected_pages_may_be_in_a_gap_or_at_the_end_of_memory() {
        let mut memory = FakeMemory::new();
        memory.put(Avma(0x1_0000), vec![7; 0x1800]);
        let pages = Pages::new(&memory);
        let places = [0, 0x1_0010, 0x1_17f0, 0x5_0000, u64::MAX].map(Avma);
        pages.expect(&places).unwrap();
        assert_eq!(pages.read_u8(Avma(0x1_17ff)).unwrap(), 7);
        assert_eq!(pages.read_u8(Avma(0x1_1800)).ok(), None);
        assert_eq!(pages.read_u8(Avma(0x5_0000)).ok(), None);
    }

    #[test]
    fn reads_up_to_a_gap_and_not_beyond() {
        let mut memory = FakeMemory::new();
        memory.put(Avma(0x1_0000), vec![7; 0x3000]);
        memory.put(Avma(0x1_4000), vec![9; 0x2_0000]);
        let pages = Pages::new(&memory);
        let mut buffer = [0; 64];
        assert_eq!(pages.read_partial(Avma(0x1_2fe0), &mut buffer).unwrap(), 32);
        assert_eq!(pages.read_partial(Avma(0x1_3000), &mut buffer).unwrap(), 0);
        assert_eq!(pages.read_partial(Avma(0x1_ffe0), &mut buffer).unwrap(), 64);
        assert_eq!(buffer, [9; 64]);
        assert_eq!(pages.read_u64(Avma(u64::MAX - 3)).ok(), None);
    }
}
