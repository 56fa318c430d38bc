//! A fictitious Squeak on Cog: boundary maps, inline caches, and a code compaction.

use super::super::code;
use super::stage::{FUNCTION, KERNEL, Stage, session_of};
use super::{BEGIN, ms, skewed};
use vmscope_records::{
    Avma, BoundaryRule, BytecodePc, Constituent, ConstituentGone, ConstituentKey, ConstituentKind,
    ConstituentMoved, Exactness, GoneReason, Method, MethodKey, PcMap, PicCase, Record, Region,
    ThreadRole, TimeNs,
};

const LENGTH_MS: u64 = 6_000;
/// Time of the compaction.
const COMPACTED_MS: u64 = 3_000;

const ZONE: u64 = 0x1000_0000;
const ZONE_END: u64 = ZONE + 0x4000;
const SQUEAK: u64 = 0x40_0000;
const LIBC: u64 = 0x7f00_0000_0000;
/// Bytes of a trampoline, and between two boundaries.
const TRAMPOLINE: u64 = 0x40;
const RANGE: u64 = 0x10;

const TRAMPOLINES: [&str; 12] = [
    "ceSend0Args",
    "ceSend1Args",
    "ceSend2Args",
    "ceStoreCheck",
    "ceSendMustBeBooleanAddFalse",
    "ceReturnToInterpreter",
    "ceCheckForInterrupts",
    "ceCreateNewArray",
    "ceNonLocalReturn",
    "cePICMiss1Args",
    "ceEnterCogCodePopReceiverReg",
    "ceCallCogCodePopReceiverReg",
];

/// Class, selector, relative samples, number of boundaries; `-` marks flushed methods.
const METHODS: &str = "
  Integer              benchFib                     300  7
  Integer              benchmark                    200 14
- Integer              printOn:base:                 10  5
  SmallInteger         +                             90  1
  Object               at:                           60  2
  Object               at:put:                      120  2
- String               hash                          20  4
  OrderedCollection    do:                           70  6
  OrderedCollection    addLast:                      50  4
- OrderedCollection    removeFirst                   10  4
  Dictionary           at:ifAbsent:                  80  5
  Dictionary           scanFor:                     110  9
  Array                replaceFrom:to:with:startingAt: 30 3
- Interval             do:                           25  5
  Interval             collect:                      40  6
  Random               next                          55  8
  Float                truncated                     15  3
- Point                dist:                         12  4
  Rectangle            containsPoint:                35  6
  BlockClosure         value:                        45  2
";

/// Selector and cases; `-` marks an open PIC.
const PICS: [(&str, &[(&str, &str)]); 4] = [
    (
        "at:",
        &[("Array", "Object>>at:"), ("ByteString", "Object>>at:")],
    ),
    (
        "do:",
        &[
            ("OrderedCollection", "OrderedCollection>>do:"),
            ("Interval", "Interval>>do:"),
            ("Array", "SequenceableCollection>>do:"),
        ],
    ),
    ("value:", &[("BlockClosure", "BlockClosure>>value:")]),
    ("hash", &[]),
];

const VM: [&str; 6] = [
    "interpret",
    "scavengeReferentsOf",
    "copyAndForward",
    "primitiveStringReplace",
    "compileCogMethod",
    "handleStackOverflow",
];

/// A piece of the zone, with addresses before and after the compaction.
struct Piece {
    constituent: Constituent,
    weight: u64,
    moved_to: Option<u64>,
}

impl Piece {
    fn at(&self, time: u64) -> Option<u64> {
        if time < ms(COMPACTED_MS) {
            return Some(self.constituent.start.0);
        }
        self.moved_to
    }
}

fn boundaries(count: u32) -> PcMap {
    PcMap::Boundary {
        rule: BoundaryRule::AfterInstruction,
        exactness: Exactness::Exact,
        entries: (1..=count)
            .map(|n| (n * RANGE as u32, BytecodePc(20 + n * 3)))
            .collect(),
    }
}

/// Methods and inline caches in address order; the compaction moves the rest over the flushed ones.
fn pieces(stage: &mut Stage) -> Vec<Piece> {
    let mut next = ZONE + TRAMPOLINES.len() as u64 * TRAMPOLINE;
    let mut moved = next;
    let mut pieces = Vec::new();
    let mut put = |constituent: Constituent, bytes: u64, weight: u64, stays: bool| {
        let key = ConstituentKey(100 + pieces.len() as u64);
        let (start, end) = (Avma(next), Avma(next + bytes));
        pieces.push(Piece {
            constituent: Constituent {
                key,
                start,
                end,
                ..constituent
            },
            weight,
            moved_to: stays.then_some(moved),
        });
        next += bytes;
        moved += if stays { bytes } else { 0 };
    };
    for (number, row) in (1..).zip(METHODS.trim_matches('\n').lines()) {
        let (mark, row) = row.split_at(2);
        let words: Vec<&str> = row.split_whitespace().collect();
        let (class, selector) = (words[0], words[1]);
        let count: u32 = words[3].parse().unwrap();
        let listing = (1..=count).map(|n| (BytecodePc(20 + n * 3), format!("<B{n:X}> send: #{n}")));
        stage.recording.put(Record::Method(Box::new(Method {
            key: MethodKey(number),
            time: TimeNs(BEGIN),
            class: class.into(),
            name: selector.into(),
            listing: if number % 2 == 1 {
                listing.collect()
            } else {
                Vec::new()
            },
            ..Method::default()
        })));
        let method = Constituent {
            name: format!("{class}>>{selector}"),
            method: Some(MethodKey(number)),
            map: boundaries(count),
            ..code(0, BEGIN, 0, 0)
        };
        let bytes = u64::from(count + 1) * RANGE;
        put(method, bytes, words[2].parse().unwrap(), mark.trim() != "-");
    }
    for (selector, cases) in PICS {
        let case = |&(class, target): &(&str, &str)| PicCase {
            class: class.into(),
            method: None,
            target: target.into(),
        };
        let pic = Constituent {
            kind: match cases {
                [] => ConstituentKind::OpenPic,
                _ => ConstituentKind::ClosedPic,
            },
            name: selector.into(),
            cases: cases.iter().map(case).collect(),
            ..code(0, BEGIN, 0, 0)
        };
        put(pic, 0x80, 24, true);
    }
    pieces
}

