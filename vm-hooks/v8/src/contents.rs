//! Contents of a program without symbols: its variables and its constant data.

use std::collections::HashSet;
use std::ops::Range;

use memchr::memmem;
use vmscope_process::{AdapterError, LoadedModule, ProcessView, SymbolError};
use vmscope_records::Avma;

/// Section of constant data with all texts of the program (Node.js: 56 MB).
const CONSTANTS: &str = ".rodata";
const MAX_CONSTANTS: u64 = 256 << 20;

/// Maximum bytes of the program's variables (Node.js: 0.5 MB, 4 MB as a library).
const MAX_VARIABLES: u64 = 16 << 20;

/// Longest text.
const MAX_TEXT: usize = 256;

/// A piece of the program's data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    /// Address of the first byte.
    pub at: Avma,
    pub bytes: Vec<u8>,
}

impl Piece {
    /// Its words of 8 bytes.
    pub fn words(&self) -> impl ExactSizeIterator<Item = u64> + Clone {
        let (words, _) = self.bytes.as_chunks::<8>();
        words.iter().map(|word| u64::from_le_bytes(*word))
    }

    /// A word.
    pub fn word(&self, index: usize) -> Option<u64> {
        let (words, _) = self.bytes.as_chunks::<8>();
        words.get(index).map(|word| u64::from_le_bytes(*word))
    }

    /// Address of a word.
    pub fn address(&self, index: usize) -> Avma {
        self.place(index * 8)
    }

    /// Address of a byte.
    fn place(&self, offset: usize) -> Avma {
        Avma(self.at.0.wrapping_add(offset as u64))
    }

    /// Addresses of a part of the piece.
    pub fn range_of(&self, part: &[u8]) -> Range<Avma> {
        let offset = part
            .as_ptr()
            .addr()
            .saturating_sub(self.bytes.as_ptr().addr());
        self.range(offset..offset + part.len())
    }

    /// Addresses of some bytes.
    pub fn range(&self, bytes: Range<usize>) -> Range<Avma> {
        self.place(bytes.start)..self.place(bytes.end)
    }
}

/// Data of a program.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Writable segments.
    pub(crate) variables: Vec<Piece>,
    /// Constant data; empty if the program has none.
    pub(crate) constants: Piece,
}

impl Contents {
    /// The contents of `module`.
    ///
    /// # Errors
    /// Unreadable headers and sections; failed reads.
    pub fn read(process: &ProcessView, module: &LoadedModule) -> Result<Self, AdapterError> {
        let variables = variables(process, module)?;
        let bias = process.bias(module)?;
        let constants = process.elf(module)?.section(CONSTANTS, MAX_CONSTANTS);
        let constants = constants.map_err(|source| SymbolError::Elf {
            path: String::from_utf8_lossy(&module.path).into_owned(),
            source,
        })?;
        let constants = constants.map(|(range, bytes)| Piece {
            at: bias.apply(range.start),
            bytes,
        });
        Ok(Contents {
            variables,
            constants: constants.unwrap_or_default(),
        })
    }

