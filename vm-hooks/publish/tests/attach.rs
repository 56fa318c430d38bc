//! A VM of several threads that publishes as fast as it can, and profilers that attach early, late
//! and again: each knows exactly what exists.
#![cfg(not(loom))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails is to panic"
)]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use vmscope_publish::event::{Constituent, Gone, Moved};
use vmscope_publish::reader::{Attached, Next};
use vmscope_publish::zone::{Change, Zone};
use vmscope_publish::{Callbacks, Describer, Options, Publisher};

const THREADS: u64 = 3;
/// Constituents that a thread makes.
const EACH: u64 = 40_000;
/// Constituents of a thread that live at a time.
const LIVE: u64 = 300;

/// The VM: a publisher, and one table per thread, as in many VMs.
struct Vm {
    publisher: Publisher,
    tables: [Mutex<BTreeMap<u64, u64>>; THREADS as usize],
    made: AtomicU64,
}

fn constituent(id: u64, start: u64) -> Constituent<'static> {
    Constituent {
        id,
        start,
        end: start + 64,
        name: "Object>>yourself".into(),
        ..Constituent::default()
    }
}

impl Vm {
    fn new(stream_bytes: usize) -> Self {
        let publisher = Publisher::new(&Options {
            stream_bytes,
            snapshot_patience: Duration::from_secs(60),
            ..Options::default()
        });
        Self {
            publisher: publisher.unwrap(),
            tables: Default::default(),
            made: AtomicU64::new(0),
        }
    }

    /// Makes, moves and frees constituents. Each change enters the table first; the table is unlocked
    /// during publication.
    fn run(&self, thread: u64) {
        let table = &self.tables[thread as usize];
        for number in 0..EACH {
            let id = 1 + number * THREADS + thread;
            let start = id << 8;
            table.lock().unwrap().insert(id, start);
            self.publisher.publish(&constituent(id, start));
            if number % 3 == 0 {
                let to = start + 128;
                table.lock().unwrap().insert(id, to);
                self.publisher.publish(&Moved { id, to });
            }
            if number >= LIVE {
                let id = id - LIVE * THREADS;
                table.lock().unwrap().remove(&id);
                self.publisher.publish(&Gone {
                    id,
                    ..Gone::default()
                });
            }
            self.made.fetch_add(1, Ordering::Relaxed);
            if number % 256 == 0 {
                std::thread::yield_now();
            }
        }
    }

    fn list(&self) -> BTreeMap<u64, u64> {
        let tables = self.tables.iter();
        tables
            .flat_map(|table| table.lock().unwrap().clone())
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

/// Follows the VM until it has ended, and asks for snapshots whenever it must.
fn follow(mut attached: Attached, over: &AtomicBool, losses: &AtomicU64) -> Zone {
    let mut zone = Zone::default();
    let mut wanted = attached.request_snapshot();
    loop {
        let was_over = over.load(Ordering::Acquire);
        match attached.read() {
            Next::Event { mut event, .. } => {
                let change = zone.apply(&mut event);
                assert!(
                    !matches!(change, Change::Complaint(_)),
                    "{change:?} of {event:?}"
                );
            }
            Next::Overrun { .. } | Next::Torn { .. } => {
                losses.fetch_add(1, Ordering::Relaxed);
                zone.lost();
                if attached.snapshots().0 >= wanted {
                    wanted = attached.request_snapshot();
                }
            }
            Next::Empty if was_over && zone.is_synced() => return zone,
            Next::Empty => std::thread::yield_now(),
            other => panic!("{other:?}"),
        }
    }
}

fn exact(stream_bytes: usize) -> u64 {
    let vm = Vm::new(stream_bytes);
    let (over, losses) = (AtomicBool::new(false), AtomicU64::new(0));
    let attach = || Attached::new(vm.publisher.file().try_clone().unwrap(), None).unwrap();
    let zones: Vec<Zone> = std::thread::scope(|scope| {
        let (over, losses, vm) = (&over, &losses, &vm);
        let early = attach();
        let mut readers = vec![scope.spawn(move || follow(early, over, losses))];
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || vm.run(thread)))
            .collect();
        // The safe points of another thread; profilers come one by one.
        let total = THREADS * EACH;
        let mut late = 1;
        while threads.iter().any(|thread| !thread.is_finished()) {
            vm.publisher.poll(&mut { vm });
            if late < 5 && vm.made.load(Ordering::Relaxed) > total / 5 * late {
                let attached = attach();
                readers.push(scope.spawn(move || follow(attached, over, losses)));
                late += 1;
            }
        }
        over.store(true, Ordering::Release);
        while readers.iter().any(|reader| !reader.is_finished()) {
            vm.publisher.poll(&mut { vm });
        }
        readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .collect()
    });
    let exists = vm.list();
    assert_eq!(exists.len() as u64, THREADS * LIVE);
    for zone in zones {
        let known: BTreeMap<u64, u64> = zone.iter().map(|(id, place)| (id, place.start)).collect();
        assert!(known == exists, "{} of {}", known.len(), exists.len());
    }
    losses.into_inner()
}

#[test]
fn every_profiler_knows_what_exists() {
    exact(8 << 20);
}

/// A ring so small that every profiler is overrun again and again.
#[test]
fn every_profiler_knows_what_exists_also_after_losses() {
    assert!(exact(1 << 13) > 0);
}
