//! The VM's self-description, passed to `vmscope-publish`.

use std::borrow::Cow;
use std::time::Duration;

use vmscope_publish::event::{
    AddressRange, CollectionBegin, CollectionEnd, CollectionScope, Constituent, ConstituentKind,
    Counter, CounterMeaning, Fact, Frames, Interpreter, InterpreterSource, InterpreterValue,
    LineEntry, ListingEntry, Method as MethodEvent, PhaseBegin, PhaseEnd, Region, RegionRule,
    Regions, SamplePlace, SpaceUse, Text, Thread, ThreadRole,
};
use vmscope_publish::memory::thread_cpu;
use vmscope_publish::{Callbacks, Describer, LifetimeRate, Options, Publisher};

use crate::compiler::disassembler;
use crate::image::Method;
use crate::interpreter::{Vm, bytecode_handlers, code_range, now_ns, objects};
use crate::memory::{Begin, End, Kind, Observer, Sizes};

mod lifetimes;

pub(crate) use lifetimes::FINALIZATION_PROFILER;
pub use lifetimes::{LifetimeObserver, LifetimeOptions};

/// First id of the interpreter's handlers. Method ids begin at 1.
const FIRST_HANDLER: u64 = 1 << 40;
/// Longest startup wait for the profiler that launched this process.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Interval between publications of the figures, in nanoseconds.
const FIGURES_NS: u64 = 200_000_000;

/// The publisher with its state.
#[derive(Debug, Default)]
pub struct Publication {
    publisher: Option<Publisher>,
    /// Error that prevented a publisher.
    pub(crate) trouble: Option<String>,
    /// The VM's thread.
    thread: u32,
    collection: u64,
    /// CPU time of the VM's thread at its begin, in nanoseconds.
    cpu_at_begin: Option<u64>,
    next_phase: u32,
    next_figures: u64,
    lifetimes: lifetimes::LifetimesPublished,
}

/// This thread's id.
#[allow(unsafe_code, reason = "asks the kernel")]
pub(crate) fn thread_id() -> u32 {
    // SAFETY: `gettid` has no conditions.
    unsafe { libc::gettid() }.cast_unsigned()
}

impl Publication {
    /// Creates the publication state. `on` = false or an error leaves the publisher absent.
    pub fn new(on: bool, lifetimes: LifetimeOptions) -> Self {
        let mut publication = Self {
            thread: thread_id(),
            ..Self::default()
        };
        publication.lifetimes.options = lifetimes;
        if on {
            let options = Options {
                name: "vmscope reference VM",
                version: env!("CARGO_PKG_VERSION"),
                ..Options::default()
            };
            match Publisher::new(&options) {
                Ok(publisher) => {
                    // Registers the thread with the in-VM sampler. On failure, kernel samples
                    // remain.
                    let _ = publisher.register_thread(ThreadRole::Mutator, "interpreter");
                    publication.publisher = Some(publisher);
                }
                Err(error) => publication.trouble = Some(error.to_string()),
            }
        }
        publication
    }

    /// Id of the VM's thread.
    pub(crate) fn thread(&self) -> u32 {
        self.thread
    }

    /// Whether a profiler has sent a request.
    #[inline]
    pub fn has_requests(&self) -> bool {
        self.publisher.as_ref().is_some_and(Publisher::has_requests)
    }

    /// The publisher's memory.
    pub(crate) fn file(&self) -> Option<&std::fs::File> {
        self.publisher.as_ref().map(Publisher::file)
    }

    /// The publisher, if a profiler listens.
    pub(crate) fn listener(&self) -> Option<&Publisher> {
        self.publisher
            .as_ref()
            .filter(|publisher| publisher.listening())
    }

    /// Whether the figures need another publication.
    pub fn figures_are_due(&mut self, now: u64) -> bool {
        let is_due = self.listener().is_some() && now >= self.next_figures;
        if is_due {
            self.next_figures = now + FIGURES_NS;
        }
        is_due
    }
}

fn spaces(sizes: &Sizes) -> Vec<SpaceUse<'static>> {
    let space = |name: &'static str, used: usize, capacity: usize| SpaceUse {
        name: name.into(),
        used: Some(used as u64),
        capacity: Some(capacity as u64),
    };
    vec![
        space("eden", sizes.eden_used, sizes.eden_capacity),
        space("survivors", sizes.survivor_used, sizes.survivor_capacity),
        space("old", sizes.old_used, sizes.old_capacity),
    ]
}

