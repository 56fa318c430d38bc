//! Blocks, `perform:`, and frames by their tokens.

use super::Args;
use crate::interpreter::objects::{self, class_index, num_slots, slot};
use crate::interpreter::raw::{Fp, Ip, Sp};
use crate::interpreter::sends::MethodHeader;
use crate::interpreter::vm::{Next, Vm};
use crate::memory::{Oop, classes};

/// Most arguments of a send.
const MOST_ARGS: usize = 15;

/// `value`, `value:` …
pub fn value(vm: &mut Vm, ip: Ip, sp: Sp, count: usize) -> Option<Next> {
    vm.enter_block(count, ip, sp)
}

/// `valueWithArguments:`.
pub fn value_with_arguments(vm: &mut Vm, ip: Ip, sp: Sp, count: usize) -> Option<Next> {
    let (block, arguments) = (sp.at(count), sp.at(0));
    if count != 1 || class_index(arguments) != classes::ARRAY {
        return None;
    }
    let num_args = num_slots(arguments);
    let is_right = class_index(block) == classes::BLOCK_CLOSURE
        && slot(block, 2).as_integer() == i64::try_from(num_args).ok();
    if !is_right {
        return None;
    }
    vm.enter_block(num_args, ip, spread(sp.drop(1), arguments))
}

/// Pushes the elements of an Array.
fn spread(sp: Sp, array: Oop) -> Sp {
    (0..num_slots(array)).fold(sp, |sp, at| sp.push(slot(array, at)))
}

/// `perform: selector with: …`.
pub fn perform(vm: &mut Vm, ip: Ip, sp: Sp, count: usize) -> Option<Next> {
    let selector = sp.at(count.checked_sub(1)?);
    if !takes(selector, count - 1) {
        return None;
    }
    // The arguments move over the selector.
    for depth in (0..count - 1).rev() {
        sp.put(depth + 1, sp.at(depth));
    }
    Some(vm.send(selector, count - 1, ip, sp.drop(1)))
}

/// `perform: selector withArguments: anArray`.
pub fn perform_with_arguments(vm: &mut Vm, ip: Ip, sp: Sp, count: usize) -> Option<Next> {
    if count != 2 {
        return None;
    }
    let (selector, arguments) = (sp.at(1), sp.at(0));
    if class_index(arguments) != classes::ARRAY || !takes(selector, num_slots(arguments)) {
        return None;
    }
    let num_args = num_slots(arguments);
    Some(vm.send(selector, num_args, ip, spread(sp.drop(2), arguments)))
}

/// Whether a Symbol is a selector with `count` arguments.
fn takes(selector: Oop, count: usize) -> bool {
    if class_index(selector) != classes::SYMBOL || count > MOST_ARGS {
        return false;
    }
    let text = objects::bytes(selector);
    match text.first() {
        Some(first) if first.is_ascii_alphabetic() || *first == b'_' => {
            text.iter().filter(|&&byte| byte == b':').count() == count
        }
        Some(_) => count == 1,
        None => false,
    }
}

/// Token of the running frame.
pub fn current(vm: &mut Vm, _args: Args) -> Option<Oop> {
    vm.token_of(vm.fp)
}

/// The frame that the receiver names.
fn frame(vm: &Vm, args: Args) -> Option<Fp> {
    vm.frame_of(args.receiver())
}

fn token_or_nil(vm: &mut Vm, fp: Option<Fp>) -> Option<Oop> {
    match fp {
        Some(fp) => vm.token_of(fp),
        None => Some(vm.known.nil),
    }
}

/// Token of the next `on:do:` frame outside of the receiver's.
pub fn next_handler(vm: &mut Vm, args: Args) -> Option<Oop> {
    let found = vm.next_handler(frame(vm, args)?);
    token_or_nil(vm, found)
}

/// Token of the innermost frame inside of the receiver's with an unwind block to run.
pub fn next_unwind(vm: &mut Vm, args: Args) -> Option<Oop> {
    let found = vm.innermost_unwind(frame(vm, args)?);
    token_or_nil(vm, found)
}

/// Frame and index of an existing temp.
fn temp(vm: &Vm, args: Args) -> Option<(Fp, usize)> {
    let (fp, index) = (frame(vm, args)?, args.index(0)?);
    (index < MethodHeader::of(fp.method()).temps()).then_some((fp, index))
}

/// `tempAt:`.
pub fn temp_at(vm: &mut Vm, args: Args) -> Option<Oop> {
    let (fp, index) = temp(vm, args)?;
    Some(fp.temp(index))
}

/// `tempAt:put:`. Only for frames marked by primitives: closures do not share their temps.
pub fn temp_at_put(vm: &mut Vm, args: Args) -> Option<Oop> {
    let (fp, index) = temp(vm, args)?;
    if args.count != 2 || fp.mark() == 0 {
        return None;
    }
    fp.set_temp(index, args.at(1));
    Some(args.at(1))
}

/// Returns the argument from the receiver's frame, without running unwind blocks.
pub fn return_from(vm: &mut Vm, _ip: Ip, sp: Sp, count: usize) -> Option<Next> {
    let home = frame(vm, Args { sp, count })?;
    let value = sp.at(0);
    vm.cut_to(home);
    Some(vm.return_value(value))
}

/// Restarts the receiver's frame from its first bytecode.
pub fn restart(vm: &mut Vm, _ip: Ip, sp: Sp, count: usize) -> Option<Next> {
    let fp = frame(vm, Args { sp, count })?;
    (fp.mark() != 0).then(|| vm.restart(fp))
}

/// Stack trace from the receiver's frame outwards, as a String.
pub fn stack_trace(vm: &mut Vm, args: Args) -> Option<Oop> {
    let trace = vm.stack_trace(frame(vm, args)?);
    vm.string(trace.as_bytes())
}
