//! A recording session, from start to end, on three threads.
//!
//! The *drain* thread empties the engine's rings at the best available priority. The *writer*
//! assigns keys, opens modules, encodes, and writes. The *adapters* thread polls the VMs' adapters.
//! The drain never waits: batches that overflow its bounded channel to the writer count as lost.
//! The adapters' thread has its own channel, and may wait; it reads the writer's process table
//! (`process_table`).

mod adapters;
mod describe;
mod drain;
mod generated;
mod mapped;
mod messages;
mod native_hits;
mod process_table;
mod progress;
mod readers;
mod recorder;
mod secrets;
mod sink;
mod tap;
mod touched;
pub(crate) mod unwind;
mod writer;

pub use describe::{command_line, now};
pub use native_hits::NativeHits;
pub use progress::Progress;
pub use readers::Readers;
pub use sink::{DEFAULT_KEPT, Kept, Saved, SinkError};
pub use tap::{MAX_BEHIND, Tap, TapEnded, TapSource, Tapped, tap};
#[doc(hidden)]
pub use unwind::fuzz_tables;

use crate::engine::{Engine, EngineError};
use crate::priority::Scheduling;
use crossbeam_channel::{Sender, bounded};
use messages::Message;
use process_table::ProcessTable;
use sink::Sink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use vmscope_process::{Modules, ProcessView};
use vmscope_records::recording::Written;
use vmscope_records::{DurationNs, EndReason, Limit, LimitKind, Mark, Pid, TimeNs};

/// Batches in the drain's channel. At ten a second, a writer stalled for up to half a minute (slow
/// disk, hanging file system) loses no samples.
const BATCHES_IN_FLIGHT: usize = 256;

/// Polls in the adapters' channel, before their thread waits.
const POLLS_IN_FLIGHT: usize = 16;

/// Target and output of a recording.
#[derive(Debug, Default)]
pub struct SessionOptions {
    /// The launched process, or the attached processes without repetition. The recording's head names
    /// the first.
    pub pids: Vec<Pid>,
    /// Whether vmscope started the process.
    pub launched: bool,
    /// The first process's command line.
    pub command: Vec<String>,
    /// Reason for an engine chosen by default.
    pub engine_reason: String,
    /// The recording's file. `None` keeps the newest part in memory, for [`Session::save_copy`] and
    /// [`Outcome::kept`].
    pub output: Option<PathBuf>,
    /// Keep only the newest part, of this length. `None` means [`DEFAULT_KEPT`] for a recording in
    /// memory, everything for a file.
    pub keep_last: Option<DurationNs>,
    /// Maximum number of callers that samples get from their copied stacks; `None`: no callers.
    pub unwind_depth: Option<u16>,
    /// Longest duration.
    pub duration: Option<Duration>,
    /// The process's core file, if it is no live process.
    pub core: Option<ProcessView>,
    /// Changes to the command's environment, each as `NAME=value`.
    pub environment: Vec<String>,
    /// Whether command lines and facts keep values that look like passwords and other secrets.
    pub keep_secrets: bool,
    /// Live copy of the recording.
    pub tap: Option<TapSource>,
    /// The adapters' deferrable work takes one part in this of a CPU's time, and they poll no more
    /// often than necessary; `None`: unlimited.
    pub adapters_share: Option<u32>,
}