impl Observer for Publication {
    fn collection_begin(&mut self, begin: &Begin<'_>) {
        self.collection = begin.number;
        self.next_phase = 0;
        self.cpu_at_begin = self.listener().and_then(|_| thread_cpu());
        let Some(publisher) = self.listener() else {
            return;
        };
        let (collector, kind) = match begin.kind {
            Kind::Scavenge => ("scavenger", "scavenge"),
            Kind::Full => ("mark-compact", "full"),
        };
        publisher.publish(&CollectionBegin {
            id: self.collection,
            scope: CollectionScope::Whole,
            collector: collector.into(),
            kind: kind.into(),
            cause: begin.cause.into(),
            spaces: spaces(&begin.sizes).into(),
        });
    }

    fn phase_begin(&mut self, name: &'static str) {
        if let Some(publisher) = self.listener() {
            publisher.publish(&PhaseBegin {
                collection: self.collection,
                phase: self.next_phase,
                name: name.into(),
                within: None,
                stop_the_world: true,
                tid: self.thread,
            });
        }
    }

    fn phase_end(&mut self) {
        let (collection, phase) = (self.collection, self.next_phase);
        self.next_phase += 1;
        if let Some(publisher) = self.listener() {
            publisher.publish(&PhaseEnd { collection, phase });
        }
    }

    fn collection_end(&mut self, end: &End) -> u64 {
        let publisher = self.listener();
        if let Some(publisher) = publisher {
            publisher.publish(&CollectionEnd {
                id: self.collection,
                spaces: spaces(&end.sizes).into(),
                survived_bytes: Some(end.survived_bytes as u64),
                tenured_bytes: Some(end.tenured_bytes as u64),
                survived_objects: Some(end.survived_objects),
                cpu_ns: thread_cpu().and_then(|now| now.checked_sub(self.cpu_at_begin?)),
            });
        }
        publisher.map_or(0, |_| now_ns())
    }
}

/// Destination of events: news for listening profilers, or a description.
pub(crate) enum To<'p> {
    News(&'p Publisher),
    Description(&'p Describer<'p>),
}

impl To<'_> {
    pub(crate) fn publish<B: vmscope_publish::event::Body>(&self, event: &B) {
        match self {
            To::News(publisher) => publisher.publish(event),
            To::Description(describer) => describer.publish(event),
        }
    }
}

impl Vm {
    /// Publishes the VM before its first method. A VM launched by a profiler waits for this
    /// profiler.
    pub(crate) fn publish_start(&self) {
        if let Some(publisher) = self.publication.listener() {
            self.publish_vm(&To::News(publisher));
            self.publish_zone(&To::News(publisher));
            publisher.await_profiler(LONGEST_WAIT);
        }
    }

    /// Publishes methods and blocks not yet published.
    pub(crate) fn publish_newest(&mut self) {
        let published = self.image.published;
        self.image.published = self.image.methods.len();
        let newest = &self.image.methods[published..];
        self.allocation_sites.find_pretenured(newest);
        if let Some(publisher) = self.publication.listener() {
            let to = To::News(publisher);
            for method in self.image.methods.iter().skip(published) {
                publish_method(method, &to);
            }
        }
    }

    /// Publishes due figures.
    pub(crate) fn publish_figures(&mut self, now: u64) {
        if self.publication.figures_are_due(now)
            && let Some(publisher) = self.publication.listener()
        {
            self.publish_counters(&To::News(publisher));
        }
        self.publish_due_counts(now);
    }

    /// Publishes the last figures.
    pub(crate) fn publish_end(&self) {
        if let Some(publisher) = self.publication.listener() {
            self.publish_counters(&To::News(publisher));
        }
    }

    /// Answers profilers' requests. The caller has saved the running process's state.
    #[cold]
    pub(crate) fn answer_profilers(&mut self) {
        if let Some(publisher) = self.publication.publisher.clone() {
            publisher.poll(&mut Answers(self));
        }
    }

    /// Threads, facts, figures and the interpreter's code.
    fn publish_vm(&self, to: &To<'_>) {
        let heartbeat = self.heartbeat_tid();
        for (tid, role, name) in [
            (self.publication.thread, ThreadRole::Mutator, "interpreter"),
            (heartbeat, ThreadRole::Heartbeat, "heartbeat"),
        ] {
            if tid != 0 {
                to.publish(&Thread {
                    tid,
                    role,
                    name: name.into(),
                });
            }
        }
        self.describe_parameters(to);
        let code_size = match self.jit.zone_bytes() {
            0 => "0 (interpreter only)".to_owned(),
            bytes => format!("{bytes}"),
        };
        to.publish(&Fact {
            name: "code size".into(),
            value: code_size.as_str().into(),
        });
        self.publish_counters(to);
        publish_interpreter(to);
        if self.jit.zone_bytes() > 0 {
            to.publish(&Frames {
                interpreted_return: self.jit.return_to_interpreter.0,
                next: SAVED_IP,
            });
        }
        let module = program_name();
        to.publish(&Regions {
            rules: region_rules(&module).into(),
        });
    }

