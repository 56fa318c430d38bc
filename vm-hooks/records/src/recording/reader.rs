//! Reads recordings, whole or damaged.

use super::chunk::Chunk;
use super::frame::{
    self, CHUNK_HEADER_BYTES, CHUNK_MAGIC, ChunkHeader, FILE_HEADER_BYTES, FileStart,
};
use crate::{Content, TimeNs};
use std::io::{self, Read, Seek, SeekFrom};

/// Size of the first read in the search behind damage.
const FIRST_SEARCH_BYTES: usize = 512;

/// Maximum size of later reads.
const MAX_SEARCH_BYTES: usize = 64 << 10;

/// An unreadable recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// An I/O error.
    #[error("reading at byte {offset} failed")]
    Io {
        /// File offset.
        offset: u64,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// An empty file.
    #[error("the file is empty: nothing was recorded")]
    Empty,
    /// Another kind of file.
    #[error("this is not a vmscope recording")]
    NotARecording,
    /// A recording with a damaged or incomplete header.
    #[error("the recording's header is damaged")]
    HeaderDamaged,
    /// A recording of a later vmscope.
    #[error(
        "the recording has format version {major}.{minor}; this vmscope reads version {}: \
         use the vmscope that made it, or a later one",
        frame::VERSION_MAJOR
    )]
    NewerVersion {
        /// Major version.
        major: u16,
        /// Minor version.
        minor: u16,
    },
}

/// A skipped, unreadable part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Cause.
    pub why: &'static str,
    /// Whether it extends to the file's end: an incomplete last chunk, typical after a crash.
    pub at_end: bool,
}

/// Damage found during reading.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// Skipped parts: at most [`Ending::MAX_DAMAGES`], the first parts and the last; others are only
    /// counted.
    pub damages: Vec<Damage>,
    /// Number of skipped parts.
    pub damage_count: u64,
    /// Number of skipped bytes.
    pub damaged_bytes: u64,
    /// Latest time of all chunks.
    pub last_time: TimeNs,
}

impl Ending {
    /// Maximum length of `damages`.
    pub const MAX_DAMAGES: usize = 64;
}

/// Reads a recording by chunks from a seekable source.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    offset: u64,
    length: u64,
    version: (u16, u16),
    /// Damaged file header: `version` is a guess.
    header_damaged: bool,
    ending: Ending,
}

impl<R: Read + Seek> Reader<R> {
    /// Opens a recording.
    ///
    /// # Errors
    /// [`ReadError`] if this version can't read `source`.
    pub fn open(mut source: R) -> Result<Self, ReadError> {
        let length = source
            .seek(SeekFrom::End(0))
            .map_err(|source| ReadError::Io { offset: 0, source })?;
        if length == 0 {
            return Err(ReadError::Empty);
        }
        let mut reader = Reader {
            source,
            offset: 0,
            length,
            version: (0, 0),
            header_damaged: false,
            ending: Ending::default(),
        };
        let mut start = [0; FILE_HEADER_BYTES];
        let available = usize::try_from(length)
            .unwrap_or(usize::MAX)
            .min(FILE_HEADER_BYTES);
        reader.read_at(0, &mut start[..available])?;
        if available < FILE_HEADER_BYTES {
            let known = available.min(frame::FILE_MAGIC.len());
            return Err(if start[..known] == frame::FILE_MAGIC[..known] {
                ReadError::HeaderDamaged
            } else {
                ReadError::NotARecording
            });
        }
        let refusal = match frame::judge_start(&start) {
            FileStart::Foreign => ReadError::NotARecording,
            FileStart::Damaged => ReadError::HeaderDamaged,
            FileStart::Recording(major, minor) if major != frame::VERSION_MAJOR => {
                return Err(ReadError::NewerVersion { major, minor });
            }
            FileStart::Recording(major, minor) => {
                reader.version = (major, minor);
                reader.rewind();
                return Ok(reader);
            }
        };
        // A valid chunk behind it proves a recording: a flipped bit in 16 bytes must not cost all
        // chunks.
        let after = FILE_HEADER_BYTES as u64;
        let Some(Ok(_)) = reader.header_at(after)? else {
            return Err(refusal);
        };
        reader.version = (frame::VERSION_MAJOR, frame::VERSION_MINOR);
        reader.header_damaged = true;
        reader.rewind();
        Ok(reader)
    }

    /// Format version, major and minor.
    #[must_use]
    pub fn version(&self) -> (u16, u16) {
        self.version
    }

    /// Returns to the first chunk and resets [`Reader::ending`].
    pub fn rewind(&mut self) {
        self.offset = FILE_HEADER_BYTES as u64;
        self.ending = Ending::default();
        if self.header_damaged {
            self.note(Damage {
                offset: 0,
                bytes: FILE_HEADER_BYTES as u64,
                why: "the recording's header is damaged",
                at_end: false,
            });
        }
    }

