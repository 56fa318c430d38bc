//! A method's samples by bytecode and line: each sample counts once.

use crate::recordings::{
    self, PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD, code, function, shapes,
};
use std::collections::BTreeMap;
use vmscope_records::{
    BoundaryRule, BytecodePc, ChainFrame, Constituent, ConstituentKind, Cover, Exactness,
    FileOffset, Method, MethodKey, NativeFrame, NativeLines, PcMap, Position, Record, SymbolOwner,
    Symbols, TimeNs,
};
use vmscope_symbolizer::annotate::{
    Annotation, ByMethod, Calls, Candidate, Choice, Inlined, Listed, Located, MAX_DEPTH, Origin,
    Row, Spot, Subject, Taken, annotate, calls, candidates, choose, hottest, hottest_method,
    machine_code, sides, versions,
};
use vmscope_symbolizer::{Filter, Profile, Stop, Summary, profile_of};

fn samples_of(rows: &[Row]) -> u64 {
    let of_tree = |inlined: &Inlined| {
        let all = samples_of(&inlined.rows);
        assert_eq!(all, inlined.all.samples(), "{}", inlined.name);
        all
    };
    let of_row = |row: &Row| row.own.samples() + row.inlined.iter().map(of_tree).sum::<u64>();
    rows.iter().map(of_row).sum()
}

/// A limited query returns the same first candidates.
fn first_are_the_hottest(profile: &Profile, filter: &Filter, all: &[Candidate]) {
    let stop = Stop::new();
    let (taken, methods) = (Taken::of(profile, filter), ByMethod::of(profile));
    for most in [0, 1, 2, 7, all.len(), all.len() + 1] {
        let some = hottest(&taken, &methods, most, &stop).unwrap();
        let expected = &all[..most.min(all.len())];
        assert_eq!(format!("{some:?}"), format!("{expected:?}"));
    }
    let one = match choose(profile, all, None) {
        Choice::One(subject) => Some(subject),
        Choice::Several(_) | Choice::None => None,
    };
    assert_eq!(hottest_method(&taken, &methods, &stop).unwrap(), one);
}

/// For every candidate of a profile: its rows contain each of its samples once, and own samples of
/// all candidates add up to the samples of all named entries.
fn adds_up(profile: &Profile, filter: &Filter) {
    let summary = Summary::with_errors(profile, filter);
    let all = candidates(profile, filter);
    first_are_the_hottest(profile, filter, &all);
    let named = summary.entries.enumerated();
    let named = named.filter(|(id, _)| profile.is_named(*id));
    let own: u64 = all.iter().map(|candidate| candidate.own).sum();
    assert_eq!(own, named.map(|(_, samples)| samples).sum::<u64>());
    for candidate in &all {
        let annotation = Annotation::of(profile, filter, &candidate.subject);
        assert_eq!(annotation.name, candidate.name);
        assert_eq!(annotation.total, summary.total);
        assert_eq!(
            annotation.all.samples(),
            candidate.all,
            "{}",
            candidate.label
        );
        assert_eq!(
            annotation.own.samples(),
            candidate.own,
            "{}",
            candidate.label
        );
        assert_eq!(samples_of(&annotation.rows), candidate.all);
        let tiers: u64 = annotation.tiers.iter().map(|tier| tier.samples).sum();
        assert_eq!(tiers, candidate.all);
        assert_eq!(annotation.all.tiers.iter().sum::<u64>(), candidate.all);
    }
}

#[test]
fn every_sample_is_in_one_row() {
    for file in [shapes::native(2_000), shapes::node(2_000)] {
        let profile = profile_of(recordings::read(&file).unwrap(), Vec::new(), true);
        adds_up(&profile, &Filter::default());
        let some = Filter {
            to: Some(TimeNs(shapes::PERIOD * 500)),
            ..Filter::default()
        };
        adds_up(&profile, &some);
    }
}

