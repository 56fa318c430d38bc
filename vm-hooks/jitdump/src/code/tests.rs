use std::sync::Arc;

use vmscope_process::KeySource;
use vmscope_records::{Position, ProcessKey, Record};

use super::*;

fn poll() -> Poll {
    Poll::new(
        KeySource::new(),
        ProcessKey(3),
        Arc::new(|| TimeNs(1_000_000)),
    )
}

fn load(name: &str, since: u64, start: u64, size: u64) -> CodeLoad {
    CodeLoad {
        start: Avma(start),
        size,
        name: name.to_owned(),
        since: TimeNs(since),
        absent_at: None,
        lines: Vec::new(),
    }
}

/// What was told: `+name start-end @since`, `-name @last_seen..time`, `>name to @time`.
fn told(poll: Poll) -> Vec<String> {
    let mut names = HashMap::new();
    let records = poll.finish();
    records
        .into_iter()
        .filter_map(|record| match record {
            Record::Constituent(c) => {
                names.insert(c.key, c.name.clone());
                let absent = c.absent_at.map_or(String::new(), |time| format!("{time}<"));
                Some(format!(
                    "+{} {}-{} @{absent}{}",
                    c.name, c.start.0, c.end.0, c.since
                ))
            }
            Record::ConstituentGone(gone) => {
                let name = names.get(&gone.key).map_or("?", String::as_str);
                Some(format!("-{name} @{}..{}", gone.last_seen, gone.time))
            }
            Record::ConstituentMoved(moved) => {
                let name = names.get(&moved.key).map_or("?", String::as_str);
                Some(format!(">{name} {} @{}", moved.to.0, moved.time))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn what_is_put_over_other_code_ends_it() {
    let mut live = LiveCode::new(VmKind::Other, TimeNs(0));
    let mut poll = poll();
    live.load(load("a", 10, 100, 100), false, &mut poll);
    live.load(load("b", 20, 200, 100), false, &mut poll);
    live.load(load("c", 30, 150, 60), false, &mut poll);
    live.load(load("c", 40, 150, 60), false, &mut poll);
    assert_eq!(
        told(poll),
        [
            "+a 100-200 @10",
            "+b 200-300 @20",
            "-b @30..30",
            "-a @30..30",
            "+c 150-210 @30",
        ],
        "told twice, it is the same code"
    );
}

#[test]
fn times_that_run_backwards_never_put_code_under_older_code() {
    let mut live = LiveCode::new(VmKind::Other, TimeNs(0));
    let mut poll = poll();
    live.load(load("a", 50, 100, 100), false, &mut poll);
    live.load(load("b", 40, 100, 100), false, &mut poll);
    assert_eq!(live.disordered, 1);
    assert_eq!(
        told(poll),
        ["+a 100-200 @50", "-a @50..50", "+b 100-200 @50"]
    );
}

#[test]
fn of_a_long_past_only_what_is_left_is_told() {
    let mut live = LiveCode::new(VmKind::Other, TimeNs(100));
    let mut poll = poll();
    live.load(load("dead", 10, 100, 100), true, &mut poll);
    live.load(load("old", 20, 100, 100), true, &mut poll);
    live.load(load("moved", 30, 500, 50), true, &mut poll);
    live.moved(Avma(500), Avma(600), 50, TimeNs(40), &mut poll);
    live.load(load("dies", 50, 300, 100), true, &mut poll);
    live.load(load("new", 110, 300, 100), true, &mut poll);
    live.moved(Avma(600), Avma(700), 50, TimeNs(120), &mut poll);
    assert!(!live.emit_held(1, &mut poll));
    assert!(live.emit_held(9, &mut poll));
    assert!(live.emit_held(9, &mut poll));
    assert_eq!(
        told(poll),
        [
            "+dies 300-400 @50",
            "-dies @110..110",
            "+moved 600-650 @40",
            ">moved 700 @120",
            "+old 100-200 @20",
            "+new 300-400 @110",
        ]
    );
}

#[test]
fn of_code_whose_coming_was_not_seen_the_old_may_be_over_since_the_look_before() {
    let mut live = LiveCode::new(VmKind::Other, TimeNs(0));
    let mut poll = poll();
    let seen = |name, since, absent: u64| CodeLoad {
        absent_at: Some(TimeNs(absent)),
        ..load(name, since, 100, 100)
    };
    live.load(seen("a", 20, 10), false, &mut poll);
    live.load(seen("b", 40, 30), false, &mut poll);
    live.load(seen("c", 40, 30), false, &mut poll);
    assert_eq!(
        told(poll),
        [
            "+a 100-200 @10<20",
            "-a @30..40",
            "+b 100-200 @30<40",
            "-b @30..40",
            "+c 100-200 @30<40",
        ]
    );
}

#[test]
fn what_finds_no_room_still_ends_what_it_overwrites() {
    let mut live = LiveCode::new(VmKind::Other, TimeNs(0));
    live.max_live = 3;
    let mut poll = poll();
    for (name, start) in [("a", 100), ("b", 200), ("c", 300), ("d", 400)] {
        live.load(load(name, 10, start, 100), false, &mut poll);
    }
    assert_eq!(live.unusable, 1, "d");
    live.load(load("e", 20, 150, 100), false, &mut poll);
    assert_eq!(live.unusable, 1);
    live.moved(Avma(1000), Avma(320), 10, TimeNs(30), &mut poll);
    assert_eq!(live.unusable, 2);
    assert_eq!(
        told(poll)[3..],
        ["-b @20..20", "-a @20..20", "+e 150-250 @20", "-c @30..30",]
    );
}

#[test]
fn what_a_file_that_is_written_anew_does_not_tell_again_is_gone() {
    let mut live = LiveCode::new(VmKind::Other, TimeNs(0));
    let mut poll = poll();
    for (name, start) in [("a", 100), ("b", 200), ("c", 300)] {
        live.load(load(name, 10, start, 100), false, &mut poll);
    }
    live.begin_anew();
    live.load(load("b", 50, 200, 100), false, &mut poll);
    live.load(load("x", 50, 350, 100), false, &mut poll);
    live.end_missing(TimeNs(40), TimeNs(60), &mut poll);
    live.end_missing(TimeNs(50), TimeNs(70), &mut poll);
    assert_eq!(
        told(poll)[3..],
        ["-c @50..50", "+x 350-450 @50", "-a @40..60"]
    );
}

#[test]
fn names_and_what_is_held_back_are_bounded_in_bytes() {
    let mut live = LiveCode::new(VmKind::Other, TimeNs(0));
    live.max_bytes = 100_000;
    let mut poll = poll();
    let long = "n".repeat(4000);
    for number in 0..1000 {
        let name = format!("{long}{number}");
        live.load(load(&name, 10, number * 100, 100), true, &mut poll);
        assert!(live.live_bytes < 110_000 && live.held.bytes < 110_000);
        assert!(live.method_bytes < 110_000);
    }
    assert!(live.unusable > 900);
    live.load(load("over all", 20, 0, 100_000), true, &mut poll);
    assert_eq!(live.by_start.len(), 1);
    assert!(live.live_bytes < 1000, "{}", live.live_bytes);
    assert!(live.emit_held(9, &mut poll));
    assert_eq!((live.held.count, live.held.bytes), (0, 0));
}

#[test]
fn what_was_moved_while_it_is_told_is_told() {
    let mut live = LiveCode::new(VmKind::Other, TimeNs(100));
    let mut poll = poll();
    for (name, start) in [("a", 100), ("b", 200), ("c", 300)] {
        live.load(load(name, 10, start, 100), true, &mut poll);
    }
    assert!(!live.emit_held(2, &mut poll));
    live.moved(Avma(300), Avma(50), 20, TimeNs(20), &mut poll);
    assert!(live.emit_held(2, &mut poll));
    assert_eq!(
        told(poll),
        ["+a 100-200 @10", "+b 200-300 @10", "+c 50-70 @20"]
    );
}

#[test]
fn what_can_not_be_is_counted() {
    let mut live = LiveCode::new(VmKind::Other, TimeNs(0));
    let mut poll = poll();
    live.load(load("none", 1, 100, 0), false, &mut poll);
    live.load(load("huge", 1, 100, 1 << 33), false, &mut poll);
    live.load(load("beyond", 1, u64::MAX - 1, 16), false, &mut poll);
    live.moved(Avma(5), Avma(6), 1, TimeNs(1), &mut poll);
    assert_eq!(live.unusable, 4);
    assert!(told(poll).is_empty());
}

/// A line of a perf map, read at `since`; the poll before was at `absent`.
fn line(name: &str, absent: u64, since: u64, start: u64) -> CodeLoad {
    CodeLoad {
        absent_at: Some(TimeNs(absent)),
        ..load(name, since, start, 100)
    }
}

fn touching(until: u64, addresses: &[u64]) -> Poll {
    let addresses = addresses.iter().copied().map(Avma).collect();
    let poll = poll().with_touched_until(TimeNs(until));
    poll.with_touched(addresses)
}

/// Code whose first piece alone is told without a sample.
fn sparing() -> LiveCode {
    let mut live = LiveCode::new(VmKind::Other, TimeNs(0));
    live.max_unsampled = 1;
    live
}

#[test]
fn code_of_a_large_map_is_told_once_a_sample_hits_it() {
    let mut live = sparing();
    let mut poll = touching(5, &[350]);
    live.sampled(&mut poll);
    for (name, start) in [("a", 100), ("b", 200), ("c", 300), ("d", 400)] {
        live.load_line(line(name, 5, 10, start), &mut poll);
    }
    assert_eq!(
        told(poll),
        ["+a 100-200 @5<10", "+c 300-400 @5<10"],
        "a is the first, c was hit before it was read"
    );
    let mut poll = touching(15, &[199, 299, 500]);
    live.sampled(&mut poll);
    live.sampled(&mut poll);
    assert_eq!(told(poll), ["+b 200-300 @5<10"], "once, with its own time");
    assert!(live.waits_for_samples());
}

#[test]
fn code_that_was_replaced_waits_for_the_samples_of_its_time() {
    let mut live = sparing();
    let mut poll = touching(10, &[]);
    live.load_line(line("a", 5, 10, 100), &mut poll);
    for (name, since) in [("b", 10), ("c", 20), ("d", 30)] {
        live.load_line(line(name, since - 5, since, 200), &mut poll);
        live.load_line(line("other", since - 5, since, 400), &mut poll);
    }
    assert_eq!(told(poll), ["+a 100-200 @5<10"]);
    // All samples before 25 are known: none of them hit b.
    let mut poll = touching(25, &[]);
    live.sampled(&mut poll);
    assert_eq!(told(poll), [""; 0]);
    let mut poll = touching(40, &[210]);
    live.sampled(&mut poll);
    assert_eq!(
        told(poll),
        ["+c 200-300 @15<20", "-c @25..30", "+d 200-300 @25<30"]
    );
    // The end of told code is told, whatever replaces it.
    let mut poll = touching(50, &[]);
    live.load_line(line("e", 45, 50, 250), &mut poll);
    assert_eq!(told(poll), ["-? @45..50"]);
    assert_eq!(live.unusable, 0);
}

#[test]
fn replaced_code_is_bounded_in_bytes_and_told_as_lost() {
    let mut live = sparing();
    live.max_bytes = 10_000;
    let mut poll = poll();
    for number in 0..1000 {
        live.load_line(line("x", 5, 10 + number, 100), &mut poll);
        live.load_line(line("y", 5, 10 + number, 100), &mut poll);
    }
    assert!(live.unusable > 1000, "{}", live.unusable);
    assert_eq!(told(poll).len(), 2, "the first came and went");
}

#[test]
fn code_that_a_new_map_lacks_is_told_if_a_sample_hit_it() {
    let mut live = sparing();
    let mut poll = touching(10, &[]);
    for (name, start) in [("a", 100), ("b", 200), ("c", 300)] {
        live.load_line(line(name, 5, 10, start), &mut poll);
    }
    live.begin_anew();
    live.load_line(line("a", 15, 20, 100), &mut poll);
    live.end_missing(TimeNs(15), TimeNs(20), &mut poll);
    assert_eq!(told(poll), ["+a 100-200 @5<10"]);
    let mut poll = touching(20, &[250]);
    live.sampled(&mut poll);
    assert_eq!(told(poll), ["+b 200-300 @5<10", "-b @15..20"]);
}

#[test]
fn a_method_has_its_class_apart() {
    let mut live = LiveCode::new(VmKind::DotNet, TimeNs(0));
    let mut poll = poll();
    for (name, at) in [
        ("void [b] A.P::.ctor(int32)[PreJIT]", 100),
        ("void [b] A.Q::Run()[PreJIT]", 200),
        ("void [b] A.R::Run()[PreJIT]", 300),
        ("odd", 400),
    ] {
        live.load(load(name, 10, at, 50), false, &mut poll);
    }
    let records = poll.finish().into_iter();
    let methods = records.filter_map(|record| match record {
        Record::Method(method) => Some((method.class, method.name)),
        _ => None,
    });
    let own = |class: &str, name: &str| (class.to_owned(), name.to_owned());
    assert_eq!(
        methods.collect::<Vec<_>>(),
        [
            own("A.P", ".ctor(int32)"),
            own("A.Q", "Run()"),
            own("A.R", "Run()"),
            own("", "odd"),
        ]
    );
}

/// Covers of the only emitted constituent: offsets, line, file.
fn covers(poll: Poll) -> Vec<(u32, u32, u32, String)> {
    let records = poll.finish();
    let mut files = HashMap::new();
    let mut all = Vec::new();
    for record in records {
        match record {
            Record::Method(method) => {
                files.insert(method.key, method.file.clone());
            }
            Record::Constituent(constituent) => {
                let PcMap::Covers { covers, chains } = &constituent.map else {
                    continue;
                };
                for cover in covers {
                    let frame = chains[cover.chain as usize][0];
                    let Position::Line(line) = frame.position else {
                        continue;
                    };
                    all.push((cover.start, cover.end, line, files[&frame.method].clone()));
                }
            }
            _ => {}
        }
    }
    all
}

fn lines(of: &[(u64, u32, &str)]) -> Vec<LineStart> {
    of.iter()
        .map(|&(address, line, file)| LineStart {
            address: Avma(address),
            line,
            column: 0,
            file: file.into(),
        })
        .collect()
}

#[test]
fn a_source_position_holds_until_the_next_and_equal_ones_are_one() {
    let mut live = LiveCode::new(VmKind::Other, TimeNs(0));
    let mut poll = poll();
    let positions = [
        (110, 5, "f.js"),
        (120, 5, "f.js"),
        (130, 9, "g.js"),
        (130, 6, "f.js"),
        (150, 9, "g.js"),
        (170, 0, "f.js"),
        (190, 5, "f.js"),
        (900, 7, "f.js"),
    ];
    let load = CodeLoad {
        lines: lines(&positions),
        ..load("f", 1, 100, 100)
    };
    live.load(load, false, &mut poll);
    let (f, g) = ("f.js".to_owned(), "g.js".to_owned());
    assert_eq!(
        covers(poll),
        [
            (10, 30, 5, f.clone()),
            (30, 50, 6, f.clone()),
            (50, 70, 9, g),
            (90, 100, 5, f),
        ]
    );
}

#[test]
fn code_far_from_a_source_position_has_none() {
    let mut live = LiveCode::new(VmKind::Other, TimeNs(0));
    let mut poll = poll();
    let load = CodeLoad {
        lines: lines(&[(1000, 3, "x"), (9000, 4, "x")]),
        ..load("f", 1, 1000, 8100)
    };
    live.load(load, false, &mut poll);
    let x = "x".to_owned();
    assert_eq!(covers(poll), [(0, 4096, 3, x.clone()), (8000, 8100, 4, x)]);
}

#[test]
fn what_v8_adds_to_its_addresses_is_taken_off_again() {
    for (kind, positions, first) in [
        (VmKind::V8, [(1064, 3, "x"), (1070, 4, "x")], 0),
        (VmKind::Other, [(1064, 3, "x"), (1070, 4, "x")], 64),
        (VmKind::Other, [(1064, 3, "x"), (1110, 4, "x")], 0),
        (VmKind::V8, [(1000, 3, "x"), (1070, 4, "x")], 0),
    ] {
        let mut live = LiveCode::new(kind, TimeNs(0));
        let mut poll = poll();
        let load = CodeLoad {
            lines: lines(&positions),
            ..load("JS:*f x:1:1", 1, 1000, 100)
        };
        live.load(load, false, &mut poll);
        assert_eq!(covers(poll)[0].0, first, "{kind:?} {positions:?}");
    }
}

#[test]
fn pieces_follow_the_code() {
    let mut live = LiveCode::new(VmKind::DotNet, TimeNs(0));
    let mut poll = poll();
    live.load(load("before", 1, 100, 10), false, &mut poll);
    let pieces = live.pieces();
    let at = |address| pieces.at(address).map(|piece| piece.code);
    assert_eq!(at(105), Some(100..110));
    assert_eq!((at(99), at(110)), (None, None));
    live.load(load("a", 10, 200, 100), false, &mut poll);
    let first = pieces.at(250);
    live.load(load("b", 20, 240, 20), false, &mut poll);
    assert_eq!((at(239), at(250)), (None, Some(240..260)));
    live.moved(Avma(240), Avma(500), 20, TimeNs(30), &mut poll);
    assert_eq!((at(250), at(500)), (None, Some(500..520)));
    live.load(load("a", 40, 200, 100), false, &mut poll);
    let second = pieces.at(250);
    assert!(first.is_some() && second.is_some() && first != second);
}
