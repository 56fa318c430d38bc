//! Which method a name or an entry means, and what it is called.

use super::candidates::Candidate;
use super::{Located, Tier, frames};
use crate::build::code::{full_name, separator_of};
use crate::profile::{Entry, EntryId, Frame, Profile, Site, SiteId};
use std::sync::Arc;
use vmscope_records::{Method, MethodKey};

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
pub(super) fn sites<'a>(
    profile: &'a Profile,
    samples: &[u64],
    located: &Located,
) -> Vec<Found<'a>> {
    let sites = located.sites.iter().filter_map(|within| {
        let samples = samples.get(within.site as usize).copied();
        Some(Found {
            id: within.site,
            site: profile.sites.get(within.site as usize)?,
            samples: samples.filter(|samples| *samples > 0)?,
            depth: within.depth,
            after: within.after,
        })
    });
    sites.collect()
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
pub(super) fn named_entry<'a>(profile: &'a Profile, site: &Site) -> Option<&'a Entry> {
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
