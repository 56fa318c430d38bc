//! Virtual threads on their carriers. After a wait, a thread has only its innermost frames on the
//! carrier's stack; the outermost of these returns to a barrier, which fetches the next frame from
//! the heap.
//!
//! A sample has the stack of its time, but vmscope reads the heap some tenths of a second later. A
//! reading counts only if the heap held the same frames at the sample's time: readings before and after
//! the sample find the same thread with equal numbers of frames in the heap, and the thread stayed
//! mounted in between. While a thread is mounted, frames only leave the heap; equal numbers thus mean
//! that no frame has left.
//!
//! The carrier shows whether a thread stayed mounted. For each task, it makes new frames below the
//! thread. These hold the scheduler's random numbers, which change with each task from other queues;
//! each task from the carrier's own queue changes that queue's counters. The sample's own stack must
//! have the same frames.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vmscope_process::{Frame, FrameRegisters, OtherFrame, Unwound, monotonic_time};
use vmscope_records::{Avma, ChainEnd, TimeNs};

use super::HotSpotUnwinder;
use super::chunk::frames_in;
use crate::code::BlobKind;
use crate::continuations::{Chunk, Continuations, Queue};
use crate::layout::encodings::continuation_entry;

/// Maximum number of threads that are remembered.
const MAX_READINGS: usize = 1 << 10;

/// Maximum number of a carrier's frames below a virtual thread.
const MAX_CARRIER_FRAMES: usize = 64;

/// Maximum size of these frames in bytes.
const MAX_CARRIER: usize = 1 << 14;

/// What unwinding virtual threads needs.
#[derive(Debug)]
pub(crate) struct VirtualThreads {
    /// `StubRoutines::_cont_returnBarrier`.
    pub return_barrier: Avma,
    /// Address of `ContinuationEntry::_return_pc`.
    pub return_pc_at: Avma,
    /// Reader of the heap.
    pub continuations: Continuations,
}

/// Readings of threads, by the stack pointer behind their outermost frame on the stack.
#[derive(Debug, Default)]
pub(super) struct Readings(FxHashMap<u64, Reading>);

/// The last reading of a thread.
#[derive(Clone, Debug)]
struct Reading {
    /// Time of the reading.
    at: TimeNs,
    mounted: Option<Mounted>,
}

#[derive(Clone, Debug)]
struct Mounted {
    /// Time since which all readings have found the same.
    since: TimeNs,
    found: Found,
    frames: Arc<[OtherFrame]>,
}

/// What a reading finds of a thread and its carrier.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    /// Stack pointer of `Continuation.enterSpecial`, and the end of its frame without the link.
    entry: (u64, u64),
    return_pc: u64,
    continuation: Avma,
    tail: Chunk,
    queue: Queue,
    /// The carrier's words from the end of `entry` on.
    carrier: Vec<u8>,
}

impl HotSpotUnwinder {
    /// Whether a return address leads to frames in the heap.
    pub(super) fn is_barrier(&self, pc: u64) -> bool {
        let threads = self.threads.as_ref();
        threads.is_some_and(|threads| threads.return_barrier.0 == pc)
    }

    /// The callers in the heap of a frame that returns to the barrier, and the carrier's frame.
    pub(super) fn beyond_barrier(
        &mut self,
        frame: &Frame<'_>,
        unwound: Unwound,
    ) -> Result<Unwound, ChainEnd> {
        let sp = unwound.caller.sp;
        let is_older = |reading: &Reading| reading.at < frame.time;
        if self.readings.0.get(&sp).is_none_or(is_older) {
            self.read_mounted(frame, sp);
        }
        let reading = self.readings.0.get(&sp).ok_or(ChainEnd::Broken)?;
        let mounted = reading.mounted.as_ref().ok_or(ChainEnd::Broken)?;
        let is_proven = (mounted.since..=reading.at).contains(&frame.time);
        if !is_proven || !mounted.found.is_on(frame) {
            return Err(ChainEnd::Broken);
        }
        Ok(Unwound {
            caller: FrameRegisters {
                pc: mounted.found.return_pc,
                sp: mounted.found.entry.0,
                fp: 0,
            },
            between: Arc::clone(&mounted.frames),
            ..unwound
        })
    }

    fn read_mounted(&mut self, frame: &Frame<'_>, sp: u64) {
        let Some(mut threads) = self.threads.take() else {
            return;
        };
        let at = monotonic_time().unwrap_or(TimeNs(0));
        let before = self.readings.0.remove(&sp);
        let before = before.and_then(|reading| reading.mounted);
        let mounted = self.mounted(frame, sp, before, &mut threads);
        self.threads = Some(threads);
        if self.readings.0.len() >= MAX_READINGS {
            self.readings.0.clear();
        }
        self.readings.0.insert(sp, Reading { at, mounted });
    }

