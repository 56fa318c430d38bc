//! The shared memory: a sealed memfd, mapped.
#![allow(
    unsafe_code,
    reason = "memory shared between processes is mapped here, and lent out as atomics only"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::ptr::NonNull;

use crate::layout::{self, word};
use crate::lease::Leases;
use crate::sync::AtomicU64;

/// Seals of the memory: the size is fixed, so accesses to a mapping never fail.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A mapping of memory shared by several processes. Unmapped on drop.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<AtomicU64>,
    words: usize,
    file: File,
}

// SAFETY: a mapping belongs to no particular thread, and `Memory` lends out atomics only.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

impl Memory {
    /// New memory of `bytes` bytes, all 0, with sealed size.
    ///
    /// # Errors
    ///
    /// `InvalidData` if `bytes` is smaller than a header; errors of `memfd_create`, `ftruncate`,
    /// `fcntl` and `mmap`.
    pub fn create(bytes: usize) -> io::Result<Self> {
        if bytes < layout::HEADER_BYTES {
            return Err(invalid("it is too small"));
        }
        let flags = libc::MFD_ALLOW_SEALING | libc::MFD_CLOEXEC;
        // SAFETY: the name is a NUL-terminated string.
        let fd = check(unsafe { libc::memfd_create(layout::NAME.as_ptr(), flags) })?;
        // SAFETY: the call above made the descriptor, so no other owner exists.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(bytes as u64)?;
        // SAFETY: plain system call. Other users get no access.
        check(unsafe { libc::fchmod(fd, 0o600) })?;
        // SAFETY: plain system call.
        check(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, SEALS) })?;
        Self::map(file, bytes)
    }

    /// Maps memory that another process created.
    ///
    /// # Errors
    ///
    /// `InvalidData` if the size is unsealed, smaller than a header, larger than the largest memory
    /// or no multiple of 8; errors of `fcntl`, `fstat` and `mmap`.
    pub fn open(file: File) -> io::Result<Self> {
        // SAFETY: plain system call.
        let seals = check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) })?;
        let size = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
        if seals & size != size {
            return Err(invalid("its size is not sealed"));
        }
        let bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        let largest = layout::HEADER_BYTES + layout::THREADS_BYTES + 2 * layout::LARGEST_RING;
        if !(layout::HEADER_BYTES..=largest).contains(&bytes) || !bytes.is_multiple_of(8) {
            return Err(invalid("its size is not possible"));
        }
        Self::map(file, bytes)
    }

    fn map(file: File, bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice replaces no other.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| invalid("it was mapped at 0"))?;
        let words = bytes / 8;
        Ok(Self { start, words, file })
    }

    /// The memory's file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.words * 8
    }

    /// All words.
    #[must_use]
    #[inline]
    pub fn all(&self) -> &[AtomicU64] {
        // SAFETY: `start` is the page-aligned start of a mapping of `words` words, which lives as
        // long as `self`, is readable and writable, and cannot shrink, because its size is sealed.
        // Atomics allow concurrent changes, also by other processes.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }

    /// Header word at an index of [`layout::word`].
    #[must_use]
    #[inline]
    pub fn word(&self, index: usize) -> &AtomicU64 {
        const WORDS: usize = layout::HEADER_BYTES / 8;
        // SAFETY: as in `all`. `create` and `open` check that the mapping holds at least a header.
        let header = unsafe { self.start.cast::<[AtomicU64; WORDS]>().as_ref() };
        &header[index % WORDS]
    }

    /// `words` words from byte `offset` on, if the memory is large enough.
    #[must_use]
    #[inline]
    pub fn part(&self, offset: usize, words: usize) -> Option<&[AtomicU64]> {
        self.all().get(offset / 8..)?.get(..words)
    }

    /// The leases of profilers.
    #[must_use]
    pub fn leases(&self) -> Leases<'_> {
        let ends = self.all().get(word::LEASES..word::LEASES + layout::LEASES);
        Leases::new(
            self.word(word::LISTENING),
            ends.unwrap_or_default(),
            layout::LONGEST_LEASE_NS,
        )
    }

    /// Replaces the memory by private memory of zeros in this process, for the child of a fork: no
    /// profiler listens to the private memory, and no write reaches the parent's readers.
    ///
    /// Async-signal-safe.
    pub fn disconnect(&self) {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let start = self.start.as_ptr().cast();
        // SAFETY: replaces exactly this mapping, whose users hold atomics only, which stay valid.
        let result = unsafe { libc::mmap(start, self.bytes(), protection, flags, -1, 0) };
        if result == libc::MAP_FAILED {
            // The kernel lacks memory for a mapping. The child keeps the parent's mapping, and
            // readers recognise the child by its process id.
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference to it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes()) };
    }
}

fn invalid(words: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

/// Time in nanoseconds of `CLOCK_MONOTONIC`.
#[must_use]
#[inline]
pub fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// CPU time of the calling thread in nanoseconds.
#[must_use]
pub fn thread_cpu() -> Option<u64> {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Time in nanoseconds of any clock, if it exists.
#[inline]
pub(crate) fn clock(id: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to a local variable.
    let result = unsafe { libc::clock_gettime(id, &raw mut time) };
    let ns = time.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000);
    (result == 0).then(|| ns.wrapping_add(time.tv_nsec.cast_unsigned()))
}
