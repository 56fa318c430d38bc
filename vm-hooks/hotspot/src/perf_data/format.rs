//! Format of perf data (`perfMemory.hpp`, version 2): a header, then entries with names and value
//! offsets.
//!
//! The module only parses bytes. They come from another process's memory or file, so every
//! length is checked.

use rustc_hash::FxHashMap;

/// Maximum plausible size: the limit of `PerfDataMemorySize`, 32 KiB by default.
pub const MAX_BYTES: usize = 2 << 20;

/// Size of the header in bytes.
pub const HEADER_BYTES: usize = 32;

/// Bytes of an entry before its name.
const ENTRY_BYTES: usize = 20;

/// First four bytes, for both byte orders.
const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];

/// Maximum length of a text; the rest is cut off.
const MAX_TEXT: usize = 4096;

/// Error in perf data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Shorter than a header.
    #[error("the JVM's perf data has {length} bytes, less than its header")]
    Short {
        /// Number of bytes.
        length: usize,
    },
    /// Wrong first bytes.
    #[error("the JVM's perf data begins with {found:02x?} instead of ca fe c0 c0")]
    Magic {
        /// The first bytes.
        found: [u8; 4],
    },
    /// Unknown version or byte order.
    #[error(
        "the JVM's perf data has version {major} and byte order {order} (vmscope reads version \
             2, byte order 1)"
    )]
    Version {
        /// Major version.
        major: u8,
        /// 0 for big-endian, 1 for little-endian.
        order: u8,
    },
    /// The VM is still starting and has not marked the data readable.
    #[error("the JVM's perf data is not set up yet")]
    NotReady,
    /// An entry outside the data.
    #[error("entry {number} of the JVM's perf data (at byte {at}) is outside its {length} bytes")]
    Entry {
        /// Number of the entry, from 0.
        number: u32,
        /// Offset of the entry.
        at: usize,
        /// Number of bytes in the data.
        length: usize,
    },
}

/// Unit of an entry's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Ticks of the VM's own clock.
    Ticks,
    /// Events.
    Events,
    /// Any other unit: plain number, text, frequency.
    Other,
}

/// Place of an entry's value, constant during the VM's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Offset in the data.
    pub offset: usize,
    /// Length of a text with its zero byte; 0 for a number of 8 bytes.
    pub text_length: usize,
    /// Unit of the value.
    pub unit: Unit,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Long(i64),
    /// A text.
    Text(String),
}

impl Slot {
    /// Number at this slot of `bytes`; `None` for a text.
    #[must_use]
    pub fn long(&self, bytes: &[u8]) -> Option<i64> {
        if self.text_length > 0 {
            return None;
        }
        let bytes = bytes.get(self.offset..)?.first_chunk::<8>()?;
        Some(i64::from_le_bytes(*bytes))
    }

    /// Text at this slot of `bytes`; `None` for a number. Replaces invalid UTF-8.
    #[must_use]
    pub fn text(&self, bytes: &[u8]) -> Option<String> {
        let length = self.text_length.min(MAX_TEXT);
        let end = self.offset.checked_add(length)?;
        let text = bytes
            .get(self.offset..end)
            .filter(|text| !text.is_empty())?;
        let text = text.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// Value at this slot of `bytes`.
    #[must_use]
    pub fn value(&self, bytes: &[u8]) -> Option<Value> {
        let text = || self.text(bytes).map(Value::Text);
        self.long(bytes).map(Value::Long).or_else(text)
    }
}

/// Slots of all entries. The VM adds entries, but moves none.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    slots: FxHashMap<String, Slot>,
    used: usize,
    entries: u32,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk::<4>()?))
}

fn size_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32_at(bytes, at)?).ok()
}

impl Layout {
    /// Finds the entries in `bytes`.
    ///
    /// # Errors
    /// [`FormatError`]. An entry under construction is left out.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let bytes = bytes.get(..bytes.len().min(MAX_BYTES)).unwrap_or_default();
        let (used, entries) = Self::extent_of(bytes)?;
        let used = used.min(bytes.len());
        let bytes = bytes.get(..used).unwrap_or_default();
        let mut at = size_at(bytes, 24).unwrap_or(HEADER_BYTES);
        let mut slots = FxHashMap::default();
        for number in 0..entries {
            let wrong = FormatError::Entry {
                number,
                at,
                length: used,
            };
            let (name, slot, next) = entry(bytes, at).ok_or(wrong)?;
            slots.insert(name, slot);
            at = next;
        }
        Ok(Self {
            slots,
            used,
            entries,
        })
    }

    /// Number of bytes and entries, from the header of `bytes`.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn extent_of(bytes: &[u8]) -> Result<(usize, u32), FormatError> {
        let short = FormatError::Short {
            length: bytes.len(),
        };
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(short)?;
        let [m0, m1, m2, m3, order, major, _minor, accessible, ..] = *header;
        let found = [m0, m1, m2, m3];
        if found == [0; 4] || (found == MAGIC && accessible == 0) {
            return Err(FormatError::NotReady);
        }
        if found != MAGIC {
            return Err(FormatError::Magic { found });
        }
        if (order, major) != (1, 2) {
            return Err(FormatError::Version { major, order });
        }
        let used = size_at(header, 8).ok_or(short)?;
        let entries = u32_at(header, 28).ok_or(short)?;
        Ok((used, entries))
    }

    /// Whether the header of `bytes` has another extent, which means new entries.
    #[must_use]
    pub fn is_outdated(&self, bytes: &[u8]) -> bool {
        Self::extent_of(bytes).is_ok_and(|extent| extent.1 != self.entries)
    }

    /// Slot of entry `name`.
    #[must_use]
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.slots.get(name).copied()
    }

    /// All entries, in no particular order.
    pub fn slots(&self) -> impl Iterator<Item = (&str, Slot)> {
        self.slots.iter().map(|(name, slot)| (name.as_str(), *slot))
    }

    /// Number of used bytes in the data.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used
    }
}

/// Entry at `at`: name, slot, and offset of the next entry.
fn entry(bytes: &[u8], at: usize) -> Option<(String, Slot, usize)> {
    let length = size_at(bytes, at)?;
    let next = at.checked_add(length)?;
    let entry = bytes.get(at..next)?;
    if length < ENTRY_BYTES {
        return None;
    }
    let (name_at, text_length) = (size_at(entry, 4)?, size_at(entry, 8)?);
    let [kind, _flags, unit, _variability] = *entry.get(12..)?.first_chunk::<4>()?;
    let data_at = size_at(entry, 16)?;
    let name = entry.get(name_at..)?;
    let name = name.split(|byte| *byte == 0).next()?;
    let text_length = if kind == b'B' { text_length } else { 0 };
    // A number takes 8 bytes (`J`); a text has no alignment.
    let needed = if kind == b'B' { text_length } else { 8 };
    entry.get(data_at..data_at.checked_add(needed)?)?;
    let unit = match unit {
        2 => Unit::Bytes,
        3 => Unit::Ticks,
        4 => Unit::Events,
        _ => Unit::Other,
    };
    let slot = Slot {
        offset: at.checked_add(data_at)?,
        text_length,
        unit,
    };
    Some((String::from_utf8_lossy(name).into_owned(), slot, next))
}

#[cfg(test)]
mod tests;
