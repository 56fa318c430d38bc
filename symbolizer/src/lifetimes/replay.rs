//! Replays a recorded program's allocations with other parameters of the collector: a simulation
//! driven by the recorded births and deaths.
//!
//! The clock counts bytes allocated in eden: recorded scavenges say how many bytes eden held, and
//! recorded objects lie between scavenges in the order of their births. An object dies at a random
//! point between the last collection that saw it alive and the collection that saw its death, with
//! the distribution of its group.
//!
//! The collector is generational. When eden is full, a scavenge copies the living objects of eden and
//! of the past survivor space. If that space was filled beyond the tenuring threshold, its objects are
//! tenured. Survivors that do not fit are tenured, too. When old space has grown enough since the last
//! full collection, the next scavenge is followed by a full collection.
//!
//! Old space also holds bytes of no traced object: these come and go as recorded. Where the program
//! allocated in old space, it may have to collect before eden is full. Large objects are allocated in
//! old space. In a larger eden some of them become young: the least size of a large object is taken as a
//! share of eden.

mod heap;

use super::collections::CollectionKind;
use super::deaths::{Deaths, Seen};
use super::event::Groups;
use super::fresh::{Touched, kept_bytes, touched_at_begin};
use super::{Lifetimes, Object};
use crate::ids::{CollectionId, Id, IndexVec};
use fastrand::Rng;
use heap::Heap;

/// Most replayed objects. A larger recording is thinned at random.
const MOST_OBJECTS: usize = 100_000;

/// Most visits of objects in a replay; a collection visits the objects of its spaces.
const MOST_VISITS: usize = 10_000_000;

/// Share of a survivor space that must be filled before its objects are tenured (Spur's default).
const TENURING: f64 = 0.9;

/// Share of eden that is used when a scavenge comes because eden is full.
const FULL_EDEN: f64 = 0.9;

/// Parameters of the replayed collector. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Policy {
    pub eden: f64,
    /// Size of one survivor space.
    pub survivors: f64,
    /// Share of the survivor space; a fuller one is tenured.
    pub tenuring: f64,
    /// Old space's growth between full collections, as a multiple of the recorded growth.
    pub growth: f64,
    /// Numbers of the groups whose objects are allocated in old space, ascending.
    pub pretenured: Vec<u32>,
    /// Number of the group whose objects are not allocated.
    pub avoided: Option<u32>,
}

/// Work of replayed collections of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amount {
    pub collections: f64,
    /// Bytes of the survivors, summed over collections.
    pub bytes: f64,
    /// Number of the survivors, summed over collections.
    pub objects: f64,
    /// Bytes of memory that the collections used first.
    pub fresh: f64,
}

impl Amount {
    fn add(&mut self, other: Amount) {
        self.collections += other.collections;
        self.bytes += other.bytes;
        self.objects += other.objects;
        self.fresh += other.fresh;
    }
}

/// Work of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub scavenges: Amount,
    pub fulls: Amount,
    /// Bytes and number of the pretenured objects.
    pub pretenured: Amount,
}

/// A recorded object.
#[derive(Clone, Copy, Debug)]
struct Traced {
    /// Position of the birth.
    birth: f64,
    /// Positions between which the object dies; the second is infinite if nobody saw the death.
    death: (f64, f64),
    bytes: f64,
    weight: f64,
    group: u32,
    /// Whether the object was allocated in old space for its size.
    is_large: bool,
    /// Whether it was tenured.
    is_tenured: bool,
}

/// A recorded full collection. Sizes are of old space, in bytes.
#[derive(Clone, Copy, Debug)]
struct Full {
    /// Sizes between which it was due.
    due: (f64, f64),
    /// Size after the full collection before this one.
    after_last: Option<f64>,
}

/// When full collections are due.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// Old space's bytes at the first one.
    first: f64,
    /// Old space's growth until the next one: a factor above 1...
    growth: f64,
    /// ...and at least so many bytes.
    least_growth: f64,
}

