//! Callers beyond a stack page.
//!
//! The word at a page's base address is the context that called the page's first frame. While that
//! context has a frame, its sender is the frame pointer plus one; the frame is on another page. Else the
//! context holds all, and its sender is the next context.
//!
//! Contexts are read after the sample. A frame names its context, so the sample's copy of the stack
//! confirms a page inside it. Frames of other pages, and contexts without a frame, count as guesses. They
//! rarely are wrong: all but the innermost frame's position stays as long as the frame exists.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use vmscope_process::{Frame, OtherFrame, Unwound};
use vmscope_records::{Avma, ChainEnd};

use super::{BYTECODE, CONTEXT, CogUnwinder, Owner};
use crate::heap::HEADER;

/// Counters of events that change pages other than the running one, or move contexts.
pub(super) const COUNTERS: [&str; 5] = [
    "statFullGCs",
    "statScavenges",
    "statProcessSwitch",
    "statStackOverflow",
    "statStackPageDivorce",
];

/// Maximum number of contexts on the way.
const MAX_CONTEXTS: usize = 1 << 12;

/// Maximum number of frames.
const MAX_FRAMES: usize = 1 << 14;

/// Maximum number of remembered contexts.
const MAX_KNOWN: usize = 1 << 10;

/// Slots of a context: sender, program counter, stack pointer, method.
const SLOTS: usize = 4;

/// Format of contexts: fixed and indexable pointers.
const CONTEXT_FORMAT: u64 = 3;

/// Maximum distance of a bytecode from its method's header.
const MAX_METHOD: u64 = 1 << 24;

/// The callers of a context, read when the VM's counters were `counts`.
#[derive(Clone, Debug)]
pub(super) struct Known {
    counts: Vec<u8>,
    callers: Callers,
}

/// Callers beyond a page, and the way in which they end.
#[derive(Clone, Debug)]
struct Callers {
    frames: Arc<[OtherFrame]>,
    end: ChainEnd,
    /// The sample does not confirm all.
    is_late: bool,
}

/// Words of one page: from the sample, or read now.
struct PageWords<'f> {
    sample: Option<&'f Frame<'f>>,
    range: Range<u64>,
    bytes: Vec<u8>,
}

impl PageWords<'_> {
    fn word(&self, at: u64) -> Result<u64, ChainEnd> {
        if let Some(frame) = self.sample {
            return frame.word(at);
        }
        let from = at.checked_sub(self.range.start);
        let from = from.and_then(|from| usize::try_from(from).ok());
        let word = from.and_then(|from| self.bytes.get(from..)?.first_chunk::<8>());
        word.map(|word| u64::from_le_bytes(*word))
            .ok_or(ChainEnd::Broken)
    }
}

/// What was found so far.
#[derive(Default)]
struct Found {
    frames: Vec<OtherFrame>,
    is_late: bool,
    /// Pages that were walked.
    pages: FxHashSet<usize>,
}

impl CogUnwinder {
    /// The callers of a page's first frame, which is at the frame pointer.
    pub(super) fn beyond_page(&mut self, frame: &Frame<'_>) -> Result<Unwound, ChainEnd> {
        let page = self.pages.index(frame.registers.fp);
        let base = page.and_then(|page| self.pages.base(page));
        let context = frame.word_at_pointer(base.ok_or(ChainEnd::Broken)?)?;
        let callers = self.callers(context, frame);
        if callers.frames.is_empty() && callers.end != ChainEnd::Whole {
            return Err(callers.end);
        }
        Ok(Unwound {
            between: callers.frames,
            end: Some(callers.end),
            is_late: callers.is_late,
            ..Unwound::certain(frame.registers)
        })
    }

    fn callers(&mut self, context: u64, frame: &Frame<'_>) -> Callers {
        let counts = self.counts();
        if let (Some(counts), Some(known)) = (&counts, self.known.get(&context))
            && known.counts == *counts
        {
            return known.callers.clone();
        }
        let mut found = Found::default();
        let end = match self.walk(context, frame, &mut found) {
            Ok(()) => ChainEnd::Whole,
            Err(end) => end,
        };
        let callers = Callers {
            frames: found.frames.into(),
            end,
            is_late: found.is_late,
        };
        // The sample's own copy is another one each time.
        if let Some(counts) = counts.filter(|_| callers.is_late) {
            if self.known.len() >= MAX_KNOWN {
                self.known.clear();
            }
            let callers = callers.clone();
            self.known.insert(context, Known { counts, callers });
        }
        callers
    }

    /// The counters now; `None` if the VM lacks one.
    fn counts(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.memory.read_each(&self.counters, 8, &mut bytes).ok()?;
        let is_known = read.len() == COUNTERS.len() && read.iter().all(|is_read| *is_read);
        is_known.then_some(bytes)
    }

    fn walk(
        &mut self,
        mut context: u64,
        frame: &Frame<'_>,
        found: &mut Found,
    ) -> Result<(), ChainEnd> {
        let mut met = FxHashSet::default();
        while context != self.nil {
            if !met.insert(context) || met.len() > MAX_CONTEXTS {
                return Err(ChainEnd::Broken);
            }
            let slots = self.context(context).ok_or(ChainEnd::Broken)?;
            let [sender, program_counter, _, method] = slots;
            context = match sender & 7 {
                1 => self.walk_page((context, sender - 1), frame, found)?,
                0 => {
                    found.is_late = true;
                    let shown = self.position(method, program_counter);
                    put(found, shown.ok_or(ChainEnd::Broken)?)?;
                    sender
                }
                _ => return Err(ChainEnd::Broken),
            };
        }
        Ok(())
    }

