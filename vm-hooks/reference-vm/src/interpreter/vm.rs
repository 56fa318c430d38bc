//! The VM's state, start and end.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::allocation::AllocationSites;
use super::dispatch;
use super::objects;
use super::primitives::Primitive;
use super::processes::{Heartbeat, Stacks};
use super::raw::{Fp, Ip, Sp};
use super::stack::{MAIN_STACK_BYTES, Stack};
use crate::compiler::bytecodes::SPECIAL_SELECTORS;
use crate::image::{Image, LoadError, NoMemory, permanent};
use crate::jit::{Jit, JitEvents, JitOptions};
use crate::memory::header::Format;
use crate::memory::{Heap, MemoryError, Oop, Parameters, classes};
use crate::publish::{LifetimeOptions, Publication};
use crate::syntax::{DoItSource, parse_expression};

/// How a VM runs.
pub struct Options {
    /// Parameters of the memory.
    pub memory: Parameters,
    /// Arguments passed to the program.
    pub arguments: Vec<String>,
    /// Destination of the program's output.
    pub output: Box<dyn Write>,
    /// Destination of error messages.
    pub errors: Box<dyn Write>,
    /// Whether the VM describes itself to profilers.
    pub publish: bool,
    /// Classes whose instances are allocated in old space.
    pub pretenured_classes: Vec<String>,
    /// Allocation sites whose objects are allocated in old space: method (`Foo>>bar`) and bytecode
    /// pc of the send.
    pub pretenured_sites: Vec<(String, u32)>,
    /// How the JIT works.
    pub jit: JitOptions,
    /// Which objects' lifetimes the VM observes, whether or not a profiler asks.
    pub lifetimes: LifetimeOptions,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut options = f.debug_struct("Options");
        options
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory: Parameters::default(),
            arguments: Vec::new(),
            output: Box::new(std::io::sink()),
            errors: Box::new(std::io::sink()),
            publish: false,
            pretenured_classes: Vec::new(),
            pretenured_sites: Vec::new(),
            jit: JitOptions::default(),
            lifetimes: LifetimeOptions::default(),
        }
    }
}

/// How an evaluation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With this value.
    Value(Oop),
    /// The program quit, with this exit code.
    Quit(i32),
}

/// Why a VM does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The heap can't be made.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// No memory for classes and methods.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// A stack or thread can't be made.
    #[error("the system has no memory for the stack")]
    Stack,
    /// The timer's thread can't be started.
    #[error("cannot start the timer's thread: {0}")]
    Timer(std::io::Error),
    /// The class library is wrong.
    #[error("the class library cannot be loaded: {0}")]
    Library(#[from] LoadError),
    /// The class library fails.
    #[error("the class library's own code failed")]
    LibraryFailed,
}

/// Objects that the VM refers to: all of them are permanent.
#[derive(Debug)]
pub(crate) struct Known {
    pub nil: Oop,
    pub yes: Oop,
    pub no: Oop,
    pub scheduler: Oop,
    pub does_not_understand: Oop,
    pub must_be_boolean: Oop,
    pub cannot_return: Oop,
    pub return_: Oop,
    pub signal: Oop,
    /// Selectors of bytecodes 96 to 127.
    pub special: [Oop; 32],
}

/// Interpreter events since the start, counted like Cog's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Process switches.
    pub process_switches: u64,
    /// Safe points that checked for pending work.
    pub interrupt_checks: u64,
    /// Interrupt checks requested by the timer.
    pub timer_checks: u64,
    /// Stack overflows.
    pub stack_overflows: u64,
    /// Method lookups that missed the cache.
    pub cache_misses: u64,
}

/// Result of a method lookup: a method with its class.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub selector: Oop,
    pub class: u32,
    pub method: Oop,
    pub primitive: Option<Primitive>,
}

/// Slot of a class object with its class index.
const CLASS_INDEX: usize = 2;
/// Number of entries in the lookup cache; a power of two.
pub(super) const CACHE: usize = 2048;

