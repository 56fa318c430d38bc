//! A Cog VM's memory with overwritten parts, and samples in all of its code: two polls of the adapter end,
//! with records or an error.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use vmscope_cog::Family;
use vmscope_cog::testing::Snapshot;
use vmscope_process::{AdapterFamily as _, KeySource, Poll};
use vmscope_records::{Avma, ProcessKey, Record, TimeNs};

fn snapshot(core: &[u8], symbols: &[u8]) -> Snapshot {
    let unpack = |bytes| zstd::decode_all(bytes).expect("a snapshot is stored whole");
    let symbols = String::from_utf8(unpack(symbols)).expect("names are ASCII");
    Snapshot::new(unpack(core), &symbols).expect("a core file")
}

static SNAPSHOTS: LazyLock<[Snapshot; 2]> = LazyLock::new(|| {
    [
        snapshot(
            include_bytes!("../../tests/snapshots/idle.core.zst"),
            include_bytes!("../../tests/snapshots/idle.symbols.tsv.zst"),
        ),
        snapshot(
            include_bytes!("../../tests/snapshots/busy.core.zst"),
            include_bytes!("../../tests/snapshots/busy.symbols.tsv.zst"),
        ),
    ]
});

/// The input: a byte that says which snapshot, then patches of 14 bytes: kind of place, width, number of
/// the place (4), value (8).
fn patches(input: &[u8], snapshot: &Snapshot) -> Vec<(Avma, Vec<u8>)> {
    let (patches, _) = input.as_chunks::<14>();
    let patch = |patch: &[u8; 14]| {
        let [kind, width, a, b, c, d, value @ ..] = *patch;
        let at = snapshot.place(kind, u32::from_le_bytes([a, b, c, d]));
        let width = usize::from(width % 8) + 1;
        (at, value[..width].to_vec())
    };
    patches.iter().take(64).map(patch).collect()
}

fuzz_target!(|input: &[u8]| {
    let Some((which, input)) = input.split_first() else {
        return;
    };
    let snapshot = &SNAPSHOTS[usize::from(which % 2)];
    let process = snapshot.patched(patches(input, snapshot));
    let Ok(Some(mut adapter)) = Family.recognise(&process) else {
        return;
    };
    let keys = KeySource::new();
    for _ in 0..2 {
        let poll = Poll::new(keys.clone(), ProcessKey(1), Arc::new(|| TimeNs(7)));
        let mut poll = poll.with_touched(snapshot.sampled());
        let result = adapter.poll(&process, &mut poll);
        for record in poll.finish() {
            if let Record::Constituent(one) = record {
                assert!(one.start <= one.end);
            }
        }
        if let Err(error) = result {
            assert!(!error.in_full().is_empty());
        }
    }
});
