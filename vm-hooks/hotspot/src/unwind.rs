//! Unwind rules of HotSpot's code on x86-64: compiled methods, interpreter, stubs and adapters.
//!
//! - A compiled method's frame has a fixed size; its return address is the last word, the saved
//!   frame pointer the word before (`frame_x86.cpp`).
//! - An interpreted frame has a frame pointer, and the stack pointer of its caller.
//! - Where a sample finds no whole frame (prologue, epilogue, routines without a frame), the machine
//!   code tells the rest: see [`Run`] and `entry`.
//!
//! A return address counts only behind a call, or at the interpreter's entry for returns. Old
//! contents of the stack therefore yield no frames.

mod blobs;
mod chunk;
mod mounted;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use iced_x86::Register;
use vmscope_process::{
    AdapterError, Entered, Frame, FrameRegisters, Jumps, Memory, Run, Unwinder, Unwound, entered,
    sampled_register,
};
use vmscope_records::{Avma, ChainEnd};

use crate::code::{BlobKind, CodeLayout};
use crate::layout::encodings::interpreted_frame;
use crate::stubs::Routine;
use blobs::{Blobs, FRESH, Piece};
use mounted::Readings;

pub(crate) use mounted::VirtualThreads;

/// Maximum number of instructions between the end of a compiled frame and the return.
const EPILOGUE: usize = 12;

/// Above the length of these instructions.
const EPILOGUE_BYTES: u64 = 128;

/// Maximum number of instructions of a routine without a frame size, on all paths to its end.
const ROUTINE: usize = 2000;

/// Maximum bytes of the instructions that make a stub's frame.
const STUB_ENTRY: u64 = 32;

/// Unwinds the frames of one JVM.
pub struct HotSpotUnwinder {
    memory: Arc<dyn Memory>,
    blobs: Blobs,
    /// Codelets of the template interpreter, by address.
    codelets: Arc<[Routine]>,
    /// Address to which Java code returns that native code has called.
    call_stub_return: Option<Avma>,
    /// `None` if the JVM has no virtual threads, or exports too little.
    threads: Option<VirtualThreads>,
    readings: Readings,
    opened: Instant,
}

impl std::fmt::Debug for HotSpotUnwinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HotSpotUnwinder").finish_non_exhaustive()
    }
}

impl Unwinder for HotSpotUnwinder {
    fn covers(&self, pc: Avma) -> bool {
        self.blobs.holds(pc)
    }

    /// A new number as often as nmethods are read again.
    fn version(&self) -> Option<u64> {
        u64::try_from(self.opened.elapsed().as_nanos() / FRESH.as_nanos()).ok()
    }

    fn caller(&mut self, frame: &Frame<'_>) -> Result<Option<Unwound>, ChainEnd> {
        let unwound = match self.unwind(frame) {
            // The VM may have given the memory to other code.
            Err(ChainEnd::Broken) if self.blobs.doubt(Avma(frame.registers.pc)) => {
                self.unwind(frame)
            }
            result => result,
        }?;
        match self.is_barrier(unwound.caller.pc) {
            true => self.beyond_barrier(frame, unwound).map(Some),
            false => Ok(Some(unwound)),
        }
    }
}

impl HotSpotUnwinder {
    /// Rules for the JVM with this code cache and interpreter. `call_stub_return`: the address to
    /// which Java code returns that native code has called.
    ///
    /// # Errors
    /// [`AdapterError::NotReady`] during the VM's start; errors of reads.
    pub fn new(
        memory: Arc<dyn Memory>,
        (layout, codelets): (CodeLayout, Arc<[Routine]>),
        call_stub_return: Option<Avma>,
        threads: Option<VirtualThreads>,
    ) -> Result<Self, AdapterError> {
        Ok(HotSpotUnwinder {
            blobs: Blobs::new(layout, &*memory)?,
            memory,
            codelets,
            call_stub_return,
            threads,
            readings: Readings::default(),
            opened: Instant::now(),
        })
    }

