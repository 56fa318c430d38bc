//! Layouts without a snapshot: memory made by the test, as the sources of the VMs say (`src/lib.rs`).

use std::sync::Arc;

use crate::common::image::{BYTECODE, Entry, Image, LIMIT, POINT, SEND, ZONE, map, with_block};
use crate::common::{Seen, name, places, seen};
use vmscope_cog::cog_method::{EntryKind, Layout};
use vmscope_cog::map::Map;
use vmscope_cog::{CogAdapter, Cost, Encoding, Vm};
use vmscope_process::{Adapter as _, AdapterError, KeySource, Poll};
use vmscope_records::{Avma, ProcessKey, Record, TimeNs};

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
        let Seen {
            vm,
            zone,
            described,
        } = seen(&image.process());
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
            places(&described[0].map),
            [(0x60, start), (0x70, start + 1), (0x98, start + 2)]
        );
        let block = &zone.methods.entries[0].blocks[0];
        assert_eq!((block.offset, u32::from(block.start)), (0xa0, start + 8));
        assert_eq!(
            places(&described[0].block_maps[0]),
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
        let annotated = [
            (0x58, BYTECODE),
            (0x70, SEND),
            (0x80, BYTECODE),
            (0xb0, BYTECODE),
        ];
        code.extend(map(48, &annotated));
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
        let Seen {
            vm,
            zone,
            described,
        } = seen(&image.process());
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
            places(&described[1].map),
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
        assert_eq!(seen(&image.process()).zone.methods.layout, Some(layout));
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
        assert_eq!(seen(&image.process()).zone.methods.layout, layout);
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
        for seconds in [1, 3] {
            let now = TimeNs(seconds * 1_000_000_000);
            let mut poll = Poll::new(keys.clone(), ProcessKey(1), Arc::new(move || now));
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
        let Seen { described, .. } = seen(&image.process());
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
