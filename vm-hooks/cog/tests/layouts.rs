//! Layouts without a snapshot: memory made by the test, as the sources of the VMs say (`src/lib.rs`).
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that fails is to panic"
)]

mod common;

use std::sync::Arc;

use common::image::{BYTECODE, Entry, Image, LIMIT, METHODS, POINT, POINT_CLASS, SEND, ZONE, map};
use vmscope_cog::cog_method::{EntryKind, Layout};
use vmscope_cog::describe::{Described, Describer, Name};
use vmscope_cog::map::Map;
use vmscope_cog::{CogAdapter, Cost, Encoding, Vm, Zone};
use vmscope_process::{Adapter as _, AdapterError, KeySource, Poll, ProcessView, SymbolKind};
use vmscope_records::{Avma, ProcessKey, Record, TimeNs};

fn seen(process: &ProcessView) -> (Vm, Zone, Vec<Described>) {
    let vm = Vm::open(process).unwrap().unwrap();
    let memory = process.memory();
    let (zone, described) = vm
        .with_zone(memory, |zone, _| {
            let mut describer = Describer::new(&vm, zone, memory)?;
            let entries = zone.methods.entries.iter();
            entries
                .map(|entry| describer.describe(entry))
                .collect::<Result<Vec<_>, _>>()
        })
        .unwrap();
    (vm, zone, described)
}

fn name(described: &Described) -> String {
    match &described.name {
        Name::Method(name) => name.to_string(),
        Name::Selector(selector) => format!("#{selector}"),
        Name::Unknown => "?".to_owned(),
    }
}

fn pairs(map: &Map) -> Vec<(u32, u32)> {
    match map {
        Map::Entries(entries) => entries
            .iter()
            .map(|one| (one.machine, one.bytecode))
            .collect(),
        other => panic!("{other:?}"),
    }
}

/// A method of `Point class` with a jump back, a block that returns from the method, and a send. V3:
/// 112 self, 204 send, 163 jump back, 143 makes a block, 124 and 125 return from a block, 120 returns.
fn with_block(image: &mut Image) -> Entry {
    let class = image.class_at(POINT_CLASS);
    let binding = image.binding(class);
    let selector = image.symbol(b"origin:corner:");
    let bytecodes = [112, 204, 163, 252, 143, 1, 0, 4, 112, 204, 124, 125, 120];
    let method = image.method(2, &[selector, binding], &bytecodes);
    let header = image.header_bytes();
    let block_at = 0xa0;
    let block_entry = 0xe0;
    let mut code = vec![0x90; 0xf0 - header];
    let mut block = (block_at as u16).to_le_bytes().to_vec();
    // Starts behind the bytecode that makes it.
    let start = 3 * image.word + 8;
    block.extend((start as u16).to_le_bytes());
    block.extend([0; 4]);
    block.extend((3_u32 << 8 | 0x20 << 20).to_le_bytes());
    let inside = block_at - header;
    code[inside..inside + block.len()].copy_from_slice(&block);
    let places = [
        (0x60, BYTECODE),
        (0x70, SEND),
        (0x98, BYTECODE),
        (0xc0, BYTECODE),
        (0xd0, SEND),
        (0xd8, BYTECODE),
    ];
    code.extend(map(71, &places));
    Entry {
        kind: 2,
        stack_check: 0x60,
        block_entry,
        method,
        header: 2,
        code,
        ..Entry::default()
    }
}

