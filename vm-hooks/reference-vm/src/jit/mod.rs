//! Machine code, in the manner of Cogit, for x86-64. Other machines interpret.
//!
//! | file | holds |
//! |---|---|
//! | `zone` | the memory of machine code, mapped twice |
//! | `trampolines` | the ways between machine code and Rust |
//! | `glue` | what trampolines call |
//! | `machine` | the tables of code |
//! | `activation` | when something is compiled, and how it is entered |
//! | `compile`, `control`, `entry`, `operands`, `operations`, `access` | from bytecodes to machine code |
//! | `sends` | inline caches, PICs |
//! | `compaction` | makes room in the zone |
//! | `publication` | what profilers are told |
//!
//! Machine code uses the interpreter's frame layout (DESIGN §4) and stacks. At each resume point,
//! all operands are in memory, so execution can change between machine code and interpreter. A
//! frame continues at its callee's return address if this address lies in the zone, otherwise at
//! the frame's saved ip: a bytecode address or a machine-code address.

#[cfg(target_arch = "x86_64")]
mod access;
#[cfg(target_arch = "x86_64")]
mod activation;
#[cfg(target_arch = "x86_64")]
mod compaction;
#[cfg(target_arch = "x86_64")]
mod compile;
#[cfg(target_arch = "x86_64")]
mod control;
#[cfg(target_arch = "x86_64")]
mod entry;
#[cfg(target_arch = "x86_64")]
mod glue;
#[cfg(target_arch = "x86_64")]
mod machine;
#[cfg(not(target_arch = "x86_64"))]
mod none;
#[cfg(target_arch = "x86_64")]
mod operands;
#[cfg(target_arch = "x86_64")]
mod operations;
#[cfg(target_arch = "x86_64")]
mod publication;
#[cfg(target_arch = "x86_64")]
mod sends;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
#[cfg(target_arch = "x86_64")]
mod trampolines;
#[cfg(target_arch = "x86_64")]
mod zone;

#[cfg(target_arch = "x86_64")]
pub(crate) use machine::{Context, Machine};
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use none::Machine;

use crate::interpreter::raw::{Fp, Ip, Sp};
use crate::interpreter::{Next, Vm};
use crate::memory::Oop;

/// How the JIT works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JitOptions {
    /// Whether there is one.
    pub on: bool,
    /// Size of the code zone, in bytes.
    pub zone_bytes: usize,
    /// Compiles a method at this number of activations; at most 14.
    pub compile_at: u8,
    /// Number of backward jumps after which the running method is compiled.
    pub loops: u32,
}

impl Default for JitOptions {
    fn default() -> Self {
        Self {
            on: cfg!(target_arch = "x86_64"),
            zone_bytes: 1 << 20,
            compile_at: 2,
            loops: 1000,
        }
    }
}

/// JIT events since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JitEvents {
    /// Methods and blocks compiled.
    pub compiled: u64,
    /// Compactions of the code zone.
    pub compactions: u64,
    /// Their time, in nanoseconds.
    pub compaction_ns: u64,
}

/// The interpreter's view of the JIT.
#[derive(Debug, Default)]
pub(crate) struct Jit {
    /// First address of the code zone, and its size: 0 without a JIT.
    base: u64,
    bytes: u64,
    /// Return address of frames called by the interpreter; 0 without a JIT.
    pub return_to_interpreter: Oop,
    compile_at: u8,
    loops: u32,
    loops_left: u32,
    pub events: JitEvents,
    /// Reason for missing machine code, if requested.
    pub trouble: Option<String>,
    pub machine: Option<Box<Machine>>,
}

/// A bytecode that nothing compiles to: machine code runs.
static MACHINE_CODE: [u8; 1] = [217];

/// Address of the bytecode that stands for machine code.
fn stub_ip() -> Ip {
    Ip(MACHINE_CODE.as_ptr())
}

impl Jit {
    /// Whether a word is a code zone address.
    #[inline(always)]
    pub fn is_machine(&self, word: u64) -> bool {
        word.wrapping_sub(self.base) < self.bytes
    }

    /// Size of the code zone; 0 without a JIT.
    pub fn zone_bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether there is machine code.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.bytes != 0
    }
}

impl Vm {
    /// Goes on where a frame's saved ip says: a bytecode, or machine code.
    #[inline(always)]
    pub(crate) fn resume_at(&mut self, ip: Ip, sp: Sp) -> Next {
        if self.jit.is_machine(ip.word().0) {
            return self.enter_machine_code(ip.word().0, sp);
        }
        Next { ip, sp }
    }

    /// Resumes a frame after its callee returned to `ret`.
    #[inline(always)]
    pub(crate) fn return_to(&mut self, ret: Oop, caller: Fp, sp: Sp) -> Next {
        if ret != self.jit.return_to_interpreter && self.jit.is_machine(ret.0) {
            return self.enter_machine_code(ret.0, sp);
        }
        self.resume_at(caller.ip(), sp)
    }

    /// Machine code runs next, from `pc` on.
    fn enter_machine_code(&mut self, pc: u64, sp: Sp) -> Next {
        if let Some(machine) = &mut self.jit.machine {
            machine.set_next(pc);
        }
        Next { ip: stub_ip(), sp }
    }

    /// Enters a method's machine code, if present, for an activation by the interpreter. The
    /// machine code builds the frame.
    #[inline(always)]
    pub(crate) fn machine_activation(
        &mut self,
        method: Oop,
        closure: Option<Oop>,
        sp: Sp,
    ) -> Option<Next> {
        if !self.jit.is_on() {
            return None;
        }
        let entry = self.frame_entry(method, closure)?;
        let sp = sp.push(self.jit.return_to_interpreter);
        Some(self.enter_machine_code(entry, sp))
    }

    /// Handles an interpreted backward jump: continues in machine code, if present.
    #[inline(always)]
    pub(crate) fn machine_loop(&mut self, next: Next) -> Option<Next> {
        if !self.jit.is_on() {
            return None;
        }
        let pc = self.loop_entry(next.ip)?;
        Some(self.enter_machine_code(pc, next.sp))
    }

    /// Current bytecode of a frame; `callee` is the frame's callee, `None` for the innermost frame.
    pub(crate) fn ip_of(&self, fp: Fp, callee: Option<Fp>) -> Ip {
        if let Some(callee) = callee {
            let ret = callee.return_address();
            if ret != self.jit.return_to_interpreter && self.jit.is_machine(ret.0) {
                return self.bytecode_ip(Ip::from_word(ret));
            }
        }
        self.bytecode_ip(fp.ip())
    }

    /// Callee of a frame in the running process; `None` for the innermost frame.
    pub(crate) fn callee_of(&self, fp: Fp) -> Option<Fp> {
        let mut callee = None;
        let mut at = self.running_frame();
        while at != fp && !at.is_none() {
            callee = Some(at);
            at = at.caller();
        }
        callee
    }

    /// The next bytecode, for an address of machine code.
    pub(crate) fn bytecode_ip(&self, ip: Ip) -> Ip {
        if !self.jit.is_machine(ip.word().0) {
            return ip;
        }
        let machine = self.jit.machine.as_ref();
        machine
            .and_then(|machine| machine.bytecode_ip(ip.word().0))
            .unwrap_or(ip)
    }
}
