//! Payload of a chunk: records in sequence.

use super::frame::{self, ChunkHeader, Codec};
use crate::record::SAMPLES_KIND;
use crate::wire::{self, WireError};
use crate::{Content, Record, Sample, TimeNs};

/// A decompressed chunk with verified checksum.
#[derive(Clone, Debug)]
pub struct Chunk {
    header: ChunkHeader,
    offset: u64,
    payload: Vec<u8>,
}

/// An item of a chunk.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A record other than a sample.
    Record(Record),
    /// Samples, in time order.
    Samples(Vec<Sample>),
    /// A skipped record of an unknown kind.
    Unknown(u32),
    /// A skipped, undecodable record of a known kind.
    Malformed(u32, WireError),
}

impl Chunk {
    /// Decompresses and verifies the chunk at `offset`.
    pub(super) fn decode(
        header: ChunkHeader,
        offset: u64,
        stored: Vec<u8>,
    ) -> Result<Self, &'static str> {
        if crc32fast::hash(&stored) != header.payload_crc {
            return Err("a chunk does not match its checksum");
        }
        let payload = match header.codec {
            Codec::Plain => stored,
            Codec::Zstd if header.raw_bytes > frame::max_raw_bytes(stored.len()) => {
                return Err("a chunk would inflate too much");
            }
            // The header bounds the output.
            Codec::Zstd => zstd::bulk::decompress(&stored, header.raw_bytes)
                .map_err(|_| "a chunk cannot be decompressed")?,
            Codec::Unknown(_) => {
                return Err("a chunk is compressed in an unknown way (by a later vmscope?)");
            }
        };
        if payload.len() != header.raw_bytes {
            return Err("a chunk does not have its stated length");
        }
        Ok(Chunk {
            header,
            offset,
            payload,
        })
    }

    /// Offset of its header in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Kinds of its records.
    #[must_use]
    pub fn content(&self) -> Content {
        self.header.content
    }

    /// Earliest and latest time.
    #[must_use]
    pub fn span(&self) -> (TimeNs, TimeNs) {
        (self.header.from, self.header.to)
    }

    /// Number of records in its header, including single samples.
    #[must_use]
    pub fn records(&self) -> u32 {
        self.header.records
    }

    /// Records in order. Decoding continues after a malformed record, since each record states its
    /// length; a malformed frame ends the chunk.
    pub fn items(&self) -> impl Iterator<Item = Item> + '_ {
        self.measured_items().map(|(item, _)| item)
    }

    /// Records in order, each with its approximate memory in bytes, rather overestimated than
    /// underestimated.
    pub fn measured_items(&self) -> impl Iterator<Item = (Item, usize)> + '_ {
        let mut rest = self.payload.as_slice();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let Some((kind, body)) = take_frame(&mut rest) else {
                rest = &[];
                let malformed = Item::Malformed(0, WireError::Malformed);
                return Some((malformed, size_of::<Item>()));
            };
            let item = if kind == SAMPLES_KIND {
                wire::decode_samples(body).map(|(samples, memory)| (Item::Samples(samples), memory))
            } else {
                match Record::decode(kind, body) {
                    Some(decoded) => decoded.map(|(record, memory)| (Item::Record(record), memory)),
                    None => Ok((Item::Unknown(kind), size_of::<Item>())),
                }
            };
            Some(item.unwrap_or_else(|error| (Item::Malformed(kind, error), size_of::<Item>())))
        })
    }
}

/// Splits `kind, length, body` from the front of `rest`.
fn take_frame<'a>(rest: &mut &'a [u8]) -> Option<(u32, &'a [u8])> {
    let kind = u32::try_from(prost::encoding::decode_varint(rest).ok()?).ok()?;
    let length = usize::try_from(prost::encoding::decode_varint(rest).ok()?).ok()?;
    let (body, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some((kind, body))
}

/// Appends `kind, length, body` to `out`.
pub(super) fn put_frame(kind: u32, body: &[u8], out: &mut Vec<u8>) {
    prost::encoding::encode_varint(u64::from(kind), out);
    prost::encoding::encode_varint(body.len() as u64, out);
    out.extend_from_slice(body);
}
