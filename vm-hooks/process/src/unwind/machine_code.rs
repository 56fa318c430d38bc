//! Unwind rules of generated code on x86-64, from its machine code.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;
use vmscope_records::{Avma, ChainEnd};

use super::pieces::{Piece, Pieces};
use super::{
    CodeRule, Frame, FramePointers, FrameRegisters, Jumps, MAX_CALL_BYTES, Run, Unwinder, Unwound,
    ends_with_call,
};
use crate::Memory;

/// Maximum bytes of a function's code that are read, for the rule of one of its instructions.
const MAX_CODE: usize = 64 << 10;

/// Bytes of code that are read outside known functions.
const STRAIGHT_BYTES: usize = 64;

/// The smallest page of Linux.
const PAGE_BYTES: u64 = 4096;

/// Maximum bytes of kept code, and of code without frames; maximum number of kept pieces. A hostile VM
/// may report any number of pieces of any size.
const MAX_ROUTINE: usize = 8 << 10;
const MAX_ROUTINES: usize = 2048;

/// Maximum number of instructions of a routine, on all paths.
const STEPS: usize = 1000;

/// Maximum number of addresses whose rules, and whose calls, are remembered.
const MAX_KNOWN: usize = 1 << 16;

/// The rules of CPython and .NET on x86-64: what the machine code does next (see [`CodeRule`]).
///
/// CPython's trampolines have no frame pointer in most builds, optimised methods of .NET have none.
/// A return address counts only behind a call.
pub struct MachineCode {
    memory: Arc<dyn Memory>,
    pieces: Pieces,
    /// Functions without a return have frame pointers, too.
    keeps_frame_pointers: bool,
    /// Rules by address, of innermost frames or of callers, each with the number of the piece that the
    /// rule describes.
    rules: FxHashMap<(u64, bool), (u64, Option<CodeRule>)>,
    framed: FramedCode,
    /// Whether addresses are after a call, likewise.
    after_calls: FxHashMap<u64, (Option<u64>, bool)>,
    /// Code of short pieces, by their number.
    routines: FxHashMap<u64, Arc<[u8]>>,
}

impl std::fmt::Debug for MachineCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MachineCode").finish_non_exhaustive()
    }
}

impl MachineCode {
    /// Rules for code in `memory`, of which `pieces` are known.
    #[must_use]
    pub fn new(memory: Arc<dyn Memory>, pieces: Pieces) -> Self {
        MachineCode {
            memory,
            pieces,
            keeps_frame_pointers: false,
            rules: FxHashMap::default(),
            framed: FramedCode::default(),
            after_calls: FxHashMap::default(),
            routines: FxHashMap::default(),
        }
    }

    /// Likewise, for code whose frames all have frame pointers, once they are made.
    #[must_use]
    pub fn keeping_frame_pointers(memory: Arc<dyn Memory>, pieces: Pieces) -> Self {
        MachineCode {
            keeps_frame_pointers: true,
            ..Self::new(memory, pieces)
        }
    }

    fn rule(&mut self, frame: &Frame<'_>) -> Option<CodeRule> {
        let pc = frame.registers.pc;
        let is_innermost = frame.sampled.is_some();
        let Some(piece) = self.pieces.at(frame.instruction().0) else {
            // Code that is not known may be replaced unseen.
            let mut code = [0; STRAIGHT_BYTES];
            let got = self.memory.read_partial(Avma(pc), &mut code).ok()?;
            return CodeRule::of_straight(code.get(..got)?);
        };
        if let Some((known, rule)) = self.rules.get(&(pc, is_innermost))
            && *known == piece.number
        {
            return *rule;
        }
        if let Some(rule) = self.framed.rule(&piece, pc) {
            return Some(rule);
        }
        let start = piece.code.start;
        let bytes = self.bytes_of(&piece);
        let rule = if self.keeps_frame_pointers {
            let found = bytes.and_then(|bytes| {
                let known = |at| self.framed.rule(&piece, at);
                CodeRule::with_reach((&bytes, start), pc, Jumps::TailLast, known)
            });
            if let Some((rule, reach)) = &found
                && !reach.is_empty()
            {
                self.framed.put(&piece, *rule, reach);
                return Some(*rule);
            }
            found.map(|(rule, _)| rule)
        } else {
            bytes.and_then(|bytes| CodeRule::of_function(&bytes, start, pc, is_innermost))
        };
        make_room(&mut self.rules);
        self.rules.insert((pc, is_innermost), (piece.number, rule));
        rule
    }

