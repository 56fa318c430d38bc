//! The last walk of each thread. Its outer frames need no other walk while their callers are the same: deep
//! stacks change near the top only.
//!
//! The caller of a frame depends on the frame's registers, on the rules, and on the words that the rules read
//! from the stack. If a new walk meets a frame of the last walk, and the stack still has all words that led from
//! there to the thread's first frame, then the rest of both walks is the same.

use rustc_hash::FxHashMap;
use vmscope_process::{CopiedStack, FrameRegisters, WordRead};
use vmscope_records::{Avma, Tid};

/// Fewest frames of a walk that is remembered. Shorter walks take no longer than the comparison.
const LEAST: usize = 4;

/// Maximum number of threads with a remembered walk, each of up to some 40 KiB.
const MAX_THREADS: usize = 256;

/// Version of an address space's code, and of what its VMs' rules know.
pub(super) type Version = (u64, u64);

/// Last walks of threads.
#[derive(Debug, Default)]
pub(super) struct Recent(FxHashMap<Tid, LastWalk>);

/// A whole walk.
#[derive(Debug, Default)]
struct LastWalk {
    rules: Version,
    /// Callers with registers, the outermost first.
    frames: Vec<Walked>,
    /// Words that the rules have read, those of the outermost frames first.
    words: Vec<WordRead>,
    /// Addresses of the chain, the outermost first.
    chain: Vec<Avma>,
    /// Method objects, those of the outermost frames first.
    values: Vec<Avma>,
}

/// A caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Walked {
    registers: FrameRegisters,
    /// Number of words that were read from this caller outwards.
    words: usize,
    /// Number of the chain's addresses from this caller's address outwards.
    chain: usize,
    /// Likewise, of method objects.
    values: usize,
}

/// A walk, beside the thread's last.
#[derive(Debug, Default)]
pub(super) struct Walk {
    last: LastWalk,
    /// Stack pointer of the outermost frame of the last walk whose caller is another now, if known.
    differs_to: u64,
    /// Callers so far, the innermost first.
    frames: Vec<Met>,
    /// Number of frames of the last walk that end this walk.
    reused: usize,
    /// Whether other memory than the stack decides about callers.
    pub needs_memory: bool,
}

/// A caller that a walk meets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub registers: FrameRegisters,
    /// Index of the caller's address in the chain.
    pub own: usize,
    /// Number of method objects before.
    pub values: usize,
    /// Number of words that were read before.
    pub words: usize,
}

impl Recent {
    /// Begins a walk by code and rules of this version.
    pub fn begin(&mut self, thread: Tid, rules: Version) -> Walk {
        let last = self.0.remove(&thread).filter(|last| last.rules == rules);
        let last = last.unwrap_or_else(|| LastWalk {
            rules,
            ..LastWalk::default()
        });
        Walk {
            last,
            ..Walk::default()
        }
    }

    /// Remembers a walk that reached the thread's first frame. `words`: all words that were read.
    pub fn end(
        &mut self,
        thread: Tid,
        walk: Walk,
        (chain, values): (&[Avma], &[Avma]),
        words: &[WordRead],
    ) {
        if !walk.needs_memory {
            self.put(thread, walk.into_last((chain, values), words));
        }
    }

    /// Keeps the last walk instead of one that did not reach the thread's first frame.
    pub fn give_up(&mut self, thread: Tid, walk: Walk) {
        self.put(thread, walk.last);
    }

    fn put(&mut self, thread: Tid, walk: LastWalk) {
        if walk.frames.len() < LEAST {
            return;
        }
        if self.0.len() >= MAX_THREADS {
            self.0.clear();
        }
        self.0.insert(thread, walk);
    }
}

impl LastWalk {
    /// The words that were read from a frame outwards; the frame's own words come last.
    fn words_from(&self, frame: &Walked) -> &[WordRead] {
        self.words.get(..frame.words).unwrap_or_default()
    }

    /// Stack pointer of the frame whose rule has read the word with this number.
    fn reader_of(&self, word: usize) -> u64 {
        let reader = self.frames.partition_point(|frame| frame.words <= word);
        let reader = self.frames.get(reader);
        reader.map_or(u64::MAX, |frame| frame.registers.sp)
    }
}

impl Walk {
    /// Takes a caller. If the last walk had it, with all its callers, adds the rest of that walk to the chain and
    /// to the method objects, and returns `true`.
    pub fn meets(
        &mut self,
        met: Met,
        (chain, values): (&mut Vec<Avma>, &mut Vec<Avma>),
        stack: &CopiedStack<'_>,
        max_depth: usize,
    ) -> bool {
        if let Some(number) = self.number_of(met.registers, stack)
            && let Some(frame) = self.last.frames.get(number)
            && met.own + frame.chain <= max_depth
        {
            chain.truncate(met.own);
            chain.extend(self.last.chain.iter().take(frame.chain).rev());
            values.extend(self.last.values.iter().take(frame.values).rev());
            self.reused = number + 1;
            return true;
        }
        self.frames.push(met);
        false
    }

    /// Index of a caller in the last walk, if the stack outwards still leads to the same callers.
    fn number_of(&mut self, registers: FrameRegisters, stack: &CopiedStack<'_>) -> Option<usize> {
        if registers.sp <= self.differs_to {
            return None;
        }
        let frames = &self.last.frames;
        let above = frames.partition_point(|frame| frame.registers.sp > registers.sp);
        let same = frames.get(above..).unwrap_or_default().iter();
        let mut same = same.take_while(|frame| frame.registers.sp == registers.sp);
        let number = above + same.position(|frame| frame.registers == registers)?;
        let words = self.last.words_from(frames.get(number)?);
        let differs = |(at, word): &WordRead| stack.word(*at) != *word;
        if let Some(word) = words.iter().position(differs) {
            self.differs_to = self.last.reader_of(word);
            return None;
        }
        Some(number)
    }

    fn into_last(mut self, (chain, values): (&[Avma], &[Avma]), words: &[WordRead]) -> LastWalk {
        let mut last = std::mem::take(&mut self.last);
        last.frames.truncate(self.reused);
        let kept = last.frames.last().copied();
        last.words.truncate(kept.map_or(0, |frame| frame.words));
        last.chain.truncate(kept.map_or(0, |frame| frame.chain));
        last.values.truncate(kept.map_or(0, |frame| frame.values));
        let from = |all: &[Avma], before: usize| all.len().saturating_sub(before);
        let mut end = words.len();
        for met in self.frames.iter().rev() {
            let own = words.get(met.words..end).unwrap_or_default();
            last.words.extend_from_slice(own);
            end = met.words;
            last.frames.push(Walked {
                registers: met.registers,
                words: last.words.len(),
                chain: from(chain, met.own),
                values: from(values, met.values),
            });
        }
        let known = last
            .frames
            .last()
            .map_or((0, 0), |frame| (frame.chain, frame.values));
        let new = chain.iter().rev().take(known.0);
        last.chain.extend(new.skip(last.chain.len()).copied());
        let new = values.iter().rev().take(known.1);
        last.values.extend(new.skip(last.values.len()).copied());
        last
    }
}

#[cfg(test)]
mod tests;