fn method(key: u64, name: &str, line: u32, listing: &[u32]) -> Record {
    Record::Method(Box::new(Method {
        key: MethodKey(key),
        class: "A".into(),
        name: name.into(),
        file: "A.java".into(),
        line,
        listing: (listing.iter())
            .map(|&pc| (BytecodePc(pc), format!("nop {pc}")))
            .collect(),
        ..Method::default()
    }))
}

fn at(method: u64, pc: u32) -> ChainFrame {
    ChainFrame {
        method: MethodKey(method),
        position: Position::Bytecode(BytecodePc(pc)),
    }
}

fn covers(chains: Vec<Vec<ChainFrame>>) -> PcMap {
    let covers = (0u32..).zip(&chains).map(|(chain, _)| Cover {
        start: chain * 0x10,
        end: chain * 0x10 + 0x10,
        chain,
        exactness: Exactness::Exact,
        method_error: 0,
    });
    PcMap::Covers {
        covers: covers.collect(),
        chains,
    }
}

fn the(profile: &Profile, name: &str) -> Annotation {
    let filter = Filter::default();
    let all = candidates(profile, &filter);
    match choose(profile, &all, Some(name)) {
        Choice::One(subject) => Annotation::of(profile, &filter, &subject),
        other => panic!("{name}: {other:?}"),
    }
}

/// `A.outer` inlines `A.inner` twice, once recursively. A second compilation (on-stack replacement)
/// has another name and method record. `A.inner` also has own code.
fn inlining() -> Profile {
    let mut recording = Recording::of("HotSpot");
    recording
        .put(method(1, "outer()V", 10, &[0, 1, 4]))
        .put(method(2, "inner()V", 20, &[0, 3]))
        .put(method(3, "outer()V", 10, &[]))
        .put(method(4, "outer()V", 90, &[]))
        .constituent(Constituent {
            name: "A.outer()V".into(),
            method: Some(MethodKey(1)),
            tier: "C2".into(),
            map: covers(vec![
                vec![at(1, 4)],
                vec![at(2, 3), at(1, 1)],
                vec![at(2, 0), at(2, 3), at(1, 1)],
            ]),
            ..code(1, 0, 0x10000, 0x10040)
        })
        .constituent(Constituent {
            name: "A.outer()V (OSR at 1)".into(),
            method: Some(MethodKey(3)),
            tier: "C1".into(),
            map: covers(vec![vec![at(3, 4)]]),
            ..code(2, 0, 0x20000, 0x20010)
        })
        .constituent(Constituent {
            name: "A.inner()V".into(),
            method: Some(MethodKey(2)),
            tier: "C1".into(),
            map: covers(vec![vec![at(2, 3)]]),
            ..code(3, 0, 0x30000, 0x30020)
        })
        // Another method with an equal name.
        .constituent(Constituent {
            name: "A.outer()V".into(),
            method: Some(MethodKey(4)),
            tier: "C1".into(),
            ..code(4, 0, 0x40000, 0x40010)
        });
    let pcs = [
        (0x10000, 5),
        (0x10010, 7),
        (0x10020, 11),
        (0x10030, 2),
        (0x20000, 13),
        (0x30000, 17),
        (0x30010, 3),
        (0x40000, 1),
    ];
    let mut time = 0;
    for (pc, samples) in pcs {
        for _ in 0..samples {
            time += 1;
            recording.sample(time, THREAD, pc);
        }
    }
    recording.profile()
}

