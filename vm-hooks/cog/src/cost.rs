//! The cost of reading a VM's memory.

use std::sync::atomic::{AtomicU64, Ordering};

use vmscope_process::{Memory, MemoryError};
use vmscope_records::Avma;

/// Memory that counts its reads.
pub struct CountedMemory<'m> {
    memory: &'m dyn Memory,
    reads: AtomicU64,
    bytes: AtomicU64,
}

/// A number of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Reads: system calls, roughly.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
}

impl Cost {
    /// Both together.
    #[must_use]
    pub fn with(self, other: Cost) -> Cost {
        Cost {
            reads: self.reads.saturating_add(other.reads),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

impl std::fmt::Debug for CountedMemory<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CountedMemory")
            .field("cost", &self.cost())
            .finish_non_exhaustive()
    }
}

impl<'m> CountedMemory<'m> {
    /// Counts reads of `memory`.
    #[must_use]
    pub fn new(memory: &'m dyn Memory) -> Self {
        CountedMemory {
            memory,
            reads: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Reads so far.
    #[must_use]
    pub fn cost(&self) -> Cost {
        Cost {
            reads: self.reads.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    fn count(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Memory for CountedMemory<'_> {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        self.count(buffer.len());
        self.memory.read_partial(at, buffer)
    }

    fn read_each(
        &self,
        addresses: &[Avma],
        length: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<Vec<bool>, MemoryError> {
        self.count(addresses.len().saturating_mul(length));
        self.memory.read_each(addresses, length, buffer)
    }

    fn pointer_bytes(&self) -> usize {
        self.memory.pointer_bytes()
    }
}
