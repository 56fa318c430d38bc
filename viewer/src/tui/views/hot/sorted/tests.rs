//! Every order and grouping against sorting all of it by what is said.

use super::super::facts::Facts;
use super::super::listing::{Group, Key, Leaf, Listing, Order};
use super::super::order::{By, Grouping};
use crate::present::names::kind_name;
use crate::recordings::screens;
use crate::tui::testing::profile;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{Entry, EntryId, Filter, Only, Profile, Region, Stop, Summary};

/// Listings of every order under some filters.
fn listings(profile: &Profile, mut check: impl FnMut(&Listing, &Summary, &Filter)) {
    let stop = Stop::new();
    let facts = Arc::new(Facts::of(profile, &stop).unwrap());
    let end = profile.trace.ending.last_time.0;
    let filters = [
        Filter::default(),
        Filter {
            from: Some(TimeNs(end / 3)),
            without: [0].into_iter().collect(),
            ..Filter::default()
        },
        Filter {
            only: Only {
                regions: vec![Region::Generated, Region::Kernel],
                ..Only::default()
            },
            ..Filter::default()
        },
    ];
    for filter in filters {
        let summary = Arc::new(Summary::with_errors(profile, &filter));
        assert!(summary.total > 0);
        for by in By::ALL {
            for grouping in Grouping::ALL {
                for reversed in [false, true] {
                    let order = Order {
                        by,
                        reversed,
                        grouping,
                    };
                    let errors = match order.needs_errors() {
                        true => summary.errors.clone(),
                        false => Vec::new(),
                    };
                    let how = (filter.clone(), order, Arc::new(errors));
                    let listing = Listing::of(profile, &facts, &summary, how, &stop);
                    check(&listing.unwrap(), &summary, &filter);
                }
            }
        }
    }
}

fn entry(profile: &Profile, entry: EntryId) -> &Entry {
    &profile.entries[entry as usize]
}

/// By what is asked for alone.
fn decides(profile: &Profile, listing: &Listing, a: &Leaf, b: &Leaf) -> Ordering {
    let (of_a, of_b) = (entry(profile, a.entry), entry(profile, b.entry));
    let error = |leaf: &Leaf| listing.errors.get(leaf.entry as usize).copied();
    match listing.order.by {
        By::Share => b.samples.cmp(&a.samples),
        By::Name => of_a.name.cmp(&of_b.name),
        By::Region => (of_a.region as usize).cmp(&(of_b.region as usize)),
        By::Kind => kind_name(&of_a.kind).cmp(kind_name(&of_b.kind)),
        By::Tier => of_a.tier.cmp(&of_b.tier),
        By::Size => listing.size(b.entry).cmp(&listing.size(a.entry)),
        By::Error => (error(b).unwrap_or(0.0)).total_cmp(&error(a).unwrap_or(0.0)),
    }
}

fn turned(listing: &Listing, order: Ordering) -> Ordering {
    match listing.order.reversed {
        true => order.reverse(),
        false => order,
    }
}

fn ties(profile: &Profile, a: &Leaf, b: &Leaf) -> Ordering {
    let name = |leaf: &Leaf| {
        let entry = entry(profile, leaf.entry);
        (&entry.name, &entry.tier, leaf.entry)
    };
    (b.samples.cmp(&a.samples)).then_with(|| name(a).cmp(&name(b)))
}

fn leaves_in_order(profile: &Profile, listing: &Listing, a: &Leaf, b: &Leaf) -> Ordering {
    turned(listing, decides(profile, listing, a, b)).then_with(|| ties(profile, a, b))
}

fn groups_in_order(profile: &Profile, listing: &Listing, a: &Group, b: &Group) -> Ordering {
    let first = |group: &Group| *listing.leaves_of(group).next().unwrap();
    let (first_a, first_b) = (first(a), first(b));
    let order = match listing.order.by {
        By::Share => b.samples.cmp(&a.samples),
        By::Size => b.size.cmp(&a.size),
        By::Name if listing.order.grouping != Grouping::None => a.name.cmp(&b.name),
        _ => decides(profile, listing, &first_a, &first_b),
    };
    let order = turned(listing, order).then(b.samples.cmp(&a.samples));
    let order = order.then_with(|| a.name.cmp(&b.name));
    order.then_with(|| ties(profile, &first_a, &first_b))
}

