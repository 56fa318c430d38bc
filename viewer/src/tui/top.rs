//! `vmscope top PID`: a running process in the terminal UI, while it is sampled.

use super::app::App;
use super::event::Event;
use super::live::{LiveOrder, LiveState};
use super::run::{Loop, message_of};
use super::terminal;
use super::theme::Theme;
use crate::binaries::LiveBinaries;
use crate::embed::embed_symbols;
use crate::memory::{MemoryOption, own_bytes};
use crate::present::numbers::count;
use crate::present::text::harmless;
use crate::print::say;
use crate::record::{Ended, Named, SamplingOptions, Target};
use crate::signals::Signals;
use anyhow::{Result, bail};
use clap::Args;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use vmscope_records::{EndReason, TimeNs};
use vmscope_sampler::Favoured;
use vmscope_sampler::session::{
    Outcome, Progress, Session, SessionOptions, Tap, TapEnded, now, tap,
};
use vmscope_symbolizer::{Bounds, Live};

/// Interval of profile updates.
const EVERY: Duration = Duration::from_secs(1);

/// Interval of reading recorded batches: a wake-up per batch costs more than most batches.
const BREATH: Duration = Duration::from_millis(150);

/// Maximum number of unread batches: about eight seconds.
const BATCHES: usize = 256;

/// Deferrable adapter work takes at most 1/100 of a CPU, so that the observed VM is not disturbed.
const ADAPTERS_SHARE: u32 = 100;

/// `vmscope top`.
#[derive(Args, Clone, Debug)]
pub struct TopArgs {
    /// PIDs of the processes, or their names if only one of your processes has the name
    #[arg(value_name = "PID|NAME", required = true)]
    processes: Vec<Named>,
    #[command(flatten)]
    sampling: SamplingOptions,
    /// Also write a recording to this file. Without it, vmscope keeps the newest ten minutes in
    /// memory; the key W saves them
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Count samples in inlined native functions for these functions, not for their callers
    #[arg(long)]
    inlined: bool,
    #[command(flatten)]
    memory: MemoryOption,
}

/// State of the session.
enum Recording {
    /// Sampling.
    On(Session),
    /// Ended.
    Over(Box<Outcome>),
    /// Failed, or ending.
    Gone,
}

type Shared = Arc<Mutex<Recording>>;

/// Attaches to processes and shows them until the user quits.
///
/// # Errors
/// Without a terminal, or when attaching or sampling fails.
pub fn top(args: &TopArgs, favoured: &Favoured) -> Result<Ended> {
    let pids = Named::pids(&args.processes)?;
    let words: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let words = words.join(" ");
    let instead = format!("`vmscope attach {words}` records and prints a report");
    terminal::check("top", &instead)?;
    args.sampling.check()?;
    let signals = Signals::catch_for_screen(terminal::leave)?;
    if let Some(output) = args.output.as_deref().filter(|output| output.exists()) {
        bail!("{} exists: give another name", output.display());
    }
    let target = Target::open(&pids, &args.sampling, &signals, false)?;
    let name = format!("{} {words}", short_name(&target.command));
    let (source, tapped) = tap(BATCHES);
    let options = SessionOptions {
        output: args.output.clone(),
        tap: Some(source),
        adapters_share: Some(ADAPTERS_SHARE),
        ..(args.sampling).session_options(&target.chosen, pids, false, target.command)
    };
    let session = Session::start(target.chosen.engine, target.readers, options)?;
    favoured.end();
    let theme = Theme::of(|name| std::env::var(name).ok());
    let state = LiveState {
        output: args
            .output
            .as_ref()
            .map_or_else(String::new, |o| o.display().to_string()),
        ..LiveState::default()
    };
    let mut app = App::new(name, theme, (0, 0)).following(state.clone());
    let looped = Loop::new();
    let live = Live::new(args.inlined, Bounds::default());
    looped.model.put(Arc::clone(live.profile()));
    let follower = Follower {
        live,
        progress: Arc::clone(session.progress()),
        files: LiveBinaries::default(),
        state,
        complete_until: TimeNs(0),
        sender: looped.sender.clone(),
        memory: args.memory,
        is_left: Arc::default(),
    };
    let is_left = Arc::clone(&follower.is_left);
    let recording: Shared = Arc::new(Mutex::new(Recording::On(session)));
    let (shared, output) = (Arc::clone(&recording), args.output.clone());
    let state = follower.state.clone();
    let sender = looped.sender.clone();
    let following = std::thread::spawn(move || {
        let followed = catch_unwind(AssertUnwindSafe(|| {
            follower.follow(tapped, &shared, output.as_deref())
        }));
        followed.map_err(|panic| {
            let why = message_of(&*panic);
            let ended = format!("the live view failed, please report it: {why}");
            let state = LiveState { ended, ..state };
            // After quitting, `top` itself reports the failure.
            let _ = sender.send(Event::Live(state));
            why
        })
    });
    let (shared, sender) = (Arc::clone(&recording), looped.sender.clone());
    let output = args.output.clone();
    let shown = looped.run(&mut app, &signals, |order| {
        carry_out(order, &shared, output.as_deref(), args.memory, &sender)
    });
    is_left.store(true, Ordering::Relaxed);
    if let Recording::On(session) = &*lock(&recording) {
        session.stop(EndReason::Interrupted);
    }
    // Ends the session and embeds symbols in its recording.
    let ended = following.join();
    shown?;
    let Ok(Ok(ended)) = ended else {
        bail!("the live view failed: please report this");
    };
    if let Some(output) = &args.output {
        say(&format!("{ended} in {}", output.display()));
    }
    Ok(match &*lock(&recording) {
        Recording::Over(outcome) if outcome.failure.is_none() => Ended::Well,
        _ => Ended::Incomplete,
    })
}

