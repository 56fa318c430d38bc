//! Annotated methods of recordings made by hand.

use crate::golden_file::{golden, golden_of, printed};
use crate::recordings::{PROGRAM, PROGRAM_AT, Recording, THREAD, code, function};
use unicode_width::UnicodeWidthStr;
use vmscope_records::{
    BoundaryRule, BytecodePc, ChainFrame, Constituent, ConstituentKind, Cover, Exactness,
    FileOffset, LineEntry, Method, MethodKey, NativeFrame, NativeLines, PcMap, Position, Record,
    SymbolOwner, Symbols,
};

const ZONE: u64 = 0x1000_0000;

/// Samples at addresses, each spread over the whole recording.
fn spread(recording: &mut Recording, samples: &[(u64, u64)]) {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for &(pc, number) in samples {
        all.extend((0..number).map(|index| ((2 * index + 1) * 1_000_000_000 / (2 * number), pc)));
    }
    all.sort_unstable();
    for (time, pc) in all {
        recording.sample(time, THREAD, pc);
    }
    recording.end(1_000_000_000);
}

fn method(key: u64, class: &str, name: &str, listing: &[(u32, &str)]) -> Method {
    Method {
        key: MethodKey(key),
        class: class.into(),
        name: name.into(),
        listing: (listing.iter())
            .map(|&(pc, text)| (BytecodePc(pc), text.to_owned()))
            .collect(),
        ..Method::default()
    }
}

fn put(recording: &mut Recording, method: Method) {
    recording.put(Record::Method(Box::new(method)));
}

/// A Cog method: boundaries stand behind their sends. The paper's §4 explains the range
/// 74->78 by the bytecodes 75 to 78. `Integer>>bare` has no listing.
fn cog() -> Vec<u8> {
    let mut recording = Recording::of("Cog");
    let listing = [
        (70, "<B1> send: value:"),
        (72, "<87> pop"),
        (73, "<10> pushTemp: 0"),
        (74, "<B4> send: at:"),
        (75, "<6B> popIntoTemp: 3"),
        (76, "<13> pushTemp: 3"),
        (77, "<10> pushTemp: 0"),
        (78, "<B4> send: <="),
        (79, "<99> jumpFalse: 92"),
        (90, "<A3> jumpTo: 76"),
        (92, "<78> returnSelf"),
    ];
    put(&mut recording, method(1, "Integer", "benchmark", &listing));
    put(&mut recording, method(2, "Integer", "bare", &[]));
    let boundary = |entries: &[u32]| PcMap::Boundary {
        rule: BoundaryRule::AfterInstruction,
        exactness: Exactness::Exact,
        entries: (1..)
            .zip(entries)
            .map(|(n, &bc)| (n * 0x10, BytecodePc(bc)))
            .collect(),
    };
    for (key, name, entries) in [
        (1, "Integer>>benchmark", &[70, 74, 78, 90][..]),
        (2, "Integer>>bare", &[4, 8]),
    ] {
        recording.constituent(Constituent {
            name: name.into(),
            method: Some(MethodKey(key)),
            map: boundary(entries),
            ..code(key, 0, ZONE * key, ZONE * key + 0x80)
        });
    }
    let samples = [
        (ZONE, 40),
        (ZONE + 0x10, 235),
        (ZONE + 0x20, 734),
        (ZONE + 0x30, 61),
        (2 * ZONE, 7),
        (2 * ZONE + 0x20, 2),
        (PROGRAM_AT, 500),
    ];
    recording.symbols(PROGRAM, &[(0, 0x100, "interpret")]);
    spread(&mut recording, &samples);
    recording.bytes()
}

fn at(key: u64, pc: u32) -> ChainFrame {
    ChainFrame {
        method: MethodKey(key),
        position: Position::Bytecode(BytecodePc(pc)),
    }
}

fn covers(pieces: Vec<(Vec<ChainFrame>, Exactness)>) -> PcMap {
    let covers = (0u32..)
        .zip(&pieces)
        .map(|(chain, (frames, exactness))| Cover {
            start: chain * 0x10,
            end: chain * 0x10 + 0x10,
            chain,
            exactness: *exactness,
            // Inlined methods are inferred.
            method_error: match (exactness, frames.len()) {
                (Exactness::Approximate, 2..) => 40,
                _ => 0,
            },
        });
    PcMap::Covers {
        covers: covers.collect(),
        chains: pieces.into_iter().map(|(chain, _)| chain).collect(),
    }
}

