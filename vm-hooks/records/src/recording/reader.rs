//! Reading a recording, whole or damaged.

use super::chunk::Chunk;
use super::frame::{
    self, CHUNK_HEADER_BYTES, CHUNK_MAGIC, ChunkHeader, FILE_HEADER_BYTES, FileStart,
};
use crate::{Content, TimeNs};
use std::io::{self, Read, Seek, SeekFrom};

/// The search for the next chunk behind a damage reads so much at first …
const FIRST_SEARCH_BYTES: usize = 512;

/// … and at most so much at once.
const MAX_SEARCH_BYTES: usize = 64 << 10;

/// A recording can't be read at all, or not further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system failed us.
    #[error("reading at byte {offset} failed: {source}")]
    Io {
        /// Where.
        offset: u64,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is empty.
    #[error("the file is empty: nothing was recorded")]
    Empty,
    /// The file is something else.
    #[error("this is not a vmscope recording")]
    NotARecording,
    /// The file begins like a recording, but its header is damaged or torn.
    #[error("the recording's header is damaged")]
    HeaderDamaged,
    /// The recording was made by a later vmscope.
    #[error(
        "the recording has format version {major}.{minor}; this vmscope reads version {}: \
         use the vmscope that made it, or a later one",
        frame::VERSION_MAJOR
    )]
    NewerVersion {
        /// Its major version.
        major: u16,
        /// Its minor version.
        minor: u16,
    },
}

/// A stretch of the file that could not be read and was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// What is wrong with it.
    pub why: &'static str,
    /// Whether it reaches to the end of the file: a torn last chunk, as a crash in
    /// mid-write leaves it.
    pub at_end: bool,
}

/// How the reading went.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// What was skipped because it was damaged. At most [`Ending::MAX_DAMAGES`] are
    /// listed, the first ones and the last; the rest only counted.
    pub damages: Vec<Damage>,
    /// How many stretches were skipped.
    pub damage_count: u64,
    /// How many bytes were skipped.
    pub damaged_bytes: u64,
    /// The latest time in any chunk.
    pub last_time: TimeNs,
}

impl Ending {
    /// So many damages are listed.
    pub const MAX_DAMAGES: usize = 64;
}

/// Reads a recording chunk by chunk, from any source that can seek.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    offset: u64,
    length: u64,
    version: (u16, u16),
    /// Whether the file's header can't be read; its version is a guess then.
    header_damaged: bool,
    ending: Ending,
}

impl<R: Read + Seek> Reader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// [`ReadError`] when it is not a recording that this version can read.
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
        // A chunk right behind it shows that this is a recording all the same: a
        // flipped bit in 16 bytes must not cost all the others.
        let after = FILE_HEADER_BYTES as u64;
        let Some(Ok(_)) = reader.header_at(after)? else {
            return Err(refusal);
        };
        reader.version = (frame::VERSION_MAJOR, frame::VERSION_MINOR);
        reader.header_damaged = true;
        reader.rewind();
        Ok(reader)
    }

    /// The recording's format version, major and minor.
    #[must_use]
    pub fn version(&self) -> (u16, u16) {
        self.version
    }

    /// Goes back to the first chunk. What [`Reader::ending`] says begins anew.
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

    /// How much of the file has been read, and how much there is, in bytes.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.offset, self.length)
    }

    /// What was skipped so far.
    #[must_use]
    pub fn ending(&self) -> &Ending {
        &self.ending
    }

    /// The next chunk that holds anything of `wanted`; `None` at the end. Others are
    /// passed over without reading them; damaged ones are skipped and noted.
    ///
    /// # Errors
    /// [`ReadError::Io`] when the operating system fails.
    pub fn next_chunk(&mut self, wanted: Content) -> Result<Option<Chunk>, ReadError> {
        while let Some(header) = self.next_header()? {
            let at = self.offset;
            let stored = header.stored_bytes as u64;
            let body = at + CHUNK_HEADER_BYTES as u64;
            if body + stored > self.length {
                // The header is whole, its payload is not: the file was torn here,
                // or the length lies; either way, look for the next chunk.
                self.skip_from(at, "a chunk is cut off")?;
                continue;
            }
            self.offset = body + stored;
            // A chunk that does not say what it holds may hold anything.
            if header.content != Content::default() && !header.content.meets(wanted) {
                self.ending.last_time = self.ending.last_time.max(header.to);
                continue;
            }
            let mut payload = vec![0; header.stored_bytes];
            self.read_at(body, &mut payload)?;
            match Chunk::decode(header, payload) {
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

    /// The header at the present offset, skipping to the next good one if need be.
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

    /// The header at `offset`, or what is wrong with it; `None` where the file ends
    /// before it does.
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

    /// Moves on from a bad header at `at` to the next good one, or to the end; notes
    /// what was skipped as one damage.
    fn skip_from(&mut self, at: u64, why: &'static str) -> Result<(), ReadError> {
        // Blocks overlap by what a header split in two needs. They grow, so that many
        // small damages do not each cost a large read.
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

/// Where the first good header in `block` begins.
fn first_header(block: &[u8]) -> Option<usize> {
    let mut windows = block.windows(CHUNK_HEADER_BYTES);
    windows.position(|window| {
        window.starts_with(&CHUNK_MAGIC)
            && <&[u8; CHUNK_HEADER_BYTES]>::try_from(window)
                .is_ok_and(|bytes| ChunkHeader::parse(bytes).is_ok())
    })
}
