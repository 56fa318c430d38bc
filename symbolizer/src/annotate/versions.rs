//! Versions of a method: interpreted, compiled over time by every tier, and inlined elsewhere.
//! Every sample belongs to one version.

use super::{Located, Taken};
use crate::profile::Case;
use crate::time_buckets::Stop;
use rustc_hash::FxHashMap;
use vmscope_records::{ConstituentKey, TimeNs};

/// Kind of code where a method's samples fell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// An interpreter that reported the method.
    Interpreted,
    /// Code compiled from the method.
    Code(ConstituentKey),
    /// Code of other methods with the method inlined.
    Elsewhere,
}

/// A version of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Origin of its samples.
    pub origin: Origin,
    /// The VM's word for compiler or level; empty for VMs with a single tier, interpreted code and
    /// inlined copies.
    pub tier: String,
    /// Code name; may differ from the method's name, for instance for on-stack replacement.
    pub name: String,
    /// First time with known presence.
    pub since: Option<TimeNs>,
    /// Time of known removal; `None` if the code stayed or no removal was recorded.
    pub gone: Option<TimeNs>,
    /// Bytes of machine code.
    pub bytes: Option<u64>,
    /// The cases of a PIC.
    pub cases: Vec<Case>,
    /// Samples in this version, including inlined methods.
    pub samples: u64,
}

/// Versions of a method: interpreted first, then compiled code in time order (also code without
/// samples), then inlined copies; empty for native functions. `None` if `stop` was requested first.
///
/// Counts only samples kept one by one; dropped samples ([`crate::time_buckets`]) lack a version.
#[must_use]
pub fn versions(taken: &Taken, located: &Located, stop: &Stop) -> Option<Vec<Version>> {
    let trace = &taken.profile.trace;
    let mut samples = by_origin(taken, located, stop)?;
    let mut versions = Vec::new();
    for &code in &located.codes {
        let constituent = trace.constituent(code);
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

/// Single samples by version.
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
                add(origin, counts.sites[site]);
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
