//! Recordings shaped like real ones, for benchmarks and for measuring the whole command.

#![allow(dead_code, reason = "each user takes a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers that were chosen to fit"
)]

pub mod long;

use super::{Draw, PROCESS, Recording, code};
use vmscope_records::{
    BoundaryRule, BytecodePc, ChainFrame, Constituent, ConstituentKind, Cover, CpuMode, Exactness,
    Method, MethodKey, ModuleKey, PcMap, Position, Record, Region, RegionRule, RegionRules,
    ThreadKey, ThreadRole, TimeNs,
};

/// The default period.
pub const PERIOD: u64 = 713_927;
/// Threads of all shapes except Node.
pub const THREADS: u64 = 8;

fn threads(recording: &mut Recording) {
    for key in 1..=THREADS {
        let key = ThreadKey(u32::try_from(key).unwrap());
        recording.thread(key, PROCESS, 0, "worker", ThreadRole::Mutator);
    }
}

fn thread_of(draw: &mut Draw) -> ThreadKey {
    ThreadKey(u32::try_from(1 + draw.below(THREADS)).unwrap())
}

/// Few addresses get most samples, as in real programs.
fn skewed(draw: &mut Draw, below: u64) -> u64 {
    let unit = draw.unit();
    ((unit * unit * unit) * below as f64) as u64
}

/// 8 threads, 20,000 distinct addresses in 32 libraries with symbols.
pub fn native(samples: u64) -> Vec<u8> {
    let mut draw = Draw(1);
    let mut recording = Recording::of("native");
    threads(&mut recording);
    for library in 0..32u64 {
        let key = ModuleKey(u32::try_from(10 + library).unwrap());
        let names: Vec<String> = (0..100)
            .map(|n| format!("function_{library}_{n}"))
            .collect();
        let functions: Vec<(u64, u64, &str)> = names
            .iter()
            .enumerate()
            .map(|(n, name)| (n as u64 * 0x100, 0x100, name.as_str()))
            .collect();
        let start = 0x7f00_0000_0000 + library * 0x100_0000;
        recording
            .module(key, &format!("/lib/lib{library}.so"), false)
            .map(PROCESS, 0, start, start + 0x10_0000, 0, Some(key))
            .symbols(key, &functions);
    }
    for index in 0..samples {
        let place = skewed(&mut draw, 20_000);
        let pc = 0x7f00_0000_0000 + place % 32 * 0x100_0000 + place / 32 * 0x28;
        recording.sample(index * PERIOD / THREADS, thread_of(&mut draw), pc);
    }
    recording.end(samples * PERIOD / THREADS).bytes()
}

/// Turnover of the constituents of [`jit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Churn {
    /// One constituent per place, from the start.
    Still,
    /// Separate places, from the start, sampled in the same order as with turnover: the baseline
    /// without time.
    Apart,
    /// Exact times, without recorded ends.
    Exact,
    /// Observed by polls: earlier start and later end are possible.
    Polled,
}

/// `codes` constituents in turn at 2,000 places.
pub fn jit(samples: u64, codes: u64, churn: Churn) -> Vec<u8> {
    const PLACES: u64 = 2_000;
    const SIZE: u64 = 0x400;
    const AT: u64 = 0x1000_0000;
    let codes = if churn == Churn::Still { PLACES } else { codes };
    let mut draw = Draw(2);
    let mut recording = Recording::of("Cog");
    threads(&mut recording);
    let entries: Vec<(u32, BytecodePc)> = (1..20).map(|n| (n * 0x30, BytecodePc(n * 4))).collect();
    let every = samples * PERIOD / THREADS / codes;
    let changes = matches!(churn, Churn::Exact | Churn::Polled);
    for key in 0..codes {
        // Replaces the previous constituent of the place.
        let (now, before) = if changes {
            ((key + 1) * every, key * every)
        } else {
            (1, 0)
        };
        if churn == Churn::Polled
            && let Some(old) = key.checked_sub(PLACES)
        {
            recording.gone(old, before, now);
        }
        let place = if changes { key % PLACES } else { key };
        let start = AT + place * SIZE;
        recording.constituent(Constituent {
            absent_at: (churn == Churn::Polled).then_some(TimeNs(before)),
            map: PcMap::Boundary {
                rule: BoundaryRule::AfterInstruction,
                exactness: Exactness::Exact,
                entries: entries.clone(),
            },
            ..code(key, now, start, start + SIZE)
        });
    }
    for index in 0..samples {
        let time = index * PERIOD / THREADS;
        let at = skewed(&mut draw, PLACES * 8) * 0x80;
        let (mut place, offset) = (at / SIZE, at % SIZE);
        let loaded = time / every;
        if churn == Churn::Apart && loaded > place {
            place += (loaded - 1 - place) / PLACES * PLACES;
        }
        recording.sample(time, thread_of(&mut draw), AT + place * SIZE + offset);
    }
    recording.end(samples * PERIOD / THREADS).bytes()
}

const NODE_AT: u64 = 0x55_0000_0000;
const NODE: ModuleKey = ModuleKey(50);
const BUILTINS_AT: u64 = 0x100_0000;
const HEAP_AT: u64 = 0x7e00_0000_0000;
const JS_SLOTS: u64 = 400;

