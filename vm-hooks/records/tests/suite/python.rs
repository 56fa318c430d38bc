//! A reader in another language, written from FORMAT.md, reads the same.

use crate::common;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use vmscope_records::*;

/// Whether the machine has python3 with a zstd module.
fn available() -> bool {
    let works = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    works("python3", &["--version"])
        && (works("python3", &["-c", "import compression.zstd"])
            || works("python3", &["-c", "import zstandard"])
            || works("zstd", &["--version"]))
}

/// What reader.py must print about `bytes`.
fn expected(bytes: &[u8]) -> String {
    let read = common::read(bytes).unwrap();
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    let mut names = BTreeMap::new();
    let (mut pc_sum, mut last) = (0_u64, 0);
    for record in &read.records {
        match record {
            Record::Thread(thread) => _ = names.insert(thread.key.0, thread.name.clone()),
            Record::Sample(sample) => {
                *counts.entry(sample.thread.0).or_default() += 1;
                pc_sum = pc_sum.wrapping_add(sample.pc.0);
                last = sample.time.0;
            }
            _ => {}
        }
    }
    let samples: u64 = counts.values().sum();
    let threads: Vec<String> = (counts.iter())
        .map(|(key, count)| {
            let name = names
                .get(key)
                .map_or("null".to_owned(), |name| format!("\"{name}\""));
            format!("{{\"key\": {key}, \"name\": {name}, \"samples\": {count}}}")
        })
        .collect();
    let damages: Vec<String> = (read.ending.damages.iter())
        .map(|damage| format!("[{}, {}]", damage.offset, damage.bytes))
        .collect();
    let end = read.end().map_or("null", |_| "\"target exited\"");
    format!(
        "{{\"samples\": {samples}, \"in_order\": {samples}, \"last_sample\": {last}, \
         \"pc_sum\": {pc_sum}, \"threads\": [{}], \"unknown\": {}, \"damages\": [{}], \
         \"end\": {end}}}\n",
        threads.join(", "),
        read.unknown,
        damages.join(", "),
    )
}

#[test]
fn python_reads_what_we_read() {
    if !available() {
        common::skip(
            "python_reads_what_we_read",
            "it needs python3, and zstd for it",
        );
        return;
    }
    let mut records = common::every_kind();
    records.retain(|record| !matches!(record, Record::Sample(_) | Record::Thread(_)));
    records.extend((1..4).map(|key| common::thread(5, key)));
    records.extend((0..5_000_u32).map(|n| {
        common::sample(
            u64::from(n) * 713_927,
            1 + n % 4,
            (u64::MAX / 3).wrapping_mul(u64::from(n % 7)),
        )
    }));
    let whole = common::write(&records, &[80, 1_000, 2_000, 3_000, 4_000]);
    // Torn in its last chunk, and with a payload and a header flipped on the way.
    let torn = whole[..whole.len() - 20].to_vec();
    let mut flipped = whole.clone();
    let chunk_at = |nth: usize| {
        let mut starts = whole.windows(4).enumerate().filter(|(_, w)| w == b"VMSC");
        starts.nth(nth).unwrap().0
    };
    flipped[chunk_at(3) + 50] ^= 4;
    flipped[chunk_at(5) + 30] ^= 4;
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, damages) in [
        ("whole", whole, 0),
        ("torn", torn, 1),
        ("flipped", flipped, 2),
    ] {
        assert_eq!(
            common::read(&bytes).unwrap().ending.damage_count,
            damages,
            "{name}"
        );
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes).unwrap();
        let reader = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reader.py");
        let output = Command::new("python3")
            .arg(reader)
            .arg(&path)
            .output()
            .unwrap();
        let problems = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {problems}");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            expected(&bytes),
            "{name}"
        );
    }
}
