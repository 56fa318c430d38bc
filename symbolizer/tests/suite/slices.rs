//! Counts and charts from time buckets equal a naive count, also after samples were dropped.

use crate::recordings::{Draw, PROCESS, PROGRAM, PROGRAM_AT, Recording};
use vmscope_records::{ThreadKey, ThreadRole, TimeNs};
use vmscope_symbolizer::time_buckets::{BUCKET, By, Columns, ColumnsOf, Counts};
use vmscope_symbolizer::{
    EntryId, Filter, Id, Only, PlaceId, Profile, Region, SiteId, Stop, Summary, ThreadId,
};

const END: u64 = 1_000_000;

/// An unmapped address.
const NOWHERE: u64 = 0x4000_0000_0000;

/// 150,000 samples of 16 functions on 5 threads; one function has few samples.
fn profile() -> Profile {
    let mut draw = Draw(11);
    let mut recording = Recording::of("native");
    for key in 2..=5 {
        recording.thread(ThreadKey(key), PROCESS, 0, "t", ThreadRole::Other);
    }
    let names: Vec<String> = (0..16).map(|n| format!("Function{n}")).collect();
    let functions: Vec<_> = (names.iter().zip(0..))
        .map(|(name, n)| (n * 0x100, 0x100, name.as_str()))
        .collect();
    recording.symbols(PROGRAM, &functions);
    let mut times: Vec<u64> = (0..150_000).map(|_| draw.below(END)).collect();
    times.sort_unstable();
    for time in times {
        let at = (draw.unit().powi(2) * 4096.0) as u64;
        let thread = ThreadKey(1 + draw.below(5) as u32);
        // Some samples fall in unknown memory.
        let pc = match draw.below(10) {
            0 => NOWHERE + at,
            _ => PROGRAM_AT + at,
        };
        recording.sample(time, thread, pc);
    }
    recording.end(END).profile()
}

/// Every kind of filter.
fn filters(profile: &Profile) -> Vec<Filter> {
    let mut draw = Draw(12);
    let mut all = vec![Filter::default()];
    for _ in 0..60 {
        let mut bound = || (draw.below(3) != 0).then(|| TimeNs(draw.below(END)));
        let (from, to) = (bound(), bound());
        let threads = (draw.below(2) != 0).then(|| {
            let all = (0..5).map(ThreadId::of);
            all.filter(|_| draw.below(2) == 0).collect()
        });
        let names = match draw.below(3) {
            0 => vec!["function1".into()],
            1 => vec!["N3".into(), "N7".into()],
            _ => Vec::new(),
        };
        let entries = match draw.below(4) {
            0 => profile
                .entries
                .ids()
                .take(profile.entries.len() / 2)
                .collect(),
            _ => Vec::new(),
        };
        let regions = match draw.below(3) {
            0 => vec![Region::Unknown],
            1 if draw.below(2) == 0 => vec![Region::Vm, Region::Kernel],
            _ => Vec::new(),
        };
        let only = Only {
            names,
            entries,
            regions,
            ..Only::default()
        };
        let without = (0..draw.below(3) as usize).map(ThreadId::of).collect();
        all.push(Filter {
            threads,
            without,
            from,
            to,
            only,
        });
    }
    all
}

/// Time, thread and site of the filter's samples.
fn taken<'a>(
    profile: &'a Profile,
    filter: &'a Filter,
) -> impl Iterator<Item = (TimeNs, ThreadId, SiteId)> + 'a {
    let mask = filter.entry_mask(profile);
    let samples = &profile.trace.samples;
    let rows = samples
        .times
        .iter()
        .zip(&samples.threads)
        .zip(&samples.places);
    rows.filter_map(move |((&time, &thread), &place)| {
        let site = profile.site_of_place[place];
        let entry = profile.sites[site].entry;
        let takes = mask.as_ref().is_none_or(|mask| mask.takes(entry));
        (takes && filter.takes(thread, time)).then_some((time, thread, site))
    })
}

