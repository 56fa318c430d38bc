//! Time of polls of a Node.js: `cargo bench -p vmscope-v8`. The memory of snapshots is in this process;
//! `attach` reads processes.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark that fails is to panic"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::nodes::{RELEASES, node};
use common::recorded::{NAMES, snapshot};
use common::stopped::Stopped;
use divan::{Bencher, black_box};
use vmscope_v8::testing::{Polls, middles, new_code};

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

/// From a running Node.js to the names of its 4,000 compiled functions: recognition and first poll.
#[divan::bench(args = RELEASES, sample_count = 20)]
fn attach(bencher: Bencher, release: u32) {
    let Some(node) = node(release) else {
        return;
    };
    let stopped = Stopped::run(&node, &[], "many.js");
    bencher.bench_local(|| {
        let process = stopped.view();
        let mut polls = Polls::open(&process).unwrap().unwrap();
        let records = polls.look(&process).unwrap();
        let named = new_code(&records).filter(|one| one.name.starts_with("made_"));
        assert!(named.count() >= 4000);
    });
}
