//! The report's sections of what VMs tell of themselves.

use crate::golden_file::{fits, fits_one_screen, golden, golden_of, printed, report};
use crate::recordings::{PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD};
use vmscope_records::{
    Collection, CollectionKey, CollectionScope, Compilation, Counter, CounterMeaning, Fact, Limit,
    LimitKind, Phase, ProcessKey, Record, Region, RegionRule, RegionRules, SpaceUse, ThreadKey,
    ThreadRole, TimeNs,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const C2: ThreadKey = ThreadKey(2);
const C1: ThreadKey = ThreadKey(3);
const OTHER: ProcessKey = ProcessKey(2);

/// A figure: first, least, greatest and last.
fn figure(
    recording: &mut Recording,
    process: ProcessKey,
    (section, name, unit, meaning): (&str, &str, &str, CounterMeaning),
    values: [f64; 4],
) {
    for (time, value) in (0..).zip(values) {
        recording.put(Record::Counter(Counter {
            process,
            time: TimeNs(time * 2 * SECOND),
            section: section.into(),
            name: name.into(),
            unit: unit.into(),
            meaning,
            value,
        }));
    }
}

fn collection(key: u64, kind: &str, cause: &str, at_ms: u64, length_us: u64) -> Collection {
    let begin = TimeNs(at_ms * MS);
    Collection {
        key: CollectionKey(key),
        process: PROCESS,
        time: begin,
        collector: "G1".into(),
        kind: kind.into(),
        cause: cause.into(),
        number: key,
        begin: Some(begin),
        end: (length_us > 0).then_some(TimeNs(begin.0 + length_us * 1000)),
        scope: CollectionScope::Whole,
        spaces: vec![
            space("eden", Some(24 << 20), Some(0), Some(25 << 20)),
            space("survivor", None, Some(2 << 20), Some(3 << 20)),
        ],
        ..Collection::default()
    }
}

fn space(name: &str, before: Option<u64>, after: Option<u64>, capacity: Option<u64>) -> SpaceUse {
    SpaceUse {
        name: name.into(),
        before,
        after,
        capacity,
    }
}

fn collections(recording: &mut Recording) {
    let mut all = vec![
        collection(1, "young", "G1 Evacuation Pause", 1000, 4100),
        collection(2, "young", "G1 Evacuation Pause", 2000, 280),
        collection(3, "young", "Metadata GC Threshold", 3000, 250),
        collection(4, "young", "G1 Evacuation Pause", 4000, 0),
        collection(5, "full", "System.gc()", 5000, 60_000),
    ];
    let mut concurrent = collection(6, "concurrent", "Metadata GC Threshold", 5500, 300_000);
    concurrent.scope = CollectionScope::Cycle;
    concurrent.spaces.clear();
    concurrent.phases = vec![Phase {
        name: "remark".into(),
        begin: Some(TimeNs(5600 * MS)),
        end: Some(TimeNs(5601 * MS)),
        stop_the_world: true,
        ..Phase::default()
    }];
    all.push(concurrent);
    // Told first without its end: the later one counts.
    let mut unfinished = all[0].clone();
    unfinished.end = None;
    all.insert(0, unfinished);
    for one in all {
        recording.put(Record::Collection(Box::new(one)));
    }
}

fn compilations(recording: &mut Recording) {
    let told = |thread, id, name: &str, from, to| Compilation {
        process: PROCESS,
        thread,
        id,
        name: name.into(),
        tier: if thread == C2 { "C2" } else { "C1" }.into(),
        osr_bci: (id == 102).then_some(17),
        absent_at: Some(TimeNs(from * MS - 10 * MS)),
        first_seen: TimeNs(from * MS),
        last_seen: TimeNs(to * MS),
        gone_at: Some(TimeNs(to * MS + 10 * MS)),
    };
    for one in [
        told(C2, 101, "java.util.HashMap.putVal", 100, 400),
        told(C2, 101, "java.util.HashMap.putVal", 100, 900),
        told(C2, 102, "com.example.Parser.parse", 920, 1500),
        told(C2, 130, "java.util.HashMap.putVal", 1600, 1700),
        told(C1, 103, "java.lang.String.hashCode", 100, 120),
        told(C1, 104, "evil\u{1b}[2J\u{202e}name", 200, 205),
    ] {
        recording.put(Record::Compilation(Box::new(one)));
    }
}

fn jvm(processes: u32) -> Vec<u8> {
    use CounterMeaning::{Gauge, Total};
    let mut recording = Recording::of("HotSpot");
    recording
        .symbols(
            PROGRAM,
            &[
                (0x000, 0x100, "Compile::Optimize()"),
                (0x100, 0x100, "G1ParScanThreadState::trim_queue()"),
                (0x200, 0x100, "G1ConcurrentMark::mark_from_roots()"),
                (0x300, 0x100, "Unsafe_Park"),
            ],
        )
        .put(Record::RegionRules(RegionRules {
            process: PROCESS,
            time: TimeNs(0),
            vm: "hotspot".into(),
            rules: [
                ("Compile::", Region::Compiler, "C2"),
                ("G1ParScan", Region::Gc, "evacuation"),
                ("G1ConcurrentMark::", Region::Gc, "concurrent mark"),
            ]
            .map(|(prefix, region, part)| RegionRule {
                module: "vm".into(),
                prefix: prefix.into(),
                region,
                part: part.into(),
                ..RegionRule::default()
            })
            .into(),
        }))
        .thread(C2, PROCESS, 0, "C2 CompilerThre", ThreadRole::Compiler)
        .thread(C1, PROCESS, 0, "C1 CompilerThre", ThreadRole::Compiler);
    for (name, value) in [
        ("collector", "G1"),
        (
            "environment",
            "JAVA_TOOL_OPTIONS='-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints'",
        ),
    ] {
        recording.put(Record::Fact(Fact {
            process: ProcessKey(0),
            time: TimeNs(0),
            name: name.into(),
            value: value.into(),
        }));
    }
    recording.put(Record::Limit(Limit {
        time: TimeNs(0),
        kind: LimitKind::AdapterIncomplete,
        text: "hotspot adapter: cannot read Eclipse OpenJ9: vmscope reads HotSpot JVMs only".into(),
        remedy: "run the program on a HotSpot JVM".into(),
    }));
    for number in 0..processes {
        // The main one's are not told first.
        let process = if number == 1 || processes == 1 {
            PROCESS
        } else {
            OTHER
        };
        for (what, values) in [
            (
                ("Collections", "G1, young", "", Total),
                [10.0, 10.0, 12.0, 15.0],
            ),
            (
                ("Collections", "G1, young time", "ns", Total),
                [0.0, 1e6, 3e6, 6e6],
            ),
            (("Collections", "G1, full", "", Total), [0.0, 0.0, 0.0, 1.0]),
            (
                ("Collections", "bytes promoted", "bytes", Gauge),
                [5.0, 5.0, 5.0, 5.0],
            ),
            (
                ("Heap", "used", "bytes", Gauge),
                [52428800.0, 10485760.0, 209715200.0, 62914560.0],
            ),
            (("Heap", "capacity", "bytes", Gauge), [268435456.0; 4]),
            (
                ("Code cache", "methods made", "", Total),
                [120.0, 200.0, 300.0, 420.0],
            ),
            (("Safepoints", "time", "ns", Total), [5e6, 6e6, 9e6, 26e6]),
            (
                ("Safepoints", "last wait", "ns", Gauge),
                [1e6, 0.5e6, 3e6, 1e6],
            ),
        ] {
            figure(&mut recording, process, what, values);
        }
    }
    if processes > 1 {
        recording.process(OTHER, 0, 200, Some(PROCESS));
    }
    collections(&mut recording);
    compilations(&mut recording);
    let mut samples: Vec<(u64, ThreadKey, u64)> = Vec::new();
    for n in 0..2000 {
        samples.push((n * 3 * MS, THREAD, if n % 10 == 0 { 0x110 } else { 0x310 }));
        if n < 1900 {
            samples.push((n * MS, C2, 0x10));
        }
        if n < 300 {
            samples.push((n * MS, C1, 0x10));
        }
        if n % 20 == 0 {
            samples.push((n * 3 * MS, THREAD, 0x210));
        }
    }
    samples.sort_unstable_by_key(|&(time, thread, pc)| (time, thread.0, pc));
    for (time, thread, at) in samples {
        recording.sample(time, thread, PROGRAM_AT + at);
    }
    recording.end(6 * SECOND).bytes()
}

#[test]
fn a_jvm() {
    let file = jvm(1);
    golden_of("report", "brief-vm-100.txt", &file, &["--width=100"]);
    golden("vm-100.txt", &file, &["--width=100"]);
    golden("vm-60.txt", &file, &["--width=60"]);
    golden("vm.json", &file, &["--json"]);
}

#[test]
fn several_vms_are_told_apart_and_the_main_one_comes_first() {
    let text = report(&jvm(2), &["--width=100"]);
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("**")).collect();
    let of = |pid| {
        ["Collections", "Heap", "Code cache", "Safepoints"]
            .map(|name| format!("**{name} of pid {pid}**"))
    };
    let mut wanted: Vec<String> = [of(100), of(200)].concat();
    wanted.extend(["**Compilers**".into(), "**Threads**".into()]);
    assert_eq!(headings, wanted, "{text}");
}

