use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmscope_process::ModuleFile;
use vmscope_records::Avma;

use super::{DumpFile, FileError, PerfMapFile, Progress, Unwritten};
use crate::dump::tests::encode::Encoder;
use crate::dump::{DumpError, DumpFlaw, Event, Load};
use crate::perf_map::{Entry, MapFlaw};

struct Written {
    folder: tempfile::TempDir,
    file: File,
}

impl Written {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("file")).unwrap();
        Self { folder, file }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    fn open(&self) -> Arc<ModuleFile> {
        open(&self.path())
    }
}

fn open(path: &Path) -> Arc<ModuleFile> {
    Arc::new(ModuleFile::from_file(File::open(path).unwrap()).unwrap())
}

fn load(index: u64, size: u64) -> Load {
    Load {
        time: index,
        address: Avma(0x1000 + index * 0x100),
        size,
        index,
        name: format!("function {index}"),
        lines: Vec::new(),
    }
}

fn dump_of(loads: &[Load]) -> Vec<u8> {
    let mut dump = Encoder::new(false, 0);
    for load in loads {
        dump.load(load);
    }
    dump.bytes
}

fn all(dump: &mut DumpFile, at_most: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while dump.poll(at_most, &mut events).unwrap() == Progress::More {}
    events
}

fn all_entries(map: &mut PerfMapFile, at_most: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    while map.poll(at_most, &mut entries).unwrap() == Progress::More {}
    entries
}

#[test]
fn a_dump_is_read_as_it_grows_even_without_its_folder() {
    let mut written = Written::new();
    // Code sizes from tiny to far above one chunk.
    let loads: Vec<Load> = (0..300)
        .map(|n| load(n, 1 + (n * n * 37) % 900_000))
        .collect();
    let bytes = dump_of(&loads);
    let mut dump = DumpFile::new(written.open(), "dump");
    assert!(all(&mut dump, 7).is_empty() && dump.header().is_none());
    let mut events = Vec::new();
    for piece in bytes.chunks(bytes.len() / 50 + 1) {
        written.file.write_all(piece).unwrap();
        events.extend(all(&mut dump, 7));
        if events.len() > 100 && written.folder.path().exists() {
            fs::remove_dir_all(written.folder.path()).unwrap();
        }
    }
    let expected: Vec<Event> = loads.into_iter().map(Event::Load).collect();
    assert_eq!(events, expected);
    assert_eq!(dump.header().unwrap().pid, 4711);
    assert_eq!(dump.offset(), bytes.len() as u64);
}

#[test]
fn at_most_what_was_asked_for_is_read_at_once() {
    let mut written = Written::new();
    let loads: Vec<Load> = (0..10).map(|n| load(n, 8)).collect();
    written.file.write_all(&dump_of(&loads)).unwrap();
    let mut dump = DumpFile::new(written.open(), "dump");
    let mut events = Vec::new();
    assert_eq!(dump.poll(0, &mut events).unwrap(), Progress::More);
    assert_eq!(dump.poll(4, &mut events).unwrap(), Progress::More);
    assert_eq!(events.len(), 4);
    assert_eq!(dump.poll(100, &mut events).unwrap(), Progress::CaughtUp);
    assert_eq!(events.len(), 10);
}

#[test]
fn a_dump_that_is_cut_off_or_begun_anew_is_over() {
    for anew in [false, true] {
        let mut written = Written::new();
        written.file.write_all(&dump_of(&[load(1, 8)])).unwrap();
        let mut dump = DumpFile::new(written.open(), "the dump");
        assert_eq!(all(&mut dump, 9).len(), 1);
        written.file.set_len(0).unwrap();
        written.file.rewind().unwrap();
        if anew {
            // Different timestamp, greater length.
            let mut bytes = dump_of(&[load(1, 8), load(2, 8)]);
            bytes[24] ^= 1;
            written.file.write_all(&bytes).unwrap();
        }
        let mut events = Vec::new();
        for _ in 0..2 {
            let error = dump.poll(9, &mut events).unwrap_err();
            assert!(error.is_final() && error.to_string().contains("the dump"));
            assert!(matches!(error, FileError::Overwritten { .. }), "{error}");
        }
        assert!(events.is_empty());
    }
}

#[test]
fn what_came_before_a_lie_is_read_and_the_lie_is_final() {
    let mut written = Written::new();
    let mut bytes = dump_of(&[load(1, 8), load(2, 8)]);
    bytes.extend_from_slice(&[0; 16]);
    written.file.write_all(&bytes).unwrap();
    let mut dump = DumpFile::new(written.open(), "dump");
    let mut events = Vec::new();
    for _ in 0..2 {
        let error = dump.poll(9, &mut events).unwrap_err();
        assert!(matches!(
            error,
            FileError::Dump {
                source: DumpError::Record { size: 0, .. },
                ..
            }
        ));
        assert_eq!(events.len(), 2);
    }
}

