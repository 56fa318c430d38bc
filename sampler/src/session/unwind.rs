//! Callers of samples, unwound from the registers and the stack that the kernel copied: native code
//! by its unwind tables, a VM's code by its adapter's rules.
//!
//! Only addresses are kept. Callers come from the copied stack: later reads would mix two moments. Beyond the copy, the
//! process's stack is read later. Such a chain counts as late, unless the thread's last walk confirms it ([`recent`]). An
//! adapter's rules may read other memory if they can prove that its contents have not changed since the sample, else their
//! result is a guess ([`Unwound::between`](vmscope_process::Unwound::between)).

mod native;
mod recent;
mod signal;

#[doc(hidden)]
pub use native::fuzz_tables;

use std::sync::Arc;

use vmscope_process::{CopiedStack, Frame, FrameRegisters, LiveMemory, Modules, Unwinder};
use vmscope_records::{
    Avma, CallChain, ChainEnd, CpuMode, ModuleKey, Pid, Registers, SampleDetail, Tid, TimeNs,
};

use super::generated::Generated;
use native::{Caches, Modular};
use recent::{Met, Recent, Rules, Walk};

/// Register numbers in the kernel's numbering (`perf_regs.h`): pc, stack pointer, frame pointer.
const REGISTERS: (u32, u32, u32) = match cfg!(target_arch = "aarch64") {
    true => (32, 31, 29),
    false => (8, 7, 6),
};

/// Signal handlers interrupted by signals, at most.
const MAX_SIGNALS: usize = 16;

/// Unwinds the samples of all processes.
pub(super) struct Unwinding {
    max_depth: usize,
    caches: Caches,
    recent: Recent,
    /// Greatest version of an address space.
    versions: u64,
}

/// State of one address space.
pub(super) struct UnwoundSpace {
    memory: LiveMemory,
    native: Modular,
    /// In the order of their families, each with its family's place in this order.
    vms: Vec<(usize, Box<dyn Unwinder>)>,
    /// Number of its code and rules among those of all spaces; 0 before a walk.
    version: u64,
}

/// An executable mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeMapping {
    pub start: u64,
    pub end: u64,
    /// File, and file offset of `start`.
    pub file: Option<(ModuleKey, u64)>,
}

impl std::fmt::Debug for Unwinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unwinding")
            .field("max_depth", &self.max_depth)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for UnwoundSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnwoundSpace")
            .field("vms", &self.vms.len())
            .finish_non_exhaustive()
    }
}

impl UnwoundSpace {
    /// The address space of a process.
    pub fn new(pid: Pid) -> Self {
        UnwoundSpace {
            memory: LiveMemory::new(pid),
            native: Modular::default(),
            vms: Vec::new(),
            version: 0,
        }
    }

    /// An adapter's rules, for the code that it covers, and the place of its family in the order of all families: those of
    /// an earlier family count first, even if they come later.
    pub fn add(&mut self, (family, vm): (usize, Box<dyn Unwinder>)) {
        let at = self.vms.partition_point(|(known, _)| *known <= family);
        self.vms.insert(at, (family, vm));
        self.version = 0;
    }

    /// The stack beyond a sample's copy, as it is now, for a later walk.
    pub fn beyond(&self, detail: &SampleDetail) -> Option<Vec<u8>> {
        let copy = detail.stack.as_ref()?;
        Some(CopiedStack::read_beyond(copy, &self.memory))
    }

    /// Whether adapters have rules for it.
    pub fn has_vm(&self) -> bool {
        !self.vms.is_empty()
    }

    fn rules(&self) -> Rules {
        let known = self.vms.iter().filter_map(|(_, vm)| vm.version());
        Rules {
            vms: self.vms.len(),
            version: (self.version, known.sum()),
        }
    }

    /// Forgets these addresses: other code may follow there.
    pub fn changed(&mut self, start: u64, end: u64) {
        self.native.forget(start, end);
        self.version = 0;
    }
}

