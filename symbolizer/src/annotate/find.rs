//! Which methods have samples, and which one a name means.

use super::{Tier, frames};
use crate::build::code::{full_name, separator_of};
use crate::profile::{Entry, EntryId, EntryKind, Frame, Profile, Site, SiteId};
use crate::slices::{self, Stop};
use crate::summary::Filter;
use crate::trace::Place;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use vmscope_records::{BoundaryRule, ConstituentKind, Method, MethodKey, PcMap};

/// A method or function that can be annotated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A VM's method, by the key that [`Frame::method`] gives it.
    Method(MethodKey),
    /// Code that has a name only: a native function, a stub.
    Named {
        /// Its name.
        name: Arc<str>,
        /// The module it is in, or empty.
        module: String,
    },
}

/// A method that has samples.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Which.
    pub subject: Subject,
    /// Its name, and where it begins if that is known: `name file:line`.
    pub label: String,
    /// Its name alone.
    pub name: String,
    /// Samples in the method itself.
    pub own: u64,
    /// Those and the ones in code inlined into it.
    pub all: u64,
    /// Whether it is a method of a VM's, compiled or interpreted, and no routine.
    pub method: bool,
}

/// What a name means.
#[derive(Clone, Debug)]
pub enum Choice {
    /// One method.
    One(Subject),
    /// Several, most samples first.
    Several(Vec<Candidate>),
    /// None of those that have samples.
    None,
}

/// A site with samples in a method or in what was inlined into it.
pub(super) struct Found<'a> {
    pub id: SiteId,
    pub site: &'a Site,
    pub samples: u64,
    /// How deep in its chain the method stands; the innermost place counts.
    pub depth: usize,
    /// Whether its boundaries stand behind their bytecodes.
    pub after: bool,
}

/// The sites of a method that have samples, by `samples` of each.
pub(super) fn sites<'a>(profile: &'a Profile, samples: &[u64], chosen: &Subject) -> Vec<Found<'a>> {
    let sites = profile.sites.iter().zip(samples).zip(0..);
    let sites = sites.filter(|((_, samples), _)| **samples > 0);
    let mut found: Vec<Found> = sites
        .filter_map(|((site, &samples), id)| {
            Some(Found {
                id,
                site,
                samples,
                depth: depth_of(profile, site, chosen)?,
                after: true,
            })
        })
        .collect();
    let mut is_found = vec![false; profile.sites.len()];
    for one in &found {
        if let Some(slot) = is_found.get_mut(one.id as usize) {
            *slot = true;
        }
    }
    for (place, &site) in profile.trace.places.iter().zip(&profile.site_of_place) {
        if is_found.get(site as usize) == Some(&true)
            && let Place::Code(code, _) = *place
            && let Some(constituent) = profile.trace.code.constituents.get(code as usize)
            && let PcMap::Boundary { rule, .. } = constituent.map
            && let Ok(at) = found.binary_search_by_key(&site, |one| one.id)
            && let Some(one) = found.get_mut(at)
        {
            one.after = rule == BoundaryRule::AfterInstruction;
        }
    }
    found
}

/// What an entry is annotated as; `None` for what has no name.
#[must_use]
pub fn subject_of_entry(profile: &Profile, entry: EntryId) -> Option<Subject> {
    if !profile.is_named(entry) {
        return None;
    }
    let site = profile.sites.iter().find(|site| site.entry == entry)?;
    Some(subject_of(profile, site, &site.frame))
}

/// The entries of a subject, one for each tier; none where it ran inlined only, and no
/// sample was in itself.
#[must_use]
pub fn entries_of_subject(profile: &Profile, subject: &Subject) -> Vec<EntryId> {
    let is_of = |site: &&Site| depth_of(profile, site, subject) == Some(0);
    let sites = profile.sites.iter().filter(is_of);
    let mut entries: Vec<EntryId> = sites.map(|site| site.entry).collect();
    entries.sort_unstable();
    entries.dedup();
    entries
}