#[test]
fn what_is_torn_off_at_the_end_is_counted_once() {
    let mut written = Written::new();
    let bytes = dump_of(&[load(1, 8), load(2, 8)]);
    written.file.write_all(&bytes[..bytes.len() - 3]).unwrap();
    let mut dump = DumpFile::new(written.open(), "dump");
    let mut events = Vec::new();
    assert_eq!(dump.finish(9, &mut events).unwrap(), Progress::CaughtUp);
    assert_eq!(dump.finish(9, &mut events).unwrap(), Progress::CaughtUp);
    assert_eq!(events.len(), 1);
    assert_eq!(dump.flaws().count(DumpFlaw::Torn), 1);
}

#[test]
fn a_map_is_read_as_it_grows_and_its_last_line_when_it_is_complete() {
    let mut written = Written::new();
    let mut map = PerfMapFile::new(written.open(), "map");
    let mut text = String::new();
    for number in 1..5000 {
        text.push_str(&format!("{number:x}00 80 function {number}\n"));
    }
    text.push_str("ffff 1 last");
    let mut entries = Vec::new();
    for piece in text.as_bytes().chunks(1001) {
        written.file.write_all(piece).unwrap();
        entries.extend(all_entries(&mut map, 13));
    }
    assert_eq!(entries.len(), 4999);
    assert_eq!(map.finish(100, &mut entries).unwrap(), Progress::CaughtUp);
    assert_eq!(entries.last().unwrap().name, "last");
    assert_eq!(map.finish(100, &mut entries).unwrap(), Progress::CaughtUp);
    assert_eq!(entries.len(), 5000);
}

#[test]
fn a_map_that_is_written_anew_is_read_anew() {
    let mut written = Written::new();
    let mut map = PerfMapFile::new(written.open(), "map");
    written.file.write_all(b"10 1 a\n20 1 b\n").unwrap();
    // Appends during reading and at the end.
    let mut entries = Vec::new();
    assert_eq!(map.poll(1, &mut entries).unwrap(), Progress::More);
    written.file.write_all(b"30 1 c\n").unwrap();
    assert_eq!(map.poll(1, &mut entries).unwrap(), Progress::More);
    assert_eq!(all_entries(&mut map, 1).len(), 1);
    // Shorter; longer, with one byte of the first line changed; even longer.
    for anew in [
        "10 1 a\n",
        "10 1 x\n20 1 y\n",
        "10 1 z\n20 1 bbb\n30 1 cc\n",
    ] {
        written.file.set_len(0).unwrap();
        written.file.rewind().unwrap();
        written.file.write_all(anew.as_bytes()).unwrap();
        let mut entries = Vec::new();
        assert_eq!(map.poll(9, &mut entries).unwrap(), Progress::Rewritten);
        assert!(entries.is_empty());
        assert_eq!(all_entries(&mut map, 9).len(), anew.lines().count());
    }
    assert_eq!(all_entries(&mut map, 9), []);
}

#[test]
fn a_line_longer_than_what_is_read_at_once_is_cut() {
    let mut written = Written::new();
    written.file.write_all(b"10 1 ").unwrap();
    written.file.write_all(&vec![b'n'; 1 << 20]).unwrap();
    written.file.write_all(b"\n20 1 b\n").unwrap();
    let mut map = PerfMapFile::new(written.open(), "map");
    let entries = all_entries(&mut map, 1);
    assert_eq!((entries.len(), &*entries[1].name), (2, "b"));
    assert_eq!(map.flaws().count(MapFlaw::CutLine), 1);
}

#[test]
fn an_appended_file_is_not_taken_for_another() {
    let written = Written::new();
    let mut map = PerfMapFile::new(written.open(), "map");
    for number in 1..200 {
        let mut appended = OpenOptions::new()
            .append(true)
            .open(written.path())
            .unwrap();
        write!(appended, "{number:x} 1 n\n{number:x} 2 ").unwrap();
        let mut entries = Vec::new();
        assert_eq!(map.poll(9, &mut entries).unwrap(), Progress::CaughtUp);
        writeln!(appended, "m").unwrap();
        assert_eq!(map.poll(1, &mut entries).unwrap(), Progress::More);
        assert_eq!(entries.len(), 2);
    }
}

#[test]
fn a_file_without_an_end_is_read_in_pieces_and_not_for_ever() {
    const TEBIBYTE: u64 = 1 << 40;
    let mut written = Written::new();
    written.file.write_all(b"10 1 a\n").unwrap();
    written.file.set_len(TEBIBYTE).unwrap();
    let mut map = PerfMapFile::new(written.open(), "map");
    map.most = 10 << 20;
    let mut entries = Vec::new();
    for reading in 1..=2 {
        assert_eq!(map.poll(9, &mut entries).unwrap(), Progress::More);
        assert!(map.bytes_read() <= reading * (5 << 20));
    }
    for _ in 0..2 {
        let error = map.poll(9, &mut entries).unwrap_err();
        assert!(error.is_final() && matches!(error, FileError::TooLong { .. }));
    }
    assert_eq!(entries.len(), 1);
}

