use goblin::elf::header::ET_DYN;
use goblin::elf::note::NT_GNU_BUILD_ID;
use proptest::prelude::*;
use vmscope_records::{FileOffset, Pid};

use super::prefixes::Prefixes;
use super::*;
use crate::testing::{ElfImage, FakeMemory, ImageSegment};
use crate::{LiveMemory, ModuleFile, build_id_in_memory, read_maps, symbols_in_memory};

fn image() -> Vec<u8> {
    ElfImage::new(ET_DYN)
        .note(b"GNU\0", 1, &[0; 16])
        .note(b"GNU\0", NT_GNU_BUILD_ID, &[0xab; 20])
        .function("gHotSpotVMStructs", 0x1100)
        .function("gHotSpotVMTypes", 0x1200)
        .function("other", 0x1300)
        .segment(ImageSegment {
            address: 0x1000,
            bytes: vec![0x90; 0x400],
            memory_bytes: 0x400,
            executable: true,
        })
        .build()
}

fn open(bytes: Vec<u8>) -> Result<ElfFile, ElfError> {
    ElfFile::open(Arc::new(ModuleFile::from_image(Arc::from(bytes))))
}

#[test]
fn symbols_by_name_and_by_prefix() {
    let elf = open(image()).unwrap();
    let bias = LoadBias(0x7000_0000);
    let found = elf
        .find(&["other", "absent", "gHotSpotVMStructs", "othe"], bias)
        .unwrap();
    let address = |index: usize| found[index].as_ref().map(|symbol| symbol.address);
    assert_eq!(address(0), Some(Avma(0x7000_1300)));
    assert_eq!(address(1), None);
    assert_eq!(address(2), Some(Avma(0x7000_1100)));
    assert_eq!(address(3), None);
    assert_eq!(found[0].as_ref().unwrap().size, 16);
    let names = |cap| {
        let found = elf.find_prefixes(&["gHotSpotVM"], bias, cap).unwrap();
        found.into_iter().map(|s| s.name).collect::<Vec<_>>()
    };
    assert_eq!(names(10), ["gHotSpotVMStructs", "gHotSpotVMTypes"]);
    assert_eq!(names(1).len(), 1);
}

#[test]
fn the_bias_follows_from_a_mapping() {
    let elf = open(image()).unwrap();
    let segment = elf.segments()[1];
    let mapping = |offset: u64| MapEntry {
        start: Avma(0x5555_0000),
        end: Avma(0x5555_1000),
        offset: FileOffset(offset),
        device: 0,
        inode: 1,
        name: b"/x".to_vec(),
        readable: true,
        writable: false,
        executable: true,
    };
    // The loader maps from the segment's first page.
    let bias = elf.bias(&mapping(0)).unwrap();
    assert_eq!(
        bias.apply(segment.address),
        Avma(0x5555_0000 + segment.offset)
    );
    assert_eq!(elf.bias(&mapping(0x10_0000)), None);
    // Large alignments say nothing about mapped addresses.
    let mut elf = elf;
    elf.segments[1].align = 1 << 21;
    let mut later = elf.segments[1];
    (later.offset, later.address) = (0x5db8, 0x8db8);
    elf.segments.push(later);
    assert_eq!(elf.bias(&mapping(0)), Some(bias));
    let bias = elf.bias(&mapping(0x5000)).unwrap();
    assert_eq!(bias.apply(0x8000), Avma(0x5555_0000));
}

#[test]
fn build_ids_in_files_and_in_memory() {
    let expected = BuildId::new(&[0xab; 20]);
    assert_eq!(open(image()).unwrap().build_id().unwrap(), expected);
    // In most files, as here, a note's address in memory equals its offset.
    let mut image = image();
    let notes_at: [u8; 8] = image[64 + 8..64 + 16].try_into().unwrap();
    image[64 + 16..64 + 24].copy_from_slice(&notes_at);
    let mut memory = FakeMemory::new();
    memory.put(Avma(0x7f00_0000_0000), image);
    let found = build_id_in_memory(&memory, Avma(0x7f00_0000_0000)).unwrap();
    assert_eq!(found, expected);
    assert!(build_id_in_memory(&memory, Avma(0x7f00_0000_0001)).is_err());
    assert!(build_id_in_memory(&memory, Avma(0)).is_err());
}

