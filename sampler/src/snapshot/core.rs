//! All threads of a core file once.

use super::{BATCH, Shutter, description, is_released, stack_from};
use crate::engine::{Engine, EngineDescription, EngineError, EngineEvent, EngineState, RawSample};
use crate::session::{now, unwind::innermost};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use vmscope_process::{CoreThread, MapEntry, Memory, ProcessView};
use vmscope_records::{Avma, CpuMode, Pid, SampleDetail};

/// Waits for its shutter, then emits the threads of a core file in the order of the file.
pub struct CoreEngine {
    description: EngineDescription,
    pid: Pid,
    name: String,
    memory: Arc<dyn Memory>,
    mappings: Arc<[MapEntry]>,
    threads: std::vec::IntoIter<CoreThread>,
    shutter: Arc<AtomicBool>,
}

impl std::fmt::Debug for CoreEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoreEngine")
            .field("pid", &self.pid)
            .field("threads", &self.threads.len())
            .finish_non_exhaustive()
    }
}

impl CoreEngine {
    /// An engine for the threads of `view`, a core file.
    #[must_use]
    pub fn new(view: &ProcessView, threads: Vec<CoreThread>) -> (Self, Shutter) {
        let (shutter, released) = Shutter::new();
        let engine = CoreEngine {
            description: description(),
            pid: view.pid(),
            name: view.name().to_owned(),
            memory: view.shared_memory(),
            mappings: view.mappings(),
            threads: threads.into_iter(),
            shutter: released,
        };
        (engine, shutter)
    }

    fn thread(&self, thread: CoreThread, out: &mut Vec<EngineEvent>) {
        let (time, pid, tid) = (now(), self.pid, thread.tid);
        out.push(EngineEvent::ThreadStarted {
            time,
            pid,
            tid,
            parent_tid: None,
            name: Some(self.name.clone()),
            cpu_before: thread.cpu,
        });
        let frame = thread.registers.as_ref().and_then(innermost);
        let stack = frame.map(|frame| stack_from(&*self.memory, Avma(frame.sp), &self.mappings));
        out.push(EngineEvent::Sample(RawSample {
            time,
            pid,
            tid,
            pc: Avma(frame.map_or(0, |frame| frame.pc)),
            mode: CpuMode::User,
            detail: Some(Box::new(SampleDetail {
                registers: thread.registers,
                stack,
                ..SampleDetail::default()
            })),
        }));
    }
}

impl Engine for CoreEngine {
    fn description(&self) -> &EngineDescription {
        &self.description
    }

    fn drain(
        &mut self,
        timeout: Duration,
        out: &mut Vec<EngineEvent>,
    ) -> Result<EngineState, EngineError> {
        if !is_released(&self.shutter, timeout) {
            return Ok(EngineState::Running);
        }
        for _ in 0..BATCH {
            let Some(thread) = self.threads.next() else {
                return Ok(EngineState::TargetsGone);
            };
            self.thread(thread, out);
        }
        Ok(EngineState::Running)
    }

    fn finish(&mut self, _: &mut Vec<EngineEvent>) -> Result<(), EngineError> {
        Ok(())
    }
}
