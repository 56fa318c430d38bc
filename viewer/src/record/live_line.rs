//! Progress line of an attachment and a recording.

use crate::print::{is_stderr_terminal, replace_line};
use std::time::{Duration, Instant};
use vmscope_sampler::session::Session;

/// Progress line of a recording; nothing unless stderr is a terminal.
pub(super) struct LiveLine {
    on: bool,
    drawn: bool,
    last: Instant,
    samples: u64,
    rate: f64,
}

impl LiveLine {
    pub(super) fn new(wanted: bool) -> Self {
        let on = wanted && is_stderr_terminal();
        LiveLine {
            on,
            drawn: false,
            last: Instant::now(),
            samples: 0,
            rate: 0.0,
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub(super) fn draw(&mut self, session: &Session) {
        if !self.is_due() {
            return;
        }
        let progress = session.progress();
        let samples = progress.samples();
        if self.drawn {
            let since = self.last.elapsed().as_secs_f64();
            self.rate = (samples - self.samples.min(samples)) as f64 / since;
        }
        self.samples = samples;
        let elapsed = vmscope_sampler::session::now()
            .since(session.began())
            .as_secs_f64();
        self.show(&format!(
            "{elapsed:.1} s  {samples} samples  {:.0}/s  {} lost  {}",
            self.rate,
            progress.lost(),
            bytes(progress.bytes()),
        ));
    }

    /// Draws the progress of attaching.
    pub(super) fn draw_text(&mut self, text: &str) {
        if self.is_due() {
            self.show(text);
        }
    }

    fn is_due(&self) -> bool {
        self.on && (!self.drawn || self.last.elapsed() >= Duration::from_millis(500))
    }

    fn show(&mut self, text: &str) {
        (self.last, self.drawn) = (Instant::now(), true);
        replace_line(&format!("vmscope: {text}  (Ctrl-C ends)"));
    }

    pub(super) fn clear(&mut self) {
        if self.drawn {
            replace_line("");
            self.drawn = false;
        }
    }
}

/// A size for people.
#[expect(
    clippy::cast_precision_loss,
    reason = "a size with one digit after the point"
)]
pub(crate) fn bytes(size: u64) -> String {
    match size {
        0..1_000 => format!("{size} B"),
        1_000..1_000_000 => format!("{:.1} kB", size as f64 / 1e3),
        _ => format!("{:.1} MB", size as f64 / 1e6),
    }
}
