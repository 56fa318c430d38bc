//! Samples in an interpreter whose registers and stack show the executing method.

use crate::recordings::{PROCESS, Recording, THREAD, code, names};
use vmscope_records::{
    Arch, Avma, BytecodePc, Constituent, ConstituentKind, CpuMode, Exactness, InterpreterRules,
    InterpreterSource, InterpreterValue, LineEntry, Method, MethodKey, ProcessKey, Record,
    Registers, Sample, SampleDetail, SamplePlace, ThreadKey, ThreadRole, TimeNs, Word,
};
use vmscope_symbolizer::profile::{EntryKind, Site};
use vmscope_symbolizer::summary::Quality;
use vmscope_symbolizer::trace::Place;
use vmscope_symbolizer::{Filter, Profile, Region, Summary};

/// The interpreter's code.
const INTERPRETER: u64 = 0x10_0000;
/// Frame address of every sample.
const FRAME: u64 = 0x7000_0000;

// Register numbers of x86-64.
const BX: u32 = 1;
const BP: u32 = 6;
const R13: u32 = 21;

fn constituent(key: u64, kind: ConstituentKind, start: u64, end: u64) -> Constituent {
    Constituent {
        kind,
        name: String::new(),
        ..code(key, 0, start, end)
    }
}

/// A method's bytecodes since a time.
fn bytecodes(key: u64, method: u64, since: u64, start: u64, end: u64) -> Constituent {
    Constituent {
        since: TimeNs(since),
        method: Some(MethodKey(method)),
        ..constituent(key, ConstituentKind::Bytecodes, start, end)
    }
}

fn rules(process: ProcessKey) -> Record {
    let source = |place, holds| InterpreterSource { place, holds };
    let (base, offset) = (BP, -24);
    Record::InterpreterRules(InterpreterRules {
        process,
        time: TimeNs(0),
        vm: "toy".to_owned(),
        ranges: vec![(Avma(INTERPRETER), Avma(INTERPRETER + 0x1000))],
        sources: vec![
            source(SamplePlace::Register(R13), InterpreterValue::Bytecode),
            source(SamplePlace::Register(BX), InterpreterValue::Method),
            source(
                SamplePlace::Stack { base, offset },
                InterpreterValue::Method,
            ),
        ],
    })
}

/// A VM with a one-handler interpreter; methods `A.a` (bytecodes at 0x5000, object at 0x8000,
/// compiled code at 0x20_0000) and `A.b` (0x5100, 0x8100).
fn vm() -> Recording {
    let mut recording = Recording::of("Toy");
    recording.put(rules(PROCESS));
    let handler = Constituent {
        name: "iadd (fast_iadd)".to_owned(),
        ..constituent(
            1,
            ConstituentKind::Interpreter,
            INTERPRETER,
            INTERPRETER + 0x100,
        )
    };
    recording.constituent(handler);
    for (number, name) in [(0, "a"), (1, "b")] {
        let key = MethodKey(number + 1);
        recording.put(Record::Method(Box::new(Method {
            key,
            class: "A".to_owned(),
            name: name.to_owned(),
            file: "A.toy".to_owned(),
            line: 3,
            lines: [(0, 3), (5, 4)]
                .map(|(from, line)| LineEntry {
                    from: BytecodePc(from),
                    line,
                })
                .to_vec(),
            listing: [(0, "iload_1"), (5, "iadd")]
                .map(|(at, text)| (BytecodePc(at), text.to_owned()))
                .to_vec(),
            ..Method::default()
        })));
        let start = 0x5000 + number * 0x100;
        recording.constituent(bytecodes(10 + number, key.0, 0, start, start + 0x20));
        let start = 0x8000 + number * 0x100;
        recording.constituent(Constituent {
            method: Some(key),
            ..constituent(
                20 + number,
                ConstituentKind::MethodObject,
                start,
                start + 0x60,
            )
        });
    }
    recording.constituent(Constituent {
        name: "A::a".to_owned(),
        tier: "C1".to_owned(),
        method: Some(MethodKey(1)),
        ..code(30, 0, 0x20_0000, 0x20_0100)
    });
    recording
}

/// A sample with registers R13 and BX, and the frame's word.
fn sample(time: u64, thread: ThreadKey, pc: u64, [r13, bx, word]: [u64; 3]) -> Record {
    Record::Sample(Sample {
        time: TimeNs(time),
        thread,
        pc: Avma(pc),
        mode: CpuMode::User,
        detail: Some(Box::new(SampleDetail {
            registers: Some(Registers {
                arch: Arch::X86_64,
                mask: 1 << BX | 1 << BP | 1 << R13,
                values: vec![bx, FRAME, r13],
            }),
            words: vec![Word {
                at: Avma(FRAME - 24),
                value: word,
            }],
            ..SampleDetail::default()
        })),
    })
}