/// Errors of a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// Creating or writing the recording failed.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A target's mappings are unreadable.
    #[error(transparent)]
    Maps(#[from] vmscope_process::MapsError),
    /// Starting a thread failed.
    #[error("cannot start the {0} thread: {1}")]
    Thread(&'static str, std::io::Error),
    /// A thread panicked: a bug.
    #[error("vmscope's {0} thread failed: please report this")]
    Panicked(&'static str),
}

/// A recording in progress.
#[derive(Debug)]
pub struct Session {
    progress: Arc<Progress>,
    to_writer: Sender<Message>,
    began: TimeNs,
    drain: JoinHandle<Result<(), EngineError>>,
    adapters: JoinHandle<()>,
    writer: JoinHandle<writer::Finished>,
}

/// A finished recording.
#[derive(Debug)]
pub struct Outcome {
    /// Reason for the end.
    pub reason: EndReason,
    /// Amount written.
    pub written: Written,
    /// Samples lost.
    pub lost: u64,
    /// Recorded samples at the end that a stalled tap missed.
    pub unseen: u64,
    /// Duration.
    pub took: DurationNs,
    /// The targets' modules, with open files: symbol source of a self-contained recording.
    pub modules: Modules,
    /// Sampled native places of the whole recording, parts that are no longer kept included.
    pub hits: NativeHits,
    /// A recording in memory only.
    pub kept: Option<Kept>,
    /// Failure during the recording, which is readable up to the failure.
    pub failure: Option<SessionError>,
}

impl Session {
    /// Starts recording the samples of `engine` and the VMs of `readers`. Release a launched
    /// command after this.
    ///
    /// # Errors
    /// [`SessionError`]; no file is left behind.
    pub fn start(
        engine: Box<dyn Engine>,
        readers: Readers,
        options: SessionOptions,
    ) -> Result<Self, SessionError> {
        // Not now: with thousands of threads, the first samples are half a second old.
        let began = engine.description().began;
        let output = options.output.clone();
        let sink = Sink::create(output.as_deref(), options.keep_last)?;
        let started = Self::start_threads(engine, readers, options, sink, began);
        if let (Err(_), Some(output)) = (&started, &output) {
            // The file is empty.
            let _ = std::fs::remove_file(output);
        }
        started
    }

    fn start_threads(
        engine: Box<dyn Engine>,
        readers: Readers,
        options: SessionOptions,
        sink: Sink,
        began: TimeNs,
    ) -> Result<Self, SessionError> {
        let progress = Arc::new(Progress::default());
        let (to_writer, from_others) = bounded(BATCHES_IN_FLIGHT);
        let (found, from_adapters) = bounded(POLLS_IN_FLIGHT);
        let (scheduling_known, scheduling) = bounded(1);
        let description = engine.description().clone();

        let drain = drain::Drain {
            engine,
            out: to_writer.clone(),
            progress: Arc::clone(&progress),
            deadline: options.duration.map(|duration| now().plus(duration.into())),
        };
        let drain = spawn("drain", move || drain.run(&scheduling_known))?;
        // A drain thread that ended at once ends the session.
        let scheduling = scheduling.recv().unwrap_or_else(|_| Scheduling {
            words: "unknown".to_owned(),
            real_time: false,
        });
        let mut limits = description.limits.clone();
        limits.extend((!scheduling.real_time).then(|| no_real_time(&scheduling.words, began)));

        let session = describe::session(
            &description,
            &options.engine_reason,
            options.pids.first().copied().unwrap_or(Pid(0)),
            options.launched,
            options.command,
            scheduling.words,
            began,
        );
        let modules = options.core.map_or_else(Modules::default, Modules::of_core);
        let process_table = (!readers.is_empty()).then(|| ProcessTable::new(&options.pids));
        let writer = writer::WriterThread::new(
            sink,
            Arc::clone(&progress),
            session,
            limits,
            (options.environment, options.keep_secrets),
            recorder::Recorder::new(
                process_table.clone(),
                readers.sample_needs().sources,
                options.unwind_depth,
            )
            .with_modules(modules),
            options.tap,
        );
        let attached = match options.launched {
            true => Vec::new(),
            false => options.pids,
        };
        let writer = spawn("writer", move || {
            writer.run(from_others, from_adapters, &attached)
        })?;
        let touched = process_table
            .as_ref()
            .map(|process_table| process_table.touched().clone());
        let emitter = adapters::Emitter::new(readers.keys(), found, touched.unwrap_or_default())
            .with_pace(adapters::Pace::of(options.adapters_share))
            .with_progress(Arc::clone(&progress));
        let adapters = spawn("adapters", move || {
            if let Some(process_table) = process_table {
                readers.start(began, process_table, emitter).run();
            }
        })?;
        Ok(Session {
            progress,
            to_writer,
            began,
            drain,
            adapters,
            writer,
        })
    }

    /// Current progress.
    #[must_use]
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Start of the sampling.
    #[must_use]
    pub fn began(&self) -> TimeNs {
        self.began
    }

    /// Requests the end; [`Session::finish`] waits for it.
    pub fn stop(&self, reason: EndReason) {
        self.progress.ask_to_stop(reason);
    }

    /// Records a [`vmscope_records::Record::Mark`] now, with the first [`Mark::MAX_TEXT`] bytes of
    /// `text`. Returns at once; `false` if the channel is full.
    pub fn mark(&self, text: &str) -> bool {
        let fits = |(at, c): &(usize, char)| at + c.len_utf8() <= Mark::MAX_TEXT;
        let text = text.char_indices().take_while(fits).map(|(_, c)| c);
        let mark = Mark {
            time: now(),
            text: text.collect(),
        };
        self.to_writer.try_send(Message::Mark(mark)).is_ok()
    }

    /// Saves a copy of the kept newest part, and continues.
    ///
    /// # Errors
    /// [`SinkError`].
    pub fn save_copy(&self, path: &Path) -> Result<Saved, SessionError> {
        let (answer, answered) = bounded(1);
        let asked = self.to_writer.send(Message::Save(path.to_owned(), answer));
        let gone = SessionError::Panicked("writer");
        match asked.ok().and_then(|()| answered.recv().ok()) {
            Some(result) => Ok(result?),
            None => Err(gone),
        }
    }

    /// Waits for the recording's end.
    ///
    /// # Errors
    /// [`SessionError`] without a usable recording; otherwise failures are in [`Outcome::failure`].
    pub fn finish(self) -> Result<Outcome, SessionError> {
        let drained = join(self.drain, "drain");
        join(self.adapters, "adapters")?;
        drop(self.to_writer);
        let finished = join(self.writer, "writer")?;
        let failure = match drained {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.into()),
            Err(error) => Some(error),
        };
        Ok(Outcome {
            reason: finished.reason,
            written: finished.written,
            lost: finished.lost,
            unseen: finished.unseen,
            took: finished.ended.since(self.began),
            modules: finished.modules,
            hits: finished.hits,
            kept: finished.kept,
            failure: finished.failure.map(Into::into).or(failure),
        })
    }
}

/// The limit of a drain thread without real-time priority.
fn no_real_time(words: &str, time: TimeNs) -> Limit {
    Limit {
        time,
        kind: LimitKind::NoRealTime,
        text: format!(
            "the drain thread has no real-time priority ({words}): samples may be lost while the \
             target keeps all CPUs busy (losses are counted)"
        ),
        remedy: "run with CAP_SYS_NICE or an rtprio limit of 1 (ulimit -r)".to_owned(),
    }
}

fn spawn<T: Send + 'static>(
    name: &'static str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, SessionError> {
    std::thread::Builder::new()
        .name(format!("vmscope-{name}"))
        .spawn(body)
        .map_err(|error| SessionError::Thread(name, error))
}

fn join<T>(thread: JoinHandle<T>, name: &'static str) -> Result<T, SessionError> {
    thread.join().map_err(|_| SessionError::Panicked(name))
}
