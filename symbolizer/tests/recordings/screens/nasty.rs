//! Hostile names, which disturb terminals or mislead users.

use super::super::code;
use super::stage::{FUNCTION, Stage, session_of};
use super::{BEGIN, MS, ms};
use vmscope_records::{
    Constituent, ConstituentKind, Counter, CounterMeaning, Fact, Limit, LimitKind, Method,
    MethodKey, Record, ThreadRole, TimeNs,
};

const LENGTH_MS: u64 = 2_000;
const ZONE: u64 = 0x1000_0000;
const PROGRAM: u64 = 0x40_0000;

/// Used in turn for methods, classes, functions, tiers and threads.
pub const NAMES: [&str; 16] = [
    "bell\u{7}back\u{8}\u{8}\u{8}\u{8}null\0del\u{7f}",
    "clear\u{1b}[2J\u{1b}[Hhome\u{1b}[31mred\u{1b}[0m",
    "title\u{1b}]0;owned\u{7}link\u{1b}]8;;http://example.invalid\u{1b}\\here\u{1b}]8;;\u{1b}\\",
    "c1\u{9b}2J\u{9d}0;owned\u{9c}\u{85}next",
    "עברית and العربية",
    "over\u{202e}edirrevo\u{202c}isolate\u{2067}\u{2069}mark\u{200f}\u{200e}",
    "zero\u{200b}width\u{200d}joiner\u{feff}bom\u{2060}",
    "Zalgo\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\u{309}\u{30a}\u{30b}",
    "👩‍👩‍👧‍👦 family 🇩🇪 flag 👍🏽 skin ❤️ heart",
    "漢字かな交じり文 wide ｆｕｌｌ",
    "",
    " leading and trailing ",
    "tab\tnew\nline\r\nreturn\rvertical\u{b}feed\u{c}line\u{2028}para\u{2029}",
    "\u{301}\u{301}only combining",
    "soft\u{ad}hyphen nb\u{a0}space tag\u{e0041}\u{e0042} private\u{e000}\u{fffd}",
    "<script>&amp;\"quote'back\\slash%s{}$(x)`y`,;=1+1",
];

/// Characters of the longest name.
pub const LONG: usize = 10_000;

fn names() -> Vec<String> {
    let mut names: Vec<String> = NAMES.iter().map(|&name| name.to_owned()).collect();
    names.push("long".chars().cycle().take(LONG).collect());
    names
}

pub fn nasty() -> Vec<u8> {
    let names = names();
    let threads: Vec<(&str, ThreadRole)> = (names.iter())
        .map(|name| (name.as_str(), ThreadRole::Mutator))
        .collect();
    let evil = NAMES[1];
    let mut session = session_of(evil, NAMES[5], &NAMES);
    session.host = evil.into();
    session.engine_reason = NAMES[12].into();
    let mut stage = Stage::new(session, &threads);
    let functions: Vec<&str> = names.iter().map(String::as_str).collect();
    stage.module(1, "/opt/\u{1b}[2J/\u{202e}mv", PROGRAM, &functions);
    for (number, name) in (0..).zip(&names) {
        let other = &names[(number as usize + 3) % names.len()];
        stage.recording.put(Record::Method(Box::new(Method {
            key: MethodKey(number + 1),
            time: TimeNs(BEGIN),
            class: other.clone(),
            name: name.clone(),
            file: name.clone(),
            line: u32::MAX,
            ..Method::default()
        })));
        let start = ZONE + number * FUNCTION;
        stage.recording.constituent(Constituent {
            kind: match number % 4 {
                3 => ConstituentKind::Other(other.clone()),
                _ => ConstituentKind::Method,
            },
            tier: other.clone(),
            name: name.clone(),
            method: Some(MethodKey(number + 1)),
            ..code(number + 1, BEGIN, start, start + FUNCTION)
        });
        told(&mut stage, name, other);
    }
    let count = names.len() as u64;
    let busy = vec![0.1; names.len()];
    stage.play(LENGTH_MS, &busy, |_, thread, draw| {
        let base = if draw.below(4) == 0 { PROGRAM } else { ZONE };
        let number = (thread as u64 + draw.below(3)) % count;
        let at = |base: u64, number: u64| base + number * FUNCTION + 0x10;
        (
            at(base, number),
            vec![at(ZONE, (number + 1) % count), at(PROGRAM, 0)],
        )
    });
    stage.end(LENGTH_MS)
}

/// Facts about the VM with hostile names.
fn told(stage: &mut Stage, name: &str, other: &str) {
    let process = super::super::PROCESS;
    stage.recording.put(Record::Fact(Fact {
        process,
        time: TimeNs(BEGIN),
        name: name.into(),
        value: other.into(),
    }));
    stage.recording.put(Record::Limit(Limit {
        time: TimeNs(BEGIN + MS),
        kind: LimitKind::Other,
        text: name.into(),
        remedy: other.into(),
    }));
    for (time, value) in [(0, 1.0), (1_000, f64::NAN), (1_900, 1e300)] {
        stage.recording.put(Record::Counter(Counter {
            process,
            time: TimeNs(ms(time)),
            section: name.into(),
            name: other.into(),
            unit: "bytes".into(),
            meaning: CounterMeaning::Gauge,
            value,
        }));
    }
}
