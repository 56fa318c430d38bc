//! The versions of a method: the code that was made of it over time, by every tier, and
//! where else it ran. Each of its samples is of one.

use super::find::{are_namesakes, depth_of, method_of};
use super::{STOP_EVERY, Subject};
use crate::profile::{Case, Profile};
use crate::slices::Stop;
use crate::summary::Filter;
use crate::summary::places;
use crate::trace::Place;
use rustc_hash::FxHashMap;
use vmscope_records::{Constituent, ConstituentKey, ConstituentKind, TimeNs};

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
/// ([`crate::slices`]), they are not counted here.
#[must_use]
pub fn versions(
    profile: &Profile,
    filter: &Filter,
    chosen: &Subject,
    stop: &Stop,
) -> Option<Vec<Version>> {
    let trace = &profile.trace;
    let origins = origins(profile, chosen);
    let mut samples: FxHashMap<Origin, u64> = FxHashMap::default();
    for (index, place) in places(profile, filter).enumerate() {
        if index.is_multiple_of(STOP_EVERY) && stop.is_stopped() {
            return None;
        }
        if let Some(&Some(origin)) = origins.get(place as usize) {
            *samples.entry(origin).or_default() += 1;
        }
    }
    let is_own = own_code(profile, chosen);
    let mut versions = Vec::new();
    for (constituent, code) in trace.code.constituents.iter().zip(0..) {
        if !is_own(constituent) {
            continue;
        }
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

/// By place: which version of the method is there; `None` of other places and of native
/// code, which has one version only.
pub(super) fn origins(profile: &Profile, chosen: &Subject) -> Vec<Option<Origin>> {
    let trace = &profile.trace;
    let sites = profile.sites.iter();
    let has: Vec<bool> = sites
        .map(|site| depth_of(profile, site, chosen).is_some())
        .collect();
    let is_own = own_code(profile, chosen);
    let mut of_code: FxHashMap<u32, Origin> = FxHashMap::default();
    let places = trace.places.iter().zip(&profile.site_of_place);
    let origin = |(place, &site): (&Place, &u32)| {
        if has.get(site as usize) != Some(&true) {
            return None;
        }
        match *place {
            Place::Code(code, _) => {
                let origin = of_code.entry(code).or_insert_with(|| {
                    let constituent = trace.code.constituents.get(code as usize);
                    let own = constituent.filter(|constituent| is_own(constituent));
                    own.map_or(Origin::Elsewhere, |own| Origin::Code(own.key))
                });
                Some(*origin)
            }
            Place::Interpreted { .. } | Place::Entering { .. } => Some(Origin::Interpreted),
            _ => None,
        }
    };
    places.map(origin).collect()
}

/// Whether a constituent is code that was made of the method.
fn own_code<'a>(profile: &'a Profile, chosen: &'a Subject) -> impl Fn(&Constituent) -> bool + 'a {
    let methods = &profile.trace.methods;
    let method = method_of(profile, chosen);
    move |constituent| {
        let is_code = !matches!(
            constituent.kind,
            ConstituentKind::Bytecodes | ConstituentKind::MethodObject | ConstituentKind::Free
        );
        let known = constituent.method.and_then(|key| methods.get(&key));
        let is_of = match (chosen, known) {
            (Subject::Method(key), Some(known)) => {
                known.key == *key || method.is_some_and(|method| are_namesakes(method, known))
            }
            (Subject::Named { name, module }, None) => {
                module.is_empty() && **name == *constituent.name
            }
            _ => false,
        };
        is_code && is_of
    }
}