fn site_of(profile: &Profile, sample: usize) -> &Site {
    let place = profile.trace.samples.places[sample];
    profile.site_at(place)
}

fn profile_of(recording: &mut Recording, samples: &[[u64; 3]]) -> Profile {
    for (time, values) in (10..).zip(samples) {
        recording.put(sample(time, THREAD, INTERPRETER + 0x10, *values));
    }
    recording.end(1000).profile()
}

#[test]
fn the_first_source_that_shows_something_counts() {
    let samples = [
        [0x5005, 0x8100, 0x8100],
        [0x5000, 0, 0],
        [0x501f, 0, 0],
        // Just past the bytecodes: the entry of BX's method.
        [0x5020, 0x8100, 0x8000],
        // An object's middle is no method.
        [1, 0x8108, 0x8000],
        [1, 2, 3],
    ];
    let profile = profile_of(&mut vm(), &samples);
    assert_eq!(
        names(&profile),
        ["A::a", "A::a", "A::a", "A::b", "A::a", "iadd (fast_iadd)"]
    );
    let from: Vec<Option<u32>> = (0..6)
        .map(|at| site_of(&profile, at).from.map(|pc| pc.0))
        .collect();
    assert_eq!(from, [Some(5), Some(0), Some(31), None, None, None]);
    let site = site_of(&profile, 0);
    assert_eq!(
        (site.frame.line, site.exactness),
        (Some(4), Exactness::Exact)
    );
    // The handler of another bytecode: the pointer is ahead already.
    assert_eq!(site_of(&profile, 1).exactness, Exactness::Approximate);
    assert_eq!((&*site.frame.file, site.bounded), ("A.toy", false));
    let entry = &profile.entries[site.entry];
    assert_eq!(
        (entry.region, &*entry.tier),
        (Region::Interpreter, "interpreter")
    );
    assert_eq!(entry.kind, EntryKind::Code(ConstituentKind::Method));
    assert_eq!((&*entry.module, entry.line), ("A", Some(3)));

    let summary = Summary::with_errors(&profile, &Filter::default());
    let quality = summary.quality;
    assert_eq!((quality.interpreted, quality.without_method), (5, 1));
    assert_eq!((quality.exact, quality.approximate), (3, 2));
    assert_eq!((quality.unresolved, quality.total()), (1, 6));
    assert_eq!(
        summary.of_code,
        Quality {
            interpreted: 0,
            ..quality
        }
    );
    assert_eq!(summary.total, 6);
    assert_eq!(size_of::<Place>(), 16);
}

#[test]
fn samples_elsewhere_are_what_their_pc_says() {
    let mut recording = vm();
    // Compiled code and data: registers are irrelevant.
    for (time, pc) in [(10, 0x20_0010), (11, 0x5005), (12, 0x8000)] {
        recording.put(sample(time, THREAD, pc, [0x5005, 0x8000, 0x8000]));
    }
    // The interpreter without register values.
    recording.sample(13, THREAD, INTERPRETER);
    let profile = recording.end(1000).profile();
    assert_eq!(
        names(&profile),
        ["A::a", "(not mapped)", "(not mapped)", "iadd (fast_iadd)"]
    );
    assert_eq!(profile.entries[site_of(&profile, 0).entry].tier, "C1");
    let quality = Summary::with_errors(&profile, &Filter::default()).quality;
    assert_eq!((quality.interpreted, quality.without_method), (0, 1));
    // The two unmapped samples have no name, either.
    assert_eq!((quality.method_only, quality.unresolved), (1, 3));
}

#[test]
fn a_method_without_a_name_is_unknown() {
    let mut recording = vm();
    recording.constituent(constituent(40, ConstituentKind::Bytecodes, 0x9000, 0x9020));
    let profile = profile_of(&mut recording, &[[0x9005, 0, 0], [0x5005, 0, 0]]);
    assert_eq!(names(&profile), ["(unknown method)", "A::a"]);
    let quality = Summary::with_errors(&profile, &Filter::default()).quality;
    assert_eq!((quality.interpreted, quality.without_method), (1, 1));
    assert_eq!((quality.unresolved, quality.total()), (1, 2));
}

#[test]
fn code_and_data_may_lie_at_the_same_addresses() {
    let mut recording = vm();
    let over = Constituent {
        name: "over".to_owned(),
        ..code(40, 5, 0x5000, 0x9000)
    };
    recording.constituent(over);
    // An object containing its own bytecodes.
    recording.constituent(Constituent {
        method: Some(MethodKey(2)),
        ..constituent(41, ConstituentKind::MethodObject, 0x4ff0, 0x5040)
    });
    recording.put(sample(9, THREAD, 0x5005, [0; 3]));
    let profile = profile_of(
        &mut recording,
        &[[0x5005, 0, 0], [0, 0x8100, 0], [0, 0x4ff0, 0]],
    );
    assert_eq!(names(&profile), ["over", "A::a", "A::b", "A::b"]);
}

