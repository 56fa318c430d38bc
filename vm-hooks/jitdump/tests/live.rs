//! A real VM's dump, found by its mark in a running process and followed by descriptor
//! after the file and its folder are gone.
#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is to panic"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use vmscope_jitdump::dump::{Event, Load};
use vmscope_jitdump::find::dump_markers;
use vmscope_jitdump::follow::{Progress, Streams};
use vmscope_process::ProcessView;
use vmscope_records::{Arch, Pid};

const PROGRAM: &str = "
function fib(n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
for (let i = 0; i < 200; i++) fib(20);
console.log('ready');
process.stdin.on('data', () => {});
";

#[test]
fn node() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("a program of some length.js");
    std::fs::write(&script, PROGRAM).unwrap();
    let started = Command::new("node")
        // Optimised at a fixed point, not whenever another thread finishes.
        .args(["--perf-prof", "--no-concurrent-recompilation"])
        .arg(&script)
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut node = match started {
        Ok(node) => node,
        Err(error) => {
            // Not eprintln!, which the test harness keeps to itself where a test passes.
            writeln!(
                std::io::stderr(),
                "SKIPPED: node can't be started ({error})"
            )
            .unwrap();
            return;
        }
    };
    let mut line = String::new();
    let mut stdout = BufReader::new(node.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");

    let process = ProcessView::open(Pid(node.id())).unwrap();
    let markers = dump_markers(&process);
    assert_eq!(markers.len(), 1, "{markers:?}");
    assert!(markers[0].is_of(&process));
    let mut dump = markers[0].open(&process).unwrap();
    drop(folder);
    let mut events = Vec::new();
    while dump.poll(100, &mut events).unwrap() == Progress::More {}
    // V8 has written whole records. Its buffer holds the last records.
    let streams = Streams::of(&process).unwrap();
    let unwritten = streams.unwritten(&process, dump.file()).unwrap();
    let length = unwritten.offset + unwritten.bytes.len() as u64;
    dump.set_unwritten(unwritten);
    while dump.poll(100, &mut events).unwrap() == Progress::More {}
    assert_eq!(dump.offset(), length);
    // The end of its input ends it.
    drop(node.stdin.take());
    assert!(node.wait().unwrap().success());
    while dump.finish(100, &mut events).unwrap() == Progress::More {}

    let header = dump.header().unwrap();
    assert_eq!(
        (header.pid, header.arch),
        (process.inner_pid().0, Arch::of_this_machine())
    );
    assert!(dump.flaws().is_empty(), "{:?}", dump.flaws());
    let is_fib = |load: &&Load| load.name.starts_with("JS:*fib ");
    let loads = events.iter().filter_map(|event| match event {
        Event::Load(load) => Some(load),
        _ => None,
    });
    let fib = loads.clone().find(is_fib).unwrap();
    assert!(loads.count() > 1000);
    let script = script.to_str().unwrap();
    assert!(!fib.lines.is_empty());
    assert!(
        fib.lines
            .iter()
            .all(|line| &*line.file == script && matches!(line.line, 2 | 3))
    );
}