/// A Java method interpreted, compiled by C1, and by C2 with two methods inlined into it, one
/// in the other.
fn java() -> Vec<u8> {
    let mut recording = Recording::of("OpenJDK");
    let listing = [
        (0, "iconst_0"),
        (1, "istore_1"),
        (2, "iload_1"),
        (3, "aload_0"),
        (4, "invokevirtual java/lang/String.length:()I"),
        (7, "if_icmpge 27"),
        (10, "aload_0"),
        (11, "iload_1"),
        (12, "invokevirtual java/lang/String.charAt:(I)C"),
        (15, "istore_2"),
        (16, "iinc 1, 1"),
        (19, "goto 2"),
        (22, "nop"),
        (23, "nop"),
        (24, "nop"),
        (25, "nop"),
        (26, "nop"),
        (27, "iload_1"),
        (28, "ireturn"),
    ];
    let line = |from, line| LineEntry {
        from: BytecodePc(from),
        line,
    };
    for named in [
        Method {
            file: "Scan.java".into(),
            line: 7,
            lines: vec![
                line(0, 7),
                line(2, 8),
                line(10, 9),
                line(16, 8),
                line(27, 11),
            ],
            ..method(1, "demo.Scan", "scan(Ljava/lang/String;)I", &listing)
        },
        Method {
            file: "String.java".into(),
            lines: vec![line(0, 1514), line(7, 1515)],
            ..method(2, "java.lang.String", "charAt(I)C", &[])
        },
        Method {
            file: "StringLatin1.java".into(),
            lines: vec![line(0, 46)],
            ..method(3, "java.lang.StringLatin1", "charAt([BI)C", &[])
        },
    ] {
        put(&mut recording, named);
    }
    let unknown = ChainFrame {
        method: MethodKey(1),
        position: Position::Unknown,
    };
    let (exact, near) = (Exactness::Exact, Exactness::Approximate);
    let c2 = covers(vec![
        (vec![at(1, 2)], exact),
        (vec![at(1, 7)], near),
        (vec![at(2, 9), at(1, 12)], exact),
        (vec![at(3, 8), at(2, 9), at(1, 12)], near),
        (vec![at(3, 15), at(2, 9), at(1, 12)], near),
        (vec![at(2, 0), at(1, 12)], exact),
    ]);
    let c1 = covers(vec![(vec![at(1, 2)], exact), (vec![at(1, 15)], near)]);
    let interpreted = covers(vec![(vec![unknown], exact), (vec![at(1, 12)], exact)]);
    let scan = "demo.Scan.scan(Ljava/lang/String;)I";
    for (key, name, of, tier, kind, map) in [
        (1, scan, 1, "C2", ConstituentKind::Method, c2),
        (2, scan, 1, "C1", ConstituentKind::Method, c1),
        (
            3,
            scan,
            1,
            "interpreter",
            ConstituentKind::Interpreter,
            interpreted,
        ),
        (
            4,
            "java.lang.String.charAt(I)C",
            2,
            "C1",
            ConstituentKind::Method,
            PcMap::None,
        ),
    ] {
        recording.constituent(Constituent {
            name: name.into(),
            kind,
            tier: tier.into(),
            method: Some(MethodKey(of)),
            map,
            ..code(key, 0, ZONE * key, ZONE * key + 0x80)
        });
    }
    let samples = [
        (ZONE, 210),
        (ZONE + 0x10, 90),
        (ZONE + 0x20, 300),
        (ZONE + 0x30, 450),
        (ZONE + 0x40, 33),
        (ZONE + 0x50, 60),
        (ZONE + 0x70, 44),
        (2 * ZONE, 20),
        (2 * ZONE + 0x10, 10),
        (3 * ZONE, 5),
        (3 * ZONE + 0x10, 28),
        (4 * ZONE, 70),
    ];
    spread(&mut recording, &samples);
    recording.bytes()
}