/// Every method that has samples that `filter` takes, in itself or in what was inlined
/// into it; most samples of its own first.
#[must_use]
pub fn candidates(profile: &Profile, filter: &Filter) -> Vec<Candidate> {
    candidates_stoppable(profile, filter, &Stop::new()).unwrap_or_default()
}

/// The same; `None` when `stop` was wished before it was done.
#[must_use]
pub fn candidates_stoppable(
    profile: &Profile,
    filter: &Filter,
    stop: &Stop,
) -> Option<Vec<Candidate>> {
    let counts = slices::Counts::of(profile, filter, stop)?;
    let separator = separator_of(&profile.trace);
    let mut found: FxHashMap<Known, Candidate> = FxHashMap::default();
    let mut seen = FxHashSet::default();
    let sites = profile.sites.iter().zip(&counts.sites);
    for (site, &samples) in sites.filter(|(_, samples)| **samples > 0) {
        let Some(entry) = named_entry(profile, site) else {
            continue;
        };
        seen.clear();
        for (depth, frame) in frames(site).enumerate() {
            let known = Known::of(entry, frame);
            if !site.via.is_empty() && !seen.insert(known) {
                continue;
            }
            let candidate = found.entry(known).or_insert_with(|| {
                let subject = subject_of(profile, site, frame);
                let method = method_of(profile, &subject);
                let name = method.map_or_else(
                    || frame.name.to_string(),
                    |method| full_name(method, separator),
                );
                Candidate {
                    label: label(profile, &subject, &name),
                    subject,
                    name,
                    own: 0,
                    all: 0,
                    method: false,
                }
            });
            candidate.all += samples;
            candidate.own += if depth == 0 { samples } else { 0 };
            candidate.method |= frame.method.is_some()
                || matches!(
                    entry.kind,
                    EntryKind::Code(ConstituentKind::Method | ConstituentKind::Block)
                );
        }
    }
    let mut found: Vec<Candidate> = found.into_values().collect();
    found.sort_by(|a, b| {
        let samples = (b.own, b.all).cmp(&(a.own, a.all));
        samples.then_with(|| (&a.label, module(a)).cmp(&(&b.label, module(b))))
    });
    Some(found)
}

/// What a [`Subject`] is known by: there are many sites of each.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Known<'a> {
    Method(MethodKey),
    /// Name and module.
    Named(&'a str, &'a str),
}

impl<'a> Known<'a> {
    fn of(entry: &'a Entry, frame: &'a Frame) -> Self {
        match frame.method {
            Some(key) => Known::Method(key),
            None => Known::Named(&frame.name, &entry.module),
        }
    }
}

fn module(candidate: &Candidate) -> &str {
    match &candidate.subject {
        Subject::Method(_) => "",
        Subject::Named { module, .. } => module,
    }
}

/// Which of `candidates` is meant by `wanted`: a full name, a part of one, or the same in
/// other letter case. A name may be followed by where it begins, as [`Candidate::label`]
/// has it. Without a name, the one with most samples of its own; of a VM, the first of
/// its methods.
#[must_use]
pub fn choose(profile: &Profile, candidates: &[Candidate], wanted: Option<&str>) -> Choice {
    let Some(wanted) = wanted else {
        let is_method = |c: &&Candidate| profile.is_native() || c.method;
        let hottest = candidates.iter().find(is_method).or(candidates.first());
        return hottest.map_or(Choice::None, |c| Choice::One(c.subject.clone()));
    };
    let lower = wanted.to_lowercase();
    let exact = |c: &&Candidate| c.name == wanted || c.label == wanted;
    let part = |c: &&Candidate| c.label.contains(wanted);
    let any_case = |c: &&Candidate| c.label.to_lowercase().contains(&lower);
    let steps: [&dyn Fn(&&Candidate) -> bool; 3] = [&exact, &part, &any_case];
    for fits in steps {
        let fitting: Vec<&Candidate> = candidates.iter().filter(fits).collect();
        match fitting.as_slice() {
            [] => {}
            [one] => return Choice::One(one.subject.clone()),
            several => return Choice::Several(several.iter().copied().cloned().collect()),
        }
    }
    Choice::None
}

