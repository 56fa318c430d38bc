//! The adapter's records about snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{snapshot, unpacked};
use vmscope_cog::cog_method::EntryKind;
use vmscope_cog::{CogAdapter, Family, Vm};
use vmscope_process::{
    Adapter as _, AdapterError, AdapterFamily as _, KeySource, Launch, Poll, ProcessView,
};
use vmscope_records::{
    Avma, Constituent, ConstituentKey, ConstituentKind, Method, PcMap, ProcessKey, Range, Record,
    TimeNs,
};

/// Times in milliseconds of polls that read counters alone, after a poll at 7.
const COUNTERS_ALONE: [u64; 4] = [107, 407, 707, 1006];

fn poll(adapter: &mut CogAdapter, process: &ProcessView, keys: &KeySource) -> Vec<Record> {
    poll_at(7, adapter, process, keys)
}

fn poll_at(
    milliseconds: u64,
    adapter: &mut CogAdapter,
    process: &ProcessView,
    keys: &KeySource,
) -> Vec<Record> {
    let clock = Arc::new(move || TimeNs(milliseconds * 1_000_000));
    let mut poll = Poll::new(keys.clone(), ProcessKey(1), clock);
    adapter.poll(process, &mut poll).unwrap();
    poll.finish()
}

/// Constituents of the zone.
fn constituents(records: &[Record]) -> Vec<&Constituent> {
    let constituents = records.iter().filter_map(|record| match record {
        Record::Constituent(one) => Some(&**one),
        _ => None,
    });
    let is_of_zone = |one: &&Constituent| one.kind != ConstituentKind::Interpreter;
    constituents.filter(is_of_zone).collect()
}

fn kinds(all: &[&Constituent]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for one in all {
        *kinds.entry(format!("{:?}", one.kind)).or_default() += 1;
    }
    kinds
}

#[test]
fn every_byte_of_the_zone_is_told_once() {
    for (name, entries) in [("idle", 168), ("busy", 875)] {
        let process = snapshot(name).process();
        let vm = Vm::open(&process).unwrap().unwrap();
        let (zone, ()) = vm.with_zone(process.memory(), |_, _| Ok(())).unwrap();
        assert_eq!(zone.methods.entries.len(), entries);
        let mut adapter = CogAdapter::new(vm);
        let keys = KeySource::new();
        let records = poll(&mut adapter, &process, &keys);
        let mut all = constituents(&records);
        all.sort_by_key(|one| one.start);
        assert_eq!(all[0].start, zone.bounds.start);
        let gaps = all.windows(2).filter(|two| two[0].end != two[1].start);
        // Entries begin at multiples of 8.
        assert!(
            gaps.into_iter()
                .all(|two| two[1].start.0 - two[0].end.0 < 8)
        );
        assert_eq!(all.last().unwrap().end, zone.bounds.end);
        let limits = records
            .iter()
            .filter(|record| matches!(record, Record::Limit(_)));
        // Some selectors of freed entries are no longer there.
        assert_eq!(limits.count(), usize::from(name == "busy"));
        let again = poll_at(1007, &mut adapter, &process, &keys);
        assert!(again.is_empty(), "{again:?}");
        let cost = adapter.cost();
        assert!(cost.reads <= 110 && cost.bytes < 1 << 20, "{cost:?}");
    }
}

#[test]
fn entries_have_their_kinds_and_names() {
    let process = snapshot("idle").process();
    let mut adapter = Family.recognise(&process).unwrap().unwrap();
    let mut records = Poll::new(KeySource::new(), ProcessKey(1), Arc::new(|| TimeNs(7)));
    adapter.poll(&process, &mut records).unwrap();
    let records = records.finish();
    let all = constituents(&records);
    let kinds: Vec<(String, usize)> = kinds(&all).into_iter().collect();
    let kinds: Vec<(&str, usize)> = kinds.iter().map(|(kind, n)| (&**kind, *n)).collect();
    assert_eq!(
        kinds,
        [
            ("Block", 15),
            ("ClosedPic", 20),
            ("Enilopmart", 10),
            ("Free", 1),
            ("Method", 137),
            ("OpenPic", 9),
            ("Trampoline", 63),
        ]
    );
    let named = |name: &str| all.iter().find(|one| one.name == name).unwrap();
    assert_eq!(named("area - 6").kind, ConstituentKind::ClosedPic);
    assert_eq!(named("area").kind, ConstituentKind::OpenPic);
    let block = named("[] in Bench>>counterClosure:");
    let home = named("Bench>>counterClosure:");
    assert_eq!(block.kind, ConstituentKind::Block);
    assert_eq!((block.start, block.method), (home.end, home.method));
    let range = |one: &Constituent, offset: u64| match &one.map {
        PcMap::Boundary { .. } => {
            let within = home.start.0 + offset - one.start.0;
            one.map.boundary_range(u32::try_from(within).unwrap())
        }
        other => panic!("{other:?}"),
    };
    let bytecodes = |range: Option<Range>| {
        let Range { from, to } = range.unwrap();
        (from.map(|from| from.0), to.map(|to| to.0))
    };
    assert_eq!(bytecodes(range(home, 0x60)), (None, Some(32)));
    assert_eq!(bytecodes(range(home, 346)), (Some(32), Some(69)));
    assert_eq!(bytecodes(range(block, 600)), (Some(48), Some(54)));
    let methods: Vec<&Method> = records
        .iter()
        .filter_map(|record| match record {
            Record::Method(method) => Some(&**method),
            _ => None,
        })
        .collect();
    let home = methods.iter().find(|one| Some(one.key) == home.method);
    let home = home.unwrap();
    assert_eq!((&*home.class, &*home.name), ("Bench", "counterClosure:"));
    let first = records
        .iter()
        .position(|one| matches!(one, Record::Method(_)));
    assert!(
        first
            < records
                .iter()
                .position(|one| matches!(one, Record::Constituent(one) if one.method.is_some()))
    );
}

