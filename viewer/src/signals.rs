//! Signals that end a recording or save a copy of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::flag;

/// Exit code in shells of a program ended by Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// Interval of checks for the first signal.
const LOOK: Duration = Duration::from_millis(500);

/// Time after the first signal in which further signals ask for the same: `timeout` signals its command, then its process
/// group.
const SAME: Duration = Duration::from_millis(500);

/// Maximum time for completing a recording after a signal.
const LONGEST_END: Duration = Duration::from_secs(10);

/// Received signals.
#[derive(Debug)]
pub struct Signals {
    end: Arc<AtomicBool>,
    save: Arc<AtomicBool>,
}

impl Signals {
    /// Catches SIGINT, SIGTERM and SIGHUP (end; another one, a second later, ends vmscope at once, with a
    /// readable file) and SIGUSR1 (copy). Catches SIGXFSZ too: a file-size limit then fails the
    /// write, which ends the recording properly, instead of killing vmscope.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn catch() -> io::Result<Self> {
        let end = Arc::new(AtomicBool::new(false));
        let save = Arc::new(AtomicBool::new(false));
        let at_once = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&at_once))?;
            flag::register(signal, Arc::clone(&end))?;
        }
        after_first(&end, SAME, move || at_once.store(true, Ordering::Relaxed))?;
        flag::register(SIGUSR1, Arc::clone(&save))?;
        flag::register(SIGXFSZ, Arc::default())?;
        Ok(Signals { end, save })
    }

    /// The same for a screen. No signal ends vmscope at once, which would leave the terminal in raw
    /// mode. Without an end within some seconds, a thread restores the terminal by `restore` and lets
    /// the signal take effect.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn catch_for_screen(restore: fn()) -> io::Result<Self> {
        let end = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&end))?;
        }
        flag::register(SIGXFSZ, Arc::default())?;
        after_first(&end, LONGEST_END, move || {
            restore();
            // No alternative remains after a failure.
            let _ = signal_hook::low_level::emulate_default_handler(SIGTERM);
        })?;
        let save = Arc::default();
        Ok(Signals { end, save })
    }

    /// Whether a signal requested the end.
    #[must_use]
    pub fn end_asked(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// Whether a signal requested a copy since the last call.
    #[must_use]
    pub fn take_save(&self) -> bool {
        self.save.swap(false, Ordering::Relaxed)
    }
}

/// Calls `then` in a thread, at least `pause` after a signal has raised `asked`.
fn after_first(
    asked: &Arc<AtomicBool>,
    pause: Duration,
    then: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let asked = Arc::clone(asked);
    std::thread::Builder::new().spawn(move || {
        while !asked.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
        std::thread::sleep(pause);
        then();
    })?;
    Ok(())
}
