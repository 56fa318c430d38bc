//! A recording read as a whole, and taken step by step.

use std::io::Cursor;
use std::sync::PoisonError;

use vmscope_records::recording::{Item, Reader};
use vmscope_records::{Content, Module, Record, ThreadKey, TimeNs};
use vmscope_symbolizer::live::Settled;
use vmscope_symbolizer::native::{Binaries, DebugFile, DebugFileRequest, FileBytes};
use vmscope_symbolizer::{
    Bounds, ChainId, Entry, EntryId, Id, Live, Omitted, Profile, Site, profile_of,
};

/// A driver without files.
pub struct NoFiles;

impl Binaries for NoFiles {
    fn module(&self, _: &Module) -> Result<std::sync::Arc<dyn FileBytes>, String> {
        Err("none".to_owned())
    }

    fn debug_file(&self, _: &DebugFileRequest<'_>) -> Vec<DebugFile> {
        Vec::new()
    }

    fn kernel_symbols(&self) -> Option<Vec<u8>> {
        None
    }
}

/// All records of a file in reading order.
pub fn records_of(bytes: &[u8]) -> Vec<Record> {
    let mut reader = Reader::open(Cursor::new(bytes)).unwrap();
    let mut records = Vec::new();
    while let Some(chunk) = reader.next_chunk(Content::ALL).unwrap() {
        for item in chunk.items() {
            match item {
                Item::Record(record) => records.push(record),
                Item::Samples(samples) => records.extend(samples.into_iter().map(Record::Sample)),
                _ => {}
            }
        }
    }
    records
}

/// The time of a record's delivery. Rules and descriptions come first.
pub fn told_at(record: &Record) -> u64 {
    match record {
        Record::RegionRules(_) | Record::InterpreterRules(_) | Record::Method(_) => 0,
        Record::Module(_) | Record::Session(_) | Record::Symbols(_) => 0,
        other => other.time().map_or(0, |time| time.0),
    }
}

/// Times at which all records about earlier code have arrived, if records arrive by their times.
pub fn told_times(records: &[Record], wanted: usize) -> Vec<u64> {
    let mut open: Vec<(u64, u64)> = Vec::new();
    for record in records {
        match record {
            Record::Constituent(c) => {
                let since = c.since.0;
                open.push((c.absent_at.map_or(since, |at| at.0), since));
            }
            Record::ConstituentGone(gone) => open.push((gone.last_seen.0, gone.time.0)),
            Record::ConstituentMoved(moved) => open.push((moved.last_seen.0, moved.time.0)),
            _ => {}
        }
    }
    let last = records.iter().map(told_at).max().unwrap_or(0);
    let mut times: Vec<u64> = (1..=wanted as u64)
        .map(|n| last / wanted as u64 * n)
        .chain(open.iter().map(|(_, told)| told + 1))
        .collect();
    times.sort_unstable();
    times.dedup();
    let is_told = |time: &u64| {
        !open
            .iter()
            .any(|&(from, told)| from < *time && *time <= told)
    };
    times.retain(is_told);
    let every = times.len().div_ceil(wanted).max(1);
    times.into_iter().step_by(every).collect()
}

/// Takes a recording in delivery order, with a step at each of `times`.
pub fn live_of(records: &[Record], times: &[u64], bounds: Bounds) -> (Live, Vec<Settled>) {
    let mut records: Vec<&Record> = records.iter().collect();
    records.sort_by_key(|record| told_at(record));
    let mut records = records.into_iter().peekable();
    let mut live = Live::new(true, bounds);
    let mut steps = Vec::new();
    for &time in times {
        while let Some(record) = records.next_if(|record| told_at(record) < time) {
            live.take(record.clone());
        }
        steps.push(live.settle(TimeNs(time), &NoFiles));
    }
    for record in records {
        live.take(record.clone());
    }
    steps.push(live.finish(&NoFiles));
    (live, steps)
}

/// Every sample with its site and entry.
pub fn rows(profile: &Profile) -> Vec<(TimeNs, ThreadKey, Entry, Site)> {
    let samples = &profile.trace.samples;
    let all = samples
        .times
        .iter()
        .zip(&samples.threads)
        .zip(&samples.places);
    all.map(|((&time, &thread), &place)| {
        let site = profile.site_at(place);
        let entry = profile.entries[site.entry].clone();
        let thread = profile.trace.threads[thread].thread.key;
        (
            time,
            thread,
            entry,
            Site {
                entry: EntryId::of(0),
                ..site.clone()
            },
        )
    })
    .collect()
}

/// Takes a recording both ways, in `steps` steps, and reports differences.
pub fn agree(bytes: &[u8], steps: usize) -> Result<(), String> {
    let whole = profile_of(super::read(bytes).unwrap(), Vec::new(), true);
    let records = records_of(bytes);
    let times = if steps == 0 {
        Vec::new()
    } else {
        told_times(&records, steps)
    };
    let (live, _) = live_of(&records, &times, Bounds::default());
    if live.omitted() != Omitted::default() {
        return Err(format!("{:?}", live.omitted()));
    }
    let live = live
        .profile()
        .read()
        .unwrap_or_else(PoisonError::into_inner);
    let (wanted, got) = (rows(&whole), rows(&live));
    if wanted.len() != got.len() {
        return Err(format!("{} samples, not {}", got.len(), wanted.len()));
    }
    for (index, (wanted, got)) in wanted.iter().zip(&got).enumerate() {
        if wanted != got {
            return Err(format!(
                "sample {index} in {} steps: {got:#?}, not {wanted:#?}",
                times.len()
            ));
        }
    }
    let chains = |profile: &Profile| {
        let trace = &profile.trace;
        let nodes = trace.samples.chains.iter();
        let path = |chain: &Option<ChainId>| {
            let places = trace.chains.path(*chain);
            places.map(|place| trace.places[place]).collect::<Vec<_>>()
        };
        nodes.map(path).collect::<Vec<_>>()
    };
    if chains(&whole) != chains(&live) {
        return Err("callers differ".to_owned());
    }
    Ok(())
}
