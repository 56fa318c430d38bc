//! Replays a recorded program's allocations with other parameters of the collector: a simulation
//! driven by the recorded births and deaths.
//!
//! The clock counts bytes allocated in eden: recorded scavenges say how many bytes eden held, and
//! recorded objects lie between scavenges in the order of their births. An object dies at a random
//! point between the last collection that saw it alive and the collection that saw its death, with the
//! distribution of its group. The collector is generational: when eden is full, a scavenge copies the living objects of eden and of
//! the past survivor space; if that space was filled beyond the tenuring threshold, its objects are
//! tenured; a survivor space that overflows tenures, too. When old space has grown enough since the
//! last full collection, the next scavenge is followed by a full collection.
//!
//! Old space also holds bytes of no recorded object: these come and go as recorded. Where the program
//! allocated in old space, it may have to collect before eden is full.

use super::collections::{CollectionKind, ObservedCollection};
use super::deaths::{Deaths, Seen};
use super::event::Groups;
use super::{Lifetimes, Object};
use crate::ids::{CollectionId, Id, IndexVec};
use fastrand::Rng;

/// Most replayed objects: of more, a random part stands for all.
const MOST_OBJECTS: usize = 100_000;

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
}

/// Work of replayed collections of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amount {
    pub collections: f64,
    /// Bytes of the survivors, summed over collections.
    pub bytes: f64,
    /// Number of the survivors, summed over collections.
    pub objects: f64,
}

/// Work of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub scavenges: Amount,
    pub fulls: Amount,
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

/// Contents of old space that belong to no traced object, at a recorded collection.
#[derive(Clone, Copy, Debug, Default)]
struct Untraced {
    position: f64,
    /// Bytes before and after the collection.
    before: f64,
    bytes: f64,
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
    /// Position of the end.
    end: f64,
    /// The recorded parameters, without pretenuring.
    pub policy: Policy,
}

/// Random choices of a replay: equal ones for all policies that are compared.
#[derive(Debug)]
pub(super) struct Draw {
    deaths: Vec<f64>,
    /// Number of objects that each stands for.
    counts: Vec<f64>,
    due: Due,
}

/// Use of the space with a name that begins so: before and after, and its capacity.
fn space(collection: &ObservedCollection, name: &str) -> [Option<f64>; 3] {
    let mut spaces = collection.record.spaces.iter();
    let space = spaces.find(|space| space.name.starts_with(name));
    let number = |of: Option<u64>| of.map(|bytes| bytes as f64);
    space.map_or([None; 3], |one| {
        [one.before, one.after, one.capacity].map(number)
    })
}

