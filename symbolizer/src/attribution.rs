//! For whom the VM, its collector, its compilers, libraries and the kernel work: to which
//! method of the program each sample belongs.
//!
//! A sample in a method is that method's. Any other has an owner where its callers were
//! recorded: the innermost method among them. Threads that collect work for nobody in
//! particular; those that compile, for what they were seen to compile
//! ([`crate::compilers`]). What is not known stays nobody's, and why is said.

use crate::compilers::{For, Timelines};
use crate::methods::is_method;
use crate::profile::{EntryId, Profile};
use crate::summary::Filter;
use crate::summary::errors::{Batches, Means};
use crate::time_buckets::{Cell, Piece, Selection, Stop, by_kind_of_thread};
use crate::trace::ChainTree;
use rustc_hash::FxHashMap;
use vmscope_records::{ThreadRole, TimeNs};

/// So many samples are looked at between two looks at [`Stop`].
const BATCH: usize = 1 << 16;

/// Whose a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// Of the method that this entry is of.
    Method(EntryId),
    /// Of the method that was being compiled: index in [`crate::Trace::compilations`].
    Compiled(u32),
    /// Nobody's: of a thread that collects.
    Collector,
    /// Of a thread that compiles, it is not known what.
    Compiler,
    /// Nobody's: of a thread that works for the VM.
    Vm,
    /// Callers were recorded, and none of them is a method.
    NoMethod,
    /// No callers were recorded.
    NoCallers,
    /// Known by a time bucket only, without its callers ([`crate::time_buckets`]).
    Forgotten,
}

/// Samples of one entry that have one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owned {
    /// Where they fell.
    pub entry: EntryId,
    /// Whose they are.
    pub owner: Owner,
    /// More than none.
    pub samples: u64,
}

/// Counts what a filter takes by entry and owner, in that order; `None` when `stop` was
/// wished before it was done.
#[must_use]
pub fn owners(profile: &Profile, filter: &Filter, stop: &Stop) -> Option<Vec<Owned>> {
    let mut counter = Counter::new(profile);
    let kinds = counter.kinds_of_threads();
    let kind_of = |thread: u32| kinds.get(thread as usize).copied().unwrap_or(thread);
    by_kind_of_thread(profile, filter, stop, kind_of, |one| {
        match counter.by_thread(one.thread, one.entry) {
            Some(owner) => counter.add(one.entry, owner, one.samples),
            None => counter.wait(one.entry, one.samples),
        }
    })?;
    if !counter.waiting.is_empty() {
        counter.single(profile, filter, stop)?;
    }
    let own = (0..).zip(counter.own);
    let waiting = counter.waiting.into_iter();
    let mut all: Vec<Owned> = own
        .map(|(entry, samples)| ((entry, Owner::Method(entry)), samples))
        .chain(counter.counts)
        .chain(waiting.map(|(entry, samples)| ((entry, Owner::Forgotten), samples)))
        .filter(|(_, samples)| *samples > 0)
        .map(|((entry, owner), samples)| Owned {
            entry,
            owner,
            samples,
        })
        .collect();
    // Quick where most are in order.
    all.sort();
    Some(all)
}

struct Counter<'a> {
    profile: &'a Profile,
    is_method: Vec<bool>,
    timelines: Timelines<'a>,
    /// Of each entry, its samples that are its own: most are.
    own: Vec<u64>,
    /// All others.
    counts: FxHashMap<(EntryId, Owner), u64>,
    /// Samples of which the time or the callers say whose they are.
    waiting: FxHashMap<EntryId, u64>,
}

impl<'a> Counter<'a> {
    fn new(profile: &'a Profile) -> Self {
        let entries = (0..).take(profile.entries.len());
        Counter {
            profile,
            is_method: entries.map(|entry| is_method(profile, entry)).collect(),
            timelines: Timelines::of(&profile.trace),
            own: vec![0; profile.entries.len()],
            counts: FxHashMap::default(),
            waiting: FxHashMap::default(),
        }
    }

    fn is_method(&self, entry: EntryId) -> bool {
        self.is_method.get(entry as usize).copied().unwrap_or(false)
    }

    fn role(&self, thread: u32) -> ThreadRole {
        let thread = self.profile.trace.threads.get(thread as usize);
        thread.map_or(ThreadRole::Other, |thread| thread.thread.role)
    }

    fn add(&mut self, entry: EntryId, owner: Owner, samples: u64) {
        if owner == Owner::Method(entry)
            && let Some(own) = self.own.get_mut(entry as usize)
        {
            *own += samples;
            return;
        }
        *self.counts.entry((entry, owner)).or_default() += samples;
    }

    fn wait(&mut self, entry: EntryId, samples: u64) {
        *self.waiting.entry(entry).or_default() += samples;
    }

