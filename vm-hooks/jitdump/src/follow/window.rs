//! Buffered part of a growing file, read in large chunks.

use std::io;
use std::sync::Arc;

use vmscope_process::{ModuleFile, ReadAt as _};

use super::Unwritten;

const CHUNK_BYTES: usize = 256 << 10;

/// Approximate limit of bytes read per poll: sparse files can be longer than any disk.
pub(super) const MAX_BYTES_A_READING: u64 = 4 << 20;

/// Buffered part of a file.
#[derive(Debug)]
pub(super) struct Window {
    file: Arc<ModuleFile>,
    bytes: Vec<u8>,
    /// File offset of `bytes`.
    start: u64,
    bytes_read: u64,
    /// Bytes behind the file's end, from the VM's buffer.
    pub unwritten: Unwritten,
}

impl Window {
    pub const fn new(file: Arc<ModuleFile>) -> Self {
        Self {
            file,
            bytes: Vec::new(),
            start: 0,
            bytes_read: 0,
            unwritten: Unwritten {
                offset: 0,
                bytes: Vec::new(),
            },
        }
    }

    /// Total bytes read, counting repeated reads.
    pub const fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    pub fn file(&self) -> &Arc<ModuleFile> {
        &self.file
    }

    /// Buffered bytes from `offset`.
    pub fn from(&self, offset: u64) -> &[u8] {
        let skip = offset.checked_sub(self.start);
        skip.and_then(|skip| self.bytes.get(usize::try_from(skip).ok()?..))
            .unwrap_or_default()
    }

    /// Removes and returns buffered bytes before `offset`; none if `offset` lies outside the
    /// buffer.
    pub fn take_before(&mut self, offset: u64) -> impl ExactSizeIterator<Item = u8> + '_ {
        let length = offset.checked_sub(self.start);
        let length = length.and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|length| *length <= self.bytes.len());
        if length.is_some() {
            self.start = offset;
        }
        self.bytes.drain(..length.unwrap_or(0))
    }

    /// Length of the file with the unwritten bytes, if the file has `length` bytes.
    pub fn length(&self, length: u64) -> u64 {
        length.max(self.unwritten.end())
    }

    /// Buffers at least `least` bytes from `offset`, limited by the length `length` with unwritten bytes; returns
    /// the number of buffered bytes.
    pub fn read(&mut self, offset: u64, least: usize, length: u64) -> io::Result<usize> {
        let kept = self.from(offset).len();
        self.bytes.drain(..self.bytes.len() - kept);
        self.start = offset;
        let available = length.saturating_sub(offset);
        let available = usize::try_from(available).unwrap_or(usize::MAX);
        let wanted = least.max(CHUNK_BYTES).min(available).max(kept);
        self.bytes.resize(wanted, 0);
        let from = offset.saturating_add(kept as u64);
        let missing = self.bytes.get_mut(kept..).unwrap_or_default();
        let got = self.file.read_some(from, missing).map(|got| {
            let rest = missing.get_mut(got..).unwrap_or_default();
            got + self.unwritten.copy(from.saturating_add(got as u64), rest)
        });
        let more = *got.as_ref().unwrap_or(&0);
        self.bytes_read = self.bytes_read.saturating_add(more as u64);
        self.bytes.truncate(kept + more);
        got.map(|got| kept + got)
    }

    /// Clears the buffer: the VM may rewrite recently read bytes.
    pub fn forget(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(CHUNK_BYTES);
    }
}
