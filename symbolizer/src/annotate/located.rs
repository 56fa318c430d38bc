//! A method's sites and places in a profile, independent of filters.

use super::find::are_namesakes;
use super::subject::{depth_of, method_of};
use super::{ByMethod, Origin, Subject};
use crate::ids::{CodeId, PlaceId};
use crate::profile::{Profile, SiteId};
use crate::time_buckets::{Selection, Stop, each_place};
use crate::trace::Place;
use rustc_hash::FxHashMap;
use vmscope_records::{BoundaryRule, Constituent, ConstituentKind, PcMap};

/// Place outside the method.
const NONE: u32 = u32::MAX;

/// Place outside the selection.
const LEFT_OUT: u32 = u32::MAX - 1;

/// A method's sites and places. [`Located::of`] reads all places of the profile.
#[derive(Clone, Debug)]
pub struct Located {
    pub(super) subject: Subject,
    /// See [`Profile::steps`].
    steps: u64,
    /// By site, ascending.
    pub(super) sites: Vec<Within>,
    /// Ascending by place: places in generated code.
    pub(super) places: Vec<At>,
    /// Constituents compiled from the method.
    pub(super) codes: Vec<CodeId>,
    /// Version by site, if every site belongs to a single version; sums by site then suffice to
    /// distinguish versions.
    pub(super) origin_of_site: Option<FxHashMap<SiteId, Origin>>,
}

/// A site whose chain contains the method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Within {
    pub site: SiteId,
    /// Depth in the chain; the innermost frame counts.
    pub depth: usize,
    /// See [`super::Spot::Range`].
    pub after: bool,
}

/// A place of the method.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub place: PlaceId,
    pub site: SiteId,
    pub origin: Origin,
}

impl Located {
    /// Finds sites and places.
    #[must_use]
    pub fn of(profile: &Profile, methods: &ByMethod, subject: &Subject) -> Self {
        let trace = &profile.trace;
        let sites = methods.sites_of(profile, subject).into_iter();
        let sites = sites.filter_map(|id| {
            Some(Within {
                site: id,
                depth: depth_of(profile, &profile.sites[id], subject)?,
                after: true,
            })
        });
        let is_own = own_code(profile, subject);
        let codes = trace.code.constituents.enumerated();
        let codes = codes.filter_map(|(code, one)| is_own(one).then_some(code));
        let mut located = Located {
            subject: subject.clone(),
            steps: profile.steps,
            sites: sites.collect(),
            places: Vec::new(),
            codes: codes.collect(),
            origin_of_site: None,
        };
        located.take_places(profile);
        located
    }

    /// Whether `profile` has made no step since this search. After a step, places have other ids.
    #[must_use]
    pub fn is_of(&self, profile: &Profile) -> bool {
        self.steps == profile.steps
    }

    /// The method.
    #[must_use]
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    fn take_places(&mut self, profile: &Profile) {
        let trace = &profile.trace;
        let mut has = profile.sites.with_each(false);
        for within in &self.sites {
            has[within.site] = true;
        }
        let mut of_code: FxHashMap<CodeId, Origin> = FxHashMap::default();
        let mut of_site: Option<FxHashMap<SiteId, Origin>> = Some(FxHashMap::default());
        for ((place, &what), &site) in trace.places.enumerated().zip(&profile.site_of_place) {
            if !has[site] {
                continue;
            }
            let origin = match what {
                Place::Code(code, _) => {
                    let constituent = trace.constituent(code);
                    if let PcMap::Boundary { rule, .. } = &constituent.map
                        && let Ok(at) = self.sites.binary_search_by_key(&site, |one| one.site)
                        && let Some(within) = self.sites.get_mut(at)
                    {
                        within.after = *rule == BoundaryRule::AfterInstruction;
                    }
                    *of_code
                        .entry(code)
                        .or_insert_with(|| match self.codes.binary_search(&code) {
                            Ok(_) => Origin::Code(constituent.key),
                            Err(_) => Origin::Elsewhere,
                        })
                }
                Place::Interpreted { .. } | Place::Entering { .. } => Origin::Interpreted,
                _ => {
                    of_site = None;
                    continue;
                }
            };
            let known = of_site
                .as_mut()
                .map(|all| *all.entry(site).or_insert(origin));
            if known.is_some_and(|known| known != origin) {
                of_site = None;
            }
            self.places.push(At {
                place,
                site,
                origin,
            });
        }
        self.origin_of_site = of_site;
    }

    /// Version by site, if sums by site distinguish versions and no sample was dropped: figures on
    /// versions cover only samples kept one by one.
    pub(super) fn origins(&self, profile: &Profile) -> Option<&FxHashMap<SiteId, Origin>> {
        let origins = self.origin_of_site.as_ref();
        origins.filter(|_| profile.time_buckets.dropped() == 0)
    }

    /// The method's single samples in a selection, in time order. `None` if `stop` was requested
    /// first.
    pub(super) fn hits(
        &self,
        profile: &Profile,
        selection: &Selection,
        stop: &Stop,
    ) -> Option<Hits> {
        let mut number_of_place = profile.trace.places.with_each(NONE);
        for (at, number) in self.places.iter().zip(0..) {
            number_of_place[at.place] = number;
        }
        if selection.spots.is_some() {
            for (number, &spot) in number_of_place
                .iter_mut()
                .zip(&profile.time_buckets.spot_of_place)
            {
                if !selection.takes_spot(spot) {
                    *number = LEFT_OUT;
                }
            }
        }
        let mut hits = Hits::default();
        each_place(
            profile,
            &selection.everywhere(),
            stop,
            |place, _| match number_of_place[place] {
                LEFT_OUT => {}
                NONE => hits.others += 1,
                place => {
                    let others = u32::try_from(std::mem::take(&mut hits.others));
                    hits.all.push(Hit {
                        others: others.unwrap_or(u32::MAX),
                        place,
                    });
                    hits.total += u64::from(others.unwrap_or(u32::MAX)) + 1;
                }
            },
        )?;
        hits.total += hits.others;
        Some(hits)
    }
}

/// A sample of the method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    /// Other methods' samples since the previous hit.
    pub others: u32,
    /// Index in [`Located::places`].
    pub place: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Hits {
    /// Samples of the method.
    pub all: Vec<Hit>,
    /// Other methods' samples after the last hit.
    pub others: u64,
    /// All samples.
    pub total: u64,
}

impl Hits {
    /// Hits by index in [`Located::places`].
    pub fn by_place(&self, located: &Located) -> Vec<u64> {
        let mut counts = vec![0; located.places.len()];
        for hit in &self.all {
            counts[hit.place as usize] += 1;
        }
        counts
    }
}

/// Tests constituents: compiled from the method?
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
