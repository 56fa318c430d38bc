//! Callers of JavaScript: frame pointers through all tiers and builtins.
//!
//! The frame pointer register points to a frame once code has made its frame, and until its
//! epilogue. The machine code after a sampled pc tells both ([`MachineCode`]). Some builtins make
//! frames in one branch, some handlers of bytecodes make no frame. Without such proof, the frame pointer
//! alone is a guess. Sparkplug's code calls a builtin that makes its frame, and jumps to another builtin
//! that removes the frame. WebAssembly's functions, optimised functions and regular expressions keep the frame that they begin
//! with up to their return ([`kept_frame`]). Frames that have called are whole.
//!
//! V8 replaces the frames of optimised code that it deoptimises by frames of the interpreter. These return to the begin of a
//! builtin that goes on with the next bytecode; a frame of a builtin returns to one that goes on with this builtin.
//!
//! C++ has unwind tables. `CEntry` and `JSEntry`, builtins with frame pointers, lead to it and back.

mod kept_frame;

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vmscope_process::{
    Frame, FrameRegisters, MachineCode, MapEntry, Memory, Piece, Pieces, ProcessView, Symbol,
    Unwinder, Unwound, behind_first_call, entered,
};
use vmscope_records::{Avma, ChainEnd};

use crate::code::{Code, Kind};
use crate::object::Tagged;
use crate::pattern::{Sighting, Sightings};
use crate::sighted::{FUNCTION, FrameFunctions};
use crate::vm::V8;

/// The builtin that calls the interpreter: its frames are those of interpreted functions.
const ENTRY: &str = "Builtins_InterpreterEntryTrampoline";

/// Parts of the names of builtins to which deoptimised frames return: those of the interpreter, and others.
const RESUME_BYTECODES: &str = "InterpreterEnterAt";
const RESUME: &str = "Builtins_ContinueTo";

/// The builtin that makes the frames of Sparkplug's functions. It takes its return address from the stack first.
const PROLOGUE: &str = "Builtins_BaselineOutOfLinePrologue";

/// End of the names of the bytecodes' handlers.
const HANDLER: &str = "Handler";

/// Distances of an interpreted frame's bytecodes, and of its offset in them, below its frame pointer.
/// The offset counts from the tagged pointer.
const BYTECODES: u64 = 32;
const OFFSET: u64 = 40;

/// Offset of the regular expression above the frame pointer of its code: the ninth argument, the third on the
/// stack.
const REGULAR_EXPRESSION: u64 = 32;

/// Bytes at the begin of code that make its frame; of Sparkplug's code, its first call.
const BEGIN_BYTES: usize = 64;

/// Begin of WebAssembly's functions: `push rbp; mov rbp, rsp; push` of the frame's type, and the number of bytes that make
/// the frame.
const WASM_BEGIN: [u8; 5] = [0x55, 0x48, 0x89, 0xe5, 0x6a];
const WASM_FRAME: usize = 4;

/// Begins of Liftoff's functions since V8 13, which pass the function's number in r12 to the builtin that makes the frame:
/// `mov r12d, NUMBER` and `xor r12d, r12d`.
const LIFTOFF_BEGINS: [&[u8]; 2] = [&[0x41, 0xbc], &[0x45, 0x31, 0xe4, 0xe8]];

/// Above the size of the builtin that makes frames.
const MAX_PROLOGUE: usize = 4096;

/// Maximum number of pieces of code whose frames are remembered.
const MAX_KNOWN: usize = 1 << 16;

/// Machine code with frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameCode {
    /// Its addresses.
    pub code: Range<u64>,
    /// Its compiler; `None` for builtins, and code of WebAssembly, which its first bytes tell.
    pub compiler: Option<Compiler>,
}

/// Compilers, as far as the frames of their code differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compiler {
    /// Sparkplug: functions call a builtin that makes their frame.
    Sparkplug,
    /// TurboFan and Maglev: functions make their frames first.
    Optimising,
    /// The compiler of regular expressions, whose code begins with a jump to its entry.
    RegExp,
    /// Those of WebAssembly: functions make their frames first.
    Wasm,
}

