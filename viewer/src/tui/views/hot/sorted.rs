//! The order of the list: by numbers, which know the order of names.

use super::listing::{Group, Leaf, Listing};
use super::order::{By, Grouping};
use std::cmp::Reverse;

/// What entries are sorted by; what is equal otherwise: most samples first, then by name, so
/// that a list of the same recording is always the same.
type LeafKey = (u64, Reverse<u64>, u32);

/// What groups are sorted by; what is equal otherwise: most samples first, then by name, then
/// as their first entries.
type GroupKey = (u64, Reverse<u64>, u32, LeafKey);

impl Listing {
    /// Orders the groups. What a group has several of, it is ordered by as its first entry is.
    pub(super) fn sort(&mut self) {
        let names = self.places_by_name();
        let mut order: Vec<(GroupKey, usize)> = (self.groups.iter().zip(names).enumerate())
            .map(|(at, (group, name))| (self.key_of_group(group, name), at))
            .collect();
        order.sort_unstable();
        let mut groups: Vec<Option<Group>> = std::mem::take(&mut self.groups)
            .into_iter()
            .map(Some)
            .collect();
        let mut cumulative = 0;
        self.groups.reserve_exact(groups.len());
        for (_, at) in order {
            if let Some(mut group) = groups.get_mut(at).and_then(Option::take) {
                cumulative += group.samples;
                group.cumulative = cumulative;
                self.most = self.most.max(group.samples);
                self.groups.push(group);
            }
        }
    }

    /// Of each group its place by name; equal names have one.
    fn places_by_name(&self) -> Vec<u32> {
        let facts = &self.facts;
        match self.order.grouping {
            Grouping::None => vec![0; self.groups.len()],
            Grouping::Method => {
                let methods = self.groups.iter().map(|group| {
                    let method = facts.methods.of_entry.get(group.one as usize)?;
                    facts.place_of_method.get(*method as usize).copied()
                });
                methods.map(Option::unwrap_or_default).collect()
            }
            _ => {
                let mut names: Vec<&str> = self.groups.iter().map(|group| &*group.name).collect();
                names.sort_unstable();
                names.dedup();
                let place = |group: &Group| names.partition_point(|name| **name < *group.name);
                let places = self.groups.iter().map(place);
                places
                    .map(|place| u32::try_from(place).unwrap_or(u32::MAX))
                    .collect()
            }
        }
    }

    fn key_of_group(&self, group: &Group, name: u32) -> GroupKey {
        let leaves = self.leaves.get(group.leaves.clone()).unwrap_or_default();
        let first = leaves.iter().map(|leaf| self.key(leaf)).min();
        let first = first.unwrap_or((0, Reverse(0), 0));
        let decides = match self.order.by {
            By::Share => self.turned(most_first(group.samples)),
            By::Size => self.turned(largest_first(group.size)),
            By::Name if self.order.grouping != Grouping::None => self.turned(name.into()),
            _ => first.0,
        };
        (decides, Reverse(group.samples), name, first)
    }

    fn key(&self, leaf: &Leaf) -> LeafKey {
        let Some(known) = self.facts.known.get(leaf.entry as usize) else {
            return (0, Reverse(leaf.samples), u32::MAX);
        };
        let decides = match self.order.by {
            By::Share => most_first(leaf.samples),
            By::Name => known.name.into(),
            By::Region => known.region as u64,
            By::Kind => known.kind.into(),
            By::Tier => known.tier.into(),
            By::Size => largest_first(self.size(leaf.entry)),
            By::Error => {
                let error = self.errors.get(leaf.entry as usize).copied();
                // Errors are never negative: their bits are in their order.
                most_first(error.unwrap_or(0.0).to_bits())
            }
        };
        (self.turned(decides), Reverse(leaf.samples), known.place)
    }

    /// The other way round, where that is asked for.
    fn turned(&self, decides: u64) -> u64 {
        if self.order.reversed {
            !decides
        } else {
            decides
        }
    }

    /// The entries of a group in their order, in [`Listing::leaves`].
    pub fn in_order<'a>(&self, group: &'a Group) -> &'a [usize] {
        group.order.get_or_init(|| {
            let leaves = self.leaves.get(group.leaves.clone()).unwrap_or_default();
            let leaves = leaves.iter().zip(group.leaves.clone());
            let mut order: Vec<(LeafKey, usize)> =
                leaves.map(|(leaf, at)| (self.key(leaf), at)).collect();
            order.sort_unstable();
            order.into_iter().map(|(_, at)| at).collect()
        })
    }

    /// The entries of a group, in their order.
    pub fn leaves_of<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = &'a Leaf> {
        let order = self.in_order(group).iter();
        order.filter_map(|&at| self.leaves.get(at))
    }
}

fn most_first(samples: u64) -> u64 {
    !samples
}

/// What has no size comes last.
fn largest_first(size: Option<u64>) -> u64 {
    !size.map_or(0, |size| size.saturating_add(1))
}

#[cfg(test)]
mod tests;
