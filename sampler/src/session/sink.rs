//! Where a session's records go: straight into a file, or into memory until saved.

use super::DEFAULT_KEPT;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use vmscope_records::recording::{
    KeepLast, RecordingFile, WriteError, Writer, Written, create_private,
};
use vmscope_records::{DurationNs, Record, RecordingEnd};

/// The most memory that `--keep-last` uses for samples and code that is gone. At six bytes
/// a sample that is half a day of eight busy threads; stack bytes fill it sooner.
const KEEP_LAST_MAX_BYTES: usize = 256 << 20;

/// The same for a live view, which has a picture of it all beside.
const LIVE_MAX_BYTES: usize = 96 << 20;

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
    /// The newest part, in memory; the file, if there is to be one, is there already,
    /// empty.
    Memory {
        kept: Box<KeepLast>,
        file: Option<(File, PathBuf)>,
    },
}

impl Sink {
    /// Begins a recording at `path`; without one in memory only.
    pub fn create(path: Option<&Path>, keep_last: Option<DurationNs>) -> Result<Self, SinkError> {
        let in_memory = |window, most| Box::new(KeepLast::new(window, most));
        let Some(path) = path else {
            let kept = in_memory(keep_last.unwrap_or(DEFAULT_KEPT), LIVE_MAX_BYTES);
            return Ok(Sink::Memory { kept, file: None });
        };
        let path = path.to_owned();
        let file = create_private(&path).map_err(|source| SinkError::Create {
            path: path.clone(),
            source,
        })?;
        if let Some(window) = keep_last {
            let kept = in_memory(window, KEEP_LAST_MAX_BYTES);
            let file = Some((file, path));
            return Ok(Sink::Memory { kept, file });
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
        let Sink::Memory { kept, .. } = self else {
            let why = "a recording without --keep-last is in its file already";
            return Err(SinkError::Create {
                path: path.to_owned(),
                source: io::Error::new(io::ErrorKind::Unsupported, why),
            });
        };
        save(kept, path, end)
    }

    /// Ends the recording. One in memory only stays there.
    pub fn end(self, end: RecordingEnd) -> Result<(Written, Option<Kept>), SinkError> {
        match self {
            Sink::File { writer, path } => Ok((finish(writer.end(end), &path)?, None)),
            Sink::Memory {
                mut kept,
                file: Some((file, path)),
            } => {
                let written = finish(kept.save(RecordingFile::new(file), end), &path)?;
                Ok((written, None))
            }
            Sink::Memory {
                mut kept,
                file: None,
            } => {
                // What is in no chunk yet is kept, too.
                kept.flush();
                let written = Written {
                    samples: kept.samples(),
                    ..Written::default()
                };
                Ok((written, Some(Kept { kept, end })))
            }
        }
    }
}

/// A recording that is over and was kept in memory only.
#[derive(Debug)]
pub struct Kept {
    kept: Box<KeepLast>,
    end: RecordingEnd,
}

impl Kept {
    /// Saves it, as often as is wanted.
    ///
    /// # Errors
    /// [`SinkError`] when it can't be written.
    pub fn save(&mut self, path: &Path) -> Result<Written, SinkError> {
        save(&mut self.kept, path, self.end.clone())
    }
}

fn save(kept: &mut KeepLast, path: &Path, end: RecordingEnd) -> Result<Written, SinkError> {
    let file = create_private(path).map_err(|source| SinkError::Create {
        path: path.to_owned(),
        source,
    })?;
    finish(kept.save(RecordingFile::new(file), end), path)
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