#[test]
fn counts_are_those_of_all_samples() {
    let profile = profile();
    assert!(profile.time_buckets.size().0 > 36, "two levels");
    for filter in filters(&profile) {
        let counts = Counts::of(&profile, &filter, &Stop::new()).unwrap();
        let mut sites = profile.sites.with_each(0);
        let mut threads = profile.trace.threads.with_each(0);
        for (_, thread, site) in taken(&profile, &filter) {
            sites[site] += 1;
            threads[thread] += 1;
        }
        assert_eq!(counts.sites, sites, "{filter:?}");
        assert_eq!(counts.threads, threads, "{filter:?}");
        assert_eq!(counts.total, sites.iter().sum::<u64>(), "{filter:?}");
        let summary = Summary::with_errors(&profile, &filter);
        assert_eq!(summary.sites, sites, "{filter:?}");
        assert_eq!(summary.entries.iter().sum::<u64>(), counts.total);
        assert_eq!(summary.quality.total(), counts.total);
        assert!(summary.promised.is_none());
        assert_errors_are_of_batches(&profile, &filter, &summary);
    }
}

/// Batch means by definition: 32 batches of consecutive samples.
fn assert_errors_are_of_batches(profile: &Profile, filter: &Filter, summary: &Summary) {
    let size = summary.total as usize / 32;
    assert_eq!(summary.errors.is_empty(), size < 10, "{filter:?}");
    if size < 10 {
        return;
    }
    let mut batches = vec![profile.entries.with_each(0.0); 32];
    for (index, (_, _, site)) in taken(profile, filter).enumerate().take(32 * size) {
        batches[index / size][profile.sites[site].entry] += 1.0 / size as f64;
    }
    for (entry, error) in summary.errors.enumerated() {
        let shares = batches.iter().map(|batch| batch[entry]);
        let mean = shares.clone().sum::<f64>() / 32.0;
        let variance = shares.map(|share| (share - mean).powi(2)).sum::<f64>() / 31.0;
        let expected = 2.04 * (variance / 32.0).sqrt();
        assert!(
            (error - expected).abs() < 1e-9,
            "{error} {expected} {filter:?}"
        );
    }
}

fn columns_of(window: (u64, u64), by: By) -> ColumnsOf {
    ColumnsOf {
        window: (TimeNs(window.0), TimeNs(window.1)),
        columns: 37,
        by,
    }
}

#[test]
fn columns_are_those_of_all_samples() {
    let profile = profile();
    let regions = Region::ALL.len();
    let rows = By::Rows {
        // The third thread has no row.
        of_thread: &vec![1, 0, u32::MAX, 1, 2].into(),
        rows: 2,
    };
    let kinds = [
        (By::Threads, 5),
        (By::Regions, regions),
        (rows, 2 * regions),
    ];
    for filter in filters(&profile).iter().take(24) {
        for (by, count) in kinds {
            let what = columns_of((123, 901_234), by);
            let columns = Columns::of(&profile, &what, filter, &Stop::new()).unwrap();
            let mut expected = vec![0; 37 * count];
            for (time, thread, site) in taken(&profile, filter) {
                let column = (0..37).find(|&c| (what.edge(c)..what.edge(c + 1)).contains(&time));
                let entry = profile.sites[site].entry;
                let region = profile.entries[entry].region as usize;
                let group = match by {
                    By::Threads => thread.index(),
                    By::Regions => region,
                    By::Rows { of_thread, rows } => match of_thread[thread] {
                        row if row < rows => row as usize * regions + region,
                        _ => continue,
                    },
                };
                if let (Some(column), true) = (column, group < count) {
                    expected[column * count + group] += 1;
                }
            }
            assert_eq!(columns.samples, expected, "{filter:?}");
        }
    }
}

