//! Methods inferred from machine code.

use super::{Recording, THREAD, code};
use vmscope_records::{ChainFrame, Constituent, Cover, Exactness, MethodKey, PcMap, Position};

/// 800 samples. `C.inner` has 500, 400 with an inference error of 40 %; `C.outer` has 300, 100 with an
/// inference error of 100 %.
pub fn inferred() -> Recording {
    let mut recording = Recording::of("HotSpot");
    recording.method(1, "C", "inner").method(2, "C", "outer");
    let frame = |method| ChainFrame {
        method: MethodKey(method),
        position: Position::Unknown,
    };
    let cover = |start, chain, method_error| Cover {
        start,
        end: start + 0x10,
        chain,
        exactness: Exactness::Approximate,
        method_error,
    };
    recording.constituent(Constituent {
        name: "C.outer".into(),
        method: Some(MethodKey(2)),
        map: PcMap::Covers {
            covers: vec![
                cover(0, 0, 40),
                cover(0x10, 0, 0),
                cover(0x20, 1, 0),
                cover(0x30, 1, 100),
            ],
            chains: vec![vec![frame(1), frame(2)], vec![frame(2)]],
        },
        ..code(1, 0, 0x9000, 0x9040)
    });
    for time in 0..800_u64 {
        let at = [0, 0, 0x20, 0x10, 0, 0x20, 0, 0x30][(time % 8) as usize];
        recording.sample(time, THREAD, 0x9000 + at);
    }
    recording
}
