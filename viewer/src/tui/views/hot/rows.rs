//! The rows of the hot list: groups, the entries in those that are expanded, the ranges in
//! expanded entries.

use super::listing::{Key, Leaf, Listing};
use rustc_hash::FxHashSet;
use std::sync::Arc;
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

/// A range in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Which site.
    pub site: SiteId,
    /// Its samples.
    pub samples: u64,
    /// Those of the greatest one beside it.
    pub most: u64,
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which of [`Listing::groups`].
    pub group: usize,
    /// Which of [`Listing::leaves`]; `None` for a group of several.
    pub leaf: Option<usize>,
    /// The range that it is.
    pub range: Option<Range>,
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
        Some(match (entry, self.range) {
            (Some(leaf), Some(range)) => Node::Range(key, leaf.entry, range.site),
            (Some(leaf), None) if self.depth > 0 => Node::Entry(key, leaf.entry),
            _ => Node::Group(key),
        })
    }

    /// Whether it is of that.
    pub fn is_of(&self, listing: &Listing, node: &Node) -> bool {
        let (Node::Group(key) | Node::Entry(key, _) | Node::Range(key, ..)) = node;
        let group = listing.groups.get(self.group);
        group.is_some_and(|group| group.key == *key) && self.node(listing).as_ref() == Some(node)
    }
}

/// All rows, with what is expanded.
pub fn rows(profile: &Profile, listing: &Listing, expanded: &FxHashSet<Node>) -> Vec<Row> {
    let mut rows = Vec::with_capacity(listing.groups.len());
    for (group, of) in listing.groups.iter().enumerate() {
        let is_single = is_single(&of.key, of.leaves.len());
        let is_open = is_expanded(expanded, || Node::Group(of.key.clone()));
        if is_single {
            let leaves = [(of.leaves.start, is_open)];
            put_entries(profile, listing, (group, 0), &leaves, &mut rows);
            continue;
        }
        rows.push(Row {
            group,
            leaf: None,
            range: None,
            depth: 0,
            open: Some(is_open),
        });
        if !is_open {
            continue;
        }
        let leaves = listing.in_order(of).iter().filter_map(|&at| {
            let entry = listing.leaves.get(at)?.entry;
            let node = || Node::Entry(of.key.clone(), entry);
            Some((at, is_expanded(expanded, node)))
        });
        let leaves: Vec<(usize, bool)> = leaves.collect();
        put_entries(profile, listing, (group, 1), &leaves, &mut rows);
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

/// Puts the entries of a group, each with whether it is expanded.
fn put_entries(
    profile: &Profile,
    listing: &Listing,
    (group, depth): (usize, u8),
    leaves: &[(usize, bool)],
    rows: &mut Vec<Row>,
) {
    let leaf = |at: usize| listing.leaves.get(at);
    let open: Vec<Leaf> = (leaves.iter().filter(|(_, is_open)| *is_open))
        .filter_map(|&(at, _)| leaf(at).copied())
        .collect();
    let sites = match open.is_empty() {
        true => Vec::new(),
        false => listing.sites_of(profile, &open),
    };
    let entry_of = |site: SiteId| profile.sites.get(site as usize).map(|site| site.entry);
    let mut sites = sites.chunk_by(|(a, _), (b, _)| entry_of(*a) == entry_of(*b));
    let mut next = sites.next();
    for &(at, is_open) in leaves {
        let Some(of) = leaf(at) else {
            continue;
        };
        let can_open = listing.has_ranges(profile, of);
        rows.push(Row {
            group,
            leaf: Some(at),
            range: None,
            depth,
            open: can_open.then_some(is_open),
        });
        let is_own = |sites: &&[(SiteId, u64)]| {
            let first = sites.first();
            first.and_then(|(site, _)| entry_of(*site)) == Some(of.entry)
        };
        if let Some(own) = next.filter(is_own).filter(|_| is_open) {
            next = sites.next();
            if can_open {
                put_ranges(profile, (group, at, depth + 1), own, rows);
            }
        }
    }
}

fn put_ranges(
    profile: &Profile,
    (group, leaf, depth): (usize, usize, u8),
    sites: &[(SiteId, u64)],
    rows: &mut Vec<Row>,
) {
    let most = sites.iter().map(|(_, samples)| *samples).max();
    let mut sites: Vec<(&Site, SiteId, u64)> = (sites.iter())
        .filter_map(|&(site, samples)| Some((profile.sites.get(site as usize)?, site, samples)))
        .collect();
    sites.sort_by(|(a, ..), (b, ..)| place(a).cmp(&place(b)));
    // One call site may come with several names of files: what is equal then keeps its order.
    rows.extend(sites.into_iter().map(|(_, site, samples)| Row {
        group,
        leaf: Some(leaf),
        range: Some(Range {
            site,
            samples,
            most: most.unwrap_or(0),
        }),
        depth,
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
