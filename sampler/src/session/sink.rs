//! Destination of a session's records: a file, or memory.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use vmscope_process::Modules;
use vmscope_records::recording::{
    KeepLast, RecordingFile, WriteError, Writer, Written, create_private,
};
use vmscope_records::{DurationNs, Record, RecordingEnd};

/// Length of the part kept by a recording in memory: ten minutes.
pub const DEFAULT_KEPT: DurationNs = DurationNs(600_000_000_000);

/// Memory limit of `--keep-last`, for samples and freed code. At six bytes a sample: half a day of
/// eight busy threads; less with stack bytes.
const KEEP_LAST_MAX_BYTES: usize = 256 << 20;

/// Memory limit of a live view, which holds a profile besides.
const LIVE_MAX_BYTES: usize = 96 << 20;

/// Creating or writing the recording failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// Creating the file failed.
    #[error("cannot create {}: {error}{}", path.display(), remedy(error))]
    Create {
        /// Path of the file.
        path: PathBuf,
        /// The system's error, part of the message.
        error: io::Error,
    },
    /// Writing failed.
    #[error("{}: {error}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// The error, and the bytes written before, part of the message.
        error: WriteError,
    },
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            " (and it is not a recording of yours): choose another --output"
        }
        io::ErrorKind::IsADirectory => ": name a file in it with --output",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": choose a writable folder with --output"
        }
        _ => "",
    }
}

#[derive(Debug)]
pub(super) enum Sink {
    /// A growing file.
    File {
        writer: Box<Writer<RecordingFile>>,
        path: PathBuf,
    },
    /// The newest part, in memory; with an output file, that file, still empty.
    Memory {
        kept: Box<KeepLast>,
        file: Option<(File, PathBuf)>,
    },
}

impl Sink {
    /// Begins a recording at `path`, or in memory only.
    pub fn create(path: Option<&Path>, keep_last: Option<DurationNs>) -> Result<Self, SinkError> {
        let in_memory = |window, most| Box::new(KeepLast::new(window, most));
        let Some(path) = path else {
            let kept = in_memory(keep_last.unwrap_or(DEFAULT_KEPT), LIVE_MAX_BYTES);
            return Ok(Sink::Memory { kept, file: None });
        };
        let path = path.to_owned();
        let file = create_private(&path).map_err(|error| SinkError::Create {
            path: path.clone(),
            error,
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
            Err(error) => {
                // The file is useless.
                let _ = std::fs::remove_file(&path);
                Err(SinkError::Write { path, error })
            }
        }
    }

    pub fn put(&mut self, record: Record) -> Result<(), SinkError> {
        match self {
            Sink::File { writer, path } => writer.put(record).map_err(|error| SinkError::Write {
                path: path.clone(),
                error,
            }),
            Sink::Memory { kept, .. } => {
                kept.put(record);
                Ok(())
            }
        }
    }

    /// Writes out all records so far; in memory, drops old ones.
    pub fn flush(&mut self) -> Result<(), SinkError> {
        match self {
            Sink::File { writer, path } => writer.flush().map_err(|error| SinkError::Write {
                path: path.clone(),
                error,
            }),
            Sink::Memory { kept, .. } => {
                kept.flush();
                Ok(())
            }
        }
    }

    /// Size of the recording, on disk or in memory.
    pub fn bytes(&self) -> u64 {
        match self {
            Sink::File { writer, .. } => writer.written().bytes,
            Sink::Memory { kept, .. } => kept.bytes(),
        }
    }

    /// Copies the part in memory to a file, and continues.
    pub fn save_copy(&mut self, path: &Path, end: RecordingEnd) -> Result<Written, SinkError> {
        let Sink::Memory { kept, .. } = self else {
            let why = "the recording is already in its file (only --keep-last saves copies)";
            return Err(SinkError::Create {
                path: path.to_owned(),
                error: io::Error::new(io::ErrorKind::Unsupported, why),
            });
        };
        save(kept, path, end)
    }

    /// Ends the recording, which stays in memory without an output file.
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
                // Includes records outside chunks.
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

/// A finished recording in memory.
#[derive(Debug)]
pub struct Kept {
    kept: Box<KeepLast>,
    end: RecordingEnd,
}

impl Kept {
    /// Saves the recording; repeatable.
    ///
    /// # Errors
    /// [`SinkError`].
    pub fn save(&mut self, path: &Path) -> Result<Written, SinkError> {
        save(&mut self.kept, path, self.end.clone())
    }
}

/// A copy saved during the recording.
#[derive(Debug)]
pub struct Saved {
    /// Modules at that time, with open files.
    pub modules: Modules,
    /// Path of the copy.
    pub path: PathBuf,
    /// Amount written.
    pub written: Written,
}

fn save(kept: &mut KeepLast, path: &Path, end: RecordingEnd) -> Result<Written, SinkError> {
    let file = create_private(path).map_err(|error| SinkError::Create {
        path: path.to_owned(),
        error,
    })?;
    finish(kept.save(RecordingFile::new(file), end), path)
}

fn finish(
    ended: Result<(RecordingFile, Written), WriteError>,
    path: &Path,
) -> Result<Written, SinkError> {
    let failed = |error| SinkError::Write {
        path: path.to_owned(),
        error,
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
