//! Snapshots of real JVMs with some of their memory overwritten.

use std::sync::LazyLock;

use vmscope_process::ProcessView;
use vmscope_process::testing::Patchable;

fn real(compressed: &[u8]) -> Patchable {
    let bytes = zstd::decode_all(compressed).expect("a snapshot is stored whole");
    Patchable::new(&bytes).expect("likewise")
}

static REAL: LazyLock<[Patchable; 2]> = LazyLock::new(|| {
    [
        real(include_bytes!(
            "../../../tests/snapshots/jdk17.snapshot.zst"
        )),
        real(include_bytes!(
            "../../../tests/snapshots/jdk25.snapshot.zst"
        )),
    ]
});

/// By the fuzzer's input: a byte that says which snapshot, then patches ([`Patchable::process`]).
pub fn process(input: &[u8]) -> Option<ProcessView> {
    let (which, patches) = input.split_first()?;
    Some(REAL[usize::from(which % 2)].process(patches))
}
