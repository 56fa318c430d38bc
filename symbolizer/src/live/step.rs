//! The samples of a step, each put where its address was at its time.

use super::Live;
use crate::profile::Profile;
use vmscope_records::TimeNs;

impl Live {
    /// Places all samples that wait and were taken before `until`, with what changes
    /// applied as its time comes.
    pub(super) fn place(&mut self, profile: &mut Profile, until: TimeNs) {
        let trace = &mut profile.trace;
        let first = trace.samples.times.len();
        // Only the end takes those of the last instant.
        let is_end = until == TimeNs(u64::MAX);
        while self
            .waiting
            .front()
            .is_some_and(|sample| sample.time < until || is_end)
        {
            let Some(sample) = self.waiting.pop_front() else {
                break;
            };
            self.omitted.late_samples += u64::from(sample.time < self.settled);
            trace.disordered_samples += u64::from(sample.time < self.latest);
            self.latest = self.latest.max(sample.time);
            self.advance(trace, sample.time);
            trace.place_sample(&sample, &mut self.world, &mut self.last);
        }
        trace.samples.put_in_order_from(first);
        // What is told until then has happened.
        if let Some(last) = until.0.checked_sub(1) {
            self.advance(trace, TimeNs(last));
        }
        self.settled = until;
        trace.ending.last_time = trace.ending.last_time.max(self.latest);
        let places = self.world.places();
        let new = places.get(trace.places.len()..).unwrap_or_default();
        trace.places.extend_from_slice(new);
    }

    /// Applies what happens until `time`, that included.
    fn advance(&mut self, trace: &crate::trace::Trace, time: TimeNs) {
        loop {
            let change = self.changes.first_key_value().map(|((time, _), _)| *time);
            let event = self.growing.next_time();
            let Some(first) = change.into_iter().chain(event).min() else {
                return;
            };
            if first > time {
                return;
            }
            if event == Some(first) {
                // First, because a fork hands on the code that is there.
                if let Some(event) = self.growing.take_next() {
                    self.world.zone(event);
                }
            } else if let Some((_, change)) = self.changes.pop_first() {
                trace.bring_about(change, &mut self.world);
            }
        }
    }
}
