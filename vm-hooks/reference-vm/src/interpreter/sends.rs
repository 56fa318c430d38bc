//! Sends: method lookup, frames, returns.

use super::objects::{self, slot};
use super::primitives::{self, Primitive};
use super::raw::{Fp, IS_BLOCK, Ip, MARK_SHIFT, Sp};
use super::vm::{CACHE, Found, Next, Outcome, Vm};
use crate::image::builder::{ARGS_SHIFT, HAS_PRIMITIVE, LITERALS, TEMPS_SHIFT};
use crate::memory::header::Format;
use crate::memory::{Oop, classes};

/// A method header's parts.
#[derive(Clone, Copy)]
pub(crate) struct MethodHeader(i64);

impl MethodHeader {
    #[inline(always)]
    pub fn of(method: Oop) -> Self {
        Self(slot(method, 0).0.cast_signed() >> 3)
    }

    #[inline(always)]
    pub fn literals(self) -> usize {
        (self.0 & LITERALS).cast_unsigned() as usize
    }

    #[inline(always)]
    pub fn temps(self) -> usize {
        (self.0 >> TEMPS_SHIFT & 0x3f).cast_unsigned() as usize
    }

    #[inline(always)]
    pub fn args(self) -> usize {
        (self.0 >> ARGS_SHIFT & 0xf).cast_unsigned() as usize
    }

    #[inline(always)]
    pub fn has_primitive(self) -> bool {
        self.0 & HAS_PRIMITIVE != 0
    }

    /// Offset of the machine code in the code zone; 0 without machine code.
    #[inline(always)]
    pub fn machine(self) -> usize {
        (self.0 >> MACHINE_SHIFT & MACHINE).cast_unsigned() as usize * 16
    }

    /// Header with a new machine-code offset, a multiple of 16.
    pub fn with_machine(self, offset: usize) -> Self {
        let offset = (offset / 16).cast_signed() as i64 & MACHINE;
        Self(self.0 & !(MACHINE << MACHINE_SHIFT) | offset << MACHINE_SHIFT)
    }

    /// Number of interpreted activations before compilation.
    #[inline(always)]
    pub fn activations(self) -> u8 {
        (self.0 >> ACTIVATIONS_SHIFT & 15).cast_unsigned() as u8
    }

    /// The header with another count.
    #[inline(always)]
    pub fn with_activations(self, count: u8) -> Self {
        Self(self.0 & !(15 << ACTIVATIONS_SHIFT) | i64::from(count & 15) << ACTIVATIONS_SHIFT)
    }

    /// Puts the header into a method.
    pub fn put(self, method: Oop) {
        objects::set_slot(method, 0, Oop::small(self.0));
    }

    /// Offset of the first bytecode from the method's first slot, in bytes.
    #[inline(always)]
    pub fn first_bytecode(self) -> isize {
        8 * (self.literals().cast_signed() + 1)
    }
}

/// Bit position of the activation count in the header.
const ACTIVATIONS_SHIFT: u32 = 28;
/// Bit position of the machine code's offset (divided by 16) in the header.
const MACHINE_SHIFT: u32 = 36;
const MACHINE: i64 = 0xff_ffff;
/// Bytes of the instruction that names a method's primitive.
const CALL_PRIMITIVE: isize = 3;
/// Number of fixed fields in a closure; the copied values follow.
pub(super) const CLOSURE_FIELDS: usize = 4;

/// Number of a method's primitive, or 0.
pub(crate) fn primitive_number(method: Oop) -> usize {
    let header = MethodHeader::of(method);
    if !header.has_primitive() {
        return 0;
    }
    let first = Ip(objects::body(method)).advance(header.first_bytecode());
    usize::from(first.byte(1)) + (usize::from(first.byte(2) & 31) << 8)
}

/// Flags of a method's frame.
#[inline(always)]
pub(crate) fn frame_flags(num_args: usize, primitive: usize) -> i64 {
    let mark = match primitive {
        198 => 1 << MARK_SHIFT,
        199 => 2 << MARK_SHIFT,
        197 => 3 << MARK_SHIFT,
        _ => 0,
    };
    num_args.cast_signed() as i64 | mark
}

impl Vm {
    /// Sends a message. Receiver and arguments lie on the stack; `ip` addresses the next bytecode.
    #[inline(always)]
    pub(crate) fn send(&mut self, selector: Oop, num_args: usize, ip: Ip, sp: Sp) -> Next {
        let class = objects::class_index(sp.at(num_args));
        self.send_to(selector, num_args, class, ip, sp)
    }

    /// Sends a message, with lookup from `class` upwards.
    #[inline(always)]
    pub(super) fn send_to(
        &mut self,
        selector: Oop,
        num_args: usize,
        class: u32,
        ip: Ip,
        sp: Sp,
    ) -> Next {
        match self.find(selector, class) {
            Some(found) => self.execute(found, num_args, ip, sp),
            None => self.not_understood(selector, num_args, ip, sp),
        }
    }

    /// Looks up the method for a selector in a class.
    #[inline(always)]
    pub(crate) fn find(&mut self, selector: Oop, class: u32) -> Option<Found> {
        let found = self.cache[cache_place(selector, class)];
        if found.selector == selector && found.class == class {
            return Some(found);
        }
        self.look_up(selector, class)
    }

