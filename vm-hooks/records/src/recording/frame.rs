//! File and chunk headers as bytes, without I/O.

use crate::{Content, TimeNs};

/// Start of every recording; its first byte is not ASCII, unlike text files.
pub(super) const FILE_MAGIC: [u8; 8] = *b"\x89VMSCOPE";

/// Readers reject other major versions.
pub const VERSION_MAJOR: u16 = 1;

/// Readers skip and count unknown kinds and fields of later minor versions.
pub const VERSION_MINOR: u16 = 0;

pub(super) const FILE_HEADER_BYTES: usize = 16;

/// Start of every chunk.
pub(super) const CHUNK_MAGIC: [u8; 4] = *b"VMSC";

pub(super) const CHUNK_HEADER_BYTES: usize = 48;

/// Maximum size of a chunk before compression, which readers must be able to allocate. 4 MiB far
/// exceeds a second of samples without stacks.
pub const MAX_RAW_BYTES: usize = 4 << 20;

/// Maximum size of a payload before compression, for its size in the file: 4 KiB, and 256 times as
/// much. Recordings have up to 5 times, deep recursion with call chains some 30 times. Of a payload
/// that zstd makes smaller, the writer stores the plain bytes.
pub(super) fn max_raw_bytes(stored_bytes: usize) -> usize {
    stored_bytes.saturating_mul(256).saturating_add(4096)
}

/// Compression of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// Uncompressed.
    Plain,
    /// One zstd frame (RFC 8878).
    Zstd,
    /// Unknown to this version: readers skip and note the chunk.
    Unknown(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkHeader {
    pub codec: Codec,
    pub content: Content,
    /// Payload bytes before compression, at most [`MAX_RAW_BYTES`].
    pub raw_bytes: usize,
    /// Stored payload bytes.
    pub stored_bytes: usize,
    /// CRC-32 of the stored payload.
    pub payload_crc: u32,
    /// Earliest and latest time.
    pub from: TimeNs,
    pub to: TimeNs,
    /// Number of records, including single samples.
    pub records: u32,
}

pub(super) fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut bytes = [0; FILE_HEADER_BYTES];
    bytes[..8].copy_from_slice(&FILE_MAGIC);
    bytes[8..10].copy_from_slice(&VERSION_MAJOR.to_le_bytes());
    bytes[10..12].copy_from_slice(&VERSION_MINOR.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Classification of a file's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileStart {
    /// A recording with this version (major, minor).
    Recording(u16, u16),
    /// No recording.
    Foreign,
    /// A recording with a damaged header.
    Damaged,
}

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
    /// Lengths are at most [`MAX_RAW_BYTES`] and fit.
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
        // zstd enlarges incompressible payloads; the writer stores those plain.
        if header.raw_bytes > MAX_RAW_BYTES || header.stored_bytes > MAX_RAW_BYTES {
            return Err("a chunk's stated size is too large");
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
