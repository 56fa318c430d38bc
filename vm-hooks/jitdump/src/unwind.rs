//! Unwind rules of VMs without frame pointers everywhere.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vmscope_process::{
    CodeRule, Frame, FramePointers, FrameRegisters, Jumps, MAX_CALL_BYTES, Memory, Unwinder,
    Unwound, ends_with_call,
};
use vmscope_records::{Avma, ChainEnd};

use crate::code::Pieces;

/// Maximum bytes of a function's code that are read, for the rule of one of its instructions.
const MAX_CODE: usize = 64 << 10;

/// Bytes of code that are read outside known functions.
const STRAIGHT_BYTES: usize = 64;

/// More bytes than a prologue has.
const PROLOGUE_BYTES: u64 = 64;

/// The smallest page of Linux.
const PAGE_BYTES: u64 = 4096;

/// Maximum number of addresses whose rules, and whose calls, are remembered.
const MAX_KNOWN: usize = 1 << 16;

/// The rules of CPython and .NET on x86-64: what the machine code does next (see [`CodeRule`]).
///
/// CPython's trampolines have no frame pointer in most builds, optimised methods of .NET have none.
/// A return address counts only behind a call.
pub(crate) struct MachineCode {
    memory: Arc<dyn Memory>,
    pieces: Pieces,
    /// Functions without a return have frame pointers, too.
    keeps_frame_pointers: bool,
    /// Rules by address, of innermost frames or of callers, with the number of the piece that they
    /// were made for.
    rules: FxHashMap<(u64, bool), (u64, Option<CodeRule>)>,
    /// Whether addresses are after a call, likewise.
    after_calls: FxHashMap<u64, (Option<u64>, bool)>,
}

impl std::fmt::Debug for MachineCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MachineCode").finish_non_exhaustive()
    }
}

impl MachineCode {
    pub fn new(memory: Arc<dyn Memory>, pieces: Pieces) -> Self {
        MachineCode {
            memory,
            pieces,
            keeps_frame_pointers: false,
            rules: FxHashMap::default(),
            after_calls: FxHashMap::default(),
        }
    }

