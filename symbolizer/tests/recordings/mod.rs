//! Handmade recordings, which go through the real writer and reader.

#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may fail by panicking"
)]

pub mod inferred;
pub mod lifetimes;
pub mod live;
pub mod screens;
pub mod shapes;

use std::cell::RefCell;
use std::io::Cursor;
use std::rc::Rc;

use vmscope_records::recording::{Reader, Store, Writer};
use vmscope_records::{
    Arch, Avma, CallChain, Constituent, ConstituentGone, ConstituentKey, ConstituentKind,
    ConstituentMoved, CpuMode, DurationNs, EndReason, FileOffset, GoneReason, Mapping, Method,
    MethodKey, Module, ModuleKey, ModuleState, NativeFunction, PcMap, Pid, Process, ProcessKey,
    Record, RecordingEnd, Sample, SampleClock, SampleDetail, Session, SymbolOwner, SymbolSource,
    Symbols, Thread, ThreadKey, ThreadRole, Tid, TimeNs, Unmapping, VmIdentity,
};
use vmscope_symbolizer::profile::EntryKind;
use vmscope_symbolizer::{Filter, Id, Profile, ThreadId, Trace, TraceError, profile_of};

/// Process of most tests.
pub const PROCESS: ProcessKey = ProcessKey(1);
/// Its thread.
pub const THREAD: ThreadKey = ThreadKey(1);
/// Its program, mapped at [`PROGRAM_AT`].
pub const PROGRAM: ModuleKey = ModuleKey(1);
/// Address of [`PROGRAM`]: `0x1000` bytes from file offset 0.
pub const PROGRAM_AT: u64 = 0x40_0000;

/// A recording under construction.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    records: Vec<Record>,
}

impl Recording {
    /// Nothing, not even a session.
    pub fn empty() -> Self {
        Recording::default()
    }

    /// A process of VM `kind` with one thread and its program from time 0, and one expected sample
    /// per microsecond of CPU time.
    pub fn of(kind: &str) -> Self {
        let mut recording = Recording::empty();
        recording.put(Record::Session(Box::new(session(kind))));
        recording.process(PROCESS, 0, 100, None);
        recording.thread(THREAD, PROCESS, 0, "main", ThreadRole::Mutator);
        recording.module(PROGRAM, "/opt/vm/bin/vm", true);
        recording.map(
            PROCESS,
            0,
            PROGRAM_AT,
            PROGRAM_AT + 0x1000,
            0,
            Some(PROGRAM),
        );
        recording
    }

    pub fn put(&mut self, record: Record) -> &mut Self {
        self.records.push(record);
        self
    }

    pub fn process(
        &mut self,
        key: ProcessKey,
        time: u64,
        pid: u32,
        parent: Option<ProcessKey>,
    ) -> &mut Self {
        self.put(Record::Process(Process {
            key,
            time: TimeNs(time),
            pid: Pid(pid),
            parent,
            name: String::new(),
        }))
    }

    pub fn thread(
        &mut self,
        key: ThreadKey,
        process: ProcessKey,
        time: u64,
        name: &str,
        role: ThreadRole,
    ) -> &mut Self {
        self.put(Record::Thread(Thread {
            key,
            process,
            tid: Tid(100 + key.0),
            time: TimeNs(time),
            name: name.to_owned(),
            role,
            cpu_before: DurationNs(0),
        }))
    }

    pub fn module(&mut self, key: ModuleKey, path: &str, main: bool) -> &mut Self {
        self.put(Record::Module(Module {
            key,
            time: TimeNs(0),
            path: path.to_owned(),
            build_id: None,
            device: 0,
            inode: 0,
            size: 0,
            main,
            state: ModuleState::Opened,
        }))
    }

    pub fn map(
        &mut self,
        process: ProcessKey,
        time: u64,
        start: u64,
        end: u64,
        offset: u64,
        module: Option<ModuleKey>,
    ) -> &mut Self {
        self.put(Record::Mapping(Mapping {
            process,
            time: TimeNs(time),
            start: Avma(start),
            end: Avma(end),
            offset: FileOffset(offset),
            module,
            name: String::new(),
            executable: true,
        }))
    }