#[test]
fn addresses_of_unloaded_bytecodes_are_somebody_elses_or_doubtful() {
    let mut recording = vm();
    // Between two polls, `A.a` is unloaded and `B.c` takes its place.
    recording.method(3, "B", "c");
    recording.gone(10, 100, 200);
    recording.constituent(Constituent {
        absent_at: Some(TimeNs(100)),
        ..bytecodes(50, 3, 200, 0x5010, 0x5030)
    });
    for time in [50, 150, 250] {
        for at in [0x5008, 0x5018, 0x5028] {
            recording.put(sample(time, THREAD, INTERPRETER, [at, 0x8100, 0]));
        }
    }
    let profile = recording.end(1000).profile();
    let doubtful = "(doubtful: code changed)";
    assert_eq!(
        names(&profile),
        [
            ["A::a", "A::a", "A::b"],
            ["A::a", doubtful, "B::c"],
            ["A::b", "B::c", "B::c"],
        ]
        .concat()
    );
    assert_eq!(site_of(&profile, 7).from, Some(BytecodePc(8)));
    let quality = Summary::with_errors(&profile, &Filter::default()).quality;
    assert_eq!(quality.doubtful, 1);
}

#[test]
fn a_fork_runs_its_parents_interpreter_and_an_exec_does_not() {
    let mut recording = vm();
    let (child, exec) = (ProcessKey(2), ProcessKey(3));
    recording.process(child, 20, 101, Some(PROCESS));
    recording.process(exec, 30, 101, Some(child));
    let threads = [(ThreadKey(2), child), (ThreadKey(3), exec)];
    for (thread, process) in threads {
        recording.thread(thread, process, 20, "t", ThreadRole::Mutator);
    }
    for (time, (thread, _)) in (40..).zip(threads) {
        recording.put(sample(time, thread, INTERPRETER, [0x5005, 0, 0]));
    }
    let profile = recording.end(1000).profile();
    assert_eq!(names(&profile), ["A::a", "(not mapped)"]);
}

#[test]
fn rules_that_are_told_again_replace_the_older_ones() {
    let mut recording = vm();
    let Record::InterpreterRules(mut newer) = rules(PROCESS) else {
        unreachable!()
    };
    newer.time = TimeNs(1);
    newer.sources.remove(0);
    recording.put(Record::InterpreterRules(newer));
    let profile = profile_of(&mut recording, &[[0x5005, 0x8100, 0]]);
    assert_eq!(names(&profile), ["A::b"]);
}

/// A stub at 0x30_0000 without a frame; the innermost word of the stack is the return address.
#[test]
fn code_without_a_frame_knows_its_caller() {
    let (base, offset) = (BP, -24);
    let mut recording = vm();
    recording.put(Record::InterpreterRules(InterpreterRules {
        process: PROCESS,
        time: TimeNs(0),
        vm: "toy: code without frames".to_owned(),
        ranges: vec![(Avma(0x30_0000), Avma(0x30_1000))],
        sources: vec![InterpreterSource {
            place: SamplePlace::Stack { base, offset },
            holds: InterpreterValue::Caller,
        }],
    }));
    recording.constituent(Constituent {
        name: "a stub".to_owned(),
        ..constituent(40, ConstituentKind::Stub, 0x30_0000, 0x30_0020)
    });
    // The call is the last instruction of `A::a`; then nothing is at the return address.
    for (time, word) in [(10, 0x20_0100), (11, 0x20_0101), (12, 0x20_0040)] {
        recording.put(sample(time, THREAD, 0x30_0010, [0x5005, 0x8000, word]));
    }
    let profile = recording.end(1000).profile();
    assert_eq!(names(&profile), ["a stub"; 3]);
    let callers = (0..3).map(|sample| {
        let callers = profile.callers_of(site_of(&profile, sample));
        callers.map(|frame| frame.name.to_string()).collect()
    });
    let callers: Vec<Vec<String>> = callers.collect();
    assert_eq!(callers, [vec!["A::a"], vec![], vec!["A::a"]]);
    // A stack has both; neither is inlined.
    let site = profile.site_of_place[profile.trace.samples.places[0]];
    let frames = vmscope_symbolizer::stacks::frames_of(&profile, site, true);
    let frames = frames.map(|frame| {
        let tier = frame.entry.tier.clone();
        (frame.place.name.to_string(), tier, frame.is_inlined())
    });
    let frame = |name: &str, tier: &str| (name.to_owned(), tier.to_owned(), false);
    let frames: Vec<_> = frames.collect();
    assert_eq!(frames, [frame("A::a", "C1"), frame("a stub", "")]);
    // Such code is no interpreter whose method is unknown.
    let summary = Summary::with_errors(&profile, &Filter::default());
    assert_eq!(summary.quality.without_method, 0);
}
