//! Changes that would save the collector time, with predicted savings.
//!
//! A prediction replays the recorded allocations with the changed parameter, and prices the
//! collections by the cost model. It repeats this with other random choices: which objects were
//! sampled, when exactly an object died, whether old objects die at all if no collection saw their
//! death, how full eden was at the begin, which coefficients the model has, how much dearer the
//! copies from a larger eden are, how many pretenured objects refer to younger ones, and what the model does not explain of each collection. The saving is the mean share that the change saves, of the recorded
//! time. A larger eden is no advice if its memory costs the program more than it saves. Without a replay that comes close to the recording there is no advice on parameters and
//! pretenuring.

use super::Lifetimes;
use super::collections::CollectionKind;
use super::cost::{CollectorCost, GroupCost, TERMS, Work};
use super::estimate::Estimate;
use super::event::Groups;
use super::groups::{GroupKey, Grouping};
use super::holders::holders;
use super::least_squares::REFITS;
use super::replay::{Amount, Draw, Outcome, Policy, Program};
use crate::ids::{ClassId, CollectionId};
use fastrand::Rng;
use rustc_hash::{FxHashMap, FxHashSet};

/// Savings below this share of the collector's time are no advice.
const LEAST_SHARE: f64 = 0.01;

/// Most advised groups of a kind.
const MOST_GROUPS: usize = 3;

/// Most groups whose pretenuring is replayed.
const MOST_REPLAYED: usize = 12;

/// Least share of tenured bytes in the bytes of pretenured objects. Old space would fill with the
/// others, and the full collections to come are a guess where the recording has none.
const LEAST_TENURED: f64 = 0.5;

/// Least share of a group's bytes that a replay has.
const LEAST_REPLAYED: f64 = 0.5;

/// Groups whose deaths are so alike (cosine of the deaths by collection) die together.
const ALIKE: f64 = 0.95;

/// Greatest extra cost of a copy from an eden that is larger by its own size, as a share. A larger eden
/// no longer fits the processor's cache: in an eden four times as large, copies cost 0.7 to 2.5 times as
/// much (docs/truth.md, lifetimes and advice).
const DEARER_COPIES: f64 = 0.5;

/// Number of replays with different random choices, each with another refit of the model.
const REPLAYS: usize = REFITS / 2;

/// Greatest relative difference between replayed and recorded collections, and copied bytes.
const FAITHFUL: f64 = 0.25;

/// A change of the program or of the VM's parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Allocate these objects in old space. Several groups die together: they are kept alive by the
    /// same objects, and pretenuring one alone saves less.
    Pretenure(Vec<GroupKey>),
    /// Enlarge eden, and the survivor spaces with it, from a number of bytes to another.
    Eden(u64, u64),
    /// Let old space grow twice as much between full collections.
    OldGrowth,
    /// Change the tenuring threshold: the shares of the survivor space above which its objects are
    /// tenured, before and afterwards.
    Tenuring(f64, f64),
    /// Allocate none of these objects.
    Avoid(GroupKey),
}

/// A change with its predicted saving.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The change.
    pub change: Change,
    /// Saved nanoseconds of the collector, with the 95 % half-width.
    pub saving: Estimate,
}

/// How well a replay with the recorded parameters reproduces the recording. Each pair: replayed,
/// recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reproduction {
    /// Number of scavenges.
    pub scavenges: (f64, f64),
    /// Bytes that scavenges copied.
    pub copied_bytes: (f64, f64),
    /// Number of full collections.
    pub fulls: (f64, f64),
}

impl Reproduction {
    /// Whether the replay comes close enough for predictions. Numbers of collections may differ by
    /// one.
    #[must_use]
    pub fn is_faithful(&self) -> bool {
        let is_near = |(replayed, recorded): (f64, f64), spare: f64| {
            (replayed - recorded).abs() <= FAITHFUL * recorded + spare
        };
        let Reproduction {
            scavenges,
            copied_bytes,
            fulls,
        } = *self;
        is_near(scavenges, 1.0) && is_near(copied_bytes, 0.0) && is_near(fulls, 1.0)
    }
}

/// Advice, and the replay that it rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advised {
    /// The advice that the data support: savings that are certainly positive, and at least a per cent
    /// of the collector's time. Most first.
    pub advice: Vec<Advice>,
    /// `None` without a model of scavenges, or without the sizes of the spaces.
    pub reproduction: Option<Reproduction>,
}

