//! Fields of objects, and new objects.

use super::Args;
use crate::interpreter::objects::{self, format, num_slots, slot};
use crate::interpreter::vm::Vm;
use crate::memory::header::Format;
use crate::memory::{Oop, classes};

/// Largest size that `basicNew:` takes, in elements.
const MOST_ELEMENTS: i64 = 1 << 32;

/// Whether the object's bytes represent Characters.
fn has_characters(oop: Oop) -> bool {
    matches!(objects::class_index(oop), classes::STRING | classes::SYMBOL)
}

/// `at:`.
pub fn at(vm: &mut Vm, args: Args) -> Option<Oop> {
    let (receiver, index) = (args.receiver(), args.index(0)?);
    if format(receiver).is_bytes() {
        let byte = *objects::bytes(receiver).get(index)?;
        return Some(match has_characters(receiver) {
            true => Oop::character(u32::from(byte)),
            false => Oop::small(i64::from(byte)),
        });
    }
    let index = index.checked_add(vm.indexable(receiver)?)?;
    (index < num_slots(receiver)).then(|| slot(receiver, index))
}

/// `at:put:`.
pub fn at_put(vm: &mut Vm, args: Args) -> Option<Oop> {
    let (receiver, index, value) = (args.receiver(), args.index(0)?, args.at(1));
    if args.count != 2 {
        return None;
    }
    if format(receiver).is_bytes() {
        if objects::class_index(receiver) == classes::SYMBOL {
            return None;
        }
        let byte = match has_characters(receiver) {
            true => u8::try_from(value.as_character()?).ok()?,
            false => u8::try_from(value.as_integer()?).ok()?,
        };
        *objects::bytes_mut(receiver).get_mut(index)? = byte;
        return Some(value);
    }
    let index = index.checked_add(vm.indexable(receiver)?)?;
    if index >= num_slots(receiver) {
        return None;
    }
    vm.heap.store(receiver, index, value);
    Some(value)
}

/// `size`: the number of indexed fields.
pub fn size(vm: &mut Vm, args: Args) -> Option<Oop> {
    let receiver = args.receiver();
    let size = if format(receiver).is_bytes() {
        objects::bytes(receiver).len()
    } else {
        match vm.indexable(receiver) {
            Some(fields) => num_slots(receiver).saturating_sub(fields),
            None => 0,
        }
    };
    Oop::from_integer(i64::try_from(size).ok()?)
}

/// `basicNew`.
pub fn basic_new(vm: &mut Vm, args: Args) -> Option<Oop> {
    new_object(vm, args, 0, false)
}

/// `basicNew` in old space.
pub fn basic_new_old(vm: &mut Vm, args: Args) -> Option<Oop> {
    new_object(vm, args, 0, true)
}

/// Notes the birth of the first argument, which the second argument, a SmallInteger, weighs. Answers
/// the object's id.
pub fn note_birth(vm: &mut Vm, args: Args) -> Option<Oop> {
    let (object, weight) = (args.at(0), args.integer(1)?);
    if args.count != 2 || !object.is_pointer() || weight < 1 {
        return None;
    }
    let id = vm.note_observed_birth(object, weight as f64);
    Oop::from_integer(i64::try_from(id).ok()?)
}

/// Publishes the death of the object with an id.
pub fn note_death(vm: &mut Vm, args: Args) -> Option<Oop> {
    let id = u64::try_from(args.integer(0)?).ok()?;
    vm.publish_observed_death(id);
    Some(args.receiver())
}

/// `basicNew:`.
pub fn basic_new_sized(vm: &mut Vm, args: Args) -> Option<Oop> {
    let size = args
        .integer(0)
        .filter(|size| (0..=MOST_ELEMENTS).contains(size))?;
    new_object(vm, args, usize::try_from(size).ok()?, false)
}

