//! The order of the list.

use super::listing::{Group, Leaf, Listing};
use super::order::{By, Grouping};
use crate::report::json::kind_name;
use std::cmp::{Ordering, Reverse};
use vmscope_symbolizer::Profile;

impl Listing {
    /// Orders the entries of each group, and the groups. What a group has several of, it is
    /// ordered by as its first entry is.
    pub(super) fn sort(&mut self, profile: &Profile, leaves: Vec<(u32, Leaf)>) {
        let mut of_group: Vec<Vec<Leaf>> = vec![Vec::new(); self.groups.len()];
        for (group, leaf) in leaves {
            if let Some(list) = of_group.get_mut(group as usize) {
                list.push(leaf);
            }
        }
        let order = |a: &Leaf, b: &Leaf| {
            let order = self.compare(profile, a, b);
            let order = if self.reversed {
                order.reverse()
            } else {
                order
            };
            order.then_with(|| ties(profile, a, b))
        };
        for list in &mut of_group {
            list.sort_by(order);
        }
        let mut groups: Vec<(Group, Vec<Leaf>)> = std::mem::take(&mut self.groups)
            .into_iter()
            .zip(of_group)
            .collect();
        groups.sort_by(|(a, of_a), (b, of_b)| {
            let firsts = of_a.first().zip(of_b.first());
            let by_first = || firsts.map_or(Ordering::Equal, |(a, b)| self.compare(profile, a, b));
            let order = match self.by {
                By::Share => b.samples.cmp(&a.samples),
                By::Size => b.size.cmp(&a.size),
                By::Name if self.grouping != Grouping::None => a.name.cmp(&b.name),
                _ => by_first(),
            };
            let order = if self.reversed {
                order.reverse()
            } else {
                order
            };
            let samples = b.samples.cmp(&a.samples);
            let order = order.then(samples).then_with(|| a.name.cmp(&b.name));
            order.then_with(|| firsts.map_or(Ordering::Equal, |(a, b)| ties(profile, a, b)))
        });
        let mut cumulative = 0;
        for (mut group, list) in groups {
            cumulative += group.samples;
            group.cumulative = cumulative;
            let from = self.leaves.len();
            self.leaves.extend(list);
            group.leaves = from..self.leaves.len();
            self.most = self.most.max(group.samples);
            self.groups.push(group);
        }
    }

    fn compare(&self, profile: &Profile, a: &Leaf, b: &Leaf) -> Ordering {
        let entry = |leaf: &Leaf| profile.entries.get(leaf.entry as usize);
        let (Some(of_a), Some(of_b)) = (entry(a), entry(b)) else {
            return Ordering::Equal;
        };
        match self.by {
            By::Share => b.samples.cmp(&a.samples),
            By::Name => of_a.name.cmp(&of_b.name),
            By::Region => (of_a.region as usize).cmp(&(of_b.region as usize)),
            By::Kind => kind_name(&of_a.kind).cmp(kind_name(&of_b.kind)),
            By::Tier => of_a.tier.cmp(&of_b.tier),
            By::Size => {
                let size = |leaf: &Leaf| self.size(leaf.entry);
                size(b).cmp(&size(a))
            }
            By::Error => {
                let error = |leaf: &Leaf| self.error(leaf.entry);
                error(b).unwrap_or(0.0).total_cmp(&error(a).unwrap_or(0.0))
            }
        }
    }
}

/// What is equal otherwise: most samples first, then by name, so that a list of the same
/// recording is always the same.
fn ties(profile: &Profile, a: &Leaf, b: &Leaf) -> Ordering {
    let name = |leaf: &Leaf| {
        let entry = profile.entries.get(leaf.entry as usize);
        entry.map(|entry| (&entry.name, &entry.tier))
    };
    let by_samples = Reverse(a.samples).cmp(&Reverse(b.samples));
    by_samples
        .then_with(|| name(a).cmp(&name(b)))
        .then(a.entry.cmp(&b.entry))
}
