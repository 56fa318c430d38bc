//! Functions called by trampolines. Functions without a result store the next machine-code address
//! in the context.
#![allow(unsafe_code, reason = "calls primitives by their addresses")]

use super::stub_ip;
use super::trampolines::Stub;
use crate::interpreter::raw::{Fp, Ip, Sp};
use crate::interpreter::{Args, MethodHeader, Next, Vm, objects};
use crate::memory::header::Format;
use crate::memory::{Oop, classes};

/// Machine code goes on where `next` says, or ends for the interpreter.
fn go_on(vm: &mut Vm, next: Next) {
    let fp = vm.running_frame();
    let is_machine = next.sp != Sp::NONE && vm.jit.is_machine(next.ip.word().0);
    let Some(machine) = &mut vm.jit.machine else {
        return;
    };
    let exit = machine.context().stubs[Stub::Exit as usize] as u64;
    let context = machine.context();
    context.next_sp = next.sp;
    context.next_fp = fp;
    if is_machine {
        context.next_pc = next.ip.word().0;
    } else if next.ip != stub_ip() || next.sp == Sp::NONE {
        context.next_pc = exit;
        // The trampoline reads the top of a stack.
        context.next_sp = Sp(std::ptr::with_exposed_provenance_mut(context.c_sp));
        context.interpreter = next;
    }
}

/// Handles an unlinked inline cache, or a cache miss.
pub(super) extern "C" fn send(vm: &mut Vm, ret: u64, sp: Sp, fp: Fp) {
    vm.set_running_frame(fp);
    let next = vm.send_from_machine(ret, sp, false);
    go_on(vm, next);
}

/// Handles a method missing from an open PIC.
pub(super) extern "C" fn open_send(vm: &mut Vm, ret: u64, sp: Sp, fp: Fp) {
    vm.set_running_frame(fp);
    let next = vm.send_from_machine(ret, sp, true);
    go_on(vm, next);
}

pub(super) extern "C" fn interrupt(vm: &mut Vm, ret: u64, sp: Sp, fp: Fp) {
    vm.set_running_frame(fp);
    let ip = Ip::from_word(Oop(ret));
    let next = vm.interrupt(Next { ip, sp });
    go_on(vm, next);
}

pub(super) extern "C" fn must_be_boolean(vm: &mut Vm, ret: u64, sp: Sp, fp: Fp) {
    vm.set_running_frame(fp);
    let selector = vm.known.must_be_boolean;
    let next = vm.send(selector, 0, Ip::from_word(Oop(ret)), sp);
    go_on(vm, next);
}

/// Returns the top value from a frame with a token.
pub(super) extern "C" fn return_value(vm: &mut Vm, _ret: u64, sp: Sp, fp: Fp) {
    vm.set_running_frame(fp);
    let next = vm.return_value(sp.at(0));
    go_on(vm, next);
}

/// Returns the top from a block's home.
pub(super) extern "C" fn method_return(vm: &mut Vm, _ret: u64, sp: Sp, fp: Fp) {
    vm.set_running_frame(fp);
    let next = vm.method_return(sp.at(0), sp);
    go_on(vm, next);
}

/// Handles the return to an interpreted caller, or from a base frame.
pub(super) extern "C" fn return_to_interpreter(vm: &mut Vm, _: u64, sp: Sp, fp: Fp) {
    vm.set_running_frame(fp);
    let next = if fp.is_none() {
        vm.base_return(sp.at(0), sp)
    } else {
        Next { ip: fp.ip(), sp }
    };
    go_on(vm, next);
}

pub(super) extern "C" fn out_of_memory(vm: &mut Vm, _ret: u64, _sp: Sp, fp: Fp) {
    vm.set_running_frame(fp);
    let next = vm.out_of_memory();
    go_on(vm, next);
}

/// Runs a control primitive (chooses the next address). On failure, builds the method's frame.
pub(super) extern "C" fn control(
    vm: &mut Vm,
    ret: u64,
    sp: Sp,
    fp: Fp,
    frame_entry: u64,
    function: usize,
) {
    vm.set_running_frame(fp);
    let count = match &mut vm.jit.machine {
        Some(machine) => machine.context().count as usize,
        None => return,
    };
    // SAFETY: the compiler wrote a control primitive's address into the code.
    let call: fn(&mut Vm, Ip, Sp, usize) -> Option<Next> = unsafe { std::mem::transmute(function) };
    let next = match call(vm, Ip::from_word(Oop(ret)), sp, count) {
        Some(next) => next,
        None => Next {
            ip: Ip::from_word(Oop(frame_entry)),
            sp: sp.push(Oop(ret)),
        },
    };
    go_on(vm, next);
}

