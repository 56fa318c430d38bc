//! Event loop: handles events, executes effects, draws the screen. The terminal UI's only code with
//! side effects.

use super::app::{App, Stage, update};
use super::event::{Effect, Event};
use super::jobs::{Done, Job};
use super::live::LiveOrder;
use super::screen;
use super::terminal::{Screen, copy};
use crate::annotate::source::Source;
use crate::report::Loading;
use crate::signals::Signals;
use anyhow::Result;
use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vmscope_symbolizer::Profile;

/// Interval of signal checks on an idle screen.
const IDLE: Duration = Duration::from_millis(250);

/// Interval of progress updates.
const BUSY: Duration = Duration::from_millis(100);

/// Number of worker threads: one long question must not block another.
const WORKERS: usize = 2;

/// The profile, after opening. Drawing and workers read it; the live view writes it once a second.
#[derive(Debug, Default)]
pub struct Model {
    profile: OnceLock<Arc<RwLock<Profile>>>,
}

impl Model {
    /// Sets the profile.
    pub fn put(&self, profile: Arc<RwLock<Profile>>) {
        // Only one thread opens a recording.
        let _ = self.profile.set(profile);
    }

    /// Calls with the profile, if open.
    pub fn with<T>(&self, call: impl FnOnce(Option<&Profile>) -> T) -> T {
        let guard = self.profile.get().map(|lock| {
            // A reader's panic cannot damage the profile.
            lock.read().unwrap_or_else(PoisonError::into_inner)
        });
        call(guard.as_deref())
    }
}

/// State of the event loop.
pub struct Loop {
    pub model: Arc<Model>,
    /// Progress of opening, from the opening thread.
    pub opening: Arc<Mutex<Option<Loading>>>,
    /// Sender of events.
    pub sender: Sender<Event>,
    /// Folders with source files; empty for recorded paths.
    pub sources: Vec<PathBuf>,
    receiver: Receiver<Event>,
    jobs: Sender<Job>,
    began: Instant,
    /// Threads that write files.
    writers: Vec<JoinHandle<()>>,
}

impl Loop {
    /// Starts the workers.
    pub fn new() -> Self {
        let (sender, receiver) = channel();
        let (jobs, to_do) = channel();
        let model = Arc::new(Model::default());
        let to_do = Arc::new(Mutex::new(to_do));
        for _ in 0..WORKERS {
            let (model, sender) = (Arc::clone(&model), sender.clone());
            let to_do = Arc::clone(&to_do);
            std::thread::spawn(move || work(&model, &to_do, &sender));
        }
        Loop {
            model,
            opening: Arc::default(),
            sources: Vec::new(),
            sender,
            receiver,
            jobs,
            began: Instant::now(),
            writers: Vec::new(),
        }
    }

    /// Runs the UI until the user quits; `order` executes requests to a session.
    ///
    /// # Errors
    /// Terminal setup or drawing failed.
    pub fn run(
        mut self,
        app: &mut App,
        signals: &Signals,
        order: impl FnMut(LiveOrder) -> Event,
    ) -> Result<()> {
        let result = self.show(app, signals, order);
        // Finish all file writes.
        for writer in self.writers {
            // The thread already sent its result.
            let _ = writer.join();
        }
        result
    }

    fn show(
        &mut self,
        app: &mut App,
        signals: &Signals,
        mut order: impl FnMut(LiveOrder) -> Event,
    ) -> Result<()> {
        let mut screen = Screen::take()?;
        let size = screen.terminal.size()?;
        app.size = (size.width, size.height);
        let (sender, began) = (self.sender.clone(), self.began);
        std::thread::spawn(move || read_terminal(&sender, began));
        let mut drawn = false;
        let mut ticked = Instant::now();
        loop {
            if !drawn {
                self.model.with(|profile| {
                    screen
                        .terminal
                        .draw(|frame| screen::draw(app, profile, frame))
                        .map(|_| ())
                })?;
                drawn = true;
            }
            let is_busy = app.is_busy();
            let wait = if is_busy {
                BUSY.saturating_sub(ticked.elapsed())
            } else {
                IDLE
            };
            let first = match self.receiver.recv_timeout(wait) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                // Terminal reader and workers ended: the terminal is gone.
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            if signals.end_asked() {
                return Ok(());
            }
            let mut events: Vec<Event> = first.into_iter().collect();
            // Ticks continue under key repeat.
            if is_busy && ticked.elapsed() >= BUSY {
                ticked = Instant::now();
                events.push(self.tick(app));
            }
            // Draw once for all queued events.
            events.extend(self.receiver.try_iter());
            for event in events {
                drawn = false;
                let effects = self.model.with(|profile| update(app, profile, event));
                for effect in effects {
                    match effect {
                        Effect::Quit => return Ok(()),
                        Effect::Redraw => screen.terminal.clear()?,
                        Effect::Suspend => screen.suspend()?,
                        Effect::Work(job) => {
                            // Workers outlive the loop.
                            let _ = self.jobs.send(job);
                        }
                        Effect::Copy(text) => self.say(copy(&text)),
                        Effect::Write(path, bytes) => self.write(path, bytes),
                        Effect::ReadSource { name, recorded_ns } => {
                            self.read_source(name, recorded_ns);
                        }
                        // The loop holds the receiver.
                        Effect::Live(wanted) => {
                            let _ = self.sender.send(order(wanted));
                        }
                    }
                }
            }
        }
    }

