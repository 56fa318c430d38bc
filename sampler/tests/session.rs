//! A whole session with a made-up engine and a made-up VM: what is sampled and what
//! the VM says come out of the recording as they went in, and every end is told.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may fail by panicking"
)]

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vmscope_process::{
    Adapter, AdapterError, AdapterFamily, Launch, Poll, ProcessView, SampleNeeds,
};
use vmscope_records::recording::{Item, Reader};
use vmscope_records::{
    Arch, Avma, BoundaryRule, BytecodePc, CodeChange, Compilation, Constituent, ConstituentKind,
    Content, CounterMeaning, CpuMode, DurationNs, EndReason, Exactness, InterpreterSource,
    InterpreterValue, PcMap, Pid, Record, Registers, SampleClock, SampleDetail, SamplePlace,
    StackBytes, ThreadKey, ThreadRole, Tid, TimeNs, VmIdentity, Word,
};
use vmscope_sampler::session::{Readers, Session, SessionOptions, now};
use vmscope_sampler::{
    Engine, EngineDescription, EngineError, EngineEvent, EngineState, RawSample, RawThreadEnd,
};

/// One thread with a constant pc; each round delivers ten samples.
struct Metronome {
    description: EngineDescription,
    pid: Pid,
    rounds: u64,
    round: u64,
}

impl Metronome {
    fn new(rounds: u64) -> Box<Self> {
        Box::new(Metronome {
            description: EngineDescription {
                name: "metronome",
                clock: SampleClock::Cpu,
                period: DurationNs(1_000_000),
                kernel_included: false,
                began: now(),
                limits: Vec::new(),
            },
            pid: Pid(std::process::id()),
            rounds,
            round: 0,
        })
    }
}

impl Engine for Metronome {
    fn description(&self) -> &EngineDescription {
        &self.description
    }

    fn drain(
        &mut self,
        _: Duration,
        out: &mut Vec<EngineEvent>,
    ) -> Result<EngineState, EngineError> {
        if self.round == self.rounds {
            return Ok(EngineState::TargetsGone);
        }
        self.round += 1;
        std::thread::sleep(Duration::from_millis(10));
        for number in 0..10 {
            let pc = if number == 0 { INTERPRETER } else { 0x1010 };
            out.push(EngineEvent::Sample(RawSample {
                time: now(),
                pid: self.pid,
                tid: Tid(self.pid.0),
                pc: Avma(pc),
                mode: CpuMode::User,
                detail: Some(Box::new(carried())),
            }));
        }
        Ok(EngineState::Running)
    }

    fn finish(&mut self, out: &mut Vec<EngineEvent>) -> Result<(), EngineError> {
        let (time, pid, tid) = (now(), self.pid, Tid(self.pid.0));
        out.push(EngineEvent::ThreadEnded(Box::new(RawThreadEnd {
            time,
            pid,
            tid,
            cpu: DurationNs(self.round * 10_000_000),
            cpu_measured: true,
            cpu_user: None,
            samples: self.round * 10,
            mean_period: DurationNs(1_000_000),
            alive: true,
        })));
        Ok(())
    }
}

/// What a sample carries: registers 0, 2 and 7, and 24 bytes of stack.
fn carried() -> SampleDetail {
    SampleDetail {
        registers: Some(Registers {
            arch: Arch::of_this_machine(),
            mask: 0b1000_0101,
            values: vec![0xb0c0, 0x7000, 0x7000],
        }),
        stack: Some(StackBytes {
            sp: Avma(0x7000),
            bytes: (0..24).collect(),
        }),
        ..SampleDetail::default()
    }
}

/// A VM that every process runs: an interpreter, and one method, whose map is told when
/// the method was hit.
#[derive(Default)]
struct Toy {
    polls: Arc<AtomicU64>,
    touched: Arc<Mutex<HashSet<Avma>>>,
    /// Time up to which samples were known when the method was first hit.
    known_until: Arc<AtomicU64>,
}

const INTERPRETER: u64 = 0x5000;

/// Register 0 holds the address of the bytecode, register 2 the address of the frame.
const SOURCES: [InterpreterSource; 2] = [
    InterpreterSource {
        place: SamplePlace::Register(0),
        holds: InterpreterValue::Bytecode,
    },
    InterpreterSource {
        place: SamplePlace::Stack { base: 2, offset: 8 },
        holds: InterpreterValue::Method,
    },
];

impl AdapterFamily for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn recognise(&self, _: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        Ok(Some(Box::new(ToyAdapter {
            polls: Arc::clone(&self.polls),
            touched: Arc::clone(&self.touched),
            known_until: Arc::clone(&self.known_until),
            method: None,
            is_mapped: false,
            is_open: false,
        })))
    }

    fn launch_needs(&self, launch: &Launch) -> SampleNeeds {
        SampleNeeds {
            registers: 0b101,
            stack_bytes: if launch.command.is_empty() { 0 } else { 32 },
            sources: SOURCES.to_vec(),
        }
    }
}

