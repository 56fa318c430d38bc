//! The handlers of the bytecodes.
#![allow(unsafe_code, reason = "names the section of the handlers")]

use super::objects::{self, class_index, format, slot};
use super::raw::{Ip, Sp};
use super::sends::CLOSURE_FIELDS;
use super::vm::{Next, Vm};
use crate::compiler::bytecodes::SPECIAL_SELECTORS;
use crate::memory::header::Format;
use crate::memory::{Oop, classes};

/// Declares handlers.
macro_rules! handlers {
    ($($(#[$meta:meta])* fn $name:ident($vm:ident, $ip:ident, $sp:ident) $body:block)*) => {$(
        $(#[$meta])*
        #[unsafe(link_section = "vmscope_bytecodes")]
        pub(super) extern "C" fn $name($vm: &mut Vm, $ip: Ip, $sp: Sp) -> Next $body
    )*};
}

/// Sends mustBeBoolean; the return address is `ip`.
#[cold]
#[inline(never)]
#[unsafe(link_section = "vmscope_bytecodes")]
pub(super) extern "C" fn must_be_boolean(vm: &mut Vm, ip: Ip, sp: Sp) -> Next {
    vm.send(vm.known.must_be_boolean, 0, ip, sp)
}

/// Continues after an instruction of `bytes` bytes.
#[inline(always)]
fn next(ip: Ip, bytes: isize, sp: Sp) -> Next {
    Next {
        ip: ip.advance(bytes),
        sp,
    }
}

/// The low bits of the opcode.
#[inline(always)]
fn low(ip: Ip, mask: u8) -> usize {
    usize::from(ip.byte(0) & mask)
}

/// Operand byte, extended by extension A.
#[inline(always)]
fn operand_a(vm: &mut Vm, ip: Ip) -> usize {
    usize::from(ip.byte(1)) + (std::mem::take(&mut vm.ext_a) << 8)
}

/// Operand byte (jump distance or integer), extended by extension B (signed).
#[inline(always)]
fn distance(vm: &mut Vm, ip: Ip) -> isize {
    isize::from(ip.byte(1)) + (std::mem::take(&mut vm.ext_b) << 8)
}

/// A literal of the running method.
#[inline(always)]
fn literal(vm: &Vm, index: usize) -> Oop {
    slot(vm.fp.method(), index + 1)
}

/// Sends the special selector of the bytecode at `ip`. Apart from the handlers: their short ways need no frame then.
#[cold]
#[inline(never)]
#[unsafe(link_section = "vmscope_bytecodes")]
pub(super) extern "C" fn send_special(vm: &mut Vm, ip: Ip, sp: Sp) -> Next {
    let index = usize::from(ip.byte(0)) - 96;
    vm.send(
        vm.known.special[index],
        SPECIAL_SELECTORS[index].1,
        ip.advance(1),
        sp,
    )
}

handlers! {
    fn push_inst_var(vm, ip, sp) {
        next(ip, 1, sp.push(slot(vm.fp.receiver(), low(ip, 15))))
    }
    fn push_inst_var_extended(vm, ip, sp) {
        let index = operand_a(vm, ip);
        next(ip, 2, sp.push(slot(vm.fp.receiver(), index)))
    }
    fn push_lit_var(vm, ip, sp) {
        next(ip, 1, sp.push(slot(literal(vm, low(ip, 15)), 1)))
    }
    fn push_lit_var_extended(vm, ip, sp) {
        let index = operand_a(vm, ip);
        next(ip, 2, sp.push(slot(literal(vm, index), 1)))
    }
    fn push_constant(vm, ip, sp) {
        next(ip, 1, sp.push(literal(vm, low(ip, 31))))
    }
    fn push_constant_extended(vm, ip, sp) {
        let index = operand_a(vm, ip);
        next(ip, 2, sp.push(literal(vm, index)))
    }
    fn push_temp(vm, ip, sp) {
        next(ip, 1, sp.push(vm.fp.temp(low(ip, 15))))
    }
    fn push_temp_extended(vm, ip, sp) {
        next(ip, 2, sp.push(vm.fp.temp(usize::from(ip.byte(1)))))
    }
    fn push_self(vm, ip, sp) {
        next(ip, 1, sp.push(vm.fp.receiver()))
    }
    fn push_true(vm, ip, sp) {
        next(ip, 1, sp.push(vm.known.yes))
    }
    fn push_false(vm, ip, sp) {
        next(ip, 1, sp.push(vm.known.no))
    }
    fn push_nil(vm, ip, sp) {
        next(ip, 1, sp.push(vm.known.nil))
    }
    fn push_zero(_vm, ip, sp) {
        next(ip, 1, sp.push(Oop::small(0)))
    }
    fn push_one(_vm, ip, sp) {
        next(ip, 1, sp.push(Oop::small(1)))
    }
    fn push_integer(vm, ip, sp) {
        let value = distance(vm, ip);
        next(ip, 2, sp.push(Oop::small(value as i64)))
    }
    fn push_character(vm, ip, sp) {
        let value = u32::from(ip.byte(1)) + ((std::mem::take(&mut vm.ext_b) as u32) << 8);
        next(ip, 2, sp.push(Oop::character(value)))
    }
    fn dup(_vm, ip, sp) {
        next(ip, 1, sp.push(sp.at(0)))
    }
    fn pop(_vm, ip, sp) {
        next(ip, 1, sp.drop(1))
    }
    fn nop(_vm, ip, sp) {
        next(ip, 1, sp)
    }
    fn call_primitive(_vm, ip, sp) {
        next(ip, 3, sp)
    }
    fn extend_a(vm, ip, sp) {
        vm.ext_a = vm.ext_a << 8 | usize::from(ip.byte(1));
        next(ip, 2, sp)
    }
    fn extend_b(vm, ip, sp) {
        // The first byte has the sign. An earlier extension can't be 0 unless it was useless.
        let byte = ip.byte(1);
        let value = if vm.ext_b == 0 { byte.cast_signed() as isize } else { isize::from(byte) };
        vm.ext_b = (vm.ext_b << 8) + value;
        next(ip, 2, sp)
    }

    fn return_self(vm, _ip, sp) {
        let value = vm.fp.receiver();
        vm.method_return(value, sp)
    }
    fn return_true(vm, _ip, sp) {
        vm.method_return(vm.known.yes, sp)
    }
    fn return_false(vm, _ip, sp) {
        vm.method_return(vm.known.no, sp)
    }
    fn return_nil(vm, _ip, sp) {
        vm.method_return(vm.known.nil, sp)
    }
    fn return_top(vm, _ip, sp) {
        vm.method_return(sp.at(0), sp)
    }
    fn block_return_nil(vm, _ip, _sp) {
        vm.return_value(vm.known.nil)
    }
    fn block_return_top(vm, _ip, sp) {
        vm.return_value(sp.at(0))
    }

    fn pop_into_inst_var(vm, ip, sp) {
        vm.heap.store(vm.fp.receiver(), low(ip, 7), sp.at(0));
        next(ip, 1, sp.drop(1))
    }
    fn pop_into_inst_var_extended(vm, ip, sp) {
        let index = operand_a(vm, ip);
        vm.heap.store(vm.fp.receiver(), index, sp.at(0));
        next(ip, 2, sp.drop(1))
    }
    fn store_into_inst_var(vm, ip, sp) {
        let index = operand_a(vm, ip);
        vm.heap.store(vm.fp.receiver(), index, sp.at(0));
        next(ip, 2, sp)
    }
    fn pop_into_lit_var(vm, ip, sp) {
        let index = operand_a(vm, ip);
        vm.heap.store(literal(vm, index), 1, sp.at(0));
        next(ip, 2, sp.drop(1))
    }
    fn store_into_lit_var(vm, ip, sp) {
        let index = operand_a(vm, ip);
        vm.heap.store(literal(vm, index), 1, sp.at(0));
        next(ip, 2, sp)
    }
    fn pop_into_temp(vm, ip, sp) {
        vm.fp.set_temp(low(ip, 7), sp.at(0));
        next(ip, 1, sp.drop(1))
    }
    fn pop_into_temp_extended(vm, ip, sp) {
        vm.fp.set_temp(usize::from(ip.byte(1)), sp.at(0));
        next(ip, 2, sp.drop(1))
    }
    fn store_into_temp(vm, ip, sp) {
        vm.fp.set_temp(usize::from(ip.byte(1)), sp.at(0));
        next(ip, 2, sp)
    }
    fn push_temp_in_vector(vm, ip, sp) {
        let vector = vm.fp.temp(usize::from(ip.byte(2)));
        next(ip, 3, sp.push(slot(vector, usize::from(ip.byte(1)))))
    }
    fn store_temp_in_vector(vm, ip, sp) {
        let vector = vm.fp.temp(usize::from(ip.byte(2)));
        vm.heap.store(vector, usize::from(ip.byte(1)), sp.at(0));
        next(ip, 3, sp)
    }
    fn pop_into_temp_in_vector(vm, ip, sp) {
        let vector = vm.fp.temp(usize::from(ip.byte(2)));
        vm.heap.store(vector, usize::from(ip.byte(1)), sp.at(0));
        next(ip, 3, sp.drop(1))
    }
    fn push_array(vm, ip, sp) {
        let count = usize::from(ip.byte(1) & 0x7f);
        vm.save(ip.advance(2));
        let Some(array) = vm.allocate(classes::ARRAY, Format::INDEXED, count) else {
            return vm.out_of_memory();
        };
        if ip.byte(1) & 0x80 == 0 {
            return next(ip, 2, sp.push(array));
        }
        for at in 0..count {
            vm.heap.store(array, at, sp.at(count - 1 - at));
        }
        next(ip, 2, sp.drop(count).push(array))
    }
    fn push_closure(vm, ip, sp) {
        let index = operand_a(vm, ip);
        let code = literal(vm, index);
        let copied = usize::from(ip.byte(2) & 0x3f);
        vm.save(ip.advance(3));
        let Some(closure) = vm.new_closure(code, copied, ip.byte(2) & 0x40 != 0, sp) else {
            return vm.out_of_memory();
        };
        next(ip, 3, sp.drop(copied).push(closure))
    }

    fn short_jump(_vm, ip, sp) {
        next(ip, 2 + low(ip, 7) as isize, sp)
    }
    fn short_jump_if_true(vm, ip, sp) {
        vm.jump_if(true, ip, 1, low(ip, 7) as isize + 1, sp)
    }
    fn short_jump_if_false(vm, ip, sp) {
        vm.jump_if(false, ip, 1, low(ip, 7) as isize + 1, sp)
    }
    fn jump(vm, ip, sp) {
        let distance = distance(vm, ip);
        let to = next(ip, 2 + distance, sp);
        if distance >= 0 {
            return to;
        }
        match vm.machine_loop(to) {
            Some(to) => to,
            None => vm.check(to),
        }
    }
    fn machine_code(vm, ip, sp) {
        vm.run_machine_code(ip, sp)
    }
    fn jump_if_true(vm, ip, sp) {
        let distance = distance(vm, ip);
        vm.jump_if(true, ip, 2, distance, sp)
    }
    fn jump_if_false(vm, ip, sp) {
        let distance = distance(vm, ip);
        vm.jump_if(false, ip, 2, distance, sp)
    }

    fn send_without_arguments(vm, ip, sp) {
        vm.send(literal(vm, low(ip, 15)), 0, ip.advance(1), sp)
    }
    fn send_with_1_argument(vm, ip, sp) {
        vm.send(literal(vm, low(ip, 15)), 1, ip.advance(1), sp)
    }
    fn send_with_2_arguments(vm, ip, sp) {
        vm.send(literal(vm, low(ip, 15)), 2, ip.advance(1), sp)
    }
    fn send_extended(vm, ip, sp) {
        let (index, num_args) = send_operands(vm, ip);
        vm.send(literal(vm, index), num_args, ip.advance(2), sp)
    }
    fn send_super(vm, ip, sp) {
        let (index, num_args) = send_operands(vm, ip);
        let class = vm.method_class(vm.fp.method());
        let above = vm.image.class(class).map_or(0, |class| class.superclass);
        vm.send_to(literal(vm, index), num_args, above, ip.advance(2), sp)
    }
    fn special_send(vm, ip, sp) {
        send_special(vm, ip, sp)
    }

    fn same(vm, ip, sp) {
        let value = vm.boolean(sp.at(0) == sp.at(1));
        next(ip, 1, sp.replace(2, value))
    }
    fn not_same(vm, ip, sp) {
        let value = vm.boolean(sp.at(0) != sp.at(1));
        next(ip, 1, sp.replace(2, value))
    }
    fn special_class(vm, ip, sp) {
        let class = vm.class_of(sp.at(0));
        next(ip, 1, sp.replace(1, class))
    }
    fn special_at(vm, ip, sp) {
        let (receiver, index) = (sp.at(1), sp.at(0));
        if let Some(index) = index.as_integer()
            && let Ok(index) = usize::try_from(index - 1)
        {
            match class_index(receiver) {
                classes::ARRAY if index < objects::num_slots(receiver) => {
                    return next(ip, 1, sp.replace(2, slot(receiver, index)));
                }
                classes::STRING => {
                    if let Some(byte) = objects::bytes(receiver).get(index) {
                        return next(ip, 1, sp.replace(2, Oop::character(u32::from(*byte))));
                    }
                }
                _ => {}
            }
        }
        send_special(vm, ip, sp)
    }
    fn special_at_put(vm, ip, sp) {
        let (receiver, index, value) = (sp.at(2), sp.at(1), sp.at(0));
        if class_index(receiver) == classes::ARRAY
            && let Some(index) = index.as_integer()
            && let Ok(index) = usize::try_from(index - 1)
            && index < objects::num_slots(receiver)
        {
            vm.heap.store(receiver, index, value);
            return next(ip, 1, sp.replace(3, value));
        }
        send_special(vm, ip, sp)
    }
    fn special_size(vm, ip, sp) {
        let receiver = sp.at(0);
        let size = match class_index(receiver) {
            classes::ARRAY => objects::num_slots(receiver),
            classes::STRING => objects::bytes(receiver).len(),
            _ => return send_special(vm, ip, sp),
        };
        next(ip, 1, sp.replace(1, Oop::small(size as i64)))
    }
    fn special_value(vm, ip, sp) {
        match vm.enter_block(0, ip.advance(1), sp) {
            Some(next) => next,
            None => send_special(vm, ip, sp),
        }
    }
    fn special_value_with(vm, ip, sp) {
        match vm.enter_block(1, ip.advance(1), sp) {
            Some(next) => next,
            None => send_special(vm, ip, sp),
        }
    }

    /// An opcode without a meaning. The verifier refuses it.
    fn unused(vm, _ip, _sp) {
        vm.stop(super::vm::Outcome::Quit(70))
    }
}

/// Operands of a long send: index of the selector, number of arguments.
#[inline(always)]
fn send_operands(vm: &mut Vm, ip: Ip) -> (usize, usize) {
    let byte = usize::from(ip.byte(1));
    let index = (byte >> 3) + (std::mem::take(&mut vm.ext_a) << 5);
    let num_args = (byte & 7) + (std::mem::take(&mut vm.ext_b).cast_unsigned() << 3);
    (index, num_args)
}

/// Declares comparison handlers: SmallIntegers and Floats inline, other operands by a send.
macro_rules! comparisons {
    ($($name:ident $operator:tt;)*) => {handlers! {$(
        fn $name(vm, ip, sp) {
            let (left, right) = (sp.at(1), sp.at(0));
            let holds = if left.is_integer() && right.is_integer() {
                // Both have the same tag.
                left.0.cast_signed() $operator right.0.cast_signed()
            } else if let (Some(left), Some(right)) = (left.as_float(), right.as_float()) {
                left $operator right
            } else {
                return send_special(vm, ip, sp);
            };
            next(ip, 1, sp.replace(2, vm.boolean(holds)))
        }
    )*}};
}

comparisons! {
    less <;
    greater >;
    less_or_equal <=;
    greater_or_equal >=;
    equal ==;
    not_equal !=;
}

/// Declares arithmetic handlers: SmallIntegers inline; `float_arithmetic` does Floats and sends.
macro_rules! arithmetic {
    ($($name:ident $checked:ident;)*) => {handlers! {$(
        fn $name(vm, ip, sp) {
            if let (Some(left), Some(right)) = (sp.at(1).as_integer(), sp.at(0).as_integer())
                && let Some(value) = left.$checked(right).and_then(Oop::from_integer)
            {
                return next(ip, 1, sp.replace(2, value));
            }
            float_arithmetic(vm, ip, sp)
        }
    )*}};
}

arithmetic! {
    add checked_add;
    subtract checked_sub;
    multiply checked_mul;
}

/// Arithmetic on Floats; else a send. Apart from the handlers, as `send_special`.
#[inline(never)]
#[unsafe(link_section = "vmscope_bytecodes")]
pub(super) extern "C" fn float_arithmetic(vm: &mut Vm, ip: Ip, sp: Sp) -> Next {
    if let (Some(left), Some(right)) = (objects::float(sp.at(1)), objects::float(sp.at(0))) {
        let value = match ip.byte(0) {
            96 => left + right,
            97 => left - right,
            _ => left * right,
        };
        vm.save(ip.advance(1));
        if let Some(value) = vm.float(value) {
            return next(ip, 1, sp.replace(2, value));
        }
    }
    send_special(vm, ip, sp)
}

/// Declares handlers of operations on SmallIntegers that give a SmallInteger or nothing.
macro_rules! integer_operations {
    ($($name:ident $operation:expr;)*) => {handlers! {$(
        fn $name(vm, ip, sp) {
            let operation: fn(i64, i64) -> Option<i64> = $operation;
            if let (Some(left), Some(right)) = (sp.at(1).as_integer(), sp.at(0).as_integer())
                && let Some(value) = operation(left, right).and_then(Oop::from_integer)
            {
                return next(ip, 1, sp.replace(2, value));
            }
            send_special(vm, ip, sp)
        }
    )*}};
}

integer_operations! {
    divide |left, right| (right != 0 && left % right == 0).then(|| left / right);
    modulo floor_modulo;
    bit_shift shift;
    integer_divide floor_divide;
    bit_and |left, right| Some(left & right);
    bit_or |left, right| Some(left | right);
}

handlers! {
    fn make_point(vm, ip, sp) {
        send_special(vm, ip, sp)
    }
}

/// Quotient, rounded towards negative infinity.
pub(super) fn floor_divide(left: i64, right: i64) -> Option<i64> {
    let quotient = left.checked_div(right)?;
    let is_lower = left % right != 0 && (left < 0) != (right < 0);
    Some(quotient - i64::from(is_lower))
}

/// Remainder of `floor_divide`.
pub(super) fn floor_modulo(left: i64, right: i64) -> Option<i64> {
    let remainder = left.checked_rem(right)?;
    let is_lower = remainder != 0 && (remainder < 0) != (right < 0);
    Some(if is_lower {
        remainder + right
    } else {
        remainder
    })
}

/// Shifts left; a negative distance shifts right. `None` if a left shift loses bits.
pub(super) fn shift(value: i64, distance: i64) -> Option<i64> {
    if distance <= 0 {
        return Some(value >> distance.unsigned_abs().min(63));
    }
    let distance = u32::try_from(distance)
        .ok()
        .filter(|distance| *distance < 62)?;
    let shifted = value << distance;
    (shifted >> distance == value).then_some(shifted)
}

impl Vm {
    /// Pops a Boolean; jumps if the Boolean equals `wanted`.
    #[inline(always)]
    fn jump_if(&mut self, wanted: bool, ip: Ip, length: isize, distance: isize, sp: Sp) -> Next {
        let value = sp.at(0);
        let (taken, not_taken) = match wanted {
            true => (self.known.yes, self.known.no),
            false => (self.known.no, self.known.yes),
        };
        if value == taken {
            let to = next(ip, length + distance, sp.drop(1));
            return if distance < 0 { self.check(to) } else { to };
        }
        if value == not_taken {
            return next(ip, length, sp.drop(1));
        }
        // Sends mustBeBoolean, then repeats the jump (with its extension) on the answer.
        let extension = if (0..256).contains(&distance) { 0 } else { 2 };
        must_be_boolean(self, ip.advance(-extension), sp)
    }

    /// Enters the block on the stack if its argument count matches `num_args`.
    #[inline(always)]
    pub(super) fn enter_block(&mut self, num_args: usize, ip: Ip, sp: Sp) -> Option<Next> {
        let closure = sp.at(num_args);
        if class_index(closure) != classes::BLOCK_CLOSURE
            || slot(closure, 2) != Oop::small(num_args as i64)
        {
            return None;
        }
        self.save(ip);
        if let Some(next) = self.machine_activation(slot(closure, 1), Some(closure), sp) {
            return Some(next);
        }
        let next = self.activate_block(num_args, sp);
        Some(self.check(next))
    }

    /// Makes a closure; its copied values lie on the stack. `None` without memory.
    #[inline(always)]
    pub(crate) fn new_closure(
        &mut self,
        code: Oop,
        copied: usize,
        ignores_outer: bool,
        sp: Sp,
    ) -> Option<Oop> {
        let home = match ignores_outer {
            true => self.known.nil,
            false => self.home_token()?,
        };
        let slots = CLOSURE_FIELDS + copied;
        let format = Format::FIXED_AND_INDEXED;
        let closure = self.allocate(classes::BLOCK_CLOSURE, format, slots)?;
        let num_args = super::sends::MethodHeader::of(code).args();
        let fields = [home, code, Oop::small(num_args as i64), self.fp.receiver()];
        for (at, field) in fields.into_iter().enumerate() {
            self.heap.store(closure, at, field);
        }
        for at in 0..copied {
            self.heap
                .store(closure, CLOSURE_FIELDS + at, sp.at(copied - 1 - at));
        }
        Some(closure)
    }

    /// The class of an object.
    #[inline(always)]
    pub(crate) fn class_of(&self, oop: Oop) -> Oop {
        let class = self.image.class(class_index(oop));
        class.map_or(self.known.nil, |class| class.oop)
    }

    /// Number of fixed fields before the indexed fields. `None` if the object has no indexed
    /// references.
    pub(super) fn indexable(&self, oop: Oop) -> Option<usize> {
        let fields = || {
            self.image
                .class(class_index(oop))
                .map(|class| class.instance_variables.len())
        };
        match format(oop) {
            Format::INDEXED => Some(0),
            Format::FIXED_AND_INDEXED | Format::WEAK => fields(),
            _ => None,
        }
    }
}