fn zone(stage: &mut Stage, pieces: &[Piece]) {
    for (number, name) in (0..).zip(TRAMPOLINES) {
        let start = ZONE + number * TRAMPOLINE;
        stage.recording.constituent(Constituent {
            kind: match name.starts_with("ceEnter") || name.starts_with("ceCall") {
                true => ConstituentKind::Enilopmart,
                false => ConstituentKind::Trampoline,
            },
            name: name.into(),
            ..code(1 + number, BEGIN, start, start + TRAMPOLINE)
        });
    }
    let compacted = TimeNs(ms(COMPACTED_MS));
    let gone = |key, reason| {
        Record::ConstituentGone(ConstituentGone {
            key,
            last_seen: compacted,
            time: compacted,
            reason,
        })
    };
    let (mut end, mut moved_end) = (ZONE, ZONE);
    for piece in pieces {
        let constituent = &piece.constituent;
        stage.recording.constituent(constituent.clone());
        let bytes = constituent.end.0 - constituent.start.0;
        end = constituent.end.0;
        let Some(to) = piece.moved_to else {
            stage
                .recording
                .put(gone(constituent.key, GoneReason::Flushed));
            continue;
        };
        moved_end = to + bytes;
        if to != constituent.start.0 {
            stage
                .recording
                .put(Record::ConstituentMoved(ConstituentMoved {
                    key: constituent.key,
                    last_seen: compacted,
                    time: compacted,
                    to: Avma(to),
                }));
        }
    }
    for (key, since, start) in [(90, BEGIN, end), (91, compacted.0, moved_end)] {
        stage.recording.constituent(Constituent {
            kind: ConstituentKind::Free,
            name: String::new(),
            ..code(key, since, start, ZONE_END)
        });
    }
    stage
        .recording
        .put(gone(ConstituentKey(90), GoneReason::Recycled));
}

pub fn cog() -> Vec<u8> {
    let threads = [
        ("squeak", ThreadRole::Mutator),
        ("heartbeat", ThreadRole::Heartbeat),
    ];
    let command = ["/opt/squeak/squeak", "tinyBenchmarks.image"];
    let session = session_of("Cog", "5.0-201706131152", &command);
    let mut stage = Stage::new(session, &threads);
    stage.module(1, "/opt/squeak/squeak", SQUEAK, &VM);
    stage.module(
        2,
        "/opt/acme-os/lib/libc.so.6",
        LIBC,
        &["memmove", "nanosleep"],
    );
    stage.kernel(&["hrtimer_nanosleep", "clear_page_erms"]);
    let rules = [
        ("interpret", Region::Interpreter, ""),
        ("scavenge", Region::Gc, "scavenger"),
        ("copyAndForward", Region::Gc, "scavenger"),
        ("compileCog", Region::Compiler, "Cogit"),
    ];
    stage.regions("cog", "squeak", &rules);
    let pieces = pieces(&mut stage);
    zone(&mut stage, &pieces);
    stage.play(LENGTH_MS, &[0.86, 0.004], |time, thread, draw| {
        let function = |base: u64, number: u64| base + number * FUNCTION + 0x20;
        if thread == 1 {
            return (function(LIBC, 1), Vec::new());
        }
        let pc = match draw.below(100) {
            0..6 => ZONE + skewed(draw, TRAMPOLINES.len() as u64) * TRAMPOLINE + 8,
            6..20 => function(SQUEAK, skewed(draw, VM.len() as u64)),
            20..22 => function(LIBC, 0),
            22..24 => function(KERNEL, 1),
            _ => {
                let there = || pieces.iter().filter(|piece| piece.at(time).is_some());
                let mut drawn = draw.below(there().map(|piece| piece.weight).sum());
                let chosen = there().find(|piece| {
                    let is_it = drawn < piece.weight;
                    drawn = drawn.saturating_sub(piece.weight);
                    is_it
                });
                let chosen = chosen.unwrap();
                let bytes = chosen.constituent.end.0 - chosen.constituent.start.0;
                let range = (skewed(draw, bytes / RANGE) + 3) % (bytes / RANGE);
                chosen.at(time).unwrap() + range * RANGE + 4
            }
        };
        (pc, Vec::new())
    });
    stage.end(LENGTH_MS)
}
