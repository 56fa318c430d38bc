//! Under any filter, the call tree equals a naive count of all samples.

use crate::recordings::{PROCESS, PROGRAM, PROGRAM_AT, Recording};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vmscope_records::{ThreadKey, ThreadRole, TimeNs};
use vmscope_symbolizer::calls::{
    Around, CallTree, CallsOf, Function, FunctionId, NodeId, StackIndex, Through,
};
use vmscope_symbolizer::stacks::{each_stack, frames_of};
use vmscope_symbolizer::{Filter, Id, IndexVec, Only, Profile, StackId, Stop, ThreadId};

/// Some names are substrings of others.
const NAMES: [&str; 5] = ["a", "b", "c", "ab", "bc"];
const THREADS: u32 = 3;

/// Thread, and function numbers, outermost first.
type Stack = (u32, Vec<u8>);

/// A query: tree options and a function.
#[derive(Clone, Debug)]
struct Asked {
    window: (Option<u64>, Option<u64>),
    threads: Option<BTreeSet<u32>>,
    without: Option<u32>,
    name: Option<&'static str>,
    by_thread: bool,
    through: Option<usize>,
    fits: Vec<bool>,
}

fn profile(stacks: &[Stack]) -> Profile {
    let mut recording = Recording::of("native");
    let functions: Vec<(u64, u64, &str)> = (0..)
        .zip(NAMES)
        .map(|(n, name)| (n * 0x100, 0x100, name))
        .collect();
    recording.symbols(PROGRAM, &functions);
    for key in 2..=THREADS {
        recording.thread(ThreadKey(key), PROCESS, 0, "other", ThreadRole::Other);
    }
    for (time, (thread, stack)) in (0u64..).zip(stacks) {
        // Several addresses per function.
        let address = |&letter: &u8| PROGRAM_AT + u64::from(letter) * 0x100 + 0x10 + time % 3 * 8;
        let thread = ThreadKey(thread + 1);
        recording.stack(time / 2 * 10, thread, stack.iter().rev().map(address));
    }
    recording.profile()
}

fn filter(asked: &Asked) -> Filter {
    Filter {
        threads: (asked.threads.as_ref()).map(|threads| {
            threads
                .iter()
                .map(|&thread| ThreadId::of(thread as usize))
                .collect()
        }),
        without: asked
            .without
            .into_iter()
            .map(|thread| ThreadId::of(thread as usize))
            .collect(),
        from: asked.window.0.map(TimeNs),
        to: asked.window.1.map(TimeNs),
        only: Only {
            names: asked.name.into_iter().map(str::to_owned).collect(),
            ..Only::default()
        },
    }
}

/// The functions of each sample in the filter, outermost first.
fn stacks_of(profile: &Profile, filter: &Filter, by_thread: bool) -> Vec<Vec<Function>> {
    let mut taken = Vec::new();
    let tree = each_stack(profile, filter, |sample| {
        taken.push((sample.thread, sample.node));
    });
    let functions = |(thread, node): (ThreadId, StackId)| {
        let told = &profile.trace.threads[thread].thread;
        let of_thread = Function {
            name: format!("{} ({})", told.name, told.tid).into(),
            begin: None,
            tier: "".into(),
            region: None,
            inlined: false,
            thread: Some(thread),
        };
        let mut all: Vec<Function> = by_thread.then_some(of_thread).into_iter().collect();
        let mut sites: Vec<_> = tree.path(node).collect();
        sites.reverse();
        let frames = sites
            .iter()
            .flat_map(|&site| frames_of(profile, site, true));
        all.extend(frames.map(|frame| Function {
            name: Arc::clone(&frame.place.name),
            begin: profile.begin_of(frame.place),
            tier: frame.entry.tier.as_str().into(),
            region: Some(frame.entry.region),
            inlined: frame.is_inlined(),
            thread: None,
        }));
        all
    };
    taken.into_iter().map(functions).collect()
}

/// Samples by path from the outermost function.
fn by_path(stacks: &[Vec<Function>]) -> BTreeMap<Vec<Function>, (u64, u64)> {
    let mut counted: BTreeMap<Vec<Function>, (u64, u64)> = BTreeMap::new();
    for stack in stacks {
        for end in 1..=stack.len() {
            counted.entry(stack[..end].to_vec()).or_default().0 += 1;
        }
        counted.entry(stack.clone()).or_default().1 += 1;
    }
    counted
}

fn way_to(tree: &CallTree, node: NodeId) -> Vec<Function> {
    let path = tree.path(node).into_iter();
    path.map(|node| tree.function_of(node).unwrap().clone())
        .collect()
}

