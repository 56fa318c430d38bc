//! The file of a recording.

use super::reader::Reader;
use super::writer::Store;
use crate::Content;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Space kept free behind the last chunk, so that even a full disk has room for the end record with
/// its reason. 64 KiB is many times its size.
const RESERVE_BYTES: u64 = 64 << 10;

/// A recording file: appends whole chunks or nothing.
#[derive(Debug)]
pub struct RecordingFile {
    file: File,
    /// Offset of the next chunk.
    length: u64,
    can_reserve: bool,
}

/// Where [`create_private`] moves an earlier recording: `out.vmscope` to `out.vmscope.old`.
#[must_use]
pub fn earlier(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    name.into()
}

/// Creates a recording file: a new plain file with access for its owner only. An existing recording
/// goes to [`earlier`], where it replaces another one; nothing else is replaced.
///
/// # Errors
/// `AlreadyExists` for another kind (or owner) of file; other I/O errors.
pub fn create_private(path: &Path) -> io::Result<File> {
    match create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !is_replaceable(path)? {
                return Err(error);
            }
            if std::fs::symlink_metadata(path)?.len() == 0 {
                std::fs::remove_file(path)?;
            } else {
                let earlier = earlier(path);
                if std::fs::symlink_metadata(&earlier).is_ok() && !is_replaceable(&earlier)? {
                    return Err(error);
                }
                std::fs::rename(path, earlier)?;
            }
            create_new(path)
        }
        other => other,
    }
}

fn create_new(path: &Path) -> io::Result<File> {
    // create_new is O_EXCL: rejects planted symbolic links.
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    // A umask may remove permissions of the owner.
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Whether `path` is this user's recording, or an empty file.
fn is_replaceable(path: &Path) -> io::Result<bool> {
    let metadata = std::fs::symlink_metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() || metadata.uid() != nix::unistd::geteuid().as_raw() {
        return Ok(false);
    }
    if metadata.len() == 0 {
        return Ok(true);
    }
    let mut start = [0; super::frame::FILE_MAGIC.len()];
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(path)?;
    let mut file = file.take(start.len() as u64);
    Ok(file.read_exact(&mut start).is_ok() && start == super::frame::FILE_MAGIC)
}

impl RecordingFile {
    /// A recording in a file from [`create_private`].
    #[must_use]
    pub fn new(file: File) -> Self {
        RecordingFile {
            file,
            length: 0,
            can_reserve: true,
        }
    }

    /// Opens a recording for appending. Removes an incomplete last chunk: readers would count
    /// appended bytes as its rest.
    ///
    /// # Errors
    /// I/O errors; `InvalidData` if `file` is no recording.
    pub fn append_to(mut file: File) -> io::Result<Self> {
        let mut length = file.seek(SeekFrom::End(0))?;
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let mut reader = Reader::open(&mut file).map_err(invalid)?;
        // Headers suffice; skip payloads.
        while reader
            .next_chunk(Content::default())
            .map_err(invalid)?
            .is_some()
        {}
        if let Some(torn) = reader.ending().damages.last()
            && torn.at_end
        {
            length = torn.offset;
            file.set_len(length)?;
        }
        Ok(RecordingFile {
            file,
            length,
            can_reserve: true,
        })
    }

    /// Releases reserved space and truncates the file to its length.
    ///
    /// # Errors
    /// I/O errors, including delayed write errors.
    pub fn finish(self) -> io::Result<File> {
        self.file.set_len(self.length)?;
        self.file.sync_data()?;
        Ok(self.file)
    }

    /// Reserves `bytes` and the end's space. On file systems without reservation, writes fail on a
    /// full disk instead.
    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        if !self.can_reserve {
            return Ok(());
        }
        let as_offset = |value: u64| i64::try_from(value).map_err(io::Error::other);
        let (from, length) = (as_offset(self.length)?, as_offset(bytes + RESERVE_BYTES)?);
        loop {
            match fallocate(
                &self.file,
                FallocateFlags::FALLOC_FL_KEEP_SIZE,
                from,
                length,
            ) {
                Ok(()) => return Ok(()),
                Err(Errno::EINTR) => {}
                // No space, quota or size limit: the previous reservation still covers the end.
                Err(error @ (Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG)) => {
                    return Err(error.into());
                }
                Err(_) => {
                    self.can_reserve = false;
                    return Ok(());
                }
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self
            .file
            .seek(SeekFrom::Start(self.length))
            .and_then(|_| self.file.write_all(bytes));
        match written {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // Removes an incomplete chunk. If that fails, readers drop it.
                let _ = self.file.set_len(self.length);
                Err(error)
            }
        }
    }
}

impl Store for RecordingFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reserve(bytes.len() as u64)?;
        self.write(bytes)
    }

    fn append_last(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes)
    }
}