impl From<&Code> for FrameCode {
    fn from(code: &Code) -> Self {
        FrameCode {
            code: code.start.0..code.end.0,
            compiler: match code.kind {
                Kind::Baseline => Some(Compiler::Sparkplug),
                Kind::Turbofan | Kind::Maglev => Some(Compiler::Optimising),
                Kind::RegExp => Some(Compiler::RegExp),
                Kind::Builtin | Kind::Wasm | Kind::Interpreted => None,
            },
        }
    }
}

/// Code with frames, for the unwinder in another thread.
#[derive(Debug, Default)]
pub struct CodeFrames {
    pieces: Pieces,
    compiled: Compiled,
    /// The interpreter's entries, which make frames, and the bytecodes' handlers.
    interpreter: Pieces,
    /// Builtins to which deoptimised frames return, each with whether it goes on with a bytecode.
    resuming: Pieces,
    /// The builtin that makes frames of functions.
    prologue: Pieces,
    known: FxHashMap<u64, u64>,
    /// Code of regular expressions without a pattern.
    unnamed: Pieces,
    sightings: Sightings,
    functions: FrameFunctions,
    /// Mappings of the builtins' file with code.
    files: Vec<MapEntry>,
}

impl CodeFrames {
    /// Tells the unwinder of `codes`, all machine code of a poll, and of the builtins.
    pub fn update(
        &mut self,
        codes: impl Iterator<Item = FrameCode>,
        vm: &V8,
        process: &ProcessView,
    ) {
        let mut gone = std::mem::take(&mut self.known);
        for code in codes {
            let (start, end) = (code.code.start, code.code.end);
            if gone.get(&start) == Some(&end) {
                gone.remove(&start);
                self.known.insert(start, end);
            } else {
                self.put(&code);
            }
        }
        for (start, end) in gone {
            self.take(start..end);
        }
        self.update_builtins(vm, process);
    }

    /// Takes new code.
    pub fn put(&mut self, code: &FrameCode) {
        let range = code.code.clone();
        self.known.insert(range.start, range.end);
        self.pieces.put(range.clone(), true);
        self.compiled.put(range, code.compiler);
    }

    /// Forgets code that is gone: the rules of other code may be wrong in its place.
    pub fn take(&mut self, code: Range<u64>) {
        if self.known.get(&code.start) == Some(&code.end) {
            self.known.remove(&code.start);
        }
        self.pieces.take(&code);
        self.compiled.take(&code);
    }

    /// Asks the unwinder for the regular expressions in frames of `codes`.
    pub fn seek(&self, codes: impl Iterator<Item = Range<u64>>) {
        self.unnamed.replace(codes);
    }

    /// Functions that the unwinder has seen.
    #[must_use]
    pub fn functions(&self) -> &FrameFunctions {
        &self.functions
    }

    /// Regular expressions that the unwinder has seen.
    #[must_use]
    pub fn sightings(&self) -> &Sightings {
        &self.sightings
    }

    /// Tells the unwinder of the builtins, if mappings of their file have changed: V8 maps the builtins once
    /// more near each isolate's code.
    pub fn update_builtins(&mut self, vm: &V8, process: &ProcessView) {
        let mappings = process.mappings();
        let is_code = |entry: &&MapEntry| {
            entry.executable && entry.path() == Some(vm.product.module.path.as_slice())
        };
        if mappings.iter().filter(is_code).eq(&self.files) {
            return;
        }
        let files: Vec<MapEntry> = mappings.iter().filter(is_code).cloned().collect();
        for builtin in vm.builtins() {
            let at = builtin.address.0;
            let Some(original) = files
                .iter()
                .find(|file| (file.start.0..file.end.0).contains(&at))
            else {
                continue;
            };
            let in_file = original.offset.0.wrapping_add(at - original.start.0);
            for file in &files {
                let length = file.end.0.saturating_sub(file.start.0);
                let offset = in_file.wrapping_sub(file.offset.0);
                if offset < length {
                    self.put_builtin(builtin, file.start.0.wrapping_add(offset));
                }
            }
        }
        self.files = files;
    }