    /// Whose samples of an entry are, where their thread is all that it takes to know it.
    fn by_thread(&self, thread: u32, entry: EntryId) -> Option<Owner> {
        if self.is_method(entry) {
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

    /// Of each thread, the first one of which [`Self::by_thread`] says the same.
    fn kinds_of_threads(&self) -> Vec<u32> {
        let mut first: FxHashMap<(bool, ThreadRole), u32> = FxHashMap::default();
        let threads = (0..).take(self.profile.trace.threads.len());
        let kind = |thread| {
            let kind = (self.timelines.has(thread), self.role(thread));
            *first.entry(kind).or_insert(thread)
        };
        threads.map(kind).collect()
    }

    /// Whether all samples' threads are all that it takes to know whose they are.
    fn is_by_thread(&self) -> bool {
        self.timelines.is_empty() && self.profile.trace.chains.is_empty()
    }

    /// Looks at the samples that wait one by one.
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

    /// Whose a sample is of which the time or the callers say it.
    fn by_time(&self, one: &Single, owner_of_chain: &[Option<EntryId>]) -> Owner {
        match self.timelines.at(one.thread, one.time) {
            Some(For::One(one)) => Owner::Compiled(u32::try_from(one).unwrap_or(u32::MAX)),
            Some(_) => Owner::Compiler,
            None => match one.chain.filter(|&chain| chain != ChainTree::NONE) {
                Some(chain) => match owner_of_chain.get(chain as usize) {
                    Some(&Some(method)) => Owner::Method(method),
                    _ => match without_callers(self.role(one.thread)) {
                        Owner::NoCallers => Owner::NoMethod,
                        owner => owner,
                    },
                },
                None => without_callers(self.role(one.thread)),
            },
        }
    }

    /// Of each node of the chains, the innermost method from there outwards.
    fn owners_of_chains(&self) -> Vec<Option<EntryId>> {
        let chains = &self.profile.trace.chains;
        let mut owners: Vec<Option<EntryId>> = Vec::with_capacity(chains.len());
        let nodes = (0u32..).map_while(|node| chains.node(node));
        for node in nodes {
            let site = self.profile.site_of_place.get(node.place as usize);
            let site = site.and_then(|&site| self.profile.sites.get(site as usize));
            let own = site.map(|site| site.entry).filter(|&e| self.is_method(e));
            // Callers come before what they call.
            let outer = || owners.get(node.parent as usize).copied().flatten();
            owners.push(own.or_else(outer));
        }
        owners
    }
}

/// The 95 % half-widths of the shares of `groups` groups in the `total` samples that a filter
/// takes: by batch means, as all errors of shares. `put` is given each sample, its thread, the
/// entry it fell in and whose it is, and hands on the groups that it is of. Empty where there
/// are too few samples to say, or older ones are known by their sums only; `None` when `stop`
/// was wished before it was done.
pub fn owner_errors(
    profile: &Profile,
    filter: &Filter,
    (total, groups): (u64, usize),
    stop: &Stop,
    mut put: impl FnMut(u32, EntryId, Owner, &mut dyn FnMut(u32)),
) -> Option<Vec<f64>> {
    let means = Means::new(total, groups).filter(|_| profile.time_buckets.dropped() == 0);
    let Some(mut means) = means else {
        return Some(Vec::new());
    };
    let counter = Counter::new(profile);
    if counter.is_by_thread() {
        // Then sums by thread and site say it, too.
        let selection = Selection::new(profile, filter);
        let entries = profile.time_buckets.by_spot(|_, spot| spot.entry);
        let batches = Batches {
            profile,
            selection: &selection,
            few: None,
            counts: |_| true,
            put: |means: &mut Means, thread, cell: Cell| {
                let entry = entries.get(cell.spot as usize).copied();
                let entry = entry.unwrap_or(EntryId::MAX);
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

/// A sample that is kept by itself.
struct Single {
    time: TimeNs,
    thread: u32,
    entry: EntryId,
    chain: Option<u32>,
}

/// Hands those samples that a filter takes to `visit`, in the order of time, until it has
/// enough; `None` when `stop` was wished before they were all looked at.
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
            let (Some(&time), Some(&thread), Some(&place)) = (
                samples.times.get(index),
                samples.threads.get(index),
                samples.places.get(index),
            ) else {
                continue;
            };
            let site = profile.site_of_place.get(place as usize);
            let Some(site) = site.and_then(|&site| profile.sites.get(site as usize)) else {
                continue;
            };
            if !selection.takes_thread(thread)
                || !(time_buckets.spot_of_place(place))
                    .is_some_and(|spot| selection.takes_spot(spot))
            {
                continue;
            }
            let one = Single {
                time,
                thread,
                entry: site.entry,
                chain: samples.chains.get(index).copied(),
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

/// Whose a sample is of which no callers are known.
fn without_callers(role: ThreadRole) -> Owner {
    match role {
        ThreadRole::Collector => Owner::Collector,
        ThreadRole::Compiler => Owner::Compiler,
        ThreadRole::Vm | ThreadRole::Heartbeat => Owner::Vm,
        _ => Owner::NoCallers,
    }
}