    fn rule(&mut self, frame: &Frame<'_>) -> Option<CodeRule> {
        let pc = frame.registers.pc;
        let is_innermost = frame.sampled.is_some();
        let Some((code, number)) = self.pieces.at(frame.instruction().0) else {
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

    /// A caller, if it has called.
    fn checked(&mut self, caller: FrameRegisters) -> Result<Option<Unwound>, ChainEnd> {
        match self.is_after_call(caller.pc) {
            true => Ok(Some(Unwound::certain(caller))),
            false => Err(ChainEnd::Broken),
        }
    }

    fn is_after_call(&mut self, pc: u64) -> bool {
        let piece = self.pieces.at(pc.wrapping_sub(1));
        let number = piece.map(|(_, number)| number);
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

/// The rules of Erlang's code on x86-64, which keeps frame pointers once it reports its names (`+JPperf`).
/// Of the innermost function, whose frame may be made later or be gone, the machine code tells.
///
/// An Erlang process begins with a frame pointer of 0 and a return to `normal_exit`, which nothing has
/// called.
#[derive(Debug)]
pub(crate) struct Beam(MachineCode);

impl Beam {
    pub fn new(memory: Arc<dyn Memory>, pieces: Pieces) -> Self {
        Beam(MachineCode {
            keeps_frame_pointers: true,
            ..MachineCode::new(memory, pieces)
        })
    }

    /// The caller of the innermost function, by its machine code.
    fn by_code(&mut self, frame: &Frame<'_>) -> Option<FrameRegisters> {
        frame.sampled?;
        let caller = self.0.rule(frame)?.caller(frame).ok()?;
        (caller.fp == 0 || self.0.is_after_call(caller.pc)).then_some(caller)
    }
}

impl Unwinder for Beam {
    fn covers(&self, _: Avma) -> bool {
        true
    }

    fn caller(&mut self, frame: &Frame<'_>) -> Result<Option<Unwound>, ChainEnd> {
        let unwound = match self.by_code(frame) {
            Some(caller) => Some(Unwound::certain(caller)),
            None => FramePointers.caller(frame)?,
        };
        Ok(unwound.filter(|unwound| unwound.caller.fp != 0))
    }
}

/// The rule of PHP's JIT code on x86-64, which runs inside the frame of `execute_ex`, the interpreter's
/// loop: it is jumped to. So its callers are those of `execute_ex`, whatever PHP functions are active.
#[derive(Debug)]
pub(crate) struct Php {
    code: MachineCode,
    rule: CodeRule,
}

impl Php {
    /// With the known code and the address of `execute_ex`; `None` if its prologue tells no frame.
    pub fn new(memory: Arc<dyn Memory>, pieces: Pieces, execute_ex: Avma) -> Option<Self> {
        let begin = execute_ex.get();
        let code = memory.read_vec(execute_ex, PROLOGUE_BYTES, MAX_CODE).ok()?;
        let body = begin.checked_add(PROLOGUE_BYTES)?;
        Some(Php {
            rule: CodeRule::by_prologue(&code, begin, body)?,
            code: MachineCode::new(memory, pieces),
        })
    }
}

impl Unwinder for Php {
    /// The reported functions: PHP's other code may make a frame.
    fn covers(&self, pc: Avma) -> bool {
        let pieces = &self.code.pieces;
        pieces.at(pc.0).is_some() || pieces.at(pc.0.wrapping_sub(1)).is_some()
    }

    fn caller(&mut self, frame: &Frame<'_>) -> Result<Option<Unwound>, ChainEnd> {
        self.code.checked(self.rule.caller(frame)?)
    }
}

#[cfg(test)]
mod tests {
    use vmscope_process::testing::FakeMemory;
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
        Ok(unwound.map(|Unwound { caller, .. }| (caller.pc, caller.sp, caller.fp)))
    }

    #[test]
    fn trampolines_are_left_by_their_code() {
        let mut memory = FakeMemory::new();
        memory.put(Avma(0x1000), TRAMPOLINE.to_vec());
        // A call in the interpreter's loop, and a return address on the stack that is none.
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
        pieces.put(0x1000..0x100a);
        assert_eq!(found(), Ok(Some((0x1005, 0x7010, 5))));
        pieces.take(0x1000);
        assert_eq!(found(), Err(ChainEnd::Broken));
    }

    #[test]
    fn an_erlang_process_begins_with_a_frame_pointer_of_zero() {
        let stack = stack(&[0x7010, 0x2008, 0, 0x3000]);
        let mut unwinder = Beam::new(Arc::new(FakeMemory::new()), Pieces::default());
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
        pieces.put(0x1000..0x1007);
        let mut unwinder = Beam::new(Arc::new(memory), pieces);
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

    #[test]
    fn phps_jit_code_has_the_callers_of_the_interpreters_loop() {
        let execute_ex = [
            0x55, // push %rbp
            0x53, // push %rbx
            0x48, 0x83, 0xec, 0x08, // sub $8,%rsp
            0x41, 0xff, 0x27, // jmp *(%r15)
        ];
        let mut memory = FakeMemory::new();
        memory.put(Avma(0x1000), [&execute_ex[..], &[0x90; 64]].concat());
        memory.put(Avma(0x2000), vec![0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4]);
        let pieces = Pieces::default();
        pieces.put(0x9000..0x9010);
        let mut unwinder = Php::new(Arc::new(memory), pieces.clone(), Avma(0x1000)).unwrap();
        assert!(unwinder.covers(Avma(0x9000)) && unwinder.covers(Avma(0x9010)));
        assert!(!unwinder.covers(Avma(0x9011)));
        let mut found = |words: &[u64]| caller_in(&mut unwinder, (0x9000, 1), &stack(words));
        assert_eq!(
            found(&[0, 0, 0x77, 0x2008]),
            Ok(Some((0x2008, 0x7020, 0x77)))
        );
        // Code that has moved the stack pointer.
        assert_eq!(found(&[0, 0, 0, 0x77, 0x2008]), Err(ChainEnd::Broken));
        assert!(Php::new(Arc::new(FakeMemory::new()), pieces, Avma(0x1000)).is_none());
    }
}
