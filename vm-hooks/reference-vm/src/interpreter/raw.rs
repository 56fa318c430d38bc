//! The interpreter's pointers: into bytecodes, the stack and frames.
//!
//! This file, `objects.rs` and `stack.rs` contain the interpreter's unsafe code. Their functions
//! are sound under three invariants, which the rest of the interpreter keeps:
//!
//! - The loader has verified all code: jumps lead to instructions, the operand stack neither
//!   underflows nor exceeds the code's declared depth, and temps and literals exist.
//! - The interpreter builds a frame only after a safe point that found more free stack than the
//!   largest frame needs.
//! - An oop that is not an immediate value is the address of a live object; objects move at safe
//!   points only, where all oops are in roots.
#![allow(unsafe_code, reason = "reads and writes frames by address; see above")]

use crate::memory::Oop;

/// Address of a bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Ip(pub *const u8);

impl Ip {
    /// The byte `distance` bytes further.
    #[inline(always)]
    pub fn byte(self, distance: usize) -> u8 {
        // SAFETY: verified code: an instruction's bytes lie inside its method.
        unsafe { *self.0.wrapping_add(distance) }
    }

    /// The address `bytes` further, or before.
    #[inline(always)]
    pub fn advance(self, bytes: isize) -> Self {
        Self(self.0.wrapping_offset(bytes))
    }

    /// As a word of a frame.
    #[inline(always)]
    pub fn word(self) -> Oop {
        Oop(self.0.expose_provenance() as u64)
    }

    /// From a word of a frame.
    #[inline(always)]
    pub fn from_word(word: Oop) -> Self {
        Self(std::ptr::with_exposed_provenance(word.0 as usize))
    }
}

/// Address of the stack's top element. Stacks grow downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Sp(pub *mut Oop);

impl Sp {
    /// No stack: interpretation ends.
    pub const NONE: Self = Self(std::ptr::null_mut());

    /// The element `depth` below the top.
    #[inline(always)]
    pub fn at(self, depth: usize) -> Oop {
        // SAFETY: verified code does not underflow its operand stack; arguments lie above it.
        unsafe { *self.0.wrapping_add(depth) }
    }

    /// Replaces the element `depth` below the top.
    #[inline(always)]
    pub fn put(self, depth: usize, value: Oop) {
        // SAFETY: as in `at`.
        unsafe { *self.0.wrapping_add(depth) = value }
    }

    /// The stack with one more element.
    #[inline(always)]
    #[must_use]
    pub fn push(self, value: Oop) -> Self {
        let top = Self(self.0.wrapping_sub(1));
        top.put(0, value);
        top
    }

    /// The stack with `count` elements less.
    #[inline(always)]
    #[must_use]
    pub fn drop(self, count: usize) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// Pops `count` elements, then pushes one element.
    #[inline(always)]
    #[must_use]
    pub fn replace(self, count: usize, value: Oop) -> Self {
        let top = self.drop(count - 1);
        top.put(0, value);
        top
    }
}

/// Address of a frame. The words around it: DESIGN §4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Fp(pub *mut Oop);

/// Words between the last argument and the first temp that is no argument.
const LINKAGE: usize = 7;
/// A frame's flags as SmallInteger: bits 0–7 the number of arguments.
pub const IS_BLOCK: i64 = 1 << 8;
/// Bit position of the mark: 1 for `ensure:` (primitive 198), 2 for `on:do:` (199), 3 for a handler
/// (197).
pub const MARK_SHIFT: u32 = 9;

impl Fp {
    /// No frame: the caller of a base frame.
    pub const NONE: Self = Self(std::ptr::null_mut());

    #[inline(always)]
    fn at(self, words: isize) -> Oop {
        // SAFETY: frames contain all words listed in DESIGN §4.
        unsafe { *self.0.wrapping_offset(words) }
    }

    #[inline(always)]
    fn put(self, words: isize, value: Oop) {
        // SAFETY: as in `at`.
        unsafe { *self.0.wrapping_offset(words) = value }
    }