#[test]
fn a_part_of_the_time_has_its_own_figures() {
    let text = report(&jvm(1), &["--width=100", "--from=1.95", "--to=4.5"]);
    // The counters were last read 1.95 s before the window, and 0.5 s before its end.
    assert!(
        text.contains("G1, young: 3 observed, 2 fully timed"),
        "{text}"
    );
    let whole = report(&jvm(1), &["--width=100", "--from=2", "--to=6"]);
    assert!(
        whole.contains("G1, young: 5 collections (1.2 per second), 5.000 ms"),
        "{whole}"
    );
    let compilers = text.split("**Compilers**").nth(1).expect("compilers");
    assert!(compilers.contains("0 compilations observed"), "{compilers}");
}

/// A VM that tells without end, in the worst of words.
fn hostile() -> Vec<u8> {
    let mut recording = Recording::of("evil");
    let evil = |n: u64| format!("\u{1b}[2J\u{202e}\r\n{}{n}", "long ".repeat(50));
    for n in 0..3000u64 {
        let process = ProcessKey(u32::try_from(n % 40).expect("small") + 1);
        if n < 40 {
            recording.process(process, 0, 100 + n as u32, None);
        }
        let value = [f64::NAN, f64::INFINITY, -1e300, 1e300, 0.5][n as usize % 5];
        for (meaning, unit) in [(CounterMeaning::Gauge, "ns"), (CounterMeaning::Total, "\t")] {
            recording.put(Record::Counter(Counter {
                process,
                time: TimeNs(n),
                section: if n % 3 == 0 {
                    "Collections".into()
                } else {
                    evil(n % 50)
                },
                name: evil(n),
                unit: unit.into(),
                meaning,
                value,
            }));
        }
        recording.put(Record::Collection(Box::new(Collection {
            key: CollectionKey(n),
            process,
            time: TimeNs(n),
            collector: evil(n),
            kind: evil(n),
            cause: evil(n),
            begin: Some(TimeNs(u64::MAX - n)),
            end: Some(TimeNs(n)),
            scope: CollectionScope::Whole,
            phases: vec![Phase {
                within: Some(0),
                ..Phase::default()
            }],
            spaces: vec![space(&evil(n), Some(u64::MAX), None, Some(0))],
            ..Collection::default()
        })));
        recording.put(Record::Compilation(Box::new(Compilation {
            process,
            thread: THREAD,
            id: u64::MAX - n,
            name: evil(n),
            tier: evil(n),
            osr_bci: Some(u32::MAX),
            first_seen: TimeNs(n * 10),
            last_seen: TimeNs(n * 10 + 5),
            ..Compilation::default()
        })));
        recording.sample(n * 10, THREAD, PROGRAM_AT);
    }
    recording.end(40_000).bytes()
}

