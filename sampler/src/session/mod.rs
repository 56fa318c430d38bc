//! The one place that orchestrates a recording from start to end.
//!
//! Three threads: the *drain* thread empties the engine's rings at the best
//! priority it can get and does nothing else; the *writer* gives keys, opens
//! modules, encodes and writes; the *adapters* thread asks the VMs' adapters what is
//! new. The first hands over to the second through a bounded channel and never
//! waits for it: what does not fit is counted as lost. The third has a channel of its
//! own, and waits; it hears of processes from the second through a table (`news`),
//! for which nobody waits.

mod adapters;
mod describe;
mod drain;
mod generated;
mod mapped;
mod news;
mod readers;
mod recorder;
mod sink;
mod tap;
mod touched;
mod writer;

pub use describe::{command_line, now};
pub use readers::Readers;
pub use sink::{Kept, SinkError};
pub use tap::{MAX_BEHIND, Tap, TapEnded, TapSource, Tapped, tap};
pub use writer::Saved;

use crate::engine::{Engine, EngineError, EngineEvent};
use crate::priority::Scheduling;
use crossbeam_channel::{Receiver, Sender, bounded};
use news::News;
use sink::Sink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use vmscope_process::{CompilationNews, KeySource, Modules, ThreadNews};
use vmscope_records::recording::Written;
use vmscope_records::{
    DurationNs, EndReason, InterpreterSource, Limit, LimitKind, Mark, Pid, ProcessKey, Record,
    TimeNs, VmIdentity,
};

/// How many batches of events may wait for the writer: at ten a second, it may be
/// held up for half a minute (a slow disk, a file system that hangs) before samples
/// are lost.
const BATCHES_IN_FLIGHT: usize = 256;

/// How many polls may wait for the writer: their thread does then, too.
const LOOKS_IN_FLIGHT: usize = 16;

/// What to record, and where to.
#[derive(Debug)]
pub struct SessionOptions {
    /// The process.
    pub pid: Pid,
    /// Whether vmscope started it.
    pub launched: bool,
    /// Its command line.
    pub command: Vec<String>,
    /// Why this engine, where it was not asked for by name.
    pub engine_reason: String,
    /// The recording's file; `None` for one in memory only, of which the newest part is
    /// kept, to be saved by [`Session::save_copy`] or, when it is over, from
    /// [`Outcome::kept`].
    pub output: Option<PathBuf>,
    /// Keep only the newest so many nanoseconds; of a recording in memory only,
    /// [`DEFAULT_KEPT`] where this is `None`.
    pub keep_last: Option<DurationNs>,
    /// End after so long.
    pub duration: Option<Duration>,
    /// What was changed in the environment of a command that was started, each as
    /// `NAME=value`.
    pub environment: Vec<String>,
    /// Where everything that is recorded is handed on to meanwhile.
    pub tap: Option<TapSource>,
    /// What adapters do that can wait takes one part in so many of a processor's time, and
    /// they read no more often than they need; `None` for as much as they want.
    pub adapters_share: Option<u32>,
}

/// What is kept of a recording in memory: the newest ten minutes.
pub const DEFAULT_KEPT: DurationNs = DurationNs(600_000_000_000);

