//! The bytes of files, provided by the driver.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use vmscope_records::{BuildId, Module};

/// A failed read of a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The range exceeds the file.
    #[error("{len} bytes at {offset:#x} are outside the file ({file_len} bytes)")]
    OutOfBounds {
        /// First requested byte.
        offset: u64,
        /// Number of requested bytes.
        len: usize,
        /// Size of the file.
        file_len: u64,
    },
    /// The operating system failed, or the file became shorter.
    #[error("cannot read {len} bytes at {offset:#x}")]
    Io {
        /// First requested byte.
        offset: u64,
        /// Number of requested bytes.
        len: usize,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// A file's bytes, read on demand within [`FileBytes::len`]. A shrinking file must cause an error,
/// not a panic: drivers use `pread`, not a mapping.
pub trait FileBytes: Send + Sync {
    /// The file's size in bytes. Drivers cache it: every read begins with this call.
    fn len(&self) -> u64;

    /// Whether the file is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Exactly `len` bytes at `offset`; borrowed from memory where possible.
    ///
    /// # Errors
    /// If a byte is unreadable.
    fn read_at(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, ReadError>;
}

/// A file in memory: the vdso, a decompressed file, a test's file.
#[derive(Clone, Debug)]
pub struct MemoryFile(pub Vec<u8>);

impl FileBytes for MemoryFile {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, ReadError> {
        slice_at(&self.0, offset, len).map(Cow::Borrowed)
    }
}

fn slice_at(bytes: &[u8], offset: u64, len: usize) -> Result<&[u8], ReadError> {
    usize::try_from(offset)
        .ok()
        .and_then(|start| bytes.get(start..start.checked_add(len)?))
        .ok_or(ReadError::OutOfBounds {
            offset,
            len,
            file_len: bytes.len() as u64,
        })
}

/// A request for a separate debug file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugFileRequest<'a> {
    /// Path, in the target's file system, of the file with the link.
    pub path: &'a str,
    /// The kind of debug file.
    pub kind: DebugFileKind,
    /// The build-id to search for (`.build-id/xx/yyyy.debug`), if known.
    pub build_id: Option<&'a BuildId>,
    /// [`DebugFileKind::Separate`]: the name in `.gnu_debuglink`, without any `/`.
    /// [`DebugFileKind::Alternate`]: the path in `.gnu_debugaltlink`, absolute or relative to
    /// `path`. Untrusted: open regular files only, and read requested bytes only.
    pub name: Option<&'a str>,
}

/// The kind of a separate debug file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugFileKind {
    /// Symbols and DWARF stripped from the module.
    Separate,
    /// Common parts of several debug files, moved by `dwz` (`.gnu_debugaltlink`).
    Alternate,
}

/// A candidate for a separate debug file. The symbolizer checks its identity.
#[derive(Clone)]
pub struct DebugFile {
    /// Its path, for notes and further requests.
    pub path: String,
    /// Its bytes.
    pub bytes: Arc<dyn FileBytes>,
}

impl std::fmt::Debug for DebugFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DebugFile")
            .field("path", &self.path)
            .field("len", &self.bytes.len())
            .finish()
    }
}

/// The source of modules and debug files.
pub trait Binaries: Sync {
    /// The bytes of a module.
    ///
    /// # Errors
    /// The reason of a failure, a phrase for the note.
    fn module(&self, module: &Module) -> Result<Arc<dyn FileBytes>, String>;

    /// All candidates for a separate debug file, most likely ones first.
    fn debug_file(&self, request: &DebugFileRequest<'_>) -> Vec<DebugFile>;

    /// The text of `/proc/kallsyms`, if readable.
    fn kernel_symbols(&self) -> Option<Vec<u8>>;
}
