//! Reports of recordings made by hand.

use crate::golden_file::{fits, fits_one_screen, golden, golden_of, printed, report};
use crate::recordings::{PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD, code, session};
use vmscope_records::{
    BoundaryRule, BytecodePc, Constituent, ConstituentKind, Counter, CounterMeaning, CpuMode,
    DurationNs, Exactness, Fact, Limit, LimitKind, LossReason, Lost, MethodKey, ModuleKey, PcMap,
    PicCase, Record, Session, Stream, ThreadEnd, ThreadKey, ThreadRole, TimeNs, VmIdentity,
};

const SECOND: u64 = 1_000_000_000;
const ZONE: u64 = 0x1000_0000;

/// Samples at an address, spread over the recording.
struct Spread(Vec<(u64, ThreadKey, u64, CpuMode)>);

impl Spread {
    fn at(&mut self, pc: u64, samples: u64) {
        self.on(THREAD, pc, samples, CpuMode::User);
    }

    fn on(&mut self, thread: ThreadKey, pc: u64, samples: u64, mode: CpuMode) {
        for index in 0..samples {
            let time = SECOND + (2 * index + 1) * 7 * SECOND / (2 * samples);
            self.0.push((time, thread, pc, mode));
        }
    }

    fn into(mut self, recording: &mut Recording) {
        self.0.sort_by_key(|(time, ..)| *time);
        for (time, thread, pc, mode) in self.0 {
            recording.sample_in(time, thread, pc, mode);
        }
    }
}

fn thread_end(key: ThreadKey, milliseconds: u64) -> Record {
    Record::ThreadEnd(ThreadEnd {
        key,
        time: TimeNs(8 * SECOND),
        alive: true,
        cpu: DurationNs(milliseconds * 1_000_000),
        cpu_measured: true,
        cpu_user: None,
    })
}

fn at_second_one(kind: &str, version: &str) -> Session {
    Session {
        time: TimeNs(SECOND),
        vm: VmIdentity {
            kind: kind.into(),
            version: version.into(),
        },
        command: vec![
            "/usr/lib/squeak/squeak".into(),
            "tinyBenchmarks.image".into(),
        ],
        period: DurationNs(713_927),
        ..session(kind)
    }
}