fn lock(recording: &Shared) -> std::sync::MutexGuard<'_, Recording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

/// First word of a command, without its folder.
fn short_name(command: &[String]) -> String {
    let first = command.first().map_or("", String::as_str);
    harmless(first.rsplit('/').next().unwrap_or(first))
}

/// Executes a request of the screen; slow requests run in a thread.
fn carry_out(
    order: LiveOrder,
    recording: &Shared,
    output: Option<&Path>,
    memory: MemoryOption,
    sender: &Sender<Event>,
) -> Event {
    match order {
        LiveOrder::Mark(text) => {
            let Ok(recording) = recording.try_lock() else {
                let why = "not marked: vmscope is saving the recording; try again";
                return Event::Said(why.to_owned());
            };
            Event::Said(match &*recording {
                Recording::On(session) if session.mark(&text) => format!("marked: {text}"),
                Recording::On(_) => "not marked: vmscope is too busy; try again".to_owned(),
                Recording::Over(_) | Recording::Gone => "not marked: sampling has ended".to_owned(),
            })
        }
        LiveOrder::Save(path) => {
            if let Some(output) = output {
                let said = format!("the recording is already in {}", output.display());
                return Event::Saved(Ok(said));
            }
            if path.exists() {
                let why = format!("{} exists: give another name", path.display());
                return Event::Saved(Err(why));
            }
            let (recording, sender) = (Arc::clone(recording), sender.clone());
            std::thread::spawn(move || {
                let saved = save(&recording, &path, memory);
                // After quitting, the receiver is gone.
                let _ = sender.send(Event::Saved(saved));
            });
            Event::Said("saving...".to_owned())
        }
    }
}

/// Saves the samples in memory with symbols; returns the result as a sentence.
fn save(recording: &Shared, path: &Path, memory: MemoryOption) -> Result<String, String> {
    let saved = match &mut *lock(recording) {
        Recording::On(session) => session
            .save_copy(path)
            .map_err(anyhow::Error::from)
            .and_then(|saved| {
                embed_symbols(path, &saved.modules, memory)?;
                Ok(saved.written)
            }),
        Recording::Over(outcome) => match &mut outcome.kept {
            Some(kept) => kept
                .save(path)
                .map_err(anyhow::Error::from)
                .and_then(|written| {
                    embed_symbols(path, &outcome.modules, memory)?;
                    Ok(written)
                }),
            None => Err(anyhow::anyhow!("no samples are kept")),
        },
        Recording::Gone => Err(anyhow::anyhow!("no samples are kept")),
    };
    match saved {
        Ok(written) => Ok(format!(
            "{} samples saved in {}",
            count(written.samples),
            path.display()
        )),
        Err(error) => Err(format!("not saved: {error:#}")),
    }
}

