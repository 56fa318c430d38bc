//! Placing the samples of a step.

use super::Live;
use crate::profile::Profile;
use crate::trace::Upcoming;
use crate::zone::{Growing, ZoneEvent};
use vmscope_records::{Sample, TimeNs};

impl Upcoming<ZoneEvent> for Growing {
    fn next_time(&mut self) -> Option<TimeNs> {
        Growing::next_time(self)
    }

    fn take_next(&mut self) -> Option<ZoneEvent> {
        Growing::take_next(self)
    }
}

impl Live {
    /// Places all waiting samples before `until`, and applies all changes before it.
    pub(super) fn place(&mut self, profile: &mut Profile, until: TimeNs) {
        let trace = &mut profile.trace;
        let first = trace.samples.times.len();
        // The last step includes the last instant.
        let is_settled = |sample: &Sample| sample.time < until || until == TimeNs(u64::MAX);
        let count = self
            .waiting
            .iter()
            .take_while(|sample| is_settled(sample))
            .count();
        let samples: Vec<Sample> = self.waiting.drain(..count).collect();
        let late = samples.iter().filter(|sample| sample.time < self.settled);
        self.omitted.late_samples += late.count() as u64;
        let (changes, growing) = (&mut self.changes, &mut self.growing);
        self.placing.expect_more();
        // A live view sets its own bounds.
        let _ = self.placing.place(trace, &samples, changes, growing);
        trace.samples.put_in_order_from(first);
        // Changes after the last sample, too.
        if let Some(last) = until.0.checked_sub(1) {
            self.placing.advance(trace, TimeNs(last), changes, growing);
        }
        self.settled = until;
        trace.ending.last_time = trace.ending.last_time.max(self.placing.latest);
        let places = self.placing.world.places();
        for &place in places.iter().skip(trace.places.len()) {
            trace.places.push(place);
        }
    }
}
