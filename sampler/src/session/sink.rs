//! Destination of a session's records: a file, or memory.

use std::io;
use std::path::{Path, PathBuf};
use vmscope_process::Modules;
use vmscope_records::recording::{
    KeepLast, RecordingFile, WriteError, Writer, Written, create_private,
};
use vmscope_records::{DurationNs, Record, RecordingEnd, TimeNs};

/// Length of the part kept by a recording in memory: ten minutes.
pub const DEFAULT_KEPT: DurationNs = DurationNs(600_000_000_000);

/// Memory limit of `--keep-last` for removed code and mappings of its window.
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

impl SinkError {
    /// Amount written to the file before the error.
    pub(super) fn written(&self) -> Written {
        match self {
            SinkError::Create { .. } => Written::default(),
            SinkError::Write { error, .. } => error.written,
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            " (it is protected, or not a recording of yours): choose another --output"
        }
        io::ErrorKind::ResourceBusy => ": choose another --output",
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
    /// The newest part, in a file or in memory only.
    Newest {
        kept: Box<KeepLast>,
        path: Option<PathBuf>,
    },
}

impl Sink {
    /// Begins a recording at `path`, or in memory only.
    pub fn create(path: Option<&Path>, keep_last: Option<DurationNs>) -> Result<Self, SinkError> {
        let Some(path) = path else {
            let window = keep_last.unwrap_or(DEFAULT_KEPT);
            let kept = Box::new(KeepLast::new(window, LIVE_MAX_BYTES));
            return Ok(Sink::Newest { kept, path: None });
        };
        let path = path.to_owned();
        if let Some(window) = keep_last {
            return match KeepLast::in_file(&path, window, KEEP_LAST_MAX_BYTES) {
                Ok(kept) => Ok(Sink::Newest {
                    kept: Box::new(kept),
                    path: Some(path),
                }),
                Err(error) => Err(SinkError::Create { path, error }),
            };
        }
        let file = create_private(&path).map_err(|error| SinkError::Create {
            path: path.clone(),
            error,
        })?;
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
            Sink::File { writer, path } => writer.put(record).map_err(|e| failed(path, e)),
            Sink::Newest { kept, .. } => {
                kept.put(record);
                Ok(())
            }
        }
    }

    /// Writes all records so far; drops records older than the kept window.
    pub fn flush(&mut self) -> Result<(), SinkError> {
        match self {
            Sink::File { writer, path } => writer.flush().map_err(|e| failed(path, e)),
            Sink::Newest { kept, path } => {
                let path = path.as_deref().unwrap_or(Path::new(""));
                kept.flush().map_err(|e| failed(path, e))
            }
        }
    }

    /// Sampling has ended at `time`.
    pub fn sampled_until(&mut self, time: TimeNs) {
        if let Sink::Newest { kept, .. } = self {
            kept.sampled_until(time);
        }
    }

    /// Size of the recording, on disk or in memory.
    pub fn bytes(&self) -> u64 {
        match self {
            Sink::File { writer, .. } => writer.written().bytes,
            Sink::Newest { kept, .. } => kept.bytes(),
        }
    }

    /// Copies the kept part to a file, and continues.
    pub fn save_copy(&mut self, path: &Path, end: RecordingEnd) -> Result<Written, SinkError> {
        let Sink::Newest { kept, .. } = self else {
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
            Sink::Newest { mut kept, path } => {
                let ended = kept.end(end.clone());
                if let Some(path) = path {
                    let ended = ended.map_err(|error| failed(&path, error))?;
                    let ended = ended.map(|ended| finish(Ok(ended), &path)).transpose()?;
                    return Ok((ended.unwrap_or_default(), None));
                }
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

fn failed(path: &Path, error: WriteError) -> SinkError {
    SinkError::Write {
        path: path.to_owned(),
        error,
    }
}

fn finish(
    ended: Result<(RecordingFile, Written), WriteError>,
    path: &Path,
) -> Result<Written, SinkError> {
    let (file, written) = ended.map_err(|e| failed(path, e))?;
    file.finish()
        .map_err(|source| failed(path, WriteError { written, source }))?;
    Ok(written)
}
