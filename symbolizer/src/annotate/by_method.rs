//! Methods of each site, independent of filters.

use super::frames;
use super::subject::{Subject, is_subject, named_entry};
use crate::ids::{Id, IndexVec};
use crate::profile::{Entry, EntryId, EntryKind, Frame, Profile, Site, SiteId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use vmscope_records::{ConstituentKind, MethodKey};

/// All methods, and for each site its method plus the inlining callers. [`ByMethod::of`] reads all
/// sites.
#[derive(Clone, Debug, Default)]
pub struct ByMethod {
    pub(super) methods: Vec<Known>,
    /// By site: start of its methods in `of_sites`; the next site's start ends them.
    begins: Vec<u32>,
    /// Indices in `methods`; per site innermost first, without duplicates.
    of_sites: Vec<u32>,
}

/// A method, represented by one frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    site: SiteId,
    depth: u32,
    /// Whether a VM compiled or interpreted the method.
    pub is_method: bool,
}

impl Known {
    pub fn place(self, profile: &Profile) -> Option<(&Site, &Frame)> {
        let site = &profile.sites[self.site];
        Some((site, frames(site).nth(self.depth as usize)?))
    }

    fn is(self, profile: &Profile, subject: &Subject) -> bool {
        let place = self.place(profile);
        place.is_some_and(|(site, frame)| is_subject(profile, site, frame, subject))
    }
}

impl ByMethod {
    /// Reads all sites.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        let mut all = ByMethod::default();
        let mut index: FxHashMap<Named<'_>, u32> = FxHashMap::default();
        // Fast path: most sites of an entry share one method.
        let mut of_entry: IndexVec<EntryId, Option<(u32, &Frame)>> =
            profile.entries.with_each(None);
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        all.begins.reserve_exact(profile.sites.len() + 1);
        all.of_sites.reserve(profile.sites.len());
        for (id, site) in profile.sites.enumerated() {
            all.begins.push(number(all.of_sites.len()));
            let known = &mut of_entry[site.entry];
            if site.via.is_empty()
                && let Some((method, frame)) = known
                && is_same(frame, &site.frame)
            {
                all.of_sites.push(*method);
                continue;
            }
            let Some(entry) = named_entry(profile, site) else {
                continue;
            };
            seen.clear();
            for (frame, depth) in frames(site).zip(0..) {
                let is_method = is_method(entry, frame);
                let method = *index.entry(Named::of(entry, frame)).or_insert_with(|| {
                    all.methods.push(Known {
                        site: id,
                        depth,
                        is_method,
                    });
                    number(all.methods.len() - 1)
                });
                all.methods[method as usize].is_method |= is_method;
                if site.via.is_empty() || seen.insert(method) {
                    all.of_sites.push(method);
                }
            }
            if site.via.is_empty() {
                *known = all.of_sites.last().map(|&method| (method, &site.frame));
            }
        }
        all.begins.push(number(all.of_sites.len()));
        all
    }

    /// Whether this index includes all sites of `profile`. A growing profile gets more.
    #[must_use]
    pub fn is_of(&self, profile: &Profile) -> bool {
        self.begins.len() == profile.sites.len() + 1
    }

    /// Methods of a site, innermost first.
    pub(super) fn of_site(&self, site: SiteId) -> &[u32] {
        let (begin, end) = (self.begins[site.index()], self.begins[site.index() + 1]);
        &self.of_sites[begin as usize..end as usize]
    }

    pub(super) fn sites_of(&self, profile: &Profile, subject: &Subject) -> Vec<SiteId> {
        let mut methods = self.methods.iter();
        let Some(method) = methods.position(|known| known.is(profile, subject)) else {
            return Vec::new();
        };
        let method = number(method);
        let sites = (1..self.begins.len()).map(|end| SiteId::of(end - 1));
        sites
            .filter(|site| self.of_site(*site).contains(&method))
            .collect()
    }
}

/// Quick comparison of two frames' methods within one entry; may miss equal methods.
fn is_same(a: &Frame, b: &Frame) -> bool {
    a.method == b.method && (a.method.is_some() || Arc::ptr_eq(&a.name, &b.name))
}

fn is_method(entry: &Entry, frame: &Frame) -> bool {
    let is_code = matches!(
        entry.kind,
        EntryKind::Code(ConstituentKind::Method | ConstituentKind::Block)
    );
    frame.method.is_some() || is_code
}

/// Sites number fewer than 2^32; record sizes limit the methods inlined per site.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Borrowed key of a [`Subject`], cheap for many sites.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Named<'a> {
    Method(MethodKey),
    /// Name and module.
    Named(&'a str, &'a str),
}

impl<'a> Named<'a> {
    fn of(entry: &'a Entry, frame: &'a Frame) -> Self {
        match frame.method {
            Some(key) => Named::Method(key),
            None => Named::Named(&frame.name, &entry.module),
        }
    }
}
