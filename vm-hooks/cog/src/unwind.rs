//! Callers of generated code, on a 64-bit VM on x86-64.
//!
//! All Smalltalk code keeps frame pointers. A frame, by offset from its frame pointer:
//!
//! ```text
//!  +8  return address          -8  method, with flags
//!   0  caller's frame pointer  -16 context, or nil
//! ```
//!
//! Code without a frame leaves the return address near the stack pointer. It counts only if it lies in
//! the method of the frame that the frame pointer shows.
//!
//! The VM divides its stack into pages. Beyond a page, contexts lead to the callers ([`beyond`]).
//!
//! C code runs on a stack of its own. The VM's variables hold the Smalltalk frame meanwhile, but they
//! are read after the sample: what they show is a guess, and counts only if the sample's copy of the
//! stack agrees.

mod beyond;
mod owners;
mod stack_pages;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vmscope_process::{AdapterError, Frame, FrameRegisters, Memory, Unwinder, Unwound, read_words};
use vmscope_records::{Avma, ChainEnd};

use crate::Variables;
use crate::cog_method::Layout;
use crate::variables::COMPACTIONS;
use crate::zone::Bounds;
use beyond::Known;
use owners::{Body, Owners};
use stack_pages::StackPages;

/// Words above the stack pointer that may hold the return address of code without a frame.
const LEAF_WORDS: usize = 16;

/// The variables with the Smalltalk frame while C code runs: frame pointer, stack pointer, program
/// counter.
const REGISTERS: [&str; 3] = ["framePointer", "stackPointer", "instructionPointer"];

/// The two trampolines that frames return to in place of their caller.
const RETURNS: [&str; 2] = [
    "ceBaseFrameReturnTrampoline",
    "ceReturnToInterpreterTrampoline",
];

/// Names of the variables.
pub(crate) const NAMES: [&[&str]; 4] =
    [&REGISTERS, &RETURNS, &stack_pages::NAMES, &beyond::COUNTERS];

/// Offsets from a frame pointer.
const METHOD: u64 = 8;
const CONTEXT: u64 = 16;
const BYTECODE: u64 = 32;

/// Unwinds the Smalltalk frames of one VM.
pub struct CogUnwinder {
    memory: Arc<dyn Memory>,
    zone: std::ops::Range<u64>,
    /// Address of the first object. A smaller method address is one of generated code.
    heap: u64,
    nil: u64,
    base_return: u64,
    interpreter_return: u64,
    registers: [Avma; 3],
    counters: Vec<Avma>,
    pages: StackPages,
    owners: Owners,
    known: FxHashMap<u64, Known>,
}

impl std::fmt::Debug for CogUnwinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CogUnwinder")
            .field("zone", &self.zone)
            .finish_non_exhaustive()
    }
}

/// The method of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    Machine(Body),
    /// A compiled method (an object pointer), in the interpreter.
    Interpreted(u64),
}

impl CogUnwinder {
    /// An unwinder for a VM with these variables.
    ///
    /// # Errors
    /// A missing variable, impossible stack pages; failed reads.
    pub fn new(
        variables: &Variables,
        bounds: &Bounds,
        layout: Layout,
        memory: Arc<dyn Memory>,
    ) -> Result<Self, AdapterError> {
        let value = |name| {
            let at = variables.needed(name)?;
            let value = memory.read_pointer(at);
            Ok(value.map_err(AdapterError::reading("stack pages"))?.0)
        };
        let [frame, stack, program] = REGISTERS.map(|name| variables.needed(name));
        let [base_return, interpreter_return] = RETURNS.map(value);
        let counters = beyond::COUNTERS.iter();
        Ok(CogUnwinder {
            zone: bounds.start.0..bounds.end.0,
            heap: value("heapBase")?,
            nil: value("nilObj")?,
            base_return: base_return?,
            interpreter_return: interpreter_return?,
            registers: [frame?, stack?, program?],
            counters: counters.filter_map(|name| variables.at(name)).collect(),
            pages: StackPages::read(value, &*memory)?,
            owners: Owners::new(layout, variables.at(COMPACTIONS)),
            known: FxHashMap::default(),
            memory,
        })
    }

    /// The method of the frame at `fp`, whose words `word` reads.
    fn owner(
        &mut self,
        fp: u64,
        word: impl Fn(u64) -> Result<u64, ChainEnd>,
    ) -> Result<Owner, ChainEnd> {
        let method = word(fp.wrapping_sub(METHOD))?;
        if method >= self.heap {
            return Ok(Owner::Interpreted(method));
        }
        let body = match self.zone.contains(&method) {
            true => self.owners.body(method, &*self.memory),
            false => None,
        };
        body.map(Owner::Machine).ok_or(ChainEnd::Broken)
    }

    /// Whether `pc` may be a return address into a frame of the method.
    fn is_caller(&self, owner: &Owner, pc: u64) -> bool {
        match owner {
            Owner::Machine(body) => body.may_call_before(pc),
            Owner::Interpreted(_) => pc == self.interpreter_return,
        }
    }