/// The entry of a site whose code has a name.
fn named_entry<'a>(profile: &'a Profile, site: &Site) -> Option<&'a Entry> {
    let entry = profile.entries.get(site.entry as usize)?;
    profile.is_named(site.entry).then_some(entry)
}

pub(super) fn subject_of(profile: &Profile, site: &Site, frame: &Frame) -> Subject {
    if let Some(key) = frame.method {
        return Subject::Method(key);
    }
    let entry = profile.entries.get(site.entry as usize);
    Subject::Named {
        name: Arc::clone(&frame.name),
        module: entry.map_or_else(String::new, |entry| entry.module.clone()),
    }
}

/// How deep in a site's chain a method stands; the innermost place counts.
pub(super) fn depth_of(profile: &Profile, site: &Site, chosen: &Subject) -> Option<usize> {
    frames(site).position(|frame| match chosen {
        Subject::Method(key) => frame.method == Some(*key) && profile.is_named(site.entry),
        Subject::Named { name, module } => {
            frame.method.is_none()
                && frame.name == *name
                && named_entry(profile, site).is_some_and(|entry| entry.module == *module)
        }
    })
}

/// The tiers in which a method has samples, most first.
pub(super) fn tiers(profile: &Profile, sites: &[Found]) -> Vec<Tier> {
    let mut tiers: Vec<Tier> = Vec::new();
    for &Found { site, samples, .. } in sites {
        let Some(entry) = named_entry(profile, site) else {
            continue;
        };
        let same = |tier: &&mut Tier| tier.name == entry.tier && tier.region == entry.region;
        match tiers.iter_mut().find(same) {
            Some(tier) => tier.samples += samples,
            None => tiers.push(Tier {
                region: entry.region,
                name: entry.tier.clone(),
                samples,
            }),
        }
    }
    tiers.sort_by(|a, b| {
        let samples = b.samples.cmp(&a.samples);
        samples.then_with(|| (&a.name, a.region as usize).cmp(&(&b.name, b.region as usize)))
    });
    tiers
}

/// The index of a site's tier in `tiers`.
pub(super) fn tier_of(profile: &Profile, site: &Site, tiers: &[Tier]) -> usize {
    let entry = profile.entries.get(site.entry as usize);
    let same = |tier: &Tier| {
        entry.is_some_and(|entry| tier.name == entry.tier && tier.region == entry.region)
    };
    tiers.iter().position(same).unwrap_or(0)
}

/// Whether two methods are called and placed the same.
pub(super) fn are_namesakes(a: &Method, b: &Method) -> bool {
    (&a.class, &a.name, &a.file, a.line) == (&b.class, &b.name, &b.file, b.line)
}

/// A subject's record, if it is a method that the recording holds.
pub(super) fn method_of<'a>(profile: &'a Profile, subject: &Subject) -> Option<&'a Method> {
    match subject {
        Subject::Method(key) => profile.trace.methods.get(key),
        Subject::Named { .. } => None,
    }
}

/// The full name of a subject.
pub(super) fn name_of(profile: &Profile, subject: &Subject) -> String {
    match (subject, method_of(profile, subject)) {
        (Subject::Named { name, .. }, _) => name.to_string(),
        (_, Some(method)) => full_name(method, separator_of(&profile.trace)),
        (_, None) => String::new(),
    }
}

/// A name, and where its method begins.
fn label(profile: &Profile, subject: &Subject, name: &str) -> String {
    if let Subject::Named { module, .. } = subject
        && !module.is_empty()
    {
        return format!("{name} [{}]", module.trim_matches(['[', ']']));
    }
    match method_of(profile, subject) {
        Some(method) if method.line != 0 => {
            let file = method.file.rsplit('/').next().unwrap_or(&method.file);
            format!("{name} {file}:{}", method.line)
        }
        _ => name.to_owned(),
    }
}