    /// Publishes the memory's parameters after a change.
    pub(crate) fn publish_parameters(&self) {
        if let Some(publisher) = self.publication.listener() {
            self.describe_parameters(&To::News(publisher));
        }
    }

    fn describe_parameters(&self, to: &To<'_>) {
        let parameters = self.heap.parameters();
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        for (name, value) in [
            ("eden size", parameters.eden_bytes.to_string()),
            (
                "tenuring threshold",
                percent(parameters.tenuring_threshold as f64 / 100.0),
            ),
            ("growth headroom", parameters.growth_headroom.to_string()),
            ("shrink threshold", parameters.shrink_threshold.to_string()),
            ("full-GC ratio", percent(parameters.full_gc_ratio)),
        ] {
            to.publish(&Fact {
                name: name.into(),
                value: value.as_str().into(),
            });
        }
    }

    fn publish_counters(&self, to: &To<'_>) {
        let heap = self.heap.statistics();
        let events = self.events();
        let jit = self.jit_events();
        let mourning = match (heap.mourners, self.mourning_since) {
            (0, _) | (_, 0) => 0,
            (_, since) => now_ns().saturating_sub(since),
        };
        let gauge = CounterMeaning::Gauge;
        let total = CounterMeaning::Total;
        for (section, name, unit, meaning, value) in [
            ("Memory", "old", "bytes", gauge, heap.old_used),
            ("Memory", "free", "bytes", gauge, heap.old_free),
            ("Memory", "permanent", "bytes", gauge, heap.permanent_used),
            ("Memory", "allocated", "bytes", total, heap.allocated_bytes),
            ("Finalization", "waiting", "", gauge, heap.mourners),
            ("Finalization", "waiting for", "ns", gauge, mourning),
            ("Memory", "segments", "", gauge, heap.segments),
            ("Memory", "grown", "", total, heap.grows),
            ("Memory", "shrunk", "", total, heap.shrinks),
            ("GCs", "full", "", total, heap.full_gcs),
            ("GCs", "full time", "ns", total, heap.full_gc_ns),
            ("GCs", "mark time", "ns", total, heap.mark_ns),
            ("GCs", "compaction time", "ns", total, heap.compaction_ns),
            ("GCs", "scavenges", "", total, heap.scavenges),
            ("GCs", "scavenge time", "ns", total, heap.scavenge_ns),
            ("GCs", "tenures", "", total, heap.tenures),
            ("GCs", "tenured", "bytes", total, heap.tenured_bytes),
            (
                "GCs",
                "root table overflows",
                "",
                total,
                heap.remembered_overflows,
            ),
            ("Events", "Methods compiled", "", total, jit.compiled),
            (
                "Events",
                "Compiled Code Compactions",
                "",
                total,
                jit.compactions,
            ),
            (
                "Events",
                "Compiled Code Compaction time",
                "ns",
                total,
                jit.compaction_ns,
            ),
            (
                "Events",
                "Process switches",
                "",
                total,
                events.process_switches,
            ),
            (
                "Events",
                "Interrupt checks",
                "",
                total,
                events.interrupt_checks,
            ),
            ("Events", "Event checks", "", total, events.timer_checks),
            (
                "Events",
                "Stack overflows",
                "",
                total,
                events.stack_overflows,
            ),
            (
                "Events",
                "Method cache misses",
                "",
                total,
                events.cache_misses,
            ),
        ] {
            to.publish(&Counter {
                section: section.into(),
                name: name.into(),
                unit: unit.into(),
                meaning,
                value: value as f64,
            });
        }
    }
}

/// The VM's answers to profilers.
struct Answers<'v>(&'v mut Vm);

impl Callbacks for Answers<'_> {
    fn describe(&mut self, describer: &Describer<'_>) {
        let to = To::Description(describer);
        self.0.publish_vm(&to);
        for method in &self.0.image.methods {
            publish_method(method, &to);
        }
        self.0.publish_zone(&to);
        self.0.publish_tracked(&to);
    }

    fn lifetime_rate(&mut self, rate: LifetimeRate) {
        self.0.set_lifetime_rate(rate);
    }

    fn collect(&mut self) {
        self.0.collect_now(true, "profiler");
    }
}

/// Offset of the saved ip from the frame pointer, in bytes (DESIGN.md §4).
const SAVED_IP: i32 = -32;

