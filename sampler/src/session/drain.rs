//! The draining thread: empties the engine and never waits for anybody else.

use super::{Message, Progress, now};
use crate::engine::{Engine, EngineError, EngineEvent, EngineState};
use crate::priority::raise_this_thread;
use crossbeam_channel::{Sender, TrySendError};
use std::sync::Arc;
use std::time::Duration;
use vmscope_records::{EndReason, LossReason, TimeNs};

/// How long it sleeps at most. Ten wake-ups a second cost nothing that shows.
const ROUND: Duration = Duration::from_millis(100);

/// Events other than samples that may wait for room in the channel: none of them may
/// be lost as long as memory lasts, since later samples refer to them.
const MAX_HELD_BACK: usize = 1 << 20;

pub(super) struct Drain {
    pub engine: Box<dyn Engine>,
    pub out: Sender<Message>,
    pub progress: Arc<Progress>,
    pub deadline: Option<TimeNs>,
}

/// What did not fit into the channel.
#[derive(Debug, Default)]
struct Overrun {
    samples: u64,
    from: Option<TimeNs>,
    to: TimeNs,
    held_back: Vec<EngineEvent>,
}

impl Drain {
    /// Runs until the target is gone or the session is asked to stop.
    pub fn run(mut self, scheduling: &Sender<String>) -> Result<(), EngineError> {
        // If the session is gone already, it does not want to know.
        let _ = scheduling.send(raise_this_thread().words);
        let mut overrun = Overrun::default();
        let mut failure = None;
        let reason = loop {
            if let Some(reason) = self.progress.stop_reason() {
                break reason;
            }
            let mut timeout = ROUND;
            if let Some(deadline) = self.deadline {
                let left = deadline.since(now());
                if left.0 == 0 {
                    self.progress.ask_to_stop(EndReason::DurationOver);
                    continue;
                }
                timeout = timeout.min(Duration::from_nanos(left.0));
            }
            let mut events = overrun.take_held_back();
            match self.engine.drain(timeout, &mut events) {
                Ok(EngineState::Running) => self.hand_over(events, &mut overrun),
                Ok(EngineState::TargetGone) => {
                    self.hand_over(events, &mut overrun);
                    break EndReason::TargetExited;
                }
                Err(error) => {
                    self.hand_over(events, &mut overrun);
                    failure = Some(error);
                    break EndReason::EngineFailed;
                }
            }
        };
        self.progress.ask_to_stop(reason);
        let mut events = overrun.take_held_back();
        let finished = self.engine.finish(&mut events);
        events.extend(overrun.loss());
        let detail = match (&failure, &finished) {
            (Some(error), _) | (None, Err(error)) => error.to_string(),
            (None, Ok(())) => String::new(),
        };
        // The end may wait: nothing is sampled any more.
        let _ = self.out.send(Message::Events(events));
        let _ = self.out.send(Message::End(reason, detail));
        match failure {
            Some(error) => Err(error),
            None => finished,
        }
    }

    fn hand_over(&self, mut events: Vec<EngineEvent>, overrun: &mut Overrun) {
        events.extend(overrun.loss());
        if events.is_empty() {
            return;
        }
        match self.out.try_send(Message::Events(events)) {
            // A writer that is gone has said why; the session stops for it.
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(Message::Events(events))) => overrun.keep(events),
            Err(TrySendError::Full(_)) => {}
        }
    }
}

impl Overrun {
    /// Counts the samples and holds the rest back.
    fn keep(&mut self, events: Vec<EngineEvent>) {
        for event in events {
            self.from.get_or_insert(event.time());
            self.to = self.to.max(event.time());
            match event {
                EngineEvent::Sample(_) => self.samples += 1,
                other if self.held_back.len() < MAX_HELD_BACK => self.held_back.push(other),
                _ => {}
            }
        }
    }

    fn take_held_back(&mut self) -> Vec<EngineEvent> {
        std::mem::take(&mut self.held_back)
    }

    /// The loss so far, to be told with the next batch; counted again if that does
    /// not fit either, because it is held back then.
    fn loss(&mut self) -> Option<EngineEvent> {
        let count = std::mem::take(&mut self.samples);
        let from = self.from.take()?;
        (count > 0).then_some(EngineEvent::Lost {
            reason: LossReason::ChannelOverrun,
            count,
            from,
            to: self.to,
            tid: None,
        })
    }
}
