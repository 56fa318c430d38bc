//! Recordings that are damaged, foreign or missing: `report` names file and defect, and reads all
//! intact parts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::programs;
use crate::common::vmscope::{Folder, can_sample, command, report, run};
use vmscope_records::recording::{RecordingFile, Writer};
use vmscope_records::{Limit, LimitKind, Record, TimeNs};

/// A whole recording of known_shares; `None` where there can't be one.
fn recording(folder: &Folder) -> Option<PathBuf> {
    let program = programs::build(programs::KNOWN_SHARES)?;
    if !can_sample() {
        return None;
    }
    let path = folder.file("whole.vmscope");
    let mut command = command(["record", "--quiet", "--output"]);
    command.arg(&path).arg("--").arg(program);
    command.args(["--cycles", "150"]);
    run(command).code(0);
    Some(path)
}

fn write(folder: &Folder, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.file(name);
    std::fs::write(&path, bytes).expect("a file");
    path
}

/// CRC-32 as in zlib, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1));
        }
    }
    !crc
}

#[track_caller]
fn is_refused(path: &Path, why: &str) {
    let name = path.file_name().expect("a name").to_string_lossy();
    for options in [&[][..], &["--json"]] {
        let run = report(path, options).code(2).says(&name).says(why);
        let empty = run.stdout.is_empty();
        run.check(empty, "nothing should be on stdout");
    }
}

#[test]
fn what_is_no_recording_is_refused() {
    let folder = Folder::new();
    is_refused(&folder.file("missing.vmscope"), "cannot open");
    is_refused(&write(&folder, "empty", b""), "empty");
    is_refused(
        &write(&folder, "text", b"dear diary, today I was profiled\n"),
        "not a vmscope recording",
    );
    is_refused(&write(&folder, "short", b"x"), "not a vmscope recording");
    is_refused(folder.path(), "cannot");
    is_refused(Path::new("/dev/null"), "null");
}

#[test]
fn a_recording_of_a_newer_version_is_refused() {
    let folder = Folder::new();
    let Some(whole) = recording(&folder) else {
        return;
    };
    let mut bytes = std::fs::read(whole).expect("a recording");
    // FORMAT.md: the magic number, two versions of two bytes each, a checksum.
    bytes[8..12].copy_from_slice(&[99, 0, 0, 0]);
    let checksum = crc32(&bytes[..12]);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    is_refused(&write(&folder, "newer", &bytes), "version 99.0");
}

#[test]
fn a_recording_that_is_cut_off_anywhere_is_read_up_to_there() {
    let folder = Folder::new();
    let Some(whole) = recording(&folder) else {
        return;
    };
    let bytes = std::fs::read(&whole).expect("a recording");
    let all = report(&whole, &["--json"]).code(0).json();
    let all = all["samples"]["total"].as_u64().expect("a number");
    let mut before = 0;
    for part in 1..16 {
        let length = bytes.len() * part / 16;
        let path = write(&folder, "cut.vmscope", &bytes[..length]);
        let run = report(&path, &["--json"]);
        if run.status.code() == Some(2) {
            // Before its first chunk there is nothing to report.
            assert_eq!(before, 0);
            run.says("cut.vmscope").says("cut off");
            continue;
        }
        let document = run.code(0).json();
        let samples = document["samples"]["total"].as_u64().expect("a number");
        assert!(
            (before..=all).contains(&samples),
            "{before} {samples} {all}"
        );
        before = samples;
        let text = report(&path, &[]).code(0);
        if document["session"]["complete"] == false {
            // The gravest first: right behind its heading.
            text.prints("Accuracy: - the recording ends abruptly");
        }
    }
    assert!(before > 0, "something is left of fifteen sixteenths");
}

#[test]
fn a_recording_with_flipped_bits_never_passes_for_whole() {
    let folder = Folder::new();
    let Some(whole) = recording(&folder) else {
        return;
    };
    let bytes = std::fs::read(&whole).expect("a recording");
    let sound = report(&whole, &[]).code(0).stdout;
    for part in 0..24 {
        let mut flipped = bytes.clone();
        let at = bytes.len() * part / 24;
        flipped[at] ^= 1 << (part % 8);
        let path = write(&folder, "flipped.vmscope", &flipped);
        let run = report(&path, &[]);
        if run.status.code() == Some(2) {
            run.says("flipped.vmscope");
            continue;
        }
        let run = run.code(0);
        let differs = run.stdout != sound;
        run.check(differs, &format!("byte {at} was flipped and nothing said"))
            .prints("Accuracy:");
    }
}

/// The whole recording, then 20,000 limits.
#[test]
fn beyond_its_memory_a_recording_is_read_in_part() {
    let folder = Folder::new();
    let Some(whole) = recording(&folder) else {
        return;
    };
    let mut file = std::fs::OpenOptions::new();
    let file = file.read(true).write(true).open(&whole).expect("a file");
    let store = RecordingFile::append_to(file).expect("a recording");
    let mut writer = Writer::resume(store);
    for time in 0..20_000 {
        let limit = Record::Limit(Limit {
            time: TimeNs(time),
            kind: LimitKind::Other,
            text: "too much".to_owned(),
            remedy: String::new(),
        });
        writer.put(limit).expect("a writable file");
    }
    let store = writer.close().expect("a recording");
    store.finish().expect("a file");
    let run = report(&whole, &["--max-memory=4M"]).code(0);
    run.prints("were not read, or in part: they need more than 4 MB of memory")
        .prints("report with a greater --max-memory")
        .prints("share_a");
    let run = report(&whole, &[]).code(0);
    let is_whole = !run.stdout.contains("were not read");
    run.check(is_whole, "64 MiB are enough");
    report(&whole, &["--max-memory=4"])
        .code(2)
        .says("at least 1M");
}

#[test]
fn who_reads_only_the_first_line_disturbs_nobody() {
    let folder = Folder::new();
    let Some(whole) = recording(&folder) else {
        return;
    };
    for option in ["--width=100", "--json", "--full"] {
        // The pipe's other end is closed before anything is written.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = command(["report", option]);
        command.arg(&whole).stdout(writer).stderr(Stdio::piped());
        let output = command.output().expect("vmscope");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{option}: {}\n{stderr}",
            output.status
        );
        assert_eq!(stderr, "", "{option}");
    }
    let mut head = Command::new("sh");
    head.args(["-c", "\"$1\" report --json \"$2\" | head -1", "sh"]);
    head.arg(env!("CARGO_BIN_EXE_vmscope")).arg(&whole);
    let first = run(head).code(0);
    assert_eq!((first.stdout.as_str(), first.stderr.as_str()), ("{\n", ""));
}