#[test]
fn a_classic_vm_with_blocks_inside_methods() {
    for word in [4, 8] {
        let mut image = Image::new(word);
        image.table(&[Encoding::V3, Encoding::Sista]);
        let entry = with_block(&mut image);
        let at = image.entry(&entry);
        let selector = image.symbol(b"x");
        let pic = Entry {
            kind: 5,
            selector,
            code: vec![0x90; 64],
            ..Entry::default()
        };
        image.entry(&pic);
        let freed = Entry { kind: 1, ..pic };
        image.entry(&freed);
        image.variable("youngReferrers", LIMIT - 2 * word as u64);
        let referrers = [image.word_bytes(at), image.word_bytes(at)].concat();
        image
            .memory
            .write(Avma(LIMIT - 2 * word as u64), &referrers);
        let (vm, zone, described) = seen(&image.process());
        assert_eq!(vm.bytecodes.told, Some(2));
        assert_eq!(zone.methods.layout, Some(Layout::Classic));
        assert_eq!(zone.methods.young_referrers, [Avma(at); 2]);
        let kinds: Vec<EntryKind> = zone.methods.entries.iter().map(|one| one.kind).collect();
        assert_eq!(
            kinds,
            [EntryKind::Method, EntryKind::OpenPic, EntryKind::Free]
        );
        let names: Vec<String> = described.iter().map(name).collect();
        assert_eq!(names, ["Point class>>origin:corner:", "#x", "#x"]);
        let start = 3 * word as u32;
        assert_eq!(
            pairs(&described[0].map),
            [(0x60, start), (0x70, start + 1), (0x98, start + 2)]
        );
        let block = &zone.methods.entries[0].blocks[0];
        assert_eq!((block.offset, u32::from(block.start)), (0xa0, start + 8));
        assert_eq!(
            pairs(&described[0].block_maps[0]),
            [(0xc0, start + 8), (0xd0, start + 9), (0xd8, start + 10)]
        );
    }
}

/// A full block. Sista: 76 self, 128 send, 88 returns from the method, 94 from the
/// block. Its last literal is the method around it, which has code: its first word is an address.
#[test]
fn a_pharo_vm_with_four_types() {
    for word in [4, 8] {
        let mut image = Image::new(word);
        image.table(&[Encoding::Sista]);
        let (class, selector) = (image.class_at(POINT), image.symbol(b"collect:"));
        let binding = image.binding(class);
        let method = image.method(-(1 << 20) | 2, &[selector, binding], &[76, 128, 88]);
        let home = Entry {
            kind: 2,
            block_entry: 9,
            method,
            header: -(1 << 20) | 2,
            code: [vec![0x90; 80], vec![0]].concat(),
            ..Entry::default()
        };
        let home_at = image.entry(&home);
        let bytes = image.word_bytes(home_at);
        image.memory.write(Avma(method + 8), &bytes);
        let block = image.method(1, &[method], &[224, 1, 76, 128, 225, 255, 237, 250, 88, 94]);
        let mut code = vec![0x90; 0xc0 - image.header_bytes()];
        let places = [
            (0x58, BYTECODE),
            (0x70, SEND),
            (0x80, BYTECODE),
            (0xb0, BYTECODE),
        ];
        code.extend(map(48, &places));
        let block = Entry {
            kind: 2,
            is_full_block: true,
            stack_check: 0x58,
            method: block,
            header: 1,
            code,
            ..Entry::default()
        };
        image.entry(&block);
        for kind in [3, 4] {
            let pic = Entry {
                kind,
                selector,
                code: vec![0x90; 64],
                ..Entry::default()
            };
            image.entry(&pic);
        }
        let (vm, zone, described) = seen(&image.process());
        assert_eq!(vm.bytecodes.told, Some(1));
        assert_eq!(zone.methods.layout, Some(Layout::Pharo));
        let kinds: Vec<EntryKind> = zone.methods.entries.iter().map(|one| one.kind).collect();
        let methods = [EntryKind::Method; 2];
        assert_eq!(
            kinds,
            [methods, [EntryKind::ClosedPic, EntryKind::OpenPic]].concat()
        );
        assert!(zone.methods.entries.iter().all(|one| one.block_entry == 0));
        let names: Vec<String> = described.iter().map(name).collect();
        let expected = [
            "Point>>collect:",
            "[] in Point>>collect:",
            "#collect:",
            "#collect:",
        ];
        assert_eq!(names, expected);
        assert_eq!(described[0].map, Map::Frameless);
        // The jump back begins with its extension.
        let start = 2 * word as u32;
        assert_eq!(
            pairs(&described[1].map),
            [
                (0x58, start),
                (0x70, start + 3),
                (0x80, start + 4),
                (0xb0, start + 8)
            ]
        );
    }
}

