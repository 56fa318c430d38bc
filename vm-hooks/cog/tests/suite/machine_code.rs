//! Machine code without a snapshot: closed PICs, and the functions of stripped VMs.
#![cfg(target_arch = "x86_64")]

use crate::common::image::{Entry, Image, METHODS, POINT, POINT_CLASS, ZONE, with_block};
use crate::common::{Seen, name, places, seen};
use vmscope_cog::Encoding;
use vmscope_cog::cog_method::EntryKind;
use vmscope_process::{Memory as _, SymbolKind};
use vmscope_records::Avma;

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
            image.memory.read_pointer(at).unwrap().0
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
        let Seen {
            zone, described, ..
        } = seen(&image.process());
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
fn a_stripped_vm() {
    let mut image = Image::new(8);
    let entry = with_block(&mut image);
    image.entry(&entry);
    let text = image.objects_string(b"ceGetFP\0");
    image.variable("trampolineTableIndex", 2);
    image.variable("trampolineAddresses", text);
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
    let Seen {
        vm,
        zone,
        described,
    } = seen(&image.process());
    assert_eq!(zone.bounds.methods, Avma(METHODS));
    assert_eq!(zone.trampolines.len(), 1);
    assert_eq!(
        (&*zone.trampolines[0].name, zone.trampolines[0].start),
        ("ceGetFP", Avma(ZONE))
    );
    assert_eq!(name(&described[0]), "Point class>>origin:corner:");
    assert_eq!(places(&described[0].map).len(), 3);
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
