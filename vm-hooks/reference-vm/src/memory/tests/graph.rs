//! Random programs: what the heap keeps, against a model.

use super::model::{Kind, Model, Node};
use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug)]
enum Where {
    Eden,
    Old,
    Permanent,
}

#[derive(Clone, Debug)]
enum Step {
    Allocate(Kind, usize, Where),
    Garbage(usize),
    /// Numbers are indices into the existing items, modulo the number of items.
    Link(usize, usize, usize),
    Unlink(usize, usize),
    AddRoot(usize),
    DropRoot(usize),
    Hash(usize),
    CollectIfWanted,
    Scavenge,
    Full,
    TakeMourner,
}

/// A heap with its model.
struct World {
    heap: Heap,
    model: Model,
    roots: Vec<Oop>,
    permanent: Vec<Oop>,
}

/// Strictness of the comparison between heap and model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// Dead objects may survive.
    Loose,
    Exact,
}

fn reference_slot(kind: Kind, index: usize) -> usize {
    match kind {
        Kind::Ephemeron | Kind::Mourned => index,
        _ => index + 1,
    }
}

impl World {
    fn new(parameters: &Parameters) -> Self {
        let mut heap = heap(parameters);
        heap.set_fixed_fields(WEAK_ARRAY, 2);
        Self {
            heap,
            model: Model::default(),
            roots: Vec::new(),
            permanent: Vec::new(),
        }
    }

    fn allocate(&mut self, kind: Kind, refs: usize, place: Where) {
        let number = self.model.nodes.len();
        let refs = match kind {
            Kind::Ephemeron => 2,
            Kind::Weak => refs.max(1),
            Kind::Bytes => 0,
            _ => refs,
        };
        let (class_index, format, slots) = match kind {
            Kind::Weak => (WEAK_ARRAY, Format::WEAK, refs + 1),
            Kind::Ephemeron => (EPHEMERON, Format::EPHEMERON, 3),
            Kind::Bytes => (BYTE_ARRAY, Format::with_bytes(Format::BYTES, 13), 2),
            _ => (ARRAY, Format::INDEXED, refs + 1),
        };
        let heap = &mut self.heap;
        let made = match place {
            Where::Eden => heap.allocate(class_index, format, slots),
            Where::Old => heap.allocate_old(class_index, format, slots),
            Where::Permanent => heap.allocate_permanent(class_index, format, slots),
        };
        let Some(oop) = made else {
            return;
        };
        let label = Oop::small(i64::try_from(number).expect("a few nodes"));
        match kind {
            Kind::Bytes => {
                // SAFETY: just made; nobody else knows it.
                let bytes = unsafe { object::bytes_mut(oop) };
                bytes[..8].copy_from_slice(&label.0.to_le_bytes());
            }
            Kind::Ephemeron => heap.store(oop, 2, label),
            _ => heap.store(oop, 0, label),
        }
        self.model.nodes.push(Node {
            kind,
            refs: vec![None; refs],
            hash: None,
        });
        if matches!(place, Where::Permanent) {
            self.permanent.push(oop);
            self.model.permanent.push(number);
        } else {
            self.roots.push(oop);
            self.model.roots.push(number);
        }
    }

    /// Node number stored in an object.
    fn number(&self, oop: Oop) -> usize {
        // SAFETY: the object is reachable.
        let header = unsafe { object::header(oop) };
        let label = if header.format().is_bytes() {
            Oop(u64::from_le_bytes(
                bytes_of(oop)[..8].try_into().expect("8 bytes"),
            ))
        } else {
            slot(
                oop,
                if header.class_index() == EPHEMERON {
                    2
                } else {
                    0
                },
            )
        };
        usize::try_from(label.as_integer().expect("a label")).expect("a number")
    }