    pub fn unmap(&mut self, process: ProcessKey, time: u64, start: u64, end: u64) -> &mut Self {
        self.put(Record::Unmapping(Unmapping {
            process,
            time: TimeNs(time),
            start: Avma(start),
            end: Avma(end),
        }))
    }

    pub fn constituent(&mut self, constituent: Constituent) -> &mut Self {
        self.put(Record::Constituent(Box::new(constituent)))
    }

    pub fn gone(&mut self, key: u64, last_seen: u64, time: u64) -> &mut Self {
        self.put(Record::ConstituentGone(ConstituentGone {
            key: ConstituentKey(key),
            last_seen: TimeNs(last_seen),
            time: TimeNs(time),
            reason: GoneReason::Unknown,
        }))
    }

    pub fn moved(&mut self, key: u64, last_seen: u64, time: u64, to: u64) -> &mut Self {
        self.put(Record::ConstituentMoved(ConstituentMoved {
            key: ConstituentKey(key),
            last_seen: TimeNs(last_seen),
            time: TimeNs(time),
            to: Avma(to),
        }))
    }

    pub fn method(&mut self, key: u64, class: &str, name: &str) -> &mut Self {
        self.put(Record::Method(Box::new(Method {
            key: MethodKey(key),
            class: class.to_owned(),
            name: name.to_owned(),
            ..Method::default()
        })))
    }

    /// Symbols of a module: `(start, size, name)`.
    pub fn symbols(&mut self, module: ModuleKey, functions: &[(u64, u64, &str)]) -> &mut Self {
        self.put(Record::Symbols(Symbols {
            owner: SymbolOwner::Module(module),
            functions: functions
                .iter()
                .map(|&(start, size, name)| function(start, size, name))
                .collect(),
            note: String::new(),
        }))
    }

    pub fn sample(&mut self, time: u64, thread: ThreadKey, pc: u64) -> &mut Self {
        self.sample_in(time, thread, pc, CpuMode::User)
    }

    /// A sample with its callers' addresses, innermost first.
    pub fn stack(
        &mut self,
        time: u64,
        thread: ThreadKey,
        addresses: impl IntoIterator<Item = u64>,
    ) -> &mut Self {
        self.put(stack_sample(time, thread, addresses))
    }

    pub fn sample_in(&mut self, time: u64, thread: ThreadKey, pc: u64, mode: CpuMode) -> &mut Self {
        self.put(Record::Sample(Sample {
            time: TimeNs(time),
            thread,
            pc: Avma(pc),
            mode,
            detail: None,
        }))
    }

    pub fn end(&mut self, time: u64) -> &mut Self {
        self.put(Record::End(RecordingEnd {
            time: TimeNs(time),
            reason: EndReason::TargetExited,
            detail: String::new(),
            samples: 0,
            recorder_cpu_ns: 0,
        }))
    }

    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The file's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_and(std::iter::empty(), u64::MAX)
    }

    /// The file with streamed records appended, flushed every `flush` nanoseconds like a session.
    pub fn bytes_and(&self, more: impl Iterator<Item = Record>, flush: u64) -> Vec<u8> {
        let bytes = Rc::new(RefCell::new(Vec::new()));
        let mut writer = Writer::begin(Shared(Rc::clone(&bytes))).unwrap();
        for record in &self.records {
            writer.put(record.clone()).unwrap();
        }
        let mut next = flush;
        for record in more {
            if let Record::Sample(sample) = &record
                && sample.time.0 >= next
            {
                writer.flush().unwrap();
                next = next.saturating_add(flush);
            }
            writer.put(record).unwrap();
        }
        writer.flush().unwrap();
        drop(writer);
        Rc::into_inner(bytes).unwrap().into_inner()
    }

    pub fn read(&self) -> Result<Trace, TraceError> {
        read(&self.bytes())
    }

    pub fn profile(&self) -> Profile {
        profile_of(self.read().unwrap(), Vec::new(), true)
    }
}

pub fn read(bytes: &[u8]) -> Result<Trace, TraceError> {
    Trace::read(&mut Reader::open(Cursor::new(bytes))?)
}

