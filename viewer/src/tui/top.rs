//! `vmscope top PID`: a running process in the terminal UI, while it is sampled.

use super::app::App;
use super::event::Event;
use super::live::{LiveNews, LiveOrder, LiveState};
use super::run::{Loop, message_of};
use super::terminal;
use super::theme::Theme;
use crate::binaries::LiveBinaries;
use crate::embed::embed_symbols;
use crate::present::numbers::count;
use crate::present::text::harmless;
use crate::record::{Ended, SamplingOptions, Target};
use crate::signals::Signals;
use anyhow::{Result, bail};
use clap::Args;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use vmscope_records::{EndReason, Pid, TimeNs};
use vmscope_sampler::session::{
    Outcome, Progress, Session, SessionOptions, Tap, TapEnded, now, tap,
};
use vmscope_symbolizer::{Bounds, Live};

/// How often the picture grows.
const EVERY: Duration = Duration::from_secs(1);

/// How long what was recorded may wait to be taken: to be woken by each batch costs more than
/// most batches.
const BREATH: Duration = Duration::from_millis(150);

/// Batches that may wait to be shown: some eight seconds of them.
const BATCHES: usize = 256;

/// What adapters do that can wait takes a hundredth of a processor at most: whoever looks at
/// a VM is not to be noticed by it, however much code it makes.
const ADAPTERS_SHARE: u32 = 100;

/// `vmscope top`.
#[derive(Args, Clone, Debug)]
pub struct TopArgs {
    /// The process to attach to
    pid: u32,
    #[command(flatten)]
    sampling: SamplingOptions,
    /// Write a recording of it, too. Without, the newest ten minutes are kept in memory,
    /// to be saved with a key
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Charge inlined native functions to the function they were inlined into
    #[arg(long)]
    no_inline: bool,
}

/// The session, and what becomes of it.
enum Recording {
    /// It goes on.
    On(Session),
    /// It is over.
    Over(Box<Outcome>),
    /// There is none to speak of.
    Gone,
}

type Shared = Arc<Mutex<Recording>>;

/// Attaches to a process and shows it until its user has seen enough.
///
/// # Errors
/// When there is no terminal, or the process can't be attached to or sampled.
pub fn top(args: &TopArgs) -> Result<Ended> {
    let instead = format!("`vmscope attach {}` records and prints a report", args.pid);
    terminal::check("top", &instead)?;
    args.sampling.check()?;
    let signals = Signals::catch_for_screen(terminal::leave)?;
    let pid = Pid(args.pid);
    if let Some(output) = args.output.as_deref().filter(|output| output.exists()) {
        bail!("{} is there already: give another name", output.display());
    }
    let target = Target::open(pid, &args.sampling)?;
    let name = format!("{} {pid}", short_name(&target.command));
    let (source, tapped) = tap(BATCHES);
    let options = SessionOptions {
        output: args.output.clone(),
        tap: Some(source),
        adapters_share: Some(ADAPTERS_SHARE),
        ..args.sampling.session_options(pid, false, target.command)
    };
    let session = Session::start(Box::new(target.engine), target.readers, options)?;
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
    let live = Live::new(!args.no_inline, Bounds::default());
    looped.model.put(Arc::clone(live.profile()));
    let follower = Follower {
        live,
        progress: Arc::clone(session.progress()),
        files: LiveBinaries::default(),
        state,
        told_until: TimeNs(0),
        sender: looped.sender.clone(),
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
            // Where the screen is gone, the end of `top` says so.
            let _ = sender.send(Event::Live(LiveNews::Grown(state)));
            why
        })
    });
    let (shared, sender) = (Arc::clone(&recording), looped.sender.clone());
    let output = args.output.clone();
    let shown = looped.run(&mut app, &signals, |order| {
        carry_out(order, &shared, output.as_deref(), &sender)
    });
    is_left.store(true, Ordering::Relaxed);
    if let Recording::On(session) = &*lock(&recording) {
        session.stop(EndReason::Interrupted);
    }
    // It ends the session, and makes its recording self-contained.
    let ended = following.join();
    shown?;
    let Ok(Ok(ended)) = ended else {
        bail!("the live view failed: please report this");
    };
    if let Some(output) = &args.output {
        use std::io::Write;
        let said = format!("vmscope: {ended} in {}", output.display());
        // Where stderr is closed, nobody listens.
        let _ = writeln!(std::io::stderr(), "{said}");
    }
    Ok(match &*lock(&recording) {
        Recording::Over(outcome) if outcome.failure.is_none() => Ended::Well,
        _ => Ended::Incomplete,
    })
}

fn lock(recording: &Shared) -> std::sync::MutexGuard<'_, Recording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A command's first word without its folder.
fn short_name(command: &[String]) -> String {
    let first = command.first().map_or("", String::as_str);
    harmless(first.rsplit('/').next().unwrap_or(first))
}

