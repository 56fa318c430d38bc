//! How fast a recording becomes a profile: `cargo bench -p vmscope-symbolizer`.
//!
//! Two recordings of a million samples each. *native*: 8 threads, 20,000 distinct
//! addresses in 32 libraries with their symbols. *jit*: 100,000 constituents that come
//! and go at 2,000 places, so that each address is used again 50 times: some half a
//! million distinct ranges, the worst case for giving names.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a benchmark fails by panicking"
)]

#[path = "../tests/recordings/mod.rs"]
mod recordings;

use divan::Bencher;
use divan::counter::ItemsCount;
use recordings::{Draw, PROCESS, Recording, read};
use std::sync::LazyLock;
use vmscope_records::{
    BoundaryRule, BytecodePc, Constituent, Exactness, ModuleKey, PcMap, ThreadKey, ThreadRole,
    TimeNs,
};
use vmscope_symbolizer::{Filter, Profile, Summary, profile_of};

const SAMPLES: u64 = 1_000_000;
const THREADS: u64 = 8;
/// The default period.
const PERIOD: u64 = 713_927;

static NATIVE: LazyLock<Vec<u8>> = LazyLock::new(native);
static JIT: LazyLock<Vec<u8>> = LazyLock::new(jit);

fn main() {
    divan::main();
}

fn threads(recording: &mut Recording) {
    for key in 1..=THREADS {
        let key = ThreadKey(u32::try_from(key).unwrap());
        recording.thread(key, PROCESS, 0, "worker", ThreadRole::Mutator);
    }
}

fn thread_of(draw: &mut Draw) -> ThreadKey {
    ThreadKey(u32::try_from(1 + draw.below(THREADS)).unwrap())
}

/// Few addresses get most samples, as in real programs.
fn skewed(draw: &mut Draw, below: u64) -> u64 {
    let unit = draw.unit();
    ((unit * unit * unit) * below as f64) as u64
}

fn native() -> Vec<u8> {
    let mut draw = Draw(1);
    let mut recording = Recording::of("native");
    threads(&mut recording);
    for library in 0..32u64 {
        let key = ModuleKey(u32::try_from(10 + library).unwrap());
        let names: Vec<String> = (0..100)
            .map(|n| format!("function_{library}_{n}"))
            .collect();
        let functions: Vec<(u64, u64, &str)> = names
            .iter()
            .enumerate()
            .map(|(n, name)| (n as u64 * 0x100, 0x100, name.as_str()))
            .collect();
        let start = 0x7f00_0000_0000 + library * 0x100_0000;
        recording
            .module(key, &format!("/lib/lib{library}.so"), false)
            .map(PROCESS, 0, start, start + 0x10_0000, 0, Some(key))
            .symbols(key, &functions);
    }
    for index in 0..SAMPLES {
        let place = skewed(&mut draw, 20_000);
        let pc = 0x7f00_0000_0000 + place % 32 * 0x100_0000 + place / 32 * 0x28;
        recording.sample(index * PERIOD / THREADS, thread_of(&mut draw), pc);
    }
    recording.end(SAMPLES * PERIOD / THREADS).bytes()
}

fn jit() -> Vec<u8> {
    const CODES: u64 = 100_000;
    const PLACES: u64 = 2_000;
    let mut draw = Draw(2);
    let mut recording = Recording::of("Cog");
    threads(&mut recording);
    let entries: Vec<(u32, BytecodePc)> = (1..20).map(|n| (n * 0x30, BytecodePc(n * 4))).collect();
    let every = SAMPLES * PERIOD / THREADS / CODES;
    for key in 0..CODES {
        // The one that had the place before goes when this one is seen.
        let (now, before) = ((key + 1) * every, key * every);
        if let Some(old) = key.checked_sub(PLACES) {
            recording.gone(old, before, now);
        }
        let start = 0x1000_0000 + key % PLACES * 0x400;
        recording.constituent(Constituent {
            absent_at: Some(TimeNs(before)),
            map: PcMap::Boundary {
                rule: BoundaryRule::AfterInstruction,
                exactness: Exactness::Exact,
                entries: entries.clone(),
            },
            ..recordings::code(key, now, start, start + 0x400)
        });
    }
    for index in 0..SAMPLES {
        let pc = 0x1000_0000 + skewed(&mut draw, PLACES * 8) * 0x80;
        recording.sample(index * PERIOD / THREADS, thread_of(&mut draw), pc);
    }
    recording.end(SAMPLES * PERIOD / THREADS).bytes()
}

const KINDS: [&str; 2] = ["native", "jit"];

fn bytes_of(kind: &str) -> &'static [u8] {
    if kind == "native" { &NATIVE } else { &JIT }
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
        .bench(|| Summary::of(divan::black_box(&profile), &Filter::default()));
}

/// `Summary::of` one thread in half of the time.
#[divan::bench(args = KINDS, sample_count = 10)]
fn summary_of_a_part(bencher: Bencher, kind: &str) {
    let profile = profile(kind);
    let end = SAMPLES * PERIOD / THREADS;
    let filter = Filter {
        threads: Some([0].into_iter().collect()),
        from: Some(TimeNs(end / 4)),
        to: Some(TimeNs(end / 4 * 3)),
    };
    bencher
        .counter(ItemsCount::new(SAMPLES))
        .bench(|| Summary::of(divan::black_box(&profile), &filter));
}

/// From the file to the counts.
#[divan::bench(args = KINDS, sample_count = 10)]
fn end_to_end(bencher: Bencher, kind: &str) {
    bencher
        .counter(ItemsCount::new(SAMPLES))
        .bench(|| Summary::of(&profile(kind), &Filter::default()));
}
