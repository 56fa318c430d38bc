//! The file's and the chunks' headers, as bytes. Pure: no I/O.

use crate::{Content, TimeNs};

/// The first bytes of every recording. The first one is not ASCII, so that no text
/// file begins like this.
pub(super) const FILE_MAGIC: [u8; 8] = *b"\x89VMSCOPE";

/// Recordings of another major version can't be read.
pub const VERSION_MAJOR: u16 = 1;

/// Recordings of a later minor version may hold kinds and fields that this one
/// skips, counting them.
pub const VERSION_MINOR: u16 = 0;

/// Length of the file's header.
pub(super) const FILE_HEADER_BYTES: usize = 16;

/// The first bytes of every chunk.
pub(super) const CHUNK_MAGIC: [u8; 4] = *b"VMSC";

/// Length of a chunk's header.
pub(super) const CHUNK_HEADER_BYTES: usize = 48;

/// The most bytes that a chunk may have before compression: what a reader must be
/// ready to allocate for one. 4 MiB: far above what a second of samples needs
/// without stacks, and small beside what a machine has.
pub const MAX_RAW_BYTES: usize = 4 << 20;

/// How a chunk's payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// As it is.
    Plain,
    /// One zstd frame (RFC 8878).
    Zstd,
    /// In a way that this version does not know: such a chunk is passed over by its
    /// length, and noted.
    Unknown(u8),
}

/// A chunk's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkHeader {
    pub codec: Codec,
    /// What is inside.
    pub content: Content,
    /// Bytes of the payload before compression, at most [`MAX_RAW_BYTES`].
    pub raw_bytes: usize,
    /// Bytes of the payload as stored.
    pub stored_bytes: usize,
    /// CRC-32 of the payload as stored.
    pub payload_crc: u32,
    /// The earliest and the latest time in it.
    pub from: TimeNs,
    pub to: TimeNs,
    /// How many records it holds, each sample counted.
    pub records: u32,
}

/// The file's header.
pub(super) fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut bytes = [0; FILE_HEADER_BYTES];
    bytes[..8].copy_from_slice(&FILE_MAGIC);
    bytes[8..10].copy_from_slice(&VERSION_MAJOR.to_le_bytes());
    bytes[10..12].copy_from_slice(&VERSION_MINOR.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// What a file begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileStart {
    /// A recording of this version (major, minor).
    Recording(u16, u16),
    /// Not a recording.
    Foreign,
    /// A recording's first bytes with a header that was damaged.
    Damaged,
}

/// Judges a file by its first bytes.
pub(super) fn judge_start(bytes: &[u8; FILE_HEADER_BYTES]) -> FileStart {
    if bytes[..8] != FILE_MAGIC {
        return FileStart::Foreign;
    }
    if u32_at(bytes, 12) != crc32fast::hash(&bytes[..12]) {
        return FileStart::Damaged;
    }
    FileStart::Recording(u16_at(bytes, 8), u16_at(bytes, 10))
}

impl ChunkHeader {
    /// The header's bytes. Lengths are below [`MAX_RAW_BYTES`] and so fit.
    pub fn to_bytes(self) -> [u8; CHUNK_HEADER_BYTES] {
        let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes();
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        bytes[..4].copy_from_slice(&CHUNK_MAGIC);
        bytes[4] = match self.codec {
            Codec::Plain => 0,
            Codec::Zstd => 1,
            Codec::Unknown(number) => number,
        };
        bytes[8..12].copy_from_slice(&self.content.0.to_le_bytes());
        bytes[12..16].copy_from_slice(&length(self.raw_bytes));
        bytes[16..20].copy_from_slice(&length(self.stored_bytes));
        bytes[20..24].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.from.0.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.to.0.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.records.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..44]);
        bytes[44..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header in `bytes`, or why it is none.
    pub fn parse(bytes: &[u8; CHUNK_HEADER_BYTES]) -> Result<Self, &'static str> {
        if bytes[..4] != CHUNK_MAGIC {
            return Err("no chunk begins here");
        }
        if u32_at(bytes, 44) != crc32fast::hash(&bytes[..44]) {
            return Err("a chunk's header does not match its checksum");
        }
        let codec = match bytes[4] {
            0 => Codec::Plain,
            1 => Codec::Zstd,
            number => Codec::Unknown(number),
        };
        let length = |at| usize::try_from(u32_at(bytes, at)).unwrap_or(usize::MAX);
        let header = ChunkHeader {
            codec,
            content: Content(u32_at(bytes, 8)),
            raw_bytes: length(12),
            stored_bytes: length(16),
            payload_crc: u32_at(bytes, 20),
            from: TimeNs(u64_at(bytes, 24)),
            to: TimeNs(u64_at(bytes, 32)),
            records: u32_at(bytes, 40),
        };
        // zstd adds a few bytes to what it can't compress; the writer stores such
        // payloads plain.
        if header.raw_bytes > MAX_RAW_BYTES || header.stored_bytes > MAX_RAW_BYTES {
            return Err("a chunk claims to be larger than any may be");
        }
        Ok(header)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let mut number = [0; 2];
    number.copy_from_slice(&bytes[at..at + 2]);
    u16::from_le_bytes(number)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}
