//! Samples by address, and residencies of code over time.

use crate::recordings::{
    self, Draw, PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD, code, screens,
};
use std::collections::BTreeMap;
use vmscope_records::{
    Constituent, ConstituentKind, CpuMode, ProcessKey, ThreadKey, ThreadRole, TimeNs,
};
use vmscope_symbolizer::addresses::{Addresses, Layout, Owner};
use vmscope_symbolizer::zone::{Presence, Residencies};
use vmscope_symbolizer::{Filter, Id, Only, Profile, Stop, ThreadId};

const ZONE: u64 = 0x7f00_0000_0000;

fn addresses(profile: &Profile, filter: &Filter) -> Addresses {
    let layout = Layout::of(profile, Residencies::of(&profile.trace));
    Addresses::of(profile, filter, &layout, &Stop::new()).unwrap()
}

/// Owner, start, end and samples of each stretch.
fn told(addresses: &Addresses) -> Vec<(Owner, u64, u64, u64)> {
    let one = |s: &vmscope_symbolizer::addresses::Stretch| (s.owner, s.start, s.end, s.samples());
    addresses.stretches.iter().map(one).collect()
}

fn with_zone() -> Recording {
    let mut recording = Recording::of("jit");
    recording.map(PROCESS, 0, ZONE, ZONE + 0x1_0000, 0, None);
    recording
}

#[test]
fn every_sample_has_its_address_or_is_counted() {
    let mut recording = with_zone();
    recording.constituent(code(1, 0, ZONE + 0x100, ZONE + 0x200));
    recording.sample(10, THREAD, PROGRAM_AT + 0x20);
    recording.sample(20, THREAD, ZONE + 0x110);
    recording.sample(30, THREAD, ZONE + 0x110);
    recording.sample(40, THREAD, ZONE + 0x180);
    // Unrecorded generated code, then unmapped memory.
    recording.sample(50, THREAD, ZONE + 0x8000);
    recording.sample(60, THREAD, 0x10);
    recording.sample_in(70, THREAD, 0xffff_ffff_8100_0000, CpuMode::Kernel);
    let far = 0xffff_ffff_c000_0000;
    recording.sample_in(80, THREAD, far, CpuMode::Kernel);
    let profile = recording.end(100).profile();
    let all = addresses(&profile, &Filter::default());
    assert_eq!((all.total, all.nowhere, all.dropped), (8, 2, 0));
    let kernel = 0xffff_ffff_8100_0000;
    assert_eq!(
        told(&all),
        [
            (Owner::Module(PROGRAM), PROGRAM_AT, PROGRAM_AT + 0x1000, 1),
            (Owner::Zone(PROCESS, ZONE), ZONE, ZONE + 0x1_0000, 3),
            (Owner::Kernel(kernel), kernel, kernel + 1, 1),
            (Owner::Kernel(far), far, far + 1, 1),
        ]
    );
    let zone = &all.stretches[1];
    assert_eq!(zone.count(ZONE..ZONE + 0x110), 0);
    assert_eq!(zone.count(ZONE + 0x110..ZONE + 0x111), 2);
    assert_eq!(zone.count(ZONE + 0x111..u64::MAX), 1);
    assert_eq!(zone.points(0..u64::MAX).len(), 2);
}

#[test]
fn a_filter_counts_here_too() {
    let mut recording = with_zone();
    for time in 0..10 {
        recording.sample(time * 10, THREAD, PROGRAM_AT + time);
    }
    let profile = recording.end(100).profile();
    let window = Filter {
        from: Some(TimeNs(20)),
        to: Some(TimeNs(50)),
        ..Filter::default()
    };
    assert_eq!(addresses(&profile, &window).total, 3);
    let nobody = Filter {
        threads: Some([ThreadId::of(7)].into_iter().collect()),
        ..Filter::default()
    };
    assert_eq!(addresses(&profile, &nobody), Addresses::default());
}

