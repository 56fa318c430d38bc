//! Callers and callees of a method, from sampled stacks.
//!
//! Inlining counts as a call. In recursive stacks, each caller and callee counts once per stack.

use super::Subject;
use super::frames;
use super::subject::{depth_of, subject_of};
use crate::profile::{Frame, Profile, Region, SiteId};
use crate::stacks::count_stacks;
use crate::summary::Filter;
use crate::time_buckets::{Counts, Stop};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Stacks between two checks for a stop.
const STOP_EVERY: usize = 256;

/// A caller or a callee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub subject: Subject,
    /// Its name.
    pub name: Arc<str>,
    /// Region of its code.
    pub region: Region,
    /// Samples with this call in their stacks.
    pub samples: u64,
    /// Samples with this call inlined.
    pub inlined: u64,
}

/// The callers and callees of a method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Samples with the method in their stacks.
    pub samples: u64,
    /// Samples in the method itself, without callee.
    pub own: u64,
    /// Samples without caller: outermost method, truncated chain, or no recorded chain.
    pub outermost: u64,
    /// Callers, most samples first.
    pub callers: Vec<Call>,
    /// Callees, most samples first.
    pub callees: Vec<Call>,
}

/// Counts a method's calls in samples that pass `filter`; `None` if `stop` was requested first.
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
        // Without chains, a stack holds only a site's inlined frames; sums by site suffice.
        let counts = Counts::of(profile, filter, stop)?;
        for (site, samples) in (0..).zip(counts.sites) {
            if samples > 0 && has.get(site as usize) == Some(&true) {
                counter.add(std::iter::once(site), samples, site as usize);
            }
        }
        return Some(counter.into_calls());
    }
    let (tree, counts) = count_stacks(profile, filter, stop)?;
    // By node: whether the node or any caller contains the method.
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

struct Counter<'a> {
    profile: &'a Profile,
    chosen: &'a Subject,
    /// By site: whether it contains the method.
    has: &'a [bool],
    callers: Sums<'a>,
    callees: Sums<'a>,
    calls: Calls,
    /// Frames of the current stack; reuses its allocation.
    stack: Vec<(SiteId, usize)>,
}

impl Counter<'_> {
    /// Counts one stack, innermost site first, containing the method; `number` identifies the
    /// stack.
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

/// Sums of callers or callees.
struct Sums<'a> {
    profile: &'a Profile,
    /// Each with the last counted stack.
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
