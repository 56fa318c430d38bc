//! Compilation triggers, and the entry into machine code.

use super::compile::{self, Enter, Source};
use super::machine::{Context, NEVER, PREFIX};
use super::trampolines::Stub;
use crate::interpreter::raw::{IS_BLOCK, Ip, Sp};
use crate::interpreter::{MethodHeader, Next, Primitive, Vm, objects, primitive_by_number};
use crate::interpreter::{frame_flags, primitive_number};
use crate::memory::Oop;

impl Vm {
    /// Tells the JIT the addresses that machine code uses. The VM has its final place.
    #[allow(unsafe_code, reason = "the limit's address")]
    pub(crate) fn connect_jit(&mut self) {
        let vm: *mut Self = self;
        let new = self.heap.ranges().0;
        let known = (self.known.nil, self.known.yes, self.known.no);
        let limit = std::sync::Arc::as_ptr(&self.limit).expose_provenance();
        if let Some(machine) = &mut self.jit.machine {
            let context = machine.context();
            context.vm = vm;
            (context.nil, context.yes, context.no) = known;
            context.limit = limit;
            context.new_start = new.start;
            context.new_bytes = new.len();
        }
    }

    /// Entry that builds a method's frame; compiles the method if due.
    #[inline]
    pub(super) fn frame_entry(&mut self, method: Oop, closure: Option<Oop>) -> Option<u64> {
        let start = self.machine_code(method, closure)?;
        let machine = self.jit.machine.as_mut()?;
        let frame = machine.zone.get_u32(start - PREFIX);
        Some((machine.zone.base() + start) as u64 + u64::from(frame))
    }

    /// Offset of a method's machine code, compiled if it is time.
    #[inline]
    pub(super) fn machine_code(&mut self, method: Oop, closure: Option<Oop>) -> Option<usize> {
        let header = MethodHeader::of(method);
        if header.machine() != 0 {
            return Some(header.machine());
        }
        let count = header.activations();
        if count == NEVER {
            return None;
        }
        if count + 1 < self.jit.compile_at {
            header.with_activations(count + 1).put(method);
            return None;
        }
        let copied = closure.map(|closure| objects::num_slots(closure) - 4);
        self.compile_code(method, copied, None)
    }

    /// Machine code address for the bytecode at a loop's head.
    pub(super) fn loop_entry(&mut self, ip: Ip) -> Option<u64> {
        let fp = self.running_frame();
        let method = fp.method();
        let first = MethodHeader::of(method).first_bytecode();
        let body = Ip(objects::body(method)).advance(first);
        let bytecode = u32::try_from(ip.0.addr() - body.0.addr()).ok()?;
        let mut start = MethodHeader::of(method).machine();
        if start == 0 {
            self.jit.loops_left -= 1;
            if self.jit.loops_left > 0 {
                return None;
            }
            self.jit.loops_left = self.jit.loops;
            if MethodHeader::of(method).activations() == NEVER {
                return None;
            }
            let copied = fp.is_block().then(|| objects::num_slots(fp.closure()) - 4);
            start = self.compile_code(method, copied, Some(bytecode))?;
        }
        let machine = self.jit.machine.as_mut()?;
        machine.use_code(start);
        let loops = &machine.code_at(start)?.made.loops;
        let place = loops
            .binary_search_by_key(&bytecode, |entry| entry.0)
            .ok()?;
        Some((machine.zone.base() + start) as u64 + u64::from(loops[place].1))
    }

    #[cold]
    fn compile_code(
        &mut self,
        method: Oop,
        num_copied: Option<usize>,
        osr_bytecode: Option<u32>,
    ) -> Option<usize> {
        if self.jit.machine.as_ref()?.is_full {
            return None;
        }
        self.publish_compilation(method, osr_bytecode);
        let start = self.translate(method, num_copied);
        self.publish_compiled();
        start
    }

    fn translate(&mut self, method: Oop, num_copied: Option<usize>) -> Option<usize> {
        let header = MethodHeader::of(method);
        let number = primitive_number(method);
        let made = self.image.method(method).and_then(|known| {
            let primitive = match primitive_by_number(number) {
                None => Enter::Nothing,
                Some(Primitive::Value(call)) => Enter::Value(call as *const () as usize),
                Some(Primitive::Control(call)) => Enter::Control(call as *const () as usize),
            };
            let block = if num_copied.is_some() { IS_BLOCK } else { 0 };
            let class = self.method_class(method);
            compile::compile(&Source {
                method,
                bytecodes: &known.code.bytecodes,
                num_args: header.args(),
                num_temps: header.temps(),
                num_copied,
                flags: frame_flags(header.args(), number) | block,
                primitive,
                first: if header.has_primitive() { 3 } else { 0 },
                above: self.image.class(class).map_or(0, |class| class.superclass),
                special: &self.known.special,
                nil: self.known.nil,
                yes: self.known.yes,
                no: self.known.no,
            })
        });
        let machine = self.jit.machine.as_mut()?;
        // The interpreter runs methods larger than a quarter of the zone.
        let most = (machine.zone.bytes() - machine.first) / 4;
        let Some(made) = made.filter(|made| made.code.len() < most) else {
            header.with_activations(NEVER).put(method);
            return None;
        };
        let Some(code) = machine.install(method, made) else {
            self.ask_for_attention();
            return None;
        };
        let start = code.start;
        header.with_machine(start).put(method);
        self.jit.events.compiled += 1;
        Some(start)
    }

    /// Runs machine code until it leaves for the interpreter.
    #[allow(unsafe_code, reason = "calls machine code")]
    pub(crate) fn run_machine_code(&mut self, _ip: Ip, sp: Sp) -> Next {
        let fp = self.running_frame();
        let vm: *mut Self = self;
        let Some(machine) = &mut self.jit.machine else {
            return Next::END;
        };
        let context = machine.context();
        context.vm = vm;
        context.next_sp = sp;
        context.next_fp = fp;
        let enter = context.stubs[Stub::Enter as usize];
        let context = machine.context;
        // SAFETY: the trampoline takes the context, and keeps the registers that C functions keep.
        let enter: extern "C" fn(*mut Context) = unsafe { std::mem::transmute(enter) };
        enter(context);
        // SAFETY: the VM owns the context; machine code has ended.
        unsafe { (*context).interpreter }
    }
}