/// The paper's Figure 7.
fn figure_7() -> Vec<u8> {
    let mut recording = Recording::of("Cog");
    recording.put(Record::Session(Box::new(at_second_one(
        "Cog",
        "5.0-201706131152",
    ))));
    let libc = ModuleKey(2);
    recording
        .module(libc, "/lib/x86_64-linux-gnu/libc.so.6", false)
        .map(PROCESS, 0, 0x7000_0000, 0x7000_1000, 0, Some(libc))
        .symbols(libc, &[(0, 0x100, "memmove")])
        .symbols(
            PROGRAM,
            &[
                (0x000, 0x100, "primitiveStringReplace"),
                (0x100, 0x100, "instantiateClassindexableSize"),
                (0x200, 0x100, "scavengeReferentsOf"),
                (0x300, 0x100, "copyAndForward"),
                (0x400, 0x100, "heartbeat_handler"),
                (0x500, 0x100, "moveFramesInthroughtoPage.isra.74"),
                (0x600, 0x100, "handleStackOverflow"),
            ],
        );
    for (name, value) in [
        ("eden size", "3,801,936"),
        ("stack pages", "50"),
        ("code size", "1,048,576"),
    ] {
        recording.put(Record::Fact(Fact {
            process: PROCESS,
            time: TimeNs(SECOND),
            name: name.into(),
            value: value.into(),
        }));
    }
    let map = |boundaries: &[u32]| PcMap::Boundary {
        rule: BoundaryRule::AfterInstruction,
        exactness: Exactness::Exact,
        entries: (1..)
            .zip(boundaries)
            .map(|(n, &bc)| (n * 0x10, BytecodePc(bc)))
            .collect(),
    };
    let mut spread = Spread(Vec::new());
    let methods: [(&str, &[u32], &[u64]); 6] = [
        (
            "Integer>>benchFib",
            &[23, 30, 31, 34, 35, 36, 38],
            &[2744, 279, 137, 390, 160, 312, 145, 568],
        ),
        (
            "Integer>>benchmark",
            &[44, 50, 60, 65, 66, 70, 74, 78, 84, 88, 90, 94, 98, 100],
            &[0, 1, 235, 81, 84, 128, 61, 734, 179, 180, 44, 107, 70, 1],
        ),
        ("Object>>at:put:", &[], &[1546]),
        ("SmallInteger>>+", &[], &[1085]),
        ("Object>>at:", &[], &[611]),
        (
            "SequenceableCollection>>replaceFrom:to:with:startingAt:",
            &[4, 8],
            &[2, 0, 1],
        ),
    ];
    for (key, (name, boundaries, samples)) in (1..).zip(methods) {
        let start = ZONE + key * 0x1000;
        recording.constituent(Constituent {
            name: name.into(),
            method: Some(MethodKey(key)),
            map: map(boundaries),
            ..code(key, SECOND, start, start + 0x200)
        });
        for (range, &samples) in (0..).zip(samples) {
            spread.at(start + range * 0x10, samples);
        }
    }
    let case = |class: &str, target: &str| PicCase {
        class: class.into(),
        method: None,
        target: target.into(),
    };
    recording
        .constituent(Constituent {
            name: "at:".into(),
            kind: ConstituentKind::ClosedPic,
            cases: vec![
                case("Array", "Object>>at:"),
                case("ByteString", "String>>at:"),
            ],
            ..code(20, SECOND, ZONE + 0x100, ZONE + 0x200)
        })
        .constituent(Constituent {
            name: "ceSendMustBeBoolean".into(),
            kind: ConstituentKind::Trampoline,
            ..code(21, SECOND, ZONE, ZONE + 0x100)
        });
    spread.at(ZONE, 40);
    spread.at(ZONE + 0x110, 35);
    for (at, samples) in [
        (0x10, 136),
        (0x110, 92),
        (0x210, 28),
        (0x310, 12),
        (0x510, 6),
        (0x610, 2),
    ] {
        spread.at(PROGRAM_AT + at, samples);
    }
    let heartbeat = ThreadKey(2);
    recording
        .thread(
            heartbeat,
            PROCESS,
            SECOND,
            "heartbeat",
            ThreadRole::Heartbeat,
        )
        .put(thread_end(THREAD, 7_050))
        .put(thread_end(heartbeat, 5));
    spread.on(heartbeat, PROGRAM_AT + 0x410, 6, CpuMode::User);
    spread.at(0x7000_0010, 12);
    spread.on(THREAD, 0xffff_8000_0000_1000, 9, CpuMode::Kernel);
    let gauge = CounterMeaning::Gauge;
    let total = CounterMeaning::Total;
    for (section, name, unit, meaning, first, last) in [
        ("Memory", "old", "bytes", gauge, 41_943_040.0, 42_100_656.0),
        ("Memory", "free", "bytes", gauge, 1_048_576.0, 1_048_576.0),
        ("GCs", "full", "", total, 3.0, 3.0),
        ("GCs", "scavenges", "", total, 1000.0, 1182.0),
        ("GCs", "scavenge time", "ns", total, 0.0, 53e6),
        (
            "Compiled Code Compactions",
            "compactions",
            "",
            total,
            0.0,
            0.0,
        ),
        ("Events", "Process switches", "", total, 12.0, 50.0),
        ("Events", "Stack overflows", "", total, 0.0, 15_183.0),
    ] {
        for (time, value) in [(SECOND, first), (8 * SECOND, last)] {
            recording.put(Record::Counter(Counter {
                process: PROCESS,
                time: TimeNs(time),
                section: section.into(),
                name: name.into(),
                unit: unit.into(),
                meaning,
                value,
            }));
        }
    }
    spread.into(&mut recording);
    recording.end(8 * SECOND).bytes()
}

/// A native program, with names that would disturb a terminal or a table.
fn native() -> Vec<u8> {
    let mut recording = Recording::of("native");
    recording.put(Record::Session(Box::new(Session {
        command: vec!["./simulate".into(), "--cells=4096".into()],
        kernel_included: false,
        ..at_second_one("native", "")
    })));
    let long = "std::__detail::_Map_base<std::string, std::pair<std::string const, int>, \
                std::allocator<std::pair<std::string const, int>>>::operator[](std::string const&)";
    recording.symbols(
        PROGRAM,
        &[
            (0x000, 0x100, "simulate::Grid::step(int)"),
            (0x100, 0x100, long),
            (
                0x200,
                0x100,
                "漢字の関数名はとても長いことがあるので切らなければならない",
            ),
            (0x300, 0x100, "שלום::עולם"),
            (0x400, 0x100, "evil\u{1b}[2J\u{202e}name"),
            (0x500, 0x100, "rare"),
        ],
    );
    let mut spread = Spread(Vec::new());
    for (at, samples) in [
        (0x10, 5000),
        (0x110, 2500),
        (0x210, 1200),
        (0x310, 600),
        (0x410, 300),
        (0x510, 1),
    ] {
        spread.at(PROGRAM_AT + at, samples);
    }
    let worker = ThreadKey(2);
    recording
        .thread(worker, PROCESS, SECOND, "worker\n2", ThreadRole::Other)
        .put(thread_end(THREAD, 6_900))
        .put(Record::Limit(Limit {
            time: TimeNs(SECOND),
            kind: LimitKind::KernelExcluded,
            text: "kernel samples are excluded: shares are of user time, without time in system \
                   calls"
                .into(),
            remedy: "sysctl kernel.perf_event_paranoid=1".into(),
        }));
    spread.on(worker, PROGRAM_AT + 0x10, 50, CpuMode::User);
    spread.into(&mut recording);
    recording.end(8 * SECOND).bytes()
}

