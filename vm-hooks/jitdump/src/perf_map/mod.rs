//! Perf maps (`/tmp/perf-PID.map`): a line of text for each piece of code,
//! `START SIZE NAME` with hexadecimal numbers
//! (`tools/perf/Documentation/jit-interface.txt` of Linux).
//!
//! [`Decoder`] decodes one while it is being written, without I/O of its own and
//! in bounded memory, however long the file or a line of it.

#[cfg(test)]
mod tests;

use vmscope_records::Avma;

use crate::Flaws;

/// A line of a perf map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// First address.
    pub start: Avma,
    /// Size in bytes; not 0, and its end is in the address space.
    pub size: u64,
    /// The name, made valid UTF-8; not empty. Control characters in it are kept.
    pub name: String,
}

/// A line longer than this is cut off.
pub const MAX_LINE_BYTES: usize = 4096;

/// What is wrong in a perf map and does not keep the rest from being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum MapFlaw {
    /// A line that is not two numbers and a name; skipped.
    #[error("lines that are not an address, a size, and a name")]
    Garbage,
    /// An entry of no bytes, or beyond the end of the address space; skipped. Some VMs
    /// do not know the size.
    #[error("entries of no bytes, or beyond the end of the address space")]
    NoRange,
    /// A line longer than [`MAX_LINE_BYTES`]; the rest of it is cut off.
    #[error("lines that were cut off")]
    CutLine,
}

/// Decodes a perf map, line by line, while it is being written.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    offset: u64,
    /// The rest of the line that begins (or goes on) at the offset is skipped.
    cutting: bool,
    flaws: Flaws<MapFlaw>,
}

impl Decoder {
    /// A decoder at the beginning of a perf map.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the next bytes that are needed lie, in bytes from the file's start.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What was wrong so far.
    #[must_use]
    pub fn flaws(&self) -> &Flaws<MapFlaw> {
        &self.flaws
    }

    /// The next entry. `window` is what the file has from [`Decoder::offset`] on, as
    /// much of it as is at hand; `None` when no line ends in what is left of it. A
    /// window of more than [`MAX_LINE_BYTES`] always brings it on.
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

    /// The last line, when nothing will be added to the file and `window`, at most
    /// [`MAX_LINE_BYTES`], is all that is left of it.
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

/// A hexadecimal number, with or without `0x`, and what follows the blanks after it.
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
