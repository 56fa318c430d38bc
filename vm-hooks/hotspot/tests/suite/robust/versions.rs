//! JVMs of versions that nobody has tried.

use super::readings::{fields, read, write};
use crate::snapshot_files::snapshot;

/// The snapshot with another version number.
fn of_version(name: &str, major: u32) -> vmscope_process::testing::Snapshot {
    let mut other = snapshot(name);
    let entries = fields(&other);
    let place = |structure: &str, field: &str| {
        let mut all = entries.iter();
        let found = all.find(|entry| (&*entry.structure, &*entry.field) == (structure, field));
        found.map(|entry| entry.address)
    };
    if let Some(at) = place("JDK_Version", "_current") {
        write(&mut other, at, &[u8::try_from(major).unwrap()]);
    } else {
        let at = place("Abstract_VM_Version", "_vm_major_version").unwrap();
        write(&mut other, at, &major.to_le_bytes());
    }
    other
}

#[test]
fn a_newer_one_is_read_and_told_to_be_unknown() {
    let all = read(&snapshot("jdk25").process());
    let newer = read(&of_version("jdk25", 99).process());
    assert_eq!(newer.errors.len(), 0);
    assert_eq!(newer.compiled().count(), all.compiled().count());
    let limits = newer.limits();
    let told = limits
        .iter()
        .filter(|text| text.contains("tested: 11 to 27"));
    assert_eq!(told.count(), 1, "{limits:?}");
    assert!(!all.limits().iter().any(|text| text.contains("tested")));
}

#[test]
fn an_older_one_is_told_to_be_unknown() {
    let older = read(&of_version("jdk17", 8).process());
    let limits = older.limits();
    assert!(
        limits.iter().any(|text| text.contains("not tested with")),
        "{limits:?}"
    );
}

/// Version 0, during the start: every poll tries again.
#[test]
fn one_that_starts_is_waited_for() {
    let told = read(&of_version("jdk17", 0).process());
    assert_eq!(told.errors.len(), 3, "each look");
    for error in &told.errors {
        assert!(!error.is_final(), "{error}");
    }
    assert_eq!(told.constituents().count(), 0);
    assert!(told.limits().is_empty());
}
