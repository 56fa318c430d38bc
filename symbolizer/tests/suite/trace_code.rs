//! Samples in generated code: ranges, chains, caches and certainty.

use crate::recordings::{self, PROCESS, Recording, THREAD, code, names};
use vmscope_records::{
    BoundaryRule, BytecodePc, ChainFrame, Constituent, ConstituentKind, Cover, Exactness,
    LineEntry, Method, MethodKey, PcMap, PicCase, Position, Record, TimeNs,
};
use vmscope_symbolizer::profile::{Case, EntryKind, Site};
use vmscope_symbolizer::{EntryId, Filter, Id, Profile, Region, Summary};

fn boundary(entries: &[(u32, u32)], exactness: Exactness) -> PcMap {
    PcMap::Boundary {
        rule: BoundaryRule::AfterInstruction,
        exactness,
        entries: entries
            .iter()
            .map(|&(mc, bc)| (mc, BytecodePc(bc)))
            .collect(),
    }
}

fn frame(method: u64, bytecode: u32) -> ChainFrame {
    ChainFrame {
        method: MethodKey(method),
        position: Position::Bytecode(BytecodePc(bytecode)),
    }
}

fn cover(start: u32, end: u32, chain: u32) -> Cover {
    Cover {
        start,
        end,
        chain,
        exactness: Exactness::Exact,
        method_error: 0,
    }
}

fn site_of(profile: &Profile, sample: usize) -> &Site {
    let place = profile.trace.samples.places[sample];
    profile.site_at(place)
}

fn range(profile: &Profile, sample: usize) -> (Option<u32>, Option<u32>) {
    let site = site_of(profile, sample);
    (site.from.map(|pc| pc.0), site.to.map(|pc| pc.0))
}

#[test]
fn boundaries_cut_a_method_into_ranges() {
    let mut recording = Recording::of("Cog");
    recording.constituent(Constituent {
        map: boundary(&[(0x10, 23), (0x20, 30), (0x28, 31)], Exactness::Exact),
        ..code(1, 0, 0x9000, 0x9040)
    });
    for at in [0, 0xf, 0x10, 0x1f, 0x20, 0x28, 0x3f, 0x40] {
        recording.sample(1, THREAD, 0x9000 + at);
    }
    let profile = recording.profile();
    let ranges: Vec<_> = (0..8).map(|sample| range(&profile, sample)).collect();
    let (entry, middle, last) = ((None, Some(23)), (Some(23), Some(30)), (Some(31), None));
    assert_eq!(ranges[..4], [entry, entry, middle, middle]);
    assert_eq!(ranges[4..7], [(Some(30), Some(31)), last, last]);
    assert_eq!(names(&profile)[7], "(not mapped)", "the end is outside");
    assert!((0..7).all(|sample| site_of(&profile, sample).bounded));
    assert_eq!(profile.sites.len(), 5);
}

/// Between addresses of last instructions, a range may have bytecodes of several lines.
#[test]
fn ranges_of_one_bytecode_have_its_line() {
    let line = |from, line| LineEntry {
        from: BytecodePc(from),
        line,
    };
    let entries = vec![(0x10, BytecodePc(2)), (0x20, BytecodePc(7))];
    for (rule, lines) in [
        (BoundaryRule::AtStart, [None, Some(3), Some(8)]),
        (BoundaryRule::AfterInstruction, [None; 3]),
    ] {
        let mut recording = Recording::of("V8");
        recording.put(Record::Method(Box::new(Method {
            key: MethodKey(9),
            lines: vec![line(0, 3), line(7, 8)],
            ..Method::default()
        })));
        recording.constituent(Constituent {
            method: Some(MethodKey(9)),
            map: PcMap::Boundary {
                rule,
                exactness: Exactness::Exact,
                entries: entries.clone(),
            },
            ..code(1, 0, 0x9000, 0x9040)
        });
        for at in [0, 0x10, 0x20] {
            recording.sample(1, THREAD, 0x9000 + at);
        }
        let profile = recording.profile();
        let found: Vec<_> = (0..3).map(|it| site_of(&profile, it).frame.line).collect();
        assert_eq!(found, lines, "{rule:?}");
    }
}

