//! How fast a recording becomes a profile: `cargo bench -p vmscope-symbolizer`.
//!
//! Of a million samples each (`tests/recordings/shapes.rs`):
//! *native*: 8 threads, 20,000 distinct addresses in 32 libraries with their symbols.
//! *still*: 2,000 constituents that stay: resolving without time.
//! *apart*: 100,000 constituents that stay at distinct addresses: the baseline of the next two, without
//! time.
//! *jit*: 100,000 constituents that come and go at the same 2,000 places, so that each
//! address is used again 50 times: some half a million distinct ranges, the worst case
//! for giving names. *exact*: the same, their times known exactly, their ends untold.
//! *node*: 2,200 constituents at the start, then 20 a second, with source lines.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark fails by panicking"
)]

#[path = "../tests/recordings/mod.rs"]
mod recordings;

use divan::Bencher;
use divan::counter::ItemsCount;
use recordings::read;
use recordings::shapes::{self, Churn, PERIOD, THREADS};
use std::sync::LazyLock;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{Filter, Id, Profile, Summary, ThreadId, profile_of};

const SAMPLES: u64 = 1_000_000;

static NATIVE: LazyLock<Vec<u8>> = LazyLock::new(|| shapes::native(SAMPLES));
static STILL: LazyLock<Vec<u8>> = LazyLock::new(|| jit(Churn::Still));
static APART: LazyLock<Vec<u8>> = LazyLock::new(|| jit(Churn::Apart));
static JIT: LazyLock<Vec<u8>> = LazyLock::new(|| jit(Churn::Polled));
static EXACT: LazyLock<Vec<u8>> = LazyLock::new(|| jit(Churn::Exact));
static NODE: LazyLock<Vec<u8>> = LazyLock::new(|| shapes::node(SAMPLES));

fn jit(churn: Churn) -> Vec<u8> {
    shapes::jit(SAMPLES, 100_000, churn)
}

fn main() {
    divan::main();
}

const KINDS: [&str; 6] = ["native", "still", "apart", "jit", "exact", "node"];

fn bytes_of(kind: &str) -> &'static [u8] {
    match kind {
        "native" => &NATIVE,
        "still" => &STILL,
        "apart" => &APART,
        "jit" => &JIT,
        "exact" => &EXACT,
        _ => &NODE,
    }
}

fn profile(kind: &str) -> Profile {
    profile_of(read(bytes_of(kind)).unwrap(), Vec::new(), true)
}

/// `Trace::read`: decompression, decoding, and the place of every sample.
#[divan::bench(args = KINDS, sample_count = 10)]
fn trace(bencher: Bencher, kind: &str) {
    let bytes = bytes_of(kind);
    bencher
        .counter(ItemsCount::new(SAMPLES))
        .bench(|| read(divan::black_box(bytes)).unwrap());
}

/// `profile_of`: names for the places.
#[divan::bench(args = KINDS, sample_count = 10)]
fn names(bencher: Bencher, kind: &str) {
    bencher
        .counter(ItemsCount::new(SAMPLES))
        .with_inputs(|| read(bytes_of(kind)).unwrap())
        .bench_values(|trace| profile_of(trace, Vec::new(), true));
}

/// `Summary::of` everything.
#[divan::bench(args = KINDS, sample_count = 10)]
fn summary(bencher: Bencher, kind: &str) {
    let profile = profile(kind);
    bencher
        .counter(ItemsCount::new(SAMPLES))
        .bench(|| Summary::with_errors(divan::black_box(&profile), &Filter::default()));
}

/// `Summary::of` one thread in half of the time.
#[divan::bench(args = KINDS, sample_count = 10)]
fn summary_of_a_part(bencher: Bencher, kind: &str) {
    let profile = profile(kind);
    let end = SAMPLES * PERIOD / THREADS;
    let filter = Filter {
        threads: Some([ThreadId::of(0)].into_iter().collect()),
        from: Some(TimeNs(end / 4)),
        to: Some(TimeNs(end / 4 * 3)),
        ..Filter::default()
    };
    bencher
        .counter(ItemsCount::new(SAMPLES))
        .bench(|| Summary::with_errors(divan::black_box(&profile), &filter));
}

/// From the file to the counts.
#[divan::bench(args = KINDS, sample_count = 10)]
fn end_to_end(bencher: Bencher, kind: &str) {
    bencher
        .counter(ItemsCount::new(SAMPLES))
        .bench(|| Summary::with_errors(&profile(kind), &Filter::default()));
}