    fn put_builtin(&mut self, builtin: &Symbol, at: u64) {
        let range = at..at.saturating_add(builtin.size);
        let is_entry = builtin.name == ENTRY;
        if is_entry || builtin.name.ends_with(HANDLER) {
            self.interpreter.put(range.clone(), is_entry);
        }
        let resumes_bytecodes = builtin.name.contains(RESUME_BYTECODES);
        if resumes_bytecodes || builtin.name.starts_with(RESUME) {
            self.resuming.put(range.clone(), resumes_bytecodes);
        }
        if builtin.name == PROLOGUE {
            self.prologue.put(range.clone(), true);
        }
        self.pieces.put(range, true);
    }

    /// The unwinder; `None` on processors other than x86-64.
    #[must_use]
    pub fn unwinder(&mut self, vm: &V8, process: &ProcessView) -> Option<Box<dyn Unwinder>> {
        self.update_builtins(vm, process);
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        let code = vm
            .product
            .module
            .mappings
            .iter()
            .filter(|entry| entry.executable);
        let module = code.map(|entry| entry.start.0..entry.end.0).collect();
        Some(Box::new(V8Unwinder::new(
            process.shared_memory(),
            self,
            module,
        )))
    }
}

/// Code by its compiler.
#[derive(Clone, Debug, Default)]
struct Compiled([Pieces; 3]);

impl Compiled {
    const COMPILERS: [Compiler; 3] = [Compiler::Sparkplug, Compiler::Optimising, Compiler::RegExp];

    fn put(&self, range: Range<u64>, compiler: Option<Compiler>) {
        for (pieces, of) in self.0.iter().zip(Self::COMPILERS) {
            match Some(of) == compiler {
                true => pieces.put(range.clone(), true),
                false => pieces.take(&range),
            }
        }
    }

    fn take(&self, range: &Range<u64>) {
        self.put(range.clone(), None);
    }

    fn at(&self, pc: u64) -> Option<(Compiler, Piece)> {
        let mut each = self.0.iter().zip(Self::COMPILERS);
        each.find_map(|(pieces, compiler)| Some((compiler, pieces.at(pc)?)))
    }
}

/// Unwinds the frames of one V8's generated code.
struct V8Unwinder {
    code: MachineCode,
    memory: Arc<dyn Memory>,
    pieces: Pieces,
    compiled: Compiled,
    interpreter: Pieces,
    resuming: Pieces,
    prologue: Pieces,
    unnamed: Pieces,
    sightings: Sightings,
    functions: FrameFunctions,
    /// Addresses from which on code has its frame, by the numbers of pieces.
    frames_made: FxHashMap<(Compiler, u64), Option<u64>>,
    /// Whether the last frame was a sampled one.
    follows_leaf: bool,
    /// Whether the last frame was that of the builtin that makes a frame for the next.
    precedes_frame: bool,
    /// Code of V8's module.
    module: Vec<Range<u64>>,
}

impl std::fmt::Debug for V8Unwinder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("V8Unwinder")
            .field("module", &self.module)
            .finish_non_exhaustive()
    }
}

impl V8Unwinder {
    fn new(memory: Arc<dyn Memory>, frames: &CodeFrames, module: Vec<Range<u64>>) -> Self {
        V8Unwinder {
            code: MachineCode::keeping_frame_pointers(Arc::clone(&memory), frames.pieces.clone()),
            memory,
            frames_made: FxHashMap::default(),
            follows_leaf: false,
            precedes_frame: false,
            compiled: frames.compiled.clone(),
            pieces: frames.pieces.clone(),
            interpreter: frames.interpreter.clone(),
            resuming: frames.resuming.clone(),
            prologue: frames.prologue.clone(),
            unnamed: frames.unnamed.clone(),
            sightings: frames.sightings.clone(),
            functions: frames.functions.clone(),
            module,
        }
    }

    /// Whether `pc` returns to the interpreter's entry.
    fn returns_to_entry(&self, pc: u64) -> bool {
        let piece = self.interpreter.at(pc.wrapping_sub(1));
        piece.is_some_and(|piece| piece.has_frames)
    }

    /// Whether a deoptimised frame goes on at `pc` with a bytecode, or else with a builtin; `None` for other frames.
    fn resumes_bytecodes(&self, pc: u64) -> Option<bool> {
        let builtin = self.resuming.at(pc)?;
        (builtin.code.start == pc).then_some(builtin.has_frames)
    }

