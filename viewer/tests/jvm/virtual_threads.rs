//! Callers of virtual threads (docs/truth.md §9), most of whose frames wait in the heap, beside the chains
//! that the JVM itself tells.

use crate::callers::{Recording, java_method};
use crate::common::chains::{Chains, Counts};
use crate::common::in_turn;
use crate::common::vmscope::can_sample;
use crate::known::Tier;

/// Releases with virtual threads.
const RELEASES: [u32; 2] = [21, 25];

/// Caller of a virtual thread's first frame: the JVM's own chains end before it.
const ENTRY: &str = "jdk.internal.vm.Continuation.enterSpecial";

/// Callers of the entry on a carrier, in both releases.
const CARRIER: [&str; 3] = [
    "java.util.concurrent.ForkJoinWorkerThread.run",
    "java.util.concurrent.ForkJoinPool.runWorker",
    "jdk.internal.vm.Continuation.run",
];

#[test]
fn chains_of_virtual_threads_are_those_that_the_jvm_tells() {
    if !can_sample() {
        return;
    }
    for (turn, release) in RELEASES.into_iter().enumerate() {
        for &tier in in_turn(Tier::of_callers(release), turn + 1) {
            let Some((chains, counts)) = counted(release, tier, &[]) else {
                return;
            };
            assert_eq!(chains.len(), 11, "{chains:?}");
            counts.are_true(&format!("{release} {tier:?}, virtual threads"));
        }
    }
}

/// Threads that wait every few milliseconds: at the time of reading, most wait again, below other
/// callers. Such chains are cut off, but never show another time's callers.
#[test]
fn no_chain_of_a_short_mount_is_invented() {
    if !can_sample() {
        return;
    }
    for (turn, release) in RELEASES.into_iter().enumerate() {
        for tier in in_turn([Tier::Tiered, Tier::Interpreter], turn) {
            let Some((_, counts)) = counted(release, tier, &["--short", "1000"]) else {
                return;
            };
            counts.have_none_wrong(&format!("{release} {tier:?}, short"));
        }
    }
}

/// The program's chains, and the recorded ones beside them.
fn counted(release: u32, tier: Tier, options: &[&str]) -> Option<(Chains, Counts)> {
    // Chains are cut off before the second reading of a thread, and in its last tenths of a second.
    let (chains, stacks) = Recording {
        release,
        tier,
        flags: &[
            // All threads run at the same time, each on a carrier.
            "-Djdk.virtualThreadScheduler.parallelism=16",
            // No collection moves their objects.
            "-Xmn64m",
            "-XX:CompileCommand=dontinline,programs.Virtual::leaf*",
            "-XX:CompileCommand=exclude,programs.Virtual::slow",
        ],
        program: &[&["Virtual", "--seconds", "6"], options].concat(),
        window: ["--from=2.5", "--until=5.3"],
    }
    .chains_and_stacks()?;
    let stacks = stacks.lines().map(without_carrier);
    let stacks: String = stacks.flat_map(|line| [line, "\n".to_owned()]).collect();
    let counts = Counts::of(&stacks, &chains, java_method, &["clone"]);
    Some((chains, counts))
}

/// A collapsed stack without the carrier's Java frames, if complete.
fn without_carrier(line: &str) -> String {
    let Some((before, (_, rest))) =
        (line.split_once(ENTRY)).and_then(|(before, after)| Some((before, after.split_once(';')?)))
    else {
        // No virtual thread, or a sample in the entry itself.
        return line.to_owned();
    };
    if !CARRIER.iter().all(|method| before.contains(method)) {
        return line.to_owned();
    }
    let frames = before.split(';');
    let native = frames.filter(|frame| java_method(frame).is_none() && !frame.is_empty());
    let native: Vec<&str> = native.collect();
    format!("{};{rest}", native.join(";"))
}
