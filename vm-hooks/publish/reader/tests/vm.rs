//! A VM of several threads in this process, read by the adapter: attached early, late and again, the
//! records give exactly what the VM's own list has.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails is to panic"
)]

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use vmscope_process::{Adapter, AdapterFamily, KeySource, Poll, ProcessView};
use vmscope_publish::event as e;
use vmscope_publish::{Callbacks, Describer, Options, Publisher};
use vmscope_publish_reader::Family;
use vmscope_records::{
    Avma, ConstituentKey, Fate, Limit, Method, MethodKey, ObjectFate, PcMap, Pid, ProcessKey,
    Record, ThreadKey, ThreadRole, Tid, TimeNs,
};

/// One publisher at a time: the adapter finds the memory by its process.
static ONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What a profiler knows by the records.
#[derive(Default)]
struct Known {
    code: HashMap<ConstituentKey, (u64, u64, String)>,
    methods: HashMap<MethodKey, Method>,
    others: Vec<Record>,
    limits: Vec<Limit>,
}

impl Known {
    fn take(&mut self, records: Vec<Record>) {
        for record in records {
            match record {
                Record::Constituent(one) => {
                    let place = (one.start.0, one.end.0, one.name.clone());
                    // The first record has the address.
                    self.code.entry(one.key).or_insert(place);
                    self.others.push(Record::Constituent(one));
                }
                Record::ConstituentGone(gone) => {
                    assert!(gone.last_seen <= gone.time);
                    assert!(self.code.remove(&gone.key).is_some(), "{gone:?}");
                }
                Record::ConstituentMoved(moved) => {
                    let place = self.code.get_mut(&moved.key).unwrap();
                    (place.0, place.1) = (moved.to.0, moved.to.0 + place.1 - place.0);
                }
                Record::Method(method) => _ = self.methods.insert(method.key, *method),
                Record::Limit(limit) => self.limits.push(limit),
                other => self.others.push(other),
            }
        }
    }

    fn list(&self) -> BTreeMap<u64, (u64, String)> {
        let places = self.code.values().cloned();
        places
            .map(|(start, end, name)| (start, (end, name)))
            .collect()
    }
}

struct Session {
    adapter: Box<dyn Adapter>,
    view: ProcessView,
    keys: KeySource,
    known: Known,
}

impl Session {
    fn attach() -> Self {
        let view = ProcessView::open(Pid(std::process::id())).unwrap();
        Session {
            adapter: Family::default()
                .recognise(&view)
                .unwrap()
                .expect("a VM that publishes"),
            view,
            keys: KeySource::new(),
            known: Known::default(),
        }
    }

    fn begin(&self) -> Poll {
        let clock = Arc::new(|| TimeNs(vmscope_publish::memory::now()));
        Poll::new(self.keys.clone(), ProcessKey(1), clock)
    }

    /// Returns the time before which all events were read.
    fn poll(&mut self) -> TimeNs {
        let mut poll = self.begin();
        self.adapter.poll(&self.view, &mut poll).unwrap();
        let told = poll.told_until();
        self.known.take(poll.finish());
        told
    }

    fn catch_up(&mut self, vm: &Vm) {
        catch_up(std::slice::from_mut(self), vm);
    }

    fn finish(mut self) -> Known {
        let mut poll = self.begin();
        self.adapter.finish(&self.view, &mut poll).unwrap();
        self.known.take(poll.finish());
        self.known
    }
}

/// Polls until all `sessions` know all code, and no event of before the call is unread. A snapshot waits for the slowest
/// session: the VM publishes it in another thread.
fn catch_up(sessions: &mut [Session], vm: &Vm) {
    let time = TimeNs(vmscope_publish::memory::now());
    let mut behind: Vec<&mut Session> = sessions.iter_mut().collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&over);
        scope.spawn(|| vm.reach_safe_points(&over));
        while !behind.is_empty() {
            behind.retain_mut(|session| session.poll() <= time);
            std::thread::yield_now();
        }
    });
}

/// Longest wait of a snapshot for profilers.
const PATIENCE: Duration = Duration::from_secs(60);

const THREADS: u64 = 3;
const EACH: u64 = 15_000;
/// Constituents of a thread that live at a time.
const LIVE: u64 = 200;

