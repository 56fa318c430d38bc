//! `vmscope view FILE`: a finished recording in the terminal UI.

use super::app::App;
use super::event::Event;
use super::run::{Loop, message_of};
use super::terminal;
use super::theme::Theme;
use crate::lifetimes::cache::LifetimesCache;
use crate::memory::MemoryOption;
use crate::record::DEFAULT_OUTPUT;
use crate::report::load_profile_with;
use crate::signals::Signals;
use anyhow::{Result, bail};
use clap::Args;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

/// `vmscope view`.
#[derive(Args, Clone, Debug)]
pub struct ViewArgs {
    /// The recording
    #[arg(default_value = DEFAULT_OUTPUT)]
    file: PathBuf,
    /// Count samples in inlined native functions for these functions, not for their callers
    #[arg(long)]
    inlined: bool,
    /// Read source files from this folder only (may be repeated)
    #[arg(long, value_name = "DIR")]
    source: Vec<PathBuf>,
    #[command(flatten)]
    memory: MemoryOption,
}

/// Shows a recording until the user quits.
///
/// # Errors
/// Without a terminal, or when the recording can't be opened.
pub fn view(args: &ViewArgs) -> Result<()> {
    let shown = args.file.display();
    terminal::check("view", &format!("`vmscope report {shown}` prints text"))?;
    // A mistyped file name fails before full-screen mode.
    drop(crate::report::open_recording(&args.file)?);
    let signals = Signals::catch_for_screen(terminal::leave)?;
    let theme = Theme::of(|name| std::env::var(name).ok());
    let name = args.file.file_name().unwrap_or(args.file.as_os_str());
    let mut app = App::new(name.to_string_lossy().into_owned(), theme, (0, 0));
    app.lifetimes = LifetimesCache::of_file(args.file.clone(), args.memory);
    let mut looped = Loop::new();
    looped.sources.clone_from(&args.source);
    let (model, sender) = (Arc::clone(&looped.model), looped.sender.clone());
    let opening = Arc::clone(&looped.opening);
    let (file, inlined, memory) = (args.file.clone(), args.inlined, args.memory);
    std::thread::spawn(move || {
        let mut watch = |loading| {
            *opening.lock().unwrap_or_else(PoisonError::into_inner) = Some(loading);
        };
        let loaded = catch_unwind(AssertUnwindSafe(|| {
            load_profile_with(&file, inlined, memory, &mut watch)
        }));
        let event = match loaded {
            Ok(Ok(profile)) => {
                model.put(Arc::new(RwLock::new(profile)));
                Event::Opened
            }
            Ok(Err(error)) => Event::Failed(format!("{error:#}")),
            Err(panic) => Event::Failed(format!(
                "opening the recording failed, please report it: {}",
                message_of(&*panic)
            )),
        };
        // After quitting, the receiver is gone.
        let _ = sender.send(event);
    });
    looped.run(&mut app, &signals, |_| Event::Tick)?;
    match app.failure() {
        Some(why) => bail!("{why}"),
        None => Ok(()),
    }
}
