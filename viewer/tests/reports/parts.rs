//! The report of a VM whose regions have parts.

use crate::golden_file::{golden, printed, report};
use crate::recordings::{PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD, code};
use vmscope_records::{
    ChainFrame, Constituent, ConstituentKind, Cover, Exactness, Method, MethodKey, PcMap, Position,
    Record, Region, RegionRule, RegionRules, TimeNs,
};

const SECOND: u64 = 1_000_000_000;
const ZONE: u64 = 0x1000_0000;

fn rule(prefix: &str, contains: &str, region: Region, part: &str) -> RegionRule {
    RegionRule {
        module: "vm".into(),
        prefix: prefix.into(),
        contains: contains.into(),
        region,
        part: part.into(),
        strip: !prefix.is_empty(),
        ..RegionRule::default()
    }
}

/// `(name, file, line, tier, ranges)`: each range a source line with its samples.
type Function<'a> = (&'a str, &'a str, u32, &'a str, &'a [(u32, u64)]);

fn node() -> Vec<u8> {
    called(&[])
}

/// The callers are return addresses, innermost first.
fn called(callers: &[u64]) -> Vec<u8> {
    let functions: [Function; 6] = [
        (
            "fib",
            "/app/bench.js",
            1,
            "TurboFan",
            &[(2, 500), (3, 1500)],
        ),
        ("fib", "/app/bench.js", 1, "Sparkplug", &[(2, 60), (3, 40)]),
        // Compiled once more: equal entry, equal lines.
        ("fib", "/app/bench.js", 1, "TurboFan", &[(3, 100)]),
        ("(anonymous)", "/app/bench.js", 7, "TurboFan", &[(8, 90)]),
        ("(anonymous)", "/app/a/util.js", 3, "TurboFan", &[(4, 80)]),
        ("(anonymous)", "/app/b/util.js", 3, "TurboFan", &[(4, 70)]),
    ];
    let mut recording = Recording::of("Node.js");
    recording
        .symbols(
            PROGRAM,
            &[
                (0x000, 0x100, "v8::internal::Scavenger::Process()"),
                (0x100, 0x100, "v8::internal::MarkCompactCollector::Run()"),
                (0x200, 0x100, "v8::internal::compiler::Pipeline::Run()"),
                (0x300, 0x100, "Builtins_ArrayMap"),
                (0x400, 0x100, "node::Start()"),
            ],
        )
        .put(Record::RegionRules(RegionRules {
            process: PROCESS,
            time: TimeNs(0),
            vm: "v8".into(),
            rules: vec![
                rule("Builtins_", "", Region::Generated, "builtin"),
                rule("", "::Scavenger::", Region::Gc, "scavenger"),
                rule("", "::MarkCompactCollector::", Region::Gc, "mark-compact"),
                rule("", "::compiler::", Region::Compiler, "TurboFan"),
            ],
        }));
    let mut samples = Vec::new();
    for (key, (name, file, line, tier, lines)) in (1..).zip(functions) {
        let method = MethodKey(key);
        recording.put(Record::Method(Box::new(Method {
            key: method,
            name: name.into(),
            file: file.into(),
            line,
            ..Method::default()
        })));
        let start = ZONE + key * 0x1000;
        let at = |line| ChainFrame {
            method,
            position: Position::Line(line),
        };
        recording.constituent(Constituent {
            name: name.into(),
            tier: tier.into(),
            method: Some(method),
            map: PcMap::Covers {
                covers: (0..lines.len() as u32)
                    .map(|n| Cover {
                        start: n * 0x10,
                        end: n * 0x10 + 0x10,
                        chain: n,
                        exactness: Exactness::Exact,
                        method_error: 0,
                    })
                    .collect(),
                chains: lines.iter().map(|&(line, _)| vec![at(line)]).collect(),
            },
            ..code(key, 0, start, start + 0x100)
        });
        let counted = (0..).zip(lines);
        samples.extend(counted.map(|(n, &(_, samples))| (start + n * 0x10, samples)));
    }
    recording
        .constituent(Constituent {
            name: "LdaZero".into(),
            kind: ConstituentKind::Interpreter,
            tier: "bytecode handler".into(),
            ..code(50, 0, ZONE, ZONE + 0x100)
        })
        .map(PROCESS, 0, ZONE + 0x10_0000, ZONE + 0x20_0000, 0, None);
    samples.extend([(ZONE, 45), (ZONE + 0x10_0000, 25)]);
    for (function, count) in (0..).zip([200, 100, 150, 130, 30]) {
        samples.push((PROGRAM_AT + function * 0x100, count));
    }
    let mut times: Vec<(u64, u64)> = Vec::new();
    for (pc, count) in samples {
        times.extend((0..count).map(|n| ((2 * n + 1) * 7 * SECOND / (2 * count), pc)));
    }
    times.sort_unstable();
    for (time, pc) in times {
        recording.stack(time, THREAD, [&[pc], callers].concat());
    }
    recording.end(7 * SECOND).bytes()
}

#[test]
fn a_vm_whose_regions_have_parts() {
    let file = node();
    golden("parts-100.txt", &file, &["--width=100"]);
    golden("parts.json", &file, &["--json"]);
}

#[test]
fn functions_of_one_name_are_told_apart() {
    let text = report(&node(), &["--width=100", "--ranges=none"]);
    for line in [
        "fib bench.js:1 (TurboFan) ",
        "fib bench.js:1 (Sparkplug) ",
        "(anonymous) bench.js:7 (TurboFan) ",
        "(anonymous) /app/a/util.js:3 (TurboFan) ",
        "(anonymous) /app/b/util.js:3 (TurboFan) ",
    ] {
        let lines = text.lines().filter(|shown| shown.contains(line));
        assert_eq!(lines.count(), 1, "{line}: {text}");
    }
}

/// Stacks name functions as the hot list does.
#[test]
fn functions_of_one_name_are_told_apart_in_stacks() {
    let file = called(&[ZONE + 4 * 0x1000 + 4, ZONE + 5 * 0x1000 + 4]);
    let lines = |text: &str, wanted: &str| {
        let lines = text.lines().filter(|line| line.contains(wanted));
        lines.count()
    };
    let tree = printed("report", &file, &["--tree", "--width=100"]);
    for line in [
        "  (anonymous) /app/a/util.js:3 (TurboFan)\n",
        "(anonymous) bench.js:7 (TurboFan)\n",
        "├ (anonymous) /app/b/util.js:3 (TurboFan)\n",
    ] {
        assert!(tree.contains(line), "{line}: {tree}");
    }
    let named = ["--callers=(anonymous) /app/b/util.js:3", "--width=100"];
    let callers = printed("report", &file, &named);
    assert_eq!(lines(&callers, "(anonymous)"), 3, "{callers}");
    let collapsed = printed("export", &file, &["--to=collapsed", "--output=-"]);
    let above =
        "(anonymous) /app/a/util.js:3 (TurboFan)_[j];(anonymous) /app/bench.js:7 (TurboFan)_[j]";
    for (function, samples) in [("a/util", 80), ("b/util", 70)] {
        let line = format!("{above};(anonymous) /app/{function}.js:3 (TurboFan)_[j] {samples}");
        assert_eq!(lines(&collapsed, &line), 1, "{line}: {collapsed}");
    }
}
