//! The JIT's tables.

use super::compile::{Compiled, Site};
use super::publication::Change;
use super::trampolines::{self, COUNT, Stub};
use super::zone::{ALIGNMENT, Zone};
use super::{Jit, JitOptions};
use crate::interpreter::raw::{Fp, Ip, Sp};
use crate::interpreter::{MethodHeader, Next, Vm, now_ns, objects};
use crate::memory::Oop;

/// What machine code reaches through rbx.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Context {
    pub vm: *mut Vm,
    /// The C stack where machine code was entered.
    pub c_sp: usize,
    pub limit: usize,
    pub nil: Oop,
    pub yes: Oop,
    pub no: Oop,
    pub zone_base: usize,
    pub zone_bytes: usize,
    /// Next machine-code address.
    pub next_pc: u64,
    pub next_sp: Sp,
    pub next_fp: Fp,
    /// Value preserved across a store check.
    pub value: u64,
    /// Receiver of a send that a trampoline completes.
    pub receiver: Oop,
    /// Number of a control primitive's arguments.
    pub count: u64,
    pub new_start: usize,
    pub new_bytes: usize,
    /// What open PICs look up.
    pub lookups: *mut Lookup,
    /// Addresses of the trampolines.
    pub stubs: [usize; COUNT],
    /// Where the interpreter goes on.
    pub interpreter: Next,
}

/// Bytes before a method's code; they hold the offset of the frame-building entry.
pub(super) const PREFIX: usize = 16;

/// A method or block in the zone.
#[derive(Debug)]
pub(super) struct Code {
    /// Zone offset of the first instruction.
    pub start: usize,
    pub bytes: usize,
    pub method: Oop,
    /// Id of the constituent.
    pub id: u64,
    /// Time of placement at this address, in nanoseconds of `CLOCK_MONOTONIC`.
    pub since: u64,
    /// Recent uses. Kept outside the zone: the processor would treat writes to the zone as code
    /// modification.
    pub uses: u32,
    pub made: Compiled,
}

/// A polymorphic inline cache in the zone.
#[derive(Debug)]
pub(super) struct Pic {
    pub start: usize,
    pub selector: Oop,
    /// Class indices and their methods; none of an open PIC.
    pub cases: Vec<(u32, Oop)>,
    pub is_open: bool,
    pub id: u64,
    pub since: u64,
}

/// The code zone and its contents.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(super) context: *mut Context,
    pub(super) zone: Zone,
    pub(super) stubs: [usize; COUNT],
    /// End of the trampolines.
    pub(super) first: usize,
    /// Sorted by their starts.
    pub(super) codes: Vec<Code>,
    pub(super) pics: Vec<Pic>,
    /// A compaction is wanted.
    pub(super) is_full: bool,
    pub(super) lookups: Box<[Lookup]>,
    /// What profilers are to be told.
    pub(super) changes: Vec<Change>,
    pub(super) newest_id: u64,
}

/// A method that open PICs have found.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(crate) struct Lookup {
    pub selector: Oop,
    pub class: u64,
    /// Entry address without the class check.
    pub entry: u64,
}

/// Number of methods that open PICs remember; a power of two.
pub(super) const LOOKUPS: usize = 1024;

impl Lookup {
    pub const NONE: Self = Self {
        selector: Oop::NONE,
        class: 0,
        entry: 0,
    };
}

impl Drop for Machine {
    #[allow(unsafe_code, reason = "frees the context")]
    fn drop(&mut self) {
        // SAFETY: `new` made the box, and nobody else frees it.
        drop(unsafe { Box::from_raw(self.context) });
    }
}

impl Jit {
    /// Makes a JIT, if enabled and if the system provides memory.
    pub fn new(options: &JitOptions) -> Self {
        if !options.on {
            return Self::default();
        }
        let machine = match Machine::new(options) {
            Ok(machine) => machine,
            Err(error) => {
                let trouble = Some(format!("cannot make a zone of machine code: {error}"));
                return Self {
                    trouble,
                    ..Self::default()
                };
            }
        };
        let base = machine.zone.base() as u64;
        Self {
            base,
            bytes: machine.zone.bytes() as u64,
            return_to_interpreter: Oop(base
                + (machine.stubs[Stub::ReturnToInterpreter as usize] + trampolines::RETURN) as u64),
            compile_at: options.compile_at.clamp(1, NEVER - 1),
            loops: options.loops.max(1),
            loops_left: options.loops.max(1),
            machine: Some(Box::new(machine)),
            ..Self::default()
        }
    }
}

/// Activation count of methods that cannot be compiled.
pub(super) const NEVER: u8 = 15;

