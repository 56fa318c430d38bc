//! Callers and callees of a method, and its call sites, from sampled stacks.
//!
//! Inlining counts as a call, but has no call site here: [`super::Row::inlined`] has its samples.
//! In recursive stacks, each caller, callee and call site counts once per stack.

use super::body::spot_of;
use super::subject::{is_subject, subject_of};
use super::{Located, Spot, Subject};
use crate::ids::{Id, IndexVec, StackId};
use crate::profile::{Frame, Profile, Region, Site, SiteId};
use crate::stacks::count_stacks;
use crate::summary::Filter;
use crate::time_buckets::{Counts, Stop};
use rustc_hash::FxHashMap;
use std::hash::Hash;
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

/// A place in the method that called other code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The place.
    pub spot: Spot,
    /// Source line of a bytecode, if known.
    pub line: Option<u32>,
    /// Samples in the called code and its callees.
    pub samples: u64,
}

/// The callers, callees and call sites of a method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Samples that pass the filter, including other code.
    pub total: u64,
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
    /// Call sites, in no order.
    pub sites: Vec<CallSite>,
}

/// Counts a method's calls in samples that pass `filter`; `None` if `stop` was requested first.
#[must_use]
pub fn calls(profile: &Profile, filter: &Filter, located: &Located, stop: &Stop) -> Option<Calls> {
    let mut after = profile.sites.with_each(None);
    for within in &located.sites {
        after[within.site] = Some(within.after);
    }
    let has = |site: SiteId| after[site].is_some();
    let mut counter = Counter {
        profile,
        chosen: located.subject(),
        after: &after,
        callers: Sums::default(),
        callees: Sums::default(),
        sites: Sums::default(),
        calls: Calls::default(),
        stack: Vec::new(),
    };
    if profile.trace.chains.is_empty() {
        // Without chains, a stack holds only a site's inlined frames; sums by site suffice.
        let counts = Counts::of(profile, filter, stop)?;
        counter.calls.total = counts.total;
        for (site, &samples) in counts.sites.enumerated() {
            if samples > 0 && has(site) {
                counter.add(std::iter::once(site), samples, site.index());
            }
        }
        return Some(counter.into_calls());
    }
    let (tree, counts) = count_stacks(profile, filter, stop)?;
    // By node: whether the node or any caller contains the method.
    let mut on_path: IndexVec<StackId, bool> = IndexVec::default();
    for node in tree.nodes() {
        let above = node.parent.is_some_and(|parent| on_path[parent]);
        on_path.push(has(node.label) || above);
    }
    for (index, count) in counts.iter().enumerate() {
        if index % STOP_EVERY == 0 && stop.is_stopped() {
            return None;
        }
        counter.calls.total += count.samples;
        if on_path[count.node] {
            counter.add(tree.path(count.node), count.samples, index);
        }
    }
    Some(counter.into_calls())
}

/// A frame: its site, and its depth among the site's frames.
type Place = (SiteId, usize);

struct Counter<'a> {
    profile: &'a Profile,
    chosen: &'a Subject,
    /// By site: see [`Spot::Range`]; `None` for sites without the method.
    after: &'a IndexVec<SiteId, Option<bool>>,
    callers: Sums<Subject, Call>,
    callees: Sums<Subject, Call>,
    sites: Sums<Spot, CallSite>,
    calls: Calls,
    /// Frames of the current stack; reuses its allocation.
    stack: Vec<Place>,
}

