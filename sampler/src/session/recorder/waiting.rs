//! Samples that wait for a VM's rules. A program begins before vmscope has recognised its VM: until then, the VM's frames have
//! no rules, and their callers are unknown.

use std::collections::VecDeque;

use super::{Recorder, record_of};
use crate::engine::RawSample;
use vmscope_records::{ChainEnd, DurationNs, Pid, Record, ThreadKey, TimeNs};

/// Age of a program up to which its samples wait. On a quiet machine, vmscope has the rules of a Node.js after some 40 ms.
const YOUNG: DurationNs = DurationNs(300_000_000);

/// Maximum number of waiting samples: 24 MiB of stacks, by default.
const MAX_WAITING: usize = 256;

/// Samples in the order of their times, the first of which waits.
#[derive(Debug, Default)]
pub(super) struct WaitingSamples {
    samples: VecDeque<Queued>,
    /// Number of those that wait.
    waiting: usize,
}

#[derive(Debug)]
struct Queued {
    thread: ThreadKey,
    sample: RawSample,
    /// For a sample that waits, its stack beyond the copy.
    waits: Option<Vec<u8>>,
}

impl Recorder {
    /// Passes on a sample with its callers, after those that wait, or keeps it.
    pub(super) fn pass_on(
        &mut self,
        (thread, mut sample): (ThreadKey, RawSample),
        out: &mut Vec<Record>,
    ) {
        if self.waiting.waiting >= MAX_WAITING {
            self.release_all(out);
        }
        let has_rules = self.walk(&mut sample, None);
        let waits = match !has_rules && self.may_get_rules(sample.pid, sample.time) {
            true => self.keep(&sample),
            false => None,
        };
        match &waits {
            Some(_) => self.waiting.waiting += 1,
            None => self.strip(&mut sample),
        }
        if waits.is_none() && self.waiting.samples.is_empty() {
            out.push(record_of(thread, sample));
            return;
        }
        let now = sample.time;
        self.waiting.samples.push_back(Queued {
            thread,
            sample,
            waits,
        });
        self.release(now, out);
    }

    /// Time of the first waiting sample.
    pub fn waiting_since(&self) -> Option<TimeNs> {
        let first = self.waiting.samples.front();
        first.map(|first| first.sample.time)
    }

    /// Passes on the samples before the first that still waits at `now`.
    pub fn release(&mut self, now: TimeNs, out: &mut Vec<Record>) {
        while let Some(first) = self.waiting.samples.front() {
            if first.waits.is_some() && self.may_get_rules(first.sample.pid, now) {
                break;
            }
            let Some(Queued {
                thread,
                mut sample,
                waits,
            }) = self.waiting.samples.pop_front()
            else {
                break;
            };
            if let Some(beyond) = waits {
                self.waiting.waiting -= 1;
                self.walk(&mut sample, Some(beyond));
                self.strip(&mut sample);
            }
            out.push(record_of(thread, sample));
        }
    }

    /// Passes on all samples.
    pub fn release_all(&mut self, out: &mut Vec<Record>) {
        self.release(TimeNs(u64::MAX), out);
    }

    /// Notes the pc of a sample that waits. Returns its stack beyond the copy; `None` for a sample without a stack.
    fn keep(&mut self, sample: &RawSample) -> Option<Vec<u8>> {
        let process = self.processes.get_mut(&sample.pid)?;
        let beyond = process.unwound.beyond(sample.detail.as_ref()?)?;
        process.generated.touch_pc(sample.mode, sample.pc);
        Some(beyond)
    }

    /// Gives a sample its callers. Returns whether all frames have rules. `beyond`: its stack beyond the copy, if it waited.
    fn walk(&mut self, sample: &mut RawSample, beyond: Option<Vec<u8>>) -> bool {
        let (Some(process), Some(unwinding), Some(detail)) = (
            self.processes.get_mut(&sample.pid),
            &mut self.unwinding,
            &mut sample.detail,
        ) else {
            return true;
        };
        let space = (&mut process.unwound, &process.generated);
        let of = (sample.mode, sample.time, sample.tid);
        let values = unwinding.unwind((detail, beyond), of, space, &self.modules);
        process.generated.touch(values);
        let chain = detail.chain.as_ref();
        chain.is_none_or(|chain| !chain.guessed && chain.end != ChainEnd::Broken)
    }

    /// Notes a sample's addresses, and takes from it what is not recorded.
    fn strip(&mut self, sample: &mut RawSample) {
        if let Some(process) = self.processes.get_mut(&sample.pid) {
            (process.generated).sampled(sample, &self.sources, &mut self.hits);
        }
    }

    /// Whether an adapter may soon have rules for the young program of a process.
    fn may_get_rules(&self, pid: Pid, now: TimeNs) -> bool {
        let process = self.processes.get(&pid);
        self.process_table.is_some()
            && process.is_some_and(|process| {
                let is_young = |began: TimeNs| now.since(began) < YOUNG;
                !process.has_rules && process.began.is_some_and(is_young)
            })
    }
}

#[cfg(test)]
mod tests;
