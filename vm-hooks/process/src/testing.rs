//! Fakes for tests: process memory, small ELF files, snapshots of processes.

mod elf_image;
mod patched;
mod snapshot;

pub use elf_image::{ElfImage, ImageSegment};
pub use patched::Patchable;
pub use snapshot::{KeepingMemory, PAGE_BYTES, Snapshot, SnapshotError};

use std::collections::BTreeMap;

use vmscope_records::Avma;

use crate::{Memory, MemoryError};

/// Fake memory: regions of bytes at addresses.
#[derive(Clone, Debug, Default)]
pub struct FakeMemory {
    /// Regions by first address, never overlapping.
    regions: BTreeMap<u64, Vec<u8>>,
    /// Pointer size; 0 stands for 8.
    pointer_bytes: usize,
}

impl FakeMemory {
    /// Empty memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the pointer size in bytes (4 or 8).
    #[must_use]
    pub fn with_pointer_bytes(mut self, bytes: usize) -> Self {
        self.pointer_bytes = bytes;
        self
    }

    /// Maps `bytes` at `at` over previous mappings, cut at the end of the address space.
    pub fn put(&mut self, at: Avma, mut bytes: Vec<u8>) {
        let room = usize::try_from(u64::MAX - at.0).unwrap_or(usize::MAX);
        bytes.truncate(room);
        let length = bytes.len() as u64;
        self.remove(at, length);
        if length > 0 {
            self.regions.insert(at.0, bytes);
        }
    }

    /// Unmaps `length` bytes from `at`.
    pub fn remove(&mut self, at: Avma, length: u64) {
        let end = at.0.saturating_add(length);
        let overlapping: Vec<u64> = self
            .regions
            .range(..end)
            .filter(|(start, bytes)| start.saturating_add(bytes.len() as u64) > at.0)
            .map(|(start, _)| *start)
            .collect();
        for start in overlapping {
            let Some(mut bytes) = self.regions.remove(&start) else {
                continue;
            };
            let region_end = start.saturating_add(bytes.len() as u64);
            if region_end > end {
                let keep_from = usize::try_from(end - start).unwrap_or(usize::MAX);
                self.regions.insert(end, bytes.split_off(keep_from));
            }
            if start < at.0 {
                bytes.truncate(usize::try_from(at.0 - start).unwrap_or(usize::MAX));
                self.regions.insert(start, bytes);
            }
        }
    }

    /// Overwrites mapped memory, and maps the rest.
    pub fn write(&mut self, at: Avma, bytes: &[u8]) {
        let inside = self.regions.range_mut(..=at.0).next_back();
        if let Some((start, region)) = inside {
            let from = usize::try_from(at.0 - start).unwrap_or(usize::MAX);
            let target = from
                .checked_add(bytes.len())
                .and_then(|to| region.get_mut(from..to));
            if let Some(target) = target {
                target.copy_from_slice(bytes);
                return;
            }
        }
        self.put(at, bytes.to_vec());
    }
}

impl Memory for FakeMemory {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        let mut got = 0;
        while got < buffer.len() {
            let Some(from) = at.checked_add(got as u64) else {
                break;
            };
            let Some((start, bytes)) = self.regions.range(..=from.0).next_back() else {
                break;
            };
            let skip = usize::try_from(from.0 - start).unwrap_or(usize::MAX);
            let available = bytes.get(skip..).unwrap_or_default();
            if available.is_empty() {
                break;
            }
            let wanted = buffer.get_mut(got..).unwrap_or_default();
            let length = wanted.len().min(available.len());
            for (to, byte) in wanted.iter_mut().zip(available) {
                *to = *byte;
            }
            got += length;
        }
        Ok(got)
    }

    fn pointer_bytes(&self) -> usize {
        if self.pointer_bytes == 0 {
            8
        } else {
            self.pointer_bytes
        }
    }
}
