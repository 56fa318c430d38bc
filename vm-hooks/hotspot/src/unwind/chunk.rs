//! Frames of a virtual thread that wait in the heap (`stackChunkFrameStream_x86.inline.hpp`).
//!
//! They equal frames on the stack, except for relative pointers. An interpreted frame's frame pointer
//! is relative to the slot where its callee saved it; the sender's stack pointer is relative to the
//! frame pointer.

use rustc_hash::FxHashSet;
use vmscope_process::{Memory, OtherFrame};
use vmscope_records::{Avma, StackBytes};

use crate::code::BlobKind;
use crate::continuations::Chunk;
use crate::layout::encodings::interpreted_frame;

/// Maximum number of chunks of a thread.
const MAX_CHUNKS: usize = 256;

/// Maximum number of frames in chunks: more than chains ever show.
const MAX_FRAMES: usize = 1 << 14;

/// Maximum size of a chunk's frames in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Bytes in each frame for its callee: saved frame pointer and return address.
const LINK: u64 = 16;

/// A frame in a chunk.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The return address.
    pc: u64,
    /// Stack pointer without the callee's arguments.
    sp: u64,
    /// Address where the callee has saved the frame pointer.
    link: u64,
}

/// Code around a return address: its kind, and its frames' size.
pub(super) type Code = (BlobKind, u64);

/// All frames of a continuation with this newest chunk, innermost first; `None` if one makes no sense.
/// `chunk_at` reads a chunk, `code_at` tells the code of a return address.
pub(super) fn frames_in(
    memory: &dyn Memory,
    tail: Chunk,
    chunk_at: &dyn Fn(Avma) -> Option<Chunk>,
    code_at: &mut dyn FnMut(u64) -> Option<Code>,
) -> Option<Vec<OtherFrame>> {
    let mut frames = Vec::new();
    let mut met = FxHashSet::default();
    let mut chunk = tail;
    loop {
        if !met.insert(chunk.at) || met.len() > MAX_CHUNKS {
            return None;
        }
        if !chunk.is_empty() {
            frames_of(memory, &chunk, code_at, &mut frames)?;
        }
        if chunk.parent.0 == 0 {
            return Some(frames);
        }
        chunk = chunk_at(chunk.parent)?;
    }
}

fn frames_of(
    memory: &dyn Memory,
    chunk: &Chunk,
    code_at: &mut dyn FnMut(u64) -> Option<Code>,
    frames: &mut Vec<OtherFrame>,
) -> Option<()> {
    let (begin, end) = chunk.stack;
    let from = chunk.sp.0.checked_sub(LINK);
    let from = from.filter(|from| *from >= begin.0)?;
    let length = end.0.checked_sub(from)?;
    let words = StackBytes {
        sp: Avma(from),
        bytes: memory.read_vec(Avma(from), length, MAX_BYTES).ok()?,
    };
    let bottom = chunk.bottom.0;
    let mut place = Some(Place {
        pc: words.word(Avma(from.checked_add(8)?))?,
        sp: chunk.sp.0,
        link: from,
    });
    while let Some(now) = place {
        if frames.len() >= MAX_FRAMES {
            return None;
        }
        let (frame, caller) = match code_at(now.pc)? {
            (BlobKind::Interpreter, _) => interpreted(now, &words, bottom)?,
            (_, bytes) => (sized(now), sized_caller(now, bytes, &words, bottom)?),
        };
        if caller.is_some_and(|caller| caller.sp <= now.sp) {
            return None;
        }
        frames.push(frame);
        place = caller;
    }
    Some(())
}

fn sized(now: Place) -> OtherFrame {
    OtherFrame {
        shown: Avma(now.pc),
        method: None,
    }
}

/// The caller of a frame with a fixed size; `Some(None)` for the outermost frame.
fn sized_caller(now: Place, bytes: u64, words: &StackBytes, bottom: u64) -> Option<Option<Place>> {
    if bytes < LINK {
        return None;
    }
    let sp = now.sp.checked_add(bytes).filter(|sp| *sp <= bottom)?;
    if sp >= bottom.checked_sub(LINK)? {
        return Some(None);
    }
    let word = |at| words.word(Avma(at));
    Some(Some(Place {
        pc: word(sp - 8)?,
        sp,
        link: sp - LINK,
    }))
}

/// An interpreted frame, and its caller; none for the outermost frame.
fn interpreted(now: Place, words: &StackBytes, bottom: u64) -> Option<(OtherFrame, Option<Place>)> {
    let word = |at: u64| words.word(Avma(at));
    let below = |fp: u64, by: i64| word(fp.checked_add_signed(by)?);
    let relative = |to: u64, by: u64| {
        let by = by.cast_signed().checked_mul(8)?;
        to.checked_add_signed(by)
    };
    let fp = relative(now.link, word(now.link)?)?;
    if fp <= now.link || fp >= bottom {
        return None;
    }
    let method = below(fp, interpreted_frame::METHOD.into())?;
    let bytecode = match below(fp, interpreted_frame::BCP.into())? {
        0 => method,
        bytecode => bytecode,
    };
    let frame = OtherFrame {
        shown: Avma(bytecode.wrapping_add(1)),
        method: Some(Avma(method)),
    };
    let locals = relative(fp, below(fp, interpreted_frame::LOCALS)?)?;
    if locals <= fp {
        return None;
    }
    // The outermost frame's arguments lie behind the bottom.
    if locals >= bottom.checked_sub(8)? {
        return Some((frame, None));
    }
    let sp = relative(fp, below(fp, interpreted_frame::SENDER_SP)?)?;
    if sp <= fp || sp >= bottom {
        return None;
    }
    let caller = Place {
        pc: below(fp, interpreted_frame::RETURN)?,
        sp,
        link: fp,
    };
    Some((frame, Some(caller)))
}

#[cfg(test)]
mod tests;
