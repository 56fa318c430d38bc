//! Another process's memory behind one trait: a live process, a core file, or a test's fake memory.
//!
//! Reads are no snapshots: the target's threads keep writing. Adapters re-check the VM's own
//! counters around their reads ([`crate::read_consistently`]) and validate every length, pointer
//! and count. Targets are little-endian.

use vmscope_records::{Avma, Pid};

/// Methods of [`Memory`] that read one number.
macro_rules! little_endian {
    ($($read:ident $number:ident),*) => {$(
        #[doc = concat!("The little-endian `", stringify!($number), "` at the unaligned address `at`.")]
        ///
        /// # Errors
        /// As [`Memory::read_into`].
        fn $read(&self, at: Avma) -> Result<$number, MemoryError> {
            let mut bytes = [0; size_of::<$number>()];
            self.read_into(at, &mut bytes)?;
            Ok($number::from_le_bytes(bytes))
        }
    )*};
}

/// Memory of a target.
///
/// Implementations provide [`Memory::read_partial`]; all other methods use it. Lengths are checked
/// against a cap before any allocation; address arithmetic never wraps.
pub trait Memory: Send + Sync {
    /// Fills `buffer` from address `at` up to the first unreadable byte and returns the number of
    /// bytes, 0 if `at` itself is unreadable.
    ///
    /// # Errors
    /// Failures of every read ([`MemoryError::Denied`], [`MemoryError::Gone`]) and our own
    /// ([`MemoryError::Io`]). Unmapped memory is no error here.
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError>;

