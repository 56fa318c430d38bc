//! Safe access to files of a hostile target.
//!
//! Paths in mappings come from the target. They are resolved inside the target's root (`openat2`
//! with `RESOLVE_IN_ROOT`, without magic links), first with `O_PATH`, which opens no device and
//! waits for no FIFO; only regular files are then opened for reading. Reads use `pread`: a mapping
//! of a truncated file would raise SIGBUS.
//!
//! Not covered: a target's own file system (FUSE) may delay `open` and `read` forever.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, fstat, major, minor};

use crate::MapEntry;

/// Random access to bytes: a file, or an image in memory.
pub trait ReadAt: Send + Sync {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// Whether the length is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` from `offset` as far as bytes exist, and returns their number.
    ///
    /// # Errors
    /// I/O errors.
    fn read_some(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Reads `length` bytes from `offset`.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if fewer bytes exist, before any allocation; I/O errors.
    fn read_at(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let end = u64::try_from(length)
            .ok()
            .and_then(|l| l.checked_add(offset));
        if end.is_none_or(|end| end > self.len()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; length];
        // Files may shrink after opening.
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

/// A module's open file, or the image of the vdso. Reads return the mapped content even after a
/// rename or deletion.
#[derive(Debug)]
pub struct ModuleFile(Content);

#[derive(Debug)]
enum Content {
    File { file: File, len: u64 },
    Image(Arc<[u8]>),
}

impl ModuleFile {
    /// An image in our own memory.
    #[must_use]
    pub fn from_image(image: Arc<[u8]>) -> Self {
        Self(Content::Image(image))
    }

    /// Wraps an open file.
    ///
    /// # Errors
    /// I/O errors; [`io::ErrorKind::InvalidInput`] if it is no regular file.
    pub fn from_file(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let len = metadata.len();
        Ok(Self(Content::File { file, len }))
    }

    /// Device (as in [`MapEntry::device`]) and inode from `stat`; zeros for an image.
    ///
    /// # Errors
    /// I/O errors.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        let Some(metadata) = self.metadata()? else {
            return Ok((0, 0));
        };
        Ok(identity_of(metadata.dev(), metadata.ino()))
    }

    /// Current metadata; `None` for an image.
    ///
    /// # Errors
    /// I/O errors.
    pub fn metadata(&self) -> io::Result<Option<Metadata>> {
        match &self.0 {
            Content::File { file, .. } => file.metadata().map(Some),
            Content::Image(_) => Ok(None),
        }
    }

    /// Current length of a growing file, unlike [`ReadAt::len`], the length at opening.
    ///
    /// # Errors
    /// I/O errors.
    pub fn len_now(&self) -> io::Result<u64> {
        Ok(match self.metadata()? {
            Some(metadata) => metadata.len(),
            None => self.len(),
        })
    }

    /// Whether it occupies a file descriptor.
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

/// Device, packed like [`MapEntry::device`], and inode.
pub(crate) fn identity_of(device: u64, inode: u64) -> (u64, u64) {
    let part = |number| u32::try_from(number).unwrap_or(u32::MAX);
    let device = MapEntry::pack_device(part(major(device)), part(minor(device)));
    (device, inode)
}

/// Opens the target of a kernel link (`/proc/PID/exe`, `/proc/PID/map_files/…`) if it is a regular
/// file. Such links survive renames and deletion.
///
/// # Errors
/// I/O errors; [`io::ErrorKind::InvalidInput`] if it is no regular file.
pub fn open_magic_link(link: &Path) -> io::Result<ModuleFile> {
    let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
    let found = nix::fcntl::open(link, flags, Mode::empty())?;
    reopen(&found)
}

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