struct ToyAdapter {
    polls: Arc<AtomicU64>,
    touched: Arc<Mutex<HashSet<Avma>>>,
    known_until: Arc<AtomicU64>,
    method: Option<Constituent>,
    is_mapped: bool,
    is_open: bool,
}

impl Adapter for ToyAdapter {
    fn identity(&self) -> VmIdentity {
        VmIdentity {
            kind: "Toy".to_owned(),
            version: "7".to_owned(),
        }
    }

    fn sample_needs(&self) -> SampleNeeds {
        SampleNeeds {
            registers: 0b101,
            stack_bytes: 64,
            sources: SOURCES.to_vec(),
        }
    }

    fn open(&mut self, _: &ProcessView, poll: &mut Poll) {
        assert_eq!(self.polls.load(Ordering::Relaxed), 0);
        self.is_open = true;
        poll.fact("toy", "opened".to_owned());
    }

    fn poll(&mut self, process: &ProcessView, poll: &mut Poll) -> Result<(), AdapterError> {
        assert!(self.is_open);
        let number = self.polls.fetch_add(1, Ordering::Relaxed);
        poll.counter("Events", "looks", "", CounterMeaning::Total, number as f64);
        poll.compilation(Compilation {
            thread: ThreadKey::of_tid(Tid(process.pid().0)),
            id: 3,
            name: "Toy>>play".to_owned(),
            tier: "best".to_owned(),
            first_seen: TimeNs(1),
            last_seen: poll.now(),
            ..Compilation::default()
        });
        if self.method.is_none() {
            let key = poll.keys().constituent();
            let constituent = Constituent {
                key,
                process: poll.process(),
                since: poll.began(),
                absent_at: None,
                start: Avma(0x1000),
                end: Avma(0x1100),
                kind: ConstituentKind::Method,
                tier: String::new(),
                name: "Toy>>play".to_owned(),
                method: None,
                cases: Vec::new(),
                map: PcMap::None,
            };
            self.method = Some(constituent.clone());
            poll.code(CodeChange::Seen(constituent));
            let ranges = vec![(Avma(INTERPRETER), Avma(INTERPRETER + 0x100))];
            poll.interpreter("toy", ranges, SOURCES.to_vec());
            let tid = Tid(process.pid().0);
            poll.thread(tid, Some("player".to_owned()), Some(ThreadRole::Mutator));
        }
        self.touched.lock().unwrap().extend(poll.touched());
        let is_hit = poll.touched().contains(&Avma(0x1010));
        if is_hit && !std::mem::replace(&mut self.is_mapped, true) {
            let until = poll.touched_until().0;
            self.known_until.store(until, Ordering::Relaxed);
            let mut method = self.method.clone().unwrap();
            method.map = PcMap::Boundary {
                rule: BoundaryRule::AfterInstruction,
                exactness: Exactness::Exact,
                entries: vec![(0x08, BytecodePc(1)), (0x20, BytecodePc(5))],
            };
            poll.code(CodeChange::Seen(method));
        }
        Ok(())
    }

    fn next_poll(&self) -> Duration {
        Duration::from_millis(20)
    }
}

fn options(output: &Path) -> SessionOptions {
    SessionOptions {
        pids: vec![Pid(std::process::id())],
        command: vec!["toy".to_owned()],
        output: Some(output.to_owned()),
        ..SessionOptions::default()
    }
}

