//! Memory with a limit on the bytes read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use vmscope_process::{Memory, MemoryError};
use vmscope_records::Avma;

/// Memory that refuses reads after a number of bytes.
pub(super) struct Budget<'m> {
    memory: &'m dyn Memory,
    left: AtomicU64,
    is_spent: AtomicBool,
}

impl<'m> Budget<'m> {
    /// Allows reads of `bytes` bytes from `memory`.
    pub fn new(memory: &'m dyn Memory, bytes: u64) -> Self {
        Budget {
            memory,
            left: AtomicU64::new(bytes),
            is_spent: AtomicBool::new(false),
        }
    }

    /// Whether the limit has refused a read.
    pub fn is_spent(&self) -> bool {
        self.is_spent.load(Relaxed)
    }
}

impl Memory for Budget<'_> {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        let wanted = buffer.len() as u64;
        let take = |left: u64| left.checked_sub(wanted);
        if self.left.fetch_update(Relaxed, Relaxed, take).is_err() {
            self.is_spent.store(true, Relaxed);
            return Ok(0);
        }
        self.memory.read_partial(at, buffer)
    }

    fn pointer_bytes(&self) -> usize {
        self.memory.pointer_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmscope_process::testing::FakeMemory;

    #[test]
    fn no_more_is_read_than_there_is_budget_for() {
        let mut memory = FakeMemory::new();
        memory.put(Avma(0x1000), vec![7; 0x1000]);
        let budget = Budget::new(&memory, 20);
        assert_eq!(
            budget.read_u64(Avma(0x1000)).ok(),
            Some(0x0707_0707_0707_0707)
        );
        assert!(budget.read_u64(Avma(0x1008)).is_ok() && !budget.is_spent());
        assert!(budget.read_u64(Avma(0x1000)).is_err() && budget.is_spent());
        assert_eq!(budget.read_u32(Avma(0x1000)).ok(), Some(0x0707_0707));
        assert!(budget.read_u8(Avma(0x1000)).is_err());
    }
}
