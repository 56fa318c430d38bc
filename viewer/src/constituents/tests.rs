//! Compares hand-made records with the files of `tests/golden`.
//! `BLESS=1 cargo test -p vmscope constituents` rewrites the files.

use super::{Shown, text};
use crate::present::json;
use std::path::Path;
use vmscope_records::{
    Avma, BoundaryRule, BytecodePc, ChainFrame, Constituent, ConstituentGone, ConstituentKey,
    ConstituentKind, ConstituentMoved, Cover, Exactness, GoneReason, Limit, LimitKind, Method,
    MethodKey, PcMap, PicCase, Position, ProcessKey, Record, TimeNs, VmIdentity,
};
use vmscope_sampler::{CodeNow, CodeTable};

const ZONE: u64 = 0x1000_0000;

fn method(key: u64, class: &str, name: &str) -> Record {
    Record::Method(Box::new(Method {
        key: MethodKey(key),
        class: class.to_owned(),
        name: name.to_owned(),
        ..Method::default()
    }))
}

fn code(key: u64, (start, end): (u64, u64), kind: ConstituentKind, name: &str) -> Constituent {
    Constituent {
        key: ConstituentKey(key),
        process: ProcessKey(0),
        since: TimeNs(1),
        absent_at: None,
        start: Avma(ZONE + start),
        end: Avma(ZONE + end),
        kind,
        tier: String::new(),
        name: name.to_owned(),
        method: None,
        cases: Vec::new(),
        map: PcMap::None,
    }
}

fn seen(one: Constituent) -> Record {
    Record::Constituent(Box::new(one))
}

fn cover(start: u32, end: u32, chain: u32, exactness: Exactness) -> Cover {
    Cover {
        start,
        end,
        chain,
        exactness,
        method_error: 0,
    }
}

fn frame(method: u64, position: Position) -> ChainFrame {
    ChainFrame {
        method: MethodKey(method),
        position,
    }
}

fn at(bytecode: u32) -> Position {
    Position::Bytecode(BytecodePc(bytecode))
}

/// A zone with each kind of map, a PIC, and code that moved, disappeared or was seen again.
fn zone() -> CodeNow {
    let boundary = PcMap::Boundary {
        rule: BoundaryRule::AfterInstruction,
        exactness: Exactness::Exact,
        entries: vec![(0x28, BytecodePc(26)), (0x51, BytecodePc(29))],
    };
    let covers = PcMap::Covers {
        covers: vec![
            cover(0, 0x10, 0, Exactness::Exact),
            cover(0x10, 0x18, 1, Exactness::Approximate),
            cover(0x20, 0x28, 2, Exactness::MethodOnly),
            // A missing chain.
            cover(0x28, 0x30, 7, Exactness::Exact),
        ],
        chains: vec![
            vec![frame(2, at(3))],
            vec![frame(1, at(7)), frame(2, Position::Line(12))],
            vec![frame(99, Position::Unknown)],
        ],
    };
    let case = |class: &str, method, target: &str| PicCase {
        class: class.to_owned(),
        method,
        target: target.to_owned(),
    };
    let records = [
        method(1, "Integer", "benchFib"),
        method(2, "Object class", "run:"),
        seen(code(
            1,
            (0, 0x40),
            ConstituentKind::Trampoline,
            "ceSend0Args",
        )),
        seen(code(
            2,
            (0x200, 0x300),
            ConstituentKind::Method,
            "later replaced",
        )),
        seen(Constituent {
            method: Some(MethodKey(1)),
            map: boundary,
            ..code(
                2,
                (0x200, 0x300),
                ConstituentKind::Method,
                "Integer>>benchFib",
            )
        }),
        seen(Constituent {
            tier: "T2".to_owned(),
            method: Some(MethodKey(2)),
            map: covers,
            ..code(
                3,
                (0x400, 0x480),
                ConstituentKind::Block,
                "[] in Object class>>run:",
            )
        }),
        seen(Constituent {
            cases: vec![
                case("Point", Some(MethodKey(1)), ""),
                case("\u{1b}[2J", None, "Array>>at:"),
            ],
            ..code(
                4,
                (0x100, 0x180),
                ConstituentKind::ClosedPic,
                "cPIC at: - 2",
            )
        }),
        seen(code(5, (0x800, 0x840), ConstituentKind::Method, "gone")),
        seen(code(
            6,
            (0x900, 0x910),
            ConstituentKind::OpenPic,
            "oPIC\u{202e}",
        )),
        seen(code(7, (0x50, 0x60), ConstituentKind::MethodObject, "data")),
        seen(code(8, (0x480, 0x1480), ConstituentKind::Free, "")),
        Record::ConstituentGone(ConstituentGone {
            key: ConstituentKey(5),
            last_seen: TimeNs(2),
            time: TimeNs(3),
            reason: GoneReason::Freed,
        }),
        Record::ConstituentMoved(ConstituentMoved {
            key: ConstituentKey(6),
            last_seen: TimeNs(2),
            time: TimeNs(3),
            to: Avma(ZONE + 0x180),
        }),
        Record::Limit(Limit {
            time: TimeNs(1),
            kind: LimitKind::AdapterIncomplete,
            text: "one part of the zone was unreadable".to_owned(),
            remedy: "try again".to_owned(),
        }),
    ];
    let mut table = CodeTable::default();
    for record in records {
        table.take(record);
    }
    let vm = VmIdentity {
        kind: "Cog".to_owned(),
        version: "5.0".to_owned(),
    };
    CodeNow { vm, table }
}

pub(crate) fn is_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == wanted, "{name} is not:\n{text}");
}

#[test]
fn a_zone_is_shown_as_its_last_records_say() {
    let code = zone();
    for (name, is_detailed) in [("plain", false), ("detailed", true)] {
        let shown = Shown {
            pid: 4711,
            wall_clock_unix_ns: Some(1_700_000_000_000_000_000),
            ..Shown::of(&code, is_detailed)
        };
        // The printer escapes what is left.
        let printed = {
            let mut bytes = Vec::new();
            crate::print::Printer::new(&mut bytes)
                .text(&text(&shown))
                .unwrap();
            String::from_utf8(bytes).unwrap()
        };
        is_golden(&format!("constituents-{name}.txt"), &printed);
        let json = json::pretty(&shown).unwrap();
        is_golden(&format!("constituents-{name}.json"), &json);
        assert!(!json.contains('\u{1b}') && !printed.contains(['\u{1b}', '\u{202e}']));
    }
}