    /// Whether a frame may return to `pc`.
    fn is_return(&mut self, pc: u64) -> bool {
        self.code.is_after_call(pc)
            || self.resumes_bytecodes(pc).is_some()
            || kept_frame::is_given_up(&*self.memory, pc)
    }

    /// Caller of a sampled frame; `None` without proof.
    fn of_leaf(&mut self, frame: &Frame<'_>) -> Option<FrameRegisters> {
        let pc = frame.registers.pc;
        if let Some(builtin) = self.prologue.at(pc) {
            return self.of_prologue(frame, builtin.code.start);
        }
        let on_top = || on_top(frame);
        let compiled = self.compiled.at(pc);
        if let Some((Compiler::Sparkplug, piece)) = &compiled {
            let made = self.frame_made(piece, Compiler::Sparkplug)?;
            let caller = match pc >= made {
                true => frame.by_frame_pointer().ok(),
                false => on_top(),
            };
            return caller.filter(|caller| self.is_return(caller.pc));
        }
        // A look at a few bytes, which spares a run through the code.
        if let Some((compiler, piece)) = compiled
            && let Some(made) = self.frame_made(&piece, compiler)
            && kept_frame::is_there(&*self.memory, &(made..piece.code.end), pc)
            && let Ok(caller) = frame.by_frame_pointer()
            && self.is_return(caller.pc)
        {
            return Some(caller);
        }
        let piece = self.pieces.at(pc);
        if piece.is_none()
            && let Some(has_frame) = self.has_frame_by_surroundings(pc)
        {
            let caller = match has_frame {
                true => frame.by_frame_pointer().ok(),
                false => on_top(),
            };
            return caller.filter(|caller| self.is_return(caller.pc));
        }
        let made = (piece.as_ref()).and_then(|piece| self.frame_made(piece, Compiler::Wasm));
        if let (Some(piece), Some(made)) = (&piece, made)
            && pc < made
            && is_made_by_builtin(piece, made)
        {
            return on_top().filter(|caller| self.is_return(caller.pc));
        }
        if let Ok(Some(unwound)) = self.code.caller(frame)
            && let Some(caller) = lifted(frame, unwound.caller)
        {
            return Some(caller);
        }
        let by_run = self.code.by_run(frame, piece?);
        if let Some(caller) = by_run.and_then(|caller| lifted(frame, caller)) {
            return Some(caller);
        }
        let has_frame = made.is_some_and(|made| pc >= made) && !self.may_lack_frame(pc);
        let caller = frame.by_frame_pointer().ok().filter(|_| has_frame)?;
        self.is_return(caller.pc).then_some(caller)
    }

    /// Whether code that no poll has read has its frame at `pc`; `None` if that is uncertain.
    fn has_frame_by_surroundings(&self, pc: u64) -> Option<bool> {
        let makes_frames = |at| self.prologue.at(at).is_some();
        let is_of_isolate = !self.module.iter().any(|code| code.contains(&pc));
        let found = || kept_frame::by_surroundings(&*self.memory, pc, makes_frames);
        is_of_isolate.then(found).flatten()
    }

    /// The function of Sparkplug whose frame the builtin at `start` makes.
    fn of_prologue(&mut self, frame: &Frame<'_>, start: u64) -> Option<FrameRegisters> {
        let length = frame.registers.pc.checked_sub(start)?;
        let code = (self.memory).read_vec(Avma(start), length, MAX_PROLOGUE);
        let entered = entered(&code.ok()?, start)?;
        let function = entered.caller(frame).ok()?;
        // The call on an exhausted stack has a frame of its own.
        let by_frame_pointer = frame.by_frame_pointer().ok();
        let own = by_frame_pointer.filter(|caller| caller.pc == function.pc);
        self.precedes_frame = own.is_none() && !entered.has_frame;
        (own.or(Some(function))).filter(|function| self.is_return(function.pc))
    }

    /// The caller of a function that has called the builtin which makes its frame: the function's return address is still
    /// on top of the stack. Functions of Liftoff call it through the jump table.
    fn of_frameless(&mut self, frame: &Frame<'_>) -> Option<FrameRegisters> {
        if std::mem::take(&mut self.precedes_frame) {
            return on_top(frame).filter(|caller| self.is_return(caller.pc));
        }
        let piece = self.pieces.at(frame.instruction().0)?;
        let made = self.frame_made(&piece, Compiler::Wasm)?;
        let is_called = frame.registers.pc == made && is_made_by_builtin(&piece, made);
        let caller = on_top(frame).filter(|_| is_called)?;
        self.code.is_after_call(caller.pc).then_some(caller)
    }