impl Unwinding {
    pub fn new(max_depth: u16) -> Self {
        Unwinding {
            max_depth: usize::from(max_depth),
            caches: Caches::default(),
            recent: Recent::default(),
            versions: 0,
        }
    }

    /// Adds the user callers to a sample's chain. Returns what adapters shall name: method objects of
    /// interpreted frames. `beyond`: of [`UnwoundSpace::beyond`]; without it, the process is read.
    pub fn unwind(
        &mut self,
        (detail, beyond): (&mut SampleDetail, Option<Vec<u8>>),
        (mode, time, thread): (CpuMode, TimeNs, Tid),
        (space, of): (&mut UnwoundSpace, &Generated),
        modules: &Modules,
    ) -> Vec<Avma> {
        let mut values = Vec::new();
        let mut chain = detail.chain.take().unwrap_or_default();
        chain.user.clear();
        (chain.guessed, chain.late) = (false, false);
        // Kernel threads have no user registers.
        let Some(registers) = &detail.registers else {
            chain.end = ChainEnd::Whole;
            detail.chain = (mode == CpuMode::Kernel).then_some(chain);
            return values;
        };
        let innermost = innermost(registers);
        if mode == CpuMode::Kernel {
            chain.user.extend(innermost.map(|frame| Avma(frame.pc)));
        }
        chain.end = match (innermost, &detail.stack) {
            (Some(registers_now), Some(copy)) => {
                let memory = space.memory;
                let stack = match beyond {
                    Some(beyond) => CopiedStack::of(copy).with_beyond(beyond),
                    None => CopiedStack::of(copy).with_memory(&memory),
                };
                let frame = Frame {
                    registers: registers_now,
                    sampled: Some(registers),
                    stack: &stack,
                    time,
                };
                if space.version == 0 {
                    self.versions += 1;
                    space.version = self.versions;
                }
                let mut found = Found {
                    walk: self.recent.begin(thread, space.rules()),
                    chain: &mut chain,
                    values: &mut values,
                    signals: 0,
                };
                let end = self.walk(frame, (&mut *space, of), modules, &mut found);
                let Found { walk, signals, .. } = found;
                let is_sure = !chain.guessed && !chain.late && signals == 0;
                let is_late = walk.is_late(&stack);
                chain.late |= is_late;
                match end {
                    ChainEnd::Whole if is_sure => {
                        let found = (chain.user.as_slice(), values.as_slice());
                        let read = stack.into_read();
                        (self.recent).end(thread, walk, found, (&read, copy), is_late);
                    }
                    _ => self.recent.give_up(thread, walk),
                }
                end
            }
            (None, _) => ChainEnd::Broken,
            (_, None) => ChainEnd::Behind,
        };
        detail.chain = Some(chain);
        values
    }

