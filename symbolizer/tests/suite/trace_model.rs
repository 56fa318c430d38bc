//! The code zone against a naive model: random, possibly overlapping loads, moves and ends, with
//! exact times (jitdump) or between two polls (perf map).

use std::collections::HashMap;

use crate::recordings::{Draw, PROCESS, Recording, THREAD, code, read, who};
use proptest::prelude::*;
use vmscope_records::recording::KeepLast;
use vmscope_records::{
    Constituent, ConstituentKey, DurationNs, EndReason, ProcessKey, Record, RecordingEnd,
    ThreadKey, ThreadRole, TimeNs,
};
use vmscope_symbolizer::profile_of;

const ZONE: u64 = 0x10_0000;
const OTHER: ProcessKey = ProcessKey(2);

/// Residency of code; times as in [`Constituent`].
#[derive(Clone, Copy, Debug)]
struct Stay {
    key: u64,
    process: ProcessKey,
    start: u64,
    end: u64,
    maybe: u64,
    from: u64,
    fades: u64,
    until: u64,
}

impl Stay {
    fn covers(&self, process: ProcessKey, pc: u64) -> bool {
        self.process == process && self.start <= pc && pc < self.end
    }

    fn was_there(&self, time: u64) -> bool {
        self.from <= time && self.from < self.until
    }
}

/// Whether later code overlaps the code at `index` at `time`.
fn is_replaced(stays: &[Stay], index: usize, time: u64) -> bool {
    let stay = &stays[index];
    stays.iter().enumerate().any(|(other_index, other)| {
        other.process == stay.process
            && other.start < stay.end
            && stay.start < other.end
            && other.was_there(time)
            && (other.from, other_index) > (stay.from, index)
    })
}

/// The owner of `pc` by a scan of all records in recording order.
fn model(stays: &[Stay], time: u64, process: ProcessKey, pc: u64) -> Result<Option<u64>, ()> {
    let firm = stays.iter().enumerate().find(|(index, stay)| {
        stay.covers(process, pc)
            && stay.was_there(time)
            && time < stay.until
            && !is_replaced(stays, *index, time)
    });
    let maybe: Vec<&Stay> = (stays.iter())
        .filter(|stay| stay.covers(process, pc))
        .filter(|stay| stay.maybe <= time && time < stay.from && time < stay.until)
        .collect();
    match (firm, maybe.as_slice()) {
        (Some((_, firm)), []) => Ok(Some(firm.key)),
        (Some((_, firm)), _) if time < firm.fades.max(firm.from) => Ok(Some(firm.key)),
        (None, []) => Ok(None),
        (None, [one]) => Ok(Some(one.key)),
        _ => Err(()),
    }
}

/// Polls at 100, 200, …; new code has an exact time or lies between two polls.
fn told(seed: u64, count: u64, places: u64) -> (Recording, Vec<Stay>) {
    let mut draw = Draw(seed);
    let mut recording = Recording::of("V8");
    recording.process(OTHER, 0, 200, None).thread(
        ThreadKey(2),
        OTHER,
        0,
        "other",
        ThreadRole::Mutator,
    );
    let mut stays = Vec::new();
    for key in 1..=count {
        let process = if draw.below(4) == 0 { OTHER } else { PROCESS };
        let exact = draw.below(2) == 0;
        let time = 1 + draw.below(1000);
        let look = time.next_multiple_of(100);
        let (maybe, from) = if exact {
            (time, time)
        } else {
            (look - 100, look)
        };
        let start = ZONE + draw.below(places) * 0x20;
        let size = 0x10 + draw.below(0x60);
        recording.constituent(Constituent {
            absent_at: (!exact).then_some(TimeNs(maybe)),
            process,
            ..code(key, from, start, start + size)
        });
        let mut stay = Stay {
            key,
            process,
            start,
            end: start + size,
            maybe,
            from,
            fades: from,
            until: u64::MAX,
        };
        if draw.below(6) == 0 {
            let (last, time) = ends(&mut draw, from, exact);
            let to = ZONE + draw.below(places) * 0x20;
            recording.moved(key, last, time, to);
            stays.push(Stay {
                fades: last,
                until: time,
                ..stay
            });
            stay = Stay {
                start: to,
                end: to + size,
                maybe: last,
                from: time,
                fades: time,
                ..stay
            };
        }
        if draw.below(3) == 0 {
            let (last, time) = ends(&mut draw, stay.from, exact);
            recording.gone(key, last, time);
            (stay.fades, stay.until) = (last, time);
        }
        stays.push(stay);
    }
    (recording, stays)
}