#[test]
fn a_method_has_all_its_code_and_what_was_inlined_into_it() {
    let profile = inlining();
    adds_up(&profile, &Filter::default());
    let outer = the(&profile, "A.outer()V A.java:10");
    assert_eq!((outer.own.samples(), outer.all.samples()), (20, 38));
    let tiers: Vec<_> = outer
        .tiers
        .iter()
        .map(|t| (t.name.as_str(), t.samples))
        .collect();
    assert_eq!(tiers, [("C2", 25), ("C1", 13)]);
    assert_eq!(outer.listing.len(), 3);
    let spots: Vec<_> = outer.rows.iter().map(|row| row.spot.clone()).collect();
    let bytecode = |pc| Spot::Bytecode(BytecodePc(pc));
    assert_eq!(spots, [bytecode(1), bytecode(4), Spot::Unknown]);
    // The call has inlined samples only.
    assert_eq!(
        (outer.rows[0].own.samples(), outer.rows[0].samples()),
        (0, 18)
    );
    let inner = &outer.rows[0].inlined[0];
    assert_eq!((&*inner.name, inner.all.samples()), ("A.inner()V", 18));
    let deeper = &inner.rows[0];
    assert_eq!((deeper.own.samples(), deeper.samples()), (7, 18));
    assert_eq!(deeper.inlined[0].rows[0].own.samples(), 11);
    // Both tiers sampled one bytecode.
    assert_eq!(outer.rows[1].own.tiers, [5, 13]);
    assert_eq!(outer.rows[2].own.method_only, 2);
}

#[test]
fn an_inlined_method_is_gathered_from_wherever_it_ran() {
    let profile = inlining();
    let inner = the(&profile, "inner");
    // In recursion, the innermost frame counts.
    assert_eq!((inner.own.samples(), inner.all.samples()), (38, 38));
    let rows: Vec<u64> = inner.rows.iter().map(Row::samples).collect();
    assert_eq!(rows, [11, 24, 3]);
    let into: Vec<_> = inner.into.iter().map(|(name, n)| (&**name, *n)).collect();
    assert_eq!(into, [("A.inner()V", 11), ("A.outer()V", 7)]);
}

#[test]
fn names_mean_what_they_say() {
    let profile = inlining();
    let all = candidates(&profile, &Filter::default());
    let choice = |name: &str| match choose(&profile, &all, Some(name)) {
        Choice::One(_) => 1,
        Choice::Several(several) => several.len(),
        Choice::None => 0,
    };
    for (name, number) in [
        ("A.inner()V", 1),
        ("A.outer()V", 2),
        ("A.outer()V A.java:90", 1),
        ("outer", 2),
        (":90", 1),
        ("INNER", 1),
        ("OSR", 0),
        ("a.", 3),
        ("nobody", 0),
    ] {
        assert_eq!(choice(name), number, "{name}");
    }
    let Choice::One(hottest) = choose(&profile, &all, None) else {
        panic!("there is one");
    };
    assert_eq!(
        Annotation::of(&profile, &Filter::default(), &hottest).name,
        "A.inner()V"
    );
}

#[test]
fn ranges_say_which_bytecodes_they_execute() {
    let listing: Vec<Listed> = [0, 2, 3, 7]
        .map(|pc| Listed {
            pc: BytecodePc(pc),
            text: String::new(),
            line: None,
        })
        .into();
    let range = |from: Option<u32>, to: Option<u32>, after| Spot::Range {
        from: from.map(BytecodePc),
        to: to.map(BytecodePc),
        after,
    };
    for (spot, range) in [
        (range(None, Some(3), true), 0..3),
        (range(None, Some(3), false), 0..2),
        (range(Some(2), Some(7), true), 2..4),
        (range(Some(2), Some(7), false), 1..3),
        (range(Some(3), None, true), 3..4),
        (range(Some(7), None, true), 4..4),
        (range(Some(3), Some(3), true), 2..3),
        (range(Some(7), Some(2), true), 4..4),
        (Spot::Bytecode(BytecodePc(3)), 2..3),
        (Spot::Bytecode(BytecodePc(4)), 3..3),
        (Spot::Entry, 0..0),
        (Spot::Unknown, 4..4),
    ] {
        assert_eq!(spot.in_listing(&listing), range, "{spot:?}");
    }
}

