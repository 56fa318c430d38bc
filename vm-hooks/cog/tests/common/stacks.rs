//! Smalltalk stacks made by a test, in the busy snapshot's memory. The snapshot has the VM's variables
//! and methods, but not its stack pages.

use std::sync::Arc;

use vmscope_cog::testing::Snapshot;
use vmscope_cog::{CogAdapter, Vm};
use vmscope_process::testing::FakeMemory;
use vmscope_process::{
    Adapter as _, CopiedStack, Frame, FrameRegisters, KeySource, Memory, MemoryError, Poll,
    ProcessView, Unwinder,
};
use vmscope_records::{Arch, Avma, ChainEnd, ProcessKey, Registers, StackBytes, TimeNs};

use super::snapshot;

pub const PAGE: u64 = 8192;
const PAGES: u64 = 50;

/// Made objects lie here.
const OBJECTS: u64 = 0x5800_0000_0000;

/// A test's memory over the snapshot's memory.
struct Overlay {
    made: FakeMemory,
    below: Arc<dyn Memory>,
}

impl Memory for Overlay {
    fn read_partial(&self, at: Avma, buffer: &mut [u8]) -> Result<usize, MemoryError> {
        match self.made.read_partial(at, buffer)? {
            0 => self.below.read_partial(at, buffer),
            got => Ok(got),
        }
    }
}

/// A stack under construction.
pub struct Stacks {
    snapshot: Snapshot,
    pub made: FakeMemory,
    pub start: u64,
    pub nil: u64,
    records: u64,
    objects: u64,
    bytes: Vec<u8>,
    /// The innermost frame: frame pointer, and stack pointer.
    pub fp: u64,
    pub sp: u64,
}

/// A chain as the recorder makes it: addresses of callers, the way of its end, whether it is guessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    pub shown: Vec<u64>,
    /// Method objects of interpreted frames.
    pub methods: Vec<u64>,
    pub end: ChainEnd,
    pub is_late: bool,
}

impl Stacks {
    pub fn new() -> Self {
        let snapshot = snapshot("busy");
        let mut stacks = Stacks {
            made: FakeMemory::new(),
            start: 0,
            nil: 0,
            records: 0,
            objects: OBJECTS,
            bytes: vec![0; (PAGE * PAGES) as usize],
            fp: 0,
            sp: 0,
            snapshot,
        };
        stacks.start = stacks.value("stackBasePlus1") - 1;
        stacks.nil = stacks.value("nilObj");
        stacks.records = stacks.value("pages");
        for page in 0..PAGES {
            let mut record = vec![0; 80];
            record[32..40].copy_from_slice(&stacks.base(page).to_le_bytes());
            stacks.made.put(Avma(stacks.records + 80 * page), record);
        }
        stacks
    }

    fn symbol(&self, name: &str) -> Avma {
        let mut symbols = self.snapshot.symbols.iter();
        symbols.find(|one| one.name == name).unwrap().address
    }

    /// The snapshot's value of a variable.
    pub fn value(&self, name: &str) -> u64 {
        self.snapshot.memory.read_u64(self.symbol(name)).unwrap()
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &str, value: u64) {
        let at = self.symbol(name);
        self.made.put(at, value.to_le_bytes().to_vec());
    }

    pub fn base(&self, page: u64) -> u64 {
        self.start + (page + 1) * PAGE - 8
    }

    pub fn put(&mut self, at: u64, word: u64) {
        let from = (at - self.start) as usize;
        self.bytes[from..from + 8].copy_from_slice(&word.to_le_bytes());
    }

    pub fn push(&mut self, word: u64) {
        self.sp -= 8;
        self.put(self.sp, word);
    }

    /// Begins a page, called from `context`, with a frame of `method`.
    pub fn begin(&mut self, page: u64, context: u64, method: u64) {
        self.fp = 0;
        self.sp = self.base(page) + 8;
        self.push(context);
        self.push(self.nil);
        let base_return = self.value("ceBaseFrameReturnTrampoline");
        self.call(base_return, method);
    }

    /// A call that returns to `pc`, and the frame of the called method, with two temporaries.
    pub fn call(&mut self, pc: u64, method: u64) {
        self.push(pc);
        self.push(self.fp);
        self.fp = self.sp;
        for word in [method, self.nil, self.nil, 0x11, 0x19] {
            self.push(word);
        }
    }

    /// The frame of an interpreted method at `bytecode`.
    pub fn interpret(&mut self, pc: u64, method: u64, bytecode: u64) {
        self.call(pc, method);
        self.put(self.fp - 32, bytecode);
        self.push(0);
    }