    /// All objects reachable in the heap, including weak references. Compares each object with its
    /// node; weak references may be nil if `may_be_nil` permits.
    fn compare(&mut self, may_be_nil: impl Fn(usize) -> bool) -> BTreeMap<usize, Oop> {
        let mut found = BTreeMap::new();
        let starts = [
            (&self.model.roots, &self.roots),
            (&self.model.permanent, &self.permanent),
        ];
        let mut waiting: Vec<(usize, Oop)> = Vec::new();
        for (numbers, oops) in starts {
            assert_eq!(numbers.len(), oops.len());
            waiting.extend(numbers.iter().copied().zip(oops.iter().copied()));
        }
        let queue = self.heap.mourners.iter().copied();
        waiting.extend(self.model.queue.iter().copied().zip(queue));
        while let Some((number, oop)) = waiting.pop() {
            assert_eq!(self.number(oop), number);
            if let Some(known) = found.insert(number, oop) {
                assert_eq!(known, oop, "node {number} is there twice");
                continue;
            }
            let node = self.model.nodes[number].clone();
            // SAFETY: the object is reachable.
            let header = unsafe { object::header(oop) };
            assert_eq!(header.hash(), node.hash.unwrap_or(0), "node {number}");
            let format = match node.kind {
                Kind::Plain => Format::INDEXED,
                Kind::Weak => Format::WEAK,
                Kind::Ephemeron => Format::EPHEMERON,
                Kind::Mourned => Format::FIXED,
                Kind::Bytes => Format::with_bytes(Format::BYTES, 13),
            };
            assert_eq!(header.format(), format, "node {number}");
            let weak = self.model.weak_refs(number);
            for index in 0..node.refs.len() {
                let value = slot(oop, reference_slot(node.kind, index));
                match node.refs[index] {
                    None => assert_eq!(value, self.heap.nil(), "node {number} at {index}"),
                    Some(target) if value == self.heap.nil() => {
                        assert!(weak.contains(&index), "node {number} lost node {target}");
                        assert!(
                            may_be_nil(target),
                            "node {number} lost living node {target}"
                        );
                        self.model.nodes[number].refs[index] = None;
                    }
                    Some(target) => waiting.push((target, value)),
                }
            }
        }
        found
    }

    fn reachable(&mut self) -> Vec<(usize, Oop)> {
        self.compare(|_| false).into_iter().collect()
    }

    fn check_collection(&mut self, check: Check, collect: impl FnOnce(&mut Heap, &mut Vec<Oop>)) {
        let verdict = self.model.judge();
        let queued = self.model.queue.len();
        collect(&mut self.heap, &mut self.roots);
        let queue: Vec<Oop> = self.heap.mourners.iter().copied().collect();
        let mourners: Vec<usize> = queue[queued..]
            .iter()
            .map(|oop| self.number(*oop))
            .collect();
        for &mourner in &mourners {
            let node = &mut self.model.nodes[mourner];
            assert_eq!(node.kind, Kind::Ephemeron, "node {mourner} mourns twice");
            let key = node.refs[0].expect("a key");
            assert!(
                !verdict.living.contains(&key),
                "node {mourner} mourns living node {key}"
            );
            node.kind = Kind::Mourned;
            self.model.queue.push(mourner);
        }
        let living = self.model.reach(&BTreeSet::new());
        self.compare(|target| !living.contains(&target));
        if check == Check::Exact {
            let mourners: BTreeSet<usize> = mourners.into_iter().collect();
            assert_eq!(mourners, verdict.mourners);
            assert_eq!(living, verdict.kept);
            for &node in &living {
                let kept = self.model.weak_refs(node).all(|index| {
                    self.model.nodes[node].refs[index].is_none_or(|it| living.contains(&it))
                });
                assert!(kept, "node {node} has a weak reference to a dead node");
            }
        }
    }