/// With types 2 and 4 only, the sizes of PICs or the number of bytecode sets show the layout.
#[test]
fn evidence_of_the_layout() {
    let pic = Entry {
        kind: 4,
        code: vec![0x90; 64],
        ..Entry::default()
    };
    let size = 40 + 64;
    for (name, layout) in [
        ("closedPICSize", Layout::Classic),
        ("openPICSize", Layout::Pharo),
    ] {
        let mut image = Image::new(8);
        image.entry(&pic);
        image.variable(name, size);
        assert_eq!(seen(&image.process()).1.methods.layout, Some(layout));
    }
    for (sets, layout) in [
        (&[Encoding::V3, Encoding::Sista][..], Some(Layout::Classic)),
        (&[Encoding::Sista], Some(Layout::Pharo)),
        (&[], None),
    ] {
        let mut image = Image::new(8);
        image.entry(&pic);
        if !sets.is_empty() {
            image.table(sets);
        }
        assert_eq!(seen(&image.process()).1.methods.layout, layout);
    }
}

/// A chunk of a closed PIC: compares a class, moves a method, jumps.
fn chunk(word: usize, at: u64, class: u32, method: u64, to: u64) -> Vec<u8> {
    let mut code = match word {
        4 => vec![0x3d],
        _ => vec![0x48, 0x3d],
    };
    code.extend(class.to_le_bytes());
    code.extend(load(word, method));
    let end = at + code.len() as u64 + 6;
    code.extend([0x0f, 0x84]);
    code.extend((to.wrapping_sub(end) as u32).to_le_bytes());
    code
}

/// Moves a word into a register.
fn load(word: usize, value: u64) -> Vec<u8> {
    match word {
        4 => [&[0xbb][..], &(value as u32).to_le_bytes()].concat(),
        _ => [&[0x48, 0xbb][..], &value.to_le_bytes()].concat(),
    }
}

