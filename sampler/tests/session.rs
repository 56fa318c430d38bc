//! A whole session with a made-up engine and a made-up VM: what is sampled and what
//! the VM says come out of the recording as they went in, and every end is told.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests may fail by panicking"
)]

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vmscope_records::recording::{Item, Reader};
use vmscope_records::{
    Avma, BoundaryRule, BytecodePc, CodeChange, Constituent, ConstituentKey, ConstituentKind,
    Content, CounterMeaning, CpuMode, DurationNs, EndReason, Exactness, PcMap, Pid, Record,
    SampleClock, ThreadRole, Tid, TimeNs, VmIdentity,
};
use vmscope_sampler::session::{Readers, Session, SessionOptions, now};
use vmscope_sampler::{
    Engine, EngineDescription, EngineError, EngineEvent, EngineState, RawSample, RawThreadEnd,
};
use vmscope_target::{
    Adapter, AdapterError, AdapterFamily, CompilationNews, Look, ProcessView, SampleNeeds,
    ThreadNews,
};

/// One thread that is always at the same place; its samples come ten a round.
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
            return Ok(EngineState::TargetGone);
        }
        self.round += 1;
        std::thread::sleep(Duration::from_millis(10));
        for _ in 0..10 {
            out.push(EngineEvent::Sample(RawSample {
                time: now(),
                pid: self.pid,
                tid: Tid(self.pid.0),
                pc: Avma(0x1010),
                mode: CpuMode::User,
                detail: None,
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

/// A VM that every process runs: one method, whose map is read later.
struct Toy(Arc<AtomicU64>);

impl AdapterFamily for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn recognise(&self, _: &ProcessView) -> Result<Option<Box<dyn Adapter>>, AdapterError> {
        Ok(Some(Box::new(ToyAdapter {
            looks: Arc::clone(&self.0),
            method: None,
        })))
    }
}

struct ToyAdapter {
    looks: Arc<AtomicU64>,
    method: Option<ConstituentKey>,
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
            words: Vec::new(),
        }
    }

    fn look(&mut self, process: &ProcessView, look: &mut Look) -> Result<(), AdapterError> {
        let number = self.looks.fetch_add(1, Ordering::Relaxed);
        look.counter("Events", "looks", "", CounterMeaning::Total, number as f64);
        look.compilation(CompilationNews {
            tid: Tid(process.pid().0),
            id: 3,
            name: "Toy>>play".to_owned(),
            tier: "best".to_owned(),
            first_seen: TimeNs(1),
            last_seen: look.now(),
            ..CompilationNews::default()
        });
        if self.method.is_none() {
            let key = look.keys().constituent();
            self.method = Some(key);
            look.code(CodeChange::Seen(Constituent {
                key,
                process: look.process(),
                since: look.began(),
                absent_at: None,
                start: Avma(0x1000),
                end: Avma(0x1100),
                kind: ConstituentKind::Method,
                tier: String::new(),
                name: "Toy>>play".to_owned(),
                method: None,
                cases: Vec::new(),
                map: PcMap::None,
            }));
            look.thread(ThreadNews {
                tid: Tid(process.pid().0),
                name: Some("player".to_owned()),
                role: Some(ThreadRole::Mutator),
            });
        }
        Ok(())
    }

    fn has_late_maps(&self) -> bool {
        true
    }

    fn pc_map(
        &mut self,
        _: &ProcessView,
        constituent: ConstituentKey,
        _: &mut Look,
    ) -> Result<PcMap, AdapterError> {
        assert_eq!(Some(constituent), self.method);
        Ok(PcMap::Boundary {
            rule: BoundaryRule::AfterInstruction,
            exactness: Exactness::Exact,
            entries: vec![(0x08, BytecodePc(1)), (0x20, BytecodePc(5))],
        })
    }

    fn next_look(&self) -> Duration {
        Duration::from_millis(20)
    }
}

fn options(output: &Path) -> SessionOptions {
    SessionOptions {
        pid: Pid(std::process::id()),
        launched: false,
        command: vec!["toy".to_owned()],
        engine_reason: String::new(),
        output: output.to_owned(),
        keep_last: None,
        duration: None,
        environment: Vec::new(),
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
    let looks = Arc::new(AtomicU64::new(0));
    let view = ProcessView::open(Pid(std::process::id())).unwrap();
    let readers = Readers::of(view, vec![Box::new(Toy(Arc::clone(&looks)))]);
    assert_eq!(readers.sample_needs().registers, 0b101);
    assert_eq!(readers.sample_needs().stack_bytes, 64);

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
    let news = records.iter().find_map(|record| match record {
        Record::ThreadUpdate(update) => update.role,
        _ => None,
    });
    assert_eq!(news, Some(ThreadRole::Mutator));
    // Its thread is told of after the first look: that waits.
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
        looks.load(Ordering::Relaxed),
        "every look is told, the last too"
    );
    assert!(told >= 5, "{told} looks in 300 ms");
    assert!(matches!(records.last(), Some(Record::End(end)) if end.samples == 300));
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

#[test]
fn the_newest_is_kept_and_copies_are_saved_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("newest.vmscope");
    let copy = folder.path().join("newest.1.vmscope");
    let mut newest = options(&path);
    newest.keep_last = Some(DurationNs(700_000_000));
    let session = Session::start(Metronome::new(250), Readers::default(), newest).unwrap();
    while session.progress().samples() < 600 {
        std::thread::yield_now();
    }
    let saved = session.save_copy(&copy).unwrap();
    let outcome = finish(session);
    assert!(saved.written.samples >= 500, "{saved:?}");
    let copied = records(&copy);
    assert!(matches!(copied.last(), Some(Record::End(end)) if end.reason == EndReason::Saved));
    // 2,500 were taken in some 2.5 s; of them the last 0.7 s are kept, and whatever of
    // the half second before was in the same chunk.
    assert!(
        (500..=1500).contains(&outcome.written.samples),
        "{:?}",
        outcome.written
    );
    let kept = records(&path);
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