impl Advised {
    /// The advice for the lifetimes and grouping of `cost`.
    #[must_use]
    pub fn of(lifetimes: &Lifetimes, grouping: Grouping, cost: &CollectorCost) -> Self {
        let all = cost.scavenges.ns + cost.fulls.ns;
        let is_sound = |advice: &Advice| {
            let Estimate { value, error } = advice.saving;
            value > error && value > LEAST_SHARE * all
        };
        let avoiding = cost.groups.iter().map(|group| Advice {
            change: Change::Avoid(group.key),
            saving: group.both,
        });
        let mut advice: Vec<Advice> = avoiding.filter(is_sound).take(MOST_GROUPS).collect();
        let mut groups = Groups::new(lifetimes, grouping);
        let predictor = Predictor::of(lifetimes, &mut groups, cost);
        if let Some(predictor) = predictor
            .as_ref()
            .filter(|one| one.reproduction.is_faithful())
        {
            for one in &mut advice {
                predictor.replay_avoiding(&groups, one);
            }
            advice.retain(is_sound);
            let sets = tenured_sets(lifetimes, grouping, cost);
            let mut pretenuring: Vec<Advice> = sets
                .into_iter()
                .map(|set| predictor.pretenuring(&groups, set))
                .filter(is_sound)
                .collect();
            pretenuring.sort_by(by_saving);
            pretenuring.truncate(MOST_GROUPS);
            advice.extend(pretenuring);
            advice.extend(predictor.parameters().into_iter().filter(is_sound));
        }
        advice.sort_by(by_saving);
        Advised {
            advice,
            reproduction: predictor.map(|one| one.reproduction),
        }
    }
}

fn by_saving(a: &Advice, b: &Advice) -> std::cmp::Ordering {
    b.saving.value.total_cmp(&a.saving.value)
}

/// Replays changes, and prices them.
struct Predictor<'a> {
    cost: &'a CollectorCost,
    program: Program,
    trials: Vec<Trial>,
    reproduction: Reproduction,
    tenuring_threshold: Option<f64>,
}

/// Random choices, and the replay of the recorded parameters with them.
struct Trial {
    draw: Draw,
    price: Price,
    recorded: Outcome,
    /// Used share of eden at the start of a changed run.
    eden_used: f64,
    /// How much dearer the copies from a larger eden are: 0 to 1, in units of [`DEARER_COPIES`].
    dearer: f64,
    /// Share of the pretenured objects that refer to younger objects: 0 to 1. The next scavenge finds
    /// these objects in the remembered set, and visits them.
    remembered: f64,
    /// Seed of the changed run's unexplained part.
    noise: u64,
}

impl<'a> Predictor<'a> {
    fn of(lifetimes: &Lifetimes, groups: &mut Groups<'_>, cost: &'a CollectorCost) -> Option<Self> {
        if lifetimes.objects.is_empty() || cost.scavenges.fit.is_none() {
            return None;
        }
        let program = Program::of(lifetimes, groups)?;
        let mut rng = Rng::with_seed(1);
        let trials = (0..REPLAYS).map(|trial| {
            let draw = program.draw(&mut rng);
            let price = Price {
                scavenge: coefficients(&cost.scavenges, trial),
                full: coefficients(&cost.fulls, trial),
            };
            Some(Trial {
                recorded: program.run(&program.policy, &draw, rng.f64())?,
                draw,
                price,
                eden_used: rng.f64(),
                dearer: rng.f64(),
                remembered: rng.f64(),
                noise: rng.u64(..),
            })
        });
        let trials: Vec<Trial> = trials.collect::<Option<_>>()?;
        let mean = |of: fn(&Outcome) -> f64| {
            trials.iter().map(|one| of(&one.recorded)).sum::<f64>() / REPLAYS as f64
        };
        let (scavenges, fulls) = (&cost.scavenges, &cost.fulls);
        let reproduction = Reproduction {
            scavenges: (
                mean(|one| one.scavenges.collections),
                scavenges.collections as f64,
            ),
            copied_bytes: (mean(|one| one.scavenges.bytes), scavenges.survived_bytes),
            fulls: (mean(|one| one.fulls.collections), fulls.collections as f64),
        };
        Some(Predictor {
            cost,
            program,
            trials,
            reproduction,
            tenuring_threshold: lifetimes.tenuring_threshold,
        })
    }

