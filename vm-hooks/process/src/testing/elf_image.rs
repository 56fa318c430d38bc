//! Small ELF files.

/// A small fake ELF file: 64-bit, little-endian, x86-64.
#[derive(Clone, Debug, Default)]
pub struct ElfImage {
    kind: u16,
    notes: Vec<u8>,
    segments: Vec<ImageSegment>,
    symbols: Vec<(String, u64)>,
}

/// A loaded segment.
#[derive(Clone, Debug, Default)]
pub struct ImageSegment {
    /// Link address.
    pub address: u64,
    /// Contents in the file.
    pub bytes: Vec<u8>,
    /// Size in memory, in bytes.
    pub memory_bytes: u64,
    /// Executable.
    pub executable: bool,
}

impl ElfImage {
    /// An empty image of type `e_type`.
    #[must_use]
    pub fn new(kind: u16) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    /// Adds a note. `owner` includes its terminating zero.
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

    /// Adds a function of 16 bytes to the symbol table.
    #[must_use]
    pub fn function(mut self, name: &str, address: u64) -> Self {
        self.symbols.push((name.to_owned(), address));
        self
    }

    /// File contents: header, program headers, notes, symbols, section headers, then segments.
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
