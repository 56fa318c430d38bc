//! What people wait for who look at a recording: `cargo bench -p vmscope-symbolizer --bench
//! view`.
//!
//! Of 10,000,000 samples each, on 8 threads, in 100,000 constituents that stay, of five
//! ranges and eight distinct pcs each: *zipf*, where few have most of the samples, and
//! *uniform*, the worst case for summaries; for callers, with 200,000 distinct stacks.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark fails by panicking"
)]

#[path = "view/changes.rs"]
mod changes;
#[path = "../tests/recordings/mod.rs"]
mod recordings;

use changes::{CHANGES, filter};
use divan::Bencher;
use recordings::read;
use recordings::shapes::long::{self, Popularity};
use recordings::shapes::{PERIOD, THREADS};
use std::sync::{Arc, LazyLock};
use vmscope_records::TimeNs;
use vmscope_symbolizer::annotate::{Annotation, Choice, candidates, choose};
use vmscope_symbolizer::calls::{CallTree, CallsOf, StackIndex};
use vmscope_symbolizer::time_buckets::{By, Columns, ColumnsOf};
use vmscope_symbolizer::{Filter, Profile, Stop, Summary, profile_of};

const SAMPLES: u64 = 10_000_000;
const CODES: u64 = 100_000;
const END: u64 = SAMPLES * PERIOD / THREADS;

static ZIPF: LazyLock<Vec<u8>> = LazyLock::new(|| long::view(SAMPLES, CODES, Popularity::Zipf));
static UNIFORM: LazyLock<Vec<u8>> =
    LazyLock::new(|| long::view(SAMPLES, CODES, Popularity::Uniform));
static ZIPF_PROFILE: LazyLock<Profile> = LazyLock::new(|| open("zipf"));
static UNIFORM_PROFILE: LazyLock<Profile> = LazyLock::new(|| open("uniform"));

static CALLED_PROFILE: LazyLock<Profile> = LazyLock::new(|| {
    let bytes = long::called(SAMPLES, CODES, 200_000);
    profile_of(read(&bytes).unwrap(), Vec::new(), true)
});
static STACKS: LazyLock<Arc<StackIndex>> = LazyLock::new(|| {
    let index = StackIndex::of(&CALLED_PROFILE, None, None, &Stop::new());
    Arc::new(index.unwrap())
});

fn main() {
    divan::main();
}

const KINDS: [&str; 2] = ["zipf", "uniform"];

fn bytes_of(kind: &str) -> &'static [u8] {
    if kind == "zipf" { &ZIPF } else { &UNIFORM }
}

fn profile(kind: &str) -> &'static Profile {
    if kind == "zipf" {
        &ZIPF_PROFILE
    } else {
        &UNIFORM_PROFILE
    }
}

fn open(kind: &str) -> Profile {
    profile_of(read(bytes_of(kind)).unwrap(), Vec::new(), true)
}

/// `Trace::read` alone.
#[divan::bench(args = KINDS, sample_count = 5)]
fn trace(bencher: Bencher, kind: &str) {
    let bytes = bytes_of(kind);
    bencher.bench(|| read(divan::black_box(bytes)).unwrap());
}

/// `profile_of` alone.
#[divan::bench(args = KINDS, sample_count = 5)]
fn names_and_slices(bencher: Bencher, kind: &str) {
    bencher
        .with_inputs(|| read(bytes_of(kind)).unwrap())
        .bench_values(|trace| profile_of(trace, Vec::new(), true));
}

/// From the file to the first summary.
#[divan::bench(args = KINDS, sample_count = 5)]
fn open_and_summary(bencher: Bencher, kind: &str) {
    let bytes = bytes_of(kind);
    bencher.bench(|| {
        let profile = profile_of(read(divan::black_box(bytes)).unwrap(), Vec::new(), true);
        let summary = Summary::of(&profile, &Filter::default(), &Stop::new());
        (profile, summary)
    });
}

/// A summary under a filter.
#[divan::bench(args = CHANGES, consts = [false, true], sample_count = 20)]
fn summary<const UNIFORM: bool>(bencher: Bencher, change: &str) {
    let profile = profile(if UNIFORM { "uniform" } else { "zipf" });
    let filter = filter(change, END);
    let stop = Stop::new();
    bencher.bench(|| Summary::of(divan::black_box(profile), &filter, &stop));
}

/// The errors of all shares.
#[divan::bench(args = CHANGES, consts = [false, true], sample_count = 20)]
fn errors<const UNIFORM: bool>(bencher: Bencher, change: &str) {
    let profile = profile(if UNIFORM { "uniform" } else { "zipf" });
    let filter = filter(change, END);
    let stop = Stop::new();
    bencher.bench(|| Summary::errors_by_entry(divan::black_box(profile), &filter, &stop));
}

/// A chart of 200 columns by regions, and by threads.
#[divan::bench(args = ["regions", "threads", "regions, some names"], consts = [false, true], sample_count = 20)]
fn columns<const UNIFORM: bool>(bencher: Bencher, by: &str) {
    let profile = profile(if UNIFORM { "uniform" } else { "zipf" });
    let what = ColumnsOf {
        window: (TimeNs(12_345), TimeNs(END)),
        columns: 200,
        by: match by {
            "threads" => By::Threads,
            _ => By::Regions,
        },
    };
    let filter = match by {
        "regions, some names" => filter("name", END),
        _ => Filter::default(),
    };
    bencher.bench(|| Columns::of(divan::black_box(profile), &what, &filter, &Stop::new()));
}

/// The hottest method beside its bytecodes.
#[divan::bench(consts = [false, true], sample_count = 10)]
fn annotation<const UNIFORM: bool>(bencher: Bencher) {
    let profile = profile(if UNIFORM { "uniform" } else { "zipf" });
    let filter = filter("half", END);
    let Choice::One(subject) = choose(profile, &candidates(profile, &filter), None) else {
        panic!("there are methods");
    };
    bencher.bench(|| Annotation::of(divan::black_box(profile), &filter, &subject));
}

/// Finding all stacks, once.
#[divan::bench(sample_count = 3)]
fn stacks(bencher: Bencher) {
    let profile = &*CALLED_PROFILE;
    bencher.bench(|| StackIndex::of(divan::black_box(profile), None, None, &Stop::new()));
}

/// The tree of callers that a filter leaves.
#[divan::bench(args = CHANGES, consts = [false, true], sample_count = 20)]
fn callers<const BY_THREAD: bool>(bencher: Bencher, change: &str) {
    let (profile, index) = (&*CALLED_PROFILE, &*STACKS);
    let (filter, stop) = (filter(change, END), Stop::new());
    let of = CallsOf {
        by_thread: BY_THREAD,
        through: None,
    };
    bencher.bench(|| CallTree::of(divan::black_box(profile), index, &filter, &of, &stop));
}
