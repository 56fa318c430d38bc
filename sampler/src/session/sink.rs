//! Where a session's records go: straight into a file, or into memory until saved.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use vmscope_records::recording::{
    KeepLast, RecordingFile, WriteError, Writer, Written, create_private,
};
use vmscope_records::{DurationNs, Record, RecordingEnd};

/// The most memory that `--keep-last` uses for samples. At six bytes a sample that is
/// half a day of eight busy threads; stack bytes fill it sooner.
const KEEP_LAST_MAX_BYTES: usize = 256 << 20;

/// The recording could not be begun or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The file can't be made.
    #[error("cannot create {}: {source}{}", path.display(), remedy(source))]
    Create {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Writing failed.
    #[error("{}: {source}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why, and how far it got.
        #[source]
        source: WriteError,
    },
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            " and is not a recording of yours, so it was not replaced: choose another --output"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": choose a folder that you can write to with --output"
        }
        _ => "",
    }
}

/// The destination of records.
#[derive(Debug)]
pub(super) enum Sink {
    /// A file that grows.
    File {
        writer: Box<Writer<RecordingFile>>,
        path: PathBuf,
    },
    /// The newest part, in memory; the file is there already, empty.
    Memory {
        kept: Box<KeepLast>,
        file: File,
        path: PathBuf,
    },
}

impl Sink {
    /// Begins a recording at `path`.
    pub fn create(path: &Path, keep_last: Option<DurationNs>) -> Result<Self, SinkError> {
        let path = path.to_owned();
        let file = create_private(&path).map_err(|source| SinkError::Create {
            path: path.clone(),
            source,
        })?;
        if let Some(window) = keep_last {
            let kept = Box::new(KeepLast::new(window, KEEP_LAST_MAX_BYTES));
            return Ok(Sink::Memory { kept, file, path });
        }
        match Writer::begin(RecordingFile::new(file)) {
            Ok(writer) => Ok(Sink::File {
                writer: Box::new(writer),
                path,
            }),
            Err(source) => {
                // Nothing of it is worth keeping.
                let _ = std::fs::remove_file(&path);
                Err(SinkError::Write { path, source })
            }
        }
    }

    /// Adds a record.
    pub fn put(&mut self, record: Record) -> Result<(), SinkError> {
        match self {
            Sink::File { writer, path } => writer.put(record).map_err(|source| SinkError::Write {
                path: path.clone(),
                source,
            }),
            Sink::Memory { kept, .. } => {
                kept.put(record);
                Ok(())
            }
        }
    }

    /// Makes safe what was put so far; in memory, forgets what is too old.
    pub fn flush(&mut self) -> Result<(), SinkError> {
        match self {
            Sink::File { writer, path } => writer.flush().map_err(|source| SinkError::Write {
                path: path.clone(),
                source,
            }),
            Sink::Memory { kept, .. } => {
                kept.flush();
                Ok(())
            }
        }
    }

    /// Bytes that the recording has now, on disk or in memory.
    pub fn bytes(&self) -> u64 {
        match self {
            Sink::File { writer, .. } => writer.written().bytes,
            Sink::Memory { kept, .. } => kept.bytes(),
        }
    }

    /// Saves a copy of what is kept in memory to another file, and goes on.
    pub fn save_copy(&mut self, path: &Path, end: RecordingEnd) -> Result<Written, SinkError> {
        let create = |source| SinkError::Create {
            path: path.to_owned(),
            source,
        };
        let Sink::Memory { kept, .. } = self else {
            let why = "a recording without --keep-last is in its file already";
            return Err(create(io::Error::new(io::ErrorKind::Unsupported, why)));
        };
        let file = create_private(path).map_err(create)?;
        finish(kept.save(RecordingFile::new(file), end), path)
    }

    /// Ends the recording.
    pub fn end(self, end: RecordingEnd) -> Result<Written, SinkError> {
        match self {
            Sink::File { writer, path } => finish(writer.end(end), &path),
            Sink::Memory {
                mut kept,
                file,
                path,
            } => finish(kept.save(RecordingFile::new(file), end), &path),
        }
    }
}

fn finish(
    ended: Result<(RecordingFile, Written), WriteError>,
    path: &Path,
) -> Result<Written, SinkError> {
    let failed = |source| SinkError::Write {
        path: path.to_owned(),
        source,
    };
    let (file, written) = ended.map_err(failed)?;
    let bytes = written.bytes;
    file.finish().map_err(|source| {
        failed(WriteError {
            written_bytes: bytes,
            source,
        })
    })?;
    Ok(written)
}
