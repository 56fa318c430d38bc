//! Strings, Symbols and ByteArrays.

use super::Args;
use crate::interpreter::objects::{self, format, num_slots, slot};
use crate::interpreter::vm::Vm;
use crate::memory::{Oop, classes};

/// Bytes of a String, Symbol or ByteArray.
pub fn text<'a>(oop: Oop) -> Option<&'a [u8]> {
    format(oop).is_bytes().then(|| objects::bytes(oop))
}

/// The receiver's and the first argument's bytes.
fn pair<'a>(args: Args) -> Option<(&'a [u8], &'a [u8])> {
    if args.count == 0 {
        return None;
    }
    Some((text(args.receiver())?, text(args.at(0))?))
}

/// `compare:`: −1, 0 or 1.
pub fn compare(_vm: &mut Vm, args: Args) -> Option<Oop> {
    let (left, right) = pair(args)?;
    Some(Oop::small(left.cmp(right) as i64))
}

/// `hash`: equal for equal bytes.
pub fn hash(_vm: &mut Vm, args: Args) -> Option<Oop> {
    let bytes = text(args.receiver())?;
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold);
    Some(Oop::small((hash >> 34).cast_signed()))
}

/// `=` for two objects of the same class, or for String and Symbol.
pub fn equal(vm: &mut Vm, args: Args) -> Option<Oop> {
    let is_text = |oop| matches!(objects::class_index(oop), classes::STRING | classes::SYMBOL);
    let (receiver, other) = (args.receiver(), args.at(0));
    let are_alike = objects::class_index(receiver) == objects::class_index(other)
        || is_text(receiver) && is_text(other);
    match pair(args) {
        Some((left, right)) if are_alike => Some(vm.boolean(left == right)),
        _ => Some(vm.known.no),
    }
}

/// `indexOf: aCharacterOrByte startingAt: index`; 0 if there is none.
pub fn index_of(_vm: &mut Vm, args: Args) -> Option<Oop> {
    let bytes = text(args.receiver())?;
    let wanted = args.at(0);
    let wanted = match wanted.as_character() {
        Some(code_point) => i64::from(code_point),
        None => wanted.as_integer()?,
    };
    let start = args.index(1)?;
    let rest = bytes.get(start..).unwrap_or_default();
    let found = rest.iter().position(|byte| i64::from(*byte) == wanted);
    let index = found.map_or(0, |at| start + at + 1);
    Oop::from_integer(i64::try_from(index).ok()?)
}

/// `asSymbol`.
pub fn as_symbol(vm: &mut Vm, args: Args) -> Option<Oop> {
    let text = text(args.receiver())?;
    vm.image.symbol(&mut vm.heap, text).ok()
}

/// `asString`.
pub fn as_string(vm: &mut Vm, args: Args) -> Option<Oop> {
    let text = text(args.receiver())?;
    vm.string(text)
}

/// `replaceFrom: start to: stop with: other startingAt: first`.
pub fn replace(vm: &mut Vm, args: Args) -> Option<Oop> {
    let (receiver, other) = (args.receiver(), args.at(2));
    let (start, stop) = (args.index(0)?, usize::try_from(args.integer(1)?).ok()?);
    let first = args.index(3)?;
    let count = stop.checked_sub(start)?;
    let end = first.checked_add(count)?;
    if format(receiver).is_bytes() && format(other).is_bytes() {
        if objects::class_index(receiver) == classes::SYMBOL {
            return None;
        }
        if receiver == other {
            let bytes = objects::bytes_mut(receiver);
            if stop > bytes.len() || end > bytes.len() {
                return None;
            }
            bytes.copy_within(first..end, start);
        } else {
            let from = objects::bytes(other).get(first..end)?;
            objects::bytes_mut(receiver)
                .get_mut(start..stop)?
                .copy_from_slice(from);
        }
        return Some(receiver);
    }
    let (to_fields, from_fields) = (vm.indexable(receiver)?, vm.indexable(other)?);
    if stop.checked_add(to_fields)? > num_slots(receiver)
        || end.checked_add(from_fields)? > num_slots(other)
    {
        return None;
    }
    let copy = |vm: &mut Vm, at: usize| {
        let value = slot(other, from_fields + first + at);
        vm.heap.store(receiver, to_fields + start + at, value);
    };
    // Copy backwards: the ranges overlap and the elements move up.
    if receiver == other && first < start {
        (0..count).rev().for_each(|at| copy(vm, at));
    } else {
        (0..count).for_each(|at| copy(vm, at));
    }
    Some(receiver)
}