#[test]
fn which_side_of_a_boundary_its_bytecode_is_on_is_kept() {
    for (rule, wanted) in [
        (BoundaryRule::AfterInstruction, true),
        (BoundaryRule::AtStart, false),
    ] {
        let mut recording = Recording::of("Cog");
        recording
            .constituent(Constituent {
                method: Some(MethodKey(9)),
                map: PcMap::Boundary {
                    rule,
                    exactness: Exactness::Exact,
                    entries: vec![(8, BytecodePc(5))],
                },
                ..code(1, 0, 0x10000, 0x10020)
            })
            .sample(1, THREAD, 0x10010);
        // Without a method record, the code's name stands in.
        let annotation = the(&recording.profile(), "m1");
        let Spot::Range { from, to, after } = annotation.rows[0].spot else {
            panic!("{:?}", annotation.rows);
        };
        assert_eq!((from, to, after), (Some(BytecodePc(5)), None, wanted));
    }
}

/// A chain of distinct methods deeper than real inlining loses no sample.
#[test]
fn chains_without_end_are_cut() {
    let depth = 5_000;
    let chain: Vec<_> = (1..=depth).map(|key| at(key, 1)).collect();
    let mut recording = Recording::of("HotSpot");
    for key in 1..=depth {
        recording.put(method(key, &format!("m{key}"), 1, &[]));
    }
    recording
        .constituent(Constituent {
            method: Some(MethodKey(depth)),
            name: format!("A.m{depth}"),
            map: covers(vec![chain]),
            ..code(1, 0, 0x10000, 0x10010)
        })
        .sample(1, THREAD, 0x10000);
    let annotation = the(&recording.profile(), &format!("A.m{depth}"));
    assert_eq!(samples_of(&annotation.rows), 1);
    assert_eq!((annotation.too_deep, annotation.own.samples()), (1, 0));
    let mut row = &annotation.rows[0];
    let mut levels = 0;
    while let Some(inlined) = row.inlined.first() {
        row = &inlined.rows[0];
        levels += 1;
    }
    assert_eq!(levels, MAX_DEPTH);
}

/// Lines of 16 bytes of native code.
fn piece(start: u64, frames: Vec<NativeFrame>) -> NativeLines {
    NativeLines {
        start: FileOffset(start),
        end: FileOffset(start + 0x10),
        frames,
        exactness: Exactness::Exact,
    }
}

#[test]
fn native_functions_have_lines_of_files() {
    let frame = |function: &str, file: &str, line| NativeFrame {
        function: function.into(),
        file: file.into(),
        line,
    };
    let mut function = recordings::function(0, 0x100, "outer");
    function.lines = vec![
        piece(0, vec![frame("outer", "a.c", 3)]),
        piece(0x10, vec![frame("outer", "a.h", 2)]),
        piece(
            0x20,
            vec![frame("inner", "a.h", 9), frame("outer", "a.c", 5)],
        ),
        piece(0x30, vec![frame("outer", "a.c", 0)]),
    ];
    let mut recording = Recording::of("native");
    recording.put(Record::Symbols(Symbols {
        owner: SymbolOwner::Module(PROGRAM),
        functions: vec![function],
        note: String::new(),
    }));
    for (at, samples) in [(0, 4), (0x10, 1), (0x20, 8), (0x30, 2), (0x50, 16)] {
        (0..samples).for_each(|_| {
            recording.sample(at, THREAD, PROGRAM_AT + at);
        });
    }
    let profile = recording.profile();
    adds_up(&profile, &Filter::default());
    let outer = the(&profile, "outer");
    assert_eq!(outer.file, "a.c");
    let line = |file: &str, line| Spot::Line {
        file: file.into(),
        line,
    };
    let rows: Vec<_> = outer
        .rows
        .iter()
        .map(|row| (row.spot.clone(), row.samples()))
        .collect();
    let wanted = [
        (line("a.c", 3), 4),
        (line("a.c", 5), 8),
        (line("a.h", 2), 1),
        (Spot::Unknown, 18),
    ];
    assert_eq!(rows, wanted);
    let inner = the(&profile, "inner");
    assert_eq!((inner.all.samples(), &*inner.into[0].0), (8, "outer"));
}

