//! V8's strings: flat, concatenated, sliced, external and forwarded.

use vmscope_process::{AdapterError, MemoryError};
use vmscope_records::Avma;

use crate::object::{Heap, Tagged};

/// Maximum number of strings that form one string.
const MAX_PARTS: usize = 1 << 16;

/// Number of parts of a string beyond one per character.
const MORE_PARTS: usize = 1 << 8;

/// Bytes per read. Long texts are read in pieces.
const CHUNK: u64 = 1 << 16;

/// Bits of a string's type.
const REPRESENTATION: u16 = 7;
const ONE_BYTE: u16 = 8;
const UNCACHED: u16 = 16;

/// Characters of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Characters<'a> {
    /// Latin-1.
    OneByte(&'a [u8]),
    /// UTF-16, little-endian.
    TwoByte(&'a [u8]),
}

/// A range of a string's characters.
#[derive(Clone, Copy, Debug)]
struct Part {
    string: Tagged,
    from: u64,
    to: u64,
}

impl Heap<'_> {
    /// Whether `object` is a string.
    ///
    /// # Errors
    /// Failed reads.
    pub fn is_string(&self, object: Tagged) -> Result<bool, AdapterError> {
        let number = self.instance_type(object)?;
        Ok(u64::from(number) < self.layout.string.not_string)
    }

    /// Passes the first `cap` characters of a string to `visit`, in pieces.
    ///
    /// # Errors
    /// An object of another type; a string of too many parts; failed reads.
    pub fn visit_string(
        &self,
        string: Tagged,
        cap: u64,
        visit: &mut dyn FnMut(Characters<'_>),
    ) -> Result<(), AdapterError> {
        let length = self.string_length(string)?;
        let mut left = vec![Part {
            string,
            from: 0,
            to: length.min(cap),
        }];
        // Only empty parts make more.
        let parts =
            MAX_PARTS.min(MORE_PARTS.saturating_add(usize::try_from(cap).unwrap_or(MAX_PARTS)));
        for _ in 0..parts {
            let Some(part) = left.pop() else {
                return Ok(());
            };
            if part.from < part.to {
                self.visit_part(part, &mut left, visit)?;
            }
        }
        Err(AdapterError::TooMany {
            what: "parts of a string",
            cap: parts as u64,
        })
    }

    /// The first `cap` characters of a string. Invalid characters are replaced.
    ///
    /// # Errors
    /// As [`Heap::visit_string`].
    pub fn string(&self, string: Tagged, cap: u64) -> Result<String, AdapterError> {
        let mut text = String::new();
        self.visit_string(string, cap, &mut |characters| match characters {
            Characters::OneByte(bytes) => text.extend(bytes.iter().map(|byte| char::from(*byte))),
            Characters::TwoByte(bytes) => {
                let (units, _) = bytes.as_chunks::<2>();
                let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
                text.extend(
                    char::decode_utf16(units)
                        .map(|each| each.unwrap_or(char::REPLACEMENT_CHARACTER)),
                );
            }
        })?;
        Ok(text)
    }

    /// Number of the string's characters.
    ///
    /// # Errors
    /// As [`Heap::at`]; failed reads.
    pub fn string_length(&self, string: Tagged) -> Result<u64, AdapterError> {
        let at = self.at(string, self.layout.string.length, "string")?;
        let length = self.memory.read_u32(at);
        Ok(length.map_err(AdapterError::reading("string"))?.into())
    }

    fn visit_part(
        &self,
        Part { string, from, to }: Part,
        left: &mut Vec<Part>,
        visit: &mut dyn FnMut(Characters<'_>),
    ) -> Result<(), AdapterError> {
        let fields = self.layout.string;
        let number = self.instance_type(string)?;
        if u64::from(number) >= fields.not_string {
            return Err(AdapterError::Implausible {
                what: "string's type",
                value: number.into(),
                at: string.address().unwrap_or_default(),
            });
        }
        let pointer = |offset| self.field(string, offset, "string");
        let is_one_byte = number & ONE_BYTE != 0;
        let mut flat = |base: Avma| self.visit_flat(base, (from, to), is_one_byte, visit);
        match number & REPRESENTATION {
            0 => flat(self.at(string, fields.first, "string")?)?,
            1 => {
                let (first, second) = (pointer(fields.first)?, pointer(fields.second)?);
                let middle = self.string_length(first)?;
                left.push(Part {
                    string: second,
                    from: from.saturating_sub(middle),
                    to: to.saturating_sub(middle),
                });
                left.push(Part {
                    string: first,
                    from,
                    to: to.min(middle),
                });
            }
            2 if number & UNCACHED == 0 => flat(Avma(pointer(fields.second)?.0))?,
            3 => {
                let offset = self.integer(string, fields.second, "string")?;
                let offset = u64::try_from(offset).unwrap_or(0);
                left.push(Part {
                    string: pointer(fields.first)?,
                    from: from.saturating_add(offset),
                    to: to.saturating_add(offset),
                });
            }
            5 => left.push(Part {
                string: pointer(fields.first)?,
                from,
                to,
            }),
            other => {
                return Err(AdapterError::Implausible {
                    what: "string's type",
                    value: other.into(),
                    at: string.address().unwrap_or_default(),
                });
            }
        }
        Ok(())
    }

    fn visit_flat(
        &self,
        base: Avma,
        (from, to): (u64, u64),
        is_one_byte: bool,
        visit: &mut dyn FnMut(Characters<'_>),
    ) -> Result<(), AdapterError> {
        let failed = AdapterError::reading("string");
        let width = if is_one_byte { 1 } else { 2 };
        let (mut at, end) = (from.saturating_mul(width), to.saturating_mul(width));
        while at < end {
            let length = (end - at).min(CHUNK);
            let address = base.0.checked_add(at).map(Avma);
            let address = address.ok_or(MemoryError::Unmapped {
                at: base,
                wanted: 0,
                got: 0,
            });
            let bytes = address.and_then(|address| {
                let cap = usize::try_from(CHUNK).unwrap_or(0);
                self.memory.read_vec(address, length, cap)
            });
            let bytes = bytes.map_err(&failed)?;
            visit(match is_one_byte {
                true => Characters::OneByte(&bytes),
                false => Characters::TwoByte(&bytes),
            });
            at += length;
        }
        Ok(())
    }
}