struct Vm {
    publisher: Publisher,
    tables: [Mutex<BTreeMap<u64, u64>>; THREADS as usize],
    made: AtomicU64,
}

fn constituent(id: u64, start: u64) -> e::Constituent<'static> {
    e::Constituent {
        id,
        start,
        end: start + 64,
        kind: e::ConstituentKind::Method,
        name: format!("Toy>>method{id}").into(),
        ..e::Constituent::default()
    }
}

/// Ends a loop when dropped: by a failed test, too.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Vm {
    fn new(stream_bytes: usize, snapshot_patience: Duration) -> Self {
        let publisher = Publisher::new(&Options {
            name: "toy",
            version: "1",
            stream_bytes,
            snapshot_patience,
            ..Options::default()
        });
        Vm {
            publisher: publisher.unwrap(),
            tables: Default::default(),
            made: AtomicU64::new(0),
        }
    }

    /// Answers profilers until `over`.
    fn reach_safe_points(&self, over: &AtomicBool) {
        while !over.load(Ordering::Acquire) {
            self.publisher.poll(&mut { self });
            std::thread::yield_now();
        }
    }

    fn run(&self, thread: u64) {
        let table = &self.tables[usize::try_from(thread).unwrap()];
        for number in 0..EACH {
            let id = 1 + number * THREADS + thread;
            // Addresses are used again.
            let start = 0x1000 + 256 * ((number % (2 * LIVE)) * THREADS + thread);
            table.lock().unwrap().insert(id, start);
            self.publisher.publish(&constituent(id, start));
            if number % 3 == 0 {
                let to = start + 128;
                table.lock().unwrap().insert(id, to);
                self.publisher.publish(&e::Moved { id, to });
            }
            if number >= LIVE {
                let id = id - LIVE * THREADS;
                table.lock().unwrap().remove(&id);
                self.publisher.publish(&e::Gone {
                    id,
                    ..e::Gone::default()
                });
            }
            self.made.fetch_add(1, Ordering::Relaxed);
            if number % 256 == 0 {
                std::thread::yield_now();
            }
        }
    }

    fn list(&self) -> BTreeMap<u64, (u64, String)> {
        let all = self
            .tables
            .iter()
            .map(|table| table.lock().unwrap().clone());
        let all = all.flatten();
        all.map(|(id, start)| (start, (start + 64, format!("Toy>>method{id}"))))
            .collect()
    }
}

impl Callbacks for &Vm {
    fn describe(&mut self, describer: &Describer<'_>) {
        for table in &self.tables {
            // A copy: older than events that other threads publish before its description.
            let table = table.lock().unwrap().clone();
            for (id, start) in table {
                describer.publish(&constituent(id, start));
            }
        }
    }
}

/// Whether events were lost on the way.
fn everything_is_known(stream_bytes: usize, is_slow: bool) -> bool {
    let _alone = alone();
    // Snapshots wait in vain for a session that does not read.
    let patience = if is_slow { PATIENCE / 1_000 } else { PATIENCE };
    let vm = Vm::new(stream_bytes, patience);
    let over = AtomicBool::new(false);
    let mut early = Session::attach();
    let mut late = Vec::new();
    std::thread::scope(|scope| {
        let (vm, over) = (&vm, &over);
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || vm.run(thread)))
            .collect();
        let _over = Over(over);
        scope.spawn(move || vm.reach_safe_points(over));
        while threads.iter().any(|thread| !thread.is_finished()) {
            if !is_slow {
                early.poll();
            }
            let made = vm.made.load(Ordering::Relaxed);
            if late.len() < 3 && made > THREADS * EACH / 4 * (late.len() as u64 + 1) {
                late.push(Session::attach());
            }
            for session in &mut late {
                session.poll();
            }
        }
    });
    late.push(early);
    late.push(Session::attach());
    let list = vm.list();
    assert_eq!(list.len() as u64, THREADS * LIVE);
    let mut has_lost = false;
    catch_up(&mut late, &vm);
    for session in late {
        let known = session.finish();
        assert!(known.list() == list);
        has_lost |= known
            .others
            .iter()
            .any(|one| matches!(one, Record::Lost(_)));
    }
    has_lost
}

