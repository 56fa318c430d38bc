//! Bounds the number of parts in a message by its size.
//!
//! An empty nested message takes two bytes in a file and up to 160 in memory: a chunk of 4 MiB (a
//! few hundred bytes compressed) could allocate 335 MB. Parts are therefore counted before
//! decoding. Honest records stay below the bound: their nested messages take at least 8 bytes. The
//! bound allows 20 bytes of memory per message byte: 84 MB for the largest chunk.

use super::WireError;
use prost::Message;
use prost::encoding::decode_varint;

/// Cost of a nested message; a text costs 1.
const MESSAGE: usize = 4;

/// Free units of any message: 16,384 nested messages.
const BASE: usize = MESSAGE << 14;

/// Bytes per unit: a nested message needs 8 of them, a text 2.
const BYTES_PER_UNIT: usize = 2;

/// Maximum memory of a number in a list, in bytes per byte of the message.
const MEMORY_PER_BYTE: usize = 8;

/// Maximum memory of a nested message, without its lists and texts, in bytes.
const MESSAGE_MEMORY: usize = 160;

/// Memory of a record by itself, with its places in maps and lists, in bytes.
const RECORD_MEMORY: usize = 256;

/// Units left, and the memory of the decoded record.
pub(crate) struct Budget {
    units: usize,
    memory: usize,
}

/// A message whose parts are countable before decoding.
pub(crate) trait Parts {
    /// Spends units for each nested message and each text of a list in `bytes`.
    fn spend(bytes: &[u8], budget: &mut Budget) -> Result<(), WireError>;
}

impl Budget {
    /// A text of a list.
    pub(super) fn text(&mut self, text: &[u8]) -> Result<(), WireError> {
        self.memory += size_of::<String>();
        self.bytes(text);
        self.take(1)
    }

    /// A text, or bytes: takes as much memory as in the message.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let less = (MEMORY_PER_BYTE - 1) * bytes.len();
        self.memory = self.memory.saturating_sub(less);
    }

    pub(super) fn message(&mut self) -> Result<(), WireError> {
        self.memory += MESSAGE_MEMORY;
        self.take(MESSAGE)
    }

    fn take(&mut self, cost: usize) -> Result<(), WireError> {
        self.units = (self.units.checked_sub(cost)).ok_or(WireError::TooManyParts)?;
        Ok(())
    }
}

/// Decodes a message unless it has too many parts for its size. Also returns the approximate memory
/// of the record in bytes, rather too much than too little.
pub(super) fn decode<M: Message + Default + Parts>(bytes: &[u8]) -> Result<(M, usize), WireError> {
    let mut budget = Budget {
        units: BASE + bytes.len() / BYTES_PER_UNIT,
        memory: RECORD_MEMORY + MEMORY_PER_BYTE * bytes.len(),
    };
    M::spend(bytes, &mut budget)?;
    Ok((M::decode(bytes)?, budget.memory))
}

/// Calls `part` with number and bytes of each length-delimited field.
pub(super) fn each_part(
    mut bytes: &[u8],
    mut part: impl FnMut(u32, &[u8]) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let skip = |bytes: &mut &[u8], length: usize| -> Result<(), WireError> {
        *bytes = bytes.get(length..).ok_or(WireError::Malformed)?;
        Ok(())
    };
    while !bytes.is_empty() {
        let key = decode_varint(&mut bytes)?;
        match key & 7 {
            0 => {
                decode_varint(&mut bytes)?;
            }
            1 => skip(&mut bytes, 8)?,
            5 => skip(&mut bytes, 4)?,
            2 => {
                let length = usize::try_from(decode_varint(&mut bytes)?)
                    .map_err(|_| WireError::Malformed)?;
                let (body, rest) = bytes.split_at_checked(length).ok_or(WireError::Malformed)?;
                bytes = rest;
                let number = u32::try_from(key >> 3).map_err(|_| WireError::Malformed)?;
                part(number, body)?;
            }
            // Groups are never written.
            _ => return Err(WireError::Malformed),
        }
    }
    Ok(())
}