/// Naive callers and callees of a function.
fn around(tree: &CallTree, stacks: &[Vec<Function>], function: &Function) -> Around {
    let mut callers: BTreeMap<Option<FunctionId>, u64> = BTreeMap::new();
    let mut callees: BTreeMap<FunctionId, u64> = BTreeMap::new();
    let id = |function: &Function| tree.find(function).unwrap();
    for stack in stacks {
        let Some(first) = stack.iter().position(|one| one == function) else {
            continue;
        };
        let caller = first.checked_sub(1).map(|caller| id(&stack[caller]));
        *callers.entry(caller).or_default() += 1;
        let calls = stack.windows(2).filter(|pair| pair[0] == *function);
        let called: BTreeSet<FunctionId> = calls.map(|pair| id(&pair[1])).collect();
        for callee in called {
            *callees.entry(callee).or_default() += 1;
        }
    }
    let mut around = Around {
        callers: callers.into_iter().collect(),
        callees: callees.into_iter().collect(),
    };
    around.callers.sort_by_key(|one| Reverse(one.1));
    around.callees.sort_by_key(|one| Reverse(one.1));
    around
}

/// Samples by path from `start` to the outermost function, from the caller tree.
fn ways_up(
    tree: &CallTree,
    start: Vec<FunctionId>,
    stacks: Vec<Through>,
) -> BTreeMap<Vec<FunctionId>, u64> {
    let mut open: Vec<(Vec<FunctionId>, Vec<Through>)> = vec![(start, stacks)];
    let mut ended = BTreeMap::new();
    while let Some((path, through)) = open.pop() {
        for way in tree.ways_to(&through) {
            let mut path = path.clone();
            match way.function {
                None => *ended.entry(path).or_default() += way.samples,
                Some(caller) => {
                    let sum: u64 = way.through.iter().map(|one| one.samples).sum();
                    assert_eq!(sum, way.samples);
                    path.push(caller);
                    open.push((path, way.through));
                }
            }
        }
    }
    ended
}

/// Samples, with callees and own, by path of callees.
fn ways_down(tree: &CallTree, stacks: Vec<Through>) -> BTreeMap<Vec<FunctionId>, (u64, u64)> {
    let mut open: Vec<(Vec<FunctionId>, Vec<Through>)> = vec![(Vec::new(), stacks)];
    let mut counted = BTreeMap::new();
    while let Some((path, through)) = open.pop() {
        for way in tree.ways_from(&through) {
            let mut path = path.clone();
            path.push(way.function.unwrap());
            let own = tree.own_in(&way.through);
            assert_eq!(counted.insert(path.clone(), (way.samples, own)), None);
            open.push((path, way.through));
        }
    }
    counted
}

/// Callers and callees of several functions together.
fn check_together(tree: &CallTree, stacks: &[Vec<Function>], fits: &IndexVec<FunctionId, bool>) {
    let id = |function: &Function| tree.find(function).unwrap();
    let mut up: BTreeMap<Vec<FunctionId>, u64> = BTreeMap::new();
    let mut down: BTreeMap<Vec<FunctionId>, (u64, u64)> = BTreeMap::new();
    for stack in stacks {
        let Some(first) = stack.iter().position(|one| fits[id(one)]) else {
            continue;
        };
        *up.entry(stack[..first].iter().rev().map(id).collect())
            .or_default() += 1;
        let below: Vec<FunctionId> = stack[first + 1..].iter().map(id).collect();
        for end in 1..=below.len() {
            let counted = down.entry(below[..end].to_vec()).or_default();
            counted.0 += 1;
            counted.1 += u64::from(end == below.len());
        }
    }
    let chosen: Vec<FunctionId> = fits
        .enumerated()
        .filter(|(_, fits)| **fits)
        .map(|(id, _)| id)
        .collect();
    let of = tree.stacks_of(&chosen);
    assert_eq!(
        of.iter().map(|one| one.samples).sum::<u64>(),
        up.values().sum::<u64>()
    );
    assert_eq!(ways_up(tree, Vec::new(), of.clone()), up);
    assert_eq!(ways_down(tree, of), down);
}