    fn tick(&self, app: &App) -> Event {
        let opening = *self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        match (&app.stage, opening) {
            (Stage::Opening(_), Some(loading)) => Event::Opening(loading),
            _ => Event::Tick,
        }
    }

    /// Reads a source file in a thread: disks may be slow.
    fn read_source(&self, name: String, recorded_ns: u64) {
        let (sender, sources) = (self.sender.clone(), self.sources.clone());
        std::thread::spawn(move || {
            let source = Source::find(&name, &sources, recorded_ns);
            // After quitting, the receiver is gone.
            let _ = sender.send(Event::Source(name, source));
        });
    }

    /// Writes a file in a thread: disks may be slow.
    fn write(&mut self, path: PathBuf, bytes: Vec<u8>) {
        let sender = self.sender.clone();
        self.writers.retain(|writer| !writer.is_finished());
        self.writers.push(std::thread::spawn(move || {
            // After quitting, the receiver is gone.
            let _ = sender.send(Event::Said(write(&path, &bytes)));
        }));
    }

    fn say(&self, text: String) {
        // The loop holds the receiver.
        let _ = self.sender.send(Event::Said(text));
    }
}

/// Answers questions until the loop ends.
fn work(model: &Model, to_do: &Mutex<Receiver<Job>>, sender: &Sender<Event>) {
    loop {
        let job = {
            let to_do = to_do.lock().unwrap_or_else(PoisonError::into_inner);
            to_do.recv()
        };
        let Ok(job) = job else {
            return;
        };
        let (slot, question, ticket) = (job.slot, job.question, job.ticket);
        let worked = catch_unwind(AssertUnwindSafe(|| {
            model.with(|profile| {
                let began = Instant::now();
                let done = profile.map(|profile| job.run(profile));
                let took = began.elapsed();
                done.map(|done| Done { took, ..done })
            })
        }));
        let events = match worked {
            Ok(done) => [done.map(Event::Done), None],
            Err(panic) => {
                let why = format!(
                    "this view failed, please report it: {}",
                    message_of(&*panic)
                );
                let done = Done {
                    slot,
                    question,
                    ticket,
                    is_answered: false,
                    took: Duration::ZERO,
                };
                [Some(Event::Done(done)), Some(Event::Said(why))]
            }
        };
        for event in events.into_iter().flatten() {
            if sender.send(event).is_err() {
                return;
            }
        }
    }
}

/// Message of a panic.
pub fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}

/// Sends terminal input as events until the terminal closes.
fn read_terminal(sender: &Sender<Event>, began: Instant) {
    use ratatui::crossterm::event::{Event as Terminal, MouseEventKind, read};
    while let Ok(event) = read() {
        let at_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let event = match event {
            Terminal::Key(key) => Event::Key(key),
            // Moves without a button have no meaning.
            Terminal::Mouse(mouse) if mouse.kind == MouseEventKind::Moved => continue,
            Terminal::Mouse(mouse) => Event::Mouse(mouse, at_ms),
            Terminal::Resize(columns, rows) => Event::Resize(columns, rows),
            Terminal::Paste(text) => Event::Paste(text),
            Terminal::FocusGained | Terminal::FocusLost => continue,
        };
        if sender.send(event).is_err() {
            return;
        }
    }
    // After quitting, the receiver is gone.
    let _ = sender.send(Event::TerminalGone);
}

/// Writes a new file with mode 0600.
fn write(path: &Path, bytes: &[u8]) -> String {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let shown = crate::present::text::harmless(&path.display().to_string());
    match file.and_then(|mut file| file.write_all(bytes)) {
        Ok(()) => format!("{} bytes written to {shown}", bytes.len()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            format!("{shown} exists: give another name")
        }
        Err(error) => format!("cannot write {shown}: {error}"),
    }
}
