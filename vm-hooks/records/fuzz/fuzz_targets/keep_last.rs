//! Any records into a recording that keeps its newest part, in memory. The saved recording is
//! readable. It has the newest samples and lifetimes, including the whole window, and all
//! unended state.
#![no_main]

mod common;

use common::{records, texts};
use libfuzzer_sys::fuzz_target;
use std::collections::HashMap;
use vmscope_records::recording::{KeepLast, plain_recording};
use vmscope_records::{Constituent, Content, DurationNs, EndReason, Record, RecordingEnd, TimeNs};

/// Numbers at the input's beginning, before the records.
struct Numbers {
    window: DurationNs,
    max_bytes: usize,
    /// A flush after every so many records.
    flush: usize,
}

/// Saves what is kept of the records `put`, and checks it.
fn check(keep: &mut KeepLast, put: &[Record], numbers: &Numbers) {
    let end = RecordingEnd {
        time: TimeNs(0),
        reason: EndReason::Saved,
        detail: String::new(),
        samples: 0,
        recorder_cpu_ns: 0,
    };
    let (bytes, written) = keep.save(Vec::new(), end).expect("memory takes everything");
    let (kept, others) = records(&bytes);
    assert_eq!(others, 0);
    let Some((Record::End(end), kept)) = kept.split_last() else {
        panic!("the end comes last");
    };
    assert_eq!(
        (end.samples, written.bytes),
        (written.samples, bytes.len() as u64)
    );
    let moves_window = |record: &&Record| !matches!(record, Record::ThreadCpu(_));
    let newest = put
        .iter()
        .filter(moves_window)
        .filter_map(Record::time)
        .max();
    let from = newest
        .unwrap_or_default()
        .0
        .saturating_sub(numbers.window.0);
    for content in [Content::SAMPLES, Content::LIFETIMES] {
        let of = |records: &'_ [Record]| -> Vec<Record> {
            records
                .iter()
                .filter(|one| one.content() == content)
                .cloned()
                .collect()
        };
        let (put, kept) = (of(put), of(kept));
        let Some(dropped) = put.len().checked_sub(kept.len()) else {
            panic!("more are kept than were put");
        };
        assert_eq!(texts(&kept), texts(&put[dropped..]));
        if content == Content::SAMPLES {
            assert_eq!(
                (kept.len() as u64, keep.samples()),
                (end.samples, end.samples)
            );
        }
        if numbers.max_bytes == usize::MAX {
            let in_window = |one: &Record| one.time().is_some_and(|time| time.0 >= from);
            assert!(
                !put[..dropped].iter().any(in_window),
                "a part of the window is missing"
            );
        }
    }
    check_state(put, kept);
}

/// State that nothing ended is kept as it was told last.
fn check_state(put: &[Record], kept: &[Record]) {
    let ends = |one: &Record| matches!(one, Record::ProcessEnd(_) | Record::ConstituentMoved(_));
    if put.iter().any(ends) {
        return;
    }
    let mut newest: HashMap<String, &Record> = HashMap::new();
    let mut threads_ended = Vec::new();
    let (mut codes, mut unknown): (Vec<&Constituent>, Vec<&Constituent>) = Default::default();
    let (mut gone, mut processes) = (Vec::new(), Vec::new());
    for record in put {
        match record {
            Record::Session(_) => _ = newest.insert("session".to_owned(), record),
            Record::Symbols(one) => _ = newest.insert(format!("{:?}", one.owner), record),
            Record::Module(one) => _ = newest.insert(format!("{:?}", one.key), record),
            Record::Class(one) => _ = newest.insert(format!("{:?}", one.key), record),
            Record::Fact(one) => {
                newest.insert(format!("fact {:?} {}", one.process, one.name), record);
            }
            Record::RegionRules(one) => {
                newest.insert(format!("rules {:?} {}", one.process, one.vm), record);
            }
            Record::Counter(one) => {
                let key = format!("{:?} {:?} {:?}", one.process, one.section, one.name);
                newest.insert(key, record);
            }
            Record::ThreadEnd(one) => threads_ended.push(one.key),
            Record::Process(one) => processes.push(one.key),
            // Code of an unknown process goes.
            Record::Constituent(one) if processes.contains(&one.process) => codes.push(one),
            Record::Constituent(one) => unknown.push(one),
            Record::ConstituentGone(one) => gone.push(one.key),
            _ => {}
        }
    }
    // More of them are swept.
    if newest.len() < 4096 {
        let kept = texts(kept);
        for text in texts(newest.into_values()) {
            assert!(kept.contains(&text), "{text}");
        }
    }
    let is_kept = |thread| {
        kept.iter()
            .any(|one| matches!(one, Record::Thread(one) if one.key == thread))
    };
    for record in put {
        if let Record::Thread(one) = record
            && !threads_ended.contains(&one.key)
        {
            assert!(is_kept(one.key), "{one:?}");
        }
    }
    let is_kept = |code| {
        kept.iter()
            .any(|one| matches!(one, Record::Constituent(one) if one.key == code))
    };
    for one in codes.iter().take(100) {
        let is_other = |other: &&Constituent| {
            other.key != one.key
                && other.process == one.process
                && other.start < one.end
                && one.start < other.end
        };
        let mut others = codes.iter().chain(&unknown).copied();
        if !gone.contains(&one.key) && !others.any(|other| is_other(&other)) {
            assert!(is_kept(one.key), "{one:?}");
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&[window, max_bytes, flush], payload)) = input.split_first_chunk() else {
        return;
    };
    let numbers = Numbers {
        window: DurationNs(1 << (window % 64)),
        max_bytes: match max_bytes % 32 {
            0..20 => usize::MAX,
            bits => 1 << (bits - 12),
        },
        flush: 1 + usize::from(flush),
    };
    let (put, _) = records(&plain_recording(payload));
    let mut keep = KeepLast::new(numbers.window, numbers.max_bytes);
    for (index, record) in put.iter().enumerate() {
        keep.put(record.clone());
        if (index + 1) % numbers.flush == 0 {
            keep.flush().expect("memory takes everything");
        }
        // It goes on after a save.
        if index == put.len() / 2 {
            check(&mut keep, &put[..=index], &numbers);
        }
    }
    check(&mut keep, &put, &numbers);
    // One chunk is kept in any case.
    let most = numbers.max_bytes.saturating_add(2 * payload.len() + 1000);
    assert!(keep.bytes() <= most as u64);
});
