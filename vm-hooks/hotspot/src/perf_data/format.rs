//! The format of the perf data (`perfMemory.hpp`, version 2): a header, then entries
//! of a name and a place for its value.
//!
//! Nothing here reads anything: bytes go in. They are whatever a process's memory or
//! file holds, so no length in them is believed.

use rustc_hash::FxHashMap;

/// Larger perf data is not believed: `PerfDataMemorySize` is at most this, 32 KiB by
/// default.
pub const MAX_BYTES: usize = 2 << 20;

/// Bytes before the first entry.
pub const HEADER_BYTES: usize = 32;

/// Bytes of an entry before its name.
const ENTRY_BYTES: usize = 20;

/// The first four bytes, whatever the byte order of the rest.
const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];

/// Longer texts are cut off.
const MAX_TEXT: usize = 4096;

/// What is wrong with perf data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// There is less than a header.
    #[error("the JVM's perf data has {length} bytes, less than its header")]
    Short {
        /// How many there are.
        length: usize,
    },
    /// It does not begin as perf data does.
    #[error("the JVM's perf data begins with {found:02x?}, not with ca fe c0 c0")]
    Magic {
        /// What it begins with.
        found: [u8; 4],
    },
    /// Another version or byte order than is known.
    #[error("the JVM's perf data has version {major} and byte order {order}; 2 and 1 are known")]
    Version {
        /// The major version.
        major: u8,
        /// 0 for big-endian, 1 for little-endian.
        order: u8,
    },
    /// The VM is still starting: it has not said that the rest may be read.
    #[error("the JVM's perf data is not set up yet")]
    NotReady,
    /// An entry that does not lie in the data.
    #[error("entry {number} of the JVM's perf data, at {at}, does not lie in its {length} bytes")]
    Entry {
        /// Which, from 0 on.
        number: u32,
        /// Where it begins.
        at: usize,
        /// How many bytes there are.
        length: usize,
    },
}

/// What the values of an entry count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Ticks of the VM's own clock.
    Ticks,
    /// Events.
    Events,
    /// Anything else: a plain number, a text, a frequency.
    Other,
}

/// Where the value of an entry is. It stays there as long as the VM lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// From the data's first byte on.
    pub offset: usize,
    /// The length of a text with the zero behind it; 0 for a number of 8 bytes.
    pub text_length: usize,
    /// What it counts.
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
    /// The number in `bytes`; `None` for a text.
    #[must_use]
    pub fn long(&self, bytes: &[u8]) -> Option<i64> {
        if self.text_length > 0 {
            return None;
        }
        let bytes = bytes.get(self.offset..)?.first_chunk::<8>()?;
        Some(i64::from_le_bytes(*bytes))
    }

    /// The text in `bytes`; `None` for a number. What is not UTF-8 is replaced.
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

    /// The value in `bytes`.
    #[must_use]
    pub fn value(&self, bytes: &[u8]) -> Option<Value> {
        let text = || self.text(bytes).map(Value::Text);
        self.long(bytes).map(Value::Long).or_else(text)
    }
}

/// Where the values of all entries are. The VM adds entries, and moves none.
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
    ///
    /// [`FormatError`]. An entry that is added in this moment is left out.
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

    /// How many bytes and how many entries the header of `bytes` tells.
    ///
    /// # Errors
    ///
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

    /// Whether the header of `bytes` tells another extent: then there are new entries.
    #[must_use]
    pub fn is_outdated(&self, bytes: &[u8]) -> bool {
        Self::extent_of(bytes).is_ok_and(|extent| extent.1 != self.entries)
    }

    /// Where the value of entry `name` is.
    #[must_use]
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.slots.get(name).copied()
    }

    /// All entries, in no order.
    pub fn slots(&self) -> impl Iterator<Item = (&str, Slot)> {
        self.slots.iter().map(|(name, slot)| (name.as_str(), *slot))
    }

    /// How many bytes of the data are used.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used
    }
}

/// The entry at `at`: its name, where its value is, and where the next one begins.
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
    // A number takes 8 bytes (`J`), a text begins anywhere.
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