#[test]
fn freed_entries_keep_their_selectors() {
    let process = snapshot("busy").process();
    let mut adapter = CogAdapter::new(Vm::open(&process).unwrap().unwrap());
    let records = poll(&mut adapter, &process, &KeySource::new());
    let all = constituents(&records);
    let freed = all.iter().filter(|one| one.name == "freed area");
    assert_eq!(freed.count(), 96);
    let at = |at: u64| {
        all.iter()
            .find(|one| one.start <= Avma(at) && Avma(at) < one.end)
    };
    // The pcs of the first samples.
    assert_eq!(at(0x563e_6cf0_1d1b).unwrap().name, "Bench>>fib:");
}

/// A command's samples have the registers that an attached VM's samples have, also without callers.
#[test]
fn a_command_needs_what_a_running_vm_needs() {
    let process = snapshot("idle").process();
    let adapter = CogAdapter::new(Vm::open(&process).unwrap().unwrap());
    let needs = Family.launch_needs(&Launch::default());
    assert_eq!(needs, adapter.sample_needs());
    assert_eq!(needs.registers != 0, cfg!(target_arch = "x86_64"));
}

/// Where the samples of the busy VM fell, as another reader found.
#[test]
fn samples_fall_into_the_zone_as_known() {
    let process = snapshot("busy").process();
    let mut adapter = CogAdapter::new(Vm::open(&process).unwrap().unwrap());
    let records = poll(&mut adapter, &process, &KeySource::new());
    let mut all = constituents(&records);
    all.sort_by_key(|one| one.start);
    let samples = String::from_utf8(unpacked("busy.samples.tsv.zst")).unwrap();
    let pcs = samples.lines().skip(1).map(|line| {
        let pc = line.rsplit_once("0x").unwrap().1;
        Avma(u64::from_str_radix(pc, 16).unwrap())
    });
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut ranges = 0;
    for pc in pcs {
        let after = all.partition_point(|one| one.start <= pc);
        let one = after.checked_sub(1).map(|index| all[index]);
        let Some(one) = one.filter(|one| pc < one.end) else {
            *kinds.entry("elsewhere".to_owned()).or_default() += 1;
            continue;
        };
        let kind = match &one.kind {
            ConstituentKind::Method | ConstituentKind::Block => "code".to_owned(),
            ConstituentKind::Trampoline | ConstituentKind::Enilopmart => "trampoline".to_owned(),
            other => format!("{other:?}"),
        };
        *kinds.entry(kind).or_default() += 1;
        // Blocks inside a method count with it.
        let name = one.name.strip_suffix(" (entry)").unwrap_or(&one.name);
        let is_inside = all
            .iter()
            .any(|home| home.method == one.method && home.start < one.start);
        let name = match is_inside && one.method.is_some() {
            true => name.strip_prefix("[] in ").unwrap_or(name),
            false => name,
        };
        *names.entry(name.to_owned()).or_default() += 1;
        let offset = u32::try_from(pc.0 - one.start.0).unwrap();
        ranges += usize::from(one.map.boundary_range(offset).is_some());
    }
    let kinds: Vec<(&str, usize)> = kinds.iter().map(|(kind, n)| (&**kind, *n)).collect();
    let freed = "Other(\"freed\")";
    // 108 in the VM's own code, 50 in the kernel, 11 in libraries.
    let elsewhere = 108 + 50 + 11;
    assert_eq!(
        kinds,
        [
            (freed, 1242),
            ("code", 7040),
            ("elsewhere", elsewhere),
            ("trampoline", 11)
        ]
    );
    for (name, count) in [
        ("freed area", 1021),
        ("Object>>at:", 773),
        ("Bench>>fib:", 677),
        ("Bench>>sieve:", 536),
        ("BlockClosure>>value:", 416),
    ] {
        assert_eq!(names.get(name), Some(&count), "{name}");
    }
    // Every sample in code has a range of bytecodes.
    assert_eq!(ranges, 7040);
}

