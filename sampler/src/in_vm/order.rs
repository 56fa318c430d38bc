//! Sorts events by time.
//!
//! A thread reads the clock, then reserves space in the ring for its sample. Interrupts between the
//! two steps leave the ring only nearly sorted by time. Therefore vmscope holds samples back for a
//! round. A sample older than already released events gets the horizon as its time, and counts as
//! late.

use vmscope_records::TimeNs;

use crate::engine::EngineEvent;

#[derive(Debug)]
pub(super) struct Order {
    pending: Vec<(u64, EngineEvent)>,
    horizon: u64,
    late: u64,
}

impl Order {
    /// An empty queue, with the horizon at `began`.
    pub fn new(began: u64) -> Self {
        Self {
            pending: Vec::new(),
            horizon: began,
            late: 0,
        }
    }

    /// No released event is later than the horizon, and no pending event earlier.
    pub fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Number of samples whose time was changed.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Adds an event.
    pub fn push(&mut self, time: u64, mut event: EngineEvent) {
        let time = if time < self.horizon {
            if let EngineEvent::Sample(sample) = &mut event {
                sample.time = TimeNs(self.horizon);
                self.late += 1;
            }
            self.horizon
        } else {
            time
        };
        self.pending.push((time, event));
    }

    /// Appends the events up to `horizon` to `out`, sorted by time. Events with equal times keep
    /// their arrival order.
    pub fn release(&mut self, horizon: u64, out: &mut Vec<EngineEvent>) {
        self.pending.sort_by_key(|(time, _)| *time);
        let ready = self.pending.partition_point(|(time, _)| *time <= horizon);
        out.extend(self.pending.drain(..ready).map(|(_, event)| event));
        self.horizon = self.horizon.max(horizon);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::RawSample;
    use vmscope_records::{Avma, CpuMode, Pid, Tid};

    fn sample(time: u64, pc: u64) -> EngineEvent {
        EngineEvent::Sample(RawSample {
            time: TimeNs(time),
            pid: Pid(1),
            tid: Tid(1),
            pc: Avma(pc),
            mode: CpuMode::User,
            detail: None,
        })
    }

    #[test]
    fn events_come_in_order_and_late_ones_are_counted() {
        let (mut order, mut out) = (Order::new(10), Vec::new());
        order.push(30, sample(30, 1));
        order.push(20, sample(20, 2));
        order.release(25, &mut out);
        order.push(24, sample(24, 3));
        order.push(26, sample(26, 4));
        order.release(u64::MAX, &mut out);
        let seen: Vec<(u64, u64)> = out
            .iter()
            .map(|event| match event {
                EngineEvent::Sample(sample) => (sample.time.0, sample.pc.0),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(seen, [(20, 2), (25, 3), (26, 4), (30, 1)]);
        assert_eq!(order.late(), 1);
    }
}