/// Whether the object was allocated in old space: the next scavenge did not see it.
fn is_born_old(lifetimes: &Lifetimes, object: &Object) -> bool {
    let is_full = |id: CollectionId| lifetimes.collections[id].kind == CollectionKind::Full;
    let seen_young = object.scavenges > 0 || object.tenured.is_some();
    !seen_young
        && match object.death_collection {
            Some(death) => is_full(death),
            None => object.fulls > 0,
        }
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
                position += space(collection, "eden")[0]?;
            }
            positions.push(position);
        }
        let last = collections.iter().next_back()?;
        let policy = Policy {
            eden: space(last, "eden")[2]?,
            survivors: space(last, "survivor")[2]?,
            tenuring: lifetimes.tenuring_threshold.unwrap_or(TENURING),
            growth: 1.0,
            pretenured: Vec::new(),
        };
        let mut program = Program {
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
            let [Some(before), Some(after), _] = space(collection, "old") else {
                continue;
            };
            if collection.kind == CollectionKind::Scavenge {
                let is_early = space(collection, "eden")[0]
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
        let young: Vec<&Object> = (lifetimes.objects.iter())
            .filter(|object| !is_born_old(lifetimes, object))
            .collect();
        let interval_of =
            |object: &Object| scavenges.partition_point(|(begin, _)| *begin < object.birth.0);
        let mut rest = young.as_slice();
        let mut seen: Vec<Seen> = Vec::new();
        let mut rng = Rng::with_seed(1);
        let kept = (MOST_OBJECTS as f64 / young.len().max(1) as f64).min(1.0);
        while let Some(first) = rest.first() {
            let interval = interval_of(first);
            let length = rest.partition_point(|object| interval_of(object) <= interval);
            let (between, later) = rest.split_at(length);
            rest = later;
            let from = interval
                .checked_sub(1)
                .map_or(0.0, |last| scavenges[last].1);
            let to = scavenges.get(interval).map_or_else(
                || {
                    let bytes = between.iter().map(|one| one.weight * one.bytes as f64);
                    from + bytes.sum::<f64>().min(self.policy.eden)
                },
                |(_, position)| *position,
            );
            self.end = self.end.max(to);
            for (rank, object) in between.iter().enumerate() {
                // The group numbers do not depend on the thinning.
                let group = groups.number(object.class, object.site);
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
                if interval < scavenges.len() {
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
        let mut untraced = Untraced::default();
        for (id, collection) in lifetimes.collections.enumerated() {
            let [before, after, _] = space(collection, "old");
            if let Some(before) = before {
                untraced.before = (before - bytes).max(0.0);
                untraced.has_grown = before > after_last;
            }
            let change = changes[id.index()];
            bytes += change.0;
            objects += change.1;
            if let Some(after) = after {
                untraced.bytes = (after - bytes).max(0.0);
                after_last = after;
            }
            if collection.kind == CollectionKind::Full
                && let Some(marked) = collection.record.survived_objects
            {
                untraced.objects = (marked as f64 - objects).max(0.0);
                // The first full collection tells of the time before it, too.
                for earlier in &mut self.untraced {
                    if earlier.objects == 0.0 {
                        earlier.objects = untraced.objects;
                    }
                }
            }
            untraced.position = positions[id];
            self.untraced.push(untraced);
        }
    }

    /// The random choices of one replay. Weights vary by their sampling error (`w·(w − 1)`).
    pub fn draw(&self, rng: &mut Rng) -> Draw {
        let (mut deaths, mut counts) = (Vec::new(), Vec::new());
        for object in &self.objects {
            let chance = rng.f64();
            let ages = (object.death.0 - object.birth, object.death.1 - object.birth);
            let lifetimes = &self.lifetimes[object.group as usize];
            deaths.push(object.birth + lifetimes.lifetime(ages, chance));
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

    /// Replays the program. The first scavenge comes at a random point: a change shifts all later
    /// collections, and nobody knows where to.
    pub fn run(&self, policy: &Policy, draw: &Draw, rng: &mut Rng) -> Outcome {
        let mut heap = Heap {
            program: self,
            policy,
            draw,
            eden: Vec::new(),
            past: Vec::new(),
            past_bytes: 0.0,
            old: Vec::new(),
            old_bytes: 0.0,
            threshold: draw.due.first,
            untraced: 0,
            outcome: Outcome::default(),
        };
        let mut used = rng.f64() * policy.eden;
        let ends = self.objects.iter().skip(1).map(|one| one.birth);
        let ends = ends.chain([self.end]);
        for ((at, object), end) in self.objects.iter().enumerate().zip(ends) {
            used += end - object.birth;
            if policy.pretenured.binary_search(&object.group).is_ok() {
                used -= draw.counts[at] * object.bytes;
                heap.put_old(at);
            } else {
                heap.eden.push(at);
            }
            if heap.is_old_full(end) {
                used = 0.0;
                heap.collect(end, true);
            }
            while used >= policy.eden {
                used -= policy.eden;
                heap.collect(end, false);
            }
        }
        heap.outcome
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

/// The heap of a replay. Objects are indices of the program's objects.
struct Heap<'a> {
    program: &'a Program,
    policy: &'a Policy,
    draw: &'a Draw,
    eden: Vec<usize>,
    /// Objects of the past survivor space.
    past: Vec<usize>,
    past_bytes: f64,
    old: Vec<usize>,
    /// Bytes of `old`.
    old_bytes: f64,
    /// Old space's bytes at the next full collection.
    threshold: f64,
    /// Number of entries of [`Program::untraced`] before the present position.
    untraced: usize,
    outcome: Outcome,
}

impl Heap<'_> {
    fn bytes(&self, at: usize) -> f64 {
        self.draw.counts[at] * self.program.objects[at].bytes
    }

    fn put_old(&mut self, at: usize) {
        self.old_bytes += self.bytes(at);
        self.old.push(at);
    }

    /// The last recorded collection before the present position.
    fn untraced(&self) -> Untraced {
        let last = self.untraced.checked_sub(1);
        last.map_or_else(Untraced::default, |last| self.program.untraced[last])
    }

    /// Advances to a position. Whether the program's allocations in old space demand a collection.
    fn is_old_full(&mut self, position: f64) -> bool {
        while let Some(next) = self.program.untraced.get(self.untraced)
            && next.position <= position
        {
            self.untraced += 1;
            if next.has_grown && self.old_bytes + next.before >= self.threshold {
                return true;
            }
        }
        false
    }

    /// A scavenge at a position, and a full collection if it is due now or after the scavenge.
    fn collect(&mut self, position: f64, is_due: bool) {
        let deaths = &self.draw.deaths;
        let lives = |at: &usize| deaths[*at] > position;
        let tenures = self.past_bytes > self.policy.tenuring * self.policy.survivors;
        let past: Vec<usize> = std::mem::take(&mut self.past)
            .into_iter()
            .filter(lives)
            .collect();
        let eden: Vec<usize> = std::mem::take(&mut self.eden)
            .into_iter()
            .filter(lives)
            .collect();
        self.past_bytes = 0.0;
        self.outcome.scavenges.collections += 1.0;
        for (at, is_tenured) in
            (past.into_iter().map(|at| (at, tenures))).chain(eden.into_iter().map(|at| (at, false)))
        {
            let bytes = self.bytes(at);
            self.outcome.scavenges.bytes += bytes;
            self.outcome.scavenges.objects += self.draw.counts[at];
            if is_tenured || self.past_bytes + bytes > self.policy.survivors {
                self.put_old(at);
            } else {
                self.past_bytes += bytes;
                self.past.push(at);
            }
        }
        // A recorded full collection at the same position freed the untraced bytes, too.
        while let Some(next) = self.program.untraced.get(self.untraced)
            && next.position <= position
            && !next.has_grown
        {
            self.untraced += 1;
        }
        let untraced = self.untraced();
        if is_due || self.old_bytes + untraced.bytes >= self.threshold {
            self.collect_old(position, untraced);
        }
    }

    fn collect_old(&mut self, position: f64, untraced: Untraced) {
        let deaths = &self.draw.deaths;
        self.old.retain(|at| deaths[*at] > position);
        let bytes = self.old.iter().map(|at| self.bytes(*at));
        self.old_bytes = bytes.sum();
        let objects = self.old.iter().map(|at| self.draw.counts[*at]);
        let used = self.old_bytes + untraced.bytes;
        let fulls = &mut self.outcome.fulls;
        fulls.collections += 1.0;
        fulls.bytes += used;
        fulls.objects += objects.sum::<f64>() + untraced.objects;
        let Due {
            growth,
            least_growth,
            ..
        } = self.draw.due;
        self.threshold = used + self.policy.growth * (used * (growth - 1.0)).max(least_growth);
    }
}