/// What old space held beyond the traced objects, at a recorded collection.
#[derive(Clone, Copy, Debug, Default)]
struct Untraced {
    position: f64,
    /// Bytes that were added until the collection, and those added until its end.
    added: (f64, f64),
    /// Bytes that a full collection at this position would have freed, with all earlier ones.
    garbage: f64,
    /// Number of objects after the last full collection.
    objects: f64,
    /// Whether the program allocated in old space since the collection before.
    has_grown: bool,
}

/// The recorded program.
#[derive(Debug)]
pub(super) struct Program {
    /// By birth.
    objects: Vec<Traced>,
    /// Lifetimes, by group.
    lifetimes: Vec<Deaths>,
    /// By position.
    untraced: Vec<Untraced>,
    fulls: Vec<Full>,
    /// Position of the end: bytes that were allocated in eden.
    pub end: f64,
    /// The recorded parameters, without pretenuring.
    pub policy: Policy,
    /// Least size of a large object in bytes. Infinite without large objects.
    large: f64,
    /// Use of the spaces before the recording.
    touched: Touched,
    /// Free bytes that old space keeps when it gives memory back.
    kept: f64,
}

/// Random choices of a replay: equal ones for all policies that are compared.
#[derive(Debug)]
pub(super) struct Draw {
    deaths: Vec<f64>,
    /// Number of objects that each stands for.
    counts: Vec<f64>,
    due: Due,
}

/// Least size of large objects: all larger ones were allocated in old space. Infinite without any.
fn large_size(lifetimes: &Lifetimes) -> f64 {
    let objects = lifetimes.objects.iter();
    let young = objects.clone().filter(|one| lifetimes.is_seen_young(one));
    let young = young.map(|one| one.bytes).max().unwrap_or(0);
    let large = objects.filter(|one| one.bytes > young && lifetimes.is_born_old(one));
    let large = large.map(|one| one.bytes).min();
    large.map_or(f64::INFINITY, |bytes| bytes as f64)
}

impl Program {
    /// The program of a recording; `None` without the sizes of eden, survivor spaces and old space.
    /// `groups` numbers the groups.
    pub fn of(lifetimes: &Lifetimes, groups: &mut Groups<'_>) -> Option<Self> {
        let collections = &lifetimes.collections;
        let mut positions: IndexVec<CollectionId, f64> = IndexVec::default();
        let mut position = 0.0;
        for collection in collections.iter() {
            if collection.kind == CollectionKind::Scavenge {
                position += collection.space("eden")[0]?;
            }
            positions.push(position);
        }
        let last = collections.iter().next_back()?;
        let policy = Policy {
            eden: last.space("eden")[2]?,
            survivors: last.space("survivor")[2]?,
            tenuring: lifetimes.tenuring_threshold.unwrap_or(TENURING),
            growth: 1.0,
            pretenured: Vec::new(),
            avoided: None,
        };
        let mut program = Program {
            large: large_size(lifetimes),
            touched: touched_at_begin(lifetimes),
            kept: kept_bytes(lifetimes),
            objects: Vec::new(),
            lifetimes: Vec::new(),
            untraced: Vec::new(),
            fulls: Vec::new(),
            end: position,
            policy,
        };
        program.find_fulls(lifetimes);
        program.trace(lifetimes, &positions, groups);
        program.fill_old_space(lifetimes, &positions);
        Some(program)
    }

    /// When full collections came. They were due when the preceding scavenge had tenured a part of its
    /// bytes; before a scavenge of a half-empty eden, when the program allocated in old space.
    fn find_fulls(&mut self, lifetimes: &Lifetimes) {
        let (mut after_last, mut last_size, mut due) = (None, 0.0, (0.0, 0.0));
        for collection in lifetimes.collections.iter() {
            let [Some(before), Some(after), _] = collection.space("old") else {
                continue;
            };
            if collection.kind == CollectionKind::Scavenge {
                let is_early = collection.space("eden")[0]
                    .is_some_and(|used| used < FULL_EDEN * self.policy.eden);
                due = if is_early {
                    (last_size, before)
                } else {
                    (before, after)
                };
            } else {
                self.fulls.push(Full { due, after_last });
                after_last = Some(after);
            }
            last_size = after;
        }
    }

