//! The snapshots of Cog VMs, for tests.

use super::Shown;
use super::pairs::pairs;
use std::path::Path;
use vmscope_cog::testing::Snapshot;
use vmscope_sampler::read_code;

/// A file of the snapshots, unpacked.
pub(crate) fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../vm-hooks/cog/tests/snapshots");
    let bytes = std::fs::read(folder.join(name)).unwrap();
    match name.ends_with(".zst") {
        true => zstd::decode_all(bytes.as_slice()).unwrap(),
        false => bytes,
    }
}

/// The pairs of a snapshot's VM.
pub(crate) fn pairs_of(name: &str, is_detailed: bool, is_all: bool) -> String {
    let symbols = String::from_utf8(file(&format!("{name}.symbols.tsv.zst"))).unwrap();
    let snapshot = Snapshot::new(file(&format!("{name}.core.zst")), &symbols).unwrap();
    let families = crate::record::families::FamilyOptions::default().attaching(None);
    let code = read_code(&snapshot.process(), families, is_detailed, &|| false).unwrap();
    pairs(&Shown::of(&code, is_detailed), is_all)
}