    /// The caller of a routine without a frame: by the routine's remaining code, else by the innermost
    /// word of the stack.
    fn of_routine(&mut self, frame: &Frame<'_>, piece: Piece) -> Option<FrameRegisters> {
        let FrameRegisters { sp, fp, .. } = frame.registers;
        let on_top = || {
            Some(FrameRegisters {
                pc: frame.word(sp).ok()?,
                sp: sp.wrapping_add(8),
                fp,
            })
        };
        self.by_run(frame, piece)
            .or_else(|| on_top().filter(|caller| self.is_after_call(caller.pc)))
    }

    /// The caller of a frame in `piece` by its remaining code: of the first path that returns behind a
    /// call. A jump out of the code counts as a return.
    pub fn by_run(&mut self, frame: &Frame<'_>, piece: Piece) -> Option<FrameRegisters> {
        if piece.code.end.saturating_sub(piece.code.start) > MAX_ROUTINE as u64 {
            return None;
        }
        let bytes = self.bytes_of(&piece)?;
        let mut run = Run::new(&bytes, piece.code.start, frame);
        run.caller_if(STEPS, Jumps::Tail, |caller| self.is_after_call(caller.pc))
    }

    /// The code of a piece. Short code is read once: samples hit it at many addresses.
    fn bytes_of(&mut self, piece: &Piece) -> Option<Arc<[u8]>> {
        if let Some(known) = self.routines.get(&piece.number) {
            return Some(Arc::clone(known));
        }
        let Range { start, end } = piece.code;
        let length = end.saturating_sub(start);
        let bytes = self.memory.read_vec(Avma(start), length, MAX_CODE);
        let bytes: Arc<[u8]> = bytes.ok()?.into();
        if bytes.len() <= MAX_ROUTINE {
            if self.routines.len() >= MAX_ROUTINES {
                self.routines.clear();
            }
            self.routines.insert(piece.number, Arc::clone(&bytes));
        }
        Some(bytes)
    }

    /// A caller, if it has called.
    ///
    /// # Errors
    /// [`ChainEnd::Broken`] without a call before the return address.
    pub fn checked(&mut self, caller: FrameRegisters) -> Result<Option<Unwound>, ChainEnd> {
        match self.is_after_call(caller.pc) {
            true => Ok(Some(Unwound::certain(caller))),
            false => Err(ChainEnd::Broken),
        }
    }

    /// Whether `pc` is a return address: a call precedes it. If the memory is gone, so is its code since the sample: what was
    /// known about it counts.
    pub fn is_after_call(&mut self, pc: u64) -> bool {
        let number = self.pieces.at(pc.wrapping_sub(1)).map(|piece| piece.number);
        let known = self.after_calls.get(&pc).copied();
        if let Some((of, is_after)) = known
            && of == number
        {
            return is_after;
        }
        // Memory may begin with the page.
        let page = pc.wrapping_sub(1) & !(PAGE_BYTES - 1);
        let starts = [pc.wrapping_sub(MAX_CALL_BYTES as u64), page];
        let mut codes = starts.iter().filter_map(|start| {
            let length = pc.wrapping_sub(*start);
            self.memory
                .read_vec(Avma(*start), length, MAX_CALL_BYTES)
                .ok()
        });
        let Some(code) = codes.next() else {
            return known.is_some_and(|(_, is_after)| is_after);
        };
        let is_after = ends_with_call(&code);
        make_room(&mut self.after_calls);
        self.after_calls.insert(pc, (number, is_after));
        is_after
    }
}

/// Ranges of code with a rule by the frame pointer, by their first addresses. A run through a function gives
/// the rule of all code on its way.
#[derive(Default)]
struct FramedCode(BTreeMap<u64, Framed>);

struct Framed {
    end: u64,
    /// Number of the piece that the rule describes.
    piece: u64,
    rule: CodeRule,
}

impl FramedCode {
    fn rule(&self, piece: &Piece, pc: u64) -> Option<CodeRule> {
        let (_, framed) = self.0.range(piece.code.start..=pc).next_back()?;
        (pc < framed.end && framed.piece == piece.number).then_some(framed.rule)
    }

    fn put(&mut self, piece: &Piece, rule: CodeRule, ranges: &[Range<u64>]) {
        if self.0.len() + ranges.len() > MAX_KNOWN {
            self.0.clear();
        }
        for range in ranges {
            let framed = Framed {
                end: range.end,
                piece: piece.number,
                rule,
            };
            self.0.insert(range.start, framed);
        }
    }
}

