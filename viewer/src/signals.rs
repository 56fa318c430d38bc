//! Signals that end a recording or save a copy of it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::flag;

/// What shells report of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

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
