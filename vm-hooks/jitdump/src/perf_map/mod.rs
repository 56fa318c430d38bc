//! Perf maps (`/tmp/perf-PID.map`): one text line per piece of code, `START SIZE NAME` with
//! hexadecimal numbers (`tools/perf/Documentation/jit-interface.txt` of Linux).
//!
//! [`Decoder`] decodes growing maps without I/O, in bounded memory for any file or line length.

#[cfg(test)]
mod tests;

use vmscope_records::Avma;

use crate::Flaws;

/// Decoded line of a perf map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// First address.
    pub start: Avma,
    /// Size in bytes: not 0; code ends inside the address space.
    pub size: u64,
    /// Name, converted to valid UTF-8; not empty. Keeps control characters.
    pub name: String,
}

/// Maximum line length in bytes; longer lines are truncated.
pub const MAX_LINE_BYTES: usize = 4096;

/// Flaw in a perf map; decoding continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum MapFlaw {
    /// Line without two numbers and a name; skipped.
    #[error("lines without address, size and name")]
    Garbage,
    /// Empty entry, or end outside the address space; skipped. Some VMs don't know the size.
    #[error("entries of 0 bytes, or beyond the end of the address space")]
    NoRange,
    /// Line longer than [`MAX_LINE_BYTES`]; truncated.
    #[error("lines that are too long (cut off)")]
    CutLine,
}

/// Decodes a growing perf map, line by line.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    offset: u64,
    /// Currently skipping the rest of a truncated line.
    cutting: bool,
    flaws: Flaws<MapFlaw>,
}

impl Decoder {
    /// Creates a decoder for the start of a map.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// File offset of the next bytes needed.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Flaws found so far.
    #[must_use]
    pub fn flaws(&self) -> &Flaws<MapFlaw> {
        &self.flaws
    }

    /// Decodes the next entry. `window` contains available bytes from [`Decoder::offset`]. Windows
    /// without further complete lines give `None`; windows longer than [`MAX_LINE_BYTES`] always
    /// advance the offset.
    pub fn step(&mut self, window: &[u8]) -> Option<Entry> {
        let mut window = window;
        while !window.is_empty() {
            let bounded = window.get(..=MAX_LINE_BYTES).unwrap_or(window);
            let (line, past) = match memchr::memchr(b'\n', bounded) {
                _ if self.cutting => {
                    let end = memchr::memchr(b'\n', window);
                    self.cutting = end.is_none();
                    (None, end.map_or(window.len(), |end| end + 1))
                }
                Some(end) => (window.get(..end), end + 1),
                None if window.len() > MAX_LINE_BYTES => {
                    self.cutting = true;
                    self.flaws.add(MapFlaw::CutLine, self.offset, 1);
                    (window.get(..MAX_LINE_BYTES), MAX_LINE_BYTES)
                }
                None => return None,
            };
            let entry = line.and_then(|line| self.line(line));
            self.offset = self.offset.saturating_add(past as u64);
            window = window.get(past..).unwrap_or_default();
            if entry.is_some() {
                return entry;
            }
        }
        None
    }

    /// Decodes the last line of a finished map: `window` contains all remaining bytes, at most
    /// [`MAX_LINE_BYTES`].
    pub fn finish(&mut self, window: &[u8]) -> Option<Entry> {
        let line = if self.cutting { &[] } else { window };
        let entry = self.line(line);
        self.offset = self.offset.saturating_add(window.len() as u64);
        self.cutting = false;
        entry
    }

    fn line(&mut self, line: &[u8]) -> Option<Entry> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        let parsed = parse_line(line);
        let flaw = match &parsed {
            None => MapFlaw::Garbage,
            Some(entry) if entry.size == 0 || entry.start.checked_add(entry.size).is_none() => {
                MapFlaw::NoRange
            }
            Some(_) => return parsed,
        };
        self.flaws.add(flaw, self.offset, 1);
        None
    }
}

fn parse_line(line: &[u8]) -> Option<Entry> {
    let (start, rest) = number(line.trim_ascii_start())?;
    let (size, rest) = number(rest)?;
    let name = rest.strip_suffix(b"\r").unwrap_or(rest);
    (!name.is_empty()).then(|| Entry {
        start: Avma(start),
        size,
        name: String::from_utf8_lossy(name).into_owned(),
    })
}

/// Parses a hexadecimal number with optional `0x`; returns the rest after blanks.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.strip_prefix(b"0x").unwrap_or(text);
    let mut number: u64 = 0;
    let mut digits = 0;
    for byte in text {
        let Some(digit) = char::from(*byte).to_digit(16) else {
            break;
        };
        number = number.checked_mul(16)?.checked_add(digit.into())?;
        digits += 1;
    }
    let rest = text.get(digits..)?;
    let after = rest.trim_ascii_start();
    (digits > 0 && after.len() < rest.len()).then_some((number, after))
}