    /// Bytes read so far, and length of the file in bytes.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.offset, self.length)
    }

    /// Damage so far.
    #[must_use]
    pub fn ending(&self) -> &Ending {
        &self.ending
    }

    /// The next chunk with contents in `wanted`; `None` at the end. Passes over other chunks
    /// without reading them; skips and notes damaged ones.
    ///
    /// # Errors
    /// [`ReadError::Io`] for I/O errors.
    pub fn next_chunk(&mut self, wanted: Content) -> Result<Option<Chunk>, ReadError> {
        while let Some(header) = self.next_header()? {
            let at = self.offset;
            let stored = header.stored_bytes as u64;
            let body = at + CHUNK_HEADER_BYTES as u64;
            if body + stored > self.length {
                // A valid header without its payload: truncated file or wrong length. Search the
                // next chunk.
                self.skip_from(at, "a chunk is cut off")?;
                continue;
            }
            self.offset = body + stored;
            // A chunk without a content set may contain anything.
            if header.content != Content::default() && !header.content.meets(wanted) {
                self.ending.last_time = self.ending.last_time.max(header.to);
                continue;
            }
            let mut payload = vec![0; header.stored_bytes];
            self.read_at(body, &mut payload)?;
            match Chunk::decode(header, at, payload) {
                Ok(chunk) => {
                    self.ending.last_time = self.ending.last_time.max(header.to);
                    return Ok(Some(chunk));
                }
                Err(why) => self.note(Damage {
                    offset: at,
                    bytes: self.offset - at,
                    why,
                    at_end: self.offset == self.length,
                }),
            }
        }
        Ok(None)
    }

    /// Header at the current offset; skips to the next valid one if necessary.
    fn next_header(&mut self) -> Result<Option<ChunkHeader>, ReadError> {
        loop {
            let at = self.offset;
            if at == self.length {
                return Ok(None);
            }
            match self.header_at(at)? {
                Some(Ok(header)) => return Ok(Some(header)),
                Some(Err(why)) => self.skip_from(at, why)?,
                None => {
                    self.offset = self.length;
                    self.note(Damage {
                        offset: at,
                        bytes: self.length - at,
                        why: "a chunk is cut off",
                        at_end: true,
                    });
                }
            }
        }
    }

    /// Header at `offset`, or its error; `None` if the file ends first.
    fn header_at(
        &mut self,
        offset: u64,
    ) -> Result<Option<Result<ChunkHeader, &'static str>>, ReadError> {
        let end = offset + CHUNK_HEADER_BYTES as u64;
        if end > self.length {
            return Ok(None);
        }
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        self.read_at(offset, &mut bytes)?;
        Ok(Some(ChunkHeader::parse(&bytes)))
    }

    /// Skips from an invalid header at `at` to the next valid one, or to the end; notes one damage.
    fn skip_from(&mut self, at: u64, why: &'static str) -> Result<(), ReadError> {
        // Blocks overlap by a header's length. They grow from a small size, so that many small
        // damages stay cheap.
        let mut block = vec![0; FIRST_SEARCH_BYTES];
        let mut from = at + 1;
        let found = loop {
            let left = self.length.saturating_sub(from);
            if left < CHUNK_HEADER_BYTES as u64 {
                break self.length;
            }
            let take = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
            self.read_at(from, &mut block[..take])?;
            if let Some(position) = first_header(&block[..take]) {
                break from + position as u64;
            }
            from += (take - (CHUNK_HEADER_BYTES - 1)) as u64;
            block.resize((2 * block.len()).min(MAX_SEARCH_BYTES), 0);
        };
        self.offset = found;
        self.note(Damage {
            offset: at,
            bytes: found - at,
            why,
            at_end: found == self.length,
        });
        Ok(())
    }

    fn note(&mut self, damage: Damage) {
        let ending = &mut self.ending;
        ending.damage_count += 1;
        ending.damaged_bytes += damage.bytes;
        ending.damages.truncate(Ending::MAX_DAMAGES - 1);
        ending.damages.push(damage);
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        self.source
            .seek(SeekFrom::Start(offset))
            .and_then(|_| self.source.read_exact(buffer))
            .map_err(|source| ReadError::Io { offset, source })
    }
}

fn first_header(block: &[u8]) -> Option<usize> {
    let mut windows = block.windows(CHUNK_HEADER_BYTES);
    windows.position(|window| {
        window.starts_with(&CHUNK_MAGIC)
            && <&[u8; CHUNK_HEADER_BYTES]>::try_from(window)
                .is_ok_and(|bytes| ChunkHeader::parse(bytes).is_ok())
    })
}
