//! Methods by name; sites and tiers of a method.

use super::candidates::Candidate;
use super::subject::{Subject, named_entry};
use super::{Located, Tier};
use crate::ids::IndexVec;
use crate::profile::{Profile, Site, SiteId};
use vmscope_records::Method;

/// Result of a search by name.
#[derive(Clone, Debug)]
pub enum Choice {
    /// One method.
    One(Subject),
    /// Several, most samples first.
    Several(Vec<Candidate>),
    /// No method with samples, also in called code, matches.
    None,
}

/// A site with samples in a method, including inlined methods.
pub(super) struct Found<'a> {
    pub id: SiteId,
    pub site: &'a Site,
    pub samples: u64,
    /// Depth of the method in the site's chain; the innermost frame counts.
    pub depth: usize,
    /// See [`super::Spot::Range`].
    pub after: bool,
}

/// A method's sites with samples; `samples` by site.
pub(super) fn sites<'a>(
    profile: &'a Profile,
    samples: &IndexVec<SiteId, u64>,
    located: &Located,
) -> Vec<Found<'a>> {
    let sites = located.sites.iter().map(|within| Found {
        id: within.site,
        site: &profile.sites[within.site],
        samples: samples[within.site],
        depth: within.depth,
        after: within.after,
    });
    sites.filter(|found| found.samples > 0).collect()
}

/// Names of an item, the longest last.
type Labels<'a> = [&'a str; 2];

/// Finds items by full name, else by part of a name, else ignoring case.
pub fn fitting<'a, T>(
    all: &'a [T],
    wanted: &str,
    labels: impl Fn(&'a T) -> Labels<'a>,
) -> Vec<&'a T> {
    let lower = wanted.to_lowercase();
    let exact = |labels: Labels<'_>| labels.contains(&wanted);
    let part = |[_, label]: Labels<'_>| label.contains(wanted);
    let any_case = |[_, label]: Labels<'_>| label.to_lowercase().contains(&lower);
    let steps: [&dyn Fn(Labels<'_>) -> bool; 3] = [&exact, &part, &any_case];
    let mut found = steps
        .into_iter()
        .map(|fits| -> Vec<&'a T> { all.iter().filter(|one| fits(labels(one))).collect() });
    found.find(|found| !found.is_empty()).unwrap_or_default()
}

/// Finds candidates by [`fitting`] names; `wanted` may include the start as in
/// [`Candidate::label`]. Among equally fitting candidates, those without own samples count only if
/// no candidate has own samples. Without a name, chooses the candidate with most own
/// samples; in a VM's profile, the first VM method.
#[must_use]
pub fn choose(profile: &Profile, candidates: &[Candidate], wanted: Option<&str>) -> Choice {
    let has_samples = |c: &&Candidate| c.all > 0;
    let Some(wanted) = wanted else {
        let is_method = |c: &&Candidate| profile.is_native() || c.method;
        let mut sampled = candidates.iter().filter(has_samples);
        let first = sampled.clone().next();
        let hottest = sampled.find(is_method).or(first);
        return hottest.map_or(Choice::None, |c| Choice::One(c.subject.clone()));
    };
    let mut fitting = fitting(candidates, wanted, |c| [&c.name, &c.label]);
    if fitting.iter().any(has_samples) {
        fitting.retain(has_samples);
    }
    match fitting.as_slice() {
        [] => Choice::None,
        [one] => Choice::One(one.subject.clone()),
        several => Choice::Several(several.iter().copied().cloned().collect()),
    }
}

/// Tiers with samples, most samples first.
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

/// Index of a site's tier in `tiers`.
pub(super) fn tier_of(profile: &Profile, site: &Site, tiers: &[Tier]) -> usize {
    let entry = &profile.entries[site.entry];
    let same = |tier: &Tier| tier.name == entry.tier && tier.region == entry.region;
    tiers.iter().position(same).unwrap_or(0)
}

/// Whether class, name, file and line match.
pub(super) fn are_namesakes(a: &Method, b: &Method) -> bool {
    (&a.class, &a.name, &a.file, a.line) == (&b.class, &b.name, &b.file, b.line)
}