#[test]
fn an_interpreted_entry_is_no_unknown_place() {
    let unknown = ChainFrame {
        method: MethodKey(1),
        position: Position::Unknown,
    };
    let mut recording = Recording::of("HotSpot");
    recording
        .put(method(1, "run()V", 1, &[0]))
        .constituent(Constituent {
            method: Some(MethodKey(1)),
            name: "A.run()V".into(),
            kind: ConstituentKind::Interpreter,
            process: PROCESS,
            tier: "interpreter".into(),
            map: covers(vec![vec![unknown], vec![at(1, 0)]]),
            ..code(1, 0, 0x10000, 0x10020)
        })
        .sample(1, THREAD, 0x10000)
        .sample(2, THREAD, 0x10010);
    let run = the(&recording.profile(), "run");
    assert_eq!(run.rows[0].spot, Spot::Entry);
    assert_eq!(run.rows[1].spot, Spot::Bytecode(BytecodePc(0)));
    assert_eq!(run.all.exact, 2);
}

#[test]
fn every_sample_of_a_method_is_of_one_version() {
    let file = recordings::screens::java();
    let profile = profile_of(recordings::read(&file).unwrap(), Vec::new(), true);
    let filter = Filter::default();
    let stop = Stop::new();
    let taken = Taken::of(&profile, &filter);
    for candidate in candidates(&profile, &filter).iter().filter(|c| c.method) {
        let subject = &candidate.subject;
        let located = Located::of(&profile, &ByMethod::of(&profile), subject);
        let all = versions(&taken, &located, &stop).unwrap();
        let samples: u64 = all.iter().map(|version| version.samples).sum();
        assert_eq!(samples, candidate.all, "{}", candidate.label);
        for version in &all {
            let origin = Some(version.origin);
            let of_one = annotate(&taken, &located, origin, &stop).unwrap();
            assert_eq!(of_one.all.samples(), version.samples, "{version:?}");
            if let Origin::Code(code) = version.origin {
                let pieces = machine_code(&profile, subject, &[code]).remove(0);
                let spots = pieces.iter().map(|piece| &piece.path[0].spot);
                let spots: Vec<&Spot> = spots.collect();
                // Every sampled place has machine code.
                let mut rows = of_one.rows.iter();
                assert!(rows.all(|row| spots.contains(&&row.spot) || row.spot == Spot::Unknown));
            }
        }
    }
    let lives: Vec<(String, bool)> = the_versions(&profile, "com.acme.risk.Limits.check");
    let told = ["C1 profiling", "C2", "C1 profiling", "C2"];
    assert_eq!(lives.iter().map(|life| &*life.0).collect::<Vec<_>>(), told);
    assert_eq!(
        lives.iter().map(|life| life.1).collect::<Vec<_>>(),
        [true, true, true, false]
    );
}

/// Samples of each place, keyed by the inlining path; for inlined methods, samples of their own
/// places.
fn by_place(rows: &[Row], way: &str, samples: &mut BTreeMap<String, u64>) {
    for row in rows {
        let here = format!("{way} {:?}", row.spot);
        *samples.entry(here.clone()).or_default() += row.own.samples();
        for inlined in &row.inlined {
            let inside = format!("{here} {:?}", inlined.subject);
            by_place(&inlined.rows, &inside, samples);
        }
    }
}

