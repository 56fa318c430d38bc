//! The last walk of each thread. Outer frames whose part of the stack has not changed since need no other
//! walk: deep stacks change near the top only.

use rustc_hash::FxHashMap;
use vmscope_process::FrameRegisters;
use vmscope_records::{Avma, StackBytes, Tid};

/// Fewest callers of a walk that is remembered. Shorter walks take no longer than the comparison.
const LEAST: usize = 16;

/// Maximum number of threads with a remembered walk, each with a stack of up to 64 KiB.
const MAX_THREADS: usize = 64;

/// Bytes that are compared at once.
const PIECE: usize = 64;

/// Version of an address space's code, and of what its VMs' rules know.
pub(super) type Version = (u64, u64);

/// Last walks of threads.
#[derive(Debug, Default)]
pub(super) struct Recent(FxHashMap<Tid, LastWalk>);

/// A whole walk.
#[derive(Debug, Default)]
struct LastWalk {
    rules: Version,
    /// Its copied stack; `None` while the sample still needs the copy.
    stack: Option<StackBytes>,
    /// Callers with registers, the outermost first.
    frames: Vec<Walked>,
    /// Addresses of the chain, the outermost first.
    chain: Vec<Avma>,
    /// Method objects, those of the outermost frames first.
    values: Vec<Avma>,
}

/// A caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Walked {
    registers: FrameRegisters,
    /// Number of the chain's addresses from this caller's address outwards.
    chain: usize,
    /// Likewise, of method objects.
    values: usize,
}

/// A walk, beside the thread's last.
#[derive(Debug, Default)]
pub(super) struct Walk {
    last: LastWalk,
    /// First address from which on both stacks are equal.
    equal_from: u64,
    /// Callers so far, the innermost first, with the numbers of addresses and method objects before.
    frames: Vec<(FrameRegisters, usize, usize)>,
    /// Number of frames of the last walk that end this walk.
    reused: usize,
    /// Whether other memory than the stack decides about callers.
    pub needs_memory: bool,
}

impl Recent {
    /// Begins a walk by code and rules of this version.
    pub fn begin(&mut self, thread: Tid, rules: Version, stack: &StackBytes) -> Walk {
        let mut last = self.0.remove(&thread).unwrap_or_default();
        let is_same = std::mem::replace(&mut last.rules, rules) == rules;
        let equal_from = last.equal_from(stack).filter(|_| is_same);
        Walk {
            equal_from: equal_from.unwrap_or(u64::MAX),
            last,
            ..Walk::default()
        }
    }

    /// Remembers a walk that reached the thread's first frame.
    pub fn end(&mut self, thread: Tid, walk: Walk, chain: &[Avma], values: &[Avma]) {
        if walk.needs_memory || chain.len() < LEAST {
            return;
        }
        if self.0.len() >= MAX_THREADS {
            self.0.clear();
        }
        self.0.insert(thread, walk.into_last(chain, values));
    }

    /// Takes the stack of the thread's last sample.
    pub fn keep(&mut self, thread: Tid, stack: StackBytes) {
        if let Some(last) = self.0.get_mut(&thread) {
            last.stack.get_or_insert(stack);
        }
    }
}

impl LastWalk {
    fn equal_from(&self, stack: &StackBytes) -> Option<u64> {
        let last = self.stack.as_ref()?;
        let outermost = self.frames.first()?.registers.sp;
        let end = |stack: &StackBytes| stack.sp.0.checked_add(stack.bytes.len() as u64);
        let end = end(last)?.min(end(stack)?);
        // Both copies must contain the outermost frame.
        if end < outermost.checked_add(16)? {
            return None;
        }
        let upto = |stack: &StackBytes| usize::try_from(end.checked_sub(stack.sp.0)?).ok();
        let (old, new) = (
            last.bytes.get(..upto(last)?)?,
            stack.bytes.get(..upto(stack)?)?,
        );
        let pieces = old.rchunks_exact(PIECE).zip(new.rchunks_exact(PIECE));
        let equal = pieces.take_while(|(old, new)| old == new).count();
        Some(end - (equal * PIECE) as u64)
    }
}

impl Walk {
    /// Takes a caller. If the last walk had it, with all its callers' stack, adds the rest of that walk to the
    /// chain and to the method objects, and returns `true`. `own`: index of the caller's address in the chain.
    pub fn meets(
        &mut self,
        registers: FrameRegisters,
        own: usize,
        (chain, values): (&mut Vec<Avma>, &mut Vec<Avma>),
        max_depth: usize,
    ) -> bool {
        let known = match registers.sp >= self.equal_from {
            true => {
                let frames = &self.last.frames;
                let above = frames.partition_point(|frame| frame.registers.sp > registers.sp);
                let same = frames.get(above..).unwrap_or_default().iter();
                let mut same = same.take_while(|frame| frame.registers.sp == registers.sp);
                same.position(|frame| frame.registers == registers)
                    .map(|place| above + place)
            }
            false => None,
        };
        if let Some(number) = known
            && let Some(frame) = self.last.frames.get(number)
            && own + frame.chain <= max_depth
        {
            chain.truncate(own);
            chain.extend(self.last.chain.iter().take(frame.chain).rev());
            values.extend(self.last.values.iter().take(frame.values).rev());
            self.reused = number + 1;
            return true;
        }
        self.frames.push((registers, own, values.len()));
        false
    }

    fn into_last(mut self, chain: &[Avma], values: &[Avma]) -> LastWalk {
        let mut last = std::mem::take(&mut self.last);
        last.frames.truncate(self.reused);
        let kept = last.frames.last().copied();
        last.chain.truncate(kept.map_or(0, |frame| frame.chain));
        last.values.truncate(kept.map_or(0, |frame| frame.values));
        let from = |all: &[Avma], before: usize| all.len().saturating_sub(before);
        let new = self.frames.iter().rev();
        last.frames
            .extend(new.map(|&(registers, own, values_before)| Walked {
                registers,
                chain: from(chain, own),
                values: from(values, values_before),
            }));
        last.chain
            .extend(chain.iter().rev().skip(last.chain.len()).copied());
        last.values
            .extend(values.iter().rev().skip(last.values.len()).copied());
        last.stack = None;
        last
    }
}

#[cfg(test)]
mod tests;
