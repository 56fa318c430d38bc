//! The versions of a method: the code that was made of it over time, by every tier, and
//! where else it ran. Each of its samples is of one.

use super::{Located, Taken};
use crate::profile::Case;
use crate::time_buckets::Stop;
use rustc_hash::FxHashMap;
use vmscope_records::{ConstituentKey, TimeNs};

/// Where a method's samples were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// In an interpreter that showed the method.
    Interpreted,
    /// In code that was made of it.
    Code(ConstituentKey),
    /// In code of other methods, into which it was inlined.
    Elsewhere,
}

/// A version of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Which.
    pub origin: Origin,
    /// Which compiler or level made it, in the VM's word; empty where there is one only,
    /// and for what is no code of the method's own.
    pub tier: String,
    /// What it is called: on-stack replacement, for instance, may differ from the method.
    pub name: String,
    /// When it was first known to be there.
    pub since: Option<TimeNs>,
    /// When it was known to be gone; `None` where it stayed, or its end is not told.
    pub gone: Option<TimeNs>,
    /// Bytes of machine code.
    pub bytes: Option<u64>,
    /// The cases of a PIC.
    pub cases: Vec<Case>,
    /// Samples in it, of the method and of what was inlined into it.
    pub samples: u64,
}

/// The versions of a method: what was interpreted first, then the code made of it, with
/// samples or without, in the order of time, then what ran inlined in others. None of
/// native functions. `None` when `stop` was wished before it was done.
///
/// Only single samples tell which code they fell in: where older ones were forgotten
/// ([`crate::time_buckets`]), they are not counted here.
#[must_use]
pub fn versions(taken: &Taken, located: &Located, stop: &Stop) -> Option<Vec<Version>> {
    let trace = &taken.profile.trace;
    let mut samples = by_origin(taken, located, stop)?;
    let mut versions = Vec::new();
    for &code in &located.codes {
        let Some(constituent) = trace.constituent(code) else {
            continue;
        };
        let origin = Origin::Code(constituent.key);
        versions.push(Version {
            origin,
            tier: constituent.tier.clone(),
            name: constituent.name.clone(),
            since: Some(constituent.since),
            gone: trace.code.gone_of(code).map(|gone| gone.time),
            bytes: Some(constituent.end.0.saturating_sub(constituent.start.0)),
            cases: constituent.cases.iter().map(Case::from).collect(),
            samples: samples.remove(&origin).unwrap_or(0),
        });
    }
    let others = samples.into_iter().map(|(origin, samples)| Version {
        origin,
        tier: String::new(),
        name: String::new(),
        since: None,
        gone: None,
        bytes: None,
        cases: Vec::new(),
        samples,
    });
    versions.extend(others);
    versions.sort_by_key(|version| {
        let group = match version.origin {
            Origin::Interpreted => 0,
            Origin::Code(_) => 1,
            Origin::Elsewhere => 2,
        };
        (group, version.since, version.origin)
    });
    Some(versions)
}

/// How many single samples each version has.
fn by_origin(taken: &Taken, located: &Located, stop: &Stop) -> Option<FxHashMap<Origin, u64>> {
    let (profile, selection) = (taken.profile, &taken.selection);
    let mut samples: FxHashMap<Origin, u64> = FxHashMap::default();
    if located.places.is_empty() {
        return Some(samples);
    }
    let mut add = |origin: Origin, count: u64| {
        if count > 0 {
            *samples.entry(origin).or_default() += count;
        }
    };
    match located.origins(profile) {
        Some(of_site) => {
            let counts = taken.counts(stop)?;
            for (&site, &origin) in of_site {
                let count = counts.sites.get(site as usize).copied();
                add(origin, count.unwrap_or(0));
            }
        }
        None => {
            let hits = located.hits(profile, selection, stop)?;
            for (at, count) in located.places.iter().zip(hits.by_place(located)) {
                add(at.origin, count);
            }
        }
    }
    Some(samples)
}