fn records(path: &Path) -> Vec<Record> {
    let mut reader = Reader::open(File::open(path).unwrap()).unwrap();
    let mut records = Vec::new();
    while let Some(chunk) = reader.next_chunk(Content::ALL).unwrap() {
        for item in chunk.items() {
            match item {
                Item::Record(record) => records.push(record),
                Item::Samples(samples) => records.extend(samples.into_iter().map(Record::Sample)),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(reader.ending().damage_count, 0);
    records
}

fn finish(session: Session) -> vmscope_sampler::session::Outcome {
    session.finish().unwrap()
}

fn count(records: &[Record], is_one: impl Fn(&Record) -> bool) -> usize {
    records.iter().filter(|record| is_one(record)).count()
}

#[test]
fn what_engine_and_adapter_say_is_in_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.vmscope");
    let toy = Toy::default();
    let (polls, touched) = (Arc::clone(&toy.polls), Arc::clone(&toy.touched));
    let known_until = Arc::clone(&toy.known_until);
    let view = ProcessView::open(Pid(std::process::id())).unwrap();
    let readers = Readers::of(vec![view], vec![Box::new(toy)]);
    assert_eq!(readers.sample_needs().registers, 0b101);
    assert_eq!(readers.sample_needs().stack_bytes, 64);
    let opened_before = now();

    let session = Session::start(Metronome::new(30), readers, options(&path)).unwrap();
    let outcome = finish(session);
    assert_eq!(outcome.reason, EndReason::TargetExited);
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert_eq!(outcome.written.samples, 300);

    let records = records(&path);
    assert_eq!(count(&records, |r| matches!(r, Record::Sample(_))), 300);
    let session = records.iter().rev().find_map(|record| match record {
        Record::Session(session) => Some(session),
        _ => None,
    });
    assert_eq!(
        session.unwrap().vm.kind,
        "Toy",
        "the newest session record knows the VM"
    );
    let opened: Vec<TimeNs> = records
        .iter()
        .filter_map(|record| match record {
            Record::Fact(fact) if fact.value == "opened" => Some(fact.time),
            _ => None,
        })
        .collect();
    assert!(matches!(opened[..], [time] if time <= opened_before));
    let maps: Vec<&PcMap> = records
        .iter()
        .filter_map(|record| match record {
            Record::Constituent(constituent) => Some(&constituent.map),
            _ => None,
        })
        .collect();
    assert_eq!(maps.len(), 2, "first without its map, then with it");
    assert_eq!(maps[0], &PcMap::None);
    assert!(maps[1].boundary_range(0x10).is_some());
    let word = u64::from_le_bytes([8, 9, 10, 11, 12, 13, 14, 15]);
    let touched = touched.lock().unwrap();
    for address in [0x1010, INTERPRETER, 0xb0c0, word] {
        assert!(
            touched.contains(&Avma(address)),
            "{address:#x}: {touched:?}"
        );
    }
    // A poll that gets a sample's address also learns that samples up to this time are known.
    let first = records.iter().find_map(|record| match record {
        Record::Sample(sample) if sample.pc == Avma(0x1010) => Some(sample.time),
        _ => None,
    });
    let known_until = TimeNs(known_until.load(Ordering::Relaxed));
    assert!(Some(known_until) >= first, "{known_until:?}, {first:?}");
    // Until the first poll's report, each sample may be in an interpreter, and keeps its registers.
    // After the first sample without registers, only interpreter samples have registers.
    let (mut kept, mut bare) = (0, 0);
    for record in &records {
        let Record::Sample(sample) = record else {
            continue;
        };
        let is_interpreter = sample.pc == Avma(INTERPRETER);
        if is_interpreter || bare > 0 {
            assert_eq!(sample.detail.is_some(), is_interpreter, "{sample:?}");
        }
        let Some(detail) = &sample.detail else {
            bare += 1;
            continue;
        };
        kept += 1;
        assert_eq!(detail.stack, None);
        let registers = detail.registers.as_ref().unwrap();
        assert_eq!(
            (registers.mask, &*registers.values),
            (0b101, &[0xb0c0, 0x7000][..])
        );
        let at = Avma(0x7008);
        assert_eq!(detail.words, [Word { at, value: word }]);
    }
    assert!(kept >= 30, "{kept} of 30 in the interpreter");
    assert!(bare > 0, "the interpreter was told of");
    let news = records.iter().find_map(|record| match record {
        Record::ThreadUpdate(update) => update.role,
        _ => None,
    });
    assert_eq!(news, Some(ThreadRole::Mutator));
    // Its thread is told of after the first poll: that waits.
    let thread = records.iter().find_map(|record| match record {
        Record::Thread(thread) => Some(thread.key),
        _ => None,
    });
    let compilation = records.iter().rev().find_map(|record| match record {
        Record::Compilation(compilation) => Some(compilation),
        _ => None,
    });
    let compilation = compilation.expect("a compilation");
    assert_eq!(Some(compilation.thread), thread);
    assert_eq!((compilation.id, &*compilation.name), (3, "Toy>>play"));
    let told = count(&records, |r| matches!(r, Record::Counter(_)));
    assert_eq!(
        told as u64,
        polls.load(Ordering::Relaxed),
        "every look is told, the last too"
    );
    assert!(told >= 2, "the first look, and the last");
    assert!(matches!(records.last(), Some(Record::End(end)) if end.samples == 300));
}

#[test]
fn what_a_command_may_turn_out_to_run_is_sampled_for() {
    let mut readers = Readers::later(vec![Box::new(Toy::default())]);
    assert_eq!(readers.sample_needs(), SampleNeeds::default());
    let command = vec!["toy".to_owned()];
    readers.launching(&Launch {
        command,
        ..Launch::default()
    });
    assert_eq!(readers.sample_needs().stack_bytes, 32);
    assert_eq!(readers.sample_needs().sources, SOURCES);
}

#[test]
fn a_session_ends_when_it_is_asked_and_when_its_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("asked.vmscope");
    let session = Session::start(Metronome::new(u64::MAX), Readers::default(), options(&path));
    let session = session.unwrap();
    while session.progress().samples() < 50 {
        std::thread::yield_now();
    }
    session.stop(EndReason::Interrupted);
    session.stop(EndReason::TargetExited);
    assert_eq!(
        finish(session).reason,
        EndReason::Interrupted,
        "the first reason counts"
    );

    let path = folder.path().join("timed.vmscope");
    let mut timed = options(&path);
    timed.duration = Some(Duration::from_millis(100));
    let session = Session::start(Metronome::new(u64::MAX), Readers::default(), timed).unwrap();
    assert_eq!(finish(session).reason, EndReason::DurationOver);
    let ended = records(&path).into_iter().find_map(|record| match record {
        Record::End(end) => Some(end.reason),
        _ => None,
    });
    assert_eq!(ended, Some(EndReason::DurationOver));
}

/// With thousands of threads, the first samples come long before the last event is open.
#[test]
fn what_is_mapped_is_mapped_since_the_engine_began() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("began.vmscope");
    let mut engine = Metronome::new(1);
    let began = engine.description.began.minus(DurationNs(1_000_000_000));
    engine.description.began = began;
    let session = Session::start(engine, Readers::default(), options(&path)).unwrap();
    assert_eq!(session.began(), began);
    finish(session);
    let mut times = Vec::new();
    for record in records(&path) {
        match record {
            Record::Mapping(mapping) => times.push(mapping.time),
            Record::Session(session) => times.push(session.time),
            _ => {}
        }
    }
    assert!(times.len() > 1, "a session and its mappings");
    assert!(times.iter().all(|time| *time == began), "{times:?}");
}