/// Native recording with losses, truncation and foreign bytes.
fn damaged() -> Vec<u8> {
    let mut recording = Recording::of("native");
    recording
        .put(Record::Session(Box::new(at_second_one("native", ""))))
        .symbols(PROGRAM, &[(0, 0x100, "work")])
        .put(Record::Lost(Lost {
            stream: Stream::Samples,
            reason: LossReason::RingOverrun,
            count: 1234,
            from: TimeNs(2 * SECOND),
            to: TimeNs(3 * SECOND),
            thread: None,
        }));
    // Lost records other than samples count separately.
    for (stream, reason, count) in [
        (Stream::Adapter, LossReason::Other, 17),
        (Stream::Process, LossReason::RingOverrun, 5),
    ] {
        recording.put(Record::Lost(Lost {
            stream,
            reason,
            count,
            from: TimeNs(2 * SECOND),
            to: TimeNs(3 * SECOND),
            thread: None,
        }));
    }
    let mut spread = Spread(Vec::new());
    spread.at(PROGRAM_AT + 0x10, 700);
    spread.at(PROGRAM_AT + 0x800, 300);
    spread.into(&mut recording);
    let mut bytes = recording.bytes();
    bytes.extend_from_slice(&[0x55; 99]);
    bytes
}

/// Two methods that the VM and a library work for.
fn called() -> Vec<u8> {
    let mut recording = Recording::of("Cog");
    let libc = ModuleKey(2);
    let libc_at = 0x7000_0000;
    recording
        .put(Record::Session(Box::new(at_second_one("Cog", ""))))
        .module(libc, "/lib/x86_64-linux-gnu/libc.so.6", false)
        .map(PROCESS, 0, libc_at, libc_at + 0x1000, 0, Some(libc))
        .symbols(libc, &[(0, 0x100, "memmove")])
        .symbols(PROGRAM, &[(0, 0x100, "instantiateClass")]);
    let methods = [(1, "Parser>>parse"), (2, "Array>>copy\u{1b}[2J")];
    for (key, name) in methods {
        let start = ZONE + key * 0x1000;
        recording.constituent(Constituent {
            name: name.into(),
            method: Some(MethodKey(key)),
            ..code(key, SECOND, start, start + 0x200)
        });
    }
    let (parse, copy) = (ZONE + 0x1010, ZONE + 0x2010);
    // Of limits of callers, the newest counts: the VM's own.
    for (time, text, remedy) in [
        (
            1,
            "callers are found by frame pointers",
            "compile with them",
        ),
        (
            2,
            "compiled code keeps no frame pointers",
            "start it with them",
        ),
    ] {
        recording.put(Record::Limit(Limit {
            time: TimeNs(time * SECOND),
            kind: LimitKind::Callers,
            text: text.into(),
            remedy: remedy.into(),
        }));
    }
    let stacks: [(&[u64], u64); 6] = [
        (&[parse], 400),
        (&[copy], 100),
        (&[PROGRAM_AT + 0x10, parse], 60),
        (&[PROGRAM_AT + 0x10, copy, parse], 20),
        (&[libc_at + 0x10, copy, parse], 30),
        (&[libc_at + 0x10], 10),
    ];
    let all = stacks
        .iter()
        .flat_map(|&(stack, samples)| (0..samples).map(move |_| stack));
    for (index, stack) in (0u64..).zip(all) {
        let time = SECOND + index * 10_000_000;
        recording.stack(time, THREAD, stack.iter().copied());
    }
    recording.end(8 * SECOND).bytes()
}

#[test]
fn methods_and_what_works_for_them() {
    let file = called();
    golden_of(
        "report",
        "brief-called-80.txt",
        &file,
        &["--width=80", "--top=3"],
    );
    golden("called-80.txt", &file, &["--width=80"]);
    golden("called.json", &file, &["--json"]);
}