#[test]
fn this_program_finds_its_own_symbols_where_they_are() {
    let maps = read_maps(Pid(std::process::id())).unwrap();
    let here = Avma(build_id_in_memory as *const () as u64);
    let mapping = maps
        .entries
        .iter()
        .find(|entry| entry.contains(here))
        .unwrap();
    let file = crate::open_magic_link(std::path::Path::new("/proc/self/exe")).unwrap();
    let elf = ElfFile::open(Arc::new(file)).unwrap();
    let bias = elf.bias(mapping).unwrap();
    let mut hit = false;
    elf.for_each_symbol(&mut |name, symbol| {
        let mangled = String::from_utf8_lossy(name);
        hit |= mangled.contains("build_id_in_memory") && bias.apply(symbol.value) == here;
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(hit, "no symbol of this function at {here}");
    let name = &mapping.name;
    let first = maps
        .entries
        .iter()
        .find(|entry| entry.name == *name)
        .unwrap();
    let memory = LiveMemory::new(Pid(std::process::id()));
    let in_memory = build_id_in_memory(&memory, first.start).unwrap();
    assert_eq!(elf.build_id().unwrap(), in_memory);
}

#[test]
fn files_that_lie_about_sizes_are_errors() {
    let lie = |at: usize, bytes: &[u8]| {
        let mut image = image();
        image[at..at + bytes.len()].copy_from_slice(bytes);
        open(image).and_then(|elf| elf.find(&["x"], LoadBias(0)).map(drop))
    };
    let sections = image().len() - 0x400 - 3 * 64;
    // e_shoff; section count; sizes of the symbol table and its names.
    assert!(matches!(lie(40, &[0xff; 8]), Err(ElfError::Io { .. })));
    assert!(matches!(lie(60, &[0xff, 0xff]), Err(ElfError::Io { .. })));
    let huge = u64::MAX.to_le_bytes();
    let size = |section: usize| sections + 64 * section + 32;
    assert!(matches!(lie(size(1), &huge), Err(ElfError::TooMany { .. })));
    assert!(matches!(lie(size(2), &huge), Err(ElfError::TooMany { .. })));
    // A missing linked section: no names, so no results.
    assert!(lie(sections + 64 + 40, &[0xff; 4]).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn flipped_bytes_never_panic(
        flips in proptest::collection::vec((0usize..800, any::<u8>()), 1..12),
    ) {
        let mut bytes = image();
        let length = bytes.len();
        for (at, value) in flips {
            bytes[at % length] = value;
        }
        let mut memory = FakeMemory::new();
        memory.put(Avma(0x1000), bytes.clone());
        let _ = build_id_in_memory(&memory, Avma(0x1000));
        let _ = symbols_in_memory(&memory, Avma(0x1000), &["other"]);
        if let Ok(elf) = open(bytes) {
            let _ = elf.build_id();
            let _ = elf.find(&["other"], LoadBias(0));
            let _ = elf.find_prefixes(&[""], LoadBias(u64::MAX), 100);
        }
    }

    #[test]
    fn any_notes_are_read_without_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        align in 0u64..17,
    ) {
        let header = parse_header(&image()).unwrap();
        let _ = parse_build_id(&bytes, align, &header);
    }
}

proptest! {
    #[test]
    fn any_dynamic_section_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let header = parse_header(&image()).unwrap();
        let _ = crate::parse_dynamic(&bytes, &header);
    }
}

#[test]
fn symbols_of_a_file_whose_larger_table_lacks_some() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let functions: Vec<String> = (0..20)
        .map(|n| format!("int told_{n}() {{ return {n}; }}"))
        .collect();
    std::fs::write(path("told.c"), functions.join("\n")).unwrap();
    let run = |program: &str, words: &[&str]| {
        let mut command = std::process::Command::new(program);
        let done = command.args(words).current_dir(folder.path()).status();
        assert!(
            done.is_ok_and(|status| status.success()),
            "{program} {words:?}"
        );
    };
    run("cc", &["-shared", "-fPIC", "-o", "all.so", "told.c"]);
    run(
        "objcopy",
        &["--wildcard", "--strip-symbol=told_*", "all.so", "part.so"],
    );
    for (file, entries) in [("all.so", 40), ("part.so", 20)] {
        let elf = open(std::fs::read(path(file)).unwrap()).unwrap();
        let mut seen = 0;
        let counted = elf.for_each_symbol(&mut |name, _| {
            seen += usize::from(name.starts_with(b"told_"));
            ControlFlow::Continue(())
        });
        counted.unwrap();
        assert_eq!(seen, entries);
        let found = elf.find_prefixes(&["told_"], LoadBias(0), 100).unwrap();
        assert_eq!(found.len(), 20);
    }
}

#[test]
fn prefixes_find_what_a_pass_over_all_symbols_finds() {
    // A program with more than one piece of names, and names of several pieces' length.
    let elf = open(std::fs::read("/proc/self/exe").unwrap()).unwrap();
    for prefixes in [&["_ZN4core", "main", "_ZN3"][..], &["mem", "__"], &[""]] {
        let mut all = std::collections::BTreeMap::new();
        let passed = elf.for_each_symbol(&mut |name, raw| {
            let name = String::from_utf8_lossy(name).into_owned();
            if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                all.entry(name).or_insert(raw.value);
            }
            ControlFlow::Continue(())
        });
        passed.unwrap();
        assert!(all.len() > 2, "{prefixes:?}");
        let found = elf.find_prefixes(prefixes, LoadBias(0), usize::MAX);
        let found = found.unwrap().into_iter();
        let found: Vec<(String, u64)> = found.map(|one| (one.name, one.address.0)).collect();
        assert_eq!(found, all.into_iter().collect::<Vec<_>>());
    }
}

proptest! {
    #[test]
    fn a_binary_search_finds_the_prefix(
        prefixes in proptest::collection::vec("[ab]{0,3}", 0..6),
        name in "[ab]{0,5}",
    ) {
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        let expected = prefixes.iter().any(|prefix| name.starts_with(prefix));
        prop_assert_eq!(Prefixes::new(&prefixes).begin(name.as_bytes()), expected);
    }
}
