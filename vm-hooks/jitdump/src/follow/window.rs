//! A part of a file that grows, read in large pieces.

use std::io;
use std::sync::Arc;

use vmscope_process::{ModuleFile, ReadAt as _};

/// How much is read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// So much is read of a file before its reader has to be asked again, and somewhat
/// more: a file may be sparse, and longer than any disk.
pub(super) const MAX_BYTES_A_READING: u64 = 4 << 20;

/// The part of a file that is at hand.
#[derive(Debug)]
pub(super) struct Window {
    file: Arc<ModuleFile>,
    bytes: Vec<u8>,
    /// Where in the file the bytes begin.
    start: u64,
    /// How much was read in all.
    bytes_read: u64,
}

impl Window {
    pub const fn new(file: Arc<ModuleFile>) -> Self {
        Self {
            file,
            bytes: Vec::new(),
            start: 0,
            bytes_read: 0,
        }
    }

    /// How much was read so far, in bytes, what was read twice included.
    pub const fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    pub fn file(&self) -> &Arc<ModuleFile> {
        &self.file
    }

    /// What is at hand from `offset` on.
    pub fn from(&self, offset: u64) -> &[u8] {
        let skip = offset.checked_sub(self.start);
        skip.and_then(|skip| self.bytes.get(usize::try_from(skip).ok()?..))
            .unwrap_or_default()
    }

    /// Takes away what is at hand before `offset`, if that is at hand too.
    pub fn take_before(&mut self, offset: u64) -> impl ExactSizeIterator<Item = u8> + '_ {
        let length = offset.checked_sub(self.start);
        let length = length.and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|length| *length <= self.bytes.len());
        if length.is_some() {
            self.start = offset;
        }
        self.bytes.drain(..length.unwrap_or(0))
    }

    /// Reads on, so that `least` bytes and more are at hand from `offset` on, as far as
    /// the file, whose length is `length`, has them; says how many are.
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
        let got = self.file.read_some(from, missing);
        let more = *got.as_ref().unwrap_or(&0);
        self.bytes_read = self.bytes_read.saturating_add(more as u64);
        self.bytes.truncate(kept + more);
        got.map(|got| kept + got)
    }

    /// Forgets what is at hand: what was read of something that is being written may be
    /// written anew.
    pub fn forget(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(CHUNK_BYTES);
    }
}
