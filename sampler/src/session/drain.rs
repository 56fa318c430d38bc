//! The drain thread: empties the engine without waiting for other threads.

use super::describe::now;
use super::messages::Message;
use super::progress::Progress;
use crate::engine::{Engine, EngineError, EngineEvent, EngineState};
use crate::priority::{Scheduling, raise_this_thread};
use crossbeam_channel::{Sender, TrySendError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vmscope_records::{EndReason, Limit, LimitKind, LossReason, TimeNs};

/// Longest sleep. Ten wake-ups a second cost nothing measurable.
const ROUND: Duration = Duration::from_millis(100);

/// Sleep for adapters that ask for samples at once, and at the beginning: a VM starts, and the adapters read
/// it from its first mapping on.
const SHORT_ROUND: Duration = Duration::from_millis(20);

/// Length of the beginning.
const BEGINNING: Duration = Duration::from_secs(1);

/// Limit of held-back events. Samples are not held back; later samples refer to the other events.
const MAX_HELD_BACK: usize = 1 << 20;

pub(super) struct Drain {
    pub engine: Box<dyn Engine>,
    pub out: Sender<Message>,
    pub progress: Arc<Progress>,
    pub deadline: Option<TimeNs>,
}

/// Overflow of the channel.
#[derive(Debug, Default)]
struct Overrun {
    samples: u64,
    from: Option<TimeNs>,
    to: TimeNs,
    held_back: Vec<EngineEvent>,
    /// Events beyond [`MAX_HELD_BACK`].
    dropped: u64,
}

impl Drain {
    /// Runs until the target's exit or a stop request.
    pub fn run(mut self, scheduling: &Sender<Scheduling>) -> Result<(), EngineError> {
        // The session may be gone already.
        let _ = scheduling.send(raise_this_thread());
        let began = Instant::now();
        let mut overrun = Overrun::default();
        let mut failure = None;
        let reason = loop {
            if let Some(reason) = self.progress.stop_reason() {
                break reason;
            }
            let mut timeout = match began.elapsed() < BEGINNING {
                true => SHORT_ROUND,
                false => self.progress.samples_within().clamp(SHORT_ROUND, ROUND),
            };
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
                Ok(EngineState::TargetsGone) => {
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
        let ended = now();
        let finished = self.engine.finish(&mut events);
        events.extend(overrun.loss());
        events.extend(overrun.told_of_dropped());
        let detail = match (&failure, &finished) {
            (Some(error), _) | (None, Err(error)) => error.to_string(),
            (None, Ok(())) if reason == EndReason::MemoryFull => {
                "vmscope reached its maximum memory".to_owned()
            }
            (None, Ok(())) => String::new(),
        };
        // Sampling has stopped, so blocking is harmless.
        self.progress.put_stacks(&mut events);
        let _ = self.out.send(Message::Events(events));
        let _ = self.out.send(Message::End(ended, reason, detail));
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
        self.progress.put_stacks(&mut events);
        match self.out.try_send(Message::Events(events)) {
            Ok(()) => {}
            // Without a writer, sampling is useless.
            Err(TrySendError::Disconnected(_)) => self.progress.ask_to_stop(EndReason::WriteFailed),
            Err(TrySendError::Full(Message::Events(events))) => {
                overrun.keep(events, &self.progress);
            }
            Err(TrySendError::Full(_)) => {}
        }
    }
}

impl Overrun {
    /// Counts samples as lost; holds other events back.
    fn keep(&mut self, events: Vec<EngineEvent>, progress: &Progress) {
        for event in events {
            self.from.get_or_insert(event.time());
            self.to = self.to.max(event.time());
            match event {
                EngineEvent::Sample(sample) => {
                    progress.take_stack(&sample);
                    self.samples += 1;
                }
                other if self.held_back.len() < MAX_HELD_BACK => self.held_back.push(other),
                _ => self.dropped += 1,
            }
        }
    }

    /// The limit for dropped events other than samples.
    fn told_of_dropped(&self) -> Option<EngineEvent> {
        (self.dropped > 0).then(|| {
            EngineEvent::Limit(Limit {
                time: self.to,
                kind: LimitKind::NotSampled,
                text: format!(
                    "{} events of threads and mappings were lost because the writer was too slow: \
                     samples may lack thread or function names",
                    self.dropped
                ),
                remedy: "a faster disk".to_owned(),
            })
        })
    }

    fn take_held_back(&mut self) -> Vec<EngineEvent> {
        std::mem::take(&mut self.held_back)
    }

    /// The loss since the last call, for the next batch. An overflowing batch counts its loss
    /// again.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{EngineDescription, RawSample};
    use crossbeam_channel::bounded;
    use vmscope_records::{Avma, CpuMode, DurationNs, Pid, SampleClock, Tid};

    /// Emits three samples and a renaming per round, for ten rounds.
    struct Script {
        description: EngineDescription,
        round: u64,
    }

    impl Engine for Script {
        fn description(&self) -> &EngineDescription {
            &self.description
        }

        fn drain(
            &mut self,
            _: Duration,
            out: &mut Vec<EngineEvent>,
        ) -> Result<EngineState, EngineError> {
            if self.round == 10 {
                return Ok(EngineState::TargetsGone);
            }
            let (pid, tid) = (Pid(1), Tid(1));
            for sample in 0..3 {
                out.push(EngineEvent::Sample(RawSample {
                    time: TimeNs(self.round * 10 + sample),
                    pid,
                    tid,
                    pc: Avma(0),
                    mode: CpuMode::User,
                    detail: None,
                }));
            }
            let time = TimeNs(self.round * 10 + 5);
            let name = format!("round {}", self.round);
            out.push(EngineEvent::Renamed {
                time,
                pid,
                tid,
                name,
            });
            self.round += 1;
            Ok(EngineState::Running)
        }

        fn finish(&mut self, _: &mut Vec<EngineEvent>) -> Result<(), EngineError> {
            Ok(())
        }
    }

    #[test]
    fn a_writer_that_is_held_up_costs_samples_which_are_counted_and_nothing_else() {
        let (out, inbox) = bounded(2);
        let description = EngineDescription {
            name: "script",
            clock: SampleClock::Cpu,
            period: DurationNs(1),
            kernel_included: true,
            began: TimeNs(0),
            limits: Vec::new(),
        };
        let drain = Drain {
            engine: Box::new(Script {
                description,
                round: 0,
            }),
            out,
            progress: Arc::new(Progress::default()),
            deadline: None,
        };
        let (scheduling, _words) = bounded(1);
        let running = std::thread::spawn(move || drain.run(&scheduling));
        // The script ends before the first read; the thread then blocks in its last send.
        while !inbox.is_full() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        let mut samples = 0;
        let mut lost = 0;
        let mut names = Vec::new();
        let mut reason = None;
        for message in &inbox {
            match message {
                Message::Events(events) => {
                    for event in events {
                        match event {
                            EngineEvent::Sample(_) => samples += 1,
                            EngineEvent::Renamed { name, .. } => names.push(name),
                            EngineEvent::Lost { count, reason, .. } => {
                                assert_eq!(reason, LossReason::ChannelOverrun);
                                lost += count;
                            }
                            _ => {}
                        }
                    }
                }
                Message::End(_, why, _) => {
                    reason = Some(why);
                    break;
                }
                _ => {}
            }
        }
        running.join().unwrap().unwrap();
        assert_eq!(reason, Some(EndReason::TargetExited));
        assert_eq!(samples + lost, 30, "{samples} delivered, {lost} lost");
        assert!(lost > 0);
        let told: Vec<String> = (0..10).map(|round| format!("round {round}")).collect();
        assert_eq!(names, told, "what is not a sample waits, in its order");
    }
}
