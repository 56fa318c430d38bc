//! Speed of reading files: `cargo bench -p vmscope-jitdump`. The dump repeats what Node
//! really wrote until it is 31 MB, with as much code as there is in Node's; the map has a
//! million lines.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark that fails is to panic"
)]

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::BytesCount;
use vmscope_jitdump::follow::{DumpFile, PerfMapFile, Progress};
use vmscope_process::ModuleFile;

const DUMP_BYTES: usize = 31 << 20;
const LINES: u64 = 1_000_000;
const AT_MOST: usize = 4096;

fn main() {
    divan::main();
}

fn file(bytes: &[u8]) -> (tempfile::NamedTempFile, Arc<ModuleFile>) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let opened = File::open(file.path()).unwrap();
    (file, Arc::new(ModuleFile::from_file(opened).unwrap()))
}

#[divan::bench]
fn dump(bencher: Bencher) {
    let node = include_bytes!("../tests/fixtures/node20.dump");
    let (head, records) = node.split_at(40);
    let mut bytes = head.to_vec();
    while bytes.len() < DUMP_BYTES {
        bytes.extend_from_slice(records);
    }
    let (_kept, file) = file(&bytes);
    bencher.counter(BytesCount::new(bytes.len())).bench(|| {
        let mut dump = DumpFile::new(Arc::clone(&file), "dump");
        let mut events = Vec::new();
        let mut count = 0;
        while dump.poll(AT_MOST, &mut events).unwrap() == Progress::More {
            count += events.len();
            events.clear();
        }
        count + events.len()
    });
}

#[divan::bench]
fn perf_map(bencher: Bencher) {
    let mut bytes = Vec::new();
    for number in 0..LINES {
        let at = 0x7f00_0000_0000 + number * 64;
        writeln!(bytes, "{at:x} 40 LazyCompile:*function{number} /app/b.js:1").unwrap();
    }
    let (_kept, file) = file(&bytes);
    bencher.counter(BytesCount::new(bytes.len())).bench(|| {
        let mut map = PerfMapFile::new(Arc::clone(&file), "map");
        let mut entries = Vec::new();
        let mut count = 0;
        while map.poll(AT_MOST, &mut entries).unwrap() == Progress::More {
            count += entries.len();
            entries.clear();
        }
        count + entries.len()
    });
}