/// Node for `samples` samples at 7 kHz: 2,200 builtins at the start, then 20 pieces of code per
/// second at reused addresses with source lines; native code, collector threads, the kernel.
/// Addresses repeat as in reality: 20,786 samples of a benchmark with calls, loops, allocation and
/// parsing had 3,540 distinct ones.
pub fn node(samples: u64) -> Vec<u8> {
    const RATE: u64 = 7_000;
    let every = 1_000_000_000 / RATE;
    let mut draw = Draw(3);
    let mut recording = Recording::of("Node.js");
    recording
        .module(NODE, "/usr/bin/node", true)
        .map(PROCESS, 0, NODE_AT, NODE_AT + 0x300_0000, 0, Some(NODE))
        .map(PROCESS, 0, HEAP_AT, HEAP_AT + 0x1000_0000, 0, None);
    for key in 1..=5 {
        let name = if key == 1 { "node" } else { "V8Worker" };
        recording.thread(ThreadKey(key), PROCESS, 0, name, ThreadRole::Mutator);
    }
    node_functions(&mut recording);
    for key in 0..2_200 {
        let start = NODE_AT + BUILTINS_AT + key * 0x200;
        recording.constituent(Constituent {
            kind: ConstituentKind::Stub,
            tier: "builtin".into(),
            name: format!("Builtin{key}"),
            ..code(key, 1_000_000 + key * 3_000, start, start + 0x1e0)
        });
    }
    let loads = samples / RATE * 20;
    for load in 0..loads {
        node_load(&mut recording, load, 50_000_000 * (load + 1));
    }
    for index in 0..samples {
        let thread = ThreadKey(if draw.below(10) == 0 {
            2 + (index % 4) as u32
        } else {
            1
        });
        let (pc, mode) = match draw.below(100) {
            0..60 => {
                let slot = skewed(&mut draw, JS_SLOTS);
                let at = skewed(&mut draw, 30) * 0x38;
                (HEAP_AT + slot * 0x800 + at, CpuMode::User)
            }
            60..75 => {
                let at = skewed(&mut draw, 2_200 * 4) * 0x80;
                (NODE_AT + BUILTINS_AT + at, CpuMode::User)
            }
            75..92 => (NODE_AT + skewed(&mut draw, 6_000) * 133, CpuMode::User),
            _ => (
                0xffff_ffff_8100_0000 + skewed(&mut draw, 3_000) * 16,
                CpuMode::Kernel,
            ),
        };
        recording.sample_in(index * every, thread, pc, mode);
    }
    recording.end(samples * every).bytes()
}

/// Sampled native functions and their region rules.
fn node_functions(recording: &mut Recording) {
    let names: Vec<String> = (0..2_500)
        .map(|n| match n % 4 {
            0 => format!("v8::internal::Scavenger::Work{n}(v8::internal::HeapObject)"),
            1 => format!("v8::internal::compiler::Reducer{n}::Reduce(v8::internal::Node*)"),
            2 => {
                format!("v8::internal::Runtime_Do{n}(int, unsigned long*, v8::internal::Isolate*)")
            }
            _ => format!("node::Environment::Run{n}()"),
        })
        .collect();
    let functions: Vec<(u64, u64, &str)> = (names.iter().enumerate())
        .map(|(n, name)| (n as u64 * 320, 320, name.as_str()))
        .collect();
    let rule = |contains: &str, region, part: &str| RegionRule {
        module: "node".into(),
        contains: contains.into(),
        region,
        part: part.into(),
        ..RegionRule::default()
    };
    let mut rules: Vec<RegionRule> = (0..60)
        .map(|n| rule(&format!("::NoSuchThing{n}::"), Region::Gc, "none"))
        .collect();
    rules.push(rule("::Scavenger::", Region::Gc, "scavenger"));
    rules.push(rule("::compiler::", Region::Compiler, "TurboFan"));
    rules.push(rule("::Runtime_", Region::Vm, "runtime"));
    recording.symbols(NODE, &functions);
    recording.put(Record::RegionRules(RegionRules {
        process: PROCESS,
        time: TimeNs(0),
        vm: "v8".into(),
        rules,
    }));
}

/// One piece of compiled JavaScript with 40 source lines.
fn node_load(recording: &mut Recording, load: u64, time: u64) {
    let function = load % 600;
    let method = MethodKey(load + 1);
    recording.put(Record::Method(Box::new(Method {
        key: method,
        time: TimeNs(time),
        name: format!("function{function}"),
        file: format!("/home/user/app/lib/module{}.js", function % 40),
        line: u32::try_from(function).unwrap() * 50 + 1,
        ..Method::default()
    })));
    let start = HEAP_AT + load % JS_SLOTS * 0x800;
    let line = |n: u32| u32::try_from(function).unwrap() * 50 + n;
    recording.constituent(Constituent {
        tier: ["Sparkplug", "TurboFan"][load as usize / 600 % 2].into(),
        name: format!("function{function}"),
        method: Some(method),
        map: PcMap::Covers {
            covers: (0..40)
                .map(|n| Cover {
                    start: n * 0x28,
                    end: (n + 1) * 0x28,
                    chain: n,
                    exactness: Exactness::Exact,
                    method_error: 0,
                })
                .collect(),
            chains: (0..40)
                .map(|n| {
                    vec![ChainFrame {
                        method,
                        position: Position::Line(line(n)),
                    }]
                })
                .collect(),
        },
        ..code(10_000 + load, time, start, start + 0x700)
    });
}
