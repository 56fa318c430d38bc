//! Bytes of a VM's file that C's stdio still holds in its buffer.
//!
//! V8, Mono and others write their files as a `FILE`. The last bytes, up to 4 KiB, stay in the buffer until the
//! buffer is full: a VM that compiles nothing more keeps the names of its hottest code there. glibc lists all
//! streams; their layout (`struct _IO_FILE`, `bits/types/struct_FILE.h`) is a part of its ABI.

use std::path::PathBuf;

use vmscope_process::{ModuleFile, ProcessView, ReadAt as _, open_magic_link, read_words};
use vmscope_records::Avma;

/// First stream of the list; exported by glibc.
const LIST: &str = "_IO_list_all";
/// Upper half of the flags of a stream: `_IO_MAGIC`.
const MAGIC: u64 = 0xFBAD;
/// Maximum number of streams in the search for a file's stream.
const MAX_STREAMS: usize = 1024;
/// Maximum number of bytes in a buffer: glibc's own buffers have 4 KiB.
const MAX_BYTES: u64 = 1 << 20;
/// Number of the file's last bytes compared with the buffer.
const COMPARED_BYTES: usize = 64;
/// Number of attempts at a stream that changes while it is read.
const MAX_READINGS: usize = 3;

/// Bytes in a stream's buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unwritten {
    /// The file's length in bytes: the offset at which the file will hold the first of these bytes.
    pub offset: u64,
    /// The bytes; none if the file holds all.
    pub bytes: Vec<u8>,
}

impl Unwritten {
    /// Length of the file with these bytes.
    pub(super) const fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }

    /// Copies bytes from file offset `from`; returns how many.
    pub(super) fn copy(&self, from: u64, to: &mut [u8]) -> usize {
        let skip = from.checked_sub(self.offset);
        let skip = skip.and_then(|skip| usize::try_from(skip).ok());
        let bytes = skip.and_then(|skip| self.bytes.get(skip..));
        let bytes = bytes.unwrap_or_default();
        let count = bytes.len().min(to.len());
        for (to, byte) in to.iter_mut().zip(bytes) {
            *to = *byte;
        }
        count
    }
}

/// The streams of a process's glibc.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    list: Avma,
}

/// A stream: `struct _IO_FILE`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stream {
    next: Avma,
    descriptor: u32,
    /// Begin and end of the unwritten bytes.
    from: u64,
    to: u64,
    /// Begin and end of the buffer.
    buffer: (u64, u64),
}

impl Streams {
    /// `None` in a process without a shared glibc.
    #[must_use]
    pub fn of(process: &ProcessView) -> Option<Self> {
        // libc-2.31.so before glibc 2.34
        let is_libc = |name: &str| name.starts_with("libc.so") || name.starts_with("libc-2.");
        let libc = process.module(is_libc)?;
        let found = process.exported(&libc, &[LIST]);
        let list = (*found.first()?)?;
        Some(Self { list })
    }

    /// Bytes for `file` in its stream's buffer, at most 1 MiB. `None` if no stream writes to this file, if memory
    /// can't be read, or if the process wrote during each attempt.
    #[must_use]
    pub fn unwritten(&self, process: &ProcessView, file: &ModuleFile) -> Option<Unwritten> {
        let identity = file.identity().ok()?;
        let mut at = Avma(process.memory().read_u64(self.list).ok()?);
        for _ in 0..MAX_STREAMS {
            let stream = Stream::read(process, at)?;
            if stream.writes_to(process, identity) {
                let mut readings = 0..MAX_READINGS;
                return readings.find_map(|_| read(process, at, file));
            }
            at = stream.next;
        }
        None
    }
}

impl Stream {
    fn read(process: &ProcessView, at: Avma) -> Option<Self> {
        if at == Avma(0) {
            return None;
        }
        let read = read_words::<15>(process.memory(), &[at]).ok()?;
        let [
            flags,
            _,
            _,
            _,
            from,
            to,
            _,
            begin,
            end,
            ..,
            next,
            descriptor,
        ] = (*read.first()?)?;
        let [flags, descriptor] = [flags, descriptor].map(|word| word & u64::from(u32::MAX));
        let stream = Self {
            next: Avma(next),
            descriptor: u32::try_from(descriptor).ok()?,
            from,
            to,
            buffer: (begin, end),
        };
        (flags >> 16 == MAGIC).then_some(stream)
    }

    fn writes_to(&self, process: &ProcessView, file: (u64, u64)) -> bool {
        // -1: a string, or closed
        if i32::try_from(self.descriptor).is_err() {
            return false;
        }
        let link = format!("/proc/{}/fd/{}", process.pid().0, self.descriptor);
        let opened = open_magic_link(&PathBuf::from(link));
        opened.is_ok_and(|opened| opened.identity().is_ok_and(|its| its == file))
    }

    fn length(&self) -> Option<usize> {
        let (begin, end) = self.buffer;
        let is_within = begin <= self.from && self.from <= self.to && self.to <= end;
        let length = self.to.checked_sub(self.from)?;
        let is_good = length == 0 || (is_within && length <= MAX_BYTES);
        usize::try_from(length).ok().filter(|_| is_good)
    }
}

/// Reads a stream's buffer; `None` if the process wrote meanwhile.
fn read(process: &ProcessView, at: Avma, file: &ModuleFile) -> Option<Unwritten> {
    let stream = Stream::read(process, at)?;
    let offset = file.len_now().ok()?;
    let mut bytes = vec![0; stream.length()?];
    if !bytes.is_empty() {
        let memory = process.memory();
        memory.read_into(Avma(stream.from), &mut bytes).ok()?;
    }
    let is_as_before = Stream::read(process, at)? == stream && file.len_now().ok()? == offset;
    // Between its system call and the reset of the buffer, the file holds these bytes already.
    let mut last = vec![0; COMPARED_BYTES.min(bytes.len())];
    let from = offset.saturating_sub(last.len() as u64);
    let got = file.read_some(from, &mut last).ok()?;
    last.truncate(got);
    let is_written = !last.is_empty() && bytes.ends_with(&last);
    (is_as_before && !is_written).then_some(Unwritten { offset, bytes })
}

#[cfg(test)]
mod tests;