    fn unwind(&mut self, frame: &Frame<'_>) -> Result<Unwound, ChainEnd> {
        let pc = frame.registers.pc;
        let piece = self.piece(frame.instruction().0);
        let piece = piece.ok_or(ChainEnd::Broken)?;
        if self.call_stub_return == Some(Avma(pc)) {
            return frame.by_frame_pointer().map(Unwound::certain);
        }
        match piece.kind {
            BlobKind::Interpreter => self.interpreted(frame, &piece),
            _ if piece.frame_bytes > 0 => {
                let unwound = self.sized(frame, &piece)?;
                let shown = original_pc(frame, &piece).map(Avma);
                Ok(Unwound { shown, ..unwound })
            }
            _ => self.routine(frame, &piece),
        }
    }

    fn piece(&mut self, at: u64) -> Option<Piece> {
        self.blobs.at(Avma(at), &*self.memory)
    }

    /// A frame with a fixed size.
    fn sized(&mut self, frame: &Frame<'_>, piece: &Piece) -> Result<Unwound, ChainEnd> {
        if let Some(caller) = self.in_code_cache(frame, piece) {
            return Ok(Unwound::certain(caller));
        }
        let pc = frame.registers.pc;
        if frame.sampled.is_some() {
            let is_method = piece.kind == BlobKind::Nmethod;
            if is_method && pc < piece.frame_complete {
                return self.in_prologue(frame, piece.code.start);
            }
            let caller = match is_method {
                true if pc < piece.stubs => self.in_epilogue(frame, piece, Jumps::Unknown),
                // Out-of-line code jumps to the interpreter after a call led to it.
                true => self.in_epilogue(frame, piece, Jumps::Tail),
                false => self.runs_to(frame, piece),
            };
            if let Some(caller) = caller {
                return Ok(Unwound::certain(caller));
            }
        }
        let caller = by_size(frame, piece)?;
        if self.is_return(caller.pc, piece.kind) {
            return Ok(Unwound::certain(caller));
        }
        // Intrinsics, barriers and some calls push values for a while.
        let pushed = self.runs_to(frame, piece);
        pushed.map(Unwound::certain).ok_or(ChainEnd::Broken)
    }

    /// Code before its frame is complete, called by compiled code.
    fn in_prologue(&mut self, frame: &Frame<'_>, start: u64) -> Result<Unwound, ChainEnd> {
        let entered = self.entered(start..frame.registers.pc)?;
        let caller = entered_from(frame, entered)?;
        match self.is_return(caller.pc, BlobKind::Nmethod) {
            true => Ok(Unwound::certain(caller)),
            false => Err(ChainEnd::Broken),
        }
    }

    /// State of code after entry at the begin of `range` and execution to its end.
    fn entered(&self, range: Range<u64>) -> Result<Entered, ChainEnd> {
        let start = range.start;
        let code = self.code(range).ok_or(ChainEnd::Broken)?;
        entered(&code, start).ok_or(ChainEnd::Broken)
    }

    /// Caller of a stub, if the code cache holds the caller's code. Stubs have exits to other stubs. There, a
    /// word on top of the stack only looks like a return address in native code.
    fn in_code_cache(&mut self, frame: &Frame<'_>, piece: &Piece) -> Option<FrameRegisters> {
        if piece.kind != BlobKind::Other {
            return None;
        }
        let is_sampled = frame.sampled.is_some();
        let has_size = piece.frame_bytes > 0;
        let begin = piece.code.start;
        if (is_sampled || !has_size)
            && let Some(caller) = self.run_into_code(frame, piece, Jumps::Tail)
        {
            return Some(caller);
        }
        let by_size = by_size(frame, piece).ok().filter(|_| has_size);
        if let Some(caller) = by_size.filter(|caller| self.is_in_code_cache(caller)) {
            return Some(caller);
        }
        if let Some(caller) = self.run_into_code(frame, piece, Jumps::Popped) {
            return Some(caller);
        }
        let is_entry = frame.registers.pc.wrapping_sub(begin) < STUB_ENTRY;
        let caller = (is_sampled && is_entry).then(|| self.in_prologue(frame, begin));
        Some(caller?.ok()?.caller)
    }

