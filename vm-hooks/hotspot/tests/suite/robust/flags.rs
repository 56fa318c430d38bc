//! Flags that change or remove parts of the memory layout.

use std::sync::Arc;

use vmscope_hotspot::HotSpotAdapter;
use vmscope_process::{Adapter as _, KeySource, Poll, ProcessView};
use vmscope_records::{ConstituentKind, Pid, ProcessKey, Record, TimeNs};

use crate::common::jdks::jdks;
use crate::common::jvm::{Jvm, WAITS_FOR_COMPILERS};
use crate::common::say;

/// Flags, oldest release with these flags, whether methods get compiled.
const FLAGS: [(&[&str], u32, bool); 17] = [
    (&[], 11, true),
    (&["-XX:+UseLargePages"], 11, true),
    (&["-XX:+UseTransparentHugePages"], 11, true),
    (&["-Xshare:off"], 11, true),
    (&["-XX:-UseCompressedOops"], 11, true),
    (
        &["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"],
        11,
        true,
    ),
    (&["-XX:ReservedCodeCacheSize=2g"], 11, true),
    (
        &[
            "-XX:ReservedCodeCacheSize=2g",
            "-XX:InitialCodeCacheSize=1g",
        ],
        11,
        true,
    ),
    (&["-XX:-SegmentedCodeCache"], 11, true),
    (&["-XX:TieredStopAtLevel=1"], 11, true),
    (&["-XX:-TieredCompilation"], 11, true),
    (&["-Xint"], 11, false),
    (&["-XX:+UseSerialGC"], 11, true),
    (&["-XX:+UseZGC"], 17, true),
    (&[FRAME_POINTERS], 11, true),
    (&["-XX:-UsePerfData"], 11, true),
    (&["-XX:+PerfDisableSharedMem"], 11, true),
];

/// Keeps callers of compiled code findable.
const FRAME_POINTERS: &str = "-XX:+PreserveFramePointer";

/// What one poll finds: compiled methods, codelets of the interpreter, limits.
fn look_at(pid: u32) -> (usize, usize, Vec<String>) {
    let process = ProcessView::open(Pid(pid)).expect("our child");
    let mut adapter = HotSpotAdapter::new();
    let clock = Arc::new(|| TimeNs(7));
    let mut poll = Poll::new(KeySource::new(), ProcessKey(1), clock);
    adapter.poll(&process, &mut poll).expect("it can be read");
    let (mut compiled, mut codelets, mut limits) = (0, 0, Vec::new());
    for record in poll.finish() {
        match record {
            Record::Constituent(one) => match one.kind {
                ConstituentKind::Method if !one.tier.is_empty() && one.tier != "native" => {
                    compiled += usize::from(one.method.is_some());
                }
                ConstituentKind::Interpreter => codelets += 1,
                _ => {}
            },
            Record::Limit(limit) => limits.push(limit.text),
            _ => {}
        }
    }
    (compiled, codelets, limits)
}

#[test]
fn jvms_of_all_kinds_are_read() {
    for jdk in jdks() {
        for (flags, since, compiles) in FLAGS {
            if jdk.release < since {
                continue;
            }
            let arguments = ["--rounds", "20", "--wait"];
            let all = [flags, &[WAITS_FOR_COMPILERS]].concat();
            let Some(jvm) = Jvm::ready(&jdk, &all, "Tiny", &arguments) else {
                return;
            };
            let (compiled, codelets, limits) = look_at(jvm.pid());
            let text = format!(
                "{} {flags:?}: {compiled} compiled methods, {codelets} codelets, {limits:?}",
                jdk.release
            );
            say(&text);
            assert!(codelets > 200, "{text}");
            let positions = limits.iter().any(|text| text.contains("positions"));
            assert_eq!(positions, compiles, "{text}");
            let remarks = limits.iter().any(|text| text.contains("frame pointers"));
            assert_eq!(remarks, !flags.contains(&FRAME_POINTERS), "{text}");
            assert_eq!(compiled >= 5, compiles, "{text}");
            assert!(
                !limits.iter().any(|text| text.contains("does not describe")),
                "{text}"
            );
            jvm.end();
        }
    }
}