/// A virtual machine.
pub struct Vm {
    /// Frame of the running code.
    pub(super) fp: Fp,
    /// Start of the interpreter's loop: first bytecode and stack.
    pub(super) start: Next,
    /// Stack limit: `u64::MAX` if a safe point has pending work.
    pub(crate) limit: Arc<AtomicU64>,
    pub(crate) known: Known,
    pub(super) ext_a: usize,
    pub(super) ext_b: isize,
    /// The objects.
    pub heap: Heap,
    pub(super) cache: Box<[Found]>,
    /// Classes and methods.
    pub image: Image,
    pub(super) stacks: Stacks,
    /// Deadlines in nanoseconds of CLOCK_MONOTONIC, with semaphores to be signalled.
    pub(super) timers: Vec<(u64, Oop)>,
    /// Since when the mourn queue has not been seen empty, in nanoseconds of `CLOCK_MONOTONIC`; 0: it
    /// was empty at the last check.
    pub(crate) mourning_since: u64,
    /// Set when interpretation shall end.
    pub(super) outcome: Option<Outcome>,
    pub(super) events: Events,
    pub(super) output: Box<dyn Write>,
    pub(super) errors: Box<dyn Write>,
    pub(super) arguments: Vec<String>,
    pub(crate) allocation_sites: AllocationSites,
    pub(crate) publication: Publication,
    pub(super) started_ns: u64,
    /// When the program ends, in nanoseconds of CLOCK_MONOTONIC.
    pub(super) deadline_ns: Option<u64>,
    /// Do-its of the last file or expression.
    pub(crate) do_its: Vec<Oop>,
    pub(super) heartbeat: Heartbeat,
    pub(crate) jit: Jit,
}

impl std::fmt::Debug for Vm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut vm = f.debug_struct("Vm");
        vm.field("events", &self.events).finish_non_exhaustive()
    }
}

impl Vm {
    /// A VM with its class library.
    ///
    /// # Errors
    ///
    /// The system lacks memory or threads, or an option contains an unknown name.
    pub fn new(options: Options) -> Result<Self, StartError> {
        let limit = Arc::new(AtomicU64::new(0));
        let mut heap = Heap::new(&options.memory, Arc::clone(&limit))?;
        let mut image = Image::default();
        image.pretenured = options.pretenured_classes;
        let nil = permanent(&mut heap, classes::UNDEFINED_OBJECT, Format::EMPTY, 0)?;
        heap.set_nil(nil);
        let yes = permanent(&mut heap, classes::TRUE, Format::EMPTY, 0)?;
        let no = permanent(&mut heap, classes::FALSE, Format::EMPTY, 0)?;
        for (name, value) in [("true", yes), ("false", no)] {
            let association = image.global(&mut heap, name)?;
            heap.store(association, 1, value);
        }
        let known = Known::new(&mut heap, &mut image, [nil, yes, no])?;
        let main = Stack::new(MAIN_STACK_BYTES).ok_or(StartError::Stack)?;
        let mut vm = Self {
            fp: Fp::NONE,
            start: Next::END,
            limit: Arc::clone(&limit),
            known,
            ext_a: 0,
            ext_b: 0,
            heap,
            cache: vec![Found::NONE; CACHE].into_boxed_slice(),
            image,
            stacks: Stacks::new(main),
            timers: Vec::new(),
            mourning_since: 0,
            outcome: None,
            events: Events::default(),
            output: options.output,
            errors: options.errors,
            arguments: options.arguments,
            allocation_sites: AllocationSites::new(options.pretenured_sites),
            publication: Publication::new(options.publish, options.lifetimes),
            started_ns: now_ns(),
            deadline_ns: None,
            do_its: Vec::new(),
            heartbeat: Heartbeat::start(limit).map_err(StartError::Timer)?,
            jit: Jit::new(&options.jit),
        };
        vm.connect_jit();
        vm.publish_start();
        vm.start_lifetimes();
        vm.make_scheduler()?;
        for (file, text) in crate::LIBRARY {
            match vm.load(file, text)? {
                Outcome::Value(_) => {}
                Outcome::Quit(_) => return Err(StartError::LibraryFailed),
            }
        }
        vm.start_finalization_profiler()?;
        Ok(vm)
    }

    /// Reason for the missing self-description, if one was requested.
    #[must_use]
    pub fn publication_trouble(&self) -> Option<&str> {
        self.publication.trouble.as_deref()
    }

    /// Why methods are interpreted only, if machine code was requested.
    #[must_use]
    pub fn jit_trouble(&self) -> Option<&str> {
        self.jit.trouble.as_deref()
    }

    /// The memory of the self-description. Profilers in this process attach to it.
    #[must_use]
    pub fn publication_file(&self) -> Option<&std::fs::File> {
        self.publication.file()
    }

    /// Class names requested for pretenuring, but never defined.
    #[must_use]
    pub fn unknown_pretenured_classes(&self) -> Vec<String> {
        let names = self.image.pretenured.iter();
        names
            .filter(|name| self.image.class_named(name).is_none())
            .cloned()
            .collect()
    }