/// Nanoseconds from the first sample to the last.
fn span(records: &[Record]) -> u64 {
    let times = records.iter().filter_map(|record| match record {
        Record::Sample(sample) => Some(sample.time.0),
        _ => None,
    });
    times.clone().max().unwrap() - times.min().unwrap()
}

#[test]
fn the_newest_is_kept_and_copies_are_saved_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("newest.vmscope");
    let copy = folder.path().join("newest.1.vmscope");
    let mut newest = options(&path);
    newest.keep_last = Some(DurationNs(700_000_000));
    // The difference: the last samples' distance from the end.
    let least = 500_000_000;
    let session = Session::start(Metronome::new(250), Readers::default(), newest).unwrap();
    while session.progress().samples() < 600 {
        std::thread::yield_now();
    }
    let saved = session.save_copy(&copy).unwrap();
    let outcome = finish(session);
    let copied = records(&copy);
    assert!(span(&copied) >= least, "{saved:?}");
    assert!(matches!(copied.last(), Some(Record::End(end)) if end.reason == EndReason::Saved));
    // The engine took 2,500 samples in 2.5 s or more. The file keeps the last 0.7 s of them, and the
    // rest of the first chunk, whose size depends on the duration of a round.
    assert!(outcome.written.samples < 2500, "{:?}", outcome.written);
    let kept = records(&path);
    assert!(span(&kept) >= least, "{:?}", outcome.written);
    assert_eq!(
        count(&kept, |r| matches!(r, Record::Sample(_))) as u64,
        outcome.written.samples
    );
    assert_eq!(count(&kept, |r| matches!(r, Record::Thread(_))), 1);
}

#[test]
fn without_a_folder_nothing_is_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/a.vmscope");
    let error = Session::start(Metronome::new(1), Readers::default(), options(&path)).unwrap_err();
    assert!(error.to_string().contains("missing/a.vmscope"), "{error}");
}

/// A family that knows what the process runs, and can't read it.
struct Stranger;

impl AdapterFamily for Stranger {
    fn name(&self) -> &'static str {
        "stranger"
    }

    fn recognise(&self, _: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        Err(AdapterError::OtherVm {
            vm: "Eclipse OpenJ9 0.48".to_owned(),
            why: "its structures are not HotSpot's",
            remedy: "run the program on a HotSpot JVM",
        })
    }
}

#[test]
fn a_vm_that_can_not_be_read_is_a_limit_of_the_recording_with_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stranger.vmscope");
    let view = ProcessView::open(Pid(std::process::id())).unwrap();
    let readers = Readers::of(vec![view], vec![Box::new(Stranger)]);
    let session = Session::start(Metronome::new(5), readers, options(&path)).unwrap();
    finish(session);
    let records = records(&path);
    let limits = records.iter().filter_map(|record| match record {
        Record::Limit(limit) if limit.text.contains("OpenJ9") => Some(limit),
        _ => None,
    });
    let limits: Vec<_> = limits.collect();
    assert_eq!(limits.len(), 1, "{limits:?}");
    assert!(
        limits[0]
            .text
            .starts_with("stranger adapter: cannot read Eclipse OpenJ9")
    );
    assert_eq!(limits[0].remedy, "run the program on a HotSpot JVM");
}
