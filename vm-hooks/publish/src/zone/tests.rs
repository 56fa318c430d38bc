#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails is to panic"
)]

use std::collections::{BTreeMap, VecDeque};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::event::{Gone, GoneReason, Moved, Snapshot};

/// A step of a VM. Each change enters the VM's table at once, and a later step publishes the
/// change, like a thread that paused in between.
#[derive(Clone, Copy, Debug)]
enum Step {
    Add,
    Remove(usize),
    Move(usize, u64),
    Recase(usize),
    /// A thread publishes one of the pending changes.
    Publish(usize),
    /// The describing thread begins, looks at the next entry, publishes what it saw, or ends.
    Describe,
    /// The reader is overrun, and misses all unread events.
    Overrun,
    /// The reader reads this many events.
    Read(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Add),
        2 => any::<usize>().prop_map(Step::Remove),
        2 => (any::<usize>(), 1..1000_u64).prop_map(|(which, to)| Step::Move(which, to)),
        1 => any::<usize>().prop_map(Step::Recase),
        9 => any::<usize>().prop_map(Step::Publish),
        9 => Just(Step::Describe),
        1 => Just(Step::Overrun),
        3 => (0..8_usize).prop_map(Step::Read),
    ];
    vec(step, 0..200)
}

fn constituent(id: u64, start: u64, case: u64) -> Constituent<'static> {
    Constituent {
        id,
        start,
        end: start + id + 1,
        cases: vec![PicCase {
            method: case,
            ..PicCase::default()
        }]
        .into(),
        ..Constituent::default()
    }
}