    /// Evaluates statements, and prints the value of the last.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn evaluate_and_print(&mut self, source: &DoItSource) -> Result<Outcome, LoadError> {
        self.do_its.clear();
        let outcome = self.evaluate(source)?;
        let do_its = self.do_its.clone();
        if let Outcome::Value(value) = outcome {
            let association = self.image.global(&mut self.heap, "LastValue")?;
            self.heap.store(association, 1, value);
            let text = "Transcript showln: LastValue printString";
            let outcome = self.evaluate(&parse_expression("expression", text)?)?;
            self.do_its = do_its;
            return Ok(outcome);
        }
        Ok(outcome)
    }

    /// Ends the program after this time, at a safe point, with exit code 0.
    pub fn end_after(&mut self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.deadline_ns = Some(now_ns().saturating_add(time));
    }

    /// Repeats the last file's or expression's do-its until the program quits or its time ends.
    pub fn repeat(&mut self) -> Outcome {
        let do_its = self.do_its.clone();
        loop {
            for do_it in &do_its {
                if let Outcome::Quit(code) = self.run(*do_it) {
                    return Outcome::Quit(code);
                }
            }
            if self.is_over(now_ns()) || do_its.is_empty() {
                return Outcome::Value(self.known.nil);
            }
        }
    }

    /// Whether the program's time is over.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.deadline_ns.is_some_and(|deadline| now >= deadline)
    }

    /// Writes a text to the program's output.
    pub fn print(&mut self, text: &str) {
        let _ = self.output.write_all(text.as_bytes());
        let _ = self.output.flush();
    }

    /// Runs a method without arguments in the main process, with nil as receiver.
    pub(crate) fn run(&mut self, method: Oop) -> Outcome {
        self.outcome = None;
        self.enter(method);
        dispatch::run(self);
        let _ = self.output.flush();
        self.publish_end();
        self.outcome.unwrap_or(Outcome::Value(self.known.nil))
    }

    /// Builds the outermost frame. Separate from `run`: inlined, it would leave bytecode addresses
    /// in `run`'s frame, visible to profilers.
    #[inline(never)]
    fn enter(&mut self, method: Oop) {
        self.enter_main();
        // A profiler's first request may be as old as the VM, and the program waits for the answer.
        if self.publication.has_requests() {
            self.answer_profilers();
        }
        let sp = self.stacks.active().sp.push(self.known.nil);
        self.fp = Fp::NONE;
        self.start = self.activate(method, 0, sp, self.known.nil);
    }

    /// The frame that runs.
    pub(crate) fn running_frame(&self) -> Fp {
        self.fp
    }

    /// Sets the running frame; machine code keeps the frame pointer in a register.
    pub(crate) fn set_running_frame(&mut self, fp: Fp) {
        self.fp = fp;
    }

    /// Start time of the VM, in nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// The stacks of all processes.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = &Stack> {
        self.stacks.iter()
    }

    /// Counters of the JIT.
    #[must_use]
    pub fn jit_events(&self) -> JitEvents {
        self.jit.events
    }

    /// Ends the interpretation.
    pub(crate) fn stop(&mut self, outcome: Outcome) -> Next {
        self.outcome = Some(outcome);
        Next::END
    }

    /// Counters of the interpreter.
    #[must_use]
    pub fn events(&self) -> Events {
        let timer_checks = self.heartbeat.beats();
        Events {
            timer_checks,
            ..self.events
        }
    }

    /// Thread id of the timer; 0 until it runs.
    pub(crate) fn heartbeat_tid(&self) -> u32 {
        self.heartbeat.tid()
    }

    /// A VM parameter by Cog's number.
    pub(super) fn vm_parameter(&self, number: i64) -> Option<u64> {
        let heap = self.heap.statistics();
        let sizes = self.heap.sizes();
        let parameters = self.heap.parameters();
        let events = self.events();
        Some(match number {
            1 => heap.old_total,
            2 => heap.eden_used,
            3 => heap.old_total + sizes.eden_capacity as u64,
            6 => parameters.tenuring_threshold as u64,
            7 => heap.full_gcs,
            8 => heap.full_gc_ns / 1_000_000,
            9 => heap.scavenges,
            10 => heap.scavenge_ns / 1_000_000,
            11 => heap.tenures,
            18 => heap.compaction_ns / 1_000_000,
            21 => heap.remembered,
            22 => heap.remembered_overflows,
            24 => parameters.shrink_threshold as u64,
            25 => parameters.growth_headroom as u64,
            31 => heap.grows,
            32 => heap.shrinks,
            34 => heap.allocated_bytes,
            35 => heap.survivors_bytes,
            40 => 8,
            46 => self.jit.zone_bytes(),
            44 => sizes.eden_capacity as u64,
            53 => heap.segments,
            54 => heap.old_free,
            56 => events.process_switches,
            58 => events.interrupt_checks,
            59 => events.timer_checks,
            60 => events.stack_overflows,
            62 => self.jit.events.compactions,
            63 => self.jit.events.compaction_ns / 1_000_000,
            72 => heap.mark_ns / 1_000_000,
            _ => return None,
        })
    }

    /// Value of a Boolean oop; `None` for other oops.
    #[inline(always)]
    pub(super) fn boolean(&self, value: bool) -> Oop {
        if value { self.known.yes } else { self.known.no }
    }

    /// Class index that a class object stands for; 0 if it is none.
    pub(crate) fn class_index_of(&self, class: Oop) -> u32 {
        if !self.is_class(class) {
            return 0;
        }
        let number = objects::slot(class, CLASS_INDEX).as_integer();
        number
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(0)
    }

    /// Whether an oop is a class or metaclass.
    pub(super) fn is_class(&self, oop: Oop) -> bool {
        let index = objects::class_index(oop);
        oop.is_pointer()
            && (index == classes::METACLASS
                || self.image.class(index).is_some_and(|class| class.meta))
    }

    /// A new String.
    pub(super) fn string(&mut self, text: &[u8]) -> Option<Oop> {
        self.bytes_object(classes::STRING, text)
    }

    /// A new object of bytes.
    pub(super) fn bytes_object(&mut self, class: u32, bytes: &[u8]) -> Option<Oop> {
        let format = Format::with_bytes(Format::BYTES, bytes.len());
        let oop = self.allocate(class, format, bytes.len().div_ceil(8))?;
        objects::bytes_mut(oop).copy_from_slice(bytes);
        Some(oop)
    }

    /// A Float, as immediate value if possible.
    #[inline(always)]
    pub(super) fn float(&mut self, value: f64) -> Option<Oop> {
        match Oop::from_float(value) {
            Some(small) => Some(small),
            None => self.bytes_object(classes::BOXED_FLOAT, &value.to_le_bytes()),
        }
    }

    /// A new Array.
    pub(super) fn array(&mut self, elements: &[Oop]) -> Option<Oop> {
        let array = self.allocate(classes::ARRAY, Format::INDEXED, elements.len())?;
        for (at, element) in elements.iter().enumerate() {
            self.heap.store(array, at, *element);
        }
        Some(array)
    }

    /// Ends the VM: the heap reached its limit during a bytecode.
    #[cold]
    pub(crate) fn out_of_memory(&mut self) -> Next {
        let _ = writeln!(self.errors, "out of memory: the heap has reached its limit");
        self.stop(Outcome::Quit(1))
    }

    /// Makes the next safe point look for something to do.
    pub(crate) fn ask_for_attention(&self) {
        self.limit.store(u64::MAX, Ordering::Relaxed);
    }
}

