//! Compiles bytecodes to machine code, in bytecode order; rare cases follow behind.
//!
//! The compiler defers pushes of constants, temps, the receiver and the last result, like Cog's
//! StackToRegisterMappingCogit: the top entries of the operand stack may not be in memory yet.
//! Sends, jumps and jump targets first flush deferred entries to memory. Execution can leave a
//! frame only at such places (*resume points*); there the frame matches the interpreter's layout.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::glue::NEXT_SHIFT;
use super::operands::Object;
use super::trampolines::{Assembler, Stub, stub};
use crate::compiler::bytecodes::{InVector, Instruction, SPECIAL_SELECTORS, decode};
use crate::memory::Oop;

/// Facts about a method or block for the compiler.
pub(super) struct Source<'a> {
    pub method: Oop,
    pub bytecodes: &'a [u8],
    pub num_args: usize,
    pub num_temps: usize,
    /// Of a block: the number of copied values.
    pub num_copied: Option<usize>,
    pub flags: i64,
    /// The primitive that runs first.
    pub primitive: Enter,
    /// Offset of the first bytecode after the primitive call.
    pub first: usize,
    /// Class index that super sends begin at.
    pub above: u32,
    pub special: &'a [Oop; 32],
    pub nil: Oop,
    pub yes: Oop,
    pub no: Oop,
}

/// Work of a method before frame building.
#[derive(Clone, Copy)]
pub(super) enum Enter {
    Nothing,
    /// A value primitive: the function's address.
    Value(usize),
    /// A control primitive: chooses the next address to run.
    Control(usize),
}

/// A send in machine code.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// Offset of the return address.
    pub ret: u32,
    pub selector: Oop,
    pub num_args: usize,
    /// First class index of a super send's lookup.
    pub above: Option<u32>,
}

/// Machine code without a final address.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    pub code: Vec<u8>,
    /// Entry offset without the class check.
    pub unchecked: u32,
    /// Entry offset after the primitive.
    pub frame: u32,
    /// Resume points: offsets of code and bytecode.
    pub resumes: Vec<(u32, u32)>,
    /// Start offset of each bytecode's code.
    pub boundaries: Vec<(u32, u32)>,
    /// Heads of loops: offsets of bytecode and code.
    pub loops: Vec<(u32, u32)>,
    pub sites: Vec<Site>,
}

/// A deferred operand-stack entry (not in memory).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entry {
    Constant(u64),
    Temp(usize),
    Receiver,
    /// In rax.
    Result,
}

/// Emits code for rare cases, behind all other code.
type Rare = Box<dyn FnOnce(&mut Compiler<'_>)>;

pub(super) struct Compiler<'a> {
    pub ops: Assembler,
    pub source: &'a Source<'a>,
    /// The deferred entries; those below are in memory.
    pub stack: Vec<Entry>,
    labels: Vec<DynamicLabel>,
    pub is_target: Vec<bool>,
    /// Offsets of the current bytecode and its successor.
    at: usize,
    next: usize,
    /// Code offset of the newest send's return address, where rax, too, holds the result.
    returned: usize,
    /// Code offset where the receiver is also in rdx.
    pub receiver_loaded: usize,
    rare: Vec<Rare>,
    pub out: Compiled,
}