    /// The saving of a change, in nanoseconds; 0 if its replay takes too long.
    fn saving(&self, changed: &Policy) -> Estimate {
        let shares = self.trials.iter().map(|trial| {
            let after = self.program.run(changed, &trial.draw, trial.eden_used)?;
            let growth = (changed.eden / self.program.policy.eden - 1.0).max(0.0);
            let dearer = 1.0 + DEARER_COPIES * trial.dearer * growth;
            let before = trial.price.of(&trial.recorded, 1.0);
            let survivors = of_survivors(&after.pretenured, &trial.price.scavenge);
            let more = trial.remembered * survivors + self.noise(&after, trial.noise);
            Some(if before > 0.0 {
                1.0 - (trial.price.of(&after, dearer) + more) / before
            } else {
                0.0
            })
        });
        let Some(shares) = shares.collect::<Option<Vec<f64>>>() else {
            return Estimate::default();
        };
        let all = self.cost.scavenges.ns + self.cost.fulls.ns;
        Estimate::of_samples(shares.iter().copied()).times(all)
    }

    /// Nanoseconds in which the program uses the memory of a larger eden for the first time.
    fn first_use(&self, changed: &Policy) -> f64 {
        let used = changed.eden.min(self.program.end);
        let more = (used - self.program.policy.eden).max(0.0);
        self.cost.scavenges.per_fresh_byte().value * more
    }

    /// What the model does not explain of a run's collections.
    fn noise(&self, outcome: &Outcome, seed: u64) -> f64 {
        let mut rng = Rng::with_seed(seed);
        let mut of = |work: &Work, amount: &Amount| {
            let fit = work.fit.as_ref();
            fit.map_or(0.0, |fit| fit.noise(amount.collections, &mut rng))
        };
        of(&self.cost.scavenges, &outcome.scavenges) + of(&self.cost.fulls, &outcome.fulls)
    }

    /// Replaces the group's own cost by the saving of a replay without the group: later scavenges copy
    /// the survivors of other groups, too. The replay has no large objects of old space: a group of
    /// such objects keeps its own cost.
    fn replay_avoiding(&self, groups: &Groups<'_>, advice: &mut Advice) {
        let Change::Avoid(key) = advice.change else {
            return;
        };
        let Some(number) = groups.index(key) else {
            return;
        };
        let mut costs = self.cost.groups.iter();
        let allocated = costs.find(|one| one.key == key);
        let allocated = allocated.map_or(0.0, |one| one.allocated_bytes.value);
        if self.program.young_bytes(number) > LEAST_REPLAYED * allocated {
            advice.saving = self.saving(&Policy {
                avoided: Some(number),
                ..self.program.policy.clone()
            });
        }
    }

    fn pretenuring(&self, groups: &Groups<'_>, set: Vec<GroupKey>) -> Advice {
        let numbers = set.iter().filter_map(|key| groups.index(*key));
        let mut policy = Policy {
            pretenured: numbers.collect(),
            ..self.program.policy.clone()
        };
        policy.pretenured.sort_unstable();
        Advice {
            saving: self.saving(&policy),
            change: Change::Pretenure(set),
        }
    }

    /// Larger edens, other tenuring thresholds, and more growth of old space.
    fn parameters(&self) -> Vec<Advice> {
        let now = &self.program.policy;
        let mut advice = Vec::new();
        for factor in [2.0, 4.0] {
            let policy = Policy {
                eden: now.eden * factor,
                survivors: now.survivors * factor,
                ..now.clone()
            };
            let saving = self.saving(&policy);
            if saving.value > self.first_use(&policy) {
                let change = Change::Eden(now.eden as u64, policy.eden as u64);
                advice.push(Advice { change, saving });
            }
        }
        // The VM has the parameter.
        if let Some(threshold) = self.tenuring_threshold {
            for tenuring in [0.0, 0.5, 1.0] {
                let policy = Policy {
                    tenuring,
                    ..now.clone()
                };
                if policy != *now {
                    advice.push(Advice {
                        change: Change::Tenuring(threshold, tenuring),
                        saving: self.saving(&policy),
                    });
                }
            }
        }
        // The growth between full collections is known from two on.
        if self.cost.fulls.collections >= 2 {
            let policy = Policy {
                growth: 2.0,
                ..now.clone()
            };
            advice.push(Advice {
                change: Change::OldGrowth,
                saving: self.saving(&policy),
            });
        }
        advice
    }
}

/// Coefficients of the model.
struct Price {
    scavenge: [f64; TERMS],
    full: [f64; TERMS],
}