#[test]
fn equal_chains_are_one_range_wherever_their_code_lies() {
    let chains = vec![
        vec![frame(1, 5)],
        vec![frame(2, 3), frame(1, 5)],
        vec![frame(2, 3), frame(1, 9)],
    ];
    let mut recording = Recording::of("HotSpot");
    let mut method = |key: u64, class: &str, name: &str| {
        recording.put(Record::Method(Box::new(Method {
            key: MethodKey(key),
            class: class.into(),
            name: name.into(),
            file: format!("{class}.java"),
            lines: vec![
                LineEntry {
                    from: BytecodePc(0),
                    line: 10,
                },
                LineEntry {
                    from: BytecodePc(4),
                    line: 11,
                },
            ],
            ..Method::default()
        })));
    };
    method(1, "Outer", "run");
    method(2, "Inner", "get");
    recording
        .constituent(Constituent {
            name: "Outer.run".into(),
            tier: "C2".into(),
            method: Some(MethodKey(1)),
            map: PcMap::Covers {
                covers: vec![
                    cover(0, 0x10, 0),
                    cover(0x10, 0x20, 1),
                    cover(0x20, 0x28, 2),
                    // Gap: 0x28..0x30.
                    cover(0x30, 0x40, 1),
                ],
                chains,
            },
            ..code(1, 0, 0x9000, 0x9060)
        })
        .constituent(Constituent {
            name: "Inner.get".into(),
            tier: "C2".into(),
            method: Some(MethodKey(2)),
            map: PcMap::Covers {
                covers: vec![cover(0, 0x10, 0)],
                chains: vec![vec![frame(2, 3)]],
            },
            ..code(2, 0, 0xa000, 0xa010)
        });
    for at in [0x9000, 0x9010, 0x9020, 0x9028, 0x9030, 0x9040, 0xa000] {
        recording.sample(1, THREAD, at);
    }
    let profile = recording.profile();
    assert_eq!(
        names(&profile),
        [
            "Outer.run",
            "Inner.get",
            "Inner.get",
            "Outer.run",
            "Inner.get",
            "Outer.run",
            "Inner.get"
        ]
    );
    assert_eq!(profile.entries.len(), 2, "{:?}", profile.entries);
    assert_eq!(
        profile.entries[EntryId::of(1)].module,
        "Inner",
        "of its own class"
    );
    assert_eq!(
        site_of(&profile, 1),
        site_of(&profile, 4),
        "one chain, two pieces of code"
    );
    assert_ne!(site_of(&profile, 1), site_of(&profile, 2), "another call");
    let inlined = site_of(&profile, 1);
    assert_eq!(
        (inlined.frame.line, inlined.via[0].line),
        (Some(10), Some(11))
    );
    assert_eq!(&*inlined.via[0].name, "Outer.run");
    assert_eq!(inlined.exactness, Exactness::Exact);
    for gap in [3, 5] {
        assert_eq!(site_of(&profile, gap).exactness, Exactness::MethodOnly);
    }
}

#[test]
fn inlined_methods_are_named_as_the_vm_names_its_code() {
    let mut recording = Recording::of("Cog");
    recording
        .method(1, "Integer", "benchFib")
        .method(2, "SmallInteger", "+")
        .constituent(Constituent {
            name: "Integer>>benchFib".into(),
            method: Some(MethodKey(1)),
            map: PcMap::Covers {
                covers: vec![cover(0, 0x10, 0)],
                chains: vec![vec![frame(2, 3), frame(1, 5)]],
            },
            ..code(1, 0, 0x9000, 0x9060)
        })
        .sample(1, THREAD, 0x9000);
    assert_eq!(names(&recording.profile()), ["SmallInteger>>+"]);
}

#[test]
fn exactness_is_what_the_map_is_worth() {
    let method = |key: u64, map: PcMap, kind: ConstituentKind| Constituent {
        map,
        kind,
        ..code(key, 0, 0x9000 + key * 0x100, 0x9100 + key * 0x100)
    };
    let approximate = boundary(&[(4, 4)], Exactness::Approximate);
    let mut recording = Recording::of("Cog");
    recording
        .constituent(method(0, approximate.clone(), ConstituentKind::Method))
        .constituent(method(1, PcMap::None, ConstituentKind::Method))
        .constituent(method(2, PcMap::None, ConstituentKind::Trampoline))
        .constituent(method(3, PcMap::None, ConstituentKind::OpenPic))
        .constituent(method(
            4,
            approximate,
            ConstituentKind::Other("script".into()),
        ))
        .constituent(method(5, PcMap::None, ConstituentKind::Interpreter));
    for key in 0..6 {
        recording.sample(1, THREAD, 0x9000 + key * 0x100);
    }
    let profile = recording.profile();
    let worth: Vec<_> = (0..6).map(|n| site_of(&profile, n).exactness).collect();
    assert_eq!(
        worth,
        [
            Exactness::Approximate,
            Exactness::MethodOnly,
            Exactness::Exact,
            Exactness::Exact,
            Exactness::Approximate,
            Exactness::Exact,
        ]
    );
    let summary = Summary::with_errors(&profile, &Filter::default());
    let quality = summary.quality;
    assert_eq!(
        (quality.exact, quality.approximate, quality.method_only),
        (3, 2, 1)
    );
    assert_eq!(summary.regions[Region::Interpreter as usize], 1);
}

