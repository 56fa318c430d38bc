//! Snapshots of VMs: the reader finds what another reader found, and what the VM itself told
//! (`tests/snapshots/README.md`).

use crate::common::{self, Seen, name, pairs, snapshot, text};
use vmscope_cog::cog_method::EntryKind;
use vmscope_cog::map::Map;
use vmscope_cog::{Bytecodes, Encoding, Sets};

/// A place that the expected text lacks: the return from `Bench>>counterClosure:` by a block inside it.
/// Its bytecode 124 is mapped in blocks, and the method's map has the place.
const NON_LOCAL_RETURN: &str = " +725:57";

fn seen_in(name: &str) -> Seen {
    common::seen(&snapshot(name).process())
}

fn put_map(map: &Map, indent: &str, lines: &mut Vec<String>) {
    let pairs = pairs(map).iter();
    let pairs: Vec<String> = pairs
        .map(|pair| format!("+{}:{}", pair.machine, pair.bytecode))
        .collect();
    if !pairs.is_empty() {
        lines.push(format!("{indent}{}", pairs.join(" ")));
    }
}

/// The reader's findings in the form of the expected text.
fn told(seen: &Seen) -> Vec<String> {
    let bounds = &seen.zone.bounds;
    let mut lines = vec![format!(
        "codeBase {:x} methodZoneBase {:x} mzFreeStart {:x} limit {:x} youngRef {:x} ; {} trampolines {} methods",
        bounds.start.0,
        bounds.methods.0,
        bounds.free.0,
        bounds.end.0,
        bounds.young_referrers.0,
        seen.zone.trampolines.len(),
        seen.zone.methods.entries.len()
    )];
    for trampoline in &seen.zone.trampolines {
        lines.push(format!("T {:x} {}", trampoline.start.0, trampoline.name));
    }
    for (entry, described) in seen.zone.methods.entries.iter().zip(&seen.described) {
        let kind = match entry.kind {
            EntryKind::Free => "Free     ",
            EntryKind::Method if entry.is_full_block => "Method    fullblock",
            EntryKind::Method => "Method   ",
            EntryKind::ClosedPic => "ClosedPIC",
            EntryKind::OpenPic => "OpenPIC  ",
        };
        let name = match (entry.kind, name(described)) {
            (EntryKind::Free, name) if name == "?" => "freed #None".to_owned(),
            (EntryKind::Free, name) => format!("freed {name}"),
            (_, name) => name,
        };
        let mut line = format!(
            "{:x} {:5} {kind} nargs {} sco {} beo {} usage {} ",
            entry.at.0,
            entry.size,
            entry.arguments,
            entry.stack_check,
            entry.block_entry,
            entry.usage
        );
        line.push_str(&name);
        lines.push(line);
        put_map(&described.map, "      ", &mut lines);
        for (block, map) in entry.blocks.iter().zip(&described.block_maps) {
            lines.push(format!(
                "   block at +{} startpc {} nargs {} sco {}",
                block.offset, block.start, block.arguments, block.stack_check
            ));
            put_map(map, "         ", &mut lines);
        }
    }
    lines
}

fn is_as_expected(name: &str, entries: usize) {
    let seen = seen_in(name);
    assert_eq!(seen.zone.trampolines.len(), 73);
    assert_eq!(seen.zone.methods.entries.len(), entries);
    assert_eq!(seen.zone.methods.damage, None);
    let expected = text(&format!("{name}.expected.txt"));
    // The last line tells the cost of the other reader.
    let expected = expected.lines().filter(|line| !line.starts_with("attach "));
    let expected: Vec<&str> = expected.collect();
    let told = told(&seen);
    for (number, (ours, theirs)) in told.iter().zip(&expected).enumerate() {
        if let Some(less) = ours.strip_suffix(NON_LOCAL_RETURN) {
            assert_eq!(less, *theirs);
            continue;
        }
        assert_eq!(ours, theirs, "line {}", number + 1);
    }
    assert_eq!(told.len(), expected.len());
}