#[test]
fn versions_side_by_side_add_up_place_by_place() {
    let file = recordings::screens::java();
    let profile = profile_of(recordings::read(&file).unwrap(), Vec::new(), true);
    let filter = Filter::default();
    let stop = Stop::new();
    let mut several = 0;
    let taken = Taken::of(&profile, &filter);
    for candidate in candidates(&profile, &filter).iter().filter(|c| c.method) {
        let subject = &candidate.subject;
        let all = Annotation::of(&profile, &filter, subject);
        let located = Located::of(&profile, &ByMethod::of(&profile), subject);
        let versions = versions(&taken, &located, &stop).unwrap();
        let wanted: Vec<Origin> = versions.iter().map(|version| version.origin).collect();
        let beside = sides(&taken, &located, &wanted, &stop).unwrap();
        assert_eq!(beside.len(), versions.len());
        let mut together = BTreeMap::new();
        for (side, version) in beside.iter().zip(&versions) {
            by_place(&side.rows, "", &mut together);
            assert_eq!(side.all.samples(), version.samples);
            assert_eq!(side.total, all.total);
            // Separate annotation of each version gives the same rows.
            let origin = Some(version.origin);
            let alone = annotate(&taken, &located, origin, &stop).unwrap();
            assert_eq!(format!("{:?}", alone.rows), format!("{:?}", side.rows));
            assert_eq!(alone.error, side.error);
            several += usize::from(version.samples > 320 && versions.len() > 2);
            for row in side.rows.iter().filter(|row| row.own.samples() > 0) {
                assert_eq!(row.error.is_some(), version.samples >= 320, "{row:?}");
            }
        }
        let mut of_all = BTreeMap::new();
        by_place(&all.rows, "", &mut of_all);
        assert_eq!(together, of_all, "{}", candidate.label);
    }
    assert!(several > 1, "{several} methods of several versions");
}

/// Tiers of a method's code in time order, each with whether the code is gone.
fn the_versions(profile: &Profile, name: &str) -> Vec<(String, bool)> {
    let filter = Filter::default();
    let all = candidates(profile, &filter);
    let Choice::One(subject) = choose(profile, &all, Some(name)) else {
        panic!("{name}");
    };
    let located = Located::of(profile, &ByMethod::of(profile), &subject);
    let versions = versions(&Taken::of(profile, &filter), &located, &Stop::new()).unwrap();
    let code = versions
        .into_iter()
        .filter(|version| version.bytes.is_some());
    code.map(|version| (version.tier, version.gone.is_some()))
        .collect()
}

fn calls_of(profile: &Profile, filter: &Filter, subject: &Subject) -> Calls {
    let located = Located::of(profile, &ByMethod::of(profile), subject);
    calls(profile, filter, &located, &Stop::new()).unwrap()
}

#[test]
fn callers_and_callees_are_counted_once_a_stack() {
    let profile = profile_of(
        recordings::read(&recordings::screens::java()).unwrap(),
        Vec::new(),
        true,
    );
    let filter = Filter::default();
    for candidate in candidates(&profile, &filter).iter().take(20) {
        let calls = calls_of(&profile, &filter, &candidate.subject);
        // The stack contains the method whenever the site does, and counts each sample once.
        assert!(calls.samples >= candidate.all, "{}", candidate.label);
        assert_eq!(calls.own, candidate.own, "{}", candidate.label);
        let all = calls.callers.iter().chain(&calls.callees);
        assert!(all.clone().all(|call| call.samples <= calls.samples));
        let called: u64 = calls.callees.iter().map(|call| call.samples).sum();
        assert!(called >= calls.samples - calls.own, "{}", candidate.label);
        assert!(all.map(|call| call.inlined).sum::<u64>() >= candidate.all - candidate.own);
        // Samples outside the method's own sites are in callees of its places.
        let mut annotation = Annotation::of(&profile, &filter, &candidate.subject);
        annotation.put_calls(&calls);
        let called: u64 = annotation.rows.iter().map(|row| row.called).sum();
        let others = calls.samples - candidate.all;
        assert!(called >= others, "{}: {called}", candidate.label);
        assert_eq!(samples_of(&annotation.rows), candidate.all);
    }
}