fn jump(at: u64, to: u64) -> Vec<u8> {
    let distance = to.wrapping_sub(at + 5) as u32;
    [&[0xe9][..], &distance.to_le_bytes()].concat()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn cases_of_closed_pics() {
    for word in [4, 8] {
        let mut image = Image::new(word);
        image.table(&[Encoding::V3, Encoding::Sista]);
        let target = with_block(&mut image);
        let target_at = image.entry(&target);
        let to = target_at + 71;
        // An interpreted method.
        let (class, selector) = (image.class_at(POINT), image.symbol(b"y"));
        let binding = image.binding(class);
        let interpreted = image.method(2, &[selector, binding], &[120]);
        let header = image.header_bytes();
        let pic_at = {
            let at = image.address("mzFreeStart");
            vmscope_process::Memory::read_pointer(&image.memory, at)
                .unwrap()
                .0
        };
        let mut code = vec![0x90; 71 - header];
        // The comparison of the first class.
        code.extend([0x39, 0xc1, 0x75, 0x20]);
        code.extend(load(word, 0));
        let at = |code: &Vec<u8>| pic_at + (header + code.len()) as u64;
        code.extend(jump(at(&code), to));
        // The last case's chunk is the first in use; unused ones precede it.
        for (class, method, to) in [
            (0xbad, 0xbad_0005, 0x99_0000),
            (0xbad, 0xbad_0004, 0x99_0000),
            (POINT_CLASS, interpreted, pic_at + header as u64 + 8),
            (60, 0, pic_at + header as u64),
            (POINT, 0, to),
        ] {
            code.extend(chunk(word, at(&code), class, method, to));
        }
        code.extend(jump(at(&code), ZONE));
        let pic = Entry {
            kind: 4,
            stack_check: 4,
            selector,
            code,
            ..Entry::default()
        };
        assert_eq!(image.entry(&pic), pic_at);
        // A linked send: moves a class, calls the PIC's checked entry.
        let sender = {
            let mut sender = with_block(&mut image);
            sender.block_entry = 0;
            let sender_at = (pic_at + header as u64 + pic.code.len() as u64).next_multiple_of(8);
            let end = 0x70 - header;
            let call = (pic_at + 48).wrapping_sub(sender_at + 0x70) as u32;
            sender.code[end - 10] = 0xba;
            sender.code[end - 9..end - 5].copy_from_slice(&51_u32.to_le_bytes());
            sender.code[end - 5] = 0xe8;
            sender.code[end - 4..end].copy_from_slice(&call.to_le_bytes());
            sender
        };
        image.entry(&sender);
        image.variable("closedPICSize", (header + pic.code.len()) as u64);
        let (_, zone, described) = seen(&image.process());
        assert_eq!(zone.methods.entries[1].kind, EntryKind::ClosedPic);
        let cases = described[1].cases.iter();
        let cases: Vec<(&str, &str)> = cases.map(|case| (&*case.class, &*case.target)).collect();
        assert_eq!(
            cases,
            [
                ("Array", "Point class>>origin:corner:"),
                ("Point", "Point class>>origin:corner:"),
                ("Symbol", "#doesNotUnderstand:"),
                ("Point class", "Point>>y"),
            ]
        );
    }
}

/// Functions that tell variables, as compilers make them.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_stripped_vm() {
    let mut image = Image::new(8);
    let entry = with_block(&mut image);
    image.entry(&entry);
    let name = image.objects_string(b"ceGetFP\0");
    image.variable("trampolineTableIndex", 2);
    image.variable("trampolineAddresses", name);
    image.variable("second word", ZONE);
    let mut functions = Vec::new();
    let mut at = 0x1_0000_u64;
    let operand = |image: &Image, at: u64, name: &str, offset: u64| {
        let end = at + 7;
        ((image.address(name).0 + offset).wrapping_sub(end) as u32).to_le_bytes()
    };
    for (function, loads) in [
        ("cogCodeBase", &["codeBase"][..]),
        ("minCogMethodAddress", &["methodZoneBase"]),
        ("maxCogMethodAddress", &["mzFreeStart"]),
        (
            "printCogYoungReferrers",
            &["youngReferrers", "limitAddress"],
        ),
        ("splObj", &["specialObjectsOop"]),
        ("classAtIndex", &["hiddenRootsObj"]),
        (
            "codeEntryNameFor",
            &["trampolineTableIndex", "trampolineAddresses"],
        ),
    ] {
        let mut code = Vec::new();
        for (number, name) in loads.iter().enumerate() {
            let is_array = function == "codeEntryNameFor" && number == 1;
            let here = at + code.len() as u64;
            code.extend([0x48, if is_array { 0x8d } else { 0x8b }, 0x05]);
            code.extend(operand(&image, here, name, if is_array { 8 } else { 0 }));
        }
        code.push(0xc3);
        image.memory.put(Avma(at), code.clone());
        functions.push((function, Avma(at), code.len() as u64));
        at += 0x100;
    }
    image.symbols.clear();
    for (name, at, size) in functions {
        image.add_symbol(name, at, size, SymbolKind::Function);
    }
    let (vm, zone, described) = seen(&image.process());
    assert_eq!(zone.bounds.methods, Avma(METHODS));
    assert_eq!(zone.trampolines.len(), 1);
    assert_eq!(
        (&*zone.trampolines[0].name, zone.trampolines[0].start),
        ("ceGetFP", Avma(ZONE))
    );
    assert_eq!(name_of_first(&described), "Point class>>origin:corner:");
    assert_eq!(pairs(&described[0].map).len(), 3);
    for limit in [
        "stripped",
        "cmNoCheckEntryOffset",
        "collections",
        "bytecodes",
    ] {
        let mut limits = vm.limits.iter();
        assert!(
            limits.any(|text| text.contains(limit)),
            "{limit}: {:?}",
            vm.limits
        );
    }
}

