//! Unwind rules of generated code on x86-64, from its machine code.

use std::collections::hash_map::Entry;
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

/// Maximum bytes of a routine without frames, and maximum number of such routines in memory: a hostile
/// VM may report any number of any size.
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
    /// Whether addresses are after a call, likewise.
    after_calls: FxHashMap<u64, (Option<u64>, bool)>,
    /// Code of routines without frames, by the number of their piece.
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
            after_calls: FxHashMap::default(),
            routines: FxHashMap::default(),
        }
    }

    fn rule(&mut self, frame: &Frame<'_>) -> Option<CodeRule> {
        let pc = frame.registers.pc;
        let is_innermost = frame.sampled.is_some();
        let Some(Piece { code, number, .. }) = self.pieces.at(frame.instruction().0) else {
            // Code that is not known may be replaced unseen.
            let mut code = [0; STRAIGHT_BYTES];
            let got = self.memory.read_partial(Avma(pc), &mut code).ok()?;
            return CodeRule::of_straight(code.get(..got)?);
        };
        if let Some((known, rule)) = self.rules.get(&(pc, is_innermost))
            && *known == number
        {
            return *rule;
        }
        let length = code.end.saturating_sub(code.start);
        let bytes = self.memory.read_vec(Avma(code.start), length, MAX_CODE);
        let rule = bytes
            .ok()
            .and_then(|bytes| match self.keeps_frame_pointers {
                true => {
                    let by = |jumps| CodeRule::of_returning(&bytes, code.start, pc, jumps);
                    by(Jumps::Unknown).or_else(|| by(Jumps::Tail))
                }
                false => CodeRule::of_function(&bytes, code.start, pc, is_innermost),
            });
        make_room(&mut self.rules);
        self.rules.insert((pc, is_innermost), (number, rule));
        rule
    }

    /// The caller of a routine without a frame: by the routine's remaining code, else by the innermost
    /// word of the stack.
    fn of_routine(&mut self, frame: &Frame<'_>, piece: Piece) -> Option<FrameRegisters> {
        let Piece { code, number, .. } = piece;
        if self.routines.len() >= MAX_ROUTINES {
            self.routines.clear();
        }
        let bytes = match self.routines.entry(number) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => {
                let length = code.end.saturating_sub(code.start);
                let bytes = self.memory.read_vec(Avma(code.start), length, MAX_ROUTINE);
                new.insert(bytes.ok()?.into()).clone()
            }
        };
        let by_code = Run::new(&bytes, code.start, frame).caller(STEPS, Jumps::Tail);
        let FrameRegisters { sp, fp, .. } = frame.registers;
        let on_top = || {
            Some(FrameRegisters {
                pc: frame.word(sp).ok()?,
                sp: sp.wrapping_add(8),
                fp,
            })
        };
        let found = by_code.filter(|caller| self.is_after_call(caller.pc));
        found.or_else(|| on_top().filter(|caller| self.is_after_call(caller.pc)))
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

    fn is_after_call(&mut self, pc: u64) -> bool {
        let number = self.pieces.at(pc.wrapping_sub(1)).map(|piece| piece.number);
        if let Some((known, is_after)) = self.after_calls.get(&pc)
            && *known == number
        {
            return *is_after;
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
        let is_after = codes.next().is_some_and(|code| ends_with_call(&code));
        make_room(&mut self.after_calls);
        self.after_calls.insert(pc, (number, is_after));
        is_after
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
/// A frame pointer of 0 ends the chain: the first frame of a process of the VM. An Erlang process
/// begins with a return to `normal_exit`, which nothing has called.
#[derive(Debug)]
pub struct KeptFramePointers {
    code: MachineCode,
    interpreted: Arc<OnceLock<InterpretedFrames>>,
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
            code: MachineCode {
                keeps_frame_pointers: true,
                ..MachineCode::new(memory, pieces)
            },
            interpreted,
            before_frame: None,
        }
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
                let returns = caller.fp == 0 || self.is_interpreted(caller.pc).is_some();
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
            end: (unwound.caller.fp == 0).then_some(ChainEnd::Whole),
            ..unwound
        }))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::FakeMemory;
    use vmscope_records::{Arch, Registers, StackBytes, TimeNs};

    use super::*;

    /// `sub $8,%rsp; call *%rcx; add $8,%rsp; ret` (CPython 3.12 and 3.13).
    const TRAMPOLINE: &[u8] = &[
        0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3,
    ];

    fn stack(words: &[u64]) -> StackBytes {
        StackBytes {
            sp: Avma(0x7000),
            bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        }
    }

    fn kept(memory: FakeMemory, pieces: Pieces) -> KeptFramePointers {
        KeptFramePointers::new(Arc::new(memory), pieces, Arc::default())
    }

    fn caller_in(
        unwinder: &mut dyn Unwinder,
        (pc, fp): (u64, u64),
        stack: &StackBytes,
    ) -> Result<Option<(u64, u64, u64)>, ChainEnd> {
        let frame = Frame {
            registers: FrameRegisters { pc, sp: 0x7000, fp },
            sampled: None,
            stack,
            time: TimeNs(0),
        };
        let unwound = unwinder.caller(&frame)?;
        let unwound = unwound.filter(|unwound| unwound.end.is_none());
        Ok(unwound.map(|Unwound { caller, .. }| (caller.pc, caller.sp, caller.fp)))
    }

    #[test]
    fn trampolines_are_left_by_their_code() {
        let mut memory = FakeMemory::new();
        memory.put(Avma(0x1000), TRAMPOLINE.to_vec());
        // A call in the interpreter's loop, and a stack word that only looks like a return address.
        memory.put(Avma(0x2000), vec![0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4, 0x90]);
        memory.put(Avma(0x3000), vec![0x90; 16]);
        let mut unwinder = MachineCode::new(Arc::new(memory), Pieces::default());
        let returns = stack(&[0, 0x2008]);
        let found = caller_in(&mut unwinder, (0x1006, 5), &returns);
        assert_eq!(found, Ok(Some((0x2008, 0x7010, 5))));
        let no_call = stack(&[0, 0x3008]);
        let found = caller_in(&mut unwinder, (0x1006, 5), &no_call);
        assert_eq!(found, Err(ChainEnd::Broken));
        // Unknown code, and none at all.
        for pc in [0x3008, 0x9000] {
            let found = caller_in(&mut unwinder, (pc, 0x7000), &returns);
            assert_eq!(found, Err(ChainEnd::Broken));
        }
    }

    #[test]
    fn a_method_has_the_bounds_that_the_vm_tells_and_may_be_replaced() {
        let mut memory = FakeMemory::new();
        let method = [
            0x50, // push %rax
            0xff, 0xd1, // call *%rcx
            0xff, 0xd1, // call *%rcx
            0x48, 0x83, 0xc4, 0x08, // add $8,%rsp
            0xc3, // ret
        ];
        memory.put(Avma(0x1000), method.to_vec());
        let memory = Arc::new(memory);
        let pieces = Pieces::default();
        let mut unwinder = MachineCode::new(memory, pieces.clone());
        let returns = stack(&[0, 0x1005]);
        let mut found = || caller_in(&mut unwinder, (0x1003, 5), &returns);
        assert_eq!(found(), Err(ChainEnd::Broken));
        pieces.put(0x1000..0x100a, true);
        assert_eq!(found(), Ok(Some((0x1005, 0x7010, 5))));
        pieces.take(&(0x1000..0x100a));
        assert_eq!(found(), Err(ChainEnd::Broken));
    }

    #[test]
    fn an_erlang_process_begins_with_a_frame_pointer_of_zero() {
        let stack = stack(&[0x7010, 0x2008, 0, 0x3000]);
        let mut unwinder = kept(FakeMemory::new(), Pieces::default());
        let mut found = |fp| caller_in(&mut unwinder, (0x1006, fp), &stack);
        assert_eq!(found(0x7000), Ok(Some((0x2008, 0x7010, 0x7010))));
        assert_eq!(found(0x7010), Ok(None));
        assert_eq!(found(0), Err(ChainEnd::Broken));
        assert_eq!(found(0x70_0000_0000), Err(ChainEnd::Broken));
    }

    #[test]
    fn an_erlang_function_without_its_frame_yet_keeps_its_caller() {
        let function = [
            0x55, // push %rbp
            0x48, 0x89, 0xe5, // mov %rsp,%rbp
            0xc9, // leave
            0xeb, 0x70, // jmp to another function
        ];
        let mut memory = FakeMemory::new();
        memory.put(Avma(0x1000), function.to_vec());
        memory.put(Avma(0x2000), vec![0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4]);
        let pieces = Pieces::default();
        pieces.put(0x1000..0x1007, true);
        let mut unwinder = kept(memory, pieces);
        let sampled = Registers {
            arch: Arch::X86_64,
            mask: 0,
            values: Vec::new(),
        };
        for (pc, words) in [
            (0x1000, [0x2008, 0]),
            (0x1001, [0x7777, 0x2008]),
            (0x1005, [0x2008, 0]),
        ] {
            let frame = Frame {
                registers: FrameRegisters {
                    pc,
                    sp: 0x7000,
                    fp: 0x7010,
                },
                sampled: Some(&sampled),
                stack: &stack(&words),
                time: TimeNs(0),
            };
            let unwound = unwinder.caller(&frame).unwrap().unwrap();
            assert_eq!(
                (unwound.caller.pc, unwound.is_guess),
                (0x2008, false),
                "{pc:x}"
            );
        }
    }

    /// A frame in the innermost routine of a stack; the sampled registers beyond pc, sp and fp are
    /// unknown.
    fn caller_of(
        unwinder: &mut KeptFramePointers,
        pc: u64,
        is_innermost: bool,
        words: &[u64],
    ) -> Unwound {
        let sampled = Registers {
            arch: Arch::X86_64,
            mask: 0,
            values: Vec::new(),
        };
        let frame = Frame {
            registers: FrameRegisters {
                pc,
                sp: 0x7000,
                fp: 0x7020,
            },
            sampled: is_innermost.then_some(&sampled),
            stack: &stack(words),
            time: TimeNs(0),
        };
        unwinder.caller(&frame).unwrap().unwrap()
    }

    #[test]
    fn a_routine_has_the_caller_of_its_code_or_of_the_stacks_top() {
        let routine = [
            0x3d, 1, 0, 0, 0, // cmp $1,%eax
            0x0f, 0x84, 0, 1, 0, 0,    // je to a method
            0x50, // push %rax
            0xff, 0xd1, // call *%rcx
            0x5c, // pop %rsp
            0xc3, // ret
            0xff, 0x23, // jmp *(%rbx)
            0x48, 0x8b, 0x63, 0x08, // mov 8(%rbx),%rsp
            0xff, 0x23, // jmp *(%rbx)
        ];
        let mut memory = FakeMemory::new();
        memory.put(Avma(0x1000), routine.to_vec());
        memory.put(Avma(0x2000), vec![0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4]);
        let pieces = Pieces::default();
        pieces.put(0x1000..0x1018, false);
        let mut unwinder = kept(memory, pieces);
        for (pc, is_innermost, words, sp) in [
            // Before the frame, with a jump to other code, behind a call that moved the stack, and
            // where only the stack's top can tell.
            (0x1000, true, [0x2008, 0, 0, 0], 0x7008),
            (0x1010, true, [0x2008, 0, 0, 0], 0x7008),
            (0x100e, false, [0x7010, 0, 0x2008, 0], 0x7018),
            (0x1012, false, [0x2008, 0, 0, 0], 0x7008),
        ] {
            let unwound = caller_of(&mut unwinder, pc, is_innermost, &words);
            let FrameRegisters { pc: to, sp: up, fp } = unwound.caller;
            assert_eq!((to, up, fp), (0x2008, sp, 0x7020), "{pc:x}");
            assert!(!unwound.is_guess);
        }
        // Without a call before the word, only the frame pointer is left.
        let words = [0x2001, 0, 0, 0, 0x7040, 0x2222];
        assert_eq!(
            caller_of(&mut unwinder, 0x1000, true, &words).caller.pc,
            0x2222
        );
    }

    #[test]
    fn interpreted_callers_are_shown_by_their_next_bytecode() {
        let mut unwinder = kept(FakeMemory::new(), Pieces::default());
        let frames = InterpretedFrames {
            return_address: Avma(0x1501),
            next: -16,
        };
        unwinder.interpreted.set(frames).unwrap();
        let words = [0, 0, 0x9999, 0, 0x7040, 0x1501];
        let caller = caller_of(&mut unwinder, 0x1501, false, &words);
        assert_eq!(caller.shown, Some(Avma(0x9999)));
        assert_eq!((caller.caller.pc, caller.end), (0x1501, None));
        // The first frame of a stack is shown, too.
        let words = [0, 0, 0x9999, 0, 0, 0x1501];
        let first = caller_of(&mut unwinder, 0x1501, false, &words);
        assert_eq!(
            (first.shown, first.end),
            (Some(Avma(0x9999)), Some(ChainEnd::Whole))
        );
        // A sample in the routine itself is no caller.
        assert_eq!(caller_of(&mut unwinder, 0x1501, true, &words).shown, None);
    }
}
