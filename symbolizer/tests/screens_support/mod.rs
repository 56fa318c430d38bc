//! Helpers to query the screen recordings.

use crate::recordings::{read, screens::ms};
use std::collections::BTreeMap;
use std::io::Cursor;
use vmscope_records::recording::{Item, Reader};
use vmscope_records::{ConstituentKind, Content, Record, TimeNs};
use vmscope_symbolizer::{Filter, Profile, Region, Summary, ThreadId, profile_of};

pub fn profile(file: &[u8]) -> Profile {
    profile_of(read(file).unwrap(), Vec::new(), true)
}

pub fn records(file: &[u8]) -> Vec<Record> {
    let mut reader = Reader::open(Cursor::new(file)).unwrap();
    let mut records = Vec::new();
    while let Some(chunk) = reader.next_chunk(Content::ALL).unwrap() {
        for item in chunk.items() {
            match item {
                Item::Record(record) => records.push(record),
                Item::Samples(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    records
}

pub fn all(profile: &Profile) -> Summary {
    Summary::with_errors(profile, &Filter::default())
}

pub fn between(profile: &Profile, from_ms: u64, to_ms: u64) -> Summary {
    let filter = Filter {
        from: Some(TimeNs(ms(from_ms))),
        to: Some(TimeNs(ms(to_ms))),
        ..Filter::default()
    };
    Summary::with_errors(profile, &filter)
}

/// Regions with samples.
pub fn regions(summary: &Summary) -> Vec<(Region, u64)> {
    let counted = Region::ALL.into_iter().zip(summary.regions);
    counted.filter(|(_, samples)| *samples > 0).collect()
}

/// The hottest entries: name, tier, samples.
pub fn hottest<'a>(
    profile: &'a Profile,
    summary: &Summary,
    count: usize,
) -> Vec<(&'a str, &'a str, u64)> {
    let entries = profile.entries.iter().zip(&summary.entries);
    let mut all: Vec<_> = entries
        .map(|(entry, &samples)| (entry.name.as_str(), entry.tier.as_str(), samples))
        .collect();
    all.sort_by_key(|&(name, tier, samples)| (std::cmp::Reverse(samples), name, tier));
    all.truncate(count);
    all
}

/// Threads by samples, most first.
pub fn threads<'a>(profile: &'a Profile, summary: &Summary) -> Vec<(&'a str, u64)> {
    let name = |index: ThreadId| profile.trace.threads[index].thread.name.as_str();
    let all = summary.threads.iter();
    all.map(|one| (name(one.thread), one.samples)).collect()
}

/// Number of callers of each sample with callers.
pub fn depths(profile: &Profile) -> Vec<(ThreadId, usize)> {
    let samples = &profile.trace.samples;
    let rows = samples.threads.iter().zip(&samples.chains);
    rows.map(|(&thread, &chain)| (thread, profile.trace.chains.path(chain).count()))
        .collect()
}

/// Number of constituents by kind and tier.
pub fn constituents(records: &[Record]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for record in records {
        if let Record::Constituent(one) = record {
            let kind = format!("{:?} {}", one.kind, one.tier);
            *kinds.entry(kind.trim().to_owned()).or_default() += 1;
        }
    }
    kinds
}

/// A method's tiers, and the residency (ms) of each.
pub fn lives<'a>(records: &'a [Record], name: &str) -> Vec<(&'a str, u64, Option<u64>)> {
    let since_begin = |time: TimeNs| (time.0 - ms(0)) / 1_000_000;
    let gone = |key| {
        records.iter().find_map(|record| match record {
            Record::ConstituentGone(gone) if gone.key == key => Some(since_begin(gone.time)),
            _ => None,
        })
    };
    let code = records.iter().filter_map(|record| match record {
        Record::Constituent(one) if one.name == name => Some(one),
        _ => None,
    });
    code.filter(|one| one.kind == ConstituentKind::Method)
        .map(|one| (one.tier.as_str(), since_begin(one.since), gone(one.key)))
        .collect()
}

/// The recording's facts in words, as documented.
pub fn told(profile: &Profile) -> Vec<String> {
    let summary = all(profile);
    let regions = regions(&summary);
    let regions = regions
        .iter()
        .map(|(region, n)| format!("{} {n}", region.name()));
    let hottest = hottest(profile, &summary, 3);
    let hottest = hottest.iter().map(|(name, tier, samples)| {
        let share = 100.0 * summary.share(*samples);
        format!("{name} ({tier}) {share:.2} %")
    });
    let threads = threads(profile, &summary);
    let threads = threads.iter().map(|(name, n)| format!("{name} {n}"));
    vec![
        format!("{} samples", summary.total),
        regions.collect::<Vec<_>>().join(", "),
        hottest.collect::<Vec<_>>().join(", "),
        threads.collect::<Vec<_>>().join(", "),
    ]
}
