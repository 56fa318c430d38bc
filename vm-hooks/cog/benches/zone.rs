//! Time to read a code zone: `cargo bench -p vmscope-cog`. The memory is in this process. Reads of another
//! process's memory come on top: their number and bytes are in the tests of costs.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark that fails is to panic"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;

use common::image::{Image, ZONE, with_block};
use common::snapshot;
use divan::{Bencher, black_box};
use vmscope_cog::{CogAdapter, Encoding, Vm};
use vmscope_process::{Adapter as _, KeySource, Poll, ProcessView};
use vmscope_records::{ProcessKey, TimeNs};

fn main() {
    divan::main();
}

/// A busy VM with 875 entries.
fn busy() -> ProcessView {
    snapshot("busy").process()
}

/// A full zone of 16 MiB, with 60,000 methods and as many blocks.
fn full() -> ProcessView {
    let mut image = Image::with_zone(8, ZONE + (16 << 20));
    image.table(&[Encoding::V3, Encoding::Sista]);
    let entry = with_block(&mut image);
    for _ in 0..60_000 {
        image.entry(&entry);
    }
    image.process()
}

/// A poll that reads the zone: a second after the last poll.
fn look(adapter: &mut CogAdapter, process: &ProcessView, seconds: &mut u64) {
    *seconds += 1;
    let now = TimeNs(*seconds * 1_000_000_000);
    let mut poll = Poll::new(KeySource::new(), ProcessKey(1), Arc::new(move || now));
    adapter.poll(process, &mut poll).unwrap();
    black_box(poll.finish());
}

fn adapter(process: &ProcessView) -> CogAdapter {
    CogAdapter::new(Vm::open(process).unwrap().unwrap())
}

#[divan::bench(args = [("busy", busy as fn() -> ProcessView), ("full", full)], sample_count = 20)]
fn first_look(bencher: Bencher, (_, process): (&str, fn() -> ProcessView)) {
    let process = process();
    let begin = || adapter(&process);
    bencher
        .with_inputs(begin)
        .bench_refs(|adapter| look(adapter, &process, &mut 0));
}

#[divan::bench(args = [("busy", busy as fn() -> ProcessView), ("full", full)], sample_count = 20)]
fn later_look(bencher: Bencher, (_, process): (&str, fn() -> ProcessView)) {
    let process = process();
    let mut adapter = adapter(&process);
    let mut seconds = 0;
    look(&mut adapter, &process, &mut seconds);
    bencher.bench_local(|| look(&mut adapter, &process, &mut seconds));
}
