//! Another process's memory behind one trait, so that an adapter reads a live
//! process, a core file and a test's made-up memory alike.
//!
//! What comes back is whatever the target's threads were writing at that moment:
//! a read is no snapshot. Adapters re-check the VM's own counters around their
//! reads ([`crate::read_consistently`]) and believe no length, pointer or count
//! before it was checked. Targets are little-endian.

use vmscope_records::{Avma, Pid};

/// Reading the memory of a target.
///
/// Implementations give [`Memory::read_partial`]; everything else follows from it.
/// All lengths are checked against a cap before anything is allocated, and all
/// addresses are computed without wrapping.
pub trait Memory: Send + Sync {
    /// Fills `buffer` from the address `at` on, as far as the memory is readable
    /// without a gap, and says how many bytes that were: 0 when `at` itself is not
    /// readable.
    ///
    /// # Errors
    ///
    /// Only what makes every read fail ([`MemoryError::Denied`],
    /// [`MemoryError::Gone`]) or is a failure of our own ([`MemoryError::Io`]);
    /// memory that is not there is not an error here.
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError>;

    /// The size of a pointer of the target in bytes: 8, or 4 in a 32-bit process.
    fn pointer_bytes(&self) -> usize {
        8
    }

    /// Fills all of `buffer` from the address `at` on.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Unmapped`] when less than all could be read (what `buffer`
    /// holds then is unspecified), and those of [`Memory::read_partial`].
    fn read_into(&self, at: Avma, buffer: &mut [u8]) -> Result<(), MemoryError> {
        checked_end(at, buffer.len())?;
        let wanted = buffer.len();
        let got = self.read_partial(at, buffer)?;
        if got < wanted {
            return Err(MemoryError::Unmapped { at, wanted, got });
        }
        Ok(())
    }

    /// The byte at `at`.
    ///
    /// # Errors
    ///
    /// Those of [`Memory::read_into`].
    fn read_u8(&self, at: Avma) -> Result<u8, MemoryError> {
        let mut bytes = [0; 1];
        self.read_into(at, &mut bytes)?;
        Ok(u8::from_le_bytes(bytes))
    }

    /// The little-endian 16-bit number at `at`, which need not be aligned.
    ///
    /// # Errors
    ///
    /// Those of [`Memory::read_into`].
    fn read_u16(&self, at: Avma) -> Result<u16, MemoryError> {
        let mut bytes = [0; 2];
        self.read_into(at, &mut bytes)?;
        Ok(u16::from_le_bytes(bytes))
    }