    /// Finds the positions of births and deaths.
    fn trace(
        &mut self,
        lifetimes: &Lifetimes,
        positions: &IndexVec<CollectionId, f64>,
        groups: &mut Groups<'_>,
    ) {
        let scavenges: Vec<(u64, f64)> = (lifetimes.collections.enumerated())
            .filter(|(_, one)| one.kind == CollectionKind::Scavenge)
            .map(|(id, one)| (one.begin.0, positions[id]))
            .collect();
        let is_large =
            |object: &Object| object.bytes as f64 >= self.large && lifetimes.is_born_old(object);
        let young: Vec<(&Object, bool)> = (lifetimes.objects.iter())
            .map(|object| (object, is_large(object)))
            .filter(|(object, is_large)| *is_large || !lifetimes.is_born_old(object))
            .collect();
        let interval_of =
            |object: &Object| scavenges.partition_point(|(begin, _)| *begin < object.birth.0);
        let mut rest = young.as_slice();
        let mut seen: Vec<Seen> = Vec::new();
        let mut rng = Rng::with_seed(1);
        let kept = (MOST_OBJECTS as f64 / young.len().max(1) as f64).min(1.0);
        while let Some((first, _)) = rest.first() {
            let interval = interval_of(first);
            let length = rest.partition_point(|(object, _)| interval_of(object) <= interval);
            let (between, later) = rest.split_at(length);
            rest = later;
            let from = interval
                .checked_sub(1)
                .map_or(0.0, |last| scavenges[last].1);
            let to = scavenges.get(interval).map_or_else(
                || {
                    let young = between.iter().filter(|(_, is_large)| !is_large);
                    let bytes = young.map(|(one, _)| one.weight * one.bytes as f64);
                    from + bytes.sum::<f64>().min(self.policy.eden)
                },
                |(_, position)| *position,
            );
            self.end = self.end.max(to);
            for (rank, (object, is_large)) in between.iter().enumerate() {
                let is_large = *is_large;
                // The group numbers do not depend on the thinning.
                let group = groups.number(object.class, object.site);
                let kept = if is_large { 1.0 } else { kept };
                if kept < 1.0 && rng.f64() >= kept {
                    continue;
                }
                let birth = from + (to - from) * (rank as f64 + 0.5) / length as f64;
                let death = death_of(lifetimes, object, birth, positions);
                if seen.len() <= group as usize {
                    seen.resize_with(group as usize + 1, Seen::default);
                }
                let seen = &mut seen[group as usize];
                let weight = object.weight;
                if interval < scavenges.len() && !is_large {
                    let is_dead = object.last_survived.is_none() && object.death().is_some();
                    seen.first(to - birth, weight, is_dead);
                    // Beyond one interval: until the last look, or until the middle of the death's.
                    let (from, by) = death;
                    let until = match object.death() {
                        Some(_) => f64::midpoint(from, by),
                        None => from,
                    };
                    if from > to {
                        seen.later(until - to, weight, object.death().is_some());
                    }
                }
                self.objects.push(Traced {
                    birth,
                    death,
                    bytes: object.bytes as f64,
                    weight: object.weight / kept,
                    group,
                    is_large,
                    is_tenured: object.tenured.is_some(),
                });
            }
        }
        self.lifetimes = seen.into_iter().map(Deaths::of).collect();
    }