    /// Whether a WebAssembly function may have removed its frame before the instruction at `pc`.
    fn may_lack_frame(&self, pc: u64) -> bool {
        let mut first = [0; 2];
        let read = self.memory.read_partial(Avma(pc), &mut first).unwrap_or(0);
        first.get(..read).is_none_or(kept_frame::may_leave)
    }

    /// Address from which on code has its frame; `None` for code that does not begin as the compiler's functions do.
    fn frame_made(&mut self, piece: &Piece, compiler: Compiler) -> Option<u64> {
        if self.frames_made.len() >= MAX_KNOWN {
            self.frames_made.clear();
        }
        let memory = &self.memory;
        let made = self.frames_made.entry((compiler, piece.number));
        *made.or_insert_with(|| {
            let start = piece.code.start;
            let mut begin = [0; BEGIN_BYTES];
            let got = memory.read_partial(Avma(start), &mut begin).ok()?;
            let begin = begin.get(..got)?;
            let bytes = match compiler {
                Compiler::Sparkplug => behind_first_call(begin),
                Compiler::Wasm => wasm_frame(begin),
                Compiler::Optimising => kept_frame::behind_prologue(begin),
                Compiler::RegExp => kept_frame::behind_jump(begin),
            };
            start.checked_add(bytes? as u64)
        })
    }

    /// Tells the adapter the regular expression of code without a pattern, and both that and the function of code that no
    /// poll has read.
    fn sight(&self, frame: &Frame<'_>) {
        let FrameRegisters { pc, fp, .. } = frame.registers;
        let is_read = self.pieces.at(frame.instruction().0).is_some();
        if !is_read {
            self.sight_function(frame);
        }
        if frame.sampled.is_none() || (is_read && self.unnamed.at(pc).is_none()) {
            return;
        }
        let word = frame.word_at_pointer(fp.wrapping_add(REGULAR_EXPRESSION));
        let object = word.ok().map(Tagged);
        if let Some(object) = object.filter(|object| object.address().is_some()) {
            self.sightings.put(Sighting {
                time: frame.time,
                pc: Avma(pc),
                object,
            });
        }
    }

    /// Tells the adapter the function in a frame.
    fn sight_function(&self, frame: &Frame<'_>) {
        let word = frame.word_at_pointer(frame.registers.fp.wrapping_sub(FUNCTION));
        let function = word.ok().map(Tagged);
        if let Some(function) = function.filter(|function| function.address().is_some()) {
            self.functions.put(function, frame.time);
        }
    }

    /// The caller of a frame that has called.
    fn of_caller(&mut self, frame: &Frame<'_>) -> Result<Unwound, ChainEnd> {
        let caller = frame.by_frame_pointer()?;
        Ok(Unwound {
            is_guess: !self.is_return(caller.pc),
            ..Unwound::certain(caller)
        })
    }
}

impl Unwinder for V8Unwinder {
    /// Other code of the module without unwind tables is assembly of Node.js's libraries.
    fn covers(&self, pc: Avma) -> bool {
        let is_in_module = self.module.iter().any(|code| code.contains(&pc.0));
        !is_in_module || self.pieces.at(pc.0).is_some()
    }

    /// All builtins are added at a time, the interpreter among them.
    fn version(&self) -> Option<u64> {
        Some(self.interpreter.count())
    }