/// 100,000 samples on two threads in a program, the kernel, code (a third of it moves now and then)
/// and unmapped memory. Also returns each sample's address and thread.
fn moving() -> (Profile, Vec<(u64, ThreadKey, u64)>) {
    const CODES: u64 = 30;
    let mut draw = Draw(7);
    let mut recording = with_zone();
    let other = ThreadKey(2);
    recording.thread(other, PROCESS, 0, "other", ThreadRole::Other);
    let mut starts: Vec<u64> = (0..CODES).map(|n| ZONE + n * 0x100).collect();
    for (key, &start) in (0..).zip(&starts) {
        recording.constituent(code(key, 0, start, start + 0x80));
    }
    let mut all = Vec::new();
    for time in 1..100_000 {
        if time % 5_000 == 0 {
            let key = draw.below(CODES / 3) * 3;
            let to = ZONE + 0x4000 + time / 5_000 * 0x100;
            recording.moved(key, time, time, to);
            starts[key as usize] = to;
        }
        let thread = [THREAD, other][draw.below(2) as usize];
        let pc = match draw.below(10) {
            0 => PROGRAM_AT + draw.below(0x100),
            1 => 0xffff_ffff_8100_0000 + draw.below(16),
            2 => 0x10,
            _ => starts[draw.below(CODES) as usize] + draw.below(0x80),
        };
        let mode = match pc >> 63 {
            0 => CpuMode::User,
            _ => CpuMode::Kernel,
        };
        recording.sample_in(time, thread, pc, mode);
        all.push((time, thread, pc));
    }
    (recording.end(100_000).profile(), all)
}

#[test]
fn every_sample_is_where_it_was_taken() {
    let (profile, all) = moving();
    let mut draw = Draw(8);
    for round in 0..40 {
        let mut bound = || (draw.below(3) != 0).then(|| TimeNs(draw.below(100_000)));
        let (from, to) = (bound(), bound());
        let only_program = draw.below(3) == 0;
        let filter = Filter {
            threads: (draw.below(2) == 0).then(|| [ThreadId::of(1)].into_iter().collect()),
            from,
            to,
            only: Only {
                modules: (only_program.then(|| "vm".to_owned()))
                    .into_iter()
                    .collect(),
                ..Only::default()
            },
            ..Filter::default()
        };
        let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
        let mut nowhere = 0;
        for &(time, thread, pc) in &all {
            let number = profile.trace.number_of(thread).unwrap();
            let is_program = (PROGRAM_AT..PROGRAM_AT + 0x1000).contains(&pc);
            if !filter.takes(number, TimeNs(time)) || (only_program && !is_program) {
                continue;
            }
            match pc {
                0x10 => nowhere += 1,
                pc => *expected.entry(pc).or_default() += 1,
            }
        }
        let found = addresses(&profile, &filter);
        let mut counted: BTreeMap<u64, u64> = BTreeMap::new();
        for point in found
            .stretches
            .iter()
            .flat_map(|one| one.points(0..u64::MAX))
        {
            *counted.entry(point.address).or_default() += point.samples;
        }
        assert_eq!(counted, expected, "round {round}: {filter:?}");
        assert_eq!(found.nowhere, nowhere, "{filter:?}");
        assert_eq!(found.total, nowhere + expected.values().sum::<u64>());
    }
}

#[test]
fn code_that_moved_has_the_address_that_it_had_then() {
    let mut recording = with_zone();
    recording.constituent(code(1, 0, ZONE, ZONE + 0x100));
    recording.moved(1, 40, 50, ZONE + 0x1000);
    recording.sample(10, THREAD, ZONE + 0x10);
    recording.sample(60, THREAD, ZONE + 0x1010);
    recording.sample(70, THREAD, ZONE + 0x1010);
    let profile = recording.end(100).profile();
    let all = addresses(&profile, &Filter::default());
    assert_eq!(all.stretches.len(), 1);
    let zone = &all.stretches[0];
    assert_eq!(zone.count(ZONE + 0x10..ZONE + 0x11), 1);
    assert_eq!(zone.count(ZONE + 0x1010..ZONE + 0x1011), 2);
    let residencies = Residencies::of(&profile.trace);
    let zone = &residencies.zones()[0];
    assert_eq!(residencies.compactions(zone), [(TimeNs(50), 1)]);
}

/// Start and presence of the only zone's code at a time.
fn at(residencies: &Residencies, time: u64) -> Vec<(u64, Presence)> {
    let there = residencies.at(&residencies.zones()[0], TimeNs(time));
    there
        .map(|(residency, presence)| (residency.start - ZONE, presence))
        .collect()
}

