//! Time of polls of a Node.js: `cargo bench -p vmscope-v8`. The memory is in this process. Reads of
//! another process's memory come on top.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark that fails is to panic"
)]

#[path = "../tests/common/recorded.rs"]
mod recorded;

use divan::{Bencher, black_box};
use recorded::{NAMES, snapshot};
use vmscope_v8::testing::{Polls, middles};

fn main() {
    divan::main();
}

/// All code with names.
#[divan::bench(args = NAMES, sample_count = 20)]
fn first_poll(bencher: Bencher, name: &str) {
    let process = snapshot(name).process();
    bencher
        .with_inputs(|| Polls::open(&process).unwrap().unwrap())
        .bench_refs(|polls| black_box(polls.look(&process).unwrap()));
}

/// All code, which has not changed.
#[divan::bench(args = NAMES, sample_count = 20)]
fn later_look(bencher: Bencher, name: &str) {
    let process = snapshot(name).process();
    let mut polls = Polls::open(&process).unwrap().unwrap();
    polls.look(&process).unwrap();
    bencher.bench_local(|| black_box(polls.look(&process).unwrap()));
}

/// Fifty pieces of code with samples.
#[divan::bench(args = NAMES, sample_count = 20)]
fn hits(bencher: Bencher, name: &str) {
    let process = snapshot(name).process();
    let mut polls = Polls::open(&process).unwrap().unwrap();
    let mut touched = middles(&polls.look(&process).unwrap());
    touched.truncate(50);
    bencher.bench_local(|| black_box(polls.hits(&process, touched.clone()).unwrap()));
}
