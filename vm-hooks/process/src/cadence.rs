//! The adaptive pause between polls.

use std::time::Duration;

/// Pause between polls: halved after polls with many changes, increased by half after polls
/// without changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cadence {
    shortest: Duration,
    longest: Duration,
    current: Duration,
    much: usize,
}

impl Cadence {
    /// Starts with a pause of `shortest`, which polls with at least `much` changes halve.
    #[must_use]
    pub fn new(shortest: Duration, longest: Duration, much: usize) -> Self {
        Self {
            shortest,
            longest: longest.max(shortest),
            current: shortest,
            much: much.max(1),
        }
    }

    /// Adapts the pause to the number of changes in a poll.
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

    /// The current pause.
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