impl Counter<'_> {
    /// Counts one stack, innermost site first, containing the method; `number` identifies the
    /// stack.
    fn add(&mut self, sites: impl Iterator<Item = SiteId>, samples: u64, number: usize) {
        let profile = self.profile;
        let stack = &mut self.stack;
        stack.clear();
        // Frames of the sample's own site: they called nothing but inlined code.
        let mut own_frames = 0;
        for site in sites {
            let depths = profile.sites[site].via.len() + 1;
            stack.extend((0..depths).map(|depth| (site, depth)));
            own_frames = if own_frames == 0 { depths } else { own_frames };
        }
        let (mut is_outermost, mut is_own) = (false, false);
        for (at, &place) in stack.iter().enumerate() {
            let Some(after) = self.after[place.0] else {
                continue;
            };
            let (site, frame) = frame(profile, place);
            if !is_subject(profile, site, frame, self.chosen) {
                continue;
            }
            match stack.get(at + 1) {
                Some(&caller) => {
                    let is_inlined = caller.1 > 0;
                    put(
                        &mut self.callers,
                        profile,
                        caller,
                        is_inlined,
                        samples,
                        number,
                    );
                }
                None => is_outermost = true,
            }
            match at.checked_sub(1).and_then(|inner| stack.get(inner)) {
                Some(&callee) => {
                    let is_inlined = place.1 > 0;
                    put(
                        &mut self.callees,
                        profile,
                        callee,
                        is_inlined,
                        samples,
                        number,
                    );
                }
                None => is_own = true,
            }
            if at < own_frames {
                continue;
            }
            let sum = self.sites.of(place, number, || {
                let spot = spot_of(profile, site, frame, place.1 == 0, after);
                let sum = CallSite {
                    spot: spot.clone(),
                    line: frame.line,
                    samples: 0,
                };
                (spot, sum)
            });
            if let Some(sum) = sum {
                sum.samples += samples;
            }
        }
        let calls = &mut self.calls;
        calls.samples += samples;
        calls.outermost += if is_outermost { samples } else { 0 };
        calls.own += if is_own { samples } else { 0 };
    }

    fn into_calls(self) -> Calls {
        let sites = self.sites.all.into_iter();
        Calls {
            callers: sorted(self.callers),
            callees: sorted(self.callees),
            sites: sites.map(|(site, _)| site).collect(),
            ..self.calls
        }
    }
}

fn frame(profile: &Profile, (site, depth): Place) -> (&Site, &Frame) {
    let site = &profile.sites[site];
    let outer = depth.checked_sub(1).map(|outer| &site.via[outer]);
    (site, outer.unwrap_or(&site.frame))
}

/// Adds a stack's samples to a caller or callee.
fn put(
    sums: &mut Sums<Subject, Call>,
    profile: &Profile,
    place: Place,
    inlined: bool,
    samples: u64,
    stack: usize,
) {
    let sum = sums.of(place, stack, || {
        let (site, frame) = frame(profile, place);
        let subject = subject_of(profile, site, frame);
        let call = Call {
            subject: subject.clone(),
            name: Arc::clone(&frame.name),
            region: profile.entries[site.entry].region,
            samples: 0,
            inlined: 0,
        };
        (subject, call)
    });
    if let Some(call) = sum {
        call.samples += samples;
        call.inlined += if inlined { samples } else { 0 };
    }
}

fn sorted(sums: Sums<Subject, Call>) -> Vec<Call> {
    let mut calls: Vec<Call> = sums.all.into_iter().map(|(call, _)| call).collect();
    calls.sort_by(|a, b| {
        let samples = b.samples.cmp(&a.samples);
        samples.then_with(|| a.name.cmp(&b.name))
    });
    calls
}

/// Sums by key; a stack counts once in each.
struct Sums<K, T> {
    /// Each with the last counted stack.
    all: Vec<(T, usize)>,
    by_key: FxHashMap<K, usize>,
    by_place: FxHashMap<Place, usize>,
}

impl<K, T> Default for Sums<K, T> {
    fn default() -> Self {
        Sums {
            all: Vec::new(),
            by_key: FxHashMap::default(),
            by_place: FxHashMap::default(),
        }
    }
}

impl<K: Eq + Hash, T> Sums<K, T> {
    /// Sum of a place, unless the place already counted this stack. `new` makes key and empty sum of an
    /// unknown place.
    fn of(&mut self, place: Place, stack: usize, new: impl FnOnce() -> (K, T)) -> Option<&mut T> {
        let at = match self.by_place.get(&place) {
            Some(&known) => known,
            None => {
                let (key, sum) = new();
                let all = &mut self.all;
                let at = *self.by_key.entry(key).or_insert_with(|| {
                    all.push((sum, usize::MAX));
                    all.len() - 1
                });
                self.by_place.insert(place, at);
                at
            }
        };
        let (sum, last) = &mut self.all[at];
        (std::mem::replace(last, stack) != stack).then_some(sum)
    }
}
