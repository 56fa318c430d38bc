//! The rows of the hot list: groups, the entries in those that are expanded, the ranges in
//! expanded entries.

use super::listing::{Key, Leaf, Listing};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use vmscope_records::Exactness;
use vmscope_symbolizer::{EntryId, Profile, Site, SiteId};

/// What a row is of: the same in every listing of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A group, or an entry that is one of its own.
    Group(Key),
    /// An entry in a group.
    Entry(Key, EntryId),
    /// A range of an entry in a group.
    Range(Key, EntryId, SiteId),
}

impl Node {
    /// The entry that it is, or is part of.
    pub fn entry(&self) -> Option<EntryId> {
        match self {
            Node::Entry(_, entry) | Node::Range(_, entry, _) => Some(*entry),
            Node::Group(Key::Alone(entry) | Key::Method(entry)) => Some(*entry),
            Node::Group(_) => None,
        }
    }
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which of [`Listing::groups`].
    pub group: usize,
    /// Which of [`Listing::leaves`]; `None` for a group of several.
    pub leaf: Option<usize>,
    /// Which site, with its samples.
    pub site: Option<(SiteId, u64)>,
    /// Inside how many others it stands.
    pub depth: u8,
    /// Whether it can be expanded, and is.
    pub open: Option<bool>,
}

impl Row {
    /// What it is of.
    pub fn node(&self, listing: &Listing) -> Option<Node> {
        let group = listing.groups.get(self.group)?;
        let key = group.key.clone();
        let entry = self.leaf.and_then(|leaf| listing.leaves.get(leaf));
        Some(match (entry, self.site) {
            (Some(leaf), Some((site, _))) => Node::Range(key, leaf.entry, site),
            (Some(leaf), None) if self.depth > 0 => Node::Entry(key, leaf.entry),
            _ => Node::Group(key),
        })
    }
}

/// All rows, with what is expanded.
pub fn rows(profile: &Profile, listing: &Listing, expanded: &FxHashSet<Node>) -> Vec<Row> {
    let mut rows = Vec::with_capacity(listing.groups.len());
    for (group, of) in listing.groups.iter().enumerate() {
        let is_single = is_single(&of.key, of.leaves.len());
        let is_open = is_expanded(expanded, || Node::Group(of.key.clone()));
        if is_single {
            let leaf = of.leaves.start;
            put_entry(profile, listing, (group, leaf), 0, is_open, &mut rows);
            continue;
        }
        rows.push(Row {
            group,
            leaf: None,
            site: None,
            depth: 0,
            open: Some(is_open),
        });
        if !is_open {
            continue;
        }
        for leaf in of.leaves.clone() {
            let Some(entry) = listing.leaves.get(leaf).map(|leaf| leaf.entry) else {
                continue;
            };
            let is_open = is_expanded(expanded, || Node::Entry(of.key.clone(), entry));
            put_entry(profile, listing, (group, leaf), 1, is_open, &mut rows);
        }
    }
    rows
}

/// Whether a group is shown as its only entry.
pub fn is_single(key: &Key, leaves: usize) -> bool {
    leaves == 1 && matches!(key, Key::Alone(_) | Key::Method(_))
}

fn is_expanded(expanded: &FxHashSet<Node>, node: impl FnOnce() -> Node) -> bool {
    !expanded.is_empty() && expanded.contains(&node())
}

fn put_entry(
    profile: &Profile,
    listing: &Listing,
    (group, leaf): (usize, usize),
    depth: u8,
    is_open: bool,
    rows: &mut Vec<Row>,
) {
    let Some(of) = listing.leaves.get(leaf) else {
        return;
    };
    let can_open = has_ranges(profile, listing, of);
    rows.push(Row {
        group,
        leaf: Some(leaf),
        site: None,
        depth,
        open: can_open.then_some(is_open),
    });
    if !(can_open && is_open) {
        return;
    }
    let mut sites: Vec<(&Site, SiteId, u64)> = (listing.sites_of(of).iter())
        .filter_map(|&(site, samples)| Some((profile.sites.get(site as usize)?, site, samples)))
        .collect();
    sites.sort_by(|(a, ..), (b, ..)| place(a).cmp(&place(b)));
    // One call site may come with several names of files: what is equal then keeps its order.
    rows.extend(sites.into_iter().map(|(_, site, samples)| Row {
        group,
        leaf: Some(leaf),
        site: Some((site, samples)),
        depth: depth + 1,
        open: None,
    }));
}

type PlaceKey<'a> = (
    Option<u32>,
    Option<u32>,
    &'a Arc<str>,
    Option<u32>,
    Vec<(&'a str, Option<u32>)>,
);

/// In the order of its code.
fn place(site: &Site) -> PlaceKey<'_> {
    let pc = |pc: Option<vmscope_records::BytecodePc>| pc.map(vmscope_records::BytecodePc::get);
    let via = site.via.iter().map(|outer| (&*outer.name, outer.line));
    let frame = &site.frame;
    (
        pc(site.from),
        pc(site.to),
        &frame.file,
        frame.line,
        via.collect(),
    )
}

/// Whether there is anything to expand.
fn has_ranges(profile: &Profile, listing: &Listing, leaf: &Leaf) -> bool {
    let sites = listing.sites_of(leaf).iter();
    let mut sites = sites.filter_map(|(site, _)| profile.sites.get(*site as usize));
    sites.any(|site| {
        let frame = &site.frame;
        // What is exact and of a method is at its entry.
        let is_entry = site.exactness == Exactness::Exact && frame.method.is_some();
        let is_placed = site.bounded || site.from.is_some() || frame.line.is_some() || is_entry;
        is_placed || !site.via.is_empty()
    })
}