/// A script and a native function, whose source is looked for in `tests/programs`.
fn sources() -> Vec<u8> {
    let mut recording = Recording::of("Node.js");
    put(
        &mut recording,
        Method {
            file: "/build/programs/bench.js".into(),
            line: 86,
            ..method(1, "", "hot", &[])
        },
    );
    let line = |number| {
        let frame = ChainFrame {
            method: MethodKey(1),
            position: Position::Line(number),
        };
        (vec![frame], Exactness::Approximate)
    };
    recording.constituent(Constituent {
        name: "hot".into(),
        tier: "TurboFan".into(),
        method: Some(MethodKey(1)),
        map: covers(vec![line(88), line(90), line(4_000_000_000)]),
        ..code(1, 0, ZONE, ZONE + 0x30)
    });
    let frame = |function: &str, line| NativeFrame {
        function: function.into(),
        file: "/build/programs/inlined.cpp".into(),
        line,
    };
    let mut relax = function(0, 0x100, "sim::Grid<double, 4096ul>::relax()");
    let piece = |start, frames| NativeLines {
        start: FileOffset(start),
        end: FileOffset(start + 0x10),
        frames,
        exactness: Exactness::Exact,
    };
    relax.lines = vec![
        piece(0, vec![frame("relax", 74)]),
        piece(
            0x10,
            vec![frame("mix", 48), frame("blend", 55), frame("relax", 75)],
        ),
        piece(
            0x20,
            vec![frame("mix", 49), frame("blend", 55), frame("relax", 75)],
        ),
    ];
    recording.put(Record::Symbols(Symbols {
        owner: SymbolOwner::Module(PROGRAM),
        functions: vec![relax],
        note: String::new(),
    }));
    let samples = [
        (ZONE, 200),
        (ZONE + 0x10, 399),
        (ZONE + 0x20, 1),
        (PROGRAM_AT, 50),
        (PROGRAM_AT + 0x10, 400),
        (PROGRAM_AT + 0x20, 900),
        (PROGRAM_AT + 0x30, 3),
    ];
    spread(&mut recording, &samples);
    recording.bytes()
}

/// A native program's stacks: `run` calls `work` from two lines, `main` calls `run`. `run` and `main`
/// have no self samples.
fn called() -> Vec<u8> {
    let mut recording = Recording::of("native");
    let piece = |start, function: &str, line| NativeLines {
        start: FileOffset(start),
        end: FileOffset(start + 0x10),
        frames: vec![NativeFrame {
            function: function.into(),
            file: "/build/programs/run.c".into(),
            line,
        }],
        exactness: Exactness::Exact,
    };
    let mut run = function(0, 0x100, "run");
    run.lines = vec![piece(0x10, "run", 12), piece(0x20, "run", 15)];
    let mut work = function(0x100, 0x100, "work");
    work.lines = vec![piece(0x110, "work", 4)];
    recording.put(Record::Symbols(Symbols {
        owner: SymbolOwner::Module(PROGRAM),
        functions: vec![run, work, function(0x200, 0x100, "main")],
        note: String::new(),
    }));
    for time in 1..=1_000u64 {
        let call = if time % 4 == 0 { 0x28 } else { 0x18 };
        let stack = [0x110, call, 0x208].map(|offset| PROGRAM_AT + offset);
        recording.put(crate::recordings::stack_sample(
            time * 1_000_000,
            THREAD,
            stack,
        ));
    }
    recording.end(1_000_000_000);
    recording.bytes()
}

/// Ten thousand bytecodes of which few have samples, and names that would disturb a terminal.
fn long() -> Vec<u8> {
    let mut recording = Recording::of("OpenJDK");
    let texts: Vec<(u32, String)> = (0..10_000)
        .map(|pc| {
            (
                pc,
                format!("ldc \u{1b}[2J\u{202e}{}\t{pc}", "漢字".repeat(40)),
            )
        })
        .collect();
    let listing: Vec<(u32, &str)> = texts
        .iter()
        .map(|(pc, text)| (*pc, text.as_str()))
        .collect();
    put(
        &mut recording,
        method(1, "Evil\u{1b}[2J", "long\r\n()V", &listing),
    );
    recording
        .constituent(Constituent {
            method: Some(MethodKey(1)),
            map: covers(vec![
                (vec![at(1, 120)], Exactness::Exact),
                (vec![at(1, 9_000)], Exactness::Exact),
                (vec![at(1, 500)], Exactness::Exact),
                (vec![at(1, u32::MAX)], Exactness::Exact),
            ]),
            ..code(1, 0, ZONE, ZONE + 0x40)
        })
        .constituent(Constituent {
            method: Some(MethodKey(1)),
            tier: "base\u{1b}line".into(),
            map: PcMap::Boundary {
                rule: BoundaryRule::AtStart,
                exactness: Exactness::Exact,
                entries: vec![
                    (0, BytecodePc(2_000)),
                    (0x10, BytecodePc(4_000)),
                    (0x20, BytecodePc(100)),
                ],
            },
            ..code(2, 0, 2 * ZONE, 2 * ZONE + 0x40)
        });
    let samples = [
        (ZONE, 3_000),
        (ZONE + 0x10, 2_000),
        (ZONE + 0x20, 1),
        (ZONE + 0x30, 40),
        (2 * ZONE, 500),
        (2 * ZONE + 0x10, 100),
        (2 * ZONE + 0x20, 50),
    ];
    spread(&mut recording, &samples);
    recording.bytes()
}

