use proptest::prelude::*;

use super::*;
use crate::testing::{ElfImage, ImageSegment};

/// A core file with two segments: one complete, one cut off after 16 bytes.
fn synthetic() -> Vec<u8> {
    let mut files = Vec::new();
    for word in [
        2u64, 0x1000, 0x40_0000, 0x40_1000, 3, 0x50_0000, 0x50_2000, 0,
    ] {
        files.extend_from_slice(&word.to_le_bytes());
    }
    files.extend_from_slice(b"vm\0/lib/\xff.so\0");
    let mut process = vec![0; 136];
    process[24..28].copy_from_slice(&77u32.to_le_bytes());
    process[40..42].copy_from_slice(b"vm");
    process[56..66].copy_from_slice(b"vm --jit  ");
    let mut thread = vec![0; 336];
    thread[12] = 11;
    thread[32..36].copy_from_slice(&78u32.to_le_bytes());
    thread[48] = 2; // 2 s, 5 µs of user time
    thread[56] = 5;
    for (place, value) in (0..27u8).enumerate() {
        thread[REGISTERS_AT + 8 * place] = value;
    }
    let auxiliary: Vec<u8> = [7u64, 1, AT_SYSINFO_EHDR, 0x70_0000, 0, 0]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    ElfImage::new(ET_CORE)
        .note(b"CORE\0", NT_PRSTATUS, &thread)
        .note(b"CORE\0", NT_PRPSINFO, &process)
        .note(b"CORE\0", NT_FILE, &files)
        .note(b"CORE\0", NT_AUXV, &auxiliary)
        .segment(ImageSegment {
            address: 0x40_0000,
            bytes: (0..=255).cycle().take(0x1000).collect(),
            memory_bytes: 0x1000,
            executable: true,
        })
        .segment(ImageSegment {
            address: 0x70_0000,
            bytes: vec![7; 16],
            memory_bytes: 0x1000,
            executable: false,
        })
        .build()
}

fn open(bytes: Vec<u8>) -> Result<CoreFile, ElfError> {
    CoreFile::from_file(Arc::new(ModuleFile::from_image(Arc::from(bytes))))
}

#[test]
fn memory_and_notes_of_a_core_file() {
    let core = open(synthetic()).unwrap();
    assert_eq!(core.read_u32(Avma(0x40_0004)).unwrap(), 0x0706_0504);
    let info = core.info();
    assert_eq!(info.pid, Some(Pid(77)));
    assert_eq!(info.name, "vm");
    assert_eq!(info.command, "vm --jit");
    let [thread] = &info.threads[..] else {
        panic!("{:?}", info.threads);
    };
    assert_eq!((thread.tid, info.signal), (Tid(78), 11));
    assert_eq!(thread.cpu, DurationNs(2_000_005_000));
    let registers = thread.registers.as_ref().unwrap();
    let value = |register| registers.value(register);
    // BP, SP, IP, R15 (`perf_regs.h`) and their places in `struct user_regs_struct`.
    assert_eq!([6, 7, 8, 23].map(value), [4, 19, 16, 0].map(Some));
    assert_eq!(info.arch, Arch::X86_64);
    let names: Vec<_> = info.mappings.iter().map(MapEntry::display_name).collect();
    assert_eq!(names, ["vm", "/lib/\u{fffd}.so", "[vdso]"]);
    assert_eq!(info.mappings[0].path(), Some(&b"vm"[..]));
    assert_eq!(info.mappings[2].path(), None);
    assert_eq!(info.mappings[0].offset, FileOffset(0x3000));
    assert!(info.mappings[0].executable);
    assert!(!info.mappings[1].executable);
}

#[test]
fn what_was_not_dumped_is_unmapped_not_zero() {
    let core = open(synthetic()).unwrap();
    assert_eq!(
        core.read_u64(Avma(0x70_0008)).unwrap(),
        0x0707_0707_0707_0707
    );
    for at in [
        0x70_0009,
        0x70_0010,
        0x70_0fff,
        0x50_0000,
        0x3f_ffff,
        u64::MAX - 8,
    ] {
        let result = core.read_u64(Avma(at));
        assert!(
            matches!(result, Err(MemoryError::Unmapped { .. })),
            "{at:#x}: {result:?}"
        );
    }
}

#[test]
fn a_core_file_that_is_cut_off_ends_where_it_ends() {
    let mut bytes = synthetic();
    bytes.truncate(bytes.len() - 16 - 0x800);
    let core = open(bytes).unwrap();
    assert!(core.read_u64(Avma(0x40_0000)).is_ok());
    assert!(matches!(
        core.read_u64(Avma(0x40_0ffc)),
        Err(MemoryError::Unmapped { .. })
    ));
}

#[test]
fn what_is_no_core_file_is_said_to_be_none() {
    assert!(matches!(open(Vec::new()), Err(ElfError::Io { .. })));
    assert!(matches!(
        open(vec![0; 200]),
        Err(ElfError::Malformed { .. })
    ));
    let program = CoreFile::open(Path::new("/proc/self/exe"));
    assert!(matches!(program, Err(ElfError::NotACore { .. })));
}

#[test]
fn tables_that_lie_about_their_size_are_errors() {
    let lie = |at: usize, bytes: &[u8]| {
        let mut core = synthetic();
        core[at..at + bytes.len()].copy_from_slice(bytes);
        open(core)
    };
    // e_phoff past the end; e_phnum too large; e_phentsize of another class.
    assert!(matches!(lie(32, &[0xff; 8]), Err(ElfError::Io { .. })));
    assert!(matches!(lie(56, &[0xfe, 0xff]), Err(ElfError::Io { .. })));
    assert!(matches!(lie(54, &[32, 0]), Err(ElfError::EntrySize { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn flipped_bytes_never_panic(
        flips in proptest::collection::vec((0usize..1200, any::<u8>()), 1..12),
        reads in proptest::collection::vec(any::<u64>(), 3),
    ) {
        let mut bytes = synthetic();
        for (at, value) in flips {
            bytes[at] = value;
        }
        if let Ok(core) = open(bytes) {
            for at in reads.into_iter().chain([0x40_0000, 0x70_000c]) {
                let _ = core.read_u64(Avma(at));
                let _ = core.read_c_string(Avma(at), 5000);
            }
        }
    }

    #[test]
    fn any_file_note_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let core = synthetic();
        let header = crate::parse_header(&core).unwrap();
        let _ = parse_files(&bytes, &header);
    }
}