    /// The little-endian 32-bit number at `at`, which need not be aligned.
    ///
    /// # Errors
    ///
    /// Those of [`Memory::read_into`].
    fn read_u32(&self, at: Avma) -> Result<u32, MemoryError> {
        let mut bytes = [0; 4];
        self.read_into(at, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// The little-endian signed 32-bit number at `at`, which need not be aligned.
    ///
    /// # Errors
    ///
    /// Those of [`Memory::read_into`].
    fn read_i32(&self, at: Avma) -> Result<i32, MemoryError> {
        let mut bytes = [0; 4];
        self.read_into(at, &mut bytes)?;
        Ok(i32::from_le_bytes(bytes))
    }

    /// The little-endian 64-bit number at `at`, which need not be aligned.
    ///
    /// # Errors
    ///
    /// Those of [`Memory::read_into`].
    fn read_u64(&self, at: Avma) -> Result<u64, MemoryError> {
        let mut bytes = [0; 8];
        self.read_into(at, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// The pointer at `at`, [`Memory::pointer_bytes`] wide.
    ///
    /// # Errors
    ///
    /// Those of [`Memory::read_into`].
    fn read_pointer(&self, at: Avma) -> Result<Avma, MemoryError> {
        if self.pointer_bytes() == 4 {
            self.read_u32(at).map(|value| Avma(u64::from(value)))
        } else {
            self.read_u64(at).map(Avma)
        }
    }

    /// `length` bytes from `at` on.
    ///
    /// # Errors
    ///
    /// [`MemoryError::TooLong`] when `length` is more than `cap` bytes, before
    /// anything is allocated; and those of [`Memory::read_into`].
    fn read_vec(&self, at: Avma, length: u64, cap: usize) -> Result<Vec<u8>, MemoryError> {
        let length = capped(length, 1, cap)?;
        checked_end(at, length)?;
        let mut bytes = vec![0; length];
        self.read_into(at, &mut bytes)?;
        Ok(bytes)
    }

    /// `count` little-endian 32-bit numbers from `at` on.
    ///
    /// # Errors
    ///
    /// [`MemoryError::TooLong`] when they are more than `cap` *numbers*; and those
    /// of [`Memory::read_into`].
    fn read_u32s(&self, at: Avma, count: u64, cap: usize) -> Result<Vec<u32>, MemoryError> {
        let bytes = read_items(self, at, count, 4, cap)?;
        let (words, _) = bytes.as_chunks::<4>();
        Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    /// `count` little-endian 64-bit numbers from `at` on.
    ///
    /// # Errors
    ///
    /// [`MemoryError::TooLong`] when they are more than `cap` *numbers*; and those
    /// of [`Memory::read_into`].
    fn read_u64s(&self, at: Avma, count: u64, cap: usize) -> Result<Vec<u64>, MemoryError> {
        let bytes = read_items(self, at, count, 8, cap)?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// The bytes from `at` up to the next zero byte, which is not among them.
    /// Reads page by page, so that a string at the very end of a mapping is read
    /// although nothing follows it.
    ///
    /// # Errors
    ///
    /// [`MemoryError::TooLong`] when the first `max` bytes hold no zero;
    /// [`MemoryError::Unmapped`] when the memory ends before one; and those of
    /// [`Memory::read_partial`].
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

/// No Linux has smaller pages: reading up to the next multiple of this never
/// touches a page more than needed.
const SMALLEST_PAGE_BYTES: u64 = 4096;

/// The address after `length` bytes from `at`.
fn checked_end(at: Avma, length: usize) -> Result<Avma, MemoryError> {
    u64::try_from(length)
        .ok()
        .and_then(|length| at.checked_add(length))
        .ok_or(MemoryError::AddressOverflow { at, length })
}

/// `count` items of `size` bytes as a length in bytes, if they are at most `cap`
/// items.
fn capped(count: u64, size: usize, cap: usize) -> Result<usize, MemoryError> {
    usize::try_from(count)
        .ok()
        .filter(|count| *count <= cap)
        .and_then(|count| count.checked_mul(size))
        .ok_or(MemoryError::TooLong { length: count, cap })
}

/// The bytes of `count` items of `size` bytes, at most `cap` of them.
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

/// Why memory could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The range is not, or not all of it, mapped readable (in a core file: not in
    /// the file).
    #[error("read of {wanted} bytes at {at}: only the first {got} are readable memory")]
    Unmapped {
        /// The first address that was wanted.
        at: Avma,
        /// How many bytes were wanted.
        wanted: usize,
        /// How many could be read.
        got: usize,
    },
    /// The range goes past the end of the address space.
    #[error("read of {length} bytes at {at} goes past the end of the address space")]
    AddressOverflow {
        /// The first address.
        at: Avma,
        /// How many bytes were wanted.
        length: usize,
    },
    /// More than the caller is ready to take.
    #[error("{length} items or bytes where at most {cap} are believed")]
    TooLong {
        /// What the target's memory says.
        length: u64,
        /// What the caller accepts.
        cap: usize,
    },
    /// The kernel does not let us read this process's memory (`EPERM`).
    #[error("reading the memory of process {pid} is not permitted")]
    Denied {
        /// Whose memory.
        pid: Pid,
    },
    /// The process is gone (`ESRCH`).
    #[error("process {pid} is gone")]
    Gone {
        /// Which one it was.
        pid: Pid,
    },
    /// The read itself failed.
    #[error("read of {wanted} bytes at {at} failed")]
    Io {
        /// The first address.
        at: Avma,
        /// How many bytes were wanted.
        wanted: usize,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
}

impl MemoryError {
    /// The one thing to do about it, for people; empty where nothing helps.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            MemoryError::Denied { .. } => {
                "run vmscope as the user whose process it is; if kernel.yama.ptrace_scope is 1 \
                 or more, start the program under vmscope (vmscope record -- CMD), or run \
                 vmscope with CAP_SYS_PTRACE, or set kernel.yama.ptrace_scope to 0"
            }
            _ => "",
        }
    }

    /// Whether every later read will fail as well: the process is gone, or may
    /// not be read at all.
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
