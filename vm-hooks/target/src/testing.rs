//! Memory for tests: made up by them, and changing when they say so.

use std::collections::BTreeMap;

use vmscope_records::Avma;

use crate::{Memory, MemoryError};

/// A memory that a test lays out: regions of bytes at addresses.
#[derive(Clone, Debug, Default)]
pub struct FakeMemory {
    /// Each region by its first address; they never overlap.
    regions: BTreeMap<u64, Vec<u8>>,
    /// The size of a pointer; 0 stands for 8.
    pointer_bytes: usize,
}

impl FakeMemory {
    /// A memory in which nothing is mapped.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same memory with pointers of `bytes` (4 or 8).
    #[must_use]
    pub fn with_pointer_bytes(mut self, bytes: usize) -> Self {
        self.pointer_bytes = bytes;
        self
    }

    /// Maps `bytes` at `at`, in place of what was mapped in that range. What would
    /// lie past the end of the address space is left out.
    pub fn put(&mut self, at: Avma, mut bytes: Vec<u8>) {
        let room = usize::try_from(u64::MAX - at.0).unwrap_or(usize::MAX);
        bytes.truncate(room);
        let length = bytes.len() as u64;
        self.remove(at, length);
        if length > 0 {
            self.regions.insert(at.0, bytes);
        }
    }

    /// Unmaps `length` bytes from `at` on.
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

    /// Overwrites memory that is mapped already, and maps what is not.
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

/// A small ELF file that a test makes up: 64-bit, little-endian, x86-64.
#[derive(Clone, Debug, Default)]
pub struct ElfImage {
    kind: u16,
    notes: Vec<u8>,
    segments: Vec<ImageSegment>,
    symbols: Vec<(String, u64)>,
}

/// A loaded segment of an [`ElfImage`].
#[derive(Clone, Debug, Default)]
pub struct ImageSegment {
    /// Its address as linked.
    pub address: u64,
    /// What is in the file.
    pub bytes: Vec<u8>,
    /// How long it is in memory.
    pub memory_bytes: u64,
    /// Whether it is mapped executable.
    pub executable: bool,
}

impl ElfImage {
    /// An image of that `e_type` with nothing in it.
    #[must_use]
    pub fn new(kind: u16) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    /// Adds a note. `owner` includes the zero at its end.
    #[must_use]
    pub fn note(mut self, owner: &[u8], kind: u32, content: &[u8]) -> Self {
        for number in [owner.len() as u64, content.len() as u64, u64::from(kind)] {
            self.notes.extend(number.to_le_bytes().iter().take(4));
        }
        for part in [owner, content] {
            self.notes.extend_from_slice(part);
            self.notes.resize(self.notes.len().next_multiple_of(4), 0);
        }
        self
    }

    /// Adds a loaded segment.
    #[must_use]
    pub fn segment(mut self, segment: ImageSegment) -> Self {
        self.segments.push(segment);
        self
    }

    /// Adds a function to the symbol table, 16 bytes long.
    #[must_use]
    pub fn function(mut self, name: &str, address: u64) -> Self {
        self.symbols.push((name.to_owned(), address));
        self
    }

    /// The bytes of the file: header, program headers, notes, symbols, section
    /// headers, and then the segments one after the other.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let segments_at = 64;
        let notes_at = segments_at + 56 * (self.segments.len() as u64 + 1);
        let mut symbols = vec![0; 24];
        let mut names = vec![0];
        for (name, address) in &self.symbols {
            symbols.extend((names.len() as u64).to_le_bytes().iter().take(4));
            // STB_GLOBAL, STT_FUNC; default visibility; section 1.
            symbols.extend_from_slice(&[0x12, 0, 1, 0]);
            symbols.extend_from_slice(&address.to_le_bytes());
            symbols.extend_from_slice(&16u64.to_le_bytes());
            names.extend_from_slice(name.as_bytes());
            names.push(0);
        }
        let symbols_at = notes_at + self.notes.len() as u64;
        let names_at = symbols_at + symbols.len() as u64;
        let sections_at = names_at + names.len() as u64;
        let mut at = sections_at + 3 * 64;

        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0];
        file.resize(16, 0);
        let half = |file: &mut Vec<u8>, value: u16| file.extend_from_slice(&value.to_le_bytes());
        let long = |file: &mut Vec<u8>, value: u32| file.extend_from_slice(&value.to_le_bytes());
        let wide = |file: &mut Vec<u8>, value: u64| file.extend_from_slice(&value.to_le_bytes());
        half(&mut file, self.kind);
        half(&mut file, 62);
        long(&mut file, 1);
        for value in [0, segments_at, sections_at] {
            wide(&mut file, value);
        }
        long(&mut file, 0);
        let segments = u16::try_from(self.segments.len()).unwrap_or(u16::MAX - 2);
        for value in [64, 56, segments + 1, 64, 3, 0] {
            half(&mut file, value);
        }
        let notes = self.notes.len() as u64;
        let mut headers = vec![(4, 4, notes_at, 0, notes, notes, 4)];
        for segment in &self.segments {
            let length = segment.bytes.len() as u64;
            let flags = if segment.executable { 5 } else { 4 };
            headers.push((
                1,
                flags,
                at,
                segment.address,
                length,
                segment.memory_bytes,
                1,
            ));
            at += length;
        }
        for (kind, flags, offset, address, length, memory, align) in headers {
            long(&mut file, kind);
            long(&mut file, flags);
            for value in [offset, address, 0, length, memory, align] {
                wide(&mut file, value);
            }
        }
        file.extend_from_slice(&self.notes);
        file.extend_from_slice(&symbols);
        file.extend_from_slice(&names);
        // Sections: none, the symbol table (2), its names (3).
        for (kind, offset, length, link) in [
            (0, 0, 0, 0),
            (2, symbols_at, symbols.len(), 2),
            (3, names_at, names.len(), 0),
        ] {
            for value in [0, kind] {
                long(&mut file, value);
            }
            for value in [0, 0, offset, length as u64] {
                wide(&mut file, value);
            }
            for value in [link, 0] {
                long(&mut file, value);
            }
            for value in [1, if kind == 2 { 24 } else { 0 }] {
                wide(&mut file, value);
            }
        }
        for segment in &self.segments {
            file.extend_from_slice(&segment.bytes);
        }
        file
    }
}
