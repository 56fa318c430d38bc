//! The loop: events in, state changed, effects carried out, screen drawn. The only place
//! of the terminal UI that does anything.

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

/// How often signals are looked at while nothing happens.
const IDLE: Duration = Duration::from_millis(250);

/// How often progress is drawn.
const BUSY: Duration = Duration::from_millis(100);

/// Threads that work out answers: one long answer does not hold up another.
const WORKERS: usize = 2;

/// The profile, once there is one. Readers draw and work; the only writer is the live
/// view's, for a moment each second.
#[derive(Debug, Default)]
pub struct Model {
    profile: OnceLock<Arc<RwLock<Profile>>>,
}

impl Model {
    /// Puts the profile there, once.
    pub fn put(&self, profile: Arc<RwLock<Profile>>) {
        // A second one can't come: there is one opener.
        let _ = self.profile.set(profile);
    }

    /// Calls with the profile, where there is one.
    pub fn with<T>(&self, call: impl FnOnce(Option<&Profile>) -> T) -> T {
        let guard = self.profile.get().map(|lock| {
            // A panic of a reader leaves it as it was.
            lock.read().unwrap_or_else(PoisonError::into_inner)
        });
        call(guard.as_deref())
    }
}

/// What the loop works with.
pub struct Loop {
    /// The profile.
    pub model: Arc<Model>,
    /// What opening is at; written by the thread that opens the file.
    pub opening: Arc<Mutex<Option<Loading>>>,
    /// For whoever has events to tell.
    pub sender: Sender<Event>,
    /// Folders beneath which source files are looked for; empty: where they are named.
    pub sources: Vec<PathBuf>,
    receiver: Receiver<Event>,
    jobs: Sender<Job>,
    began: Instant,
    /// Files that are being written.
    writers: Vec<JoinHandle<()>>,
}

impl Loop {
    /// Starts the threads that read the terminal and work out answers.
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

    /// Shows `app` until it is left. `order` carries out what a session is asked for.
    ///
    /// # Errors
    /// When the terminal can't be taken or drawn on.
    pub fn run(
        mut self,
        app: &mut App,
        signals: &Signals,
        order: impl FnMut(LiveOrder) -> Event,
    ) -> Result<()> {
        let result = self.show(app, signals, order);
        // A file is written to its end.
        for writer in self.writers {
            // What it had to say, it has sent.
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
                // The terminal's reader and the workers are gone: so is the terminal.
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            if signals.end_asked() {
                return Ok(());
            }
            let mut events: Vec<Event> = first.into_iter().collect();
            // Whatever else happens: who holds a key down is told, too.
            if is_busy && ticked.elapsed() >= BUSY {
                ticked = Instant::now();
                events.push(self.tick(app));
            }
            // All that came meanwhile is drawn at once.
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
                            // Workers end only with the loop.
                            let _ = self.jobs.send(job);
                        }
                        Effect::Copy(text) => self.say(copy(&text)),
                        Effect::Write(path, bytes) => self.write(path, bytes),
                        Effect::ReadSource { name, recorded_ns } => {
                            self.read_source(name, recorded_ns);
                        }
                        // We hold the other end.
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

    /// Reads a source file on a thread of its own: its disk may be slow.
    fn read_source(&self, name: String, recorded_ns: u64) {
        let (sender, sources) = (self.sender.clone(), self.sources.clone());
        std::thread::spawn(move || {
            let source = Source::find(&name, &sources, recorded_ns);
            // Nobody listens any more where the user has left meanwhile.
            let _ = sender.send(Event::Source(name, source));
        });
    }

    /// Writes a file on a thread of its own, for the same reason.
    fn write(&mut self, path: PathBuf, bytes: Vec<u8>) {
        let sender = self.sender.clone();
        self.writers.retain(|writer| !writer.is_finished());
        self.writers.push(std::thread::spawn(move || {
            // Nobody listens any more where the user has left meanwhile.
            let _ = sender.send(Event::Said(write(&path, &bytes)));
        }));
    }

    fn say(&self, text: String) {
        // We hold the other end.
        let _ = self.sender.send(Event::Said(text));
    }
}

/// Works out answers until nobody asks any more.
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

/// What a panic said.
pub fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

/// Hands on what comes from the terminal, until it is gone.
fn read_terminal(sender: &Sender<Event>, began: Instant) {
    use ratatui::crossterm::event::{Event as Terminal, MouseEventKind, read};
    while let Ok(event) = read() {
        let at_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let event = match event {
            Terminal::Key(key) => Event::Key(key),
            // Where nothing is pressed nothing is meant.
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
    // Where the loop is gone too, nobody needs to be told.
    let _ = sender.send(Event::TerminalGone);
}

/// Writes a file that is not there yet, for its user alone.
fn write(path: &Path, bytes: &[u8]) -> String {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let shown = crate::present::text::harmless(&path.display().to_string());
    match file.and_then(|mut file| file.write_all(bytes)) {
        Ok(()) => format!("{} bytes written to {shown}", bytes.len()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            format!("{shown} is there already: give another name")
        }
        Err(error) => format!("{shown} was not written: {error}"),
    }
}