#[test]
fn no_line_is_wider_than_was_asked_for_and_none_disturbs_a_terminal() {
    for file in [jvm(1), jvm(2), hostile()] {
        for width in [60, 61, 100, 200] {
            fits(&report(&file, &[&format!("--width={width}")]), width);
            fits_one_screen(&file, width);
        }
    }
    let text = report(&hostile(), &["--width=100"]);
    assert!(text.contains("(VM reports of 24 more processes omitted)"));
    let lines = text.lines().count();
    assert!(lines < 20_000, "{lines} lines");
    let json: serde_json::Value =
        serde_json::from_str(&report(&hostile(), &["--json"])).expect("JSON");
    assert_eq!(json["vm"].as_array().map(Vec::len), Some(16));
}

/// The VM counts collections and no cycles, though a cycle has a cause, too.
#[test]
fn the_brief_report_has_the_causes_of_the_collections_that_it_counts() {
    let text = printed("report", &jvm(1), &["--width=200"]);
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    let causes = "causes: G1 Evacuation Pause 3, Metadata GC Threshold 1, System.gc() 1";
    assert!(text.contains(causes), "{text}");
}

/// docs/report-json.md names every field of the new parts.
#[test]
fn every_field_is_documented() {
    fn keys(value: &serde_json::Value, into: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (key, value) in fields {
                    into.push(key.clone());
                    keys(value, into);
                }
            }
            serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, into)),
            _ => {}
        }
    }
    let json: serde_json::Value =
        serde_json::from_str(&report(&jvm(1), &["--json"])).expect("JSON");
    let mut found = Vec::new();
    keys(&json["vm"], &mut found);
    keys(&json["compilers"], &mut found);
    assert!(found.len() > 50);
    let described = include_str!("../../../docs/report-json.md");
    for key in found {
        assert!(
            described.contains(&format!("`{key}`")),
            "docs/report-json.md lacks `{key}`"
        );
    }
}
