#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails is to panic"
)]

use std::borrow::Cow;

use super::*;
use crate::event::{Class, Constituent, Event, Fact, Gone};
use crate::reader::{Attached, Next};

fn small() -> Publisher {
    Publisher::new(&Options {
        name: "toy",
        version: "1.2",
        stream_bytes: 1 << 14,
        sample_bytes: 1 << 12,
        ..Options::default()
    })
    .unwrap()
}

fn attach(publisher: &Publisher) -> Attached {
    let pid = u64::from(std::process::id());
    Attached::new(publisher.file().try_clone().unwrap(), Some(pid)).unwrap()
}

fn fact(name: &str) -> Fact<'_> {
    Fact {
        name: name.into(),
        value: "yes".into(),
    }
}

/// Reads all available facts, and returns their names.
fn facts(attached: &mut Attached) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        match attached.read() {
            Next::Event {
                event: Event::Fact(fact),
                ..
            } => names.push(fact.name.to_str().into_owned()),
            Next::Empty => return names,
            other => panic!("{other:?}"),
        }
    }
}

#[derive(Default)]
struct Answers {
    described: u64,
    collected: u64,
    rates: Vec<LifetimeRate>,
}

impl Callbacks for Answers {
    fn describe(&mut self, describer: &Describer<'_>) {
        self.described += 1;
        describer.publish(&Constituent {
            id: 9,
            start: 1,
            end: 2,
            ..Constituent::default()
        });
    }

    fn collect(&mut self) {
        self.collected += 1;
    }

    fn lifetime_rate(&mut self, rate: LifetimeRate) {
        self.rates.push(rate);
    }
}

#[test]
fn nothing_is_written_until_somebody_listens() {
    let publisher = small();
    publisher.publish(&fact("unheard"));
    let mut attached = attach(&publisher);
    assert_eq!(attached.backlog(), 0);
    publisher.publish_at(77, &fact("heard"));
    let next = attached.read();
    assert!(matches!(next, Next::Event { time: 77, .. }), "{next:?}");
    drop(attached);
    assert!(!publisher.check_listeners());
    publisher.publish(&fact("unheard"));
    assert_eq!(attach(&publisher).backlog(), 0);
}

#[test]
fn a_vm_knows_when_a_profiler_has_read_everything() {
    let publisher = small();
    let mut attached = attach(&publisher);
    publisher.publish(&fact("one"));
    let head = publisher.shared.stream().head();
    assert!(!publisher.shared.has_reader_at(head));
    assert!(matches!(attached.read(), Next::Event { .. }));
    assert!(publisher.shared.has_reader_at(head));
    drop(attached);
    assert!(!publisher.shared.has_reader_at(head));
    // Nobody has started this process as a profiler's command.
    assert!(!publisher.await_profiler(Duration::from_secs(60)));
}

#[test]
fn the_header_says_who_publishes() {
    let publisher = small();
    let attached = attach(&publisher);
    let identity = attached.identity();
    assert_eq!((&*identity.name, &*identity.version), ("toy", "1.2"));
    assert_eq!(identity.pid, u64::from(std::process::id()));
    assert_eq!(Some(identity.start_ticks), start_ticks());
    assert!(identity.created <= memory::now() && identity.start_ticks > 0);
}

#[test]
fn sizes_out_of_range_are_refused() {
    for bytes in [0, layout::LARGEST_RING + 1, usize::MAX] {
        let options = Options {
            stream_bytes: bytes,
            ..Options::default()
        };
        let error = Publisher::new(&options).unwrap_err();
        assert!(matches!(error, PublishError::RingSize(size) if size == bytes));
    }
}

#[test]
fn an_event_that_is_too_long_is_counted() {
    let publisher = small();
    let mut attached = attach(&publisher);
    // An eighth of 16 KiB.
    publisher.publish(&fact(&"x".repeat(2048)));
    publisher.publish(&fact(&"x".repeat(1900)));
    assert_eq!((publisher.too_long(), attached.too_long()), (1, 1));
    assert_eq!(facts(&mut attached).len(), 1);
}

#[test]
fn many_births_are_many_events() {
    let publisher = Publisher::new(&Options::default()).unwrap();
    let mut attached = attach(&publisher);
    let birth = |object| Birth {
        object,
        weight: 2.0,
        ..Birth::default()
    };
    let births: Vec<_> = (0..1000).map(birth).collect();
    publisher.births(5, &births);
    let mut read = Vec::new();
    while let Next::Event { event, .. } = attached.read() {
        let Event::Births(births) = event else {
            panic!("{event:?}");
        };
        assert_eq!(births.tid, 5);
        read.extend_from_slice(&births.births);
    }
    assert_eq!(read, births);
}

#[test]
fn requests_are_answered_once_at_the_next_poll() {
    let publisher = small();
    let mut attached = attach(&publisher);
    let mut answers = Answers::default();
    publisher.poll(&mut answers);
    assert_eq!((answers.described, answers.collected), (0, 0));

    let rate = LifetimeRate {
        unit: LifetimeUnit::Bytes,
        distance: 65536,
        callers: 3,
    };
    attached.set_lifetime_rate(rate);
    let number = attached.request_snapshot();
    let collection = attached.request_collection();
    assert!(attached.snapshots().1 < number && attached.collections_done() < collection);
    publisher.poll(&mut answers);
    publisher.poll(&mut answers);
    assert_eq!((answers.described, answers.collected), (1, 1));
    assert_eq!(answers.rates, [rate]);
    attached.set_lifetime_rate(LifetimeRate {
        callers: u32::MAX,
        ..rate
    });
    publisher.poll(&mut answers);
    let callers = answers.rates.last().map(|rate| rate.callers);
    assert_eq!(callers, Some(LifetimeRate::MOST_CALLERS));
    assert_eq!(attached.snapshots(), (number, number));
    assert_eq!(attached.collections_done(), collection);

    let mut kinds = Vec::new();
    while let Next::Event { event, .. } = attached.read() {
        kinds.push(event.kind());
    }
    assert_eq!(kinds, [1, 6, 2], "begin, described, end");
}

