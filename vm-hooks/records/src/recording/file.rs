//! The file that a recording is kept in.

use super::reader::Reader;
use super::writer::Store;
use crate::Content;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Room kept free behind the last chunk, so that on a full disk the end (why the
/// recording stops here) can still be written. 64 KiB holds it many times over.
const RESERVE_BYTES: u64 = 64 << 10;

/// A recording's file: chunks are appended whole or not at all.
#[derive(Debug)]
pub struct RecordingFile {
    file: File,
    /// Where the next chunk goes.
    length: u64,
    /// Whether the file system can set space aside.
    can_reserve: bool,
}

/// Creates the file for a recording: new, a plain file, readable and writable by its
/// owner alone. A recording that is there already is replaced; anything else is not
/// touched.
///
/// # Errors
/// `AlreadyExists` when there is something that is not a recording (or not ours),
/// else what the operating system says.
pub fn create_private(path: &Path) -> io::Result<File> {
    match create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !is_replaceable(path)? {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            create_new(path)
        }
        other => other,
    }
}

fn create_new(path: &Path) -> io::Result<File> {
    // create_new is O_EXCL: a symbolic link planted there is not followed.
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    // The umask may have taken the owner's own bits away.
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Whether what is at `path` is a recording of this user, or an empty file.
fn is_replaceable(path: &Path) -> io::Result<bool> {
    let metadata = std::fs::symlink_metadata(path)?;
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
    /// A recording in a file just created by [`create_private`].
    #[must_use]
    pub fn new(file: File) -> Self {
        RecordingFile {
            file,
            length: 0,
            can_reserve: true,
        }
    }

    /// A recording that is to be added to. A torn last chunk is cut off: what follows
    /// would be taken for the rest of it.
    ///
    /// # Errors
    /// What the operating system says; `InvalidData` when it is no recording.
    pub fn append_to(mut file: File) -> io::Result<Self> {
        let mut length = file.seek(SeekFrom::End(0))?;
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let mut reader = Reader::open(&mut file).map_err(invalid)?;
        // From header to header: payloads do not matter here.
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

    /// Gives back what was set aside and leaves the file at its length.
    ///
    /// # Errors
    /// What the operating system says, a delayed write error included.
    pub fn finish(self) -> io::Result<File> {
        self.file.set_len(self.length)?;
        self.file.sync_data()?;
        Ok(self.file)
    }

    /// Sets `bytes` and the reserve aside behind the end. Where the file system can't
    /// do that, a full disk shows itself in the write.
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
                // No room, quota or size limit: the reserve of the chunk before is
                // still there for the end.
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
                // All or nothing: a torn chunk is taken back. If that fails too, the
                // reader drops it.
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