    /// Reads `length` bytes from each of `addresses` into `buffer`, one after the other. Returns
    /// whether each was completely readable; other bytes are unspecified. Few system calls read a live
    /// process.
    ///
    /// # Errors
    /// As [`Memory::read_partial`].
    fn read_each(
        &self,
        addresses: &[Avma],
        length: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<Vec<bool>, MemoryError> {
        buffer.clear();
        buffer.resize(addresses.len().saturating_mul(length), 0);
        let parts = buffer.chunks_mut(length.max(1)).zip(addresses);
        parts
            .map(|(part, at)| Ok(self.read_partial(*at, part)? == length))
            .collect()
    }

    /// Tells that reads at these addresses follow: a cache reads their pages at once.
    ///
    /// # Errors
    /// As [`Memory::read_partial`].
    fn expect(&self, _addresses: &[Avma]) -> Result<(), MemoryError> {
        Ok(())
    }

    /// Pointer size of the target in bytes: 8, or 4 in a 32-bit process.
    fn pointer_bytes(&self) -> usize {
        8
    }

    /// Fills all of `buffer` from address `at`.
    ///
    /// # Errors
    /// [`MemoryError::Unmapped`] if part of the range is unreadable (contents of `buffer` then
    /// unspecified); errors of [`Memory::read_partial`].
    fn read_into(&self, at: Avma, buffer: &mut [u8]) -> Result<(), MemoryError> {
        checked_end(at, buffer.len())?;
        let wanted = buffer.len();
        let got = self.read_partial(at, buffer)?;
        if got < wanted {
            return Err(MemoryError::Unmapped { at, wanted, got });
        }
        Ok(())
    }

    little_endian! { read_u8 u8, read_u16 u16, read_u32 u32, read_i32 i32, read_u64 u64 }

    /// The pointer at `at`, [`Memory::pointer_bytes`] wide.
    ///
    /// # Errors
    /// As [`Memory::read_into`].
    fn read_pointer(&self, at: Avma) -> Result<Avma, MemoryError> {
        if self.pointer_bytes() == 4 {
            self.read_u32(at).map(|value| Avma(u64::from(value)))
        } else {
            self.read_u64(at).map(Avma)
        }
    }

    /// Reads `length` bytes from `at`.
    ///
    /// # Errors
    /// [`MemoryError::TooLong`] if `length` exceeds `cap` bytes, before any allocation; errors of
    /// [`Memory::read_into`].
    fn read_vec(&self, at: Avma, length: u64, cap: usize) -> Result<Vec<u8>, MemoryError> {
        let length = capped(length, 1, cap)?;
        checked_end(at, length)?;
        let mut bytes = vec![0; length];
        self.read_into(at, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads `count` little-endian 32-bit numbers from `at`.
    ///
    /// # Errors
    /// [`MemoryError::TooLong`] if `count` exceeds `cap` *numbers*; errors of
    /// [`Memory::read_into`].
    fn read_u32s(&self, at: Avma, count: u64, cap: usize) -> Result<Vec<u32>, MemoryError> {
        let bytes = read_items(self, at, count, 4, cap)?;
        let (words, _) = bytes.as_chunks::<4>();
        Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    /// Reads `count` little-endian 64-bit numbers from `at`.
    ///
    /// # Errors
    /// [`MemoryError::TooLong`] if `count` exceeds `cap` *numbers*; errors of
    /// [`Memory::read_into`].
    fn read_u64s(&self, at: Avma, count: u64, cap: usize) -> Result<Vec<u64>, MemoryError> {
        let bytes = read_items(self, at, count, 8, cap)?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// Reads a zero-terminated string, without the zero. Reads page by page: nothing need follow a
    /// string at the end of a mapping.
    ///
    /// # Errors
    /// [`MemoryError::TooLong`] without a zero in the first `max` bytes; [`MemoryError::Unmapped`]
    /// if memory ends first; errors of [`Memory::read_partial`].
    fn read_c_string(&self, at: Avma, max: usize) -> Result<Vec<u8>, MemoryError> {
        let mut string = Vec::new();
        let mut from = at;
        while string.len() < max {
            let to_page_end = SMALLEST_PAGE_BYTES - from.0 % SMALLEST_PAGE_BYTES;
            let length = usize::try_from(to_page_end).unwrap_or(usize::MAX);
            let mut piece = [0; SMALLEST_PAGE_BYTES as usize];
            let length = length.min(max - string.len()).min(piece.len());
            let piece = piece.get_mut(..length).unwrap_or_default();
            let got = self.read_partial(from, piece)?;
            let read = piece.get(..got).unwrap_or_default();
            if let Some(zero) = read.iter().position(|byte| *byte == 0) {
                string.extend(read.iter().take(zero));
                return Ok(string);
            }
            string.extend_from_slice(read);
            let next = checked_end(from, length)?;
            if got < length {
                return Err(MemoryError::Unmapped {
                    at,
                    wanted: string.len().saturating_add(1),
                    got: string.len(),
                });
            }
            from = next;
        }
        Err(MemoryError::TooLong {
            length: u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1),
            cap: max,
        })
    }
}

/// Reads `N` little-endian 64-bit words from each of `addresses`; `None` for unreadable ones. Few system calls
/// read a live process ([`Memory::read_each`]).
///
/// # Errors
/// As [`Memory::read_partial`].
pub fn read_words<const N: usize>(
    memory: &dyn Memory,
    addresses: &[Avma],
) -> Result<Vec<Option<[u64; N]>>, MemoryError> {
    let mut bytes = Vec::new();
    let are_read = memory.read_each(addresses, N * 8, &mut bytes)?;
    let (words, _) = bytes.as_chunks::<8>();
    let (places, _) = words.as_chunks::<N>();
    let places = places.iter().zip(are_read);
    let words = places.map(|(words, is_read)| is_read.then(|| words.map(u64::from_le_bytes)));
    Ok(words.collect())
}

/// The smallest page size of Linux: a read up to its next multiple touches one page only.
const SMALLEST_PAGE_BYTES: u64 = 4096;

fn checked_end(at: Avma, length: usize) -> Result<Avma, MemoryError> {
    u64::try_from(length)
        .ok()
        .and_then(|length| at.checked_add(length))
        .ok_or(MemoryError::AddressOverflow { at, length })
}

/// Length in bytes of `count` items of `size` bytes, if `count` is at most `cap`.
fn capped(count: u64, size: usize, cap: usize) -> Result<usize, MemoryError> {
    usize::try_from(count)
        .ok()
        .filter(|count| *count <= cap)
        .and_then(|count| count.checked_mul(size))
        .ok_or(MemoryError::TooLong { length: count, cap })
}

fn read_items<M: Memory + ?Sized>(
    memory: &M,
    at: Avma,
    count: u64,
    size: usize,
    cap: usize,
) -> Result<Vec<u8>, MemoryError> {
    let length = capped(count, size, cap)?;
    memory.read_vec(at, u64::try_from(length).unwrap_or(u64::MAX), length)
}

/// A failed memory read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Part of the range is not mapped readable (or missing in the core file).
    #[error("cannot read {wanted} bytes at {at}: only the first {got} are readable")]
    Unmapped {
        /// First address.
        at: Avma,
        /// Requested bytes.
        wanted: usize,
        /// Readable bytes.
        got: usize,
    },
    /// The range exceeds the address space.
    #[error("cannot read {length} bytes at {at}: beyond the end of the address space")]
    AddressOverflow {
        /// First address.
        at: Avma,
        /// Requested bytes.
        length: usize,
    },
    /// The length exceeds the caller's cap.
    #[error("implausible length {length} (at most {cap} expected)")]
    TooLong {
        /// Length in the target's memory.
        length: u64,
        /// Maximum length.
        cap: usize,
    },
    /// The kernel denies access (`EPERM`).
    #[error("no permission to read the memory of process {pid}")]
    Denied {
        /// The process.
        pid: Pid,
    },
    /// The process exited (`ESRCH`).
    #[error("process {pid} has ended")]
    Gone {
        /// The process.
        pid: Pid,
    },
    /// The system failed.
    #[error("cannot read {wanted} bytes at {at}")]
    Io {
        /// First address.
        at: Avma,
        /// Requested bytes.
        wanted: usize,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
}

impl MemoryError {
    /// Remedy for the user; empty if none.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            MemoryError::Denied { .. } => {
                "run vmscope as the process's user; if kernel.yama.ptrace_scope is 1 or more, \
                 start the program with `vmscope record -- CMD`, run vmscope with CAP_SYS_PTRACE, \
                 or set kernel.yama.ptrace_scope to 0"
            }
            _ => "",
        }
    }

    /// Whether all later reads must fail too: the process exited or denies access.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, MemoryError::Denied { .. } | MemoryError::Gone { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeMemory;

    fn memory() -> FakeMemory {
        let mut memory = FakeMemory::new();
        memory.put(Avma(0x1000), (0..=255).cycle().take(0x1000).collect());
        memory.put(Avma(0x2000), vec![b'x'; 0x1000]);
        memory
    }

    #[test]
    fn numbers_are_little_endian_and_may_be_unaligned() {
        let memory = memory();
        assert_eq!(memory.read_u8(Avma(0x1001)).unwrap(), 1);
        assert_eq!(memory.read_u16(Avma(0x1001)).unwrap(), 0x0201);
        assert_eq!(memory.read_u32(Avma(0x1001)).unwrap(), 0x0403_0201);
        assert_eq!(memory.read_i32(Avma(0x10fc)).unwrap(), -0x0001_0204);
        assert_eq!(
            memory.read_u64(Avma(0x1001)).unwrap(),
            0x0807_0605_0403_0201
        );
        assert_eq!(
            memory.read_pointer(Avma(0x1001)).unwrap(),
            Avma(0x0807_0605_0403_0201)
        );
        assert_eq!(memory.read_u32s(Avma(0x1000), 2, 2).unwrap().len(), 2);
        assert_eq!(
            memory.read_u64s(Avma(0x1000), 1, 2).unwrap(),
            [0x0706_0504_0302_0100]
        );
    }

    #[test]
    fn reads_cross_regions_and_stop_at_gaps() {
        let memory = memory();
        assert_eq!(memory.read_u16(Avma(0x1fff)).unwrap(), 0x78ff);
        let mut buffer = [0; 16];
        assert_eq!(memory.read_partial(Avma(0x2ff8), &mut buffer).unwrap(), 8);
        assert_eq!(memory.read_partial(Avma(0x5000), &mut buffer).unwrap(), 0);
        assert!(matches!(
            memory.read_into(Avma(0x2ff8), &mut buffer),
            Err(MemoryError::Unmapped {
                wanted: 16,
                got: 8,
                ..
            })
        ));
    }

    #[test]
    fn lengths_are_checked_before_anything_is_allocated() {
        let memory = memory();
        for result in [
            memory.read_vec(Avma(0x1000), u64::MAX, 1 << 20).map(drop),
            memory
                .read_u32s(Avma(0x1000), u64::MAX / 2, 1 << 20)
                .map(drop),
            memory
                .read_u64s(Avma(0x1000), 1 << 62, usize::MAX)
                .map(drop),
        ] {
            assert!(
                matches!(result, Err(MemoryError::TooLong { .. })),
                "{result:?}"
            );
        }
        assert!(matches!(
            memory.read_u64(Avma(u64::MAX - 3)),
            Err(MemoryError::AddressOverflow { .. })
        ));
    }

    #[test]
    fn strings_end_at_zero_at_the_cap_or_in_a_gap() {
        let mut memory = FakeMemory::new();
        let mut bytes = vec![b'a'; 0x1004];
        bytes[0x1003] = 0;
        memory.put(Avma(0x1ffd), bytes);
        let string = memory.read_c_string(Avma(0x1ffd), 1 << 16).unwrap();
        assert_eq!(string.len(), 0x1003);
        assert!(matches!(
            memory.read_c_string(Avma(0x1ffd), 100),
            Err(MemoryError::TooLong { cap: 100, .. })
        ));
        memory.put(Avma(0x8000), b"abc".to_vec());
        assert!(matches!(
            memory.read_c_string(Avma(0x8000), 100),
            Err(MemoryError::Unmapped { got: 3, .. })
        ));
        memory.put(Avma(u64::MAX - 2), b"ab".to_vec());
        assert!(memory.read_c_string(Avma(u64::MAX - 2), 100).is_err());
    }
}
