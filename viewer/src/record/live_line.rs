//! Progress line of a recording.

use std::io::{IsTerminal, Write};
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
        let on = wanted && std::io::stderr().is_terminal();
        LiveLine {
            on,
            drawn: false,
            last: Instant::now(),
            samples: 0,
            rate: 0.0,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub(super) fn draw(&mut self, session: &Session) {
        let since = self.last.elapsed();
        if !self.on || (self.drawn && since < Duration::from_millis(500)) {
            return;
        }
        let progress = session.progress();
        let samples = progress.samples();
        if self.drawn {
            self.rate = (samples - self.samples.min(samples)) as f64 / since.as_secs_f64();
        }
        (self.last, self.samples, self.drawn) = (Instant::now(), samples, true);
        let elapsed = vmscope_sampler::session::now()
            .since(session.began())
            .as_secs_f64();
        let _ = write!(
            std::io::stderr(),
            "\r\x1b[Kvmscope: {elapsed:.1} s  {samples} samples  {:.0}/s  {} lost  {}  (Ctrl-C ends)",
            self.rate,
            progress.lost(),
            bytes(progress.bytes()),
        );
    }

    pub(super) fn clear(&mut self) {
        if self.drawn {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
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