/// Runs a value primitive; returns 0 on failure.
pub(super) extern "C" fn primitive(
    vm: &mut Vm,
    sp: Sp,
    fp: Fp,
    count: usize,
    function: usize,
) -> Oop {
    vm.set_running_frame(fp);
    // SAFETY: the compiler wrote a value primitive's address into the code.
    let call: fn(&mut Vm, Args) -> Option<Oop> = unsafe { std::mem::transmute(function) };
    call(vm, Args { sp, count }).unwrap_or(Oop::NONE)
}

pub(super) extern "C" fn store_check(vm: &mut Vm, _sp: Sp, _fp: Fp, object: Oop) {
    vm.heap.remember(object);
}

/// Bit position, in the operand of a trampoline that allocates, of the next bytecode's offset.
pub(super) const NEXT_SHIFT: u32 = 9;

/// Saves the next bytecode in the running frame: allocations name it as their site.
fn save_bytecode(fp: Fp, offset: usize) {
    let method = fp.method();
    let first = MethodHeader::of(method).first_bytecode();
    fp.set_ip(Ip(objects::body(method)).advance(first + offset.cast_signed()));
}

/// Makes a closure of `code`; copied values lie on the stack. 0 without memory.
pub(super) extern "C" fn closure(vm: &mut Vm, sp: Sp, fp: Fp, code: Oop, operand: usize) -> Oop {
    vm.set_running_frame(fp);
    save_bytecode(fp, operand >> NEXT_SHIFT);
    vm.new_closure(code, operand & 0xff, operand & 0x100 != 0, sp)
        .unwrap_or(Oop::NONE)
}

/// Makes an Array of the top stack elements, or of nil.
pub(super) extern "C" fn array(vm: &mut Vm, sp: Sp, fp: Fp, count: usize, operand: usize) -> Oop {
    vm.set_running_frame(fp);
    save_bytecode(fp, operand >> NEXT_SHIFT);
    let popped = operand & 0xff;
    let Some(array) = vm.allocate(classes::ARRAY, Format::INDEXED, count) else {
        return Oop::NONE;
    };
    for at in 0..popped {
        vm.heap.store(array, at, sp.at(popped - 1 - at));
    }
    array
}

pub(super) extern "C" fn class(vm: &mut Vm, _sp: Sp, _fp: Fp, object: Oop) -> Oop {
    vm.class_of(object)
}

impl Vm {
    /// A send from machine code whose inline cache did not find the method.
    fn send_from_machine(&mut self, ret: u64, sp: Sp, is_open: bool) -> Next {
        let ip = Ip::from_word(Oop(ret));
        let Some(machine) = &self.jit.machine else {
            return Next::END;
        };
        let offset = machine.offset_of(ret);
        let site = machine
            .code_at(offset)
            .and_then(|code| super::machine::site_at(code, offset))
            .cloned();
        let Some(site) = site else {
            return self.stop(crate::interpreter::Outcome::Quit(70));
        };
        let receiver = objects::class_index(sp.at(site.num_args));
        let class = site.above.unwrap_or(receiver);
        let Some(found) = self.find(site.selector, class) else {
            return self.not_understood(site.selector, site.num_args, ip, sp);
        };
        let Some(start) = self.machine_code(found.method, None) else {
            return self.execute(found, site.num_args, ip, sp);
        };
        let Some(machine) = &mut self.jit.machine else {
            return Next::END;
        };
        let entry = machine.use_code(start);
        machine.context().receiver = sp.at(site.num_args);
        if is_open {
            machine.remember(site.selector, receiver, entry);
        } else if machine
            .link(offset, &site, receiver, found.method, start)
            .is_none()
        {
            self.ask_for_attention();
        } else {
            self.publish_code_changes();
        }
        Next {
            ip: Ip::from_word(Oop(entry)),
            sp: sp.push(Oop(ret)),
        }
    }
}