/// A poll of counters costs one read. Reading a zone costs a number of reads that does not grow with its
/// entries, apart from pages of objects.
#[test]
fn the_cost_of_later_looks() {
    let process = snapshot("busy").process();
    let mut adapter = CogAdapter::new(Vm::open(&process).unwrap().unwrap());
    let keys = KeySource::new();
    poll(&mut adapter, &process, &keys);
    let first = adapter.cost();
    for time in COUNTERS_ALONE {
        poll_at(time, &mut adapter, &process, &keys);
    }
    let counters = adapter.cost();
    assert_eq!(counters.reads - first.reads, COUNTERS_ALONE.len() as u64);
    poll_at(1007, &mut adapter, &process, &keys);
    let both = adapter.cost();
    assert!(both.reads - counters.reads <= 20, "{counters:?} {both:?}");
    assert!(
        both.bytes - counters.bytes < 300_000,
        "{counters:?} {both:?}"
    );
}

/// A PIC with another case keeps its key. A freed PIC keeps its key, too, until a code compaction. It was there at
/// polls that read counters alone.
#[test]
fn a_pic_gets_another_case_and_is_freed() {
    let snapshot = snapshot("idle");
    let process = snapshot.process();
    let vm = Vm::open(&process).unwrap().unwrap();
    let (zone, ()) = vm.with_zone(process.memory(), |_, _| Ok(())).unwrap();
    let mut entries = zone.methods.entries.iter();
    let pic = entries
        .find(|one| one.kind == EntryKind::ClosedPic)
        .unwrap();
    let variable = |name| vm.variables.at(name).unwrap();
    let freed_bytes = variable("methodBytesFreedSinceLastCompaction");
    let compactions = variable("statCodeCompactionCount");
    let mut adapter = CogAdapter::new(vm);
    let keys = KeySource::new();
    let records = poll(&mut adapter, &process, &keys);
    let before = constituents(&records);
    let before = before.iter().find(|one| one.start == pic.at).unwrap();
    assert_eq!(before.name, "area - 6");
    // The upper 12 bits of the word with the type have the number of cases.
    let fewer = snapshot.patched(vec![(Avma(pic.at.0 + 10), vec![0x50, 0])]);
    // No counter shows the case.
    for time in COUNTERS_ALONE {
        assert_eq!(poll_at(time, &mut adapter, &fewer, &keys), []);
    }
    let records = poll_at(1007, &mut adapter, &fewer, &keys);
    let after = constituents(&records);
    assert_eq!(after.len(), 1);
    assert_eq!((&*after[0].name, after[0].key), ("area - 5", before.key));
    assert_eq!(poll_at(1107, &mut adapter, &fewer, &keys), []);
    let freeing = (Avma(pic.at.0 + 9), vec![0x61]);
    let counted = (freed_bytes, 216_u64.to_le_bytes().to_vec());
    let patches = vec![freeing, counted];
    let freed = snapshot.patched(patches.clone());
    assert_eq!(poll_at(1207, &mut adapter, &freed, &keys), []);
    let compaction = (compactions, vec![1]);
    let compacted = snapshot.patched([patches, vec![compaction]].concat());
    let records = poll_at(1307, &mut adapter, &compacted, &keys);
    let [last, time] = [1207, 1307].map(|time| TimeNs(time * 1_000_000));
    let gone: Vec<_> = gone(&records).collect();
    assert_eq!(gone, [(before.key, last, time)]);
    // Everything else stayed in its place.
    let new = constituents(&records);
    let new: Vec<_> = new.iter().map(|one| (one.start, &*one.name)).collect();
    assert_eq!(new, [(pic.at, "freed area")]);
}

