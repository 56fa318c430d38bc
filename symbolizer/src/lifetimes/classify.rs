//! Pretenuring decisions for allocation sites, after Blackburn, Hertz, McKinley, Moss and Yang,
//! "Profile-Based Pretenuring", TOPLAS 29(1), 2007.
//!
//! Ages are in allocated bytes, divided by the greatest size of all live objects. An object is
//!
//! - *immortal* if it died later than halfway between its birth and the end of the run;
//! - else *short-lived* if its age was below `ta`;
//! - else *long-lived*.
//!
//! With S, L and I, the shares of the three in a site's bytes, a site is immortal if
//! `I > S + L + hif`, else long-lived if `I + L > S + hlf`, else short-lived. The paper has exact
//! deaths. Here an object dies right after the last collection that saw it alive: the time until the
//! next collection makes no object long-lived. Objects that no collection observed do not count.

use super::estimate::{Estimate, Sums};
use super::event::Groups;
use super::groups::{Allocator, GroupKey, Grouping};
use super::{Lifetimes, Measure, Object};
use std::cmp::Reverse;

/// Parameters of the decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// `ta`: least age of long-lived objects, as a share of the greatest live size.
    pub age: f64,
    /// `hif`: least excess of immortal bytes in immortal sites, as a share of the site's bytes.
    pub immortal_excess: f64,
    /// `hlf`: least excess of long-lived and immortal bytes in long-lived sites, as such a share.
    pub long_excess: f64,
    /// Sites with a smaller share in all allocated bytes get no decision.
    pub least_share: f64,
}

impl Default for Parameters {
    /// The parameters of the paper and of Illimani: 0.45, 0, 0.6, 0.000002.
    fn default() -> Self {
        Parameters {
            age: 0.45,
            immortal_excess: 0.0,
            long_excess: 0.6,
            least_share: 0.000_002,
        }
    }
}

/// The lifetime of a site's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SiteLifetime {
    /// Not to be pretenured.
    Short,
    /// To be allocated in old space.
    Long,
    /// Advice: allocate in a space without collections, or in old space if the VM has no such space.
    Immortal,
}

/// A decision for a site.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteClass {
    /// The site; `None`: unknown.
    pub site: Option<Allocator>,
    /// The decision.
    pub lifetime: SiteLifetime,
    /// Whether the error of the shares leaves no doubt whether to pretenure.
    pub is_certain: bool,
    /// Share of short-lived objects in the observed bytes, 0 to 1.
    pub short: Estimate,
    /// Share of long-lived objects.
    pub long: Estimate,
    /// Share of immortal objects.
    pub immortal: Estimate,
    /// Observed objects.
    pub objects: Estimate,
    /// Bytes of `objects`.
    pub bytes: Estimate,
    /// Bytes of objects that no collection observed.
    pub unobserved_bytes: Estimate,
}

impl SiteClass {
    /// Whether its objects are to be allocated outside of new space.
    #[must_use]
    pub fn is_pretenured(&self) -> bool {
        self.lifetime != SiteLifetime::Short
    }
}

/// Decisions for all sites.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Classification {
    /// Greatest size of all live objects, in bytes (weighted).
    pub max_live_bytes: f64,
    /// The decisions, most bytes first.
    pub sites: Vec<SiteClass>,
    /// Number of sites without a decision, and their bytes: too few or no observed bytes.
    pub pruned: (u64, f64),
}

/// Sums of a site. `x` is bytes; `y` is the bytes of the short-lived, long-lived and immortal.
#[derive(Clone, Default)]
struct Site {
    shares: [Sums; 3],
    observed: Sums,
    unobserved: Sums,
}