/// Does what the screen asks of the session; what takes time, on a thread of its own.
fn carry_out(
    order: LiveOrder,
    recording: &Shared,
    output: Option<&Path>,
    sender: &Sender<Event>,
) -> Event {
    match order {
        LiveOrder::Mark(text) => {
            let Ok(recording) = recording.try_lock() else {
                let why = "not marked: the recording is just being saved";
                return Event::Said(why.to_owned());
            };
            Event::Said(match &*recording {
                Recording::On(session) if session.mark(&text) => format!("marked: {text}"),
                Recording::On(_) => "not marked: the session is too busy".to_owned(),
                Recording::Over(_) | Recording::Gone => "not marked: sampling has ended".to_owned(),
            })
        }
        LiveOrder::Save(path) => {
            if let Some(output) = output {
                let said = format!("it is all in {} already", output.display());
                return Event::Saved(Ok(said));
            }
            if path.exists() {
                let why = format!("{} is there already: give another name", path.display());
                return Event::Saved(Err(why));
            }
            let (recording, sender) = (Arc::clone(recording), sender.clone());
            std::thread::spawn(move || {
                let saved = save(&recording, &path);
                // The screen may be gone meanwhile.
                let _ = sender.send(Event::Saved(saved));
            });
            Event::Said("saving...".to_owned())
        }
    }
}

/// Saves what is kept in memory, with its symbols; what came of it, in a sentence.
fn save(recording: &Shared, path: &Path) -> Result<String, String> {
    let saved = match &mut *lock(recording) {
        Recording::On(session) => session
            .save_copy(path)
            .map_err(anyhow::Error::from)
            .and_then(|saved| {
                embed_symbols(path, &saved.modules)?;
                Ok(saved.written)
            }),
        Recording::Over(outcome) => match &mut outcome.kept {
            Some(kept) => kept
                .save(path)
                .map_err(anyhow::Error::from)
                .and_then(|written| {
                    embed_symbols(path, &outcome.modules)?;
                    Ok(written)
                }),
            None => Err(anyhow::anyhow!("nothing is kept")),
        },
        Recording::Gone => Err(anyhow::anyhow!("nothing is kept")),
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

/// Makes the profile grow.
struct Follower {
    live: Live,
    progress: Arc<Progress>,
    files: LiveBinaries,
    state: LiveState,
    told_until: TimeNs,
    sender: Sender<Event>,
    /// Whether the user has left: nobody looks any more.
    is_left: Arc<AtomicBool>,
}

impl Follower {
    /// Follows the session to its end; what was recorded, in words.
    fn follow(mut self, tapped: Tap, recording: &Shared, output: Option<&Path>) -> String {
        let mut next = Instant::now() + EVERY;
        let mut is_open = false;
        while !self.is_left.load(Ordering::Relaxed) {
            let wait = next.saturating_duration_since(Instant::now());
            // What comes is taken some times a second, not as often as it comes.
            std::thread::sleep(wait.min(BREATH));
            if self.take(&tapped).is_err() {
                break;
            }
            if Instant::now() >= next {
                // Where we were held up, ticks are dropped, not caught up.
                next = Instant::now() + EVERY;
                self.live.settle(self.told_until, &self.files);
                self.tell(&mut is_open);
            }
        }
        // Nor does the session fill a channel that nobody empties.
        drop(tapped);
        if !self.is_left.load(Ordering::Relaxed) {
            self.live.finish(&self.files);
        }
        let (over, said) = end(recording, output);
        self.state.ended = said.clone();
        *lock(recording) = over;
        self.tell(&mut is_open);
        said
    }

    /// Takes all that has come.
    fn take(&mut self, tapped: &Tap) -> Result<(), TapEnded> {
        while let Some(tapped) = tapped.try_take()? {
            self.files.files.extend(tapped.files);
            let records = tapped.records.into_iter();
            records.for_each(|record| self.live.take(record));
            self.told_until = tapped.told_until;
        }
        Ok(())
    }

    /// Tells the screen.
    fn tell(&mut self, is_open: &mut bool) {
        self.state.lost = self.progress.lost();
        self.state.bytes = self.progress.bytes();
        self.state.until = self.live.settled().min(now());
        let news = Event::Live(LiveNews::Grown(self.state.clone()));
        let opened = (!*is_open).then_some(Event::Opened);
        *is_open = true;
        for event in std::iter::once(news).chain(opened) {
            // Nobody looks any more once the screen is left.
            let _ = self.sender.send(event);
        }
    }
}

/// Ends the session and makes its recording self-contained; what there is to say of it.
fn end(recording: &Shared, output: Option<&Path>) -> (Recording, String) {
    let session = match std::mem::replace(&mut *lock(recording), Recording::Gone) {
        Recording::On(session) => session,
        other => return (other, String::new()),
    };
    match session.finish() {
        Ok(outcome) => {
            let why = match (&outcome.failure, outcome.reason) {
                (Some(failure), _) => format!("sampling ended early: {failure}"),
                (None, EndReason::TargetExited) => "the process has exited".to_owned(),
                (None, EndReason::DurationOver) => "the time asked for is over".to_owned(),
                (None, _) => "sampling has ended".to_owned(),
            };
            let mut said = format!("{why}; {} samples", count(outcome.written.samples));
            if outcome.unseen > 0 {
                let unseen = count(outcome.unseen);
                said.push_str(&format!(", the last {unseen} of which are not shown"));
            }
            if let Some(output) = output
                && let Err(error) = embed_symbols(output, &outcome.modules)
            {
                said.push_str(&format!("; the recording holds no symbols: {error:#}"));
            }
            (Recording::Over(Box::new(outcome)), said)
        }
        Err(error) => (Recording::Gone, format!("sampling failed: {error}")),
    }
}
