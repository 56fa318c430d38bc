//! Attribution: assigns the samples of the VM, collector, compilers, libraries and kernel to
//! methods of the program.
//!
//! A method's sample belongs to that method. Other samples belong to the innermost method among
//! their recorded callers. Collector threads serve no single method; compiler threads serve the
//! method being compiled ([`crate::compilers`]).

use crate::compilers::{For, Timelines};
use crate::ids::{ChainId, IndexVec, ThreadId};
use crate::methods::is_method;
use crate::profile::{EntryId, Profile};
use crate::summary::Filter;
use crate::summary::errors::{Batches, Means};
use crate::time_buckets::{Cell, Piece, Selection, Stop, by_kind_of_thread};
use rustc_hash::FxHashMap;
use vmscope_records::{ThreadRole, TimeNs};

/// Samples between two checks of [`Stop`].
const BATCH: usize = 1 << 16;

/// Owner of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The method of this entry.
    Method(EntryId),
    /// The method being compiled: index in [`crate::Trace::compilations`].
    Compiled(u32),
    /// Nobody: a collector thread.
    Collector,
    /// A compiler thread whose compilation is unknown.
    Compiler,
    /// Nobody: a VM thread.
    Vm,
    /// The recording has callers, but no caller is a method.
    NoMethod,
    /// No callers were recorded.
    NoCallers,
    /// The sample survives only in a time bucket's sums, without callers ([`crate::time_buckets`]).
    Forgotten,
}

/// Samples of an entry with equal owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owned {
    /// Entry of the innermost frame.
    pub entry: EntryId,
    /// Their owner.
    pub owner: Owner,
    /// At least 1.
    pub samples: u64,
}

/// Counts the filter's samples by entry and owner, sorted by both. `None` if `stop` was requested
/// first.
#[must_use]
pub fn owners(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Vec<Owned>> {
    let mut counter = Counter::new(profile);
    let kinds = counter.kinds_of_threads();
    let kind_of = |thread: ThreadId| kinds[thread];
    by_kind_of_thread(profile, filter, stop, kind_of, |one| {
        match counter.by_thread(one.thread, one.entry) {
            Some(owner) => counter.add(one.entry, owner, one.samples),
            None => counter.wait(one.entry, one.samples),
        }
    })?;
    if !counter.waiting.is_empty() {
        counter.single(profile, filter, stop)?;
    }
    let own = counter.own.enumerated();
    let waiting = counter.waiting.into_iter();
    let mut all: Vec<Owned> = own
        .map(|(entry, &samples)| ((entry, Owner::Method(entry)), samples))
        .chain(counter.counts)
        .chain(waiting.map(|(entry, samples)| ((entry, Owner::Forgotten), samples)))
        .filter(|(_, samples)| *samples > 0)
        .map(|((entry, owner), samples)| Owned {
            entry,
            owner,
            samples,
        })
        .collect();
    // Fast, since most are in order.
    all.sort();
    Some(all)
}

struct Counter<'a> {
    profile: &'a Profile,
    is_method: IndexVec<EntryId, bool>,
    timelines: Timelines<'a>,
    /// Per entry: samples of which the entry itself is the owner (the majority).
    own: IndexVec<EntryId, u64>,
    counts: FxHashMap<(EntryId, Owner), u64>,
    /// Per entry: samples whose owner depends on time or callers.
    waiting: FxHashMap<EntryId, u64>,
}

impl<'a> Counter<'a> {
    fn new(profile: &'a Profile) -> Self {
        Counter {
            profile,
            is_method: profile.entries.map(|entry, _| is_method(profile, entry)),
            timelines: Timelines::of(&profile.trace),
            own: profile.entries.with_each(0),
            counts: FxHashMap::default(),
            waiting: FxHashMap::default(),
        }
    }

    fn role(&self, thread: ThreadId) -> ThreadRole {
        self.profile.trace.threads[thread].thread.role
    }

    fn add(&mut self, entry: EntryId, owner: Owner, samples: u64) {
        match owner == Owner::Method(entry) {
            true => self.own[entry] += samples,
            false => *self.counts.entry((entry, owner)).or_default() += samples,
        }
    }

    fn wait(&mut self, entry: EntryId, samples: u64) {
        *self.waiting.entry(entry).or_default() += samples;
    }

    /// The owner, if the thread alone determines it.
    fn by_thread(&self, thread: ThreadId, entry: EntryId) -> Option<Owner> {
        if self.is_method[entry] {
            return Some(Owner::Method(entry));
        }
        if self.timelines.has(thread) {
            return None;
        }
        match self.role(thread) {
            ThreadRole::Collector => Some(Owner::Collector),
            ThreadRole::Compiler => Some(Owner::Compiler),
            _ if !self.profile.trace.chains.is_empty() => None,
            role => Some(without_callers(role)),
        }
    }

    /// For each thread, the first thread with equal [`Self::by_thread`] results.
    fn kinds_of_threads(&self) -> IndexVec<ThreadId, ThreadId> {
        let mut first: FxHashMap<(bool, ThreadRole), ThreadId> = FxHashMap::default();
        self.profile.trace.threads.map(|id, thread| {
            let kind = (self.timelines.has(id), thread.thread.role);
            *first.entry(kind).or_insert(id)
        })
    }

    /// Whether threads alone determine the owners of all samples.
    fn is_by_thread(&self) -> bool {
        self.timelines.is_empty() && self.profile.trace.chains.is_empty()
    }