fn check(profile: &Profile, index: &Arc<StackIndex>, asked: &Asked) {
    let stop = Stop::new();
    let filter = filter(asked);
    let taken = stacks_of(profile, &filter, asked.by_thread);
    let whole = CallTree::of(
        profile,
        index,
        &Filter::default(),
        &CallsOf {
            by_thread: asked.by_thread,
            through: None,
        },
        &stop,
    );
    let whole = whole.unwrap();
    let through = asked.through.map(|at| {
        let functions = whole.functions();
        functions[FunctionId::of(at % functions.len())].clone()
    });
    let of = CallsOf {
        by_thread: asked.by_thread,
        through: through.clone(),
    };
    let tree = CallTree::of(profile, index, &filter, &of, &stop).unwrap();
    assert_eq!(tree.taken(), taken.len() as u64);
    let depth = if asked.by_thread { 2 } else { 1 };
    let alone = taken.iter().filter(|stack| stack.len() == depth).count();
    assert_eq!(tree.alone(), alone as u64);
    let is_asked = |stack: &Vec<Function>| through.as_ref().is_none_or(|one| stack.contains(one));
    let stacks: Vec<Vec<Function>> = taken.into_iter().filter(is_asked).collect();
    assert_eq!(tree.samples(), stacks.len() as u64);

    let nodes: Vec<NodeId> =
        std::iter::successors(Some(CallTree::ROOT), |&node| tree.after(node)).collect();
    let shown = nodes.iter().skip(1).map(|&id| {
        let node = tree.node(id).unwrap();
        let way = way_to(&tree, id);
        assert_eq!(node.depth as usize, way.len());
        let (last, above) = way.split_last().unwrap();
        assert_eq!(node.outermost, !above.contains(last));
        (way, (node.total, node.own))
    });
    assert_eq!(shown.collect::<BTreeMap<_, _>>(), by_path(&stacks));
    for &node in &nodes {
        let children: Vec<_> = tree
            .children(node)
            .map(|id| tree.node(id).unwrap())
            .collect();
        let order =
            |child: &vmscope_symbolizer::calls::CallNode| (Reverse(child.total), child.function);
        assert!(children.is_sorted_by_key(order));
    }

    for (id, function) in tree.functions().enumerated() {
        let has = |stack: &&Vec<Function>| stack.contains(function);
        let total = stacks.iter().filter(has).count() as u64;
        let own: Vec<_> = (stacks.iter())
            .filter(|stack| stack.last() == Some(function))
            .collect();
        let counts = tree.counts_of(id);
        assert_eq!((counts.total, counts.own), (total, own.len() as u64));
        let is_again =
            |stack: &Vec<Function>| stack.iter().filter(|one| *one == function).count() > 1;
        assert_eq!(counts.recursive, stacks.iter().any(is_again));
        assert_eq!(tree.find(function), (total > 0).then_some(id));
        assert_eq!(
            tree.around(id, &stop).unwrap(),
            around(&tree, &stacks, function)
        );
        let mut up: BTreeMap<Vec<FunctionId>, u64> = BTreeMap::new();
        for stack in own {
            let path = stack.iter().rev().map(|one| tree.find(one).unwrap());
            *up.entry(path.collect()).or_default() += 1;
        }
        assert_eq!(ways_up(&tree, vec![id], tree.own_of(id)), up);
        let hottest = tree.hottest_of(id);
        assert_eq!(hottest.is_some(), total > 0);
        if let Some(hottest) = hottest {
            assert_eq!(tree.function_of(hottest), Some(function));
            assert!(tree.node(hottest).unwrap().outermost);
        }
    }

    let functions = tree.functions();
    let fits = functions.map(|id, _| asked.fits[id.index() % asked.fits.len()]);
    if !asked.by_thread {
        check_together(&tree, &stacks, &fits);
    }
    let fits_function = |one: &Function| tree.find(one).is_some_and(|id| fits[id]);
    let with = stacks
        .iter()
        .filter(|stack| stack.iter().any(fits_function));
    assert_eq!(tree.samples_with(&fits), with.count() as u64);
    let is_match = |node: &NodeId| tree.function_of(*node).is_some_and(fits_function);
    for (at, &node) in nodes.iter().enumerate() {
        let (before, behind) = (&nodes[..at], &nodes[at + 1..]);
        let itself = std::iter::once(&node);
        let round = behind.iter().chain(before).chain(itself.clone());
        let next = round.copied().find(is_match);
        assert_eq!(tree.matching(&fits, node, true, false), next);
        let round = before.iter().rev().chain(behind.iter().rev()).chain(itself);
        assert_eq!(
            tree.matching(&fits, node, false, false),
            round.copied().find(is_match)
        );
        // The right neighbour is the next node of equal depth.
        let depth = |node: NodeId| tree.node(node).unwrap().depth;
        let right = behind
            .iter()
            .copied()
            .find(|&one| depth(one) == depth(node));
        let left = before
            .iter()
            .rev()
            .copied()
            .find(|&one| depth(one) == depth(node));
        assert_eq!(tree.beside(CallTree::ROOT, node, true), right);
        assert_eq!(tree.beside(CallTree::ROOT, node, false), left);
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let time = || prop::option::of(0u64..220);
    let threads = prop::option::of(prop::collection::btree_set(0..THREADS, 0..3));
    let name = prop::option::of(prop::sample::select(&NAMES[..]));
    let fits = prop::collection::vec(any::<bool>(), 1..6);
    let through = prop::option::of(0usize..12);
    let without = prop::option::of(0..THREADS);
    (
        (time(), time()),
        threads,
        without,
        name,
        any::<bool>(),
        through,
        fits,
    )
        .prop_map(
            |(window, threads, without, name, by_thread, through, fits)| Asked {
                window,
                threads,
                without,
                name,
                by_thread,
                through,
                fits,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_is_what_its_samples_are(
        stacks in prop::collection::vec(
            (0..THREADS, prop::collection::vec(0u8..5, 1..7)),
            1..40,
        ),
        questions in prop::collection::vec(asked(), 1..6),
    ) {
        let profile = profile(&stacks);
        let stop = Stop::new();
        let index = Arc::new(StackIndex::of(&profile, None, None, &stop).unwrap());
        for asked in &questions {
            check(&profile, &index, asked);
            // An index of the window alone gives the same tree.
            let (from, to) = (asked.window.0.map(TimeNs), asked.window.1.map(TimeNs));
            let index = StackIndex::of(&profile, from, to, &stop).unwrap();
            if !index.is_empty() {
                check(&profile, &Arc::new(index), asked);
            }
        }
    }
}
