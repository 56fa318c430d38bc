//! Stacks equal the recorded chains by site.

use crate::recordings::{PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD, code};
use vmscope_records::{
    Avma, CallChain, CpuMode, Record, Sample, SampleDetail, ThreadKey, ThreadRole, TimeNs,
};
use vmscope_symbolizer::stacks::{StackTree, count_stacks, each_stack};
use vmscope_symbolizer::{Filter, Id, Profile, SiteId, StackId, Stop};

const ZONE: u64 = 0x1000_0000;
const OTHER: ThreadKey = ThreadKey(2);

fn sample(recording: &mut Recording, time: u64, thread: ThreadKey, pc: u64, callers: &[u64]) {
    let chain = CallChain {
        user: callers.iter().copied().map(Avma).collect(),
        ..CallChain::default()
    };
    recording.put(Record::Sample(Sample {
        time: TimeNs(time),
        thread,
        pc: Avma(pc),
        mode: CpuMode::User,
        detail: Some(Box::new(SampleDetail {
            chain: Some(chain),
            ..SampleDetail::default()
        })),
    }));
}

fn profile() -> Profile {
    let mut recording = Recording::of("Cog");
    recording
        .thread(OTHER, PROCESS, 0, "other", ThreadRole::Other)
        .symbols(PROGRAM, &[(0, 0x100, "main"), (0x100, 0x100, "helper")])
        .constituent(code(1, 0, ZONE, ZONE + 0x100))
        .constituent(code(2, 0, ZONE + 0x100, ZONE + 0x200));
    let (main, helper) = (PROGRAM_AT + 0x10, PROGRAM_AT + 0x110);
    let (m1, m2) = (ZONE + 8, ZONE + 0x108);
    sample(&mut recording, 1000, THREAD, m2, &[m1, main]);
    // Other addresses of the same functions.
    sample(&mut recording, 2000, THREAD, m2 + 4, &[m1 + 16, main + 8]);
    // A call at a function's end returns to the next address.
    sample(&mut recording, 3000, THREAD, m2, &[ZONE + 0x100, main]);
    sample(&mut recording, 4000, OTHER, m2, &[m1, main]);
    sample(&mut recording, 5000, THREAD, helper, &[]);
    recording.sample(6000, THREAD, m1);
    recording.profile()
}

/// Names of a stack, innermost first.
fn names(profile: &Profile, tree: &StackTree, node: StackId) -> Vec<String> {
    let name = |site: SiteId| {
        let entry = profile.sites[site].entry;
        profile.entries[entry].name.clone()
    };
    tree.path(node).map(name).collect()
}

#[test]
fn equal_stacks_are_counted_together() {
    let profile = profile();
    let (tree, counts) = count_stacks(&profile, &Filter::default(), &Stop::new()).unwrap();
    let read: Vec<(usize, Vec<String>, u64)> = counts
        .iter()
        .map(|count| {
            let names = names(&profile, &tree, count.node);
            (count.thread.index(), names, count.samples)
        })
        .collect();
    let stack = |names: &[&str]| {
        names
            .iter()
            .map(|&name| name.to_owned())
            .collect::<Vec<_>>()
    };
    let deep = stack(&["m2", "m1", "main"]);
    let wanted = vec![
        (0, deep.clone(), 3),
        (1, deep, 1),
        (0, stack(&["helper"]), 1),
        (0, stack(&["m1"]), 1),
    ];
    assert_eq!(read, wanted);
    // main, m1, m2; helper; m1 without callers.
    assert_eq!(tree.nodes().len(), 5);
    for (id, node) in tree.nodes().enumerated() {
        assert!(node.parent.is_none_or(|parent| parent < id));
    }
}

#[test]
fn a_filter_leaves_samples_and_their_nodes_out() {
    let profile = profile();
    let filter = Filter {
        from: Some(TimeNs(5000)),
        ..Filter::default()
    };
    let mut times = Vec::new();
    let tree = each_stack(&profile, &filter, |sample| times.push(sample.time.0));
    assert_eq!(times, [5000, 6000]);
    assert_eq!(tree.nodes().len(), 2);
}

#[test]
fn a_caller_where_nothing_is_mapped_ends_the_stack() {
    let mut recording = Recording::of("Cog");
    recording
        .symbols(PROGRAM, &[(0, 0x100, "main")])
        .constituent(code(1, 0, ZONE, ZONE + 0x100))
        .constituent(code(2, 0, ZONE + 0x100, ZONE + 0x200));
    let (main, m1, m2) = (PROGRAM_AT + 0x10, ZONE + 8, ZONE + 0x108);
    sample(&mut recording, 1000, THREAD, m2, &[m1, 0x7FF0, main]);
    sample(&mut recording, 2000, THREAD, m2, &[0x7FF0, 0x8FF0]);
    sample(&mut recording, 3000, THREAD, m2, &[m1, main]);
    let profile = recording.profile();
    let mut stacks = Vec::new();
    let tree = each_stack(&profile, &Filter::default(), |one| stacks.push(one.node));
    let stacks: Vec<_> = stacks
        .iter()
        .map(|&one| names(&profile, &tree, one))
        .collect();
    assert_eq!(stacks, [&["m2", "m1"][..], &["m2"], &["m2", "m1", "main"]]);
    assert_eq!(profile.trace.samples.chain_ends.broken, 2);
}
