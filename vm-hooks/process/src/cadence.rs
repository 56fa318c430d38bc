//! How often to look.

use std::time::Duration;

/// How long to wait between polls: half as long after one that found much, half as
/// long again after one that found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cadence {
    shortest: Duration,
    longest: Duration,
    current: Duration,
    much: usize,
}

impl Cadence {
    /// Between `shortest` and `longest`, beginning with the shortest; `much` changes
    /// in one poll are too many to have waited so long.
    #[must_use]
    pub fn new(shortest: Duration, longest: Duration, much: usize) -> Self {
        Self {
            shortest,
            longest: longest.max(shortest),
            current: shortest,
            much: much.max(1),
        }
    }

    /// Takes note of how many changes a poll found.
    pub fn found(&mut self, changes: usize) {
        self.current = if changes >= self.much {
            self.current / 2
        } else if changes == 0 {
            self.current.saturating_add(self.current / 2)
        } else {
            self.current
        }
        .clamp(self.shortest, self.longest);
    }

    /// How long to wait.
    #[must_use]
    pub fn pause(&self) -> Duration {
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cadence_follows_what_is_found() {
        let ms = Duration::from_millis;
        let mut cadence = Cadence::new(ms(100), ms(1000), 10);
        for (found, pause) in [(0, 150), (0, 225), (3, 225), (10, 112), (99, 100)] {
            cadence.found(found);
            assert_eq!(cadence.pause().as_millis(), pause);
        }
        for _ in 0..20 {
            cadence.found(0);
        }
        assert_eq!(cadence.pause(), ms(1000));
    }
}