    /// What old space held beyond the traced objects.
    fn fill_old_space(&mut self, lifetimes: &Lifetimes, positions: &IndexVec<CollectionId, f64>) {
        let mut changes = vec![(0.0, 0.0); lifetimes.collections.len()];
        for object in &lifetimes.objects {
            let Some(tenured) = object.tenured else {
                continue;
            };
            let mut add = |at: CollectionId, weight: f64| {
                let change = &mut changes[at.index()];
                change.0 += weight * object.bytes as f64;
                change.1 += weight;
            };
            add(tenured, object.weight);
            if let Some(death) = object.death_collection {
                add(death, -object.weight);
            }
        }
        let (mut bytes, mut objects, mut after_last) = (0.0, 0.0, f64::INFINITY);
        let (mut last, mut freed, mut untraced) = (0.0, 0.0, Untraced::default());
        let mut is_told = false;
        for (id, collection) in lifetimes.collections.enumerated() {
            let is_full = collection.kind == CollectionKind::Full;
            let [before, after, _] = collection.space("old");
            let mut added = untraced.added.1;
            if let Some(before) = before {
                let untraced_bytes = (before - bytes).max(0.0);
                added += untraced_bytes - last;
                last = untraced_bytes;
                untraced.has_grown = before > after_last;
            }
            untraced.added = (added, added);
            let change = changes[id.index()];
            bytes += change.0;
            objects += change.1;
            if let Some(after) = after {
                let untraced_bytes = (after - bytes).max(0.0);
                if is_full {
                    freed += (last - untraced_bytes).max(0.0);
                } else {
                    untraced.added.1 += untraced_bytes - last;
                }
                last = untraced_bytes;
                after_last = after;
            }
            if is_full && let Some(marked) = collection.record.survived_objects {
                untraced.objects = (marked as f64 - objects).max(0.0);
                // The first full collection tells of the time before it, too.
                if !std::mem::replace(&mut is_told, true) {
                    for earlier in &mut self.untraced {
                        earlier.objects = untraced.objects;
                    }
                }
            }
            untraced.position = positions[id];
            untraced.garbage = freed;
            self.untraced.push(untraced);
        }
        self.spread_garbage(freed);
    }

    /// Full collections tell how much garbage arose since the full collection before: it arose with the
    /// added bytes. After the last full collection, it arises at the mean rate.
    fn spread_garbage(&mut self, freed: f64) {
        let mut rest = self.untraced.as_mut_slice();
        let (mut last, mut added) = (0.0, 0.0);
        let mut rate = 0.0;
        while !rest.is_empty() {
            let full = rest.iter().position(|one| one.garbage > last);
            let (between, later) = rest.split_at_mut(full.map_or(rest.len(), |at| at + 1));
            if let Some(end) = between.last().filter(|_| full.is_some()) {
                let length = (end.added.0 - added).max(1.0);
                rate = (end.garbage - last) / length;
            } else if added > 0.0 {
                rate = freed / added;
            }
            for one in between.iter_mut() {
                one.garbage = last + rate * (one.added.0 - added).max(0.0);
            }
            if let Some(end) = between.last() {
                (last, added) = (end.garbage, end.added.0);
            }
            rest = later;
        }
    }

    /// Bytes of a group's objects that were allocated in eden.
    pub fn young_bytes(&self, group: u32) -> f64 {
        let of_group = |one: &&Traced| one.group == group && !one.is_large;
        let objects = self.objects.iter().filter(of_group);
        objects.map(|one| one.weight * one.bytes).sum()
    }

    /// The random choices of one replay. Weights vary by their sampling error (`w·(w − 1)`).
    pub fn draw(&self, rng: &mut Rng) -> Draw {
        let (mut deaths, mut counts) = (Vec::new(), Vec::new());
        // No collection may have looked at old objects again.
        let are_immortal = rng.bool();
        for object in &self.objects {
            let chance = rng.f64();
            let ages = (object.death.0 - object.birth, object.death.1 - object.birth);
            let lifetimes = &self.lifetimes[object.group as usize];
            let is_immortal = are_immortal && object.is_tenured && ages.1 == f64::INFINITY;
            deaths.push(if is_immortal {
                f64::INFINITY
            } else {
                object.birth + lifetimes.lifetime(ages, chance)
            });
            let relative = (1.0 - 1.0 / object.weight).max(0.0).sqrt();
            counts.push(object.weight * (1.0 + relative * (poisson(rng) - 1.0)));
        }
        Draw {
            deaths,
            counts,
            due: self.draw_due(rng),
        }
    }