/// What can go wrong with a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The recording can't be begun or written.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The process's mappings can't be read.
    #[error(transparent)]
    Maps(#[from] vmscope_process::MapsError),
    /// A thread could not be started.
    #[error("cannot start the {0} thread: {1}")]
    Thread(&'static str, #[source] std::io::Error),
    /// A thread of ours panicked: a bug.
    #[error("the {0} thread failed: please report this")]
    Panicked(&'static str),
}

/// How a recording is getting on; readable at any time from any thread.
#[derive(Debug, Default)]
pub struct Progress {
    samples: AtomicU64,
    lost: AtomicU64,
    bytes: AtomicU64,
    done: AtomicBool,
    /// The reason to end, as [`reason_code`] numbers it; 0 to go on.
    stop: AtomicU8,
}

impl Progress {
    /// Samples recorded so far.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples.load(Ordering::Relaxed)
    }

    /// Samples known to be lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Bytes written (or kept in memory) so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether the recording has ended, for whatever reason.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Asks the session to end; the first reason given counts.
    fn ask_to_stop(&self, reason: EndReason) {
        let code = reason_code(reason);
        let _ = self
            .stop
            .compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
    }

    fn stop_reason(&self) -> Option<EndReason> {
        let code = self.stop.load(Ordering::Acquire);
        REASONS
            .iter()
            .copied()
            .find(|&reason| reason_code(reason) == code)
    }
}

const REASONS: [EndReason; 5] = [
    EndReason::Interrupted,
    EndReason::DurationOver,
    EndReason::WriteFailed,
    EndReason::TargetExited,
    EndReason::EngineFailed,
];

fn reason_code(reason: EndReason) -> u8 {
    REASONS
        .iter()
        .position(|&other| other == reason)
        .map_or(0, |index| u8::try_from(index + 1).unwrap_or(0))
}

/// What the writer is sent.
#[derive(Debug)]
enum Message {
    /// From the engine, in time order.
    Events(Vec<EngineEvent>),
    /// Save a copy (`--keep-last`), and answer.
    Save(PathBuf, Sender<Result<Saved, SinkError>>),
    /// The user names a moment.
    Mark(Mark),
    /// The engine is finished, since when and why: end the recording, when the
    /// adapters are finished too.
    End(TimeNs, EndReason, String),
}

/// What the writer is sent by the adapters' thread; the end of their channel says that
/// there is no more to come.
#[derive(Debug)]
enum Found {
    /// What a poll found, and what it knows of threads.
    Looked(Vec<Record>, Vec<ThreadNews>),
    /// Adapters read that address space; where samples show what its interpreters
    /// execute.
    Reads(ProcessKey, Vec<InterpreterSource>),
    /// What compilers of a process were seen to compile.
    Compiled(ProcessKey, Vec<CompilationNews>),
    /// Which VM it is.
    Vm(VmIdentity),
    /// All that adapters know of times before this has been sent.
    Told(TimeNs),
}

/// A recording in progress.
#[derive(Debug)]
pub struct Session {
    progress: Arc<Progress>,
    to_writer: Sender<Message>,
    began: TimeNs,
    drain: JoinHandle<Result<(), EngineError>>,
    adapters: JoinHandle<()>,
    writer: JoinHandle<Result<writer::Finished, SessionError>>,
}

/// A recording that ended.
#[derive(Debug)]
pub struct Outcome {
    /// Why.
    pub reason: EndReason,
    /// How much was written.
    pub written: Written,
    /// Samples lost.
    pub lost: u64,
    /// Samples at its end that were recorded, but that a held-up tap did not get.
    pub unseen: u64,
    /// How long it took.
    pub took: DurationNs,
    /// The modules that were seen, with their open files: what a self-contained
    /// recording takes its symbols from.
    pub modules: Modules,
    /// What is kept of a recording in memory only.
    pub kept: Option<Kept>,
    /// What went wrong while recording, if anything did: the recording is readable up
    /// to there.
    pub failure: Option<SessionError>,
}

impl Session {
    /// Begins a recording of what `engine` samples, with what `readers` read. A
    /// launched command is let go after this.
    ///
    /// # Errors
    /// [`SessionError`] when the recording can't be begun; no file is left behind
    /// then.
    pub fn start(
        engine: Box<dyn Engine>,
        readers: Readers,
        options: SessionOptions,
    ) -> Result<Self, SessionError> {
        let began = now();
        let output = options.output.clone();
        let sink = Sink::create(output.as_deref(), options.keep_last)?;
        let started = Self::start_threads(engine, readers, options, sink, began);
        if let (Err(_), Some(output)) = (&started, &output) {
            // It holds nothing.
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
        let (found, from_adapters) = bounded(LOOKS_IN_FLIGHT);
        let (scheduling_known, scheduling) = bounded(1);
        let description = engine.description().clone();

        let drain = drain::Drain {
            engine,
            out: to_writer.clone(),
            progress: Arc::clone(&progress),
            deadline: options.duration.map(|duration| began.plus(duration.into())),
        };
        let drain = spawn("drain", move || drain.run(&scheduling_known))?;
        // A thread that is gone at once ends the session by itself.
        let scheduling = scheduling.recv().unwrap_or_else(|_| Scheduling {
            words: "unknown".to_owned(),
            real_time: false,
        });
        let mut limits = description.limits.clone();
        limits.extend((!scheduling.real_time).then(|| no_real_time(&scheduling.words, began)));

        let session = describe::session(
            &description,
            &options.engine_reason,
            options.pid,
            options.launched,
            options.command,
            scheduling.words,
            began,
        );
        let news = (!readers.is_empty()).then(|| News::of(options.pid));
        let writer = writer::WriterThread::new(
            sink,
            Arc::clone(&progress),
            session,
            limits,
            options.environment,
            recorder::Recorder::telling(news.clone(), readers.sample_needs().sources),
            options.tap,
        );
        let (pid, launched) = (options.pid, options.launched);
        let writer = spawn("writer", move || {
            writer.run(from_others, from_adapters, pid, launched)
        })?;
        // The first process of a recording: the recorder counts from there.
        let key = ProcessKey(0);
        let touched = news.as_ref().map(|news| news.touched().clone());
        let teller = adapters::Teller::new(KeySource::new(), found, touched.unwrap_or_default())
            .with_pace(adapters::Pace::of(options.adapters_share));
        let adapters = spawn("adapters", move || {
            if let Some(news) = news {
                readers.at_work(key, began, news, teller).run();
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

    /// How it is getting on.
    #[must_use]
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// When it began.
    #[must_use]
    pub fn began(&self) -> TimeNs {
        self.began
    }

    /// Asks it to end. [`Session::finish`] waits until it has.
    pub fn stop(&self, reason: EndReason) {
        self.progress.ask_to_stop(reason);
    }

    /// Names this moment: a [`Record::Mark`] of now, of the first [`Mark::MAX_TEXT`] bytes
    /// of `text`. Does not wait; returns whether it will be in the recording.
    pub fn mark(&self, text: &str) -> bool {
        let fits = |(at, c): &(usize, char)| at + c.len_utf8() <= Mark::MAX_TEXT;
        let text = text.char_indices().take_while(fits).map(|(_, c)| c);
        let mark = Mark {
            time: now(),
            text: text.collect(),
        };
        self.to_writer.try_send(Message::Mark(mark)).is_ok()
    }

    /// Saves a copy of what `--keep-last` holds, and goes on recording.
    ///
    /// # Errors
    /// [`SinkError`] when it can't be written.
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
    /// [`SessionError`] when there is no recording to speak of. What went wrong but
    /// left one is in [`Outcome::failure`].
    pub fn finish(self) -> Result<Outcome, SessionError> {
        let drained = join(self.drain, "drain");
        join(self.adapters, "adapters")?;
        drop(self.to_writer);
        let finished = join(self.writer, "writer")??;
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
            kept: finished.kept,
            failure: finished.failure.map(Into::into).or(failure),
        })
    }
}

/// What it means that the draining thread has no real-time priority.
fn no_real_time(words: &str, time: TimeNs) -> Limit {
    Limit {
        time,
        kind: LimitKind::NoRealTime,
        text: format!(
            "the draining thread has no real-time priority ({words}): where the target keeps all \
             CPUs busy, rings may overrun before it has its turn; what is lost so is counted"
        ),
        remedy: "CAP_SYS_NICE, or an rtprio limit of 1".to_owned(),
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

/// A receiver of messages, for the writer.
type Inbox = Receiver<Message>;

/// A receiver of what adapters found.
type FromAdapters = Receiver<Found>;