    /// Caller by the remaining code of a stub: the first exit to code of the code cache.
    fn run_into_code(
        &mut self,
        frame: &Frame<'_>,
        piece: &Piece,
        jumps: Jumps,
    ) -> Option<FrameRegisters> {
        let code = self.blobs.code_of(piece, &*self.memory)?;
        let mut run = Run::new(&code, piece.code.start, frame);
        // An I2C adapter pushes the return address again before it jumps to compiled code.
        let lies_above = |caller: &FrameRegisters| caller.sp >= frame.registers.sp;
        run.caller_if(ROUTINE, jumps, |caller| {
            lies_above(caller) && self.is_in_code_cache(caller)
        })
    }

    fn is_in_code_cache(&mut self, caller: &FrameRegisters) -> bool {
        self.blobs.holds(Avma(caller.pc)) && self.is_return(caller.pc, BlobKind::Other)
    }

    /// Code without a frame size: a stub, an adapter.
    fn routine(&mut self, frame: &Frame<'_>, piece: &Piece) -> Result<Unwound, ChainEnd> {
        if let Some(caller) = self.in_code_cache(frame, piece) {
            return Ok(Unwound::certain(caller));
        }
        if let Some(caller) = self.runs_to(frame, piece) {
            return Ok(Unwound::certain(caller));
        }
        if frame.sampled.is_none() {
            return Err(ChainEnd::Broken);
        }
        let FrameRegisters { sp, fp, .. } = frame.registers;
        let innermost = FrameRegisters {
            pc: frame.word(sp)?,
            sp: sp.wrapping_add(8),
            fp,
        };
        let candidates = [Ok(innermost), frame.by_frame_pointer()];
        let mut candidates = candidates.into_iter().flatten();
        let caller = candidates.find(|caller| self.is_return(caller.pc, BlobKind::Nmethod));
        Ok(Unwound {
            is_guess: true,
            ..Unwound::certain(caller.ok_or(ChainEnd::Broken)?)
        })
    }

    fn interpreted(&mut self, frame: &Frame<'_>, piece: &Piece) -> Result<Unwound, ChainEnd> {
        let FrameRegisters { pc, fp, .. } = frame.registers;
        if frame.sampled.is_some() {
            let sender_sp = sampled_register(frame, Register::R13);
            if let (Some(codelet), Some(sp)) = (self.entry_codelet(pc), sender_sp) {
                let entered = self.entered(codelet.start.0..pc)?;
                if !entered.has_frame || entered.pushes == 0 {
                    let caller = entered_from(frame, entered)?;
                    return match self.is_return(caller.pc, piece.kind) {
                        true => Ok(Unwound::certain(FrameRegisters { sp, ..caller })),
                        false => Err(ChainEnd::Broken),
                    };
                }
            } else if let Some(caller) = self.in_epilogue(frame, piece, Jumps::Return) {
                return Ok(Unwound::certain(caller));
            }
        }
        let word = |offset: i64| frame.word(fp.wrapping_add_signed(offset));
        let caller = FrameRegisters {
            pc: word(interpreted_frame::RETURN)?,
            sp: word(interpreted_frame::SENDER_SP)?,
            fp: word(0)?,
        };
        if caller.sp <= fp || !self.is_return(caller.pc, piece.kind) {
            return Err(ChainEnd::Broken);
        }
        let of_caller = || {
            let method = word(interpreted_frame::METHOD.into())?;
            // A native method has no bytecodes.
            let bytecode = match word(interpreted_frame::BCP.into())? {
                0 => method,
                bytecode => bytecode,
            };
            Ok::<_, ChainEnd>((Avma(bytecode.wrapping_add(1)), Avma(method)))
        };
        let (shown, method) = match frame.sampled {
            Some(_) => (None, None),
            None => of_caller().map(|(shown, method)| (Some(shown), Some(method)))?,
        };
        Ok(Unwound {
            shown,
            method,
            ..Unwound::certain(caller)
        })
    }

    /// The codelet around `pc`, if it is the entry of a method.
    fn entry_codelet(&self, pc: u64) -> Option<Routine> {
        let after = self.codelets.partition_point(|one| one.start.0 <= pc);
        let codelet = self.codelets.get(after.checked_sub(1)?)?;
        let is_entry = pc < codelet.end.0 && codelet.name.contains("method entry point");
        is_entry.then(|| codelet.clone())
    }