    /// Growth of old space that agrees with all recorded full collections.
    fn draw_due(&self, rng: &mut Rng) -> Due {
        let mut first = f64::INFINITY;
        let (mut growths, mut bytes) = (Vec::new(), Vec::new());
        for full in &self.fulls {
            let (from, to) = full.due;
            match full.after_last {
                None => first = from + rng.f64() * (to - from),
                Some(last) => {
                    let ratio = |size: f64| (size / last.max(1.0)).max(1.0);
                    growths.push((ratio(from), ratio(to)));
                    bytes.push(((from - last).max(0.0), (to - last).max(0.0)));
                }
            }
        }
        Due {
            first,
            growth: common(&growths, rng.f64()),
            least_growth: common(&bytes, rng.f64()),
        }
    }

    /// Replays the program. `eden_used` is the used share of eden at the start, 0 to 1: a change
    /// shifts all later collections, and nobody knows where to. `None` if the replay takes too long
    /// ([`MOST_VISITS`]): the recorded sizes contradict each other.
    pub fn run(&self, policy: &Policy, draw: &Draw, eden_used: f64) -> Option<Outcome> {
        let mut heap = Heap::new(self, policy, draw);
        let mut used = eden_used * policy.eden;
        let large = self.large * (policy.eden / self.policy.eden);
        let ends = self.objects.iter().skip(1).map(|one| one.birth);
        let ends = ends.chain([self.end]);
        for ((at, object), end) in self.objects.iter().enumerate().zip(ends) {
            used += end - object.birth;
            let bytes = draw.counts[at] * object.bytes;
            if policy.avoided == Some(object.group) {
                used -= if object.is_large { 0.0 } else { bytes };
            } else if object.is_large {
                if object.bytes < large {
                    used += bytes;
                    heap.put_large_in_eden(at);
                }
            } else if policy.pretenured.binary_search(&object.group).is_ok() {
                used -= bytes;
                heap.pretenure(at);
            } else {
                heap.put_eden(at);
            }
            if heap.is_old_full(end) {
                used = 0.0;
                heap.collect(end, true)?;
            }
            while used >= policy.eden {
                used -= policy.eden;
                heap.collect(end, false)?;
            }
        }
        Some(heap.outcome)
    }
}

/// Positions between which the object dies.
fn death_of(
    lifetimes: &Lifetimes,
    object: &Object,
    birth: f64,
    positions: &IndexVec<CollectionId, f64>,
) -> (f64, f64) {
    let seen = object.death_collection.or_else(|| {
        let time = object.death()?;
        let mut collections = lifetimes.collections.enumerated();
        collections
            .find(|(_, one)| one.end >= time)
            .map(|(id, _)| id)
    });
    let by = seen.map_or(f64::INFINITY, |id| positions[id].max(birth));
    let from = object.last_survived.map_or(birth, |last| positions[last]);
    (from.clamp(birth, by), by)
}

/// A number below the ends of all ranges, and above the begins that are below all ends. Infinite
/// without ranges.
fn common(ranges: &[(f64, f64)], chance: f64) -> f64 {
    let end = ranges.iter().map(|one| one.1).fold(f64::INFINITY, f64::min);
    let begins = ranges.iter().map(|one| one.0).filter(|begin| *begin <= end);
    match begins.reduce(f64::max) {
        Some(begin) => begin + chance * (end - begin),
        None => end,
    }
}

/// A Poisson number of mean 1 (Knuth, The Art of Computer Programming 2, §3.4.1).
fn poisson(rng: &mut Rng) -> f64 {
    let (limit, mut product, mut number) = ((-1.0_f64).exp(), rng.f64(), 0.0);
    while product > limit {
        product *= rng.f64();
        number += 1.0;
    }
    number
}