#[allow(unsafe_code, reason = "the context is reached by machine code, too")]
impl Machine {
    pub(super) fn new(options: &JitOptions) -> std::io::Result<Self> {
        let (code, stubs) = trampolines::assemble();
        let mut zone = Zone::new(options.zone_bytes.max(code.len() + (8 << 10)))?;
        zone.put(0, &code);
        zone.free = code.len();
        let base = zone.base();
        let mut lookups = vec![Lookup::NONE; LOOKUPS].into_boxed_slice();
        let context = Context {
            vm: std::ptr::null_mut(),
            c_sp: 0,
            limit: 0,
            nil: Oop::NONE,
            yes: Oop::NONE,
            no: Oop::NONE,
            zone_base: base,
            zone_bytes: zone.bytes(),
            next_pc: 0,
            next_sp: Sp::NONE,
            next_fp: Fp::NONE,
            value: 0,
            receiver: Oop::NONE,
            count: 0,
            new_start: 0,
            new_bytes: 0,
            lookups: lookups.as_mut_ptr(),
            stubs: stubs.map(|offset| base + offset),
            interpreter: Next::END,
        };
        Ok(Self {
            context: Box::into_raw(Box::new(context)),
            first: zone.free,
            zone,
            stubs,
            codes: Vec::new(),
            pics: Vec::new(),
            is_full: false,
            lookups,
            changes: Vec::new(),
            newest_id: 0,
        })
    }

    /// The context.
    pub(super) fn context(&mut self) -> &mut Context {
        // SAFETY: the box lives as long as `self`; machine code does not run meanwhile.
        unsafe { &mut *self.context }
    }

    /// Says where machine code goes on when the interpreter meets its bytecode.
    pub fn set_next(&mut self, pc: u64) {
        self.context().next_pc = pc;
    }

    pub(super) fn offset_of(&self, pc: u64) -> usize {
        (pc as usize).wrapping_sub(self.zone.base())
    }

    /// Method or block with code at an offset; a return address may equal the code's end.
    pub(super) fn code_at(&self, offset: usize) -> Option<&Code> {
        let after = self.codes.partition_point(|code| code.start <= offset);
        let code = self.codes.get(after.checked_sub(1)?)?;
        (offset <= code.start + code.bytes).then_some(code)
    }

    /// The PIC at an offset.
    pub(super) fn pic_at(&self, offset: usize) -> Option<&Pic> {
        let pics = &self.pics;
        let place = pics.binary_search_by_key(&offset, |pic| pic.start).ok()?;
        pics.get(place)
    }

    /// Next bytecode for a resume point's machine-code address.
    pub fn bytecode_ip(&self, pc: u64) -> Option<Ip> {
        let offset = self.offset_of(pc);
        let code = self.code_at(offset)?;
        let at = u32::try_from(offset - code.start).ok()?;
        let resumes = &code.made.resumes;
        let place = resumes.binary_search_by_key(&at, |resume| resume.0).ok()?;
        let first = MethodHeader::of(code.method).first_bytecode();
        let bytecode = resumes[place].1 as isize;
        Some(Ip(objects::body(code.method)).advance(first + bytecode))
    }

    /// Allocates zone memory behind a prefix; requests a compaction if the zone is full.
    pub(super) fn take(&mut self, bytes: usize) -> Option<usize> {
        let start = (self.zone.free + PREFIX).next_multiple_of(ALIGNMENT);
        if start + bytes > self.zone.bytes() {
            self.is_full = true;
            return None;
        }
        self.zone.free = start + bytes;
        Some(start)
    }

    pub(super) fn new_id(&mut self) -> u64 {
        self.newest_id += 1;
        self.newest_id
    }

    /// Counts one use of the code; returns its entry address without the class check.
    pub(super) fn use_code(&mut self, start: usize) -> u64 {
        let after = self.codes.partition_point(|code| code.start <= start);
        let place = after.checked_sub(1);
        let Some(code) = place.and_then(|at| self.codes.get_mut(at)) else {
            return 0;
        };
        code.uses = code.uses.saturating_add(1);
        (self.zone.base() + start) as u64 + u64::from(code.made.unchecked)
    }

    /// Puts code into the zone.
    pub(super) fn install(&mut self, method: Oop, made: Compiled) -> Option<&Code> {
        let start = self.take(made.code.len())?;
        self.zone.put(start, &made.code);
        self.zone.put_u32(start - PREFIX, made.frame);
        let id = self.new_id();
        let mut code = Code {
            start,
            bytes: made.code.len(),
            method,
            id,
            since: now_ns(),
            uses: 3,
            made,
        };
        code.made.code = Vec::new();
        self.unlink_sites(&code);
        self.codes.push(code);
        self.changes.push(Change::Code(start));
        self.codes.last()
    }
}

/// Finds the send site with this return address.
pub(super) fn site_at(codes: &Code, ret: usize) -> Option<&Site> {
    let ret = u32::try_from(ret - codes.start).ok()?;
    let sites = &codes.made.sites;
    let place = sites.binary_search_by_key(&ret, |site| site.ret).ok()?;
    sites.get(place)
}