#[test]
fn every_constituent_is_known_early_late_and_again() {
    everything_is_known(8 << 20, false);
}

#[test]
fn after_lost_events_a_snapshot_mends_the_books() {
    // Less than what the threads publish between two reads of the stream.
    assert!(everything_is_known(64 << 10, true));
}

#[test]
fn what_a_vm_says_becomes_records() {
    let _alone = alone();
    let vm = Vm::new(1 << 20, PATIENCE);
    let mut session = Session::attach();
    session.catch_up(&vm);
    let p = &vm.publisher;
    let tid = std::process::id();
    p.publish(&e::Method {
        id: 7,
        class: "Integer".into(),
        name: "benchFib".into(),
        file: "Integer.st".into(),
        line: 3,
        lines: (&[e::LineEntry {
            bytecode: 1,
            line: 4,
        }][..])
            .into(),
        listing: (&[
            e::ListingEntry {
                bytecode: 1,
                end: 8,
            },
            e::ListingEntry {
                bytecode: 2,
                end: 13,
            },
        ][..])
            .into(),
        listing_text: b"<4C> self<D8> ".as_slice().into(),
        ..e::Method::default()
    });
    p.publish(&e::Constituent {
        method: 7,
        map: e::PcMap::Boundary {
            rule: e::BoundaryRule::AfterInstruction,
            exactness: e::Exactness::Exact,
            entries: (&[
                e::Boundary {
                    offset: 8,
                    bytecode: 1,
                },
                e::Boundary {
                    offset: 24,
                    bytecode: 5,
                },
            ][..])
                .into(),
        },
        ..constituent(1, 0x1000)
    });
    // Two nonsensical maps: unordered, and beyond the code.
    for (id, offsets) in [(2, [24, 8]), (3, [8, 900])] {
        let entries = offsets.map(|offset| e::Boundary {
            offset,
            bytecode: 1,
        });
        p.publish(&e::Constituent {
            map: e::PcMap::Boundary {
                rule: e::BoundaryRule::AtStart,
                exactness: e::Exactness::Exact,
                entries: entries.to_vec().into(),
            },
            ..constituent(id, 0x1000 * id)
        });
    }
    // Two more in one place.
    p.publish(&constituent(20, 0x2010));
    p.publish(&constituent(21, 0x2020));
    p.publish(&e::Thread {
        tid,
        role: e::ThreadRole::Mutator,
        name: "interpreter".into(),
    });
    p.publish_at(
        500,
        &e::CollectionBegin {
            id: 1,
            scope: e::CollectionScope::Whole,
            kind: "scavenge".into(),
            ..e::CollectionBegin::default()
        },
    );
    p.publish_at(
        600,
        &e::PhaseBegin {
            collection: 1,
            name: "roots".into(),
            stop_the_world: true,
            tid,
            ..e::PhaseBegin::default()
        },
    );
    p.publish_at(
        700,
        &e::PhaseEnd {
            collection: 1,
            phase: 0,
        },
    );
    p.publish_at(
        900,
        &e::CollectionEnd {
            id: 1,
            survived_bytes: Some(64),
            ..e::CollectionEnd::default()
        },
    );
    // A collection that never began.
    p.publish(&e::CollectionEnd {
        id: 2,
        ..e::CollectionEnd::default()
    });
    p.publish(&e::Class {
        id: 4,
        name: "Point".into(),
    });
    let birth = e::Birth {
        time: 450,
        object: 11,
        class: 4,
        bytes: 32,
        allocated_bytes: u64::MAX,
        weight: 1.0,
        ..e::Birth::default()
    };
    // The second birth has an unknown class.
    p.births(tid, &[birth, e::Birth { class: 5, ..birth }]);
    p.survivals(
        1,
        &[e::Survival {
            time: 900,
            object: 11,
            tenured: 1,
            holder: 4,
        }],
    );
    p.deaths(
        0,
        &[e::Death {
            time: 950,
            object: 11,
        }],
    );
    p.publish(&e::CompilationBegin {
        tid,
        number: 9,
        name: "Integer>>benchFib".into(),
        ..e::CompilationBegin::default()
    });
    p.publish(&e::CompilationEnd { tid });
    session.catch_up(&vm);
    let known = session.finish();

    let (method, info) = known.methods.iter().next().unwrap();
    assert_eq!(
        (&*info.class, &*info.name, info.line),
        ("Integer", "benchFib", 3)
    );
    let texts: Vec<&str> = info.listing.iter().map(|(_, text)| &**text).collect();
    assert_eq!(texts, ["<4C> sel", "f<D8>"]);
    let mut maps = Vec::new();
    let mut seen = Vec::new();
    for record in &known.others {
        match record {
            Record::Constituent(one) => maps.push((one.start, one.method, one.map.clone())),
            Record::Collection(one) => {
                let phase = &one.phases[0];
                assert_eq!((one.begin, one.end), (Some(TimeNs(500)), Some(TimeNs(900))));
                assert_eq!(
                    (phase.begin, phase.end),
                    (Some(TimeNs(600)), Some(TimeNs(700)))
                );
                assert_eq!(phase.thread, Some(ThreadKey::of_tid(Tid(tid))));
                assert_eq!(one.survived_bytes, Some(64));
                seen.push("collection");
            }
            Record::ThreadUpdate(one) => {
                assert_eq!(one.name.as_deref(), Some("interpreter"));
                assert_eq!(one.role, Some(ThreadRole::Mutator));
                seen.push("thread");
            }
            Record::Births(births) => {
                let all: Vec<_> = births.iter().map(|one| (one.time, one.bytes)).collect();
                assert_eq!(all, [(TimeNs(450), 32)]);
                seen.push("births");
            }
            Record::Fates(fates) => {
                let ObjectFate { fate, holder, .. } = fates.iter().next().unwrap();
                assert_eq!(fates.collection.is_some(), fate == Fate::Tenured);
                assert_eq!(holder.is_some(), fate == Fate::Tenured);
                seen.push(if fate == Fate::Died {
                    "died"
                } else {
                    "tenured"
                });
            }
            Record::Compilation(one) => {
                assert_eq!(one.name, "Integer>>benchFib");
                seen.push(if one.gone_at.is_some() {
                    "compiled"
                } else {
                    "compiling"
                });
            }
            Record::Class(class) => assert_eq!(class.name, "Point"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        seen,
        [
            "thread",
            "collection",
            "births",
            "tenured",
            "died",
            "compiling",
            "compiled"
        ]
    );
    assert_eq!(maps[0].0, Avma(0x1000));
    assert_eq!(maps[0].1, Some(*method));
    assert!(matches!(&maps[0].2, PcMap::Boundary { entries, .. } if entries.len() == 2));
    assert!(maps[1..].iter().all(|(.., map)| *map == PcMap::None));
    let limits: Vec<&str> = known.limits.iter().map(|limit| &*limit.text).collect();
    assert_eq!(
        limits,
        [
            "of the VM's events: 2 pieces of code overlap other code at the end",
            "of the VM's events: 2 pc maps are unordered, or leave their code",
            "of the VM's events: 1 events name unknown methods, classes, sites or code",
            "of the VM's events: 1 collections, phases or compilations end without a start",
        ]
    );
}

/// A VM that can't describe its contents.
struct Mute;

impl Callbacks for Mute {
    fn describe(&mut self, _: &Describer<'_>) {}

    fn can_describe(&self) -> bool {
        false
    }
}

#[test]
fn what_a_vm_without_descriptions_publishes_stays_known() {
    let _alone = alone();
    let vm = Vm::new(1 << 20, PATIENCE);
    let mut session = Session::attach();
    // The first poll starts the reading, the next ones have the event.
    while session.known.list().is_empty() {
        session.poll();
        vm.publisher.publish(&constituent(1, 0x1000));
        vm.publisher.poll(&mut Mute);
        std::thread::yield_now();
    }
    assert!(!session.adapter.tells_all_code());
    assert_eq!(session.finish().list().len(), 1);
}

#[test]
fn a_process_that_publishes_nothing_is_not_recognised() {
    let _alone = alone();
    let view = ProcessView::open(Pid(std::process::id())).unwrap();
    assert!(Family::default().recognise(&view).unwrap().is_none());
}
