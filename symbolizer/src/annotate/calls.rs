//! Who called a method, and whom it called, by the stacks of the samples.
//!
//! What is inlined is a call like any other. Where a stack has the method several times
//! (recursion), each of its callers and callees counts once for that stack.

use super::Subject;
use super::frames;
use super::subject::{depth_of, subject_of};
use crate::profile::{Frame, Profile, Region, SiteId};
use crate::stacks::count_stacks;
use crate::summary::Filter;
use crate::time_buckets::{Counts, Stop};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// So many stacks are looked at between two looks at whether to stop.
const STOP_EVERY: usize = 256;

/// A caller or a callee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which.
    pub subject: Subject,
    /// Its name.
    pub name: Arc<str>,
    /// The region of the code that it is in.
    pub region: Region,
    /// Samples whose stacks have the call.
    pub samples: u64,
    /// Those of them in which one is inlined into the other.
    pub inlined: u64,
}

/// The callers and callees of a method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Samples whose stacks have the method.
    pub samples: u64,
    /// Those in the method itself: no callee.
    pub own: u64,
    /// Those in whose stacks nobody calls it: it is the outermost, or the chain was cut
    /// off, or none was recorded.
    pub outermost: u64,
    /// Who called it, most samples first.
    pub callers: Vec<Call>,
    /// Whom it called, most samples first.
    pub callees: Vec<Call>,
}

/// Counts the calls of the samples that `filter` takes; `None` when `stop` was wished
/// before it was done.
#[must_use]
pub fn calls(profile: &Profile, filter: &Filter, chosen: &Subject, stop: &Stop) -> Option<Calls> {
    let sites = profile.sites.iter();
    let has: Vec<bool> = sites
        .map(|site| depth_of(profile, site, chosen).is_some())
        .collect();
    let mut counter = Counter {
        profile,
        chosen,
        has: &has,
        callers: Sums::new(profile),
        callees: Sums::new(profile),
        calls: Calls::default(),
        stack: Vec::new(),
    };
    if profile.trace.chains.is_empty() {
        // Then a stack is what was inlined at a site, and sums say how many have it.
        let counts = Counts::of(profile, filter, stop)?;
        for (site, samples) in (0..).zip(counts.sites) {
            if samples > 0 && has.get(site as usize) == Some(&true) {
                counter.add(std::iter::once(site), samples, site as usize);
            }
        }
        return Some(counter.into_calls());
    }
    let (tree, counts) = count_stacks(profile, filter, stop)?;
    // Whether a node or one that it was called from has the method.
    let mut on_path: Vec<bool> = Vec::with_capacity(tree.nodes().len());
    for node in tree.nodes() {
        let own = has.get(node.site as usize) == Some(&true);
        let above = on_path.get(node.parent as usize) == Some(&true);
        on_path.push(own || above);
    }
    for (index, count) in counts.iter().enumerate() {
        if index % STOP_EVERY == 0 && stop.is_stopped() {
            return None;
        }
        if on_path.get(count.node as usize) == Some(&true) {
            let sites = tree.path(count.node).map(|node| node.site);
            counter.add(sites, count.samples, index);
        }
    }
    Some(counter.into_calls())
}

/// Calls while they are counted.
struct Counter<'a> {
    profile: &'a Profile,
    chosen: &'a Subject,
    /// By site, whether the method is there.
    has: &'a [bool],
    callers: Sums<'a>,
    callees: Sums<'a>,
    calls: Calls,
    /// The frames of a stack; kept for its room.
    stack: Vec<(SiteId, usize)>,
}

impl Counter<'_> {
    /// Counts a stack that has the method, innermost site first; `number` tells it from the
    /// others.
    fn add(&mut self, sites: impl Iterator<Item = SiteId>, samples: u64, number: usize) {
        let stack = &mut self.stack;
        stack.clear();
        for site in sites {
            let inlined = self.profile.sites.get(site as usize);
            let depths = inlined.map_or(0, |site| site.via.len() + 1);
            stack.extend((0..depths).map(|depth| (site, depth)));
        }
        let (mut is_outermost, mut is_own) = (false, false);
        for (at, &place) in stack.iter().enumerate() {
            let has = self.has.get(place.0 as usize) == Some(&true);
            if !has || !is_at(self.profile, place, self.chosen) {
                continue;
            }
            match stack.get(at + 1) {
                Some(&caller) => self.callers.add(caller, caller.1 > 0, samples, number),
                None => is_outermost = true,
            }
            match at.checked_sub(1).and_then(|inner| stack.get(inner)) {
                Some(&callee) => self.callees.add(callee, place.1 > 0, samples, number),
                None => is_own = true,
            }
        }
        let calls = &mut self.calls;
        calls.samples += samples;
        calls.outermost += if is_outermost { samples } else { 0 };
        calls.own += if is_own { samples } else { 0 };
    }

    fn into_calls(self) -> Calls {
        Calls {
            callers: self.callers.into_calls(),
            callees: self.callees.into_calls(),
            ..self.calls
        }
    }
}

fn frame(profile: &Profile, (site, depth): (SiteId, usize)) -> Option<&Frame> {
    frames(profile.sites.get(site as usize)?).nth(depth)
}

fn is_at(profile: &Profile, place: (SiteId, usize), chosen: &Subject) -> bool {
    let site = profile.sites.get(place.0 as usize);
    let frame = frame(profile, place);
    (site.zip(frame)).is_some_and(|(site, frame)| subject_of(profile, site, frame) == *chosen)
}

/// Callers or callees while they are counted.
struct Sums<'a> {
    profile: &'a Profile,
    /// With the stack that was counted last.
    calls: Vec<(Call, usize)>,
    by_subject: FxHashMap<Subject, usize>,
    by_place: FxHashMap<(SiteId, usize), usize>,
}

impl<'a> Sums<'a> {
    fn new(profile: &'a Profile) -> Self {
        Sums {
            profile,
            calls: Vec::new(),
            by_subject: FxHashMap::default(),
            by_place: FxHashMap::default(),
        }
    }

    fn add(&mut self, place: (SiteId, usize), inlined: bool, samples: u64, stack: usize) {
        let Some(at) = self.index(place) else {
            return;
        };
        if let Some((call, last)) = self.calls.get_mut(at)
            && std::mem::replace(last, stack) != stack
        {
            call.samples += samples;
            call.inlined += if inlined { samples } else { 0 };
        }
    }

    fn index(&mut self, place: (SiteId, usize)) -> Option<usize> {
        if let Some(&known) = self.by_place.get(&place) {
            return Some(known);
        }
        let site = self.profile.sites.get(place.0 as usize)?;
        let frame = frame(self.profile, place)?;
        let subject = subject_of(self.profile, site, frame);
        let entry = self.profile.entries.get(site.entry as usize);
        let calls = &mut self.calls;
        let at = *(self.by_subject)
            .entry(subject)
            .or_insert_with_key(|subject| {
                let call = Call {
                    subject: subject.clone(),
                    name: Arc::clone(&frame.name),
                    region: entry.map_or(Region::Unknown, |entry| entry.region),
                    samples: 0,
                    inlined: 0,
                };
                calls.push((call, usize::MAX));
                calls.len() - 1
            });
        self.by_place.insert(place, at);
        Some(at)
    }

    fn into_calls(self) -> Vec<Call> {
        let mut calls: Vec<Call> = self.calls.into_iter().map(|(call, _)| call).collect();
        calls.sort_by(|a, b| {
            let samples = b.samples.cmp(&a.samples);
            samples.then_with(|| a.name.cmp(&b.name))
        });
        calls
    }
}