    fn mounted(
        &mut self,
        frame: &Frame<'_>,
        sp: u64,
        before: Option<Mounted>,
        threads: &mut VirtualThreads,
    ) -> Option<Mounted> {
        let found = self.found(frame, sp, threads)?;
        if let Some(before) = before
            && before.found == found
        {
            return Some(before);
        }
        let memory = Arc::clone(&self.memory);
        let chunk_at = |at| threads.continuations.chunk(&*memory, at);
        let mut code_at = |pc: u64| {
            let piece = self.is_return(pc, BlobKind::Nmethod);
            let piece = piece.then(|| self.piece(pc.wrapping_sub(1)))??;
            Some((piece.kind, piece.frame_bytes))
        };
        let frames = frames_in(&*memory, found.tail, &chunk_at, &mut code_at)?;
        // What was read in between belongs together.
        let again = self.found(frame, sp, threads)?;
        (again == found).then(|| {
            Some(Mounted {
                since: monotonic_time()?,
                found,
                frames: frames.into(),
            })
        })?
    }

    fn found(&mut self, frame: &Frame<'_>, sp: u64, threads: &mut VirtualThreads) -> Option<Found> {
        let memory = Arc::clone(&self.memory);
        let return_pc = memory.read_u64(threads.return_pc_at).ok()?;
        let frame_bytes = self.piece(return_pc.checked_sub(1)?)?.frame_bytes;
        let (entry, continuation, tail) = entries(frame, sp).find_map(|entry| {
            let at = entry.checked_add(continuation_entry::CONTINUATION)?;
            let continuation = Avma(memory.read_u64(Avma(at)).ok()?);
            let tail = threads.continuations.tail(&*memory, continuation)?;
            Some((entry, continuation, tail))
        })?;
        let entry_end = entry.checked_add(frame_bytes)?.checked_sub(16)?;
        let carrier_end = self.carrier_end(frame, (return_pc, entry))?;
        let length = carrier_end.checked_sub(entry_end)?;
        Some(Found {
            entry: (entry, entry_end),
            return_pc,
            continuation,
            tail,
            queue: threads.continuations.queue(&*memory, entry)?,
            carrier: memory.read_vec(Avma(entry_end), length, MAX_CARRIER).ok()?,
        })
    }

    /// End of the carrier's Java frames, by the sample's stack.
    fn carrier_end(&mut self, frame: &Frame<'_>, (pc, sp): (u64, u64)) -> Option<u64> {
        let mut registers = FrameRegisters { pc, sp, fp: 0 };
        for _ in 0..MAX_CARRIER_FRAMES {
            let now = Frame {
                registers,
                sampled: None,
                ..*frame
            };
            let caller = self.unwind(&now).ok()?.caller;
            if caller.sp <= registers.sp || self.is_barrier(caller.pc) {
                return None;
            }
            if !self.blobs.holds(Avma(caller.pc)) {
                return Some(caller.sp);
            }
            registers = caller;
        }
        None
    }
}

/// Possible places of the continuation's entry above `sp`, by the sample's stack: stack arguments of the
/// outermost thawed frame lie in between, aligned.
fn entries(frame: &Frame<'_>, sp: u64) -> impl Iterator<Item = u64> {
    let places =
        (0..=continuation_entry::MAX_ARGUMENTS + 1).map(move |words| sp.wrapping_add(8 * words));
    places.filter(move |entry| {
        let at = entry.wrapping_add(continuation_entry::ARGUMENTS & !7);
        let arguments = frame.word(at).map(|word| word >> 32);
        arguments.is_ok_and(|words| {
            let below = entry.wrapping_sub(words.wrapping_mul(8)) & !15;
            entry % 16 == 0 && words <= continuation_entry::MAX_ARGUMENTS && below == sp
        })
    })
}

impl Found {
    /// Whether the sample's stack has the same carrier with the same continuation.
    fn is_on(&self, frame: &Frame<'_>) -> bool {
        let (entry, end) = self.entry;
        let continuation = frame.word(entry.wrapping_add(continuation_entry::CONTINUATION));
        let copied = frame.stack.bytes(end, self.carrier.len());
        continuation == Ok(self.continuation.0) && copied == Some(&self.carrier)
    }
}

#[cfg(test)]
mod tests;