    /// Whether this pointer is null: the caller of a base frame.
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self.0.is_null()
    }

    /// The caller's frame.
    #[inline(always)]
    pub fn caller(self) -> Self {
        Self(std::ptr::with_exposed_provenance_mut(self.at(0).0 as usize))
    }

    /// Running method or block.
    #[inline(always)]
    pub fn method(self) -> Oop {
        self.at(-1)
    }

    /// The context token, or nil.
    #[inline(always)]
    pub fn token(self) -> Oop {
        self.at(-2)
    }

    /// Sets the context token.
    #[inline(always)]
    pub fn set_token(self, token: Oop) {
        self.put(-2, token);
    }

    #[inline(always)]
    fn flags(self) -> i64 {
        self.at(-3).0.cast_signed() >> 3
    }

    /// Number of arguments.
    #[inline(always)]
    pub fn num_args(self) -> usize {
        (self.at(-3).0 >> 3 & 0xff) as usize
    }

    /// Whether the frame runs a block.
    #[inline(always)]
    pub fn is_block(self) -> bool {
        self.flags() & IS_BLOCK != 0
    }

    /// Mark of the frame: 1 for `ensure:`, 2 for `on:do:`, 3 for a handler, 0 without a mark.
    #[inline(always)]
    pub fn mark(self) -> i64 {
        self.flags() >> MARK_SHIFT
    }

    /// Address of the next bytecode, while a callee runs or the process sleeps.
    #[inline(always)]
    pub fn ip(self) -> Ip {
        Ip::from_word(self.at(-4))
    }

    /// Saves the address of the next bytecode.
    #[inline(always)]
    pub fn set_ip(self, ip: Ip) {
        self.put(-4, ip.word());
    }

    /// Return address in the caller's machine code.
    #[inline(always)]
    pub fn return_address(self) -> Oop {
        self.at(1)
    }

    /// Replaces the return address.
    #[inline(always)]
    pub fn set_return_address(self, address: Oop) {
        self.put(1, address);
    }

    /// The receiver: self in the method or block.
    #[inline(always)]
    pub fn receiver(self) -> Oop {
        self.at(-5)
    }

    /// The closure of a block's frame.
    #[inline(always)]
    pub fn closure(self) -> Oop {
        self.at(2 + self.num_args().cast_signed())
    }

    /// Offset of a temp from the frame pointer, in words.
    #[inline(always)]
    fn temp_at(self, index: usize) -> isize {
        let count = self.num_args();
        let distance = count.cast_signed() - index.cast_signed();
        if index < count {
            distance + 1
        } else {
            distance + 1 - LINKAGE.cast_signed()
        }
    }

    /// A temp; arguments come first.
    #[inline(always)]
    pub fn temp(self, index: usize) -> Oop {
        self.at(self.temp_at(index))
    }

    /// Sets a temp.
    #[inline(always)]
    pub fn set_temp(self, index: usize, value: Oop) {
        self.put(self.temp_at(index), value);
    }

    /// Pops the frame: `value` replaces the receiver on the caller's stack.
    #[inline(always)]
    pub fn pop_frame(self, value: Oop) -> Sp {
        let top = Sp(self.0.wrapping_add(2 + self.num_args()));
        top.put(0, value);
        top
    }

    /// Stack pointer of a frame without operands: the last temp's address.
    #[inline(always)]
    pub fn empty_stack(self, num_temps: usize) -> Sp {
        Sp(self.0.wrapping_sub(5 + num_temps - self.num_args()))
    }

    /// Builds a method's frame; receiver and arguments lie on top of `sp`.
    #[inline(always)]
    pub fn build(
        self,
        sp: Sp,
        [return_address, method]: [Oop; 2],
        flags: i64,
        nil: Oop,
        receiver: Oop,
    ) -> (Self, Sp) {
        let caller = Oop(self.0.expose_provenance() as u64);
        let sp = sp.push(return_address).push(caller);
        let frame = Self(sp.0);
        let sp = sp.push(method).push(nil).push(Oop::small(flags));
        (frame, sp.push(Oop::NONE).push(receiver))
    }

    /// Address of the frame's first word above its linkage: the last argument, or the receiver.
    #[inline(always)]
    pub fn above(self) -> *mut Oop {
        self.0.wrapping_add(2)
    }
}

/// Visits all oops of a stack, from top to base.
pub fn visit_stack(sp: Sp, mut fp: Fp, base: *mut Oop, visit: &mut dyn FnMut(&mut Oop)) {
    let mut low = sp.0;
    loop {
        let high = if fp.is_none() {
            base
        } else {
            fp.0.wrapping_sub(4)
        };
        while low < high {
            // SAFETY: these words are operands, temps, arguments and receivers of frames.
            visit(unsafe { &mut *low });
            low = low.wrapping_add(1);
        }
        if fp.is_none() {
            return;
        }
        let token = fp.0.wrapping_sub(2);
        // SAFETY: this slot of a frame contains a token or nil.
        visit(unsafe { &mut *token });
        low = fp.above();
        fp = fp.caller();
    }
}
