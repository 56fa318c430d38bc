//! The last walk of each thread. Its outer frames need no other walk while their callers are the same: deep
//! stacks change near the top only.
//!
//! The caller of a frame depends on the frame's registers, on the rules, and on the words that the rules read
//! from the stack. If a new walk meets a frame of the last walk, and the stack still has all words that led from
//! there to the thread's first frame, then the rest of both walks is the same.
//!
//! A copy of a deep stack ends before the thread's first frame. The last walk shows the callers beyond, if the
//! frames below are the same activations: the bytes of their frames, local variables included, are equal in both
//! copies. If fewer bytes are equal, the process shows the words beyond the copy, later than the sample. If the last walk
//! read the same words, earlier than the sample, the sample's words were the same.

use std::ops::Range;

use rustc_hash::FxHashMap;
use vmscope_process::{CopiedStack, FrameRegisters, WordRead};
use vmscope_records::{Avma, StackBytes, Tid};

/// Fewest frames of a walk that is remembered. Shorter walks take no longer than the comparison.
const LEAST: usize = 4;

/// Maximum number of threads with a remembered walk, each of up to some 40 KiB and a copy of the stack.
const MAX_THREADS: usize = 256;

/// Fewest equal bytes, up to the end of one of the copies, of the same activations.
const SAME_BYTES: u64 = 256;

/// Likewise, fewest equal words that rules have read. A buffer that nothing has written is equal in other activations, too.
const SAME_WORDS: usize = 4;

/// Rules of an address space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Number of unwinders of VMs.
    pub vms: usize,
    /// Version of the code, and of what the unwinders know.
    pub version: (u64, u64),
}

/// Last walks of threads.
#[derive(Debug, Default)]
pub(super) struct Recent(FxHashMap<Tid, LastWalk>);

/// A whole walk.
#[derive(Debug, Default)]
struct LastWalk {
    rules: Rules,
    /// Callers with registers, the outermost first.
    frames: Vec<Walked>,
    /// Words that the rules have read, those of the outermost frames first.
    words: Vec<WordRead>,
    /// Addresses of the chain, the outermost first.
    chain: Vec<Avma>,
    /// Method objects, those of the outermost frames first.
    values: Vec<Avma>,
    /// The copied stack.
    stack: StackBytes,
    /// Whether callers were read later than the sample.
    is_late: bool,
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
    rules: Rules,
    /// Stack pointer of the outermost frame of the last walk whose caller is another now, if known.
    differs_to: u64,
    /// Callers so far, the innermost first.
    frames: Vec<Met>,
    /// Number of frames of the last walk that end this walk.
    reused: usize,
    /// Whether this rests on words beyond the copied stack.
    reuses_beyond: bool,
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
    pub fn begin(&mut self, thread: Tid, rules: Rules) -> Walk {
        Walk {
            last: self.0.remove(&thread).unwrap_or_default(),
            rules,
            ..Walk::default()
        }
    }

    /// Remembers a walk that reached the thread's first frame. `words`: all words that were read from `stack`. `is_late`: as
    /// [`Walk::is_late`].
    pub fn end(
        &mut self,
        thread: Tid,
        walk: Walk,
        (chain, values): (&[Avma], &[Avma]),
        (words, stack): (&[WordRead], &StackBytes),
        is_late: bool,
    ) {
        if !walk.needs_memory {
            let mut last = walk.into_last((chain, values), words);
            // The buffer of the walk before serves again.
            last.stack.sp = stack.sp;
            last.stack.bytes.clear();
            last.stack.bytes.extend_from_slice(&stack.bytes);
            last.is_late = is_late;
            self.put(thread, last);
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
        self.reuses_beyond = false;
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
        let is_beyond = |(at, word): &WordRead| word.is_ok() && at.saturating_add(8) > stack.end();
        let differs = |read: &WordRead| !is_beyond(read) && stack.word(read.0) != read.1;
        if let Some(word) = words.iter().position(differs) {
            self.differs_to = self.last.reader_of(word);
            return None;
        }
        let beyond = words.iter().filter(|read| is_beyond(read)).count();
        if beyond == 0 {
            self.differs_to = u64::MAX;
            return (self.last.rules == self.rules).then_some(number);
        }
        let equal = equal_bytes(&self.last.stack, stack);
        let is_long = equal.end - equal.start >= SAME_BYTES
            && registers.sp.saturating_add(SAME_BYTES) <= equal.end;
        if !is_long || self.last.rules.vms != self.rules.vms {
            self.differs_to = u64::MAX;
            return None;
        }
        let is_equal = equal.start <= registers.sp;
        let is_activation = is_equal && words.len() - beyond >= SAME_WORDS;
        let mut read = words.iter();
        if is_activation || read.all(|(at, word)| stack.word(*at) == *word) {
            self.reuses_beyond = true;
            return Some(number);
        }
        // Callers read fewer words in the copy, and the same beyond.
        self.differs_to = match is_equal {
            true => u64::MAX,
            false => equal.start - 1,
        };
        None
    }

    /// Whether the process's stack was read for callers after the sample, and nothing confirms them.
    pub fn is_late(&self, stack: &CopiedStack<'_>) -> bool {
        stack.has_read_later() || (self.reuses_beyond && self.last.is_late)
    }

    fn into_last(mut self, (chain, values): (&[Avma], &[Avma]), words: &[WordRead]) -> LastWalk {
        let mut last = std::mem::take(&mut self.last);
        // Callers beyond the copy are those of the last rules.
        if !self.reuses_beyond {
            last.rules = self.rules;
        }
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

/// Addresses of equal bytes before the end of one of the copies.
fn equal_bytes(last: &StackBytes, stack: &CopiedStack<'_>) -> Range<u64> {
    let last = CopiedStack::of(last);
    let (start, end) = (last.start().max(stack.start()), last.end().min(stack.end()));
    let length = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
    let both = last.bytes(start, length).zip(stack.bytes(start, length));
    let pairs = both.map(|(then, now)| then.iter().rev().zip(now.iter().rev()));
    let equal = pairs.map_or(0, |mut pairs| {
        pairs.position(|(then, now)| then != now).unwrap_or(length)
    });
    end - equal as u64..end
}

#[cfg(test)]
mod tests;