/// A look at a full zone of 16 MiB takes as many reads as a look at a small zone.
#[test]
fn the_cost_of_a_full_zone() {
    let full = |methods: usize, bytes: u64| {
        let mut image = Image::with_zone(8, ZONE + bytes);
        image.table(&[Encoding::V3, Encoding::Sista]);
        let entry = with_block(&mut image);
        for _ in 0..methods {
            image.entry(&entry);
        }
        let process = image.process();
        let mut adapter = CogAdapter::new(Vm::open(&process).unwrap().unwrap());
        let keys = KeySource::new();
        let mut costs = Vec::new();
        for _ in 0..2 {
            let mut poll = Poll::new(keys.clone(), ProcessKey(1), Arc::new(|| TimeNs(7)));
            adapter.poll(&process, &mut poll).unwrap();
            let records = poll.finish();
            let code = |record: &&Record| matches!(record, Record::Constituent(_));
            costs.push((records.iter().filter(code).count(), adapter.cost()));
        }
        costs
    };
    let small = full(875, 1 << 20);
    let large = full(60_000, 16 << 20);
    // A method, its block, the entry of blocks; free space.
    assert_eq!((small[0].0, large[0].0), (3 * 875 + 1, 3 * 60_000 + 1));
    assert_eq!((small[1].0, large[1].0), (0, 0));
    let again = |costs: &[(usize, Cost)]| costs[1].1.reads - costs[0].1.reads;
    assert_eq!(again(&small), again(&large));
    let bytes = large[1].1.bytes - large[0].1.bytes;
    assert!(bytes < 17 << 20, "{bytes}");
    // New entries: counters once for 32 of them.
    assert!(large[0].1.reads < 2_000, "{large:?}");
}

fn name_of_first(described: &[Described]) -> String {
    described.first().map(name).unwrap_or_default()
}

/// Objects that lead nowhere: names are unknown, and the reading ends.
#[test]
fn cycles_and_holes() {
    for word in [4, 8] {
        let mut image = Image::new(word);
        let mut entry = with_block(&mut image);
        // A forwarder to itself.
        let forwarder = image.object(8, 7, &[0]);
        let bytes = image.word_bytes(forwarder);
        image.memory.write(Avma(forwarder + 8), &bytes);
        entry.method = forwarder;
        image.entry(&entry);
        // A block in itself.
        let circle = image.method(1, &[0], &[120]);
        let bytes = image.word_bytes(circle);
        image.memory.write(Avma(circle + 8 + word as u64), &bytes);
        entry.method = circle;
        entry.header = 1;
        image.entry(&entry);
        // A class without a name.
        let class = image.object(16, 1, &[0; 8]);
        let binding = image.binding(class);
        let selector = image.symbol(b"zork");
        entry.method = image.method(2, &[selector, binding], &[120]);
        entry.header = 2;
        image.entry(&entry);
        let (_, _, described) = seen(&image.process());
        let names: Vec<String> = described.iter().map(name).collect();
        assert_eq!(names, ["?", "?", "?>>zork"]);
    }
}

#[test]
fn a_process_without_cog_and_a_vm_that_starts() {
    let mut image = Image::new(8);
    image.variable("mzFreeStart", 0);
    let error = Vm::open(&image.process()).unwrap_err();
    assert!(matches!(error, AdapterError::NotReady { .. }));
    image.symbols.retain(|symbol| symbol.name != "limitAddress");
    assert!(Vm::open(&image.process()).unwrap().is_none());
}
