use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;

use vmscope_process::testing::FakeMemory;
use vmscope_process::{MapEntry, ModuleFile, ProcessView, Symbol, SymbolKind};
use vmscope_records::{Avma, FileOffset, Pid};

use super::{LIST, Streams, Unwritten};

const LIST_AT: u64 = 0x1000;
const BUFFER: u64 = 0x8000;
const LIBC: &str = "/usr/lib/libc.so.6";

/// Words of a `FILE` whose buffer of 4 KiB holds `length` unwritten bytes.
fn stream(next: u64, descriptor: i32, length: u64) -> [u64; 15] {
    let mut words = [0; 15];
    words[0] = 0xFBAD_2C84;
    words[4] = BUFFER;
    words[5] = BUFFER.wrapping_add(length);
    words[7] = BUFFER;
    words[8] = BUFFER + 4096;
    words[13] = next;
    words[14] = u64::from(descriptor.cast_unsigned());
    words
}

/// A fake process with this process's descriptors. Its streams begin at 0x2000.
fn process(streams: &[[u64; 15]], buffer: &[u8]) -> ProcessView {
    let mut memory = FakeMemory::new();
    memory.put(Avma(LIST_AT), 0x2000_u64.to_le_bytes().to_vec());
    for (words, at) in streams.iter().zip((0x2000..).step_by(0x1000)) {
        memory.put(
            Avma(at),
            words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        );
    }
    memory.put(Avma(BUFFER), buffer.to_vec());
    let libc = MapEntry {
        start: Avma(1 << 30),
        end: Avma(2 << 30),
        offset: FileOffset(0),
        device: 1,
        inode: 1,
        name: LIBC.as_bytes().to_vec(),
        readable: true,
        writable: false,
        executable: true,
    };
    let list = Symbol {
        name: LIST.to_owned(),
        address: Avma(LIST_AT),
        size: 8,
        kind: SymbolKind::Object,
    };
    let process = ProcessView::fake(Pid(std::process::id()), Arc::new(memory), vec![libc]);
    process.with_symbols(LIBC, vec![list])
}

/// An open file with this content.
fn file(content: &[u8]) -> (File, ModuleFile) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    let module = ModuleFile::from_file(file.try_clone().unwrap()).unwrap();
    (file, module)
}

fn seen(process: &ProcessView, module: &ModuleFile) -> Option<Unwritten> {
    Streams::of(process).unwrap().unwritten(process, module)
}

#[test]
fn the_buffer_of_the_file_is_found_among_others() {
    let (dump, module) = file(b"head");
    let (other, _) = file(b"other");
    let streams = [
        stream(0x3000, -1, 9),
        stream(0x4000, other.as_raw_fd(), 9),
        stream(0, dump.as_raw_fd(), 5),
    ];
    let expected = Unwritten {
        offset: 4,
        bytes: b"tail!".to_vec(),
    };
    assert_eq!(
        seen(&process(&streams, b"tail!!!!!"), &module),
        Some(expected)
    );
    // Nothing in the buffer
    let empty = [stream(0, dump.as_raw_fd(), 0)];
    let unwritten = seen(&process(&empty, b""), &module).unwrap();
    assert_eq!((unwritten.offset, unwritten.bytes), (4, Vec::new()));
    // Of another file alone
    assert_eq!(seen(&process(&streams[..2], b"tail!!!!!"), &module), None);
}

#[test]
fn bytes_that_the_file_holds_already_are_not_unwritten() {
    let (dump, module) = file(b"head, tail!");
    let streams = [stream(0, dump.as_raw_fd(), 5)];
    assert_eq!(seen(&process(&streams, b"tail!"), &module), None);
}

#[test]
fn hostile_streams_are_none() {
    let (dump, module) = file(b"head");
    let good = stream(0, dump.as_raw_fd(), 5);
    let with = |at: usize, word: u64| {
        let mut words = good;
        words[at] = word;
        seen(&process(&[words], b"tail!"), &module)
    };
    assert!(with(0, 0xFBAD_2C84).is_some());
    assert_eq!(with(0, 0x1234_2C84), None, "no stream");
    for (at, words) in [
        (4, [0, BUFFER - 1, u64::MAX]),
        (5, [0, BUFFER + 4097, u64::MAX]),
        (7, [BUFFER + 1, u64::MAX, BUFFER + 5000]),
        (8, [0, BUFFER + 4, BUFFER - 1]),
    ] {
        for word in words {
            assert_eq!(with(at, word), None, "{at}: {word:#x}");
        }
    }
    // A buffer of all memory, unreadable
    let mut words = good;
    (words[5], words[8]) = (u64::MAX, u64::MAX);
    assert_eq!(seen(&process(&[words], b"tail!"), &module), None);
    // A circle
    let circle = [stream(0x2000, -1, 0)];
    assert_eq!(seen(&process(&circle, b""), &module), None);
    assert!(
        Streams::of(&ProcessView::fake(
            Pid(1),
            Arc::new(FakeMemory::new()),
            vec![]
        ))
        .is_none()
    );
}