    fn walk(
        &mut self,
        mut frame: Frame<'_>,
        (space, of): (&mut UnwoundSpace, &Generated),
        modules: &Modules,
        found: &mut Found<'_>,
    ) -> ChainEnd {
        // In a kernel sample, the chain begins with the innermost frame itself.
        let mut at_frame = found.chain.user.len().checked_sub(1);
        // Rules may treat the caller of a sample's own frame in another way.
        let mut follows_caller = false;
        loop {
            let chain = &mut *found.chain;
            if let Some(own) = at_frame.filter(|_| follows_caller) {
                let met = Met {
                    registers: frame.registers,
                    own,
                    values: found.values.len(),
                    words: frame.stack.words_read(),
                };
                let so_far = (&mut chain.user, &mut *found.values);
                if (found.walk).meets(met, so_far, frame.stack, self.max_depth) {
                    return ChainEnd::Whole;
                }
            }
            follows_caller = frame.sampled.is_none();
            let pc = Avma(frame.registers.pc);
            let code = of.code_at(pc.0).ok_or(ChainEnd::Broken);
            let mut is_signal = false;
            let native = &mut space.native;
            let unwound = code.and_then(|code| match code.file {
                Some(_) if !native.lacks_rule(&frame, of, modules, &mut self.caches) => {
                    is_signal = frame.sampled.is_none() && native.is_signal_frame(&frame);
                    match is_signal {
                        true => Ok(None),
                        false => native.caller(&frame, &mut self.caches),
                    }
                }
                // Without rules, a frame pointer would lead past frames.
                _ => match space.vms.iter_mut().find(|(_, vm)| vm.covers(pc)) {
                    Some((_, vm)) => {
                        found.walk.needs_memory |= vm.version().is_none();
                        vm.caller(&frame)
                    }
                    None => native.caller_by_code(&frame, &code, modules).map(Some),
                },
            });
            if is_signal {
                return self.walk_interrupted(&frame, (space, of), modules, found);
            }
            let unwound = match unwound {
                Ok(Some(unwound)) => unwound,
                Ok(None) => return ChainEnd::Whole,
                Err(end) => return end,
            };
            if let Some(shown) = unwound.shown
                && let Some(place) = at_frame.and_then(|at| chain.user.get_mut(at))
            {
                *place = shown;
                found.values.extend(unwound.method);
            }
            let (now, caller) = (frame.registers, unwound.caller);
            // A caller's frame lies above; only code without a frame leaves the stack unchanged.
            let rises = caller.sp > now.sp || (caller.sp == now.sp && frame.sampled.is_some());
            let is_code = |pc| of.code_at(pc).is_some();
            if unwound.end.is_none() && (!rises || !is_code(caller.pc.wrapping_sub(1))) {
                return ChainEnd::Broken;
            }
            found.walk.needs_memory |= !unwound.between.is_empty();
            chain.guessed |= unwound.is_guess;
            chain.late |= unwound.is_late;
            // The depth counts from here on: the last frame, too, may have another place to be shown.
            for other in unwound.between.iter() {
                if chain.user.len() >= self.max_depth {
                    return ChainEnd::Depth;
                }
                chain.user.push(other.shown);
                found.values.extend(other.method);
            }
            if let Some(end) = unwound.end {
                return end;
            }
            if chain.user.len() >= self.max_depth {
                return ChainEnd::Depth;
            }
            at_frame = Some(chain.user.len());
            chain.user.push(Avma(caller.pc));
            frame = Frame {
                registers: caller,
                sampled: None,
                ..frame
            };
        }
    }

    /// Goes on in the code that a signal interrupted; `frame` is its handler's caller.
    fn walk_interrupted(
        &mut self,
        frame: &Frame<'_>,
        space: (&mut UnwoundSpace, &Generated),
        modules: &Modules,
        found: &mut Found<'_>,
    ) -> ChainEnd {
        found.signals += 1;
        let sampled = match signal::interrupted(frame) {
            Ok(sampled) if found.signals <= MAX_SIGNALS => sampled,
            Ok(_) => return ChainEnd::Broken,
            Err(end) => return end,
        };
        let Some(registers) = innermost(&sampled).filter(|now| space.1.code_at(now.pc).is_some())
        else {
            return ChainEnd::Broken;
        };
        if found.chain.user.len() >= self.max_depth {
            return ChainEnd::Depth;
        }
        // Callers are looked up one byte before.
        found.chain.user.push(Avma(registers.pc.wrapping_add(1)));
        let interrupted = Frame {
            registers,
            sampled: Some(&sampled),
            ..*frame
        };
        self.walk(interrupted, space, modules, found)
    }
}

/// What a walk has found.
struct Found<'a> {
    chain: &'a mut CallChain,
    /// Method objects of interpreted frames.
    values: &'a mut Vec<Avma>,
    /// Signal frames.
    signals: usize,
    walk: Walk,
}

/// The registers of a sample's own frame.
pub(crate) fn innermost(registers: &Registers) -> Option<FrameRegisters> {
    let (pc, sp, fp) = REGISTERS;
    Some(FrameRegisters {
        pc: registers.value(pc)?,
        sp: registers.value(sp)?,
        fp: registers.value(fp)?,
    })
}

/// A module's sections, shared.
type Bytes = Arc<[u8]>;