    /// Slots of the context at an address.
    fn context(&self, at: u64) -> Option<[u64; SLOTS]> {
        if !at.is_multiple_of(8) {
            return None;
        }
        let words = self.memory.read_u64s(Avma(at), SLOTS as u64 + 1, SLOTS + 1);
        let words = words.ok()?;
        let (header, slots) = words.split_first()?;
        let (format, count) = ((header >> 24) & 31, header >> 56);
        let is_context = format == CONTEXT_FORMAT && count >= SLOTS as u64;
        slots.try_into().ok().filter(|_| is_context)
    }

    /// The position of a context without a frame. Its program counter is that of the next bytecode, or
    /// negative: a distance in generated code.
    fn position(&self, method: u64, program_counter: u64) -> Option<OtherFrame> {
        if program_counter & 7 != 1 || method < self.heap || !method.is_multiple_of(8) {
            return None;
        }
        let counter = program_counter.cast_signed() >> 3;
        if let Ok(bytecode) = u64::try_from(counter) {
            let at = (bytecode < MAX_METHOD).then(|| method.checked_add(HEADER + bytecode))??;
            return Some(OtherFrame {
                shown: Avma(at),
                method: Some(Avma(method)),
            });
        }
        let distance = counter.unsigned_abs();
        let code = self.memory.read_u64(Avma(method + HEADER)).ok()?;
        let code = Some(code).filter(|code| self.zone.contains(code));
        Some(match code.filter(|_| distance <= u64::from(u16::MAX)) {
            Some(code) => OtherFrame {
                shown: Avma(code + distance),
                method: None,
            },
            // Of a block inside a method, the position is unknown.
            None => OtherFrame {
                shown: Avma(method + 1),
                method: Some(Avma(method)),
            },
        })
    }

    /// Puts a page's frames, beginning with the frame of `context` at `fp`. Returns the context beyond.
    fn walk_page(
        &mut self,
        (context, fp): (u64, u64),
        frame: &Frame<'_>,
        found: &mut Found,
    ) -> Result<u64, ChainEnd> {
        let page = self.pages.index(fp).ok_or(ChainEnd::Broken)?;
        if !found.pages.insert(page) {
            return Err(ChainEnd::Broken);
        }
        let range = self.pages.range(page).ok_or(ChainEnd::Broken)?;
        let (base, end) = (range.end - 8, range.end);
        let context_at = fp.checked_sub(CONTEXT).ok_or(ChainEnd::Broken)?;
        let is_copied = frame.word(context_at) == Ok(context) && frame.word(base).is_ok();
        let words = match is_copied {
            true => PageWords {
                sample: Some(frame),
                range,
                bytes: Vec::new(),
            },
            false => {
                let length = end - range.start;
                let cap = usize::try_from(length).unwrap_or(usize::MAX);
                let bytes = self.memory.read_vec(Avma(range.start), length, cap);
                PageWords {
                    sample: None,
                    bytes: bytes.map_err(|_| ChainEnd::Broken)?,
                    range,
                }
            }
        };
        found.is_late |= !is_copied;
        if words.word(context_at)? != context {
            return Err(ChainEnd::Broken);
        }
        let owner = self.owner(fp, |at| words.word(at))?;
        let (is_known, shown) = self.head((page, fp), &owner, &words);
        found.is_late |= !is_known;
        put(found, shown)?;
        let mut fp = fp;
        loop {
            let at = |offset: u64| words.word(fp.checked_add(offset).ok_or(ChainEnd::Broken)?);
            let (caller, pc) = (at(0)?, at(8)?);
            if pc == self.base_return {
                return words.word(base);
            }
            if caller <= fp || caller > base {
                return Err(ChainEnd::Broken);
            }
            let owner = self.owner(caller, |at| words.word(at))?;
            if !self.is_caller(&owner, pc) {
                return Err(ChainEnd::Broken);
            }
            put(found, shown_of(&owner, (caller, pc), &words)?)?;
            fp = caller;
        }
    }

    /// The innermost frame of a page, and whether its position is known. The VM leaves the return
    /// address on top of the page, or in the frame of a callee that has returned meanwhile.
    fn head(
        &self,
        (page, fp): (usize, u64),
        owner: &Owner,
        words: &PageWords<'_>,
    ) -> (bool, OtherFrame) {
        let head = self.pages.head(page, &*self.memory);
        let top = head.filter(|(_, head)| *head == fp);
        let pc = top.and_then(|(sp, _)| words.word(sp).ok());
        let pc = pc.filter(|pc| self.is_caller(owner, *pc));
        let shown = pc.and_then(|pc| shown_of(owner, (fp, pc), words).ok());
        match (shown, owner) {
            (Some(shown), _) => (true, shown),
            (None, Owner::Machine(body)) => {
                let shown = Avma(body.any());
                let method = None;
                (false, OtherFrame { shown, method })
            }
            (None, Owner::Interpreted(method)) => {
                let (shown, method) = (Avma(method + 1), Some(Avma(*method)));
                (false, OtherFrame { shown, method })
            }
        }
    }
}

/// A frame at `fp` that goes on at `pc`.
fn shown_of(
    owner: &Owner,
    (fp, pc): (u64, u64),
    words: &PageWords<'_>,
) -> Result<OtherFrame, ChainEnd> {
    Ok(match owner {
        Owner::Machine(_) => OtherFrame {
            shown: Avma(pc),
            method: None,
        },
        Owner::Interpreted(method) => OtherFrame {
            shown: Avma(words.word(fp.wrapping_sub(BYTECODE))?.wrapping_add(1)),
            method: Some(Avma(*method)),
        },
    })
}

fn put(found: &mut Found, frame: OtherFrame) -> Result<(), ChainEnd> {
    if found.frames.len() >= MAX_FRAMES {
        return Err(ChainEnd::Depth);
    }
    found.frames.push(frame);
    Ok(())
}