fn programs() -> String {
    format!("--source={}/tests/programs", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn ranges_between_boundaries() {
    let file = cog();
    // The hottest of the methods; the interpreter, a native function, is hotter.
    golden_of("annotate", "annotate-range-80.txt", &file, &["--width=80"]);
    golden_of("annotate", "annotate-range.json", &file, &["--json"]);
    let bare = ["bare", "--width=80"];
    golden_of("annotate", "annotate-unlisted-80.txt", &file, &bare);
}

#[test]
fn bytecodes_with_what_was_inlined() {
    let file = java();
    for width in ["80", "120"] {
        let name = format!("annotate-inlined-{width}.txt");
        let width = format!("--width={width}");
        golden_of("annotate", &name, &file, &["Scan.scan", &width]);
    }
    let inlined = ["java.lang.String.charAt", "--width=100"];
    golden_of("annotate", "annotate-gathered-100.txt", &file, &inlined);
    let document = ["Scan.scan", "--json"];
    golden_of("annotate", "annotate-inlined.json", &file, &document);
}

#[test]
fn reports_mark_inferred_methods() {
    let file = java();
    golden_of("report", "inferred-brief-100.txt", &file, &["--width=100"]);
    golden("inferred-100.txt", &file, &["--width=100"]);
}

#[test]
fn source_lines() {
    let (file, programs) = (sources(), programs());
    let script = ["hot", "--width=100", "--context=1", &programs];
    golden_of("annotate", "annotate-script-100.txt", &file, &script);
    let native = ["relax", "--width=100", &programs];
    golden_of("annotate", "annotate-native-100.txt", &file, &native);
    let without = ["relax", "--width=100", "--no-source"];
    golden_of("annotate", "annotate-no-source-100.txt", &file, &without);
}

/// Call sites have lines, with the samples in what was called there.
#[test]
fn a_function_that_only_calls() {
    let file = called();
    golden_of(
        "annotate",
        "annotate-called-100.txt",
        &file,
        &["run", "--width=100"],
    );
    golden_of(
        "annotate",
        "annotate-called.json",
        &file,
        &["run", "--json"],
    );
    golden_of(
        "annotate",
        "annotate-calling-100.txt",
        &file,
        &["main", "--width=100"],
    );
    golden_of(
        "annotate",
        "annotate-work-100.txt",
        &file,
        &["work", "--width=100"],
    );
}

/// VMs report file names without folders: its package is where it is.
#[test]
fn a_given_folder_has_the_source_between_the_bytecodes() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("demo")).expect("a folder in it");
    let lines: Vec<String> = (1..=12)
        .map(|line| format!("\tstatement({line});"))
        .collect();
    std::fs::write(folder.path().join("demo/Scan.java"), lines.join("\n")).expect("a file");
    let source = format!("--source={}", folder.path().display());
    let text = printed("annotate", &java(), &["Scan.scan", "--width=120", &source]);
    let found: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("// statement"))
        .collect();
    let numbers: Vec<&str> = found
        .iter()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(numbers, ["7", "8", "9", "8", "11"], "{text}");
}

#[test]
fn long_methods_are_folded() {
    let file = long();
    golden_of("annotate", "annotate-long-120.txt", &file, &["--width=120"]);
    let all = printed("annotate", &file, &["--context=10000", "--min-share=0"]);
    assert!(all.lines().count() > 10_000);
}

#[test]
fn no_line_is_wider_than_was_asked_for_and_none_disturbs_a_terminal() {
    let programs = programs();
    for (file, method) in [
        (cog(), "benchmark"),
        (java(), "Scan"),
        (java(), "Latin1"),
        (sources(), "hot"),
        (sources(), "relax"),
        (long(), "long"),
        (called(), "run"),
    ] {
        for width in [60, 61, 80, 109, 110, 120, 200] {
            let width_option = format!("--width={width}");
            let text = printed("annotate", &file, &[method, &width_option, &programs]);
            for line in text.lines() {
                assert!(line.width() <= width, "{width}: {line}");
                assert!(
                    !line.contains(['\u{1b}', '\u{202e}', '\r', '\t']),
                    "{line:?}"
                );
            }
        }
    }
}