impl Drop for Vm {
    /// The VM's end: publishes what waits.
    fn drop(&mut self) {
        self.publish_lifetimes();
    }
}

/// Next bytecode and stack of the interpreter.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Next {
    pub(crate) ip: Ip,
    pub(crate) sp: Sp,
}

impl Next {
    /// The end of the interpretation.
    pub(crate) const END: Self = Self {
        ip: Ip(std::ptr::null()),
        sp: Sp::NONE,
    };
}

impl Found {
    pub const NONE: Self = Self {
        selector: Oop::NONE,
        class: 0,
        method: Oop::NONE,
        primitive: None,
    };
}

impl Known {
    fn new(heap: &mut Heap, image: &mut Image, [nil, yes, no]: [Oop; 3]) -> Result<Self, NoMemory> {
        let mut symbol = |text: &str| image.symbol(heap, text.as_bytes());
        let mut special = [nil; 32];
        for (place, (text, _)) in special.iter_mut().zip(SPECIAL_SELECTORS) {
            *place = symbol(text)?;
        }
        Ok(Self {
            nil,
            yes,
            no,
            scheduler: nil,
            does_not_understand: symbol("doesNotUnderstand:")?,
            must_be_boolean: symbol("mustBeBoolean")?,
            cannot_return: symbol("cannotReturn:")?,
            return_: symbol("return:")?,
            signal: symbol("signal")?,
            special,
        })
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub(crate) fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of CPU time of this thread.
pub(crate) fn cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[allow(unsafe_code, reason = "reads a clock")]
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid, writable memory.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}
