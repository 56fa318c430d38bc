//! Address ranges whose memory can be had and given back piece by piece.

use super::MemoryError;

/// A reserved address range. A prefix of its pages has usable memory.
#[derive(Debug)]
pub struct Reservation {
    start: usize,
    bytes: usize,
}

impl Reservation {
    /// First address. A multiple of the page size.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Address after the last byte.
    pub fn end(&self) -> usize {
        self.start + self.bytes
    }
}

/// The system's page size divides this size.
pub const PAGE: usize = 4096;

/// `bytes` rounded up to whole pages.
pub const fn whole_pages(bytes: usize) -> usize {
    bytes.div_ceil(PAGE) * PAGE
}

#[cfg(not(miri))]
mod system {
    use super::{MemoryError, Reservation, whole_pages};
    use std::{io, ptr};

    impl Reservation {
        /// Reserves `bytes` bytes of addresses. None of them is usable yet.
        pub fn new(bytes: usize) -> Result<Self, MemoryError> {
            let bytes = whole_pages(bytes);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: a new mapping at an address of the kernel's choice touches nothing.
            let start =
                unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
            if start == libc::MAP_FAILED {
                let source = io::Error::last_os_error();
                return Err(MemoryError::Reserve { bytes, source });
            }
            // Huge pages halve the time of scavenges that tenure into fresh memory. Where there are
            // none, nothing changes.
            // SAFETY: the mapping was just made.
            unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
            let start = start.expose_provenance();
            Ok(Self { start, bytes })
        }

        /// Makes `bytes` bytes at `start` usable. They are zero.
        pub fn commit(&self, start: usize, bytes: usize) -> Result<(), MemoryError> {
            debug_assert!(start >= self.start && start + bytes <= self.end());
            let address = ptr::with_exposed_provenance_mut(start);
            // SAFETY: the range lies in this mapping, still unused.
            match unsafe { libc::mprotect(address, bytes, libc::PROT_READ | libc::PROT_WRITE) } {
                0 => Ok(()),
                _ => Err(MemoryError::Commit {
                    bytes,
                    source: io::Error::last_os_error(),
                }),
            }
        }

        /// Returns `bytes` bytes at `start` to the system. If the kernel refuses, the process
        /// harmlessly keeps the memory.
        pub fn release(&self, start: usize, bytes: usize) {
            debug_assert!(start >= self.start && start + bytes <= self.end());
            let address = ptr::with_exposed_provenance_mut(start);
            // SAFETY: the range lies in this mapping, and contains no objects.
            unsafe { libc::madvise(address, bytes, libc::MADV_DONTNEED) };
            // SAFETY: likewise.
            unsafe { libc::mprotect(address, bytes, libc::PROT_NONE) };
        }
    }

    impl Drop for Reservation {
        fn drop(&mut self) {
            let address = ptr::with_exposed_provenance_mut(self.start);
            // SAFETY: this value owns the mapping; the spaces inside end with this value.
            unsafe { libc::munmap(address, self.bytes) };
        }
    }
}

/// Miri lacks reservations: this version allocates all memory at creation.
#[cfg(miri)]
mod system {
    use super::{MemoryError, PAGE, Reservation, whole_pages};
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::{io, ptr};

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, PAGE).expect("a small size")
    }

    impl Reservation {
        pub fn new(bytes: usize) -> Result<Self, MemoryError> {
            let bytes = whole_pages(bytes);
            // SAFETY: the size is not zero.
            let start = unsafe { alloc_zeroed(layout(bytes)) };
            if start.is_null() {
                let source = io::ErrorKind::OutOfMemory.into();
                return Err(MemoryError::Reserve { bytes, source });
            }
            let start = start.expose_provenance();
            Ok(Self { start, bytes })
        }

        pub fn commit(&self, _start: usize, _bytes: usize) -> Result<(), MemoryError> {
            Ok(())
        }

        pub fn release(&self, _start: usize, _bytes: usize) {}
    }

    impl Drop for Reservation {
        fn drop(&mut self) {
            let start = ptr::with_exposed_provenance_mut(self.start);
            // SAFETY: `new` allocated this memory with the same layout.
            unsafe { dealloc(start, layout(self.bytes)) };
        }
    }
}