/// Number of the sample's method `mNUMBER`; an error for doubtful samples.
pub fn who(profile: &Profile, sample: usize) -> Result<Option<u64>, ()> {
    let place = profile.trace.samples.places[sample];
    let site = profile.site_at(place);
    let entry = &profile.entries[site.entry];
    match entry.kind {
        EntryKind::Doubtful => Err(()),
        EntryKind::Code(_) => Ok(entry.name.strip_prefix('m').and_then(|k| k.parse().ok())),
        _ => Ok(None),
    }
}

/// Filters for [`screens::java`]: none, by time, by threads.
pub fn java_filters() -> [Filter; 3] {
    [
        Filter::default(),
        Filter {
            from: Some(TimeNs(screens::ms(2_500))),
            to: Some(TimeNs(screens::ms(11_700))),
            ..Filter::default()
        },
        Filter {
            threads: Some([0, 5, 6].map(ThreadId::of).into_iter().collect()),
            ..Filter::default()
        },
    ]
}

/// A store whose bytes survive an unfinished writer.
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Store for Shared {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }
}

pub fn session(kind: &str) -> Session {
    Session {
        time: TimeNs(0),
        // 2017-06-19 22:16:11 UTC, as in the paper's Figure 7.
        wall_clock_unix_ns: 1_497_910_571_000_000_000,
        producer: "vmscope test".into(),
        vm: VmIdentity {
            kind: kind.into(),
            version: String::new(),
        },
        command: vec!["/opt/vm/bin/vm".into()],
        pid: Pid(100),
        launched: true,
        host: "host".into(),
        kernel: "Linux 6.1".into(),
        arch: Arch::X86_64,
        cpus: 4,
        engine: "kernel".into(),
        engine_reason: String::new(),
        clock: SampleClock::Cpu,
        period: DurationNs(1000),
        kernel_included: true,
        scheduling: "SCHED_FIFO 1".into(),
    }
}

/// A method's code at `[start, end)` from an exact time on.
pub fn code(key: u64, since: u64, start: u64, end: u64) -> Constituent {
    Constituent {
        key: ConstituentKey(key),
        process: PROCESS,
        since: TimeNs(since),
        absent_at: None,
        start: Avma(start),
        end: Avma(end),
        kind: ConstituentKind::Method,
        tier: String::new(),
        name: format!("m{key}"),
        method: None,
        cases: Vec::new(),
        map: PcMap::None,
    }
}

/// A function with a sized symbol.
pub fn function(start: u64, size: u64, name: &str) -> NativeFunction {
    NativeFunction {
        start: FileOffset(start),
        size,
        linkage_name: name.to_owned(),
        name: name.to_owned(),
        source: SymbolSource::SymbolTable,
        sized: true,
        lines: Vec::new(),
    }
}

/// Entry names of all samples, in order.
pub fn names(profile: &Profile) -> Vec<&str> {
    let places = profile.trace.samples.places.iter();
    let names = places.map(|&place| profile.entry_at(place).name.as_str());
    names.collect()
}

/// A deterministic random sequence (splitmix64): every run tests the same numbers.
#[derive(Clone, Debug)]
pub struct Draw(pub u64);

impl Draw {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `below` − 1.
    pub fn below(&mut self, below: u64) -> u64 {
        self.next() % below.max(1)
    }

    /// A number from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A sample with its callers' addresses, innermost first; a single address has no chain.
pub fn stack_sample(
    time: u64,
    thread: ThreadKey,
    addresses: impl IntoIterator<Item = u64>,
) -> Record {
    let mut addresses = addresses.into_iter().map(Avma);
    let pc = addresses.next().unwrap();
    let chain = CallChain {
        user: addresses.collect(),
        ..CallChain::default()
    };
    Record::Sample(Sample {
        time: TimeNs(time),
        thread,
        pc,
        mode: CpuMode::User,
        detail: Some(Box::new(SampleDetail {
            chain: (!chain.user.is_empty()).then_some(chain),
            ..SampleDetail::default()
        })),
    })
}