/// Publishes a method or block. Bytecodes form a constituent; its offsets are bytecode pcs.
fn publish_method(method: &Method, to: &To<'_>) {
    let first = method.first_pc();
    let mut listing = Vec::new();
    let mut text = String::new();
    for line in disassembler::listing(&method.code, first) {
        text.push_str(&line.text);
        let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
        listing.push(ListingEntry {
            bytecode: line.pc,
            end,
        });
    }
    let lines = method.code.lines.iter().map(|(offset, line)| LineEntry {
        bytecode: first + u32::try_from(*offset).unwrap_or(0),
        line: *line,
    });
    let name = method.name.as_str();
    to.publish(&MethodEvent {
        id: method.id,
        class: method.class.as_str().into(),
        name: name.into(),
        file: method.file.as_str().into(),
        line: method.line,
        lines: lines.collect::<Vec<_>>().into(),
        bytecodes: Cow::Borrowed(&method.code.bytecodes),
        listing: listing.into(),
        listing_text: text.into_bytes().into(),
    });
    // Bytecode pc = offset from the first slot, plus one.
    let body = objects::body(method.oop) as u64;
    let end = body + u64::from(first) - 1 + method.code.bytecodes.len() as u64;
    to.publish(&Constituent {
        id: method.id,
        start: body - 1,
        end,
        kind: ConstituentKind::Bytecodes,
        name: method.title().as_str().into(),
        method: method.id,
        ..Constituent::default()
    });
}

/// Publishes interpreter handlers, and places where samples show the current bytecode.
fn publish_interpreter(to: &To<'_>) {
    let (start, end) = code_range();
    let mut handlers = bytecode_handlers();
    handlers.sort_by_key(|handler| handler.1);
    // The compiler merges equal functions.
    handlers.dedup_by_key(|handler| handler.1);
    for (at, (name, address)) in handlers.iter().enumerate() {
        let next = handlers.get(at + 1).map_or(end, |next| next.1);
        to.publish(&Constituent {
            id: FIRST_HANDLER + at as u64,
            start: *address as u64,
            end: next as u64,
            kind: ConstituentKind::Interpreter,
            name: Text::from(*name),
            ..Constituent::default()
        });
    }
    let ranges = vec![AddressRange {
        start: start as u64,
        end: end as u64,
    }];
    to.publish(&Interpreter {
        ranges: ranges.into(),
        sources: bytecode_sources().into(),
    });
}

/// Possible locations of the current bytecode's address: stack words saved by a handler (oldest
/// first) and callee-saved registers.
fn bytecode_sources() -> Vec<InterpreterSource> {
    let source = |place, register, offset| InterpreterSource {
        place,
        register,
        offset,
        holds: InterpreterValue::Bytecode,
    };
    let (stack, preserved): (u32, &[u32]) = if cfg!(target_arch = "x86_64") {
        // rsp; r14, rbx, r15, r12, r13, rbp.
        (7, &[22, 1, 23, 20, 21, 6])
    } else if cfg!(target_arch = "aarch64") {
        (31, &[19, 20, 21, 22, 23, 24])
    } else {
        return Vec::new();
    };
    let on_stack = (0..STACK_WORDS)
        .rev()
        .map(|word| source(SamplePlace::Stack, stack, word * 8));
    let in_registers = preserved
        .iter()
        .map(|register| source(SamplePlace::Register, *register, 0));
    on_stack.chain(in_registers).collect()
}

/// Number of words in a handler's frame that may hold saved registers.
const STACK_WORDS: i32 = 16;

/// Parts of the VM's own code: text contained in full function names.
const PARTS: [(&str, Region, &str); 10] = [
    (
        "vmscope_reference_vm::memory::scavenger",
        Region::Gc,
        "scavenger",
    ),
    ("vmscope_reference_vm::memory::marker", Region::Gc, "mark"),
    (
        "vmscope_reference_vm::memory::compactor",
        Region::Gc,
        "compact",
    ),
    (
        "vmscope_reference_vm::memory::collection",
        Region::Gc,
        "collection",
    ),
    ("vmscope_reference_vm::memory", Region::Vm, "memory"),
    (
        "vmscope_reference_vm::compiler",
        Region::Vm,
        "bytecode compiler",
    ),
    (
        "vmscope_reference_vm::syntax",
        Region::Vm,
        "bytecode compiler",
    ),
    (
        "vmscope_reference_vm::interpreter::primitives",
        Region::Vm,
        "primitives",
    ),
    (
        "vmscope_reference_vm::jit::compile",
        Region::Compiler,
        "JIT",
    ),
    ("vmscope_reference_vm", Region::Vm, "run time"),
];

/// Region rules for this program's functions. `module`: the program's file name.
fn region_rules(module: &str) -> Vec<RegionRule<'_>> {
    let rule = |(contains, region, part): (&'static str, Region, &'static str)| RegionRule {
        module: module.into(),
        contains: contains.into(),
        region,
        part: part.into(),
        ..RegionRule::default()
    };
    PARTS.into_iter().map(rule).collect()
}

/// This program's file name, without the folder.
fn program_name() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