/// Last time seen, and first time missing.
fn ends(draw: &mut Draw, from: u64, exact: bool) -> (u64, u64) {
    if exact {
        let time = from + draw.below(300);
        (time, time)
    } else {
        let last = from + draw.below(4) * 100;
        (last, last + 100)
    }
}

/// Like a session: in order of time, but each code record somewhat late, some told twice, and with a
/// forked process that runs its parent's code. `samples` have a time, an address, and a thread.
fn delivered(recording: &[&Record], samples: &[(u64, u64, u32)], draw: &mut Draw) -> Vec<Record> {
    let mut child = Recording::empty();
    let (process, thread) = (ProcessKey(3), ThreadKey(3));
    child
        .process(process, 300 + draw.below(700), 300, Some(PROCESS))
        .thread(thread, process, 300, "child", ThreadRole::Mutator);
    let mut all: Vec<(u64, Record)> = Vec::new();
    let mut last_due = HashMap::new();
    for record in recording.iter().copied().chain(child.records()) {
        let time = record.time().unwrap_or_default().0;
        // Equal times stay together, in their order.
        let mut due = time + if time > 0 { Draw(time).below(80) } else { 0 };
        let key = match record {
            Record::Constituent(one) => Some(one.key),
            Record::ConstituentMoved(moved) => Some(moved.key),
            Record::ConstituentGone(gone) => Some(gone.key),
            _ => None,
        };
        // Each constituent's records keep their order.
        if let Some(key) = key {
            let last = last_due.entry(key).or_insert(due);
            due = due.max(*last);
            *last = due;
        }
        if let Record::Constituent(one) = record {
            let is_moved = |other: &&Record| matches!(other, Record::ConstituentMoved(moved) if moved.key == one.key);
            if draw.below(4) == 0 && !recording.iter().any(is_moved) {
                all.push((time + 80 + draw.below(20), record.clone()));
            }
        }
        all.push((due, record.clone()));
    }
    for &(time, pc, thread) in samples {
        let mut sample = Recording::empty();
        sample.sample(time, ThreadKey(thread), pc);
        all.extend(sample.records().iter().map(|sample| (time, sample.clone())));
    }
    all.sort_by_key(|(due, _)| *due);
    // Keys are given in the order of arrival.
    let mut keys = HashMap::new();
    let mut renamed = |key: &mut ConstituentKey| {
        let next = keys.len() as u64;
        *key = ConstituentKey(*keys.entry(*key).or_insert(next));
    };
    for (_, record) in &mut all {
        match record {
            Record::Constituent(one) => renamed(&mut one.key),
            Record::ConstituentMoved(moved) => renamed(&mut moved.key),
            Record::ConstituentGone(gone) => renamed(&mut gone.key),
            _ => {}
        }
    }
    all.into_iter().map(|(_, record)| record).collect()
}

