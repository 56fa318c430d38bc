//! A Node.js's memory with overwritten parts: all polls and checks of the layout end, with
//! records or an error.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use vmscope_process::testing::Patchable;
use vmscope_v8::testing::{all_code, check_layout, constituents};

fn snapshot(compressed: &[u8]) -> Patchable {
    let bytes = zstd::decode_all(compressed).expect("a snapshot is stored whole");
    Patchable::new(&bytes).expect("likewise")
}

static SNAPSHOTS: LazyLock<[Patchable; 5]> = LazyLock::new(|| {
    [
        snapshot(include_bytes!("../../tests/snapshots/node18.snapshot.zst")),
        snapshot(include_bytes!("../../tests/snapshots/node20.snapshot.zst")),
        snapshot(include_bytes!("../../tests/snapshots/node22.snapshot.zst")),
        snapshot(include_bytes!("../../tests/snapshots/node24.snapshot.zst")),
        snapshot(include_bytes!("../../tests/snapshots/node26.snapshot.zst")),
    ]
});

// The input: a byte that says which snapshot, then patches.
fuzz_target!(|input: &[u8]| {
    let Some((which, patches)) = input.split_first() else {
        return;
    };
    let process = SNAPSHOTS[usize::from(*which) % SNAPSHOTS.len()].process(patches);
    match all_code(&process) {
        Ok(records) => {
            for one in constituents(&records) {
                assert!(one.start < one.end);
            }
        }
        Err(error) => assert!(!error.in_full().is_empty()),
    }
    if let Err(error) = check_layout(&process) {
        assert!(!error.in_full().is_empty());
    }
});
