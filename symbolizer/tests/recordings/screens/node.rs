//! A fictitious Node.js: V8's tiers with source lines, the kernel, and libuv's threads.

use super::super::code;
use super::stage::{FUNCTION, KERNEL, Stage, session_of};
use super::{BEGIN, ms, skewed};
use vmscope_records::{
    ChainFrame, Constituent, ConstituentKind, Cover, Exactness, Method, MethodKey, PcMap, Position,
    Record, Region, ThreadRole, TimeNs,
};

const LENGTH_MS: u64 = 8_000;
const NODE: u64 = 0x55_0000_0000;
const LIBC: u64 = 0x7f00_0000_0000;
const HEAP: u64 = 0x7e00_0000_0000;
const HANDLERS: u64 = NODE + 0x8_0000;
/// Sizes of a code piece and of a line's code, in bytes.
const CODE: u64 = 0x400;
const LINE: u64 = 0x20;

const FUNCTIONS: [&str; 9] = [
    "v8::internal::Scavenger::Process()",
    "v8::internal::MarkCompactCollector::Run()",
    "v8::internal::compiler::Pipeline::Run()",
    "v8::internal::maglev::MaglevCompiler::Compile()",
    "v8::internal::Runtime_StringSplit()",
    "v8::internal::Factory::NewJSArray()",
    "node::Environment::RunTimers()",
    "uv__io_poll",
    "uv__fs_read",
];
const HANDLER_NAMES: [&str; 6] = [
    "LdaZero",
    "Star",
    "LdaNamedProperty",
    "CallProperty1",
    "Add",
    "JumpLoop",
];
const SYSCALLS: [&str; 4] = ["ep_poll", "vfs_read", "tcp_sendmsg", "do_futex"];

/// Name, file, first line, number of lines, relative samples, start (ms) of Sparkplug, Maglev and
/// TurboFan code; 0 is never.
type Function = (&'static str, &'static str, u32, u32, u64, [u64; 3]);
const SCRIPTS: [Function; 10] = [
    (
        "parseRow",
        "/srv/app/lib/csv.js",
        12,
        14,
        300,
        [300, 700, 1_500],
    ),
    (
        "splitCells",
        "/srv/app/lib/csv.js",
        40,
        9,
        180,
        [320, 800, 1_700],
    ),
    (
        "unquote",
        "/srv/app/lib/csv.js",
        61,
        6,
        60,
        [400, 900, 2_400],
    ),
    (
        "aggregate",
        "/srv/app/lib/stats.js",
        8,
        11,
        160,
        [500, 1_200, 2_600],
    ),
    (
        "median",
        "/srv/app/lib/stats.js",
        31,
        8,
        70,
        [700, 2_000, 0],
    ),
    (
        "(anonymous)",
        "/srv/app/lib/stats.js",
        52,
        3,
        40,
        [800, 2_200, 4_000],
    ),
    (
        "render",
        "/srv/app/server.js",
        20,
        12,
        90,
        [900, 3_000, 5_000],
    ),
    (
        "(anonymous)",
        "/srv/app/server.js",
        44,
        5,
        30,
        [1_000, 0, 0],
    ),
    ("handle", "/srv/app/server.js", 63, 7, 25, [1_200, 0, 0]),
    ("main", "/srv/app/server.js", 90, 6, 4, [0, 0, 0]),
];

/// Address of a function's code by tier; tiers have separate areas.
fn at(function: usize, tier: usize) -> u64 {
    HEAP + (tier * SCRIPTS.len() + function) as u64 * CODE
}

fn put_code(stage: &mut Stage, function: usize, tier: usize) {
    let (name, _, first, lines, _, made) = SCRIPTS[function];
    let method = MethodKey(function as u64 + 1);
    let tiers = ["Sparkplug", "Maglev", "TurboFan"];
    let mut chains: Vec<Vec<ChainFrame>> = (0..lines)
        .map(|n| {
            let position = Position::Line(first + n);
            vec![ChainFrame { method, position }]
        })
        .collect();
    if (name, tier) == ("parseRow", 2) {
        // TurboFan inlines `unquote` into `splitCells` into `parseRow`.
        let frame = |key, line| ChainFrame {
            method: MethodKey(key),
            position: Position::Line(line),
        };
        chains.push(vec![frame(2, 43), frame(1, 17)]);
        chains.push(vec![frame(3, 64), frame(2, 45), frame(1, 17)]);
    }
    let covers = (0..).zip(&chains).map(|(chain, _)| Cover {
        start: chain * LINE as u32,
        end: (chain + 1) * LINE as u32,
        chain,
        exactness: Exactness::Exact,
        method_error: 0,
    });
    let start = at(function, tier);
    let since = ms(made[tier]);
    stage.recording.constituent(Constituent {
        tier: tiers[tier].into(),
        name: name.into(),
        method: Some(method),
        map: PcMap::Covers {
            covers: covers.collect(),
            chains,
        },
        ..code(
            (tier * SCRIPTS.len() + function) as u64 + 100,
            since,
            start,
            start + CODE,
        )
    });
}