/// A VM and its reader, where threads that publish may be late, each change of an id after the
/// previous one's.
#[derive(Default)]
struct World {
    /// The VM's table: id → (start, case).
    table: BTreeMap<u64, (u64, u64)>,
    ids: u64,
    /// Unpublished changes, oldest first.
    unpublished: VecDeque<(u64, Event<'static>)>,
    stream: VecDeque<Event<'static>>,
    /// The describing thread: its snapshot, last visited id, and unpublished description.
    describing: Option<(u64, Option<u64>, Option<Constituent<'static>>)>,
    snapshots: u64,
    zone: Zone,
    /// The reader's view after all changes: id → (start, case).
    read: BTreeMap<u64, (u64, u64)>,
}

impl World {
    fn nth(&self, which: usize) -> Option<u64> {
        let at = which.checked_rem(self.table.len())?;
        self.table.keys().nth(at).copied()
    }

    fn change(&mut self, id: u64, event: Event<'static>) {
        self.unpublished.push_back((id, event));
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Add => {
                self.ids += 1;
                let id = self.ids;
                self.table.insert(id, (id * 10_000, 0));
                self.change(id, Event::Constituent(constituent(id, id * 10_000, 0)));
            }
            Step::Remove(which) => {
                if let Some(id) = self.nth(which) {
                    self.table.remove(&id);
                    let reason = GoneReason::Freed;
                    self.change(id, Event::Gone(Gone { id, reason }));
                }
            }
            Step::Move(which, by) => {
                if let Some(id) = self.nth(which) {
                    let entry = self.table.get_mut(&id).unwrap();
                    entry.0 += by;
                    let to = entry.0;
                    self.change(id, Event::Moved(Moved { id, to }));
                }
            }
            Step::Recase(which) => {
                if let Some(id) = self.nth(which) {
                    let entry = self.table.get_mut(&id).unwrap();
                    entry.1 += 1;
                    let Constituent { cases, .. } = constituent(id, 0, entry.1);
                    self.change(id, Event::Cases(Cases { id, cases }));
                }
            }
            Step::Publish(which) => {
                if let Some(at) = which.checked_rem(self.unpublished.len()) {
                    // Changes of one constituent are published in their order.
                    let id = self.unpublished[at].0;
                    let first = self.unpublished.iter().position(|change| change.0 == id);
                    let (_, event) = self.unpublished.remove(first.unwrap()).unwrap();
                    self.stream.push_back(event);
                }
            }
            Step::Describe => self.describe(),
            Step::Overrun => {
                if !self.stream.is_empty() {
                    self.stream.clear();
                    self.zone.lost();
                }
            }
            Step::Read(count) => (0..count).for_each(|_| self.read()),
        }
    }

    fn describe(&mut self) {
        let Some((number, last, seen)) = self.describing.take() else {
            self.snapshots += 1;
            let number = self.snapshots;
            self.stream
                .push_back(Event::SnapshotBegin(Snapshot { number }));
            self.describing = Some((number, None, None));
            return;
        };
        if let Some(seen) = seen {
            self.stream.push_back(Event::Described(seen));
            self.describing = Some((number, last, None));
            return;
        }
        let next = last.map_or(0, |last| last + 1);
        match self.table.range(next..).next() {
            Some((&id, &(start, case))) => {
                let seen = constituent(id, start, case);
                self.describing = Some((number, Some(id), Some(seen)));
            }
            None => self
                .stream
                .push_back(Event::SnapshotEnd(Snapshot { number })),
        }
    }

    fn read(&mut self) {
        let Some(mut event) = self.stream.pop_front() else {
            return;
        };
        match (self.zone.apply(&mut event), &event) {
            (Change::Seen { new }, Event::Constituent(seen) | Event::Described(seen)) => {
                let entry = (seen.start, seen.cases[0].method);
                assert_eq!(self.read.insert(seen.id, entry).is_none(), new);
            }
            (Change::Gone, Event::Gone(gone)) => {
                assert!(self.read.remove(&gone.id).is_some());
            }
            (Change::Moved, Event::Moved(moved)) => {
                self.read.get_mut(&moved.id).unwrap().0 = moved.to;
            }
            (Change::Cases, Event::Cases(cases)) => {
                self.read.get_mut(&cases.id).unwrap().1 = cases.cases[0].method;
            }
            (Change::Complete { missing }, _) => {
                missing
                    .iter()
                    .for_each(|id| assert!(self.read.remove(id).is_some()));
            }
            (Change::Outdated | Change::Unknown | Change::None, _) => {}
            (change, event) => panic!("{change:?} of {event:?}"),
        }
    }

    /// Publishes all changes, and reads all published events.
    fn settle(&mut self) {
        while !self.unpublished.is_empty() {
            self.step(Step::Publish(0));
        }
        while !self.stream.is_empty() {
            self.read();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// However threads interleave, and whatever was lost: after a snapshot the reader knows exactly
    /// what exists.
    #[test]
    fn a_snapshot_and_the_stream_together_are_exact(steps in steps()) {
        let mut world = World::default();
        for step in steps {
            world.step(step);
            let agree = world.zone.iter().all(|(id, place)| {
                world.read.get(&id).is_some_and(|&(start, _)| start == place.start)
            });
            prop_assert!(agree && world.zone.len() == world.read.len());
        }
        world.settle();
        if world.zone.is_synced() && world.describing.is_none() {
            prop_assert_eq!(&world.read, &world.table);
        }
        // First the running snapshot ends. A reader out of sync then requests another snapshot.
        while world.describing.is_some() {
            world.describe();
        }
        world.settle();
        if !world.zone.is_synced() {
            world.describe();
            while world.describing.is_some() {
                world.describe();
            }
            world.settle();
        }
        prop_assert!(world.zone.is_synced());
        prop_assert_eq!(&world.read, &world.table);
    }
}

#[test]
fn nonsense_is_complained_about() {
    let mut zone = Zone::default();
    let mut apply = |mut event: Event<'static>| zone.apply(&mut event);
    let snapshot = Snapshot { number: 1 };
    let gone = |id| {
        Event::Gone(Gone {
            id,
            reason: GoneReason::Freed,
        })
    };
    assert_eq!(apply(gone(1)), Change::Unknown);
    apply(Event::SnapshotBegin(snapshot.clone()));
    apply(gone(7));
    let new = Event::Constituent(constituent(7, 100, 0));
    assert_eq!(apply(new), Change::Complaint(Complaint::ReusedId));
    assert_eq!(
        apply(Event::SnapshotEnd(snapshot)),
        Change::Complete { missing: vec![] }
    );
    assert_eq!(apply(gone(1)), Change::Unknown);
    let empty = Constituent {
        start: 5,
        end: 5,
        ..Constituent::default()
    };
    let complaint = Change::Complaint(Complaint::EmptyRange);
    assert_eq!(apply(Event::Constituent(empty)), complaint);
    apply(Event::Constituent(constituent(2, 100, 0)));
    let to = u64::MAX;
    assert_eq!(apply(Event::Moved(Moved { id: 2, to })), complaint);
}