/// Grows the profile.
struct Follower {
    live: Live,
    progress: Arc<Progress>,
    files: LiveBinaries,
    state: LiveState,
    complete_until: TimeNs,
    sender: Sender<Event>,
    memory: MemoryOption,
    /// Set when the user quits.
    is_left: Arc<AtomicBool>,
}

impl Follower {
    /// Follows the session to its end; returns a summary of the recording.
    fn follow(mut self, tapped: Tap, recording: &Shared, output: Option<&Path>) -> String {
        let mut next = Instant::now() + EVERY;
        let mut is_open = false;
        let max_memory = self.memory.max();
        while !self.is_left.load(Ordering::Relaxed) {
            let wait = next.saturating_duration_since(Instant::now());
            // Reads batches a few times per second, not at every arrival.
            std::thread::sleep(wait.min(BREATH));
            if self.take(&tapped).is_err() {
                break;
            }
            if Instant::now() >= next {
                // Skip missed ticks after a delay.
                next = Instant::now() + EVERY;
                self.live.settle(self.complete_until, &self.files);
                self.tell(&mut is_open);
            }
            if own_bytes() > max_memory
                && let Recording::On(session) = &*lock(recording)
            {
                session.stop(EndReason::MemoryFull);
            }
        }
        // The session must not fill an unread channel.
        drop(tapped);
        if !self.is_left.load(Ordering::Relaxed) {
            self.live.finish(&self.files);
        }
        let (over, said) = end(recording, output, self.memory);
        self.state.ended = said.clone();
        *lock(recording) = over;
        self.tell(&mut is_open);
        said
    }

    /// Reads all available batches.
    fn take(&mut self, tapped: &Tap) -> Result<(), TapEnded> {
        while let Some(tapped) = tapped.try_take()? {
            self.files.files.extend(tapped.files);
            let records = tapped.records.into_iter();
            records.for_each(|record| self.live.take(record));
            self.complete_until = tapped.complete_until;
        }
        Ok(())
    }

    /// Sends the state to the screen.
    fn tell(&mut self, is_open: &mut bool) {
        self.state.lost = self.progress.lost();
        self.state.bytes = self.progress.bytes();
        self.state.until = self.live.settled().min(now());
        let news = Event::Live(self.state.clone());
        let opened = (!*is_open).then_some(Event::Opened);
        *is_open = true;
        for event in std::iter::once(news).chain(opened) {
            // After quitting, the receiver is gone.
            let _ = self.sender.send(event);
        }
    }
}

/// Ends the session and embeds symbols in its recording; returns the result with a sentence.
fn end(recording: &Shared, output: Option<&Path>, memory: MemoryOption) -> (Recording, String) {
    let session = match std::mem::replace(&mut *lock(recording), Recording::Gone) {
        Recording::On(session) => session,
        other => return (other, String::new()),
    };
    match session.finish() {
        Ok(outcome) => {
            let why = match (&outcome.failure, outcome.reason) {
                (Some(failure), _) => format!("sampling ended early: {failure}"),
                (None, EndReason::TargetExited) => "the process has exited".to_owned(),
                (None, EndReason::DurationOver) => "the --duration is over".to_owned(),
                (None, EndReason::MemoryFull) => "--max-memory is reached".to_owned(),
                (None, _) => "sampling has ended".to_owned(),
            };
            let mut said = format!("{why}; {} samples", count(outcome.written.samples));
            if outcome.unseen > 0 {
                let unseen = count(outcome.unseen);
                said.push_str(&format!(", without the last {unseen} on the screen"));
            }
            if let Some(output) = output
                && let Err(error) = embed_symbols(output, &outcome.modules, memory)
            {
                said.push_str(&format!("; the recording has no symbols: {error:#}"));
            }
            (Recording::Over(Box::new(outcome)), said)
        }
        Err(error) => (Recording::Gone, format!("sampling failed: {error}")),
    }
}
