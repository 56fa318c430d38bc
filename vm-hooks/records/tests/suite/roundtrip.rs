//! What is written is what is read, for every kind of record.

use crate::common;
use crate::common::strategies;
use proptest::collection::vec;
use proptest::prelude::*;
use vmscope_records::recording::KeepLast;
use vmscope_records::*;

/// Samples in time order, as a writer must be given them.
fn in_order(mut records: Vec<Record>) -> Vec<Record> {
    let mut times: Vec<TimeNs> = samples_of(&records).map(|sample| sample.time).collect();
    times.sort_unstable();
    let mut times = times.into_iter();
    for record in &mut records {
        if let Record::Sample(sample) = record {
            sample.time = times.next().unwrap();
        }
    }
    records
}

fn samples_of(records: &[Record]) -> impl Iterator<Item = &Sample> {
    records.iter().filter_map(|record| match record {
        Record::Sample(sample) => Some(sample),
        _ => None,
    })
}

fn of(records: &[Record], content: Content) -> Vec<&Record> {
    let wanted =
        |record: &&Record| record.content() == content && !matches!(record, Record::End(_));
    records.iter().filter(wanted).collect()
}

proptest! {
    /// Each stream comes back as it was put in, in its order, wherever it was flushed.
    #[test]
    fn every_kind_is_read_as_written(
        records in vec(strategies::any_record(), 0..40).prop_map(in_order),
        flushes in vec(0..40_usize, 0..4),
    ) {
        let read = common::read(&common::write(&records, &flushes)).unwrap();
        prop_assert!(read.malformed.is_empty(), "{:?}", read.malformed);
        prop_assert_eq!(read.unknown, 0);
        prop_assert_eq!(read.ending.damage_count, 0);
        for content in [Content::STATE, Content::LIFETIMES, Content::SAMPLES] {
            prop_assert_eq!(of(&read.records, content), of(&records, content));
        }
        let end = read.end().unwrap();
        prop_assert_eq!(end.samples, samples_of(&records).count() as u64);
        prop_assert_eq!(&end.detail, "so it goes");
    }

    /// A short recording, saved from `KeepLast` with all of its time in the window, reads back: all
    /// samples and lifetimes, and no foreign record.
    #[test]
    fn what_is_kept_is_read_as_written(
        records in vec(strategies::any_record(), 0..40).prop_map(in_order),
    ) {
        let mut keep = KeepLast::new(DurationNs(u64::MAX), usize::MAX);
        for record in &records {
            keep.put(record.clone());
        }
        let (bytes, _) = keep.save(Vec::new(), common::end(EndReason::Saved)).unwrap();
        let read = common::read(&bytes).unwrap();
        prop_assert!(read.malformed.is_empty(), "{:?}", read.malformed);
        for content in [Content::LIFETIMES, Content::SAMPLES] {
            prop_assert_eq!(of(&read.records, content), of(&records, content));
        }
        prop_assert_eq!(read.end().unwrap().reason, EndReason::Saved);
    }
}

/// The list of strategies is complete: a new kind needs a new row.
#[test]
fn there_is_a_strategy_for_every_kind() {
    let mut kinds: Vec<_> = common::every_kind()
        .iter()
        .map(std::mem::discriminant)
        .collect();
    kinds.dedup();
    // 31 kinds, the end among them, which the writer completes itself.
    assert_eq!(kinds.len(), 30);
}

/// A sample that no chunk can hold is counted as lost, alone: its neighbours are kept.
#[test]
fn a_sample_that_is_too_large_takes_no_other_with_it() {
    let mut records: Vec<Record> = (0..100).map(|n| common::sample(n, 1, n)).collect();
    let Record::Sample(huge) = &mut records[50] else {
        unreachable!()
    };
    huge.detail = Some(Box::new(SampleDetail {
        stack: Some(StackBytes {
            sp: Avma(0),
            bytes: vec![1; 5 << 20],
        }),
        ..SampleDetail::default()
    }));
    let read = common::read(&common::write(&records, &[])).unwrap();
    assert_eq!(read.samples().count(), 99);
    let lost: Vec<&Lost> = (read.records.iter())
        .filter_map(|record| match record {
            Record::Lost(lost) => Some(lost),
            _ => None,
        })
        .collect();
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].count, lost[0].reason), (1, LossReason::TooLarge));
    assert_eq!(lost[0].stream, Stream::Samples);
}

/// A method and code that no chunk can hold keep their names.
#[test]
fn details_that_are_too_large_are_left_out() {
    let line = |n: u32| (BytecodePc(n), "block".repeat(20));
    let method = Method {
        name: "dispatch".into(),
        lines: vec![LineEntry {
            from: BytecodePc(0),
            line: 7,
        }],
        listing: (0..100_000).map(line).collect(),
        ..Method::default()
    };
    let huge = vec![7; 5 << 20];
    let other = Method {
        bytecodes: huge,
        listing: Vec::new(),
        ..method.clone()
    };
    let records = [method.clone(), other].map(|method| Record::Method(Box::new(method)));
    let read = common::read(&common::write(&records, &[])).unwrap();
    let [first, second] = &read.records[..2] else {
        unreachable!()
    };
    let (Record::Method(first), Record::Method(second)) = (first, second) else {
        panic!("{first:?}, {second:?}: methods");
    };
    assert_eq!((&*first.name, &*second.name), ("dispatch", "dispatch"));
    assert_eq!(
        (&first.lines, &second.lines),
        (&method.lines, &method.lines)
    );
    let kept = first.listing.len() - 1;
    assert!(kept >= 25_000 && first.listing[..kept] == method.listing[..kept]);
    assert!(first.listing[kept].1.starts_with('…') && second.bytecodes.is_empty());
}

/// What lifetimes refer to is in the file before them, also where a chunk of lifetimes
/// becomes full between two flushes.
#[test]
fn state_comes_before_the_lifetimes_that_refer_to_it() {
    let class = Record::Class(Class {
        key: ClassKey(1),
        process: ProcessKey(1),
        name: "Ball".into(),
    });
    let mut records = vec![class.clone()];
    records.extend((0..100_000).map(|n| {
        Record::LifetimeCounts(Box::new(LifetimeCounts {
            time: TimeNs(n),
            ..LifetimeCounts::default()
        }))
    }));
    let read = common::read(&common::write(&records, &[])).unwrap();
    assert_eq!(read.records[0], class);
}

/// Births as a VM allocates: classes and sites of few, small sizes, short distances in time.
#[test]
fn a_birth_takes_a_few_bytes() {
    const BIRTHS: u64 = 1_000_000;
    let mut all = Vec::new();
    let mut number = 1_u64;
    for batch in 0..BIRTHS / 1000 {
        let mut births = Births::new(ProcessKey(1), Some(ThreadKey(1)));
        for n in batch * 1000..(batch + 1) * 1000 {
            // Knuth's linear congruential generator.
            number = number.wrapping_mul(6364136223846793005).wrapping_add(1);
            let any = number >> 33;
            births.push(Birth {
                object: ObjectKey(n),
                time: TimeNs(n * 200 + any % 100),
                class: ClassKey(any % 20),
                site: Some(SiteKey(any % 50)),
                bytes: 16 + 8 * (any % 4),
                weight: 1.0,
                allocated_bytes: Some(n * 24),
            });
        }
        all.push(Record::Births(Box::new(births)));
    }
    let bytes = common::write(&all, &[]);
    let each = bytes.len() as f64 / BIRTHS as f64;
    assert!(each < 5.0, "{each} bytes");
    let read = common::read(&bytes).unwrap();
    assert!(read.records.starts_with(&all));
}
