//! The call tree equals a count of individual stacks.

use crate::recordings::{PROCESS, PROGRAM, PROGRAM_AT, Recording, THREAD, screens};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vmscope_records::{ThreadKey, ThreadRole};
use vmscope_symbolizer::calls::{CallTree, CallsOf, Function, FunctionId, NodeId, StackIndex};
use vmscope_symbolizer::stacks::{each_stack, frames_of};
use vmscope_symbolizer::{Filter, Id, Profile, Stop, ThreadId, Trace, profile_of};

const OTHER: ThreadKey = ThreadKey(2);
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A recording of stacks; each letter is a function, outermost first.
fn profile(stacks: &[(ThreadKey, &str)]) -> Profile {
    let mut recording = Recording::of("native");
    let functions: Vec<(u64, u64, &str)> = (0..)
        .zip(NAMES)
        .map(|(n, name)| (n * 0x100, 0x100, name))
        .collect();
    recording
        .thread(OTHER, PROCESS, 0, "other", ThreadRole::Other)
        .symbols(PROGRAM, &functions);
    for (time, (thread, stack)) in (1..).zip(stacks) {
        let address = |letter: u8| PROGRAM_AT + u64::from(letter - b'a') * 0x100 + 0x10;
        recording.stack(time, *thread, stack.bytes().rev().map(address));
    }
    recording.profile()
}

fn tree_of(profile: &Profile, of: &CallsOf) -> CallTree {
    let filter = Filter::default();
    CallTree::of(profile, &index_of(profile), &filter, of, &Stop::new()).unwrap()
}

fn index_of(profile: &Profile) -> Arc<StackIndex> {
    Arc::new(StackIndex::of(profile, None, None, &Stop::new()).unwrap())
}

/// All nodes in flame-graph order.
fn nodes(tree: &CallTree) -> Vec<NodeId> {
    std::iter::successors(Some(CallTree::ROOT), |&node| tree.after(node)).collect()
}

/// The tree as text: a line per node, `name total own`, indented by depth.
fn text(tree: &CallTree) -> Vec<String> {
    let mut lines = Vec::new();
    let mut next = tree.after(CallTree::ROOT);
    while let Some(id) = next {
        let node = tree.node(id).unwrap();
        let name = &tree.function_of(id).unwrap().name;
        let indent = " ".repeat(node.depth as usize - 1);
        lines.push(format!("{indent}{name} {} {}", node.total, node.own));
        next = tree.after(id);
    }
    lines
}

fn named(tree: &CallTree, name: &str) -> FunctionId {
    let mut functions = tree.functions().enumerated();
    functions.find(|(_, one)| &*one.name == name).unwrap().0
}

#[test]
fn the_tree_counts_what_was_called_from_where() {
    let stacks = ["ab", "ab", "abc", "ac", "a", "d", "abc"].map(|stack| (THREAD, stack));
    let profile = profile(&stacks);
    let tree = tree_of(&profile, &CallsOf::default());
    let wanted = ["a 6 1", " b 4 2", "  c 2 2", " c 1 1", "d 1 1"];
    assert_eq!(text(&tree), wanted);
    assert_eq!(tree.samples(), 7);
    let nodes = nodes(&tree);
    // Neighbours are symmetric.
    for &node in &nodes[1..] {
        let beside = tree.beside(CallTree::ROOT, node, true);
        if let Some(beside) = beside {
            assert_eq!(tree.beside(CallTree::ROOT, beside, false), Some(node));
            assert_eq!(
                tree.node(beside).unwrap().depth,
                tree.node(node).unwrap().depth
            );
        }
    }
    assert_eq!(tree.beside(CallTree::ROOT, nodes[2], true), Some(nodes[4]));
    assert_eq!(tree.beside(nodes[2], nodes[3], true), None);
    let c = named(&tree, "c");
    assert_eq!((tree.counts_of(c).total, tree.counts_of(c).own), (3, 3));
    let ways = tree.ways_to(&tree.own_of(c));
    let name = |id: FunctionId| tree.function(id).unwrap().name.to_string();
    let callers: Vec<_> = ways
        .iter()
        .map(|way| (way.function.map(name), way.samples))
        .collect();
    assert_eq!(
        callers,
        [(Some("b".to_owned()), 2), (Some("a".to_owned()), 1)]
    );
    let further = tree.ways_to(&ways[0].through);
    assert_eq!(further[0].function.map(name), Some("a".to_owned()));
    assert_eq!(tree.ways_to(&further[0].through)[0].function, None);
}

#[test]
fn recursion_counts_once() {
    let stacks = ["abab", "aab", "aaa", "ba"].map(|stack| (THREAD, stack));
    let tree = tree_of(&profile(&stacks), &CallsOf::default());
    let a = named(&tree, "a");
    let counts = tree.counts_of(a);
    assert_eq!((counts.total, counts.own, counts.recursive), (4, 2, true));
    let around = tree.around(a, &Stop::new()).unwrap();
    let b = named(&tree, "b");
    // The first three stacks start with the function itself.
    assert_eq!(around.callers, [(None, 3), (Some(b), 1)]);
    // a called b in two stacks (twice in one), and itself in two.
    assert_eq!(around.callees, [(a, 2), (b, 2)]);
    let mut fits = tree.functions().with_each(false);
    fits[b] = true;
    assert_eq!(tree.samples_with(&fits), 3);
    fits[a] = true;
    assert_eq!(tree.samples_with(&fits), 4);
}