impl Classification {
    /// Decides on all sites with single records; `None` if the allocated bytes at births are unknown.
    #[must_use]
    pub fn of(lifetimes: &Lifetimes, parameters: &Parameters) -> Option<Self> {
        let max_live_bytes = max_live_bytes(lifetimes);
        let end = lifetimes.allocated_at(lifetimes.end)?;
        let mut groups = Groups::new(lifetimes, Grouping::Site);
        let mut sites: Vec<Site> = Vec::new();
        for object in &lifetimes.objects {
            let event = lifetimes.event(object, Measure::AllocatedBytes)?;
            let group = groups.number(event.class, event.site) as usize;
            if group >= sites.len() {
                sites.resize(group + 1, Site::default());
            }
            let site = &mut sites[group];
            if !event.is_dead && object.last_survived.is_none() {
                event.add_to(&mut site.unobserved);
                continue;
            }
            event.add_to(&mut site.observed);
            let rest = end - object.allocated_bytes()? as f64;
            let lifetime = if !event.is_dead || event.least > rest / 2.0 {
                2
            } else {
                usize::from(event.least >= parameters.age * max_live_bytes)
            };
            for (index, sums) in site.shares.iter_mut().enumerate() {
                let part = if index == lifetime { event.bytes } else { 0.0 };
                sums.add(event.objects, event.variance, (event.bytes, part));
            }
        }
        let all = |site: &Site| site.observed.y().value + site.unobserved.y().value;
        let least = parameters.least_share * sites.iter().map(all).sum::<f64>();
        let mut classification = Classification {
            max_live_bytes,
            ..Classification::default()
        };
        for (site, key) in sites.iter().zip(&groups.keys) {
            if site.observed.y().value == 0.0 || all(site) < least {
                classification.pruned.0 += 1;
                classification.pruned.1 += all(site);
            } else if let GroupKey::Site(key) = *key {
                classification.sites.push(site.decide(key, parameters));
            }
        }
        (classification.sites).sort_by(|a, b| {
            let sites = || Reverse(b.site).cmp(&Reverse(a.site));
            b.bytes.value.total_cmp(&a.bytes.value).then_with(sites)
        });
        Some(classification)
    }
}

impl Site {
    fn decide(&self, site: Option<Allocator>, parameters: &Parameters) -> SiteClass {
        let [short, long, immortal] = self.shares.map(|sums| sums.ratio());
        // `I - S - L - hif` and `I + L - S - hlf`, as the shares sum to 1.
        let by_immortal = 2.0 * immortal.value - 1.0 - parameters.immortal_excess;
        let by_long = 1.0 - 2.0 * short.value - parameters.long_excess;
        let (doubt_of_immortal, doubt_of_long) = (2.0 * immortal.error, 2.0 * short.error);
        let lifetime = match (by_immortal > 0.0, by_long > 0.0) {
            (true, _) => SiteLifetime::Immortal,
            (false, true) => SiteLifetime::Long,
            (false, false) => SiteLifetime::Short,
        };
        SiteClass {
            site,
            lifetime,
            is_certain: match lifetime {
                SiteLifetime::Short => {
                    by_immortal <= -doubt_of_immortal && by_long <= -doubt_of_long
                }
                _ => by_immortal > doubt_of_immortal || by_long > doubt_of_long,
            },
            short,
            long,
            immortal,
            objects: self.observed.x(),
            bytes: self.observed.y(),
            unobserved_bytes: self.unobserved.y(),
        }
    }
}

/// The greatest size of all live objects in bytes, if objects die right after the last collection
/// that saw them alive.
#[must_use]
pub fn max_live_bytes(lifetimes: &Lifetimes) -> f64 {
    let size = |object: &Object| object.weight * object.bytes as f64;
    let death = |object: &Object| {
        object.death()?;
        let least = lifetimes.least_lifetime(object, Measure::Time)?;
        Some((object.birth.0 as f64 + least, size(object)))
    };
    let mut deaths: Vec<_> = lifetimes.objects.iter().filter_map(death).collect();
    deaths.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut deaths = deaths.into_iter().peekable();
    let (mut live, mut most) = (0.0, 0.0);
    for object in &lifetimes.objects {
        let birth = object.birth.0 as f64;
        while let Some((_, bytes)) = deaths.next_if(|(time, _)| *time < birth) {
            live -= bytes;
        }
        live += size(object);
        most = f64::max(most, live);
    }
    most
}
