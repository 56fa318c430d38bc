//! The unwind rule of PHP.

use std::sync::Arc;

use vmscope_process::{CodeRule, Frame, MachineCode, Memory, Pieces, Unwinder, Unwound};
use vmscope_records::{Avma, ChainEnd};

/// Maximum bytes of a function's code that are read.
const MAX_CODE: usize = 64 << 10;

/// More bytes than a prologue has.
const PROLOGUE_BYTES: u64 = 64;

/// The rule of PHP's JIT code on x86-64, which runs inside the frame of `execute_ex`, the interpreter's
/// loop: it is jumped to. So its callers are those of `execute_ex`, whatever PHP functions are active.
#[derive(Debug)]
pub(crate) struct Php {
    code: MachineCode,
    pieces: Pieces,
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
            code: MachineCode::new(memory, pieces.clone()),
            pieces,
        })
    }
}

impl Unwinder for Php {
    /// The reported functions: PHP's other code may make a frame.
    fn covers(&self, pc: Avma) -> bool {
        let is_known = |pc| self.pieces.at(pc).is_some();
        is_known(pc.0) || is_known(pc.0.wrapping_sub(1))
    }

    fn caller(&mut self, frame: &Frame<'_>) -> Result<Option<Unwound>, ChainEnd> {
        self.code.checked(self.rule.caller(frame)?)
    }
}

#[cfg(test)]
mod tests {
    use vmscope_process::FrameRegisters;
    use vmscope_process::testing::FakeMemory;
    use vmscope_records::{StackBytes, TimeNs};

    use vmscope_process::CopiedStack;

    use super::*;

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
            stack: &CopiedStack::of(stack),
            time: TimeNs(0),
        };
        let unwound = unwinder.caller(&frame)?;
        Ok(unwound.map(|Unwound { caller, .. }| (caller.pc, caller.sp, caller.fp)))
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
        pieces.put(0x9000..0x9010, true);
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
