//! Reports of a Cog VM: the busy snapshot's samples, and what its adapter tells at two times.

use std::sync::Arc;

use crate::golden_file::{golden_of, report};
use crate::recordings::{PROCESS, Recording, THREAD, session};
use vmscope_cog::testing::Snapshot;
use vmscope_cog::{CogAdapter, Vm};
use vmscope_process::{Adapter as _, KeySource, Poll, ProcessView, SymbolKind};
use vmscope_records::{Avma, ModuleKey, Record, Session, TimeNs, VmIdentity};

const SECOND: u64 = 1_000_000_000;

/// Begin of the VM's program (`busy.symbols.tsv`), and its length.
const PROGRAM_AT: u64 = 0x563e_46ac_e000;
const PROGRAM_BYTES: u64 = 0x20_0000;
const SQUEAK: ModuleKey = ModuleKey(7);

/// Label of the bytecode that pushes the receiver, in `interpret`.
const PUSH_RECEIVER: usize = 112;

fn unpacked(name: &str) -> Vec<u8> {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../vm-hooks/cog/tests/snapshots"
    );
    let file = std::fs::File::open(format!("{folder}/{name}.zst")).expect("a snapshot");
    zstd::decode_all(file).expect("a snapshot is whole")
}

fn snapshot() -> Snapshot {
    let symbols = String::from_utf8(unpacked("busy.symbols.tsv")).expect("text");
    Snapshot::new(unpacked("busy.core"), &symbols).expect("a core file")
}

fn told(
    adapter: &mut CogAdapter,
    process: &ProcessView,
    keys: &KeySource,
    (time, sampled): (u64, Vec<Avma>),
) -> Vec<Record> {
    let clock = Arc::new(move || TimeNs(time));
    let mut poll = Poll::new(keys.clone(), PROCESS, clock).with_touched(sampled);
    adapter.poll(process, &mut poll).expect("a poll");
    poll.finish()
}

/// The statistics seven seconds later: two scavenges.
fn later(snapshot: &Snapshot) -> ProcessView {
    let values: [(&str, u64); 7] = [
        ("statScavenges", 767),
        ("statScavengeGCUsecs", 39_831 + 900),
        ("statSGCDeltaUsecs", 600),
        ("gcStartUsecs", 0xe1d1_d740_0000_0000),
        ("statGCEndUsecs", 0xe1d1_d740_0000_0000 + 600),
        ("statProcessSwitch", 38),
        ("statStackOverflow", 209),
    ];
    let patches = values.map(|(name, value)| {
        let mut symbols = snapshot.symbols.iter();
        let symbol = symbols.find(|symbol| symbol.name == name);
        let at = symbol.expect("a variable").address;
        (at, value.to_le_bytes().to_vec())
    });
    snapshot.patched(patches.to_vec())
}

fn recording() -> Vec<u8> {
    let snapshot = snapshot();
    let process = snapshot.process();
    let mut adapter = CogAdapter::new(Vm::open(&process).expect("a VM").expect("a Cog VM"));
    let keys = KeySource::new();
    let mut recording = Recording::of("Cog");
    recording.put(Record::Session(Box::new(Session {
        vm: VmIdentity {
            kind: "Cog".into(),
            version: String::new(),
        },
        ..session("Cog")
    })));
    recording.module(SQUEAK, &snapshot.program, true);
    let end = PROGRAM_AT + PROGRAM_BYTES;
    recording.map(PROCESS, 0, PROGRAM_AT, end, 0, Some(SQUEAK));
    let functions = snapshot
        .symbols
        .iter()
        .filter(|one| one.kind == SymbolKind::Function);
    let functions = functions.filter(|one| one.address.0 >= PROGRAM_AT && one.size > 0);
    let mut functions: Vec<(u64, u64, &str)> = functions
        .map(|one| (one.address.0 - PROGRAM_AT, one.size, &*one.name))
        .collect();
    functions.sort_by_key(|(at, ..)| *at);
    functions.dedup_by_key(|(at, ..)| *at);
    recording.symbols(SQUEAK, &functions);
    let samples = String::from_utf8(unpacked("busy.samples.tsv")).expect("text");
    let pcs = samples.lines().filter_map(|line| {
        let pc = line.rsplit('\t').next()?.strip_prefix("0x")?;
        u64::from_str_radix(pc, 16).ok()
    });
    let pcs: Vec<u64> = pcs.collect();
    let mut sampled: Vec<Avma> = pcs.iter().map(|pc| Avma(*pc)).collect();
    sampled.sort_unstable();
    sampled.dedup();
    for record in told(&mut adapter, &process, &keys, (SECOND, sampled)) {
        recording.put(record);
    }
    let mut symbols = snapshot.symbols.iter();
    let table = symbols
        .find(|symbol| symbol.name == "jumpTable.4")
        .expect("a jump table");
    let label = table.address.0 + 8 * PUSH_RECEIVER as u64;
    let label = snapshot.memory.read_u64(Avma(label)).expect("a label");
    for (index, pc) in (0..).zip(pcs.into_iter().chain([label; 5])) {
        recording.sample(2 * SECOND + index * 700_000, THREAD, pc);
    }
    for record in told(
        &mut adapter,
        &later(&snapshot),
        &keys,
        (8 * SECOND, Vec::new()),
    ) {
        recording.put(record);
    }
    recording.end(8 * SECOND).bytes()
}

#[test]
fn the_report_has_what_the_vm_counts() {
    let text = report(&recording(), &["--width=120"]);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let has = |start: &str| {
        let found = lines.iter().any(|line| words(line).starts_with(start));
        assert!(found, "no {start:?} in\n{text}");
    };
    for start in [
        "53 samples in collectors, 0.63% of total: scavenge 37, mark 8",
        "scavenger, scavenge: 2 collections",
        "1 observed, 0 fully timed; 1 pause: 0.300 ms",
        "global collector, full: 0 collections",
        "100.00% (0.06%) self (V3 112) (5)",
        "9.32% (9.13%) Object>>at: (773)",
        "27.43% (0.37%) instantiateClassindexableSize (allocation) (31)",
        "**Memory**",
        "old 30.8 MiB",
        "**GCs**",
        "scavenges 2",
        "scavenge time 0.900 ms",
        "**Compiled Code Compactions**",
        "compactions 0",
        "**Events**",
        "Process switches 38",
        "Stack overflows 209",
        "**VM Parameters**",
        "44 eden size 7 MiB",
    ] {
        has(start);
    }
}

#[test]
fn sampled_methods_have_their_bytecodes() {
    let file = recording();
    for (method, golden) in [("Bench>>fib:", "fib"), ("Bench>>sieve:", "sieve")] {
        let name = format!("annotate-cog-{golden}-100.txt");
        golden_of(
            "annotate",
            &name,
            &file,
            &[method, "--width=100", "--context=100"],
        );
    }
}