fn make_room<K, V>(known: &mut FxHashMap<K, V>) {
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
}

impl Unwinder for MachineCode {
    fn covers(&self, _: Avma) -> bool {
        true
    }

    fn caller(&mut self, frame: &Frame<'_>) -> Result<Option<Unwound>, ChainEnd> {
        let rule = self.rule(frame).ok_or(ChainEnd::Broken)?;
        self.checked(rule.caller(frame)?)
    }
}

/// The rules of generated code on x86-64 that keeps frame pointers, as Erlang's does when it reports
/// its names (`+JPperf`). Of the innermost function, whose frame may be made later or be gone, and of
/// routines without frames the machine code tells.
///
/// A frame pointer of 0 ends the chain if no native code calls the code: the first frame of a process of
/// the VM. An Erlang process begins with a return to `normal_exit`, which nothing has called.
#[derive(Debug)]
pub struct KeptFramePointers {
    code: MachineCode,
    interpreted: Arc<OnceLock<InterpretedFrames>>,
    /// Native code calls the code: a frame pointer of 0 is a value of that code, and ends no chain.
    has_native_callers: bool,
    /// Caller of the last routine, which may have called before its frame existed.
    before_frame: Option<FrameRegisters>,
}

/// Frames of an interpreter on the stack of generated code, in the same chain of frame pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterpretedFrames {
    /// The return address of generated code to interpreted callers.
    pub return_address: Avma,
    /// Offset from an interpreted frame's frame pointer, in bytes, of the word with the address
    /// where the frame continues: its next bytecode.
    pub next: i32,
}

impl KeptFramePointers {
    /// Rules for code in `memory`, of which `pieces` are known. `interpreted` may be set later.
    #[must_use]
    pub fn new(
        memory: Arc<dyn Memory>,
        pieces: Pieces,
        interpreted: Arc<OnceLock<InterpretedFrames>>,
    ) -> Self {
        KeptFramePointers {
            code: MachineCode::keeping_frame_pointers(memory, pieces),
            interpreted,
            has_native_callers: false,
            before_frame: None,
        }
    }

    /// Likewise, for code that native code calls, as V8's.
    #[must_use]
    pub fn with_native_callers(memory: Arc<dyn Memory>, pieces: Pieces) -> Self {
        KeptFramePointers {
            has_native_callers: true,
            ..Self::new(memory, pieces, Arc::default())
        }
    }

    /// Whether `caller` is the end of the chain.
    fn is_end(&self, caller: &FrameRegisters) -> bool {
        caller.fp == 0 && !self.has_native_callers
    }

    fn by_code(&mut self, frame: &Frame<'_>) -> Option<FrameRegisters> {
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        match self.code.pieces.at(frame.instruction().0) {
            Some(piece) if !piece.has_frames => {
                self.before_frame = self.code.of_routine(frame, piece);
                self.before_frame
            }
            _ => {
                let may_lack_frame = self.before_frame == Some(frame.registers);
                if frame.sampled.is_none() && !may_lack_frame {
                    return None;
                }
                let caller = self.code.rule(frame)?.caller(frame).ok()?;
                let returns = self.is_end(&caller) || self.is_interpreted(caller.pc).is_some();
                (returns || self.code.is_after_call(caller.pc)).then_some(caller)
            }
        }
    }

    /// Of a return address to interpreted callers.
    fn is_interpreted(&self, pc: u64) -> Option<&InterpretedFrames> {
        let interpreted = self.interpreted.get();
        interpreted.filter(|frames| frames.return_address.0 == pc)
    }
}

impl Unwinder for KeptFramePointers {
    fn covers(&self, _: Avma) -> bool {
        true
    }

    fn caller(&mut self, frame: &Frame<'_>) -> Result<Option<Unwound>, ChainEnd> {
        let FrameRegisters { pc, fp, .. } = frame.registers;
        let interpreted = self.is_interpreted(pc).filter(|_| frame.sampled.is_none());
        let next = interpreted.map(|frames| fp.wrapping_add_signed(frames.next.into()));
        let shown = next.map(|next| frame.word_at_pointer(next).map(Avma));
        let unwound = match self.by_code(frame) {
            Some(caller) if shown.is_none() => Some(Unwound::certain(caller)),
            _ => FramePointers.caller(frame)?,
        };
        Ok(unwound.map(|unwound| Unwound {
            shown: shown.and_then(Result::ok),
            end: self.is_end(&unwound.caller).then_some(ChainEnd::Whole),
            ..unwound
        }))
    }
}

#[cfg(test)]
mod tests;