/// The samples of each entry in each group, each sample by itself.
fn counted(
    profile: &Profile,
    listing: &Listing,
    filter: &Filter,
) -> BTreeMap<(String, EntryId), u64> {
    let facts = &listing.facts;
    let mask = filter.entry_mask(profile);
    let samples = &profile.trace.samples;
    let mut counted = BTreeMap::new();
    for ((&time, &thread), &place) in (samples.times.iter())
        .zip(&samples.threads)
        .zip(&samples.places)
    {
        let site = profile.site_of_place[place as usize];
        let id = profile.sites[site as usize].entry;
        if !filter.takes(thread, time) || mask.as_ref().is_some_and(|mask| !mask.takes(id)) {
            continue;
        }
        let one = entry(profile, id);
        let text = |text: &str| Key::Text(text.into());
        let key = match listing.order.grouping {
            Grouping::None => Key::Alone(id),
            Grouping::Method => {
                let of = |id: EntryId| facts.methods.of_entry[id as usize];
                let first = (0..).find(|other| of(*other) == of(id));
                Key::Method(first.unwrap())
            }
            Grouping::Class => text(&one.module),
            Grouping::Region => Key::Region(one.region),
            Grouping::Kind => text(kind_name(&one.kind)),
            Grouping::Thread => Key::Thread(thread),
            Grouping::Tier => text(&one.tier),
        };
        *counted.entry((format!("{key:?}"), id)).or_default() += 1;
    }
    counted
}

#[test]
fn every_list_is_what_sorting_all_of_it_gives() {
    let profile = profile(screens::java());
    listings(&profile, |listing, summary, filter| {
        let order = listing.order;
        let mut found = BTreeMap::new();
        let mut cumulative = 0;
        for group in &listing.groups {
            let leaves: Vec<&Leaf> = listing.leaves_of(group).collect();
            assert_eq!(leaves.len(), group.leaves.len());
            let in_order = |a: &&Leaf, b: &&Leaf| leaves_in_order(&profile, listing, a, b).is_lt();
            assert!(leaves.is_sorted_by(in_order), "{order:?}");
            for leaf in &leaves {
                found.insert((format!("{:?}", group.key), leaf.entry), leaf.samples);
            }
            let samples = leaves.iter().map(|leaf| leaf.samples);
            assert_eq!(group.samples, samples.clone().sum::<u64>());
            assert_eq!(Some(group.most), samples.max());
            let sizes: Vec<u64> = (leaves.iter())
                .filter_map(|leaf| listing.size(leaf.entry))
                .collect();
            let sum = (!sizes.is_empty()).then(|| sizes.iter().sum());
            assert_eq!(group.size, sum, "{order:?}");
            let all_are = |of: &dyn Fn(&Entry) -> String| {
                let first = of(entry(&profile, leaves[0].entry));
                (leaves.iter()).all(|leaf| of(entry(&profile, leaf.entry)) == first)
            };
            let alike = group.alike;
            assert_eq!(alike.tier, all_are(&|one| one.tier.clone()));
            assert_eq!(alike.module, all_are(&|one| one.module.clone()));
            assert_eq!(alike.kind, all_are(&|one| kind_name(&one.kind).to_owned()));
            assert_eq!(alike.region, all_are(&|one| format!("{:?}", one.region)));
            cumulative += group.samples;
            assert_eq!(group.cumulative, cumulative);
        }
        assert_eq!(cumulative, summary.total);
        // The others have the same entries.
        if order.by == By::Share && !order.reversed {
            assert_eq!(found, counted(&profile, listing, filter), "{order:?}");
        }
        let in_order = |a: &Group, b: &Group| groups_in_order(&profile, listing, a, b).is_lt();
        assert!(listing.groups.is_sorted_by(in_order), "{order:?}");
    });
}

#[test]
fn ranges_have_the_samples_of_their_entry_in_the_group() {
    let profile = profile(screens::java());
    listings(&profile, |listing, _, _| {
        if listing.order.by != By::Share {
            return;
        }
        for group in &listing.groups {
            let leaves: Vec<Leaf> = listing.leaves_of(group).copied().collect();
            let sites = listing.sites_of(&profile, &leaves);
            for leaf in &leaves {
                let own = sites
                    .iter()
                    .filter(|(site, _)| profile.sites[*site as usize].entry == leaf.entry);
                let sum: u64 = own.map(|(_, samples)| samples).sum();
                assert_eq!(sum, leaf.samples, "{:?}", listing.order);
            }
        }
    });
}
