//! Fills the tree of a method's places with samples and computes errors of shares.

use super::body::{Tree, Worked};
use super::{Annotation, Located, MAX_DEPTH, Taken, Tally, Tier, find};
use crate::ids::IndexVec;
use crate::profile::{Profile, SiteId};
use crate::summary::Inferred;
use crate::summary::errors::batch_errors;
use crate::time_buckets::{self, Stop};
use rustc_hash::FxHashMap;
use std::sync::Arc;

pub(super) struct Gathered {
    tree: Tree,
    tiers: Vec<Tier>,
    own: Tally,
    all: Tally,
    into: FxHashMap<Arc<str>, u64>,
    too_deep: u64,
    /// Of `own` and of `all`.
    inferred: [Inferred; 2],
    /// By site: error group.
    group_of_site: IndexVec<SiteId, Option<u32>>,
}

/// Annotates all versions together. `None` if `stop` was requested first.
pub(super) fn of_all(taken: &Taken, located: &Located, stop: &Stop) -> Option<Annotation> {
    let (profile, selection) = (taken.profile, &taken.selection);
    let counts = taken.counts(stop)?;
    let gathered = Gathered::of(profile, located, &counts.sites);
    let group_of = |spot: &time_buckets::Spot| gathered.group(spot.site);
    let of_method = selection.only(&profile.time_buckets, |spot| group_of(spot).is_some());
    let errors = batch_errors(profile, &of_method, group_of, gathered.size(), stop)?;
    let is_of = |spot: &time_buckets::Spot| gathered.group(spot.site).map(|_| 0);
    let of_total = batch_errors(profile, selection, is_of, (counts.total, 1), stop)?;
    Some(gathered.annotation(counts.total, of_total.first().copied(), &errors))
}

impl Gathered {
    /// `samples`: by site.
    pub fn of(profile: &Profile, located: &Located, samples: &IndexVec<SiteId, u64>) -> Self {
        let sites = find::sites(profile, samples, located);
        let mut gathered = Gathered {
            tree: Tree::default(),
            tiers: find::tiers(profile, &sites),
            own: Tally::default(),
            all: Tally::default(),
            into: FxHashMap::default(),
            too_deep: 0,
            inferred: Default::default(),
            group_of_site: profile.sites.with_each(None),
        };
        for found in &sites {
            let (site, samples, depth) = (found.site, found.samples, found.depth);
            let worked = Worked {
                samples,
                exactness: site.exactness,
                tier: find::tier_of(profile, site, &gathered.tiers),
                tiers: gathered.tiers.len(),
            };
            gathered.all.add(&worked);
            let [of_own, of_all] = &mut gathered.inferred;
            if depth == 0 {
                gathered.own.add(&worked);
                of_own.take(samples, site.method_error);
            }
            // The outermost method of a chain is certain.
            if depth < site.via.len() {
                of_all.take(samples, site.method_error);
            }
            if let Some(outer) = site.via.get(depth) {
                *gathered.into.entry(Arc::clone(&outer.name)).or_default() += samples;
            }
            gathered.too_deep += if depth > MAX_DEPTH { samples } else { 0 };
            gathered.group_of_site[found.id] =
                (gathered.tree).put(profile, site, depth, &worked, found.after);
        }
        for (index, tier) in gathered.tiers.iter_mut().enumerate() {
            tier.samples = gathered.all.tiers.get(index).copied().unwrap_or(0);
        }
        gathered
    }

    /// Error group of a site; `None` for sites of other methods.
    pub fn group(&self, site: SiteId) -> Option<u32> {
        self.group_of_site[site]
    }

    /// Samples and number of groups.
    pub fn size(&self) -> (u64, usize) {
        (self.all.samples(), self.tree.groups())
    }

    /// Annotation without the method's description. `error`: of the method's share in `total`;
    /// `errors`: by group.
    pub fn annotation(self, total: u64, error: Option<f64>, errors: &[f64]) -> Annotation {
        let mut into: Vec<_> = self.into.into_iter().collect();
        let [of_own, of_all] = self.inferred;
        into.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Annotation {
            total,
            all: self.all,
            own: self.own,
            error: error.map(|error| error + of_all.error(total)),
            inferred: of_all,
            own_inferred: of_own,
            tiers: self.tiers,
            into,
            rows: self.tree.into_rows(errors),
            too_deep: self.too_deep,
            ..Annotation::default()
        }
    }
}