#[test]
fn a_profiler_that_vanishes_is_noticed() {
    let publisher = small();
    let attached = attach(&publisher);
    attached.set_lifetime_rate(LifetimeRate {
        unit: LifetimeUnit::Objects,
        distance: 1,
        callers: 0,
    });
    let mut answers = Answers::default();
    publisher.poll(&mut answers);
    // It is killed: nobody ends its lease.
    std::mem::forget(attached);
    let soon = memory::now() + crate::reader::LEASE_NS / 2;
    publisher.shared.check_leases(soon);
    assert!(publisher.listening());
    let later = memory::now() + crate::reader::LEASE_NS * 2;
    publisher.shared.check_leases(later);
    assert!(!publisher.listening());
    let expired = publisher.shared.memory.word(word::LEASES_EXPIRED);
    assert_eq!(expired.load(Ordering::Relaxed), 1);
    // The VM also hears that nobody wants lifetimes any more.
    publisher.poll(&mut answers);
    assert_eq!(answers.rates.last().map(|rate| rate.distance), Some(0));
    assert_eq!(answers.rates.len(), 2);
}

#[test]
fn a_lease_without_end_does_not_count() {
    let publisher = small();
    let memory = &publisher.shared.memory;
    memory.word(word::LEASES).store(u64::MAX, Ordering::Relaxed);
    memory.word(word::LISTENING).store(1, Ordering::Relaxed);
    assert!(!publisher.check_listeners());
}

/// A snapshot many times larger than the ring, with a fast reader.
#[test]
fn a_snapshot_waits_for_its_readers() {
    const COUNT: u64 = 20_000;
    struct Many;
    impl Callbacks for Many {
        fn describe(&mut self, describer: &Describer<'_>) {
            for id in 1..=COUNT {
                describer.publish(&Class {
                    id,
                    name: "a class with a name".into(),
                });
            }
        }
    }
    let publisher = Publisher::new(&Options {
        stream_bytes: 1 << 16,
        snapshot_patience: Duration::from_secs(60),
        ..Options::default()
    })
    .unwrap();
    let mut attached = attach(&publisher);
    let number = attached.request_snapshot();
    let read = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut classes = 0;
            loop {
                match attached.read() {
                    Next::Event { event, .. } => match event {
                        Event::Class(class) => {
                            classes += 1;
                            assert_eq!(class.id, classes);
                        }
                        Event::SnapshotEnd(end) => {
                            assert_eq!(end.number, number);
                            return classes;
                        }
                        _ => {}
                    },
                    Next::Empty => std::thread::yield_now(),
                    other => panic!("{other:?}"),
                }
            }
        });
        publisher.poll(&mut Many);
        reader.join().unwrap()
    });
    assert_eq!(read, COUNT);
}

/// An inactive reader delays a snapshot by at most the VM's patience, and then sees an overrun.
#[test]
fn a_snapshot_does_not_wait_for_ever() {
    struct Many;
    impl Callbacks for Many {
        fn describe(&mut self, describer: &Describer<'_>) {
            (0..5000).for_each(|id| {
                describer.publish(&Gone {
                    id,
                    ..Gone::default()
                })
            });
        }
    }
    let publisher = Publisher::new(&Options {
        stream_bytes: 1 << 14,
        snapshot_patience: Duration::from_millis(2),
        ..Options::default()
    })
    .unwrap();
    let mut attached = attach(&publisher);
    attached.request_snapshot();
    publisher.poll(&mut Many);
    assert!(matches!(attached.read(), Next::Overrun { .. }));
}

#[test]
fn two_threads_poll_and_one_answers() {
    struct Asks<'p>(&'p Publisher, u64);
    impl Callbacks for Asks<'_> {
        fn describe(&mut self, _: &Describer<'_>) {
            self.1 += 1;
            // Another thread's poll, while this one answers.
            let mut other = Answers::default();
            self.0.shared.answer(&mut other);
            assert_eq!(other.described, 0);
        }
    }
    let publisher = small();
    let attached = attach(&publisher);
    attached.request_snapshot();
    let mut asks = Asks(&publisher, 0);
    publisher.poll(&mut asks);
    publisher.poll(&mut asks);
    assert_eq!(asks.1, 1);
    attached.request_snapshot();
    publisher.poll(&mut asks);
    assert_eq!(asks.1, 2);
}

#[test]
fn lists_of_events_are_borrowed() {
    // Publishing copies a list once, into the ring: the event borrows the VM's list.
    let entries = [event::Boundary::default(); 3];
    let map = event::PcMap::Boundary {
        rule: event::BoundaryRule::AtStart,
        exactness: event::Exactness::Exact,
        entries: entries.as_slice().into(),
    };
    assert!(matches!(
        map,
        event::PcMap::Boundary {
            entries: Cow::Borrowed(_),
            ..
        }
    ));
}