#[test]
fn stacks_are_chosen_by_what_is_in_them_and_divided_by_thread() {
    let stacks = [
        (THREAD, "ab"),
        (OTHER, "ab"),
        (OTHER, "acb"),
        (THREAD, "ad"),
    ];
    let profile = profile(&stacks);
    let whole = tree_of(&profile, &CallsOf::default());
    let c = whole.function(named(&whole, "c")).unwrap().clone();
    let through = tree_of(
        &profile,
        &CallsOf {
            through: Some(c),
            by_thread: false,
        },
    );
    assert_eq!(text(&through), ["a 1 0", " c 1 0", "  b 1 1"]);
    let by_thread = CallsOf {
        by_thread: true,
        through: None,
    };
    let tree = tree_of(&profile, &by_thread);
    let wanted = [
        "main (101) 2 0",
        " a 2 0",
        "  b 1 1",
        "  d 1 1",
        "other (102) 2 0",
        " a 2 0",
        "  b 1 1",
        "  c 1 0",
        "   b 1 1",
    ];
    assert_eq!(text(&tree), wanted);
    let main = tree.function_of(1).unwrap().clone();
    assert_eq!((main.thread, main.region), (Some(ThreadId::of(0)), None));
    assert_eq!(tree.find(&main), tree.node(1).unwrap().function);
    let of_main = CallsOf {
        by_thread: true,
        through: Some(main),
    };
    assert_eq!(tree_of(&profile, &of_main).samples(), 2);
    let gone = Function {
        name: "e".into(),
        begin: None,
        tier: "".into(),
        region: None,
        inlined: false,
        thread: None,
    };
    let none = CallsOf {
        by_thread: false,
        through: Some(gone),
    };
    let empty = tree_of(&profile, &none);
    assert!(empty.is_empty() && empty.after(CallTree::ROOT).is_none());
}

#[test]
fn it_can_be_stopped_and_tells_how_far_it_is() {
    let profile = profile(&[(THREAD, "ab"); 10]);
    let (stop, filter) = (Stop::new(), Filter::default());
    let stacks = Arc::new(StackIndex::of(&profile, None, None, &stop).unwrap());
    assert_eq!(
        stop.told(),
        (30, 40),
        "the last look: at the last of four parts"
    );
    stop.stop();
    assert!(StackIndex::of(&profile, None, None, &stop).is_none());
    let of = CallsOf::default();
    assert!(CallTree::of(&profile, &stacks, &filter, &of, &stop).is_none());
}

/// Compares every figure with a manual count, on the complete test recordings.
#[test]
fn sums_are_those_of_single_stacks() {
    for bytes in [
        screens::java(),
        screens::native(),
        screens::damaged(),
        screens::nasty(),
    ] {
        let mut reader =
            vmscope_records::recording::Reader::open(std::io::Cursor::new(bytes)).unwrap();
        let profile = profile_of(Trace::read(&mut reader).unwrap(), Vec::new(), true);
        let tree = tree_of(&profile, &CallsOf::default());
        let mut nodes = Vec::new();
        let stacks = each_stack(&profile, &Filter::default(), |one| nodes.push(one.node));
        let mut totals: BTreeMap<(String, String, bool), (u64, u64)> = BTreeMap::new();
        for &node in &nodes {
            let sites: Vec<_> = stacks.path(node).collect();
            let frames = sites
                .iter()
                .rev()
                .flat_map(|&site| frames_of(&profile, site, true));
            let frames: Vec<_> = frames
                .map(|frame| {
                    let tier = format!("{:?} {}", frame.entry.region, frame.entry.tier);
                    (frame.place.name.to_string(), tier, frame.is_inlined())
                })
                .collect();
            totals
                .entry(frames[frames.len() - 1].clone())
                .or_default()
                .1 += 1;
            for frame in frames.into_iter().collect::<BTreeSet<_>>() {
                totals.entry(frame).or_default().0 += 1;
            }
        }
        let counted: BTreeMap<_, _> = tree
            .functions()
            .enumerated()
            .filter(|(id, _)| tree.counts_of(*id).total > 0)
            .map(|(id, one)| {
                let tier = format!("{:?} {}", one.region.unwrap(), one.tier);
                let counts = tree.counts_of(id);
                (
                    (one.name.to_string(), tier, one.inlined),
                    (counts.total, counts.own),
                )
            })
            .collect();
        assert_eq!(counted, totals);
        assert_eq!(tree.samples(), nodes.len() as u64);
        for id in self::nodes(&tree) {
            let node = tree.node(id).unwrap();
            let children: Vec<_> = tree.children(id).map(|id| tree.node(id).unwrap()).collect();
            let below: u64 = children.iter().map(|child| child.total).sum();
            assert_eq!(below + node.own, node.total);
            assert!(
                children
                    .windows(2)
                    .all(|pair| pair[0].total >= pair[1].total)
            );
        }
    }
}