/// A code compaction that drops entries between two methods with equal code moves the second one to the
/// place of the first one. Code below them keeps its keys, also over another compaction.
#[test]
fn a_compaction_moves_code_to_the_place_of_equal_code() {
    let snapshot = snapshot("idle");
    let process = snapshot.process();
    let vm = Vm::open(&process).unwrap().unwrap();
    let (zone, ()) = vm.with_zone(process.memory(), |_, _| Ok(())).unwrap();
    let variable = |name| vm.variables.at(name).unwrap();
    let mut adapter = CogAdapter::new(vm.clone());
    let keys = KeySource::new();
    let records = poll_at(7, &mut adapter, &process, &keys);
    let before = constituents(&records);
    let start = |name: &str| before.iter().find(|one| one.name == name).unwrap().start;
    let [first, second] = ["Square>>area", "Blob>>area"].map(start);
    let distance = second.0 - first.0;
    let entry = |at| zone.methods.entries.iter().find(|entry| entry.at == at);
    let [one, other] = [first, second].map(|at| entry(at).unwrap());
    // Nothing but the compiled method tells the two apart.
    assert_eq!((one.header, one.size), (other.header, other.size));
    assert_eq!(
        (one.selector, one.stack_check),
        (other.selector, other.stack_check)
    );
    let length = usize::try_from(zone.bounds.free.0 - second.0).unwrap();
    let code = process
        .memory()
        .read_vec(second, length as u64, length)
        .unwrap();
    let word = |at: Avma, number: u64| (at, number.to_le_bytes().to_vec());
    let mut patches = vec![
        (first, code),
        word(variable("mzFreeStart"), zone.bounds.free.0 - distance),
    ];
    for moved in zone.methods.entries.iter().filter(|one| one.at >= second) {
        if moved.kind == EntryKind::Method {
            patches.push(word(Avma(moved.method.0 + 8), moved.at.0 - distance));
        }
    }
    let compacted = |count: u64| {
        let count = word(variable("statCodeCompactionCount"), count);
        snapshot.patched([patches.clone(), vec![count]].concat())
    };
    let records = poll_at(1007, &mut adapter, &compacted(1), &keys);
    assert!(gone(&records).count() > 100);
    let is_below = |one: &&&Constituent| one.start < first;
    let below: Vec<_> = before.iter().filter(is_below).map(|one| one.key).collect();
    assert!(gone(&records).all(|(key, ..)| !below.contains(&key)));
    let after = constituents(&records);
    assert_eq!(after.iter().filter(is_below).count(), 0);
    let moved = after.iter().find(|one| one.start == first).unwrap();
    assert_eq!(moved.name, "Blob>>area");
    // The next compaction moves nothing.
    let records = poll_at(2007, &mut adapter, &compacted(2), &keys);
    assert_eq!(
        (constituents(&records), gone(&records).count()),
        (vec![], 0)
    );
    // After two at once, all code of the zone's methods counts as new.
    let records = poll_at(3007, &mut adapter, &compacted(4), &keys);
    let is_method = |one: &&&Constituent| one.kind == ConstituentKind::Method;
    let methods = before.iter().filter(is_below).filter(is_method);
    let new = constituents(&records);
    assert_eq!(new.iter().filter(is_below).count(), methods.count());
}

/// Key, last sight and end of code that is gone.
fn gone(records: &[Record]) -> impl Iterator<Item = (ConstituentKey, TimeNs, TimeNs)> {
    records.iter().filter_map(|record| match record {
        Record::ConstituentGone(gone) => Some((gone.key, gone.last_seen, gone.time)),
        _ => None,
    })
}

/// A VM in a collection has no error. Its code is unknown until a poll finds a pause.
#[test]
fn polls_in_a_collection() {
    let snapshot = snapshot("idle");
    let mode = snapshot.symbols.iter().find(|one| one.name == "gcMode");
    let collecting = snapshot.patched(vec![(mode.unwrap().address, vec![1])]);
    let process = snapshot.process();
    let mut adapter = CogAdapter::new(Vm::open(&process).unwrap().unwrap());
    let keys = KeySource::new();
    let try_poll = |adapter: &mut CogAdapter| {
        let mut poll = Poll::new(keys.clone(), ProcessKey(1), Arc::new(|| TimeNs(7)));
        let result = adapter.poll(&collecting, &mut poll);
        let told_until = poll.told_until();
        (result, told_until, constituents(&poll.finish()).len())
    };
    for _ in 0..20 {
        assert!(matches!(try_poll(&mut adapter), (Ok(()), TimeNs(0), 0)));
        assert!(!adapter.tells_all_code());
    }
    let (result, ..) = try_poll(&mut adapter);
    assert!(matches!(result, Err(AdapterError::Torn { .. })));
    assert!(!poll(&mut adapter, &process, &keys).is_empty());
    // Counters of code show that nothing changed, also in a collection.
    assert!(matches!(try_poll(&mut adapter), (Ok(()), TimeNs(7), 0)));
}
