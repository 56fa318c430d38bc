//! The code zone as VMProfiler gets it: pairs of an item and an address, or of an item and an address
//! with machine pcs and bytecodes (Cog's primitive 253).

use super::shown::{Map, One, Shown};
use vmscope_records::BytecodePc;

/// Names of the zone's start, of its free space, and of its end.
const START: &str = "CogCode";
const FREE: &str = "CCFree";
const END: &str = "CCEnd";

/// Name of the array behind free space; the primitive omits it.
const YOUNG: &str = "CCYoung";

/// Its kind.
const YOUNG_REFERRERS: &str = "young referrers";

/// All pairs, one per line, ascending. Names of run-time code stand between tildes. Like the primitive,
/// omits the stack check from maps, and unless `is_all` freed entries, blocks inside methods and young
/// referrers.
pub fn pairs(shown: &Shown<'_>, is_all: bool) -> String {
    let mut lines = String::new();
    let mut put = |item: &str, value: &str| {
        for part in [item, " | ", value, "\n"] {
            lines.push_str(part);
        }
    };
    let zone = &shown.constituents;
    if let Some(first) = zone.first() {
        put(&between_tildes(START), &decimal(&first.start));
    }
    for one in zone {
        let omitted = || is_all.then(|| omitted_pair(one)).flatten();
        if let Some((item, value)) = pair(one).or_else(omitted) {
            put(&item, &value);
        }
    }
    if let Some(last) = zone.last() {
        if is_all {
            let is_young = last.kind == YOUNG_REFERRERS;
            let young = if is_young { &last.start } else { &last.end };
            put(&between_tildes(YOUNG), &decimal(young));
        }
        put(&between_tildes(END), &decimal(&last.end));
    }
    lines
}

fn pair(one: &One<'_>) -> Option<(String, String)> {
    let address = decimal(&one.start);
    let selector = || one.name.split(' ').next().unwrap_or_default();
    Some(match one.kind {
        "trampoline" | "enilopmart" | "stub" | "adapter" => (between_tildes(one.name), address),
        "free" => (between_tildes(FREE), address),
        "open pic" => (format!("#{}", selector()), address),
        "closed pic" => (closed_pic(one, selector()), address),
        "method" => (one.name.to_owned(), with_map(one, address)),
        "block" if !one.is_inside => (one.name.to_owned(), with_map(one, address)),
        _ => return None,
    })
}

/// A pair that the primitive omits.
fn omitted_pair(one: &One<'_>) -> Option<(String, String)> {
    let address = decimal(&one.start);
    Some(match (one.kind, one.name.split_once(' ')) {
        ("freed", Some((kind, selector))) => (format!("{kind} #{selector}"), address),
        ("freed", None) => (one.name.to_owned(), address),
        ("block", _) => (format!("inside {}", one.name), with_map(one, address)),
        _ => return None,
    })
}

/// The selector, in a detailed answer with classes and targets.
fn closed_pic(one: &One<'_>, selector: &str) -> String {
    if one.cases.is_empty() {
        return format!("#{selector}");
    }
    let mut item = format!("(#{selector} ");
    for case in &one.cases {
        let class = if case.class.is_empty() {
            "nil"
        } else {
            case.class
        };
        item.push_str(&format!("{class} {} ", case.target));
    }
    item.push(')');
    item
}

fn with_map(one: &One<'_>, address: String) -> String {
    let Some(Map::Boundary { entries, .. }) = &one.map else {
        return address;
    };
    let start = number(&one.start);
    let Some((_, places)) = entries.split_first() else {
        return address;
    };
    let places: String = places
        .iter()
        .map(|(offset, BytecodePc(bytecode))| {
            let place = start.saturating_add(u64::from(*offset));
            format!("{place} {bytecode} ")
        })
        .collect();
    format!("({address} {places})")
}

fn between_tildes(name: &str) -> String {
    format!("~{name}~")
}

fn number(address: &str) -> u64 {
    let digits = address.strip_prefix("0x").unwrap_or(address);
    u64::from_str_radix(digits, 16).unwrap_or(0)
}

fn decimal(address: &str) -> String {
    number(address).to_string()
}