#[test]
fn a_zone_is_told_as_it_was_at_a_time() {
    use Presence::{Maybe, There};
    let mut recording = with_zone();
    recording.constituent(code(1, 0, ZONE, ZONE + 0x100));
    recording.constituent(Constituent {
        absent_at: Some(TimeNs(20)),
        ..code(2, 30, ZONE + 0x200, ZONE + 0x300)
    });
    recording.gone(1, 50, 60);
    // New code covers half of the second, which has no recorded end.
    recording.constituent(code(3, 80, ZONE + 0x280, ZONE + 0x380));
    let profile = recording.end(100).profile();
    let residencies = Residencies::of(&profile.trace);
    assert_eq!(at(&residencies, 10), [(0, There)]);
    assert_eq!(at(&residencies, 20), [(0, There), (0x200, Maybe)]);
    assert_eq!(at(&residencies, 30), [(0, There), (0x200, There)]);
    assert_eq!(at(&residencies, 55), [(0, Maybe), (0x200, There)]);
    assert_eq!(at(&residencies, 60), [(0x200, There)]);
    assert_eq!(at(&residencies, 80), [(0x280, There)]);
    let zone = &residencies.zones()[0];
    let replaced: Vec<bool> = residencies
        .in_zone(zone)
        .iter()
        .map(|l| l.replaced)
        .collect();
    assert_eq!(replaced, [false, true, false]);
    let changes: Vec<u64> = residencies
        .changes(zone)
        .iter()
        .map(|time| time.0)
        .collect();
    assert_eq!(changes, [0, 30, 60, 80]);
}

#[test]
fn heaps_far_apart_are_zones_of_their_own() {
    let mut recording = Recording::of("jit");
    let other = ProcessKey(2);
    recording.process(other, 0, 200, None);
    for (key, start) in [(1, ZONE), (2, ZONE + 0x8_0000), (3, ZONE + 0x1000_0000)] {
        recording.constituent(code(key, 0, start, start + 0x100));
    }
    recording.constituent(Constituent {
        process: other,
        ..code(4, 0, ZONE, ZONE + 0x100)
    });
    // Free space and data form no zones.
    recording.constituent(Constituent {
        kind: ConstituentKind::Free,
        ..code(5, 0, ZONE + 0x2000_0000, ZONE + 0x2000_1000)
    });
    recording.constituent(Constituent {
        kind: ConstituentKind::Bytecodes,
        ..code(6, 0, ZONE + 0x3000_0000, ZONE + 0x3000_1000)
    });
    let profile = recording.end(100).profile();
    let residencies = Residencies::of(&profile.trace);
    let zones: Vec<(u32, u64, u64)> = residencies
        .zones()
        .iter()
        .map(|zone| (zone.process.0, zone.start - ZONE, zone.end - ZONE))
        .collect();
    assert_eq!(
        zones,
        [
            (1, 0, 0x8_0100),
            (1, 0x1000_0000, 0x1000_0100),
            (2, 0, 0x100)
        ]
    );
}

#[test]
fn the_made_up_jvm_has_all_its_samples() {
    let trace = recordings::read(&screens::java()).unwrap();
    let profile = vmscope_symbolizer::profile_of(trace, Vec::new(), true);
    let all = addresses(&profile, &Filter::default());
    let shown: u64 = all.stretches.iter().map(|stretch| stretch.samples()).sum();
    assert_eq!((all.total, shown + all.nowhere), (12_564, 12_564));
    let residencies = Residencies::of(&profile.trace);
    assert_eq!(residencies.zones().len(), 1);
    let zone = &residencies.zones()[0];
    let methods = |time_ms| {
        let there = residencies.at(zone, TimeNs(screens::ms(time_ms)));
        let is_method = |residency: &vmscope_symbolizer::zone::Residency| {
            let code = residency.constituent(&profile.trace).unwrap();
            code.kind == ConstituentKind::Method
        };
        there.filter(|(residency, _)| is_method(residency)).count()
    };
    assert_eq!(methods(1), 0);
    // Each of the 40 methods keeps at most one version.
    assert!(
        0 < methods(19_000) && methods(19_000) <= 40,
        "{}",
        methods(19_000)
    );
}