#[test]
fn call_trees() {
    let file = called();
    let golden = |name: &str, options: &[&str]| {
        golden_of("report", name, &file, &[&["--width=80"], options].concat());
    };
    golden("tree-80.txt", &["--tree"]);
    golden(
        "tree-inverted-80.txt",
        &["--tree", "--inverted", "--min-share=0"],
    );
    golden("callers-80.txt", &["--callers", "memmove"]);
    golden("callees-80.txt", &["--callees", "parser>>"]);
    golden(
        "callees.json",
        &["--callees", "Parser>>parse", "--json", "--min-share=10"],
    );
}

#[test]
fn the_papers_figure_7() {
    let file = figure_7();
    golden(
        "figure7-plain-80.txt",
        &file,
        &["--width=80", "--ranges=none"],
    );
    golden("figure7-detailed-80.txt", &file, &["--width=80"]);
    golden(
        "figure7-plain-120.txt",
        &file,
        &["--width=120", "--ranges=none"],
    );
    golden(
        "figure7-detailed-120.txt",
        &file,
        &["--width=120", "--min-share=0"],
    );
    golden("figure7.json", &file, &["--json"]);
}

#[test]
fn a_native_program() {
    let file = native();
    golden_of("report", "brief-native-100.txt", &file, &["--width=100"]);
    golden("native-100.txt", &file, &["--width=100"]);
    golden(
        "native-part-100.txt",
        &file,
        &["--width=100", "--threads=worker*", "--from=1", "--to=3.5"],
    );
    golden("native.json", &file, &["--json"]);
}

#[test]
fn a_damaged_recording() {
    golden_of(
        "report",
        "brief-damaged-100.txt",
        &damaged(),
        &["--width=100"],
    );
    golden("damaged-100.txt", &damaged(), &["--width=100"]);
}

/// Adapters report the losses of their last polls after the last sample, outside the window.
#[test]
fn losses_after_the_end_are_told_and_explain_unnamed_code() {
    let with = |losses: &[u64]| {
        let mut recording = Recording::of("Cog");
        recording
            .put(Record::Session(Box::new(at_second_one("Cog", ""))))
            .map(PROCESS, 0, ZONE, ZONE + 0x1000, 0, None);
        for count in losses {
            recording.put(Record::Lost(Lost {
                stream: Stream::Adapter,
                reason: LossReason::Other,
                count: *count,
                from: TimeNs(9 * SECOND),
                to: TimeNs(10 * SECOND),
                thread: None,
            }));
        }
        let mut spread = Spread(Vec::new());
        spread.at(ZONE + 0x10, 500);
        spread.into(&mut recording);
        recording.end(8 * SECOND).bytes()
    };
    let no_name = "the VM reported no name, or removed the code before";
    let complete = report(&with(&[]), &["--width=300"]);
    assert!(complete.contains(no_name), "{complete}");
    let file = with(&[1_950_000]);
    let text = report(&file, &["--width=300"]);
    let lost = "1,950,000 VM code events";
    let why = format!("vmscope read it too late or lost it ({lost} were lost)");
    assert!(text.contains(&why), "{text}");
    assert!(!text.contains(no_name), "{text}");
    assert!(text.contains("1,950,000 VM code events (some"), "{text}");
    let json = printed("report", &file, &["--json"]);
    assert!(json.contains(&why), "{json}");
}

/// Many threads with little CPU time lose a large part of their samples; one busy thread does not.
#[test]
fn samples_missing_of_brief_threads_have_that_reason() {
    let with = |threads: u32, milliseconds: u64, samples: u64| {
        let mut recording = Recording::of("native");
        recording.put(Record::Session(Box::new(at_second_one("native", ""))));
        let mut spread = Spread(Vec::new());
        for key in (2..2 + threads).map(ThreadKey) {
            recording
                .thread(key, PROCESS, SECOND, "worker", ThreadRole::Other)
                .put(thread_end(key, milliseconds));
            spread.on(key, PROGRAM_AT, samples, CpuMode::User);
        }
        spread.into(&mut recording);
        report(&recording.end(8 * SECOND).bytes(), &["--width=300"])
    };
    let reason = "most of them of 100 threads with less than 20 periods of CPU time";
    let brief = with(100, 5, 5);
    assert!(brief.contains(reason), "{brief}");
    let busy = with(1, 500, 500);
    assert!(busy.contains("but missing (71.39% received)"), "{busy}");
    assert!(!busy.contains("most of them"), "{busy}");
}