    /// The caller of a method or a codelet that returns within the next instructions.
    fn in_epilogue(
        &mut self,
        frame: &Frame<'_>,
        piece: &Piece,
        jumps: Jumps,
    ) -> Option<FrameRegisters> {
        let pc = frame.registers.pc;
        if self.blobs.is_far_from_return(piece, pc) {
            return None;
        }
        let end = piece.code.end.min(pc.saturating_add(EPILOGUE_BYTES));
        let code = self.code(pc..end)?;
        let mut run = Run::new(&code, pc, frame);
        let caller = run.caller(EPILOGUE, jumps);
        if !run.depends_on_values() {
            self.blobs.note_far_from_return(piece, pc);
        }
        let caller = caller?;
        self.is_return(caller.pc, piece.kind).then_some(caller)
    }

    /// The caller to which the code at the frame's pc returns, on any path to its end.
    fn runs_to(&mut self, frame: &Frame<'_>, piece: &Piece) -> Option<FrameRegisters> {
        let code = match piece.kind {
            BlobKind::Other => self.blobs.code_of(piece, &*self.memory)?,
            _ => self.code(piece.code.clone())?.into(),
        };
        let caller = Run::new(&code, piece.code.start, frame).caller(ROUTINE, Jumps::Tail)?;
        self.is_return(caller.pc, piece.kind).then_some(caller)
    }

    fn code(&self, range: Range<u64>) -> Option<Vec<u8>> {
        /// Above nearly all sizes of methods and codelets.
        const MAX: usize = 64 << 10;
        let length = range.end.checked_sub(range.start)?;
        let bytes = self.memory.read_vec(Avma(range.start), length, MAX);
        bytes.ok()
    }

    /// Whether code of a blob of kind `from` may return to `pc`. Only stubs return to native code,
    /// whose pc the caller checks. They also return to any instruction of a compiled method: the
    /// VM calls them at polls and faults.
    fn is_return(&mut self, pc: u64, from: BlobKind) -> bool {
        if self.is_barrier(pc) {
            return true;
        }
        // As with a frame's own code.
        self.follows_call(pc, from)
            || self.blobs.doubt(Avma(pc.wrapping_sub(1))) && self.follows_call(pc, from)
    }

    fn follows_call(&mut self, pc: u64, from: BlobKind) -> bool {
        if !self.blobs.holds(Avma(pc)) {
            return from == BlobKind::Other;
        }
        let Some(piece) = self.piece(pc.wrapping_sub(1)) else {
            return false;
        };
        match piece.kind {
            BlobKind::Interpreter => true,
            BlobKind::Nmethod if from == BlobKind::Other => true,
            // A frame to be deoptimised returns to its method's stubs.
            _ if piece.stubs <= pc && pc < piece.code.end => true,
            _ => self.blobs.is_after_call(&piece, pc, &*self.memory),
        }
    }
}

/// The address to which a deoptimised frame would return. The VM keeps it in the frame; the frame itself returns to the
/// method's stubs.
fn original_pc(frame: &Frame<'_>, piece: &Piece) -> Option<u64> {
    let FrameRegisters { pc, sp, .. } = frame.registers;
    let of = piece.deoptimised.filter(|_| frame.sampled.is_none())?;
    // Wrappers of native methods have no handler.
    let is_deoptimised = piece.stubs <= of.handler.0 && of.handler.0 <= pc && pc < piece.code.end;
    if !is_deoptimised {
        return None;
    }
    let original = frame.word(sp.wrapping_add(of.original_pc)).ok()?;
    (piece.code.start < original && original <= piece.stubs).then_some(original)
}

/// The caller of a frame with a fixed size.
fn by_size(frame: &Frame<'_>, piece: &Piece) -> Result<FrameRegisters, ChainEnd> {
    let end = (frame.registers.sp).wrapping_add(piece.frame_bytes);
    Ok(FrameRegisters {
        pc: frame.word(end.wrapping_sub(8))?,
        fp: frame.word(end.wrapping_sub(16))?,
        sp: end,
    })
}

/// The caller of code just entered, by the frame pointer or the place of its return address.
fn entered_from(frame: &Frame<'_>, entered: Entered) -> Result<FrameRegisters, ChainEnd> {
    match entered.has_frame {
        true => frame.by_frame_pointer(),
        false => entered.caller(frame),
    }
}
