//! Dumps from real VMs (`tests/fixtures/README.md`).

use vmscope_records::Arch;

use super::decode;
use crate::dump::{Event, Header, Load};

fn loads(bytes: &[u8]) -> (Header, Vec<Load>, usize) {
    let (events, decoder, error) = decode(bytes, &[100, 1, 17]);
    assert_eq!(error, None);
    assert!(decoder.flaws().is_empty(), "{:?}", decoder.flaws());
    let all = events.len();
    let loads: Vec<Load> = events
        .into_iter()
        .filter_map(|event| match event {
            Event::Load(load) => Some(load),
            _ => None,
        })
        .collect();
    let others = all - loads.len();
    (*decoder.header().unwrap(), loads, others)
}

#[test]
fn of_node() {
    let (header, loads, others) = loads(include_bytes!("../../../tests/fixtures/node20.dump"));
    assert_eq!((header.arch, header.pid, others), (Arch::X86_64, 23544, 0));
    let names: Vec<&str> = loads.iter().map(|load| &*load.name).collect();
    let expected = [
        "Builtin:DeoptimizationEntry_Eager",
        "Builtin:DeoptimizationEntry_Lazy",
        "Builtin:RegExpCapture1Getter",
        "JS:^requireBuiltin node:internal/bootstrap/realm:420:24",
        "JS:*fib /tmp/demo-program/fib.js:1:13",
    ];
    assert_eq!(names, expected);
    let realm = &loads[3];
    assert_eq!((realm.lines.len(), realm.lines[0].line), (17, 421));
    assert!(
        realm
            .lines
            .iter()
            .all(|line| &*line.file == "node:internal/bootstrap/realm")
    );
    // V8 overwrote the name in each entry.
    let fib = &loads[4];
    let told: Vec<(u64, u32, u32)> = fib
        .lines
        .iter()
        .map(|line| (line.address.0 - fib.address.0, line.line, line.column))
        .collect();
    assert_eq!(told.len(), 9);
    assert_eq!(told[0], (64, 1, 13));
    assert!(
        told.iter()
            .all(|(offset, line, _)| *offset < fib.size + 64 && matches!(line, 1 | 2))
    );
    assert!(
        fib.lines
            .iter()
            .all(|line| &*line.file == "/tmp/demo-program/fib.js")
    );
}

#[test]
fn of_erlang() {
    let (header, loads, _) = loads(include_bytes!("../../../tests/fixtures/erlang25.dump"));
    assert_eq!((header.arch, header.arch_timestamp), (Arch::X86_64, false));
    assert_eq!(loads.len(), 10);
    let parse = loads
        .iter()
        .find(|load| load.name == "erl_parse:parse_exprs/1")
        .unwrap();
    let lines: Vec<u32> = parse.lines.iter().map(|line| line.line).collect();
    assert_eq!(lines, [1069, 1071, 1072, 1082, 0]);
    assert!(parse.lines[0].address < parse.address);
    assert_eq!(&*parse.lines[0].file, "erl_parse.yrl");
    assert_eq!(&*parse.lines[4].file, "");
}

#[test]
fn of_php() {
    let (header, loads, others) = loads(include_bytes!("../../../tests/fixtures/php82.dump"));
    assert_eq!((header.pid, loads.len()), (23578, 7));
    assert_eq!(others, 1, "it closes its dump");
    assert_eq!(loads[2].name, "TRACE-1$fib$2");
}

#[test]
fn of_cpython() {
    let (header, loads, _) = loads(include_bytes!("../../../tests/fixtures/cpython313.dump"));
    assert_eq!(header.arch, Arch::Other(0));
    assert!(header.may_be_for(Arch::of_this_machine()));
    assert_eq!(loads[3].name, "py::fib:/tmp/demo-program/fib.py");
}
