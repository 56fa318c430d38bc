//! Listings of bytecodes: of every method in the snapshots, and of methods that the tests make.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::image::{ARRAY, Entry, Image, LARGE_POSITIVE, POINT, STRING};
use crate::common::{self, pairs, seen, snapshot};
use vmscope_cog::cog_method::{CogMethod, EntryKind};
use vmscope_cog::describe::{Described, Describer, Name};
use vmscope_cog::heap::Heap;
use vmscope_cog::listing::{Listing, ListingRoom};
use vmscope_cog::{CogAdapter, Encoding, Vm};
use vmscope_process::{Adapter as _, KeySource, Poll, ProcessView};
use vmscope_records::{Avma, Method, ProcessKey, Record, TimeNs};

/// A method or full block of a snapshot.
struct Listed {
    entry: CogMethod,
    described: Described,
    listing: Listing,
    /// Bytes of the object behind the listing's bytecodes.
    rest: Vec<u8>,
}

/// All methods of a snapshot, and the selectors of its inline caches.
fn listed(name: &str) -> (Vec<Listed>, BTreeSet<String>) {
    let process = snapshot(name).process();
    let seen = seen(&process);
    let memory = process.memory();
    let heap = Heap::of(&seen.vm.variables, memory).unwrap();
    let mut describer = Describer::new(&seen.vm, &seen.zone, memory).unwrap();
    let mut selectors = BTreeSet::new();
    let mut all = Vec::new();
    let entries = seen.zone.methods.entries.iter();
    for (entry, described) in entries.zip(seen.described) {
        match (entry.kind, &described.name) {
            (EntryKind::Method, _) => {}
            (EntryKind::Free, _) => continue,
            (_, Name::Selector(selector)) => {
                selectors.insert(selector.clone());
                continue;
            }
            (_, name) => panic!("{name:?}"),
        }
        let room = &mut ListingRoom::default();
        let listing = describer.listing(entry, room).unwrap().unwrap();
        let object = heap.object(entry.method).unwrap();
        let bytes = heap.bytes(&object, 1 << 20).unwrap();
        let end = listing.start as usize + listing.bytecodes.len();
        all.push(Listed {
            entry: entry.clone(),
            described,
            rest: bytes[end..].to_vec(),
            listing,
        });
    }
    (all, selectors)
}

/// Number of arguments of a selector.
fn arguments(selector: &str) -> usize {
    match selector.starts_with(|first: char| first.is_alphabetic() || first == '_') {
        true => selector.matches(':').count(),
        false => 1,
    }
}

impl Listed {
    /// Pcs and selectors of sends.
    fn sends(&self) -> impl Iterator<Item = (u32, &str)> {
        let lines = self.listing.lines.iter();
        lines.filter_map(|(pc, text)| Some((pc.0, text.split_once("end: ")?.1)))
    }

    /// Number of arguments that the send at `pc` has in its bytecode; `None` for special selectors.
    fn told_arguments(&self, pc: u32) -> Option<usize> {
        let code = &self.listing.bytecodes[(pc - self.listing.start) as usize..];
        match (self.entry.header < 0, code[0]) {
            (false, code @ 208..=255) => Some(usize::from(code - 208) / 16),
            (false, 131 | 133) => Some(usize::from(code[1] >> 5)),
            (true, code @ 128..=175) => Some(usize::from(code - 128) / 16),
            (true, 234 | 235) => Some(usize::from(code[1] & 7)),
            _ => None,
        }
    }
}

/// Compilers of both images write no source pointer: nothing or four zeros follow the last bytecode.
#[test]
fn every_method_has_instructions_up_to_its_trailer() {
    for (name, count) in [("idle", 139), ("busy", 126)] {
        let (all, _) = listed(name);
        assert_eq!(all.len(), count);
        for one in &all {
            let name = common::name(&one.described);
            assert!(one.listing.is_whole, "{name}");
            assert!(one.rest.is_empty() || one.rest == [0; 4], "{name}");
            let pcs: Vec<u32> = one.listing.lines.iter().map(|(pc, _)| pc.0).collect();
            assert!(pcs.is_sorted() && pcs[0] == one.listing.start, "{name}");
            let odd = ["(literal", "(special", "unused", "extension"];
            let is_odd = |text: &str| odd.iter().any(|odd| text.contains(odd));
            let odd: Vec<_> = one
                .listing
                .lines
                .iter()
                .filter(|(_, text)| is_odd(text))
                .collect();
            assert!(odd.is_empty(), "{name} {odd:?}");
        }
    }
}

