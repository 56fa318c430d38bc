//! Opens running processes, also on an overloaded machine.
//!
//! Opening competes with the targets for the CPUs. It therefore runs on a thread of its own, at
//! real-time priority if allowed, while the caller shows the progress and obeys signals.

use anyhow::{Result, bail};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use vmscope_process::{ProcessFacts, ProcessView, examine};
use vmscope_records::Pid;
use vmscope_sampler::kernel::FirstEvent;
use vmscope_sampler::session::Readers;
use vmscope_sampler::{Opening, raise_this_thread};

use super::follow::TICK;
use super::live_line::LiveLine;
use super::options::EngineChoice;
use super::{ChosenEngine, SamplingOptions};
use crate::present::numbers::count;
use crate::print::say;
use crate::signals::Signals;

/// Time after which a message tells of a slow opening, where no line shows the progress.
const SLOW: Duration = Duration::from_secs(2);

/// A signal ended the opening.
#[derive(Debug, thiserror::Error)]
#[error("interrupted before sampling began: nothing was recorded")]
pub struct Interrupted;

/// Running processes, ready for sampling.
#[derive(Debug)]
pub struct Target {
    /// Command line of the first, or name.
    pub command: Vec<String>,
    pub readers: Readers,
    pub chosen: ChosenEngine,
}

impl Target {
    /// Opens processes. Shows the progress on stderr unless `quiet`.
    ///
    /// # Errors
    /// Failure to attach or sample, with a remedy; [`Interrupted`].
    pub fn open(
        pids: &[Pid],
        options: &SamplingOptions,
        signals: &Signals,
        quiet: bool,
    ) -> Result<Self> {
        let (pids, options) = (pids.to_vec(), options.clone());
        let opening = Arc::new(Opening::default());
        let shown = Arc::clone(&opening);
        wait_for(
            || signals.end_asked(),
            &shown,
            quiet,
            move || Self::open_here(&pids, &options, opening),
        )
    }

    fn open_here(pids: &[Pid], options: &SamplingOptions, opening: Arc<Opening>) -> Result<Self> {
        let _first = (options.engine != EngineChoice::InVm).then(FirstEvent::open);
        let facts: Result<Vec<ProcessFacts>, _> = pids.iter().map(|pid| examine(*pid)).collect();
        let first = facts?.into_iter().next();
        let views: Result<_, _> = pids.iter().map(|pid| ProcessView::open(*pid)).collect();
        let readers = Readers::of(views?, options.families.attaching(options.lifetimes.rate()));
        // On a busy machine, threads start faster than a thread of normal priority opens them.
        let _scheduling = raise_this_thread();
        let chosen = ChosenEngine::attach(pids, options, &readers, opening)?;
        let command = first.map(|first| match first.command.is_empty() {
            true => vec![first.name],
            false => first.command,
        });
        Ok(Target {
            command: command.unwrap_or_default(),
            readers,
            chosen,
        })
    }
}

/// Runs `open` on a thread until it or a signal ends the wait. After a signal, the thread ends with
/// the program.
fn wait_for<T: Send + 'static>(
    end_asked: impl Fn() -> bool,
    opening: &Opening,
    quiet: bool,
    open: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (done, opened) = channel();
    std::thread::Builder::new()
        .name("vmscope-open".into())
        .spawn(move || {
            // Nobody waits after a signal.
            let _ = done.send(open());
        })?;
    let mut line = LiveLine::new(!quiet);
    let mut slow = (!quiet && !line.is_on()).then(|| Instant::now() + SLOW);
    loop {
        match opened.recv_timeout(TICK) {
            Ok(result) => {
                line.clear();
                return result;
            }
            Err(RecvTimeoutError::Disconnected) => bail!("attaching failed: please report this"),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let (threads, all) = opening.progress();
        let progress = match all {
            0 => "attaching".to_owned(),
            _ => format!(
                "attaching to {} of {} threads",
                count(threads as u64),
                count(all as u64)
            ),
        };
        if end_asked() {
            line.clear();
            return Err(Interrupted.into());
        }
        if slow.is_some_and(|slow| Instant::now() > slow) {
            slow = None;
            say(&format!("still {progress}: the machine is very busy"));
        }
        line.draw_text(&progress);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_signal_ends_the_wait_though_the_opening_goes_on() {
        let asked = Arc::new(AtomicBool::new(false));
        let signal = Arc::clone(&asked);
        let (_never, release) = channel::<()>();
        let end_asked = || asked.load(Ordering::Relaxed);
        let waited: Result<()> = wait_for(end_asked, &Opening::default(), true, move || {
            signal.store(true, Ordering::Relaxed);
            let _ = release.recv();
            Ok(())
        });
        assert!(waited.unwrap_err().downcast_ref::<Interrupted>().is_some());
    }

    #[test]
    fn an_opening_is_handed_on() {
        let opened = wait_for(|| false, &Opening::default(), true, || Ok(7));
        assert_eq!(opened.unwrap(), 7);
    }
}
