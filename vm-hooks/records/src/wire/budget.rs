//! How many parts a message may have for its size.
//!
//! An empty nested message takes two bytes in a file and up to 160 in memory: a
//! chunk of 4 MiB, some hundred bytes when compressed, could ask for 335 MB. So the
//! parts are counted before a message is decoded. What a writer of honest records
//! makes stays below the bound: its nested messages take 8 bytes and more. What is left
//! is 20 bytes of memory for one of a message: 84 MB for the largest chunk.

use super::WireError;
use prost::Message;
use prost::encoding::decode_varint;

/// What a nested message costs; a text costs 1.
const MESSAGE: usize = 4;

/// What any message may spend: 16,384 nested messages.
const BASE: usize = MESSAGE << 14;

/// One unit for so many bytes: a nested message for 8 of them, a text for 2.
const BYTES_PER_UNIT: usize = 2;

/// What is left to be spent.
pub(super) struct Budget(usize);

/// A message whose parts can be counted without decoding it.
pub(super) trait Parts {
    /// Spends for each nested message and each element of a list of texts in `bytes`.
    ///
    /// # Errors
    /// [`WireError::TooManyParts`], or [`WireError::Malformed`] where it is no message.
    fn spend(bytes: &[u8], budget: &mut Budget) -> Result<(), WireError>;
}

impl Budget {
    /// Spends for a text.
    pub(super) fn text(&mut self) -> Result<(), WireError> {
        self.take(1)
    }

    /// Spends for a nested message.
    pub(super) fn message(&mut self) -> Result<(), WireError> {
        self.take(MESSAGE)
    }

    fn take(&mut self, cost: usize) -> Result<(), WireError> {
        self.0 = self.0.checked_sub(cost).ok_or(WireError::TooManyParts)?;
        Ok(())
    }
}

/// The message in `bytes`.
///
/// # Errors
/// [`WireError`] when it is none, or has more parts than its size allows.
pub(super) fn decode<M: Message + Default + Parts>(bytes: &[u8]) -> Result<M, WireError> {
    let mut budget = Budget(BASE + bytes.len() / BYTES_PER_UNIT);
    M::spend(bytes, &mut budget)?;
    Ok(M::decode(bytes)?)
}

/// Calls `part` with the number and the bytes of each length-delimited field.
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
