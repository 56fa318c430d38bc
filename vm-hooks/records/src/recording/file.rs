//! The file of a recording.

use super::reader::Reader;
use super::writer::Store;
use crate::Content;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, FcntlArg, fallocate, fcntl};
use nix::libc;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
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

/// Creates a recording file: a new plain file with access for its owner only, locked against other
/// recorders while it is open. An existing recording goes to [`earlier`], where it replaces another one
/// unless that is write-protected; nothing else is replaced.
///
/// # Errors
/// `AlreadyExists` for another kind (or owner) of file; `ResourceBusy` if another recorder writes the
/// existing recording; other I/O errors.
pub fn create_private(path: &Path) -> io::Result<File> {
    if is_taken(path)? {
        if std::fs::symlink_metadata(path)?.len() == 0 {
            std::fs::remove_file(path)?;
        } else {
            let earlier = earlier(path);
            let is_protected = |metadata: std::fs::Metadata| metadata.mode() & 0o200 == 0;
            if std::fs::symlink_metadata(&earlier).is_ok_and(is_protected) {
                return Err(in_the_way(&earlier));
            }
            is_taken(&earlier).map_err(|_| in_the_way(&earlier))?;
            std::fs::rename(path, earlier)?;
        }
    }
    let file = create_new(path)?;
    // Whatever else lies there shows when a successor is created.
    let _ = remove_unfinished(&successor(path));
    Ok(file)
}

/// Whether a replaceable file has this name. Another one is an error.
pub(super) fn is_taken(path: &Path) -> io::Result<bool> {
    match is_replaceable(path) {
        Ok(true) => Ok(true),
        Ok(false) => Err(Errno::EEXIST.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn in_the_way(path: &Path) -> io::Error {
    let why = format!("{} is in the way", path.display());
    io::Error::new(io::ErrorKind::AlreadyExists, why)
}

/// Name of the successor of the file at `path`: hidden, and unlikely as a user's choice.
pub(super) fn successor(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".unfinished");
    path.with_file_name(name)
}

/// Creates a file at [`successor`], like [`create_private`]. Removes one that a killed recorder left.
pub(super) fn create_successor(path: &Path) -> io::Result<File> {
    let path = successor(path);
    remove_unfinished(&path)?;
    create_new(&path)
}

fn remove_unfinished(path: &Path) -> io::Result<()> {
    match is_taken(path).map_err(|_| in_the_way(path))? {
        true => std::fs::remove_file(path),
        false => Ok(()),
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
    // Some network file systems have no locks.
    let _ = fcntl(&file, FcntlArg::F_OFD_SETLK(&whole_file(libc::F_WRLCK)));
    Ok(file)
}

/// A lock of a whole file; ends with the open file.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the constants' types are those of C's enumerations"
)]
fn whole_file(kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
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
    let mut start = [0; super::frame::FILE_MAGIC.len()];
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let mut lock = whole_file(libc::F_RDLCK);
    let asked = fcntl(&file, FcntlArg::F_OFD_GETLK(&mut lock));
    if asked.is_ok() && i32::from(lock.l_type) != libc::F_UNLCK {
        let why = "another vmscope is writing it";
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
    }
    let mut file = file.take(start.len() as u64);
    let is_recording = file.read_exact(&mut start).is_ok() && start == super::frame::FILE_MAGIC;
    Ok(is_recording || metadata.len() == 0)
}

impl RecordingFile {
    /// A recording in a new file, for example from [`create_private`].
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

    /// Reads `length` bytes at `offset`.
    pub(super) fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// Puts this file, now at [`successor`], in the place of `old` at `path`. Does not wait for
    /// the disk: a busy disk takes many seconds, and a kill meanwhile would lose all of them.
    pub(super) fn replace(&self, old: &Self, path: &Path) -> io::Result<()> {
        let identity = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
        match std::fs::symlink_metadata(path) {
            Ok(metadata) if identity(&metadata) != identity(&old.file.metadata()?) => {
                let why = format!("{} is another file now", path.display());
                Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
            }
            // Without a file, the user has moved it away.
            _ => std::fs::rename(successor(path), path),
        }
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
