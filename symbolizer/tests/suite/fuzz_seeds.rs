//! Seeds of the fuzz target `trace`; `BLESS=1` rewrites them. Fuzzing finds become tests here.

use std::path::Path;

use crate::recordings::{PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD, code, read};
use vmscope_records::{
    BoundaryRule, BytecodePc, ChainFrame, Constituent, Cover, CpuMode, Exactness, Limit, LimitKind,
    MethodKey, PcMap, Position, ProcessKey, Record, ThreadKey, ThreadRole, TimeNs,
};

fn seeds() -> Vec<(&'static str, Recording)> {
    let mut native = Recording::of("native");
    native
        .process(ProcessKey(2), 20, 101, Some(PROCESS))
        .thread(ThreadKey(2), ProcessKey(2), 20, "child", ThreadRole::Other)
        .symbols(PROGRAM, &[(0, 0x10, "a"), (0x10, 0x10, "b")])
        .unmap(PROCESS, 30, PROGRAM_AT, PROGRAM_AT + 8)
        .sample(10, THREAD, PROGRAM_AT)
        .sample(25, ThreadKey(2), PROGRAM_AT + 0x14)
        .sample_in(40, THREAD, u64::MAX - 9, CpuMode::Kernel)
        .end(50);
    let mut boundary = Recording::of("Cog");
    boundary
        .constituent(Constituent {
            absent_at: Some(TimeNs(5)),
            map: PcMap::Boundary {
                rule: BoundaryRule::AfterInstruction,
                exactness: Exactness::Exact,
                entries: vec![(4, BytecodePc(1)), (8, BytecodePc(2))],
            },
            ..code(1, 10, 0x9000, 0x9010)
        })
        .moved(1, 15, 20, 0xa000)
        .gone(1, 30, 40)
        .sample(12, THREAD, 0x9004)
        .sample(17, THREAD, 0xa008)
        .sample(35, THREAD, 0xa00c);
    let mut covers = Recording::of("HotSpot");
    let frame = |method| ChainFrame {
        method: MethodKey(method),
        position: Position::Line(3),
    };
    covers
        .method(1, "C", "m")
        .constituent(Constituent {
            map: PcMap::Covers {
                covers: vec![Cover {
                    start: 0,
                    end: 8,
                    chain: 0,
                    exactness: Exactness::Approximate,
                    method_error: 0,
                }],
                chains: vec![vec![frame(1), frame(2)]],
            },
            ..code(1, 0, 0x9000, 0x9010)
        })
        .sample(1, THREAD, 0x9004)
        .sample(2, THREAD, 0x900c);
    // Larger ones cost the fuzzer its time; tests/hostile.rs has them.
    let (mut limits, mut samples) = (Recording::of("native"), Recording::of("native"));
    for time in 0..200 {
        limits.put(Record::Limit(Limit {
            time: TimeNs(time),
            kind: LimitKind::Other,
            text: String::new(),
            remedy: String::new(),
        }));
        samples.sample(time, THREAD, PROGRAM_AT + time);
    }
    vec![
        ("limits", limits),
        ("samples", samples),
        ("native", native),
        ("boundary", boundary),
        ("covers", covers),
        ("empty", Recording::empty()),
    ]
}

#[test]
fn the_seeds_are_what_this_version_writes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/trace");
    for (name, recording) in seeds() {
        let path = folder.join(name);
        if std::env::var_os("BLESS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, recording.bytes()).unwrap();
        }
        let seed = read(&std::fs::read(&path).unwrap());
        match (seed, recording.read()) {
            (Ok(seed), Ok(now)) => {
                assert_eq!(seed.places, now.places, "{name}");
                assert_eq!(seed.samples.times, now.samples.times, "{name}");
            }
            (seed, now) => assert!(seed.is_err() && now.is_err(), "{name}"),
        }
    }
}
