//! Signals that end a recording or save a copy of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::flag;

/// What shells report of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// How often a screen's thread looks for signals.
const LOOK: Duration = Duration::from_millis(500);

/// How long a recording may take to be made whole after a signal.
const LONGEST_END: Duration = Duration::from_secs(10);

/// Which signals came.
#[derive(Debug)]
pub struct Signals {
    end: Arc<AtomicBool>,
    save: Arc<AtomicBool>,
}

impl Signals {
    /// Catches SIGINT, SIGTERM and SIGHUP (the end; the second of them ends vmscope at
    /// once, and what is in the file by then stays readable) and SIGUSR1 (a copy).
    /// SIGXFSZ is caught too, or a limit on the size of files would kill vmscope: so
    /// the write fails, which ends the recording properly.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn catch() -> io::Result<Self> {
        let end = Arc::new(AtomicBool::new(false));
        let save = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the first one only raises the flag.
            flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&end))?;
            flag::register(signal, Arc::clone(&end))?;
        }
        flag::register(SIGUSR1, Arc::clone(&save))?;
        flag::register(SIGXFSZ, Arc::default())?;
        Ok(Signals { end, save })
    }

    /// The same for a screen: the second signal does not end vmscope at once, which would
    /// leave the terminal as it is. Where the end does not come within some seconds, a
    /// thread gives the terminal back by `restore` and lets the signal do what it does by
    /// itself.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn catch_for_screen(restore: fn()) -> io::Result<Self> {
        let end = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&end))?;
        }
        flag::register(SIGXFSZ, Arc::default())?;
        let asked = Arc::clone(&end);
        std::thread::Builder::new().spawn(move || {
            while !asked.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK);
            }
            std::thread::sleep(LONGEST_END);
            restore();
            // Where that fails, there is nothing left to try.
            let _ = signal_hook::low_level::emulate_default_handler(SIGTERM);
        })?;
        let save = Arc::default();
        Ok(Signals { end, save })
    }

    /// Whether the end was asked for.
    #[must_use]
    pub fn end_asked(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }

    /// Whether a copy was asked for since the last call.
    #[must_use]
    pub fn take_save(&self) -> bool {
        self.save.swap(false, Ordering::Relaxed)
    }
}