    fn scavenge(&mut self) {
        // If all mortal objects are new, scavenges know as much as full collections.
        let check = if self.heap.statistics().old_used == 0 {
            Check::Exact
        } else {
            Check::Loose
        };
        self.check_collection(check, |heap, roots| heap.scavenge("test", roots, &mut ()));
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Allocate(kind, refs, place) => self.allocate(kind, refs, place),
            Step::Garbage(count) => {
                for _ in 0..count {
                    let _ = self.heap.allocate(ARRAY, Format::INDEXED, 20);
                }
            }
            Step::Link(from, index, to) => {
                let all = self.reachable();
                if !all.is_empty() {
                    let (to, value) = all[to % all.len()];
                    self.set(all[from % all.len()], index, Some(to), value);
                }
            }
            Step::Unlink(from, index) => {
                let all = self.reachable();
                if !all.is_empty() {
                    self.set(all[from % all.len()], index, None, self.heap.nil());
                }
            }
            Step::AddRoot(which) => {
                let all = self.reachable();
                if !all.is_empty() {
                    let (number, oop) = all[which % all.len()];
                    self.model.roots.push(number);
                    self.roots.push(oop);
                }
            }
            Step::DropRoot(which) => {
                if !self.roots.is_empty() {
                    let which = which % self.roots.len();
                    self.roots.swap_remove(which);
                    self.model.roots.swap_remove(which);
                }
            }
            Step::Hash(which) => {
                let all = self.reachable();
                if !all.is_empty() {
                    let (number, oop) = all[which % all.len()];
                    let hash = self.heap.identity_hash(oop);
                    assert!(hash > 0 && hash < 1 << 22);
                    assert_eq!(*self.model.nodes[number].hash.get_or_insert(hash), hash);
                }
            }
            Step::CollectIfWanted => self.check_collection(Check::Loose, |heap, roots| {
                heap.collect_if_wanted(roots, &mut ());
                assert!(!heap.collection_wanted());
            }),
            Step::Scavenge => self.scavenge(),
            Step::Full => {
                self.scavenge();
                self.check_collection(Check::Exact, |heap, roots| {
                    heap.collect_old("test", roots, &mut ());
                });
            }
            Step::TakeMourner => {
                let number = self.heap.next_mourner().map(|oop| self.number(oop));
                assert_eq!(number.is_none(), self.model.queue.is_empty());
                if let Some(number) = number {
                    assert_eq!(number, self.model.queue.remove(0));
                }
            }
        }
    }

    fn set(&mut self, from: (usize, Oop), index: usize, to: Option<usize>, value: Oop) {
        let node = &mut self.model.nodes[from.0];
        if node.refs.is_empty() {
            return;
        }
        let index = index % node.refs.len();
        node.refs[index] = to;
        let slot = reference_slot(node.kind, index);
        self.heap.store(from.1, slot, value);
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Plain),
        2 => Just(Kind::Weak),
        3 => Just(Kind::Ephemeron),
        1 => Just(Kind::Bytes),
    ]
}

fn place() -> impl Strategy<Value = Where> {
    prop_oneof![
        8 => Just(Where::Eden),
        2 => Just(Where::Old),
        1 => Just(Where::Permanent),
    ]
}

fn step(places: impl Strategy<Value = Where> + 'static) -> impl Strategy<Value = Step> {
    let size = prop_oneof![8 => 1usize..6, 2 => 90usize..300, 1 => 1000usize..1100];
    prop_oneof![
        10 => (kind(), size, places).prop_map(|(kind, size, place)| Step::Allocate(kind, size, place)),
        1 => (1usize..200).prop_map(Step::Garbage),
        12 => any::<(usize, usize, usize)>().prop_map(|(from, index, to)| Step::Link(from, index, to)),
        2 => any::<(usize, usize)>().prop_map(|(from, index)| Step::Unlink(from, index)),
        1 => any::<usize>().prop_map(Step::AddRoot),
        7 => any::<usize>().prop_map(Step::DropRoot),
        1 => any::<usize>().prop_map(Step::Hash),
        2 => Just(Step::CollectIfWanted),
        3 => Just(Step::Scavenge),
        2 => Just(Step::Full),
        2 => Just(Step::TakeMourner),
    ]
}

/// A small heap, stressed.
fn stressed() -> impl Strategy<Value = Parameters> {
    let collect_every = prop_oneof![Just(0), Just(1), 2u64..9];
    let full_every = prop_oneof![Just(0), Just(1), Just(2)];
    (collect_every, full_every, any::<bool>()).prop_map(
        |(collect_every, full_every, tenure_all)| Parameters {
            tenuring_threshold: if tenure_all { 0 } else { 90 },
            stress: Stress {
                collect_every,
                full_every,
                verify: true,
            },
            ..small()
        },
    )
}

const CASES: u32 = if cfg!(miri) { 4 } else { 512 };
const STEPS: usize = if cfg!(miri) { 40 } else { 150 };

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn collections_keep_what_lives(
        parameters in stressed(),
        steps in prop::collection::vec(step(place()), 1..STEPS),
    ) {
        let mut world = World::new(&parameters);
        for step in &steps {
            world.step(step);
        }
        world.step(&Step::Full);
    }

    /// Mostly new objects, so that most scavenges are checked exactly.
    #[test]
    fn scavenges_find_all_that_is_dead_in_new_space(
        steps in prop::collection::vec(step(Just(Where::Eden)), 1..STEPS),
    ) {
        let mut world = World::new(&small());
        for step in steps.iter().filter(|step| !matches!(step, Step::Allocate(_, 90.., _))) {
            world.step(step);
        }
    }
}
