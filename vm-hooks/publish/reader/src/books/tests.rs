//! Books of VMs that publish anything.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use vmscope_process::KeySource;
use vmscope_process::testing::FakeMemory;
use vmscope_publish::event::Event;
use vmscope_records::{Pid, ProcessKey, Record};

use super::*;

/// Words as they occur in events: small numbers, sizes, addresses; seldom anything.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 0..6_u64,
        2 => (0..4_u64, 0..40_u64).prop_map(|(low, high)| high << 32 | low),
        1 => 0x1000..0x1100_u64,
        1 => any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any published events make sound records: records refer only to methods and code already
    /// emitted, and code disappears only once.
    #[test]
    fn any_events_make_sound_records(
        items in vec((0..28_u8, vec(word(), 0..24), 0..1000_u64, 0..30_u8), 0..60),
    ) {
        let view = ProcessView::fake(Pid(1), Arc::new(FakeMemory::new()), Vec::new());
        let (mut books, keys) = (Books::default(), KeySource::new());
        let mut alive = std::collections::HashSet::new();
        let mut methods = std::collections::HashSet::new();
        for batch in items.chunks(7) {
            let items = batch.iter().map(|(kind, words, time, loss)| {
                match Event::decode(*kind, words) {
                    Ok(event) => Item::Event(*time, event),
                    Err(_) if *loss == 0 => Item::Lost { from: (*time).min(400),
                        to: (*time).min(400), words: 1 },
                    Err(_) => Item::Undecodable,
                }
            });
            let mut batch = Batch::default();
            batch.items.extend(items);
            let clock = Arc::new(|| TimeNs(500));
            let mut poll = Poll::new(keys.clone(), ProcessKey(1), clock);
            books.take(batch, &view, &mut poll);
            books.finish(&mut poll);
            for record in poll.finish() {
                prop_assert!(record.time().is_none_or(|time| time <= TimeNs(500)), "{record:?}");
                match record {
                    Record::Method(method) => _ = methods.insert(method.key),
                    Record::Constituent(one) => {
                        prop_assert!(one.start < one.end);
                        prop_assert!(one.method.is_none_or(|key| methods.contains(&key)));
                        alive.insert(one.key);
                    }
                    Record::ConstituentGone(gone) => {
                        prop_assert!(gone.last_seen <= gone.time);
                        prop_assert!(alive.remove(&gone.key));
                    }
                    Record::ConstituentMoved(moved) => prop_assert!(alive.contains(&moved.key)),
                    _ => {}
                }
            }
        }
    }
}