#[test]
fn reasons_for_missing_samples_stand_beside_their_number() {
    let with = |samples: u64| {
        let mut recording = Recording::of("native");
        recording.put(Record::Session(Box::new(at_second_one("native", ""))));
        recording.put(Record::Limit(Limit {
            time: TimeNs(SECOND),
            kind: LimitKind::Missing,
            text: "threads were switched often".to_owned(),
            remedy: String::new(),
        }));
        recording.put(thread_end(THREAD, 500));
        let mut spread = Spread(Vec::new());
        spread.on(THREAD, PROGRAM_AT, samples, CpuMode::User);
        spread.into(&mut recording);
        report(&recording.end(8 * SECOND).bytes(), &["--width=300"])
    };
    let missing = with(500);
    let reason = "but missing (71.39% received); threads were switched often";
    assert!(missing.contains(reason), "{missing}");
    let complete = with(700);
    assert!(!complete.contains("switched"), "{complete}");
}

#[test]
fn the_reason_for_missing_names_stands_beside_their_number() {
    let with = |pc: u64, lost: Option<u64>| {
        let mut recording = Recording::of("Cog");
        recording
            .put(Record::Session(Box::new(at_second_one("Cog", ""))))
            .map(PROCESS, 0, ZONE, ZONE + 0x1000, 0, None)
            .put(Record::Limit(Limit {
                time: TimeNs(SECOND),
                kind: LimitKind::NoNames,
                text: "this VM reports none".to_owned(),
                remedy: "start it with --names".to_owned(),
            }));
        if let Some(count) = lost {
            recording.put(Record::Lost(Lost {
                stream: Stream::Adapter,
                reason: LossReason::Other,
                count,
                from: TimeNs(SECOND),
                to: TimeNs(2 * SECOND),
                thread: None,
            }));
        }
        let mut spread = Spread(Vec::new());
        spread.on(THREAD, pc, 500, CpuMode::User);
        spread.into(&mut recording);
        report(&recording.end(8 * SECOND).bytes(), &["--width=300"])
    };
    let said = "this VM reports none [helps: start it with --names]";
    for lost in [None, Some(70)] {
        let unnamed = with(ZONE + 0x10, lost);
        let line = format!("in JIT code without a name: {said}");
        assert!(unnamed.contains(&line), "{unnamed}");
        assert_eq!(unnamed.matches(said).count(), 1, "{unnamed}");
        assert_eq!(unnamed.contains("70 VM code events"), lost.is_some());
    }
    let other = with(PROGRAM_AT, None);
    assert!(other.contains(&format!("- {said}")), "{other}");
    assert!(!other.contains("without a name"), "{other}");
}

#[test]
fn a_recording_of_nothing() {
    let mut recording = Recording::of("native");
    let file = recording
        .put(Record::Session(Box::new(at_second_one("native", ""))))
        .put(thread_end(THREAD, 0))
        .end(8 * SECOND)
        .bytes();
    golden_of("report", "brief-empty-100.txt", &file, &["--width=100"]);
    golden("empty-100.txt", &file, &["--width=100"]);
    golden("empty.json", &file, &["--json"]);
}

#[test]
fn no_line_is_wider_than_was_asked_for_and_none_disturbs_a_terminal() {
    for file in [figure_7(), native(), damaged(), called()] {
        for width in [60, 61, 80, 99, 120, 200] {
            let columns = format!("--width={width}");
            fits(&report(&file, &[&columns, "--ranges=all"]), width);
            fits_one_screen(&file, width);
        }
    }
}

#[test]
fn colours_are_asked_for() {
    let file = figure_7();
    let text = |color: &str| printed("report", &file, &["--width=100", color]);
    let (plain, coloured) = (text("--color=auto"), text("--color=always"));
    assert_eq!(plain, text("--color=never"));
    assert!(coloured.contains("\u{1b}[1m"), "{coloured}");
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), plain);
}

#[test]
fn percentages_of_a_table_add_up() {
    let text = report(&figure_7(), &["--ranges=none", "--width=120"]);
    let table = text
        .split("% of generated vm code")
        .nth(1)
        .expect("a table");
    let first = |line: &str| {
        line.split('%')
            .next()
            .and_then(|n| n.trim().parse::<f64>().ok())
    };
    let shares: Vec<f64> = table.lines().skip(1).map_while(first).collect();
    assert!(shares.len() > 5);
    assert!((shares.iter().sum::<f64>() - 100.0).abs() < 0.01 * shares.len() as f64);
}