    /// Runs a method: first its primitive; if the primitive fails, its bytecodes in a new frame.
    #[inline(always)]
    pub(crate) fn execute(&mut self, found: Found, num_args: usize, ip: Ip, sp: Sp) -> Next {
        self.save(ip);
        if let Some(primitive) = found.primitive {
            match primitive {
                Primitive::Value(call) => {
                    if let Some(value) = call(
                        self,
                        primitives::Args {
                            sp,
                            count: num_args,
                        },
                    ) {
                        return Next {
                            ip,
                            sp: sp.replace(num_args + 1, value),
                        };
                    }
                }
                Primitive::Control(call) => {
                    if let Some(next) = call(self, ip, sp, num_args) {
                        return next;
                    }
                }
            }
        }
        if let Some(next) = self.machine_activation(found.method, None, sp) {
            return next;
        }
        let receiver = sp.at(num_args);
        let next = self.activate(found.method, num_args, sp, receiver);
        self.check(next)
    }

    /// Saves the address of the next bytecode in the running frame.
    #[inline(always)]
    pub(super) fn save(&mut self, ip: Ip) {
        if !self.fp.is_none() {
            self.fp.set_ip(ip);
        }
    }

    /// Builds the frame of a method.
    #[inline(always)]
    pub(super) fn activate(&mut self, method: Oop, num_args: usize, sp: Sp, receiver: Oop) -> Next {
        let header = MethodHeader::of(method);
        let mut flags = num_args.cast_signed() as i64;
        let mut first = header.first_bytecode();
        if header.has_primitive() {
            first += CALL_PRIMITIVE;
            flags = frame_flags(num_args, primitive_number(method));
        }
        let nil = self.known.nil;
        let words = [self.jit.return_to_interpreter, method];
        let (fp, mut sp) = self.fp.build(sp, words, flags, nil, receiver);
        for _ in num_args..header.temps() {
            sp = sp.push(nil);
        }
        self.fp = fp;
        Next {
            ip: Ip(objects::body(method)).advance(first),
            sp,
        }
    }

    /// Builds a block's frame. Closure and arguments lie on the stack.
    #[inline(always)]
    pub(super) fn activate_block(&mut self, num_args: usize, sp: Sp) -> Next {
        let closure = sp.at(num_args);
        let code = slot(closure, 1);
        let header = MethodHeader::of(code);
        let nil = self.known.nil;
        let flags = num_args.cast_signed() as i64 | IS_BLOCK;
        let words = [self.jit.return_to_interpreter, code];
        let (fp, mut sp) = self.fp.build(sp, words, flags, nil, slot(closure, 3));
        let copied = objects::num_slots(closure) - CLOSURE_FIELDS;
        for at in 0..copied {
            sp = sp.push(slot(closure, CLOSURE_FIELDS + at));
        }
        for _ in num_args + copied..header.temps() {
            sp = sp.push(nil);
        }
        self.fp = fp;
        let ip = Ip(objects::body(code)).advance(header.first_bytecode());
        Next { ip, sp }
    }

    /// Returns `value` from the running frame to its caller.
    #[inline(always)]
    pub(crate) fn return_value(&mut self, value: Oop) -> Next {
        let fp = self.fp;
        if fp.token() != self.known.nil {
            self.end_token(fp.token());
        }
        let caller = fp.caller();
        let sp = fp.pop_frame(value);
        self.fp = caller;
        if caller.is_none() {
            return self.base_return(value, sp);
        }
        self.return_to(fp.return_address(), caller, sp)
    }

    /// A process's outermost frame returned.
    #[cold]
    pub(crate) fn base_return(&mut self, value: Oop, sp: Sp) -> Next {
        if self.stacks.is_main() {
            // The value replaced the base frame's receiver on the stack; pop it.
            let active = self.stacks.active_mut();
            (active.fp, active.sp) = (Fp::NONE, sp.drop(1));
            return self.stop(Outcome::Value(value));
        }
        self.end_process()
    }

    #[cold]
    fn look_up(&mut self, selector: Oop, class: u32) -> Option<Found> {
        self.events.cache_misses += 1;
        let method = self.image.lookup(selector, class)?;
        let found = Found {
            selector,
            class,
            method,
            primitive: primitives::by_number(primitive_number(method)),
        };
        self.cache[cache_place(selector, class)] = found;
        Some(found)
    }

    /// Forgets all lookups: a method was added.
    pub(crate) fn flush_cache(&mut self) {
        self.cache.fill(Found::NONE);
        self.methods_changed();
    }

    /// Sends doesNotUnderstand: in place of a message unknown to the receiver.
    #[cold]
    pub(crate) fn not_understood(
        &mut self,
        selector: Oop,
        num_args: usize,
        ip: Ip,
        sp: Sp,
    ) -> Next {
        let class = objects::class_index(sp.at(num_args));
        if selector == self.known.does_not_understand {
            let name = self
                .image
                .class(class)
                .map_or("?", |class| &class.name)
                .to_owned();
            let _ = writeln!(self.errors, "{name} has no method doesNotUnderstand:");
            return self.stop(Outcome::Quit(1));
        }
        self.save(ip);
        let arguments: Vec<Oop> = (0..num_args).rev().map(|depth| sp.at(depth)).collect();
        let message = self.array(&arguments).and_then(|arguments| {
            let message = self.allocate(classes::MESSAGE, Format::FIXED, 2)?;
            self.heap.store(message, 0, selector);
            self.heap.store(message, 1, arguments);
            Some(message)
        });
        let Some(message) = message else {
            return self.out_of_memory();
        };
        let sp = sp.drop(num_args).push(message);
        self.send(self.known.does_not_understand, 1, ip, sp)
    }
}

use std::io::Write;

#[inline(always)]
fn cache_place(selector: Oop, class: u32) -> usize {
    ((selector.0 >> 4) as usize ^ (class as usize) << 3 ^ class as usize) & (CACHE - 1)
}