    /// Whether `pc` is certainly a return address into a frame of the method. Recursive calls leave
    /// addresses of code before the frame on the stack.
    fn is_surely_caller(&self, owner: &Owner, pc: u64) -> bool {
        match owner {
            Owner::Machine(body) => body.has_call_before(pc),
            Owner::Interpreted(_) => self.is_caller(owner, pc),
        }
    }

    /// The caller of the whole frame at the frame pointer.
    fn above(&mut self, frame: &Frame<'_>) -> Result<Unwound, ChainEnd> {
        let FrameRegisters { fp, .. } = frame.registers;
        let caller = frame.by_frame_pointer()?;
        if caller.pc == self.base_return {
            return self.beyond_page(frame);
        }
        let rises = caller.fp > fp && self.pages.index(caller.fp) == self.pages.index(fp);
        if !rises || !self.zone.contains(&caller.pc) {
            return Err(ChainEnd::Broken);
        }
        Ok(Unwound::certain(caller))
    }

    /// The caller of sampled code on a stack page.
    fn of_leaf(&mut self, frame: &Frame<'_>) -> Result<Unwound, ChainEnd> {
        let FrameRegisters { pc, sp, fp } = frame.registers;
        if self.pages.index(fp).is_none() || fp < sp {
            return Err(ChainEnd::Broken);
        }
        if fp.wrapping_sub(METHOD) < sp {
            // Code builds its frame, and has not yet pushed its method.
            return self.above(frame);
        }
        let owner = self.owner(fp, |at| frame.word_at_pointer(at))?;
        let words = match &owner {
            // A return address is on top after code has removed its frame.
            Owner::Machine(body) if body.has_frame_at(pc) => 1,
            _ => LEAF_WORDS,
        };
        for at in (sp..fp).step_by(8).take(words) {
            let pc = frame.word(at)?;
            if self.is_surely_caller(&owner, pc) {
                return Ok(Unwound::certain(FrameRegisters {
                    pc,
                    sp: at.wrapping_add(8),
                    fp,
                }));
            }
        }
        match owner {
            // The frame is its own, although perhaps not whole.
            Owner::Machine(body) if body.contains(pc) => self.above(frame),
            _ => Err(ChainEnd::Broken),
        }
    }

    /// The Smalltalk caller of C code that generated code has called.
    fn caller_of_c(&mut self, frame: &Frame<'_>) -> Result<Unwound, ChainEnd> {
        let words = read_words(&*self.memory, &self.registers);
        let words = words.map_err(|_| ChainEnd::Broken)?;
        let &[Some([fp]), Some([sp]), Some([pc])] = words.as_slice() else {
            return Err(ChainEnd::Broken);
        };
        let is_in_page = self.pages.index(fp).is_some();
        if !is_in_page || self.pages.index(sp) != self.pages.index(fp) {
            return Err(ChainEnd::Broken);
        }
        let owner = self.owner(fp, |at| frame.word_at_pointer(at))?;
        let pushed = frame.word_at_pointer(sp)?;
        let candidates = [(pushed, sp.wrapping_add(8)), (pc, sp)];
        let mut candidates = candidates.into_iter();
        let (pc, sp) = candidates
            .find(|(pc, _)| self.is_caller(&owner, *pc))
            .ok_or(ChainEnd::Broken)?;
        Ok(Unwound {
            is_late: true,
            ..Unwound::certain(FrameRegisters { pc, sp, fp })
        })
    }

    /// An interpreted frame: its bytecode, and its caller.
    fn interpreted(&mut self, frame: &Frame<'_>) -> Result<Unwound, ChainEnd> {
        let fp = frame.registers.fp;
        let word = |at: u64| frame.word_at_pointer(at);
        let Owner::Interpreted(method) = self.owner(fp, word)? else {
            return Err(ChainEnd::Broken);
        };
        let bytecode = word(fp.wrapping_sub(BYTECODE))?;
        Ok(Unwound {
            shown: Some(Avma(bytecode.wrapping_add(1))),
            method: Some(Avma(method)),
            ..self.above(frame)?
        })
    }
}

impl Unwinder for CogUnwinder {
    fn covers(&self, pc: Avma) -> bool {
        self.zone.contains(&pc.0)
    }

    fn caller(&mut self, frame: &Frame<'_>) -> Result<Option<Unwound>, ChainEnd> {
        let FrameRegisters { pc, sp, fp } = frame.registers;
        self.owners.look(frame.time, &*self.memory);
        let unwound = if !self.pages.hold(sp) {
            self.caller_of_c(frame)?
        } else if frame.sampled.is_some() {
            self.of_leaf(frame)?
        } else if pc == self.interpreter_return {
            self.interpreted(frame)?
        } else {
            let owner = self.owner(fp, |at| frame.word_at_pointer(at))?;
            match self.is_caller(&owner, pc) {
                true => self.above(frame)?,
                false => return Err(ChainEnd::Broken),
            }
        };
        Ok(Some(unwound))
    }
}