fn code_zone(stage: &mut Stage) {
    for (number, name) in (0..).zip(HANDLER_NAMES) {
        let start = HANDLERS + number * FUNCTION;
        stage.recording.constituent(Constituent {
            kind: ConstituentKind::Interpreter,
            tier: "bytecode handler".into(),
            name: name.into(),
            ..code(number + 1, BEGIN, start, start + FUNCTION)
        });
    }
    for (function, &(name, file, line, _, _, made)) in SCRIPTS.iter().enumerate() {
        stage.recording.put(Record::Method(Box::new(Method {
            key: MethodKey(function as u64 + 1),
            time: TimeNs(BEGIN),
            name: name.into(),
            file: file.into(),
            line,
            ..Method::default()
        })));
        for tier in (0..3).filter(|tier| made[*tier] > 0) {
            put_code(stage, function, tier);
        }
    }
}

pub fn node() -> Vec<u8> {
    let other = ThreadRole::Other;
    let threads = [
        ("node", ThreadRole::Mutator),
        ("V8Worker", other),
        ("V8Worker", other),
        ("libuv-worker", other),
        ("libuv-worker", other),
        ("libuv-worker", other),
        ("libuv-worker", other),
    ];
    let session = session_of("Node.js", "22.21.0", &["/opt/node/bin/node", "server.js"]);
    let mut stage = Stage::new(session, &threads);
    stage.module(1, "/opt/node/bin/node", NODE, &FUNCTIONS);
    stage.module(2, "/opt/acme-os/lib/libc.so.6", LIBC, &["memmove", "read"]);
    stage.kernel(&SYSCALLS);
    let rules = [
        ("::Scavenger::", Region::Gc, "scavenger"),
        ("::MarkCompactCollector::", Region::Gc, "mark-compact"),
        ("::compiler::", Region::Compiler, "TurboFan"),
        ("::maglev::", Region::Compiler, "Maglev"),
        ("::Runtime_", Region::Vm, "runtime"),
    ];
    stage.regions("v8", "node", &rules);
    code_zone(&mut stage);
    let busy = [0.82, 0.06, 0.06, 0.03, 0.03, 0.03, 0.03];
    stage.play(LENGTH_MS, &busy, |time, thread, draw| {
        let native = |number: u64| NODE + number * FUNCTION + 0x10;
        let kernel = |number: u64| KERNEL + number * FUNCTION + 0x10;
        let pc = match (thread, draw.below(100)) {
            // V8's own threads: concurrent compilation until 4 s, then collections.
            (1 | 2, n) if time < ms(4_000) => native(if n < 75 { 2 + n % 2 } else { n % 2 }),
            (1 | 2, n) => native(n % 2),
            (3.., 0..60) => kernel(1),
            (3.., _) => native(8),
            (_, n @ 0..4) => kernel(n % 4),
            (_, n @ 4..8) => native(n % 2),
            (_, n @ 8..16) => native(4 + n % 4),
            (_, 16..19) => LIBC + 0x10,
            _ => in_script(time, draw),
        };
        (pc, Vec::new())
    });
    stage.end(LENGTH_MS)
}

/// A sample in a function's newest code, or else in the interpreter.
fn in_script(time: u64, draw: &mut super::super::Draw) -> u64 {
    let mut drawn = draw.below(SCRIPTS.iter().map(|function| function.4).sum());
    let chosen = SCRIPTS.iter().position(|function| {
        let is_it = drawn < function.4;
        drawn = drawn.saturating_sub(function.4);
        is_it
    });
    let chosen = chosen.unwrap();
    let (name, _, _, lines, _, made) = SCRIPTS[chosen];
    let there = |tier: &usize| made[*tier] > 0 && ms(made[*tier]) <= time;
    let Some(tier) = (0..3).rev().find(there) else {
        let handlers = HANDLER_NAMES.len() as u64;
        return HANDLERS + skewed(draw, handlers) * FUNCTION + 0x20;
    };
    let inlined = if (name, tier) == ("parseRow", 2) {
        2
    } else {
        0
    };
    let lines = u64::from(lines + inlined);
    let line = (skewed(draw, lines) + 5 + chosen as u64) % lines;
    at(chosen, tier) + line * LINE + draw.below(8) * 4
}
