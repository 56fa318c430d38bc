//! Non-local returns, and the context tokens that name frames.
//!
//! A token's field `frame` is the frame's distance from the stack's base, in words; nil after the
//! frame has returned. Field `stack` is the stack's number.

use super::objects::{self, slot};
use super::raw::{Fp, Ip, Sp};
use super::sends::MethodHeader;
use super::vm::{Next, Vm};
use crate::memory::header::Format;
use crate::memory::{Oop, classes};

/// Frame mark of `ensure:` and `ifCurtailed:`.
pub(super) const UNWIND: i64 = 1;
/// `on:do:`.
pub(super) const HANDLERS: i64 = 2;
/// The method that runs a handler.
pub(super) const HANDLING: i64 = 3;

impl Vm {
    /// `^`: a method returns to its caller, a block to its home's caller.
    #[inline(always)]
    pub(crate) fn method_return(&mut self, value: Oop, sp: Sp) -> Next {
        if self.fp.is_block() {
            return self.non_local_return(value, sp);
        }
        self.return_value(value)
    }

    #[cold]
    fn non_local_return(&mut self, value: Oop, sp: Sp) -> Next {
        let closure = self.fp.closure();
        let token = slot(closure, 0);
        // Return address for the sends below. The sent methods normally never return.
        let ip = self.fp_ip_here();
        let Some(home) = self.frame_of(token) else {
            let sp = sp.push(closure).push(value);
            return self.send(self.known.cannot_return, 1, ip, sp);
        };
        if self.innermost_unwind(home).is_some() {
            let sp = sp.push(token).push(value);
            return self.send(self.known.return_, 1, ip, sp);
        }
        self.cut_to(home);
        self.return_value(value)
    }

    /// Address of a bytecode that repeats the return: the running code's own return bytecode.
    fn fp_ip_here(&self) -> Ip {
        static RETURN_TOP: [u8; 1] = [92];
        Ip(RETURN_TOP.as_ptr())
    }

    /// Frame named by a token, if the frame lives on the running stack.
    pub(super) fn frame_of(&self, token: Oop) -> Option<Fp> {
        if objects::class_index(token) != classes::CONTEXT {
            return None;
        }
        let words = usize::try_from(slot(token, 0).as_integer()?).ok()?;
        let number = usize::try_from(slot(token, 1).as_integer()?).ok()?;
        if number != self.stacks.active_number() {
            return None;
        }
        // Programs can write a token's fields, so check for a real frame at this address.
        let wanted = Fp(self.stacks.active().base().wrapping_sub(words));
        let mut fp = self.fp;
        while !fp.is_none() && fp < wanted {
            fp = fp.caller();
        }
        (fp == wanted).then_some(fp)
    }

    /// Token of a frame; makes a token if the frame has none. `None` without memory.
    pub(super) fn token_of(&mut self, fp: Fp) -> Option<Oop> {
        if fp.token() != self.known.nil {
            return Some(fp.token());
        }
        let token = self.allocate(classes::CONTEXT, Format::FIXED, 2)?;
        let base = self.stacks.active().base() as usize;
        let words = (base - fp.0 as usize) / size_of::<Oop>();
        objects::set_slot(token, 0, Oop::small(words as i64));
        objects::set_slot(token, 1, Oop::small(self.stacks.active_number() as i64));
        fp.set_token(token);
        Some(token)
    }

    /// The home's token of a closure that the running code makes.
    pub(super) fn home_token(&mut self) -> Option<Oop> {
        if self.fp.is_block() {
            return Some(slot(self.fp.closure(), 0));
        }
        self.token_of(self.fp)
    }

    /// Marks a token's frame as returned.
    #[cold]
    pub(super) fn end_token(&mut self, token: Oop) {
        self.heap.store(token, 0, self.known.nil);
    }

    /// The innermost frame inside of `outer` whose unwind block must still run.
    pub(super) fn innermost_unwind(&self, outer: Fp) -> Option<Fp> {
        let mut fp = self.fp;
        while fp != outer && !fp.is_none() {
            if fp.mark() == UNWIND && fp.temp(1) == self.known.nil {
                return Some(fp);
            }
            fp = fp.caller();
        }
        None
    }

    /// The nearest frame outside of `inner` that handles exceptions.
    pub(super) fn next_handler(&self, inner: Fp) -> Option<Fp> {
        let mut fp = inner.caller();
        while !fp.is_none() {
            match fp.mark() {
                HANDLERS => return Some(fp),
                // A running handler: search its exceptions' handlers outside the handler's own
                // on:do:.
                HANDLING => fp = self.frame_of(fp.temp(0))?,
                _ => {}
            }
            fp = fp.caller();
        }
        None
    }

    /// Drops all frames inside of `outer`, which becomes the running frame.
    pub(super) fn cut_to(&mut self, outer: Fp) {
        while self.fp != outer {
            if self.fp.token() != self.known.nil {
                self.end_token(self.fp.token());
            }
            self.fp = self.fp.caller();
        }
    }

    /// Restarts a method's frame at the first bytecode; keeps only the arguments.
    pub(super) fn restart(&mut self, fp: Fp) -> Next {
        self.cut_to(fp);
        let method = fp.method();
        let header = MethodHeader::of(method);
        let ip = Ip(objects::body(method)).advance(header.first_bytecode());
        for index in fp.num_args()..header.temps() {
            fp.set_temp(index, self.known.nil);
        }
        Next {
            ip,
            sp: fp.empty_stack(header.temps()),
        }
    }
}