fn recording_end() -> RecordingEnd {
    RecordingEnd {
        time: TimeNs(1500),
        reason: EndReason::Saved,
        detail: String::new(),
        samples: 0,
        recorder_cpu_ns: 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_zone_agrees_with_scanning_all_that_was_told(seed: u64, places in 1u64..60) {
        let (mut recording, stays) = told(seed, 150, places);
        let mut draw = Draw(!seed);
        // Few addresses, so the caches get hits.
        let mut samples: Vec<(u64, u64, u32)> = (0..2500)
            .map(|_| {
                let pc = ZONE + draw.below(places * 4 + 12) * 8;
                (draw.below(1500), pc, 1 + u32::from(draw.below(4) == 0))
            })
            .collect();
        samples.sort_unstable();
        for &(time, pc, thread) in &samples {
            recording.sample(time, ThreadKey(thread), pc);
        }
        let profile = recording.profile();
        let mut doubtful = 0;
        for (index, &(time, pc, thread)) in samples.iter().enumerate() {
            let process = if thread == 1 { PROCESS } else { OTHER };
            let wanted = model(&stays, time, process, pc);
            doubtful += usize::from(wanted.is_err());
            prop_assert_eq!(
                who(&profile, index), wanted,
                "pc {:#x} at {}: {:#?}", pc, time,
                stays.iter().filter(|stay| stay.covers(process, pc)).collect::<Vec<_>>()
            );
        }
        prop_assert!(doubtful < samples.len());
    }

    /// `--keep-last`: for its newest samples, a part has the results of the whole recording.
    #[test]
    fn the_newest_part_says_what_the_whole_says(
        seed: u64,
        places in 1u64..60,
        window in 100u64..600,
        flush in 10u64..100,
    ) {
        let (recording, stays) = told(seed, 150, places);
        let mut draw = Draw(!seed);
        // No VM moves code that it replaced.
        let is_possible = |record: &Record| match record {
            Record::ConstituentMoved(moved) => {
                let (key, time) = (moved.key.0, moved.time.0);
                let from = stays.iter().position(|stay| stay.key == key && stay.until == time);
                !is_replaced(&stays, from.unwrap(), time)
            }
            _ => true,
        };
        let recording: Vec<_> = recording.records().iter().filter(|r| is_possible(r)).collect();
        let mut samples: Vec<(u64, u64, u32)> = (0..2500)
            .map(|_| {
                let pc = ZONE + draw.below(places * 4 + 12) * 8;
                (300 + draw.below(1200), pc, 1 + draw.below(3) as u32)
            })
            .collect();
        samples.sort_unstable();
        let delivered = delivered(&recording, &samples, &mut draw);
        let mut kept = KeepLast::new(DurationNs(window), usize::MAX);
        kept.sampled_until(TimeNs(1500));
        let mut whole = Recording::empty();
        let mut flushed = 0;
        for record in delivered {
            let time = record.time().unwrap_or_default().0;
            if time >= flushed + flush {
                kept.flush().unwrap();
                flushed = time;
            }
            kept.put(record.clone());
            whole.put(record);
        }
        let (bytes, _) = kept.save(Vec::new(), recording_end()).unwrap();
        let kept = profile_of(read(&bytes).unwrap(), Vec::new(), true);
        let whole = whole.profile();
        let count = kept.trace.samples.times.len();
        prop_assert!((1..samples.len()).contains(&count));
        let dropped = samples.len() - count;
        for index in 0..count {
            prop_assert_eq!(
                who(&kept, index), who(&whole, dropped + index),
                "{:?}", samples[dropped + index]
            );
        }
    }
}

#[test]
fn an_address_that_is_reused_thousands_of_times_is_always_the_newest_ones() {
    let mut recording = Recording::of("V8");
    for key in 1..=5_000 {
        recording.constituent(code(key, key * 10, ZONE, ZONE + 0x100));
    }
    for key in 1..=5_000 {
        recording.sample(key * 10, THREAD, ZONE + 0x10);
        recording.sample(key * 10 + 9, THREAD, ZONE + 0x10);
    }
    let profile = recording.profile();
    for key in 1..=5_000u64 {
        let at = usize::try_from(key).unwrap() * 2;
        assert_eq!(who(&profile, at - 2), Ok(Some(key)));
        assert_eq!(who(&profile, at - 1), Ok(Some(key)));
    }
}