#[test]
fn a_dump_of_nothing_that_is_known_is_read_in_pieces() {
    let mut written = Written::new();
    let mut bytes = dump_of(&[load(1, 8)]);
    for _ in 0..200 {
        let mut record = Encoder::new(false, 0);
        let begin = record.bytes.len();
        record.record(77, 1, 0, |_| {});
        bytes.extend_from_slice(&record.bytes[begin..]);
        bytes.resize(bytes.len() + (300 << 10), 0);
        let size = u32::try_from(16 + (300 << 10)).unwrap();
        let at = bytes.len() - size as usize;
        bytes[at + 4..at + 8].copy_from_slice(&size.to_le_bytes());
    }
    written.file.write_all(&bytes).unwrap();
    let mut dump = DumpFile::new(written.open(), "dump");
    let mut events = Vec::new();
    let mut readings = 1;
    while dump.poll(9, &mut events).unwrap() == Progress::More {
        readings += 1;
        assert!(dump.bytes_read() <= readings * (5 << 20));
    }
    assert!((10..16).contains(&readings), "{readings}");
    assert_eq!(dump.flaws().count(DumpFlaw::UnknownKind), 200);
}

#[test]
fn what_is_not_written_yet_counts_as_written() {
    let loads: Vec<Load> = (0..3).map(|n| load(n, 8)).collect();
    let expected: Vec<Event> = loads.iter().cloned().map(Event::Load).collect();
    let bytes = dump_of(&loads);
    let lines = b"10 2 a\n20 2 b\n30 2 c\n";
    let names = |entries: &[Entry]| entries.iter().map(|entry| entry.name.clone()).collect();
    for cut in 0..bytes.len() {
        let mut written = Written::new();
        let mut dump = DumpFile::new(written.open(), "dump");
        let (there, buffered) = bytes.split_at(cut);
        written.file.write_all(there).unwrap();
        // The buffer as it grows; the VM then writes it, and it is empty.
        let mut events = Vec::new();
        for length in [0, buffered.len() / 2, buffered.len()] {
            dump.set_unwritten(behind(cut, &buffered[..length]));
            events.extend(all(&mut dump, 9));
        }
        assert_eq!(events, expected, "{cut}");
        dump.set_unwritten(Unwritten::default());
        assert!(all(&mut dump, 9).is_empty(), "{cut}");
        written.file.write_all(buffered).unwrap();
        assert!(all(&mut dump, 9).is_empty(), "{cut}");
        assert_eq!(dump.finish(9, &mut events).unwrap(), Progress::CaughtUp);
        assert_eq!(dump.offset(), bytes.len() as u64);
        assert!(dump.flaws().is_empty());
    }
    for cut in 0..lines.len() {
        let mut written = Written::new();
        let mut map = PerfMapFile::new(written.open(), "map");
        let (there, buffered) = lines.split_at(cut);
        written.file.write_all(there).unwrap();
        let mut entries = Vec::new();
        for length in [0, buffered.len() / 2, buffered.len()] {
            map.set_unwritten(behind(cut, &buffered[..length]));
            entries.extend(all_entries(&mut map, 9));
        }
        let seen: Vec<String> = names(&entries);
        assert_eq!(seen, ["a", "b", "c"], "{cut}");
        written.file.write_all(buffered).unwrap();
        written.file.write_all(b"40 2 d\n").unwrap();
        let seen: Vec<String> = names(&all_entries(&mut map, 9));
        assert_eq!(seen, ["d"], "{cut}: not read anew");
    }
}

fn behind(offset: usize, bytes: &[u8]) -> Unwritten {
    Unwritten {
        offset: offset as u64,
        bytes: bytes.to_vec(),
    }
}

#[test]
fn a_killed_vm_leaves_what_was_read_from_its_buffer() {
    let mut written = Written::new();
    let bytes = dump_of(&[load(0, 8), load(1, 8)]);
    let (there, buffered) = bytes.split_at(bytes.len() - 20);
    written.file.write_all(there).unwrap();
    let mut dump = DumpFile::new(written.open(), "dump");
    dump.set_unwritten(behind(there.len(), buffered));
    assert_eq!(all(&mut dump, 9).len(), 2);
    dump.set_unwritten(Unwritten::default());
    let mut events = Vec::new();
    assert_eq!(dump.finish(9, &mut events).unwrap(), Progress::CaughtUp);
    assert!(events.is_empty() && dump.flaws().is_empty());
    // A dump that lost bytes that were in the file is another one.
    written.file.set_len(there.len() as u64 - 1).unwrap();
    let error = dump.poll(9, &mut events).unwrap_err();
    assert!(matches!(error, FileError::Overwritten { .. }), "{error}");
}