/// Bytecodes tell the number of arguments beside the selector.
#[test]
fn selectors_of_sends_have_the_arguments_that_their_bytecodes_tell() {
    for (name, count) in [("idle", 245), ("busy", 238)] {
        let (all, _) = listed(name);
        let mut compared = 0;
        for one in &all {
            for (pc, selector) in one.sends() {
                if let Some(told) = one.told_arguments(pc) {
                    assert_eq!(told, arguments(selector), "{selector} at {pc}");
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, count, "{name}");
    }
}

/// The VM made each inline cache for a send.
#[test]
fn inline_caches_have_selectors_of_listed_sends() {
    for (name, count) in [("idle", 15), ("busy", 9)] {
        let (all, caches) = listed(name);
        let sends = all.iter().flat_map(Listed::sends);
        let sent: BTreeSet<&str> = sends.map(|(_, selector)| selector).collect();
        let unsent: Vec<_> = caches
            .iter()
            .filter(|one| !sent.contains(one.as_str()))
            .collect();
        assert_eq!((caches.len(), unsent), (count, Vec::new()), "{name}");
    }
}

/// The VM's map has a place for each send, and places for instructions only.
#[test]
fn the_map_has_the_pcs_of_the_listing() {
    for (name, count) in [("idle", 575), ("busy", 557)] {
        let (all, _) = listed(name);
        let mut compared = 0;
        for one in &all {
            let name = common::name(&one.described);
            let pcs: BTreeSet<u32> = one.listing.lines.iter().map(|(pc, _)| pc.0).collect();
            let maps = [&one.described.map]
                .into_iter()
                .chain(&one.described.block_maps);
            let mapped: BTreeSet<u32> = maps.flat_map(pairs).map(|pair| pair.bytecode).collect();
            assert!(mapped.is_subset(&pcs), "{name}");
            let blocks = one.entry.blocks.iter();
            let has_frames =
                one.entry.stack_check != 0 && blocks.clone().all(|block| block.stack_check != 0);
            if has_frames {
                // The VM has code for these sends in their place.
                let inlined = ["==", "class", "~~"];
                let sends = one
                    .sends()
                    .filter(|(_, selector)| !inlined.contains(selector));
                for (pc, selector) in sends {
                    assert!(mapped.contains(&pc), "{name} {pc} {selector}");
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, count, "{name}");
    }
}

/// Bytes and texts, checked by hand.
#[test]
fn methods_that_were_read_by_hand() {
    let (all, _) = listed("busy");
    let method = |name: &str| {
        let mut all = all.iter();
        let found = all.find(|one| common::name(&one.described) == name);
        &found.unwrap().listing
    };
    let fib: [(&[u8], &str); 20] = [
        (&[0x10], "pushTemp: 0"),
        (&[0x77], "pushConstant: 2"),
        (&[0xb2], "send: <"),
        (&[0x99], "jumpFalse: 38"),
        (&[0x76], "pushConstant: 1"),
        (&[0x7c], "returnTop"),
        (&[0x70], "self"),
        (&[0x10], "pushTemp: 0"),
        (&[0x76], "pushConstant: 1"),
        (&[0xb1], "send: -"),
        (&[0xe0], "send: fib:"),
        (&[0x70], "self"),
        (&[0x10], "pushTemp: 0"),
        (&[0x77], "pushConstant: 2"),
        (&[0xb1], "send: -"),
        (&[0xe0], "send: fib:"),
        (&[0xb0], "send: +"),
        (&[0x76], "pushConstant: 1"),
        (&[0xb0], "send: +"),
        (&[0x7c], "returnTop"),
    ];
    let mut at = 32;
    for ((bytes, text), line) in fib.iter().zip(&method("Bench>>fib:").lines) {
        assert_eq!((line.0.0, &*line.1), (at, *text));
        let from = at as usize - 32;
        let bytecodes = &method("Bench>>fib:").bytecodes;
        assert_eq!(bytecodes[from..from + bytes.len()], **bytes);
        at += bytes.len() as u32;
    }
    assert_eq!(at, 52);
    let table: [(&str, u32, &[u8], &str); 14] = [
        (
            "Bench>>counterClosure:",
            32,
            &[0x8a, 1],
            "push: (Array new: 1)",
        ),
        (
            "Bench>>counterClosure:",
            36,
            &[0x8e, 0, 1],
            "popIntoTemp: 0 inVectorAt: 1",
        ),
        (
            "Bench>>counterClosure:",
            40,
            &[0x8f, 0x11, 0, 0x12],
            "closureNumCopied: 1 numArgs: 1 bytes 44 to 61",
        ),
        (
            "Bench>>counterClosure:",
            53,
            &[0x20],
            "pushConstant: 1000000",
        ),
        ("Bench>>counterClosure:", 61, &[0x7d], "blockReturn"),
        ("Bench>>counterClosure:", 70, &[0xac, 10], "jumpFalse: 82"),
        ("Bench>>counterClosure:", 80, &[0xa3, 0xf1], "jumpTo: 67"),
        ("SmallInteger>>//", 32, &[0x8b, 12, 0], "callPrimitive: 12"),
        ("SmallInteger>>//", 37, &[0x85, 0x20], "superSend: //"),
        ("Bench>>sorting:", 48, &[0x40], "pushLit: Array"),
        ("Bench>>sorting:", 64, &[0xd1], "send: nextRandom"),
        (
            "[] in Bench>>sistaClosures:",
            19,
            &[0xfb, 0, 2],
            "pushTemp: 0 inVectorAt: 2",
        ),
        ("Array>>doSista:", 32, &[0xef, 14], "jumpFalse: 48"),
        (
            "Array>>doSista:",
            44,
            &[0xe1, 0xff, 0xed, 0xed],
            "jumpTo: 29",
        ),
    ];
    for (name, pc, bytes, text) in table {
        let listing = method(name);
        let line = listing.lines.iter().find(|(at, _)| at.0 == pc).unwrap();
        assert_eq!(line.1, text, "{name}");
        let from = (pc - listing.start) as usize;
        assert_eq!(
            listing.bytecodes[from..from + bytes.len()],
            *bytes,
            "{name}"
        );
    }
}

/// A method with generated code in a made image. Returns the listing's texts.
fn texts(image: &mut Image, header: i64, literals: &[u64], bytecodes: &[u8]) -> Vec<String> {
    let method = image.method(header, literals, bytecodes);
    let at = image.entry(&Entry {
        kind: 2,
        method,
        header,
        code: vec![0; 64],
        ..Entry::default()
    });
    let code_address = image.word_bytes(at);
    image.memory.write(Avma(method + 8), &code_address);
    let process = image.process();
    let vm = Vm::open(&process).unwrap().unwrap();
    let (zone, ()) = vm.with_zone(process.memory(), |_, _| Ok(())).unwrap();
    let mut describer = Describer::new(&vm, &zone, process.memory()).unwrap();
    let entry = zone.methods.at(Avma(at)).unwrap();
    let listing = describer.listing(entry, &mut ListingRoom::default());
    let lines = listing.unwrap().unwrap().lines;
    lines.into_iter().map(|(_, text)| text).collect()
}

/// V3: 32 and up push constants, 64 and up variables, 208 and up send, 120 returns.
#[test]
fn literals_of_32_bit_and_64_bit_vms() {
    for word in [4, 8] {
        let mut image = Image::new(word);
        image.table(&[Encoding::V3, Encoding::Sista]);
        let [key, selector, odd] =
            [&b"Display"[..], b"at:put:", b"odd symbol"].map(|name| image.symbol(name));
        let point = image.class_at(POINT);
        let association = image.object(ARRAY, 1, &[key, point]);
        let text = image.bytes(STRING, 16, b"it's\r\xe9");
        let long = image.bytes(STRING, 16, &[b'x'; 100]);
        let large = image.bytes(LARGE_POSITIVE, 16, &[0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let negative = image.bytes(32, 16, &[1, 1]);
        let huge = image.bytes(LARGE_POSITIVE, 16, &[1; 17]);
        let float = image.bytes(34, 10, &2.5_f64.to_le_bytes());
        let (one, minus) = (image.tagged(1), image.tagged(-7));
        let character = if word == 4 { 97 << 2 | 2 } else { 97 << 3 | 2 };
        let inner = image.object(ARRAY, 2, &[one, selector]);
        let array = image.object(ARRAY, 2, &[inner, character, image.nil]);
        let instance = image.object(POINT, 1, &[one, one]);
        let table = [
            (one, "1"),
            (minus, "-7"),
            (character, "$a"),
            (image.nil, "nil"),
            (selector, "#at:put:"),
            (odd, "#'odd symbol'"),
            (text, "'it''s\\ré'"),
            (large, "18446744073709551616"),
            (negative, "-257"),
            (huge, "a LargePositiveInteger"),
            (float, "2.5"),
            (array, "#(#(1 #at:put:) $a nil)"),
            (instance, "a Point"),
            (point, "Point"),
        ];
        let mut literals: Vec<u64> = table.iter().map(|(literal, _)| *literal).collect();
        let pushes = 32..32 + table.len() as u8;
        literals.extend([long, association, selector, 0x10]);
        let count = literals.len() as u8;
        let mut code: Vec<u8> = pushes.collect();
        // A long string, a variable, a send; wrong literals; a special selector.
        code.extend([32 + count - 4, 64 + count - 3, 208 + 4, 131, count - 2]);
        code.extend([32 + count - 1, 32 + count, 64, 208, 176, 177, 120]);
        let texts = texts(&mut image, i64::from(count), &literals, &code);
        let (constants, rest) = texts.split_at(table.len());
        for ((_, text), line) in table.iter().zip(constants) {
            assert_eq!(*line, format!("pushConstant: {text}"), "{word}");
        }
        let long = format!("pushConstant: '{}…'", "x".repeat(64));
        let wanted = [
            &*long,
            "pushLit: Display",
            "send: at:put:",
            "send: at:put:",
            &format!("pushConstant: (literal {})", count - 1),
            &format!("pushConstant: (literal {count})"),
            "pushLit: (literal 0)",
            "send: (literal 0)",
            "send: +",
            "send: (special selector 1)",
            "returnSelf",
        ];
        assert_eq!(rest, wanted);
    }
}

/// Immediate floats of 64-bit VMs.
#[test]
fn immediate_floats() {
    let mut image = Image::new(8);
    image.table(&[Encoding::Sista]);
    let floats = [0x7f00_0000_0000_0004, 0x7f00_0000_0000_000c, 4, 12];
    let code = [32, 33, 34, 35, 88];
    let texts = texts(&mut image, -(1 << 20) | 4, &floats, &code);
    let wanted = ["1.0", "-1.0", "0.0", "-0.0"].map(|float| format!("pushConstant: {float}"));
    assert_eq!(texts[..4], wanted);
}

/// Methods with listings among a poll's records.
fn methods(records: Vec<Record>) -> Vec<Method> {
    let methods = records.into_iter().filter_map(|record| match record {
        Record::Method(method) if !method.listing.is_empty() => Some(*method),
        _ => None,
    });
    methods.collect()
}

fn poll(
    seconds: u64,
    adapter: &mut CogAdapter,
    process: &ProcessView,
    sampled: &[u64],
) -> Vec<Method> {
    let now = TimeNs(seconds * 1_000_000_000);
    let poll = Poll::new(KeySource::new(), ProcessKey(1), Arc::new(move || now));
    let mut poll = poll.with_touched(sampled.iter().map(|at| Avma(*at)).collect());
    adapter.poll(process, &mut poll).unwrap();
    methods(poll.finish())
}

/// `Bench>>fib:` and a block inside `Bench>>counterClosure:` (`busy.expected.txt`).
const FIB: u64 = 0x563e_6cf0_1c20;
const BLOCK: u64 = 0x563e_6cf0_6000 + 500;

#[test]
fn sampled_methods_are_listed_once() {
    let process = snapshot("busy").process();
    let mut adapter = CogAdapter::new(Vm::open(&process).unwrap().unwrap());
    assert_eq!(poll(1, &mut adapter, &process, &[]), []);
    let listed = poll(
        3,
        &mut adapter,
        &process,
        &[0x10, FIB + 130, FIB + 200, BLOCK],
    );
    let names = listed.iter().map(|method| (&*method.class, &*method.name));
    let names: BTreeSet<_> = names.collect();
    assert_eq!(
        names,
        BTreeSet::from([("Bench", "fib:"), ("Bench", "counterClosure:")])
    );
    let fib = listed.iter().find(|method| method.name == "fib:").unwrap();
    assert_eq!((fib.listing.len(), fib.bytecodes.len()), (20, 20));
    assert_eq!(poll(5, &mut adapter, &process, &[FIB + 130, BLOCK]), []);
}

/// An object that moved since the zone was read is listed later.
#[test]
fn a_moved_object_is_listed_at_a_later_poll() {
    let snapshot = snapshot("busy");
    let process = snapshot.process();
    let vm = Vm::open(&process).unwrap().unwrap();
    let (zone, ()) = vm.with_zone(process.memory(), |_, _| Ok(())).unwrap();
    let object = zone.methods.at(Avma(FIB)).unwrap().method;
    // Another object's first word.
    let moved = snapshot.patched(vec![(Avma(object.0 + 8), vec![1; 8])]);
    let mut adapter = CogAdapter::new(vm);
    assert_eq!(poll(1, &mut adapter, &moved, &[FIB + 130]), []);
    let listed = poll(3, &mut adapter, &process, &[]);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].name, "fib:");
}