#[test]
fn a_pic_shows_the_cases_that_it_had_last() {
    let case = |class: &str, target: &str| PicCase {
        class: class.into(),
        method: None,
        target: target.into(),
    };
    let pic = |cases| Constituent {
        name: "at:".into(),
        kind: ConstituentKind::ClosedPic,
        cases,
        ..code(1, 0, 0x9000, 0x9100)
    };
    let mut recording = Recording::of("Cog");
    recording
        .constituent(pic(vec![case("Array", "Object>>at:")]))
        .sample(1, THREAD, 0x9010)
        .constituent(pic(vec![
            case("Array", "Object>>at:"),
            case("ByteString", "String>>at:"),
        ]))
        .sample(2, THREAD, 0x9020);
    let profile = recording.profile();
    assert_eq!(profile.entries.len(), 1);
    let entry = &profile.entries[EntryId::of(0)];
    assert_eq!(entry.kind, EntryKind::Code(ConstituentKind::ClosedPic));
    assert_eq!(
        entry.cases[1],
        Case {
            class: "ByteString".into(),
            target: "String>>at:".into()
        }
    );
    assert_eq!(entry.cases.len(), 2);
}

#[test]
fn tiers_of_a_method_are_entries_of_their_own() {
    let tier = |key: u64, tier: &str| Constituent {
        name: "f".into(),
        tier: tier.into(),
        ..code(key, 0, 0x9000 + key * 0x100, 0x9100 + key * 0x100)
    };
    let mut recording = Recording::of("V8");
    recording
        .constituent(tier(1, "Sparkplug"))
        .constituent(tier(2, "TurboFan"))
        .constituent(tier(3, "TurboFan"));
    for key in 1..4 {
        recording.sample(1, THREAD, 0x9010 + key * 0x100);
    }
    let summary = Summary::with_errors(&recording.profile(), &Filter::default());
    assert_eq!(*summary.entries, [1, 2]);
}

#[test]
fn code_belongs_to_its_own_process() {
    let mut recording = Recording::of("V8");
    recording
        .constituent(Constituent {
            process: vmscope_records::ProcessKey(9),
            ..code(1, 0, 0x9000, 0x9100)
        })
        .constituent(Constituent {
            process: PROCESS,
            ..code(2, 0, 0x9000, 0x9100)
        })
        .sample(1, THREAD, 0x9050);
    assert_eq!(names(&recording.profile()), ["m2"]);
}

#[test]
fn what_two_may_claim_is_nobodys() {
    let mut recording = Recording::of("Cog");
    recording
        .constituent(code(1, 0, 0x9000, 0x9100))
        .gone(1, 100, 200)
        .constituent(Constituent {
            absent_at: Some(TimeNs(100)),
            ..code(2, 200, 0x9000, 0x9080)
        });
    for (time, pc) in [
        (50, 0x9010),
        (150, 0x9010),
        (150, 0x9090),
        (250, 0x9010),
        (250, 0x9090),
    ] {
        recording.sample(time, THREAD, pc);
    }
    let profile = recording.profile();
    assert_eq!(
        names(&profile),
        ["m1", "(doubtful: code changed)", "m1", "m2", "(not mapped)"]
    );
    let quality = Summary::with_errors(&profile, &Filter::default()).quality;
    assert_eq!((quality.doubtful, quality.unresolved), (1, 1));
}

#[test]
fn what_lies_is_not_believed() {
    let mut recording = Recording::of("Cog");
    let absurd = |key: u64, start: u64, end: u64| code(key, 0, start, end);
    recording
        .constituent(absurd(1, 0x9100, 0x9000))
        .constituent(absurd(2, 0, u64::MAX))
        .constituent(absurd(3, u64::MAX, u64::MAX))
        .constituent(Constituent {
            map: boundary(&[(9, 9), (3, 3), (u32::MAX, u32::MAX)], Exactness::Exact),
            ..absurd(4, u64::MAX - 9, u64::MAX)
        })
        .constituent(Constituent {
            map: PcMap::Covers {
                covers: vec![cover(9, 3, 0), cover(0, u32::MAX, 1)],
                chains: vec![Vec::new(), Vec::new()],
            },
            ..absurd(5, 0x5000, 0x6000)
        })
        // Unknown keys, and a reused key.
        .gone(77, 0, 0)
        .moved(78, 0, 0, 0)
        .moved(5, u64::MAX, 0, u64::MAX)
        .constituent(absurd(4, 0, 1))
        .map(PROCESS, 0, u64::MAX, 0, 0, None)
        .map(PROCESS, 0, 0, u64::MAX, u64::MAX, Some(recordings::PROGRAM));
    for pc in [0, 0x5001, 0x9050, u64::MAX - 5, u64::MAX] {
        recording.sample(u64::MAX - pc, THREAD, pc);
    }
    let profile = recording.profile();
    assert_eq!(Summary::with_errors(&profile, &Filter::default()).total, 5);
}
