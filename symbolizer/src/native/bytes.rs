//! What the driver provides: bytes of files, read on demand.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use vmscope_records::{BuildId, Module};

/// Why bytes of a file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The range reaches past the file's end.
    #[error("{len} bytes at {offset:#x} lie outside of the file ({file_len} bytes)")]
    OutOfBounds {
        /// First byte asked for.
        offset: u64,
        /// How many.
        len: usize,
        /// Size of the file.
        file_len: u64,
    },
    /// The operating system refused, or the file became shorter.
    #[error("reading {len} bytes at {offset:#x}")]
    Io {
        /// First byte asked for.
        offset: u64,
        /// How many.
        len: usize,
        /// What it said.
        #[source]
        source: io::Error,
    },
}

/// A file's bytes, read on demand. The symbolizer asks for pieces whose length it
/// has checked against [`FileBytes::len`]; a file that shrinks meanwhile is an
/// error, not a panic, so a driver reads with `pread` rather than by mapping.
pub trait FileBytes: Send + Sync {
    /// The file's size in bytes. It is asked for before every read: a driver keeps it.
    fn len(&self) -> u64;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Exactly `len` bytes from `offset` on; borrowed where they are in memory
    /// anyway.
    ///
    /// # Errors
    ///
    /// When they could not all be read.
    fn read_at(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>, ReadError>;
}

/// A file that is in memory: the vdso, a decompressed one, a test's.
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

/// `len` bytes of `bytes` from `offset` on.
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

/// Which separate debug file is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugFileRequest<'a> {
    /// The path, in the target's eyes, of the file that asks.
    pub path: &'a str,
    /// What for.
    pub kind: DebugFileKind,
    /// The build-id to look under (`.build-id/xx/yyyy.debug`), where there is one.
    pub build_id: Option<&'a BuildId>,
    /// [`DebugFileKind::Separate`]: the name in `.gnu_debuglink`, without any `/`.
    /// [`DebugFileKind::Alternate`]: the path in `.gnu_debugaltlink`, absolute or
    /// relative to the file that asks. It comes from the file: open regular files
    /// only, and read nothing but what is asked for.
    pub name: Option<&'a str>,
}

/// What a separate debug file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugFileKind {
    /// Symbols and DWARF that were stripped from the module.
    Separate,
    /// What `dwz` moved out of several debug files into one (`.gnu_debugaltlink`).
    Alternate,
}

/// A candidate for a separate debug file. The symbolizer checks that it belongs.
#[derive(Clone)]
pub struct DebugFile {
    /// Its path, for the note and for requests that it makes itself.
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

/// Where module bytes and debug files come from.
pub trait Binaries: Sync {
    /// The bytes of a module.
    ///
    /// # Errors
    ///
    /// Why there are none, as a phrase that goes into the note.
    fn module(&self, module: &Module) -> Result<Arc<dyn FileBytes>, String>;

    /// All candidates for a separate debug file, most likely first.
    fn debug_file(&self, request: &DebugFileRequest<'_>) -> Vec<DebugFile>;

    /// The text of `/proc/kallsyms`, where it may be read.
    fn kernel_symbols(&self) -> Option<Vec<u8>>;
}