#[test]
fn totals_stay_and_filters_by_time_reach_the_window() {
    let mut profile = profile();
    let everything = |profile: &Profile, filter: &Filter| {
        let counts = Counts::of(profile, filter, &Stop::new()).unwrap();
        (counts, Summary::with_errors(profile, filter).entries)
    };
    let from_the_start: Vec<Filter> = (filters(&profile).into_iter())
        .map(|filter| Filter {
            from: None,
            to: filter.to.filter(|to| to.0 >= END / 2),
            ..filter
        })
        .collect();
    let before: Vec<_> = from_the_start
        .iter()
        .map(|f| everything(&profile, f))
        .collect();
    let all = before[0].0.clone();
    let samples = profile.trace.samples.times.len() as u64;
    assert_eq!(profile.time_buckets.kept_from(), None);
    let mut dropped = 0;
    for until in [END / 3, END / 2] {
        let samples = &mut profile.trace.samples;
        dropped += profile.time_buckets.drop_before(samples, TimeNs(until));
        assert_eq!(profile.time_buckets.dropped(), dropped);
    }
    assert!(dropped > 60_000 && dropped.is_multiple_of(BUCKET as u64));
    assert_eq!(profile.trace.samples.times.len() as u64, samples - dropped);
    let kept_from = profile.time_buckets.kept_from().unwrap();
    assert!(
        (END / 5 * 2..END / 2).contains(&kept_from.0),
        "{kept_from:?}"
    );
    // Filters without a start keep their results, except errors.
    for (filter, before) in from_the_start.iter().zip(before) {
        assert_eq!(everything(&profile, filter), before, "{filter:?}");
    }
    assert!(
        Summary::with_errors(&profile, &Filter::default())
            .errors
            .is_empty()
    );
    for (by, groups) in [(By::Threads, 5), (By::Regions, Region::ALL.len())] {
        let total = Columns::total(&profile, by, &Filter::default(), &Stop::new()).unwrap();
        assert_eq!(total.len(), groups);
        assert_eq!(total.iter().sum::<u64>(), samples);
    }
    // Filters with a start count kept samples only.
    for filter in filters(&profile) {
        if filter.from.is_none() {
            continue;
        }
        let summary = Summary::with_errors(&profile, &filter);
        let taken: Vec<_> = taken(&profile, &filter).collect();
        assert_eq!(summary.total, taken.len() as u64, "{filter:?}");
        assert!(summary.window.0 >= kept_from, "{filter:?}");
        assert_errors_are_of_batches(&profile, &filter, &summary);
    }
    for by in [By::Threads, By::Regions] {
        let chart = columns_of((0, END), by);
        let chart = Columns::of(&profile, &chart, &Filter::default(), &Stop::new()).unwrap();
        assert_eq!(chart.samples.iter().sum::<u64>(), samples - dropped);
        let first = (0..37).find(|&column| chart.column(column).iter().any(|&n| n > 0));
        assert_eq!(first, Some((kept_from.0 * 37 / END) as usize));
    }
    // Growth continues.
    let (trace, sites, time_buckets) = profile.to_sum_up();
    for index in 0..BUCKET as u64 * 20 {
        trace.samples.times.push(TimeNs(END + index));
        trace.samples.threads.push(ThreadId::of(1));
        trace.samples.places.push(PlaceId::of(0));
        if index % 1000 == 0 {
            time_buckets.append(trace, sites);
        }
    }
    let grown = Counts::of(&profile, &Filter::default(), &Stop::new()).unwrap();
    assert_eq!(grown.total, all.total + BUCKET as u64 * 20);
    let thread = ThreadId::of(1);
    assert_eq!(
        grown.threads[thread],
        all.threads[thread] + BUCKET as u64 * 20
    );
}

#[test]
fn what_is_stopped_gives_nothing() {
    let profile = profile();
    let stop = Stop::new();
    stop.clone().stop();
    assert!(Summary::of(&profile, &Filter::default(), &stop).is_none());
    let what = columns_of((0, END), By::Threads);
    assert!(Columns::of(&profile, &what, &Filter::default(), &stop).is_none());
}

#[test]
fn lists_of_a_filter_are_or_and_kinds_are_and() {
    let profile = profile();
    let only = |names: &[&str], entries: &[usize]| Filter {
        only: Only {
            names: names.iter().map(|&name| name.into()).collect(),
            entries: entries.iter().map(|&entry| EntryId::of(entry)).collect(),
            ..Only::default()
        },
        ..Filter::default()
    };
    let fitting = |filter: &Filter| {
        let mask = filter.entry_mask(&profile).unwrap();
        profile
            .entries
            .ids()
            .filter(|&entry| mask.takes(entry))
            .count()
    };
    assert_eq!(fitting(&only(&["FUNCTION1"], &[])), 7);
    assert_eq!(fitting(&only(&["function1", "n2"], &[])), 8);
    assert_eq!(fitting(&only(&["function"], &[0, 3])), 2);
    assert_eq!(fitting(&only(&["nothing"], &[0, 3])), 0);
    assert!(Filter::default().entry_mask(&profile).is_none());
}