    /// All pieces of data: the loader puts tables of addresses among the variables of a library.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.variables.iter().chain([&self.constants])
    }

    /// Whether an address lies in constant data.
    pub(crate) fn is_constant(&self, address: u64) -> bool {
        let offset = address.wrapping_sub(self.constants.at.0);
        offset < self.constants.bytes.len() as u64
    }

    /// Addresses of a text in constant data.
    pub(crate) fn addresses_of(&self, text: &str) -> HashSet<u64> {
        let terminated = [text.as_bytes(), b"\0"].concat();
        let found = memmem::find_iter(&self.constants.bytes, &terminated);
        let first = self.constants.at.0;
        found.map(|at| first.wrapping_add(at as u64)).collect()
    }

    /// Constant data from an address on.
    pub(crate) fn constant(&self, address: u64) -> Option<&[u8]> {
        let offset = address.checked_sub(self.constants.at.0)?;
        self.constants.bytes.get(usize::try_from(offset).ok()?..)
    }

    /// The text at an address in constant data; `None` for texts that are too long or no UTF-8.
    pub(crate) fn text(&self, address: u64) -> Option<&str> {
        let bytes = self.constant(address)?;
        let end = bytes.iter().take(MAX_TEXT).position(|byte| *byte == 0)?;
        std::str::from_utf8(bytes.get(..end)?).ok()
    }

    /// Place of the longest sequence of addresses in constant data that contains the address of one of `texts`.
    pub(crate) fn longest_table(&self, texts: &HashSet<u64>) -> Option<Range<Avma>> {
        let mut best: Option<(Range<Avma>, usize)> = None;
        for piece in self.pieces() {
            let (mut count, mut has_text) = (0, false);
            // A zero ends the last sequence.
            for (index, word) in piece.words().chain([0]).enumerate() {
                if self.is_constant(word) {
                    count += 1;
                    has_text |= texts.contains(&word);
                    continue;
                }
                if has_text && best.as_ref().is_none_or(|(_, most)| *most < count) {
                    let range = piece.address(index - count)..piece.address(index);
                    best = Some((range, count));
                }
                (count, has_text) = (0, false);
            }
        }
        best.map(|(range, _)| range)
    }
}

/// The program's writable segments.
fn variables(process: &ProcessView, module: &LoadedModule) -> Result<Vec<Piece>, AdapterError> {
    let elf = process.elf(module)?;
    let bias = process.bias(module)?;
    let segments = elf.segments().iter();
    let writable = segments.filter(|segment| segment.is_loaded() && segment.writable);
    let mut left = MAX_VARIABLES;
    let pieces = writable.map(|segment| {
        let at = bias.apply(segment.address);
        let length = segment.memory_bytes.min(left);
        left -= length;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        let read = process.memory().read_partial(at, &mut bytes);
        bytes.truncate(read.map_err(AdapterError::reading("variables"))?);
        Ok(Piece { at, bytes })
    });
    pieces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(at: u64, words: &[u64]) -> Piece {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        Piece {
            at: Avma(at),
            bytes: bytes.collect(),
        }
    }

    /// Contents with 0x100 bytes of constant data.
    fn contents(variables: Vec<Piece>, constants: u64) -> Contents {
        Contents {
            variables,
            constants: Piece {
                at: Avma(constants),
                bytes: vec![0; 0x100],
            },
        }
    }

    #[test]
    fn texts_end_with_a_zero() {
        let mut contents = contents(Vec::new(), 0x100);
        contents.constants.bytes[..8].copy_from_slice(b"one\0two\0");
        assert_eq!(contents.text(0x100), Some("one"));
        assert_eq!(contents.text(0x105), Some("wo"));
        assert_eq!(contents.addresses_of("two"), HashSet::from([0x104]));
        contents.constants.bytes.fill(b'x');
        for at in [0x0, 0x100, 0x1ff, 0x200, u64::MAX] {
            assert_eq!(contents.text(at), None, "{at:#x}");
        }
    }

    #[test]
    fn the_longest_table_with_a_known_text_counts() {
        let texts = HashSet::from([0x105]);
        let pieces = vec![
            // Without the text.
            piece(0x1000, &[0x101, 0x102, 0x103, 0x104, 0]),
            // Two tables with the text; the second ends with its piece.
            piece(0x2000, &[7, 0x105, 0x106, 0x200, 0x101, 0x105, 0x107]),
            piece(0x3000, &[0x105]),
        ];
        let mut contents = contents(pieces, 0x100);
        let found = contents.longest_table(&texts);
        assert_eq!(found, Some(Avma(0x2020)..Avma(0x2038)));
        contents.constants.at = Avma(0x300);
        assert_eq!(contents.longest_table(&texts), None);
        assert_eq!(Contents::default().longest_table(&texts), None);
    }

    #[test]
    fn a_piece_at_the_end_of_the_address_space_is_read() {
        let texts = HashSet::from([0x105]);
        let contents = contents(vec![piece(u64::MAX - 7, &[3, 0x105, 0x106])], 0x100);
        let found = contents.longest_table(&texts);
        assert_eq!(found, Some(Avma(0)..Avma(16)));
    }
}