    /// A context for the innermost frame, which waits for a call that returns to `pc`; the page's head.
    pub fn marry(&mut self, page: u64, pc: u64) -> u64 {
        self.push(pc);
        let context = self.context([self.fp + 1, 0x11, 0x11, self.nil]);
        self.put(self.fp - 16, context);
        self.head(page, self.sp, self.fp);
        context
    }

    pub fn head(&mut self, page: u64, sp: u64, fp: u64) {
        for (at, word) in [(8, sp), (16, fp)] {
            let at = Avma(self.records + 80 * page + at);
            self.made.write(at, &word.to_le_bytes());
        }
    }

    /// A context with these first slots: sender, program counter, stack pointer, method.
    pub fn context(&mut self, slots: [u64; 4]) -> u64 {
        let at = self.objects;
        let header = 36 | 3 << 24 | 22 << 56;
        let words = [&[header][..], &slots, &[self.nil; 18]].concat();
        let bytes = words.iter().flat_map(|word: &u64| word.to_le_bytes());
        self.made.put(Avma(at), bytes.collect());
        self.objects += 0x200;
        at
    }

    pub fn process(&self) -> ProcessView {
        let mut made = self.made.clone();
        made.put(Avma(self.start), self.bytes.clone());
        let below = Arc::clone(&self.snapshot.memory);
        self.snapshot
            .process_with(Arc::new(Overlay { made, below }))
    }

    /// The adapter's unwinder.
    pub fn unwinder(&self) -> Box<dyn Unwinder> {
        let process = self.process();
        let mut adapter = CogAdapter::new(Vm::open(&process).unwrap().unwrap());
        assert!(
            adapter.unwinder(&process).is_none(),
            "the zone is unknown yet"
        );
        let mut poll = Poll::new(KeySource::new(), ProcessKey(1), Arc::new(|| TimeNs(7)));
        adapter.poll(&process, &mut poll).unwrap();
        adapter.unwinder(&process).unwrap()
    }

    /// Stack bytes, as a sample copies them.
    pub fn copy(&self, sp: u64, length: usize) -> StackBytes {
        let from = (sp - self.start) as usize;
        let to = (from + length).min(self.bytes.len());
        StackBytes {
            sp: Avma(sp),
            bytes: self.bytes[from..to].to_vec(),
        }
    }

    /// The chain of a sample at `pc` with a copy of `length` bytes.
    pub fn chain(&self, pc: u64, length: usize) -> Chain {
        let registers = FrameRegisters {
            pc,
            sp: self.sp,
            fp: self.fp,
        };
        let stack = self.copy(self.sp, length);
        chain(&mut *self.unwinder(), registers, &stack, TimeNs(1))
    }
}

/// The chain of a sample, by the recorder's rules.
pub fn chain(
    unwinder: &mut dyn Unwinder,
    registers: FrameRegisters,
    stack: &StackBytes,
    time: TimeNs,
) -> Chain {
    let sampled = Registers {
        arch: Arch::X86_64,
        mask: 1 << 6 | 1 << 7 | 1 << 8,
        values: vec![registers.fp, registers.sp, registers.pc],
    };
    let mut all = Chain {
        shown: Vec::new(),
        methods: Vec::new(),
        end: ChainEnd::Whole,
        is_late: false,
    };
    let stack = CopiedStack::of(stack);
    let mut frame = Frame {
        registers,
        sampled: Some(&sampled),
        stack: &stack,
        time,
    };
    loop {
        if !unwinder.covers(Avma(frame.registers.pc)) {
            all.end = ChainEnd::Behind;
            return all;
        }
        let unwound = match unwinder.caller(&frame) {
            Ok(Some(unwound)) => unwound,
            Ok(None) => return all,
            Err(end) => {
                all.end = end;
                return all;
            }
        };
        if let (Some(shown), Some(last)) = (unwound.shown, all.shown.last_mut()) {
            *last = shown.0;
            all.methods.extend(unwound.method.map(|method| method.0));
        }
        all.is_late |= unwound.is_late;
        for other in unwound.between.iter() {
            all.shown.push(other.shown.0);
            all.methods.extend(other.method.map(|method| method.0));
        }
        if let Some(end) = unwound.end {
            all.end = end;
            return all;
        }
        let (caller, now) = (unwound.caller, frame.registers);
        assert!(caller.sp > now.sp || caller.sp == now.sp && frame.sampled.is_some());
        assert!(all.shown.len() < 100_000);
        all.shown.push(caller.pc);
        frame = Frame {
            registers: caller,
            sampled: None,
            ..frame
        };
    }
}
