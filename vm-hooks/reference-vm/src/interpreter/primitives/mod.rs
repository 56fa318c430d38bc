//! Primitives by number. Primitives shared with Cog have Cog's numbers (DESIGN §7).
//!
//! A primitive that fails leaves receiver and arguments on the stack, and the method's body runs.

mod control;
mod floats;
mod integers;
mod objects;
mod strings;
mod system;

use super::raw::{Ip, Sp};
use super::vm::{Next, Vm};
use crate::memory::Oop;

/// A primitive.
#[derive(Clone, Copy)]
pub(crate) enum Primitive {
    /// Returns a value; `None` on failure.
    Value(fn(&mut Vm, Args) -> Option<Oop>),
    /// Returns the next bytecode and stack; `None` on failure.
    Control(fn(&mut Vm, Ip, Sp, usize) -> Option<Next>),
}

/// Receiver and arguments of a primitive.
#[derive(Clone, Copy)]
pub(crate) struct Args {
    pub sp: Sp,
    pub count: usize,
}

impl Args {
    /// The receiver.
    #[inline(always)]
    pub fn receiver(self) -> Oop {
        self.sp.at(self.count)
    }

    /// Argument at a 0-based index; the receiver if missing, since primitives check their inputs.
    #[inline(always)]
    pub fn at(self, index: usize) -> Oop {
        self.sp.at(self.count.saturating_sub(index + 1))
    }

    /// An argument that is a SmallInteger.
    #[inline(always)]
    pub fn integer(self, index: usize) -> Option<i64> {
        if index < self.count {
            self.at(index).as_integer()
        } else {
            None
        }
    }

    /// Index argument, converted from 1-based to 0-based.
    #[inline(always)]
    pub fn index(self, index: usize) -> Option<usize> {
        usize::try_from(self.integer(index)?.checked_sub(1)?).ok()
    }
}

/// The primitive with this number.
pub(crate) fn by_number(number: usize) -> Option<Primitive> {
    use Primitive::{Control, Value};
    Some(match number {
        1..=17 => Value(integers::small(number)?),
        20..=37 => Value(integers::large(number)?),
        40 => Value(floats::as_float),
        41..=50 => Value(floats::binary(number)?),
        51..=59 => Value(floats::function(number)?),
        60 => Value(objects::at),
        61 => Value(objects::at_put),
        62 => Value(objects::size),
        70 => Value(objects::basic_new),
        71 => Value(objects::basic_new_sized),
        73 => Value(objects::inst_var_at),
        74 => Value(objects::inst_var_at_put),
        75 => Value(objects::identity_hash),
        83 => Control(control::perform),
        84 => Control(control::perform_with_arguments),
        85 => Control(Vm::primitive_signal),
        86 => Control(Vm::primitive_wait),
        87 => Control(Vm::primitive_resume),
        88 => Control(Vm::primitive_suspend),
        105 => Value(strings::replace),
        110 => Value(|vm, args| Some(vm.boolean(args.receiver() == args.at(0)))),
        111 => Value(|vm, args| Some(vm.class_of(args.receiver()))),
        113 => Control(system::quit),
        130 => Control(system::collect_full),
        131 => Control(system::scavenge),
        135 => Value(system::milliseconds),
        136 => Value(system::signal_at),
        148 => Value(objects::shallow_copy),
        158 => Value(strings::compare),
        159 => Value(strings::hash),
        160 => Value(strings::equal),
        161 => Value(strings::index_of),
        162 => Value(strings::as_symbol),
        163 => Value(strings::as_string),
        167 => Control(Vm::primitive_yield),
        170 => Value(integers::as_character),
        171 => Value(|_, args| Some(Oop::small(i64::from(args.receiver().as_character()?)))),
        172 => Value(|vm, _| Some(vm.heap.next_mourner().unwrap_or(vm.known.nil))),
        173 => Control(Vm::primitive_new_process),
        174 => Control(Vm::primitive_terminate),
        201..=205 => Control(control::value),
        206 => Control(control::value_with_arguments),
        240 => Value(system::microseconds),
        253 => Value(system::code_constituents),
        254 => Value(system::parameter),
        500 => Value(control::current),
        501 => Value(control::next_handler),
        502 => Value(control::temp_at),
        503 => Value(control::temp_at_put),
        504 => Value(control::next_unwind),
        505 => Control(control::return_from),
        506 => Control(control::restart),
        507 => Value(control::stack_trace),
        520 => Value(|vm, args| system::write(vm, args, false)),
        521 => Value(|vm, args| system::write(vm, args, true)),
        522 => Value(floats::print),
        523 => Value(floats::parse),
        524 => Value(integers::print),
        525 => Value(integers::parse),
        526 => Value(system::arguments),
        527 => Value(system::global_at),
        528 => Value(system::global_at_put),
        529 => Value(system::sole_instance),
        530 => Value(system::includes_selector),
        531 => Value(system::selectors),
        532 => Value(system::file_contents),
        533 => Value(system::cpu_microseconds),
        540 => Value(system::pretenure),
        541 => Value(objects::note_birth),
        542 => Value(objects::note_death),
        543 => Value(objects::basic_new_old),
        // 197 to 199 mark their frames, and always fail.
        _ => return None,
    })
}