pub(super) fn offset(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Compiles; `None` for code with unsupported instructions.
pub(super) fn compile(source: &Source<'_>) -> Option<Compiled> {
    let mut ops = Assembler::new(0);
    let count = source.bytecodes.len() + 1;
    let labels = (0..count).map(|_| ops.new_dynamic_label()).collect();
    let mut compiler = Compiler {
        ops,
        source,
        stack: Vec::new(),
        labels,
        is_target: vec![false; count],
        at: source.first,
        next: source.first,
        returned: 0,
        receiver_loaded: 0,
        rare: Vec::new(),
        out: Compiled::default(),
    };
    compiler.find_targets()?;
    if compiler.frameless().is_none() {
        compiler.enter();
        compiler.body()?;
    }
    let mut out = compiler.out;
    out.code = compiler.ops.finalize().ok()?;
    out.resumes.sort_unstable();
    Some(out)
}

impl Compiler<'_> {
    fn find_targets(&mut self) -> Option<()> {
        let mut at = self.source.first;
        while at < self.source.bytecodes.len() {
            let (instruction, length) = decode(self.source.bytecodes, at).ok()?;
            if let Some(distance) = instruction.jump_distance() {
                if distance < 0 && !matches!(instruction, Instruction::Jump(_)) {
                    return None;
                }
                *self.is_target.get_mut(target(at + length, distance)?)? = true;
            }
            at += length;
        }
        Some(())
    }

    /// Records that the following code resumes at a bytecode, with all operands in memory.
    pub(super) fn resume(&mut self, bytecode: usize) {
        let here = offset(self.ops.offset().0);
        self.out.resumes.push((here, offset(bytecode)));
    }

    fn body(&mut self) -> Option<()> {
        let bytecodes = self.source.bytecodes;
        let mut at = self.source.first;
        while at < bytecodes.len() {
            let (instruction, length) = decode(bytecodes, at).ok()?;
            if self.is_target[at] {
                if !self.stack.is_empty() {
                    self.return_early(at);
                }
                self.flush();
                (self.returned, self.receiver_loaded) = (0, 0);
                let label = self.labels[at];
                dynasm!(self.ops ; .arch x64 ;=>label);
                self.out
                    .loops
                    .push((offset(at), offset(self.ops.offset().0)));
            }
            self.begin(at, at + length);
            at = self.instruction(instruction, at, at + length)?;
        }
        // Nobody comes here: verified code ends with a return or a jump.
        let label = self.labels[bytecodes.len()];
        dynasm!(self.ops ; .arch x64 ;=>label ; int3);
        self.boundary(bytecodes.len());
        while !self.rare.is_empty() {
            for rare in std::mem::take(&mut self.rare) {
                rare(self);
            }
        }
        Some(())
    }

    /// Begins code of the bytecode at `at`.
    pub(super) fn begin(&mut self, at: usize, next: usize) {
        (self.at, self.next) = (at, next);
        self.boundary(at);
    }

    /// Emits code for a rare case of the current bytecode, with the present deferred entries.
    pub(super) fn rarely(&mut self, code: impl FnOnce(&mut Compiler<'_>) + 'static) {
        let (stack, at, next) = (self.stack.clone(), self.at, self.next);
        self.rare.push(Box::new(move |compiler| {
            compiler.stack = stack;
            compiler.begin(at, next);
            code(compiler);
            // As in order, the range of a bytecode's code ends with its successor.
            compiler.boundary(compiler.next);
        }));
    }

    /// Whether rax, too, holds the top of the operand stack.
    pub(super) fn is_top_in_rax(&self) -> bool {
        self.ops.offset().0 == self.returned
    }

    /// Compiles an instruction, possibly together with its successor; returns the next bytecode
    /// offset.
    fn instruction(&mut self, instruction: Instruction, at: usize, next: usize) -> Option<usize> {
        use Instruction as I;
        let source = self.source;
        match instruction {
            I::PushReceiverVariable(index) => {
                self.stack.push(Entry::Receiver);
                self.pop_rax();
                let field = 8 + 8 * index as i32;
                dynasm!(self.ops ; .arch x64 ; mov rax, [rax + field]);
                self.stack.push(Entry::Result);
            }
            I::PushLiteralVariable(index) => {
                self.flush_result();
                let association = self.literal(index).0;
                dynasm!(self.ops
                    ; .arch x64
                    ; mov rax, QWORD association as i64
                    ; mov rax, [rax + 16]
                );
                self.stack.push(Entry::Result);
            }
            I::PushLiteral(index) => self.stack.push(Entry::Constant(self.literal(index).0)),
            I::PushTemp(index) => self.stack.push(Entry::Temp(index)),
            I::PushReceiver => self.stack.push(Entry::Receiver),
            I::PushTrue => self.stack.push(Entry::Constant(source.yes.0)),
            I::PushFalse => self.stack.push(Entry::Constant(source.no.0)),
            I::PushNil => self.stack.push(Entry::Constant(source.nil.0)),
            I::PushInteger(value) => {
                let value = Oop::small(i64::from(value));
                self.stack.push(Entry::Constant(value.0));
            }
            I::PushCharacter(value) => {
                self.stack.push(Entry::Constant(Oop::character(value).0));
            }
            I::Dup => match self.stack.last().copied() {
                Some(entry) if entry != Entry::Result => self.stack.push(entry),
                _ => {
                    self.flush();
                    dynasm!(self.ops ; .arch x64 ; mov rax, [rsp]);
                    self.stack.push(Entry::Result);
                }
            },
            I::Pop => {
                if self.stack.pop().is_none() {
                    dynasm!(self.ops ; .arch x64 ; add rsp, 8);
                }
            }
            I::Nop | I::CallPrimitive(_) => {}
            I::ReturnReceiver => {
                self.stack.push(Entry::Receiver);
                self.method_return();
            }
            I::ReturnTrue => {
                self.stack.push(Entry::Constant(source.yes.0));
                self.method_return();
            }
            I::ReturnFalse => {
                self.stack.push(Entry::Constant(source.no.0));
                self.method_return();
            }
            I::ReturnNil => {
                self.stack.push(Entry::Constant(source.nil.0));
                self.method_return();
            }
            I::ReturnTop => self.method_return(),
            I::BlockReturnNil => {
                self.stack.push(Entry::Constant(source.nil.0));
                self.local_return();
            }
            I::BlockReturnTop => self.local_return(),
            I::SendSpecial(index) => return self.special(index, next),
            I::Send { literal, num_args } => {
                self.send(self.literal(literal), num_args, None, next);
            }
            I::SendSuper { literal, num_args } => {
                self.send(self.literal(literal), num_args, Some(source.above), next);
            }
            I::Jump(distance) => self.jump(target(next, distance)?, distance < 0),
            I::JumpTrue(distance) => {
                self.pop_rax();
                self.flush();
                self.jump_if(true, at, target(next, distance)?);
            }
            I::JumpFalse(distance) => {
                self.pop_rax();
                self.flush();
                self.jump_if(false, at, target(next, distance)?);
            }
            I::PopIntoReceiverVariable(index) => self.store_field(index, Object::Receiver, false),
            I::StoreIntoReceiverVariable(index) => self.store_field(index, Object::Receiver, true),
            I::PopIntoLiteralVariable(index) => {
                self.store_field(1, Object::Permanent(self.literal(index)), false);
            }
            I::StoreIntoLiteralVariable(index) => {
                self.store_field(1, Object::Permanent(self.literal(index)), true);
            }
            I::StoreInVector(InVector { index, vector }) => {
                self.store_field(index, Object::Temp(vector), true);
            }
            I::PopInVector(InVector { index, vector }) => {
                self.store_field(index, Object::Temp(vector), false);
            }
            I::PopIntoTemp(index) => self.store_temp(index, false),
            I::StoreIntoTemp(index) => self.store_temp(index, true),
            I::PushInVector(InVector { index, vector }) => {
                self.flush_result();
                let (temp, field) = (self.temp(vector), 8 + 8 * index as i32);
                dynasm!(self.ops ; .arch x64 ; mov rax, [rbp + temp] ; mov rax, [rax + field]);
                self.stack.push(Entry::Result);
            }
            I::PushNewArray(count) => self.array(count, 0, next),
            I::PushArrayOf(count) => self.array(count, count, next),
            I::PushClosure {
                literal,
                num_copied,
                ignores_outer,
            } => {
                self.flush();
                let code = self.literal(literal).0;
                let flags = num_copied as i32 | i32::from(ignores_outer) << 8;
                let operand = flags | (next as i32) << NEXT_SHIFT;
                dynasm!(self.ops
                    ; .arch x64
                    ; mov rcx, QWORD code as i64
                    ; mov r8d, operand
                    ; call QWORD [rbx + stub(Stub::Closure)]
                );
                self.new_object(num_copied);
            }
        }
        Some(next)
    }

    pub(super) fn label(&self, bytecode: usize) -> DynamicLabel {
        self.labels[bytecode]
    }

    /// Marks the start of a bytecode's code inside another bytecode's instruction.
    pub(super) fn boundary(&mut self, bytecode: usize) {
        let here = offset(self.ops.offset().0);
        self.out.boundaries.push((here, offset(bytecode)));
    }

    /// Sends; the result is on the stack.
    pub(super) fn send(&mut self, selector: Oop, num_args: usize, above: Option<u32>, next: usize) {
        let depth = self.stack.len().checked_sub(num_args + 1);
        let receiver = depth.map(|at| self.stack[at]);
        let is_in_rax = receiver == Some(Entry::Result)
            || self.stack.is_empty() && num_args == 0 && self.is_top_in_rax();
        self.flush();
        if is_in_rax {
            dynasm!(self.ops ; .arch x64 ; mov rdx, rax);
        } else {
            dynasm!(self.ops ; .arch x64 ; mov rdx, [rsp + 8 * num_args as i32]);
        }
        self.call_site(selector, num_args, above, next);
    }

    /// Emits the call of a send; rdx contains the receiver.
    pub(super) fn call_site(
        &mut self,
        selector: Oop,
        num_args: usize,
        above: Option<u32>,
        next: usize,
    ) {
        // Code placement writes both operands; linking overwrites them.
        dynasm!(self.ops
            ; .arch x64
            ; .bytes [0xb8, 0, 0, 0, 0, 0xe8, 0, 0, 0, 0]
        );
        self.returned = self.ops.offset().0;
        let ret = offset(self.returned);
        self.out.sites.push(Site {
            ret,
            selector,
            num_args,
            above,
        });
        self.resume(next);
    }

    /// `value` or another special selector that has no short way.
    pub(super) fn special_send(&mut self, index: usize, next: usize) {
        self.send(
            self.source.special[index],
            SPECIAL_SELECTORS[index].1,
            None,
            next,
        );
    }
}

pub(super) fn target(from: usize, distance: i32) -> Option<usize> {
    from.checked_add_signed(distance as isize)
}