    /// Attributes the waiting samples one by one.
    fn single(&mut self, profile: &Profile, filter: &Filter, stop: &Stop) -> Option<()> {
        let owner_of_chain = self.owners_of_chains();
        each_single(profile, filter, stop, |one| {
            if self.by_thread(one.thread, one.entry).is_some() {
                return true;
            }
            let owner = self.by_time(&one, &owner_of_chain);
            self.add(one.entry, owner, 1);
            if let Some(waiting) = self.waiting.get_mut(&one.entry) {
                *waiting = waiting.saturating_sub(1);
            }
            true
        })
    }

    /// The owner by time or callers.
    fn by_time(&self, one: &Single, owner_of_chain: &IndexVec<ChainId, Option<EntryId>>) -> Owner {
        match self.timelines.at(one.thread, one.time) {
            Some(For::One(one)) => Owner::Compiled(u32::try_from(one).unwrap_or(u32::MAX)),
            Some(_) => Owner::Compiler,
            None => match (one.chain, without_callers(self.role(one.thread))) {
                (None, owner) => owner,
                (Some(chain), owner) => match (owner_of_chain[chain], owner) {
                    (Some(method), _) => Owner::Method(method),
                    (None, Owner::NoCallers) => Owner::NoMethod,
                    (None, owner) => owner,
                },
            },
        }
    }

    /// For each chain node, the innermost method among the node and its callers.
    fn owners_of_chains(&self) -> IndexVec<ChainId, Option<EntryId>> {
        let mut owners: IndexVec<ChainId, Option<EntryId>> = IndexVec::default();
        for node in self.profile.trace.chains.nodes() {
            let own = self.profile.site_at(node.label).entry;
            let owner = match self.is_method[own] {
                true => Some(own),
                // Callers precede callees.
                false => node.parent.and_then(|parent| owners[parent]),
            };
            owners.push(owner);
        }
        owners
    }
}

/// 95 % half-widths of the shares of `groups` groups in the filter's `total` samples, by batch
/// means.
///
/// `put` receives the thread, entry and owner of each sample and passes the sample's groups to its
/// callback. Empty if the samples are too few, or if older samples survive only as sums. `None` if
/// `stop` was requested first.
pub fn owner_errors(
    profile: &Profile,
    filter: &Filter,
    (total, groups): (u64, usize),
    stop: &Stop,
    mut put: impl FnMut(ThreadId, EntryId, Owner, &mut dyn FnMut(u32)),
) -> Option<Vec<f64>> {
    let means = Means::new(total, groups).filter(|_| profile.time_buckets.dropped() == 0);
    let Some(mut means) = means else {
        return Some(Vec::new());
    };
    let counter = Counter::new(profile);
    if counter.is_by_thread() {
        // Sums by thread and site suffice.
        let selection = Selection::new(profile, filter);
        let entries = profile.time_buckets.by_spot(|_, spot| spot.entry);
        let batches = Batches {
            profile,
            selection: &selection,
            few: None,
            counts: |_| true,
            put: |means: &mut Means, thread, cell: Cell| {
                let entry = entries[cell.spot];
                if let Some(owner) = counter.by_thread(thread, entry) {
                    put(thread, entry, owner, &mut |group| {
                        means.put(group, cell.count);
                    });
                }
            },
            selected: Vec::new(),
            means,
        };
        return batches.errors(stop);
    }
    let owner_of_chain = counter.owners_of_chains();
    each_single(profile, filter, stop, |one| {
        let owner = counter
            .by_thread(one.thread, one.entry)
            .unwrap_or_else(|| counter.by_time(&one, &owner_of_chain));
        put(one.thread, one.entry, owner, &mut |group| {
            means.put(group, 1);
        });
        means.fill(1);
        !means.is_full()
    })?;
    Some(means.errors())
}

/// An individually kept sample.
struct Single {
    time: TimeNs,
    thread: ThreadId,
    entry: EntryId,
    chain: Option<ChainId>,
}

/// Passes the filter's samples to `visit` in time order until it returns `false`. `None` if `stop`
/// was requested first.
fn each_single(
    profile: &Profile,
    filter: &Filter,
    stop: &Stop,
    mut visit: impl FnMut(Single) -> bool,
) -> Option<()> {
    let selection = Selection::new(profile, filter);
    let samples = &profile.trace.samples;
    let time_buckets = &profile.time_buckets;
    let mut enough = false;
    let done = time_buckets.pieces_below(0, selection.range.clone(), &mut |piece| {
        let Piece::Samples(range) = piece else {
            return Some(());
        };
        for index in range.start..range.end.min(samples.times.len()) {
            if index.is_multiple_of(BATCH) {
                stop.look(index, samples.times.len())?;
            }
            let (thread, place) = (samples.threads[index], samples.places[index]);
            if !selection.takes_thread(thread) || !selection.takes_place(time_buckets, place) {
                continue;
            }
            let one = Single {
                time: samples.times[index],
                thread,
                entry: time_buckets.entry_of_place(place),
                chain: samples.chains.get(index).copied().flatten(),
            };
            if !visit(one) {
                enough = true;
                return None;
            }
        }
        Some(())
    });
    done.or_else(|| enough.then_some(()))
}

/// The owner of a sample without known callers.
fn without_callers(role: ThreadRole) -> Owner {
    match role {
        ThreadRole::Collector => Owner::Collector,
        ThreadRole::Compiler => Owner::Compiler,
        ThreadRole::Vm | ThreadRole::Heartbeat => Owner::Vm,
        _ => Owner::NoCallers,
    }
}