#[test]
fn an_idle_vm() {
    is_as_expected("idle", 168);
}

#[test]
fn a_busy_vm_with_many_freed_entries() {
    is_as_expected("busy", 875);
}

/// An item of the primitive's answer with its numbers: address, then pairs of machine pc and bytecode.
fn parsed(line: &str) -> (String, Vec<u64>) {
    let (item, value) = line.rsplit_once(" | ").unwrap();
    let numbers = value.trim_matches(['(', ')']).split_whitespace();
    (
        item.to_owned(),
        numbers.map(|number| number.parse().unwrap()).collect(),
    )
}

/// What we know, in the primitive's form. It leaves out freed entries, blocks inside methods, stack
/// checks and returns from blocks.
fn as_primitive(seen: &Seen, is_detailed: bool) -> Vec<(String, Vec<u64>)> {
    let bounds = &seen.zone.bounds;
    let string = |name: &str, at: u64| (format!("~{name}~"), vec![at]);
    let mut all = vec![string("CogCode", bounds.start.0)];
    for trampoline in &seen.zone.trampolines {
        all.push(string(&trampoline.name, trampoline.start.0));
    }
    for (entry, described) in seen.zone.methods.entries.iter().zip(&seen.described) {
        if entry.kind == EntryKind::Free {
            continue;
        }
        let item = name(described);
        let mut numbers = vec![entry.at.0];
        let listed = pairs(&described.map).iter().filter(|pair| pair.is_listed);
        for pair in listed.filter(|_| is_detailed) {
            numbers.extend([
                entry.at.0 + u64::from(pair.machine),
                u64::from(pair.bytecode),
            ]);
        }
        all.push((item, numbers));
    }
    all.push(string("CCFree", bounds.free.0));
    all.push(string("CCEnd", bounds.end.0));
    all
}

/// The snapshots' machine code is blanked: they don't tell the cases of closed PICs.
fn without_cases(item: &str) -> String {
    let selector = item
        .strip_prefix('(')
        .and_then(|list| list.split(' ').next());
    selector.unwrap_or(item).to_owned()
}

/// The VM made more entries between each answer and the snapshot.
#[test]
fn what_the_vm_itself_told() {
    let seen = seen_in("idle");
    for (name, is_detailed, newer) in [("plain", false, 35), ("detailed", true, 9)] {
        let theirs = text(&format!("idle.constituents-{name}.txt"));
        let theirs: Vec<_> = theirs.lines().map(parsed).collect();
        let [.., (free, free_at), _] = theirs.as_slice() else {
            panic!("{name} is empty");
        };
        assert_eq!(free, "~CCFree~");
        let ours = as_primitive(&seen, is_detailed);
        let is_older =
            |(item, numbers): &&(String, Vec<u64>)| numbers[0] < free_at[0] || item == "~CCEnd~";
        let ours: Vec<_> = ours.iter().filter(is_older).collect();
        let theirs = theirs.iter().filter(|(item, _)| item != free);
        let theirs: Vec<_> = theirs
            .map(|(item, numbers)| (without_cases(item), numbers))
            .collect();
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!((&ours.0, &ours.1), (&theirs.0, theirs.1));
        }
        assert_eq!(ours.len(), theirs.len());
        assert_eq!(seen.zone.methods.entries.len() - (ours.len() - 75), newer);
    }
}

/// What documents say of the bytecodes is what the VM's own table says.
#[test]
fn known_bytecodes_are_those_of_the_vm() {
    let seen = seen_in("idle");
    assert_eq!(seen.vm.bytecodes.told, Some(2));
    let sets = [(0, Encoding::V3), (-1, Encoding::Sista)];
    for (header, encoding) in sets {
        let told = seen.vm.bytecodes.of_method(header).unwrap();
        let known = Bytecodes::known(encoding);
        for code in 0..=u8::MAX {
            assert_eq!(told.get(code), known.get(code), "{encoding:?} {code}");
        }
    }
    assert_eq!(Sets::known().told, None);
}