impl Price {
    /// The price of collections. A copy by a scavenge costs `dearer` times as much as recorded.
    fn of(&self, outcome: &Outcome, dearer: f64) -> f64 {
        let of = |amount: &Amount, price: &[f64; TERMS], dearer: f64| {
            price[0] * amount.collections
                + dearer * of_survivors(amount, price)
                + price[3] * amount.fresh
        };
        of(&outcome.scavenges, &self.scavenge, dearer) + of(&outcome.fulls, &self.full, 1.0)
    }
}

/// The price of bytes and objects.
fn of_survivors(amount: &Amount, price: &[f64; TERMS]) -> f64 {
    price[1] * amount.bytes + price[2] * amount.objects
}

/// Coefficients of a refit of the model. Without a model, a collection has its mean time.
fn coefficients(work: &Work, refit: usize) -> [f64; TERMS] {
    match work.fit {
        Some(_) => work.refit(refit),
        None => [work.ns / (work.collections as f64).max(1.0), 0.0, 0.0, 0.0],
    }
}

/// Groups of `cost` that are mostly tenured, alone and with the groups that die with them.
#[must_use]
pub fn tenured_sets(
    lifetimes: &Lifetimes,
    grouping: Grouping,
    cost: &CollectorCost,
) -> Vec<Vec<GroupKey>> {
    let is_tenured = |one: &&GroupCost| {
        let Estimate { value, error } = one.tenured_bytes;
        value - error > LEAST_TENURED * one.allocated_bytes.value
    };
    let tenured = cost.groups.iter().filter(is_tenured);
    let tenured: Vec<&GroupCost> = tenured.take(MOST_REPLAYED).collect();
    let alone = tenured.iter().map(|one| vec![one.key]);
    let together = dying_together(lifetimes, grouping, &tenured);
    let together = together
        .iter()
        .map(|set| set.iter().map(|at| tenured[*at].key).collect());
    alone.chain(together).collect()
}

/// Sets of groups, as indices, whose objects die in the same full collections, and that objects of the
/// same class or each other's objects hold. Without holders, the deaths decide.
fn dying_together(
    lifetimes: &Lifetimes,
    grouping: Grouping,
    groups: &[&GroupCost],
) -> Vec<Vec<usize>> {
    let index: FxHashMap<GroupKey, usize> = (groups.iter().enumerate())
        .map(|(at, group)| (group.key, at))
        .collect();
    let mut deaths: Vec<FxHashMap<CollectionId, f64>> = vec![FxHashMap::default(); groups.len()];
    let mut classes: Vec<FxHashSet<ClassId>> = vec![FxHashSet::default(); groups.len()];
    for object in &lifetimes.objects {
        let key = grouping.key(lifetimes, object.class, object.site);
        let Some(&group) = index.get(&key) else {
            continue;
        };
        classes[group].insert(object.class);
        if let Some(by) = object.death_collection.filter(|_| object.tenured.is_some())
            && lifetimes.collections[by].kind == CollectionKind::Full
        {
            let bytes = object.weight * object.bytes as f64;
            *deaths[group].entry(by).or_default() += bytes;
        }
    }
    let size =
        |one: &FxHashMap<CollectionId, f64>| one.values().map(|bytes| bytes * bytes).sum::<f64>();
    let cosine = |a: &FxHashMap<CollectionId, f64>, b: &FxHashMap<CollectionId, f64>| {
        let common = a.iter().filter_map(|(at, bytes)| Some(bytes * b.get(at)?));
        common.sum::<f64>() / (size(a) * size(b)).sqrt()
    };
    let held: FxHashMap<GroupKey, Option<ClassId>> = (holders(lifetimes, grouping).iter())
        .map(|held| (held.key, held.main_holder()))
        .collect();
    let holder = |group: usize| held.get(&groups[group].key).copied().flatten();
    let is_linked = |a: usize, b: usize| {
        let holds = |a: usize, b: usize| holder(b).is_some_and(|class| classes[a].contains(&class));
        holder(a) == holder(b) || holds(a, b) || holds(b, a)
    };
    let mut sets: Vec<Vec<usize>> = Vec::new();
    // One collection alone says nothing: all that dies at a program's end would be one set.
    for group in (0..groups.len()).filter(|group| deaths[*group].len() > 1) {
        // The group may link sets, which so become one.
        let (joined, others): (Vec<_>, _) = sets.into_iter().partition(|set: &Vec<usize>| {
            let mut set = set.iter();
            set.any(|one| cosine(&deaths[*one], &deaths[group]) > ALIKE && is_linked(*one, group))
        });
        let mut joined = joined.concat();
        joined.push(group);
        sets = others;
        sets.push(joined);
    }
    sets.retain(|set| set.len() > 1);
    sets
}
