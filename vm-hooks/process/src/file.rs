//! The target's files, opened so that a hostile target can't turn that against us.
//!
//! A path in a process's mappings is the target's word. It is resolved inside the
//! target's own root (`openat2` with `RESOLVE_IN_ROOT`, never through magic links),
//! first with `O_PATH`, which opens no device and waits for no FIFO; only a regular
//! file is then opened for reading. What is read is read with `pread`: a mapping of
//! a file that its owner truncates would kill us with SIGBUS.
//!
//! What this does not guard against: a target that mounts a file system of its own
//! (FUSE) answers `open` and `read` when it likes, or never.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, fstat, major, minor};

use crate::MapEntry;

/// Bytes that can be read at an offset: a file, or an image in memory.
pub trait ReadAt: Send + Sync {
    /// How many bytes there are.
    fn len(&self) -> u64;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` from `offset` on as far as there are bytes, and says how many.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// `length` bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::UnexpectedEof`] when there are not that many, before
    /// anything is allocated; and what the system says.
    fn read_at(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let end = u64::try_from(length)
            .ok()
            .and_then(|l| l.checked_add(offset));
        if end.is_none_or(|end| end > self.len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; length];
        // A file may have shrunk since its length was asked for.
        if self.read_some(offset, &mut bytes)? < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }
}

impl ReadAt for [u8] {
    fn len(&self) -> u64 {
        u64::try_from(<[u8]>::len(self)).unwrap_or(u64::MAX)
    }

    fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let available = self.get(from..).unwrap_or_default();
        let mut got = 0;
        for (to, byte) in buffer.iter_mut().zip(available) {
            *to = *byte;
            got += 1;
        }
        Ok(got)
    }
}

/// A module's file (or the image of the vdso), kept open: what is read is what was
/// mapped, whatever happens to its name. May be shared between threads.
#[derive(Debug)]
pub struct ModuleFile(Content);

#[derive(Debug)]
enum Content {
    File { file: File, len: u64 },
    Image(Arc<[u8]>),
}

impl ModuleFile {
    /// An image that lies in our own memory.
    #[must_use]
    pub fn from_image(image: Arc<[u8]>) -> Self {
        Self(Content::Image(image))
    }

    /// A file that is open for reading.
    ///
    /// # Errors
    ///
    /// When its length can't be told, or it is not a regular file.
    pub fn from_file(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let len = metadata.len();
        Ok(Self(Content::File { file, len }))
    }

    /// The device (as in [`MapEntry::device`]) and inode that `stat` shows;
    /// zeros for an image.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        let Some(metadata) = self.metadata()? else {
            return Ok((0, 0));
        };
        Ok(identity_of(metadata.dev(), metadata.ino()))
    }

    /// What `stat` says of it now; `None` for an image.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn metadata(&self) -> io::Result<Option<Metadata>> {
        match &self.0 {
            Content::File { file, .. } => file.metadata().map(Some),
            Content::Image(_) => Ok(None),
        }
    }

    /// How many bytes there are now: unlike [`ReadAt::len`], which says how many there
    /// were when it was opened, for a file that grows.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn len_now(&self) -> io::Result<u64> {
        Ok(match self.metadata()? {
            Some(metadata) => metadata.len(),
            None => self.len(),
        })
    }

    /// Whether it takes one of our descriptors.
    #[must_use]
    pub fn holds_descriptor(&self) -> bool {
        matches!(self.0, Content::File { .. })
    }
}

impl ReadAt for ModuleFile {
    fn len(&self) -> u64 {
        match &self.0 {
            Content::File { len, .. } => *len,
            Content::Image(image) => ReadAt::len(&**image),
        }
    }

    fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let file = match &self.0 {
            Content::File { file, .. } => file,
            Content::Image(image) => return image.read_some(offset, buffer),
        };
        let mut got = 0;
        while let Some(rest) = buffer.get_mut(got..).filter(|rest| !rest.is_empty()) {
            let Some(from) = offset.checked_add(got as u64) else {
                break;
            };
            match file.read_at(rest, from) {
                Ok(0) => break,
                Ok(count) => got += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(got)
    }
}

/// A device, packed as [`MapEntry::device`] is, and an inode.
pub(crate) fn identity_of(device: u64, inode: u64) -> (u64, u64) {
    let part = |number| u32::try_from(number).unwrap_or(u32::MAX);
    let device = MapEntry::pack_device(part(major(device)), part(minor(device)));
    (device, inode)
}

/// Opens what one of the kernel's own links (`/proc/PID/exe`,
/// `/proc/PID/map_files/…`) points to, if that is a regular file. Such a link leads
/// to the file itself, whatever became of its name.
///
/// # Errors
///
/// What the system says; [`io::ErrorKind::InvalidInput`] when it is not a regular
/// file.
pub fn open_magic_link(link: &Path) -> io::Result<ModuleFile> {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let found = nix::fcntl::open(link, flags, Mode::empty())?;
    reopen(&found)
}

/// Opens the file behind an `O_PATH` descriptor for reading, if it is a regular one.
pub(crate) fn reopen(found: &OwnedFd) -> io::Result<ModuleFile> {
    let kind = fstat(found)?.st_mode & nix::libc::S_IFMT;
    if kind != nix::libc::S_IFREG {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = nix::fcntl::open(Path::new(&link), flags, Mode::empty())?;
    ModuleFile::from_file(File::from(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_bounded() {
        let image = ModuleFile::from_image(Arc::from(&b"0123456789"[..]));
        assert_eq!(image.read_at(8, 2).unwrap(), b"89");
        assert!(image.read_at(8, 3).is_err());
        assert!(image.read_at(u64::MAX, 1).is_err());
        assert!(image.read_at(0, usize::MAX).is_err());
    }
}
