//! Costs of allocation and garbage collection: `cargo bench -p vmscope-reference-vm --bench
//! memory`.
#![allow(missing_docs, reason = "a benchmark")]

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use vmscope_reference_vm::memory::classes::{ARRAY, UNDEFINED_OBJECT};
use vmscope_reference_vm::memory::{Format, Heap, Oop, Parameters, Roots};

fn main() {
    divan::main();
}

#[derive(Default)]
struct Stack(Vec<Oop>);

impl Roots for Stack {
    fn visit(&mut self, visit: &mut dyn FnMut(&mut Oop)) {
        self.0.iter_mut().for_each(visit);
    }
}

/// A heap and its only roots.
struct World {
    heap: Heap,
    stack: Stack,
}

/// Bytes of a tree's node: header and two slots.
const NODE: usize = 24;

impl World {
    fn new(parameters: &Parameters) -> Self {
        let mut heap = Heap::new(parameters, Arc::new(AtomicU64::new(0))).expect("memory");
        let nil = heap.allocate_permanent(UNDEFINED_OBJECT, Format::EMPTY, 0);
        heap.set_nil(nil.expect("memory"));
        Self {
            heap,
            stack: Stack::default(),
        }
    }

    /// Allocates an object after a safe point.
    fn allocate(&mut self, slots: usize) -> Oop {
        if self.heap.collection_wanted() {
            self.heap.collect_if_wanted(&mut self.stack, &mut ());
        }
        self.heap
            .allocate(ARRAY, Format::INDEXED, slots)
            .expect("memory")
    }

    /// Pushes a tree with `2 ^ depth − 1` nodes.
    fn push_tree(&mut self, depth: u32) {
        if depth == 0 {
            self.stack.0.push(self.heap.nil());
            return;
        }
        self.push_tree(depth - 1);
        self.push_tree(depth - 1);
        let node = self.allocate(2);
        for index in [1, 0] {
            let child = self.stack.0.pop().expect("two children");
            self.heap.store(node, index, child);
        }
        self.stack.0.push(node);
    }
}

fn tree_bytes(depth: u32) -> usize {
    ((1 << depth) - 1) * NODE
}

/// Short-lived objects of 1 to 4 slots: dead before the next collection.
#[divan::bench]
fn allocate(bencher: Bencher<'_, '_>) {
    let mut world = World::new(&Parameters::default());
    let objects = 100_000;
    let bytes: usize = (0..objects).map(|number| 16 + 8 * (number % 4)).sum();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        for number in 0..objects {
            black_box(world.allocate(1 + number % 4));
        }
    });
}

/// Short-lived trees: each dies on completion, like the trees of the program binary-trees.
#[divan::bench(args = [10, 16, 18])]
fn trees(bencher: Bencher<'_, '_>, depth: u32) {
    let mut world = World::new(&Parameters::default());
    bencher
        .counter(BytesCount::new(tree_bytes(depth)))
        .bench_local(|| {
            world.push_tree(depth);
            world.stack.0.clear();
        });
}

/// A tree that survives in survivor space.
#[divan::bench]
fn scavenge_survivors(bencher: Bencher<'_, '_>) {
    let mut world = World::new(&Parameters::default());
    let depth = 16;
    world.push_tree(depth);
    bencher
        .counter(BytesCount::new(tree_bytes(depth)))
        .bench_local(|| {
            world.heap.scavenge("bench", &mut world.stack, &mut ());
        });
    assert_eq!(world.heap.statistics().tenures, 0);
}

/// An eden full of live objects; the collection tenures nearly all objects.
#[divan::bench]
fn scavenge_and_tenure(bencher: Bencher<'_, '_>) {
    let depth = 19;
    bencher
        .counter(BytesCount::new(tree_bytes(depth)))
        .with_inputs(|| {
            let mut world = World::new(&Parameters::default());
            world.push_tree(depth);
            world
        })
        .bench_local_refs(|world| {
            world.heap.scavenge("bench", &mut world.stack, &mut ());
        });
}

/// Old space full of live objects.
#[divan::bench]
fn full_collection_of_100_mb(bencher: Bencher<'_, '_>) {
    let mut world = World::new(&Parameters::default());
    world.push_tree(22);
    world.heap.collect_full("bench", &mut world.stack, &mut ());
    bencher
        .counter(BytesCount::new(tree_bytes(22)))
        .bench_local(|| {
            world.heap.collect_full("bench", &mut world.stack, &mut ());
        });
}

/// Half-dead, fragmented old space: every live object moves. Throughput: bytes before the
/// collection.
#[divan::bench]
fn full_collection_of_100_mb_half_dead(bencher: Bencher<'_, '_>) {
    let parameters = Parameters {
        full_gc_ratio: 1e9,
        ..Parameters::default()
    };
    bencher
        .counter(BytesCount::new(tree_bytes(22)))
        .with_inputs(|| {
            let mut world = World::new(&parameters);
            for _ in 0..256 {
                world.push_tree(14);
            }
            world.heap.scavenge("bench", &mut world.stack, &mut ());
            world.heap.scavenge("bench", &mut world.stack, &mut ());
            let mut number = 0;
            world.stack.0.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            world
        })
        .bench_local_refs(|world| {
            world.heap.collect_full("bench", &mut world.stack, &mut ());
        });
}