    fn caller(&mut self, frame: &Frame<'_>) -> Result<Option<Unwound>, ChainEnd> {
        let is_leaf = frame.sampled.is_some();
        let follows_leaf = std::mem::replace(&mut self.follows_leaf, is_leaf);
        self.precedes_frame &= !is_leaf;
        let unwound = match is_leaf.then(|| self.of_leaf(frame)) {
            None => match follows_leaf.then(|| self.of_frameless(frame)).flatten() {
                Some(caller) => Unwound::certain(caller),
                None => self.of_caller(frame)?,
            },
            Some(Some(caller)) => Unwound::certain(caller),
            Some(None) => Unwound {
                is_guess: true,
                ..Unwound::certain(frame.by_frame_pointer()?)
            },
        };
        if let Some(resumes_bytecodes) = self.resumes_bytecodes(frame.registers.pc)
            && !is_leaf
        {
            self.sight_function(frame);
            let function = interpreted(frame).filter(|_| resumes_bytecodes);
            return Ok(Some(match function {
                None => Unwound {
                    // The call before this address would be in another builtin.
                    shown: Some(Avma(frame.registers.pc.wrapping_add(1))),
                    ..unwound
                },
                function => with_function(unwound, function),
            }));
        }
        let pc = frame.instruction().0;
        let Some(piece) = self.interpreter.at(pc) else {
            self.sight(frame);
            return Ok(Some(unwound));
        };
        if piece.has_frames {
            self.sight_function(frame);
            let function = interpreted(frame).filter(|_| !is_leaf);
            return Ok(Some(with_function(unwound, function)));
        }
        if !self.returns_to_entry(unwound.caller.pc) {
            return Ok(Some(unwound));
        }
        // A handler executes the function of the interpreter's frame: both frames are one.
        let entry = Frame {
            registers: unwound.caller,
            sampled: None,
            ..*frame
        };
        self.sight_function(&entry);
        let outer = self.of_caller(&entry)?;
        let function = interpreted(&entry).map(|function| match is_leaf {
            // Handlers store their place before calls only.
            true => (Avma(function.1.0.wrapping_add(1)), function.1),
            false => function,
        });
        let is_guess = unwound.is_guess || outer.is_guess;
        Ok(Some(with_function(Unwound { is_guess, ..outer }, function)))
    }
}

/// A caller by a run through the code. Builtins that resume a generator push its values before they jump to it: the function
/// that they jump to removes these, and the caller's stack pointer lies above.
fn lifted(frame: &Frame<'_>, caller: FrameRegisters) -> Option<FrameRegisters> {
    let FrameRegisters { sp, fp, .. } = frame.registers;
    let is_above = caller.sp >= sp;
    (is_above || caller.fp == fp).then_some(FrameRegisters {
        sp: caller.sp.max(sp),
        ..caller
    })
}

/// The caller of code without a frame, whose return address is on top of the stack.
fn on_top(frame: &Frame<'_>) -> Option<FrameRegisters> {
    let FrameRegisters { sp, fp, .. } = frame.registers;
    Some(FrameRegisters {
        pc: frame.word(sp).ok()?,
        sp: sp.wrapping_add(8),
        fp,
    })
}

/// Whether a builtin makes the frame of WebAssembly code that has it from `made` on.
fn is_made_by_builtin(piece: &Piece, made: u64) -> bool {
    made > piece.code.start.saturating_add(WASM_FRAME as u64)
}

fn with_function(unwound: Unwound, function: Option<(Avma, Avma)>) -> Unwound {
    let (shown, method) = function.unzip();
    Unwound {
        shown,
        method,
        ..unwound
    }
}

/// Number of bytes that make the frame of a WebAssembly function, from its first instructions.
fn wasm_frame(begin: &[u8]) -> Option<usize> {
    match begin.starts_with(&WASM_BEGIN) {
        true => Some(WASM_FRAME),
        false => {
            let is_liftoff = LIFTOFF_BEGINS.iter().any(|it| begin.starts_with(it));
            behind_first_call(begin).filter(|_| is_liftoff)
        }
    }
}

/// The function of an interpreted frame: the address behind its current bytecode, and its tagged
/// bytecodes. `None` if the frame does not hold them.
fn interpreted(frame: &Frame<'_>) -> Option<(Avma, Avma)> {
    let fp = frame.registers.fp;
    let word = |below: u64| frame.word_at_pointer(fp.wrapping_sub(below)).ok();
    let bytecodes = Tagged(word(BYTECODES)?);
    let offset = Tagged(word(OFFSET)?).small_integer()?;
    let offset = u64::try_from(offset).ok()?;
    bytecodes.address()?;
    let behind = bytecodes.0.checked_add(offset)?.checked_add(1)?;
    Some((Avma(behind), Avma(bytecodes.0)))
}

#[cfg(test)]
mod tests;