/// Makes a new instance of the receiver class. `old`: in old space. The running frame has saved its
/// ip.
fn new_object(vm: &mut Vm, args: Args, size: usize, old: bool) -> Option<Oop> {
    let index = match vm.class_index_of(args.receiver()) {
        0 => return None,
        index => index,
    };
    let described = vm.image.class(index)?;
    let (format, fields) = (described.format, described.instance_variables.len());
    let (format, slots) = match format {
        Format::EMPTY | Format::FIXED | Format::EPHEMERON if size == 0 => (format, fields),
        Format::INDEXED | Format::FIXED_AND_INDEXED | Format::WEAK => {
            (format, fields.checked_add(size)?)
        }
        Format::BYTES => (Format::with_bytes(Format::BYTES, size), size.div_ceil(8)),
        _ => return None,
    };
    if is_immediate(index) || described.meta {
        return None;
    }
    let is_site = vm.allocation_sites.has_pretenured() && vm.is_pretenured_site();
    if old || is_site {
        vm.allocate_old(index, format, slots)
    } else {
        vm.allocate(index, format, slots)
    }
}

/// Classes whose instances only the VM makes.
fn is_immediate(index: u32) -> bool {
    matches!(
        index,
        classes::SMALL_INTEGER
            | classes::CHARACTER
            | classes::SMALL_FLOAT
            | classes::BLOCK_CLOSURE
            | classes::CONTEXT
            | classes::COMPILED_METHOD
            | classes::COMPILED_BLOCK
            | classes::SYMBOL
            | classes::UNDEFINED_OBJECT
            | classes::TRUE
            | classes::FALSE
            | classes::PROCESS
            | classes::FLOAT
    )
}

/// Index of a field (fixed or indexed) of an object with references.
fn field(receiver: Oop, args: Args) -> Option<usize> {
    let index = args.index(0)?;
    let is_there =
        receiver.is_pointer() && format(receiver).is_pointers() && index < num_slots(receiver);
    is_there.then_some(index)
}

/// Whether programs may write an object's fields by number.
fn is_writable(vm: &Vm, receiver: Oop) -> bool {
    let index = objects::class_index(receiver);
    !vm.is_class(receiver)
        && !matches!(
            index,
            classes::BLOCK_CLOSURE | classes::CONTEXT | classes::PROCESS
        )
}

/// `instVarAt:`.
pub fn inst_var_at(_vm: &mut Vm, args: Args) -> Option<Oop> {
    let receiver = args.receiver();
    Some(slot(receiver, field(receiver, args)?))
}

/// `instVarAt:put:`.
pub fn inst_var_at_put(vm: &mut Vm, args: Args) -> Option<Oop> {
    let (receiver, value) = (args.receiver(), args.at(1));
    let index = field(receiver, args)?;
    if args.count != 2 || !is_writable(vm, receiver) {
        return None;
    }
    vm.heap.store(receiver, index, value);
    Some(value)
}

/// `identityHash`.
pub fn identity_hash(vm: &mut Vm, args: Args) -> Option<Oop> {
    let receiver = args.receiver();
    Some(match receiver.as_integer() {
        Some(_) => receiver,
        None if receiver.is_pointer() => Oop::small(i64::from(vm.heap.identity_hash(receiver))),
        None => Oop::small((receiver.0 >> 3 & 0x0fff_ffff_ffff_ffff).cast_signed() >> 1),
    })
}

/// `shallowCopy`.
pub fn shallow_copy(vm: &mut Vm, args: Args) -> Option<Oop> {
    let receiver = args.receiver();
    let index = objects::class_index(receiver);
    if !receiver.is_pointer()
        || (is_immediate(index) && index != classes::BLOCK_CLOSURE)
        || vm.is_class(receiver)
    {
        return Some(receiver);
    }
    let (format, slots) = (format(receiver), num_slots(receiver));
    let copy = vm.allocate(index, format, slots)?;
    if format.is_bytes() {
        objects::bytes_mut(copy).copy_from_slice(objects::bytes(receiver));
    } else {
        for at in 0..slots {
            vm.heap.store(copy, at, slot(receiver, at));
        }
    }
    Some(copy)
}