/// A method is found by name even if only its callees have samples.
#[test]
fn a_method_without_samples_has_call_sites() {
    let frame = |function: &str, line| NativeFrame {
        function: function.into(),
        file: "/src/run.c".into(),
        line,
    };
    let mut run = function(0, 0x100, "run");
    run.lines = vec![
        piece(0x10, vec![frame("run", 5)]),
        // `run` goes through an inlined `each`.
        piece(0x20, vec![frame("each", 2), frame("run", 7)]),
    ];
    let mut recording = Recording::of("native");
    recording.put(Record::Symbols(Symbols {
        owner: SymbolOwner::Module(PROGRAM),
        functions: vec![
            run,
            function(0x100, 0x100, "work"),
            function(0x200, 0x100, "runner"),
        ],
        note: String::new(),
    }));
    let at = |offset: u64| PROGRAM_AT + offset;
    let stacks: [(u64, &[u64]); 4] = [
        (2, &[at(0x110), at(0x18)]),
        (3, &[at(0x110), at(0x28)]),
        // Recursion counts each place once.
        (4, &[at(0x110), at(0x18), at(0x18), at(0x28)]),
        (1, &[at(0x210)]),
    ];
    let samples = stacks
        .iter()
        .flat_map(|&(samples, stack)| (0..samples).map(move |_| stack));
    for (stack, time) in samples.zip(1..) {
        recording.put(recordings::stack_sample(
            time,
            THREAD,
            stack.iter().copied(),
        ));
    }
    recording.end(100);
    let profile = recording.profile();
    let filter = Filter::default();
    let all = candidates(&profile, &filter);
    // `run` is the whole name of a method without samples; `ru` prefers a method with samples.
    let one = |name| match choose(&profile, &all, name) {
        Choice::One(subject) => subject,
        other => panic!("{name:?}: {other:?}"),
    };
    let name_of = |name| Annotation::of(&profile, &filter, &one(name)).name;
    assert_eq!(name_of(Some("run")), "run");
    assert_eq!(name_of(Some("ru")), "runner");
    assert_eq!(name_of(None), "work");
    let run = one(Some("run"));
    let calls = calls_of(&profile, &filter, &run);
    assert_eq!((calls.total, calls.samples, calls.own), (10, 9, 0));
    let mut annotation = Annotation::of(&profile, &filter, &run);
    assert_eq!(annotation.all.samples(), 0);
    annotation.put_calls(&calls);
    assert_eq!(annotation.file, "/src/run.c");
    let rows = annotation.rows.iter();
    let rows: Vec<_> = rows.map(|row| (row.line, row.called)).collect();
    assert_eq!(rows, [(Some(5), 6), (Some(7), 7)]);
}

/// Without recorded chains, inlined functions are the only calls. Sums suffice for every filter.
#[test]
fn without_chains_calls_are_what_was_inlined() {
    let mut profile = profile_of(
        recordings::read(&recordings::screens::java()).unwrap(),
        Vec::new(),
        true,
    );
    profile.trace.samples.chains = Vec::new();
    profile.trace.chains = Default::default();
    let half = TimeNs(profile.trace.samples.times[profile.trace.samples.times.len() / 2].0);
    let second = Filter {
        from: Some(half),
        ..Filter::default()
    };
    let mut inlined = 0;
    for filter in [Filter::default(), second] {
        for candidate in &candidates(&profile, &filter) {
            let calls = calls_of(&profile, &filter, &candidate.subject);
            assert_eq!(calls.samples, candidate.all, "{}", candidate.label);
            assert_eq!(calls.own, candidate.own, "{}", candidate.label);
            for call in calls.callers.iter().chain(&calls.callees) {
                assert_eq!(call.samples, call.inlined, "{}", candidate.label);
                inlined += call.inlined;
            }
        }
    }
    assert!(inlined > 100, "{inlined}");
}
