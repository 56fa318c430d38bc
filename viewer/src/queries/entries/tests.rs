//! Every grouping against counting the samples one by one.

use super::*;
use crate::present::names::kind_name;
use crate::recordings::screens;
use crate::tui::testing::profile;
use std::collections::BTreeMap;
use vmscope_records::TimeNs;
use vmscope_symbolizer::{Entry, Only};

/// The answers of every grouping under some filters.
fn answers(profile: &Profile, mut check: impl FnMut(&Entries, &Summary, &Filter)) {
    let stop = Stop::new();
    let index = Arc::new(EntryIndex::of(profile, &stop).unwrap());
    let end = profile.trace.ending.last_time.0;
    let filters = [
        Filter::default(),
        Filter {
            from: Some(TimeNs(end / 3)),
            without: [ThreadId::of(0)].into_iter().collect(),
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
        let summary = Arc::new(Summary::of(profile, &filter, &stop).unwrap());
        assert!(summary.total > 0);
        for by in GroupBy::ALL {
            let entries = Entries::of(profile, &index, (&summary, &filter), by, None, &stop);
            check(&entries.unwrap(), &summary, &filter);
        }
    }
}

/// The samples of each entry in each group, each sample by itself.
fn counted(
    profile: &Profile,
    entries: &Entries,
    filter: &Filter,
) -> BTreeMap<(String, EntryId), u64> {
    let mask = filter.entry_mask(profile);
    let samples = &profile.trace.samples;
    let mut counted = BTreeMap::new();
    for ((&time, &thread), &place) in (samples.times.iter())
        .zip(&samples.threads)
        .zip(&samples.places)
    {
        let site = profile.site_of_place[place];
        let id = profile.sites[site].entry;
        if !filter.takes(thread, time) || mask.as_ref().is_some_and(|mask| !mask.takes(id)) {
            continue;
        }
        let one = &profile.entries[id];
        let text = |text: &str| GroupKey::Text(text.into());
        let key = match entries.by {
            GroupBy::Entry => GroupKey::Entry(id),
            GroupBy::Method => {
                let of = |id: EntryId| entries.index.methods.of_entry[id];
                let first = profile.entries.ids().find(|other| of(*other) == of(id));
                GroupKey::Method(first.unwrap())
            }
            GroupBy::Innermost => {
                let inlined = profile.inlined_at(&profile.sites[site]);
                text(inlined.map_or(&one.name, |frame| &frame.name))
            }
            GroupBy::Class => text(&one.module),
            GroupBy::Region => GroupKey::Region(one.region),
            GroupBy::Kind => text(kind_name(&one.kind)),
            GroupBy::Thread => GroupKey::Thread(thread),
            GroupBy::Tier => text(&one.tier),
        };
        *counted.entry((format!("{key:?}"), id)).or_default() += 1;
    }
    counted
}

#[test]
fn groups_have_all_samples_their_figures_and_their_order() {
    let profile = profile(screens::java());
    let entry = |id: EntryId| &profile.entries[id];
    answers(&profile, |entries, summary, filter| {
        let mut found = BTreeMap::new();
        let place = |member: &Member| {
            let one = entry(member.entry);
            (Reverse(member.samples), &one.name, &one.tier, member.entry)
        };
        for group in &entries.groups {
            let members = entries.members_of(group);
            assert!(members.is_sorted_by_key(place));
            for member in members {
                found.insert((format!("{:?}", group.key), member.entry), member.samples);
            }
            let samples = members.iter().map(|member| member.samples);
            assert_eq!(group.samples, samples.sum::<u64>());
            let sizes = members.iter();
            let sizes: Vec<u64> = sizes
                .filter_map(|member| entries.index.sizes[member.entry])
                .collect();
            let sum = (!sizes.is_empty()).then(|| sizes.iter().sum());
            assert_eq!(group.size, sum);
            let common = |of: &dyn Fn(&Entry) -> String| {
                let first = of(entry(members[0].entry));
                let is_same = |member: &Member| of(entry(member.entry)) == first;
                members.iter().all(is_same).then_some(first)
            };
            let text = |all: &[Arc<str>], rank: Option<u32>| {
                rank.map(|rank| all[rank as usize].to_string())
            };
            let (index, is) = (&entries.index, group.common);
            assert_eq!(
                text(&index.tiers, is.tier),
                common(&|one| one.tier.to_string())
            );
            assert_eq!(
                text(&index.modules, is.module),
                common(&|one| one.module.to_string())
            );
            let kind = common(&|one| kind_name(&one.kind).to_owned());
            assert_eq!(text(&index.kinds, is.kind), kind);
            let region = is.region.map(|region| format!("{region:?}"));
            assert_eq!(region, common(&|one| format!("{:?}", one.region)));
        }
        assert_eq!(
            found,
            counted(&profile, entries, filter),
            "{:?}",
            entries.by
        );
        assert_eq!(found.values().sum::<u64>(), summary.total);
        assert_eq!(entries.total, summary.total);
        let groups = entries.groups.iter();
        assert!(groups.is_sorted_by_key(|group| {
            let first = place(&entries.members_of(group)[0]);
            (Reverse(group.samples), &group.name, first)
        }));
    });
}

#[test]
fn ranges_have_the_samples_of_their_entry_in_the_group() {
    let profile = profile(screens::java());
    answers(&profile, |entries, _, _| {
        for group in &entries.groups {
            for member in entries.members_of(group) {
                let ranges = entries.ranges(&profile, group, member.entry);
                let sum: u64 = ranges.iter().map(|range| range.samples).sum();
                assert_eq!(sum, member.samples, "{:?}", group.key);
                let from = |range: &InRange| profile.sites[range.site].from;
                assert!(ranges.iter().map(from).is_sorted());
            }
        }
    });
}

#[test]
fn inlined_functions_stand_below_the_function_around_them() {
    let profile = profile(screens::native());
    let mut seen = 0;
    answers(&profile, |entries, summary, _| {
        for group in &entries.groups {
            for member in entries.members_of(group) {
                let ranges = entries.ranges(&profile, group, member.entry);
                let sum: u64 = ranges.iter().map(|range| range.samples).sum();
                assert_eq!(sum, member.samples, "{:?}", group.key);
                if entries.by != GroupBy::Entry {
                    continue;
                }
                // Each inlined function has one row, with all its samples.
                let of_site = |site: &Site| {
                    let frame = profile.inlined_at(site);
                    frame.map(|frame| Arc::clone(&frame.name))
                };
                for range in &ranges {
                    let name = of_site(&profile.sites[range.site]);
                    let sites = profile.sites.iter().zip(&summary.sites);
                    let same = sites.filter(|(site, _)| {
                        site.entry == member.entry && of_site(site) == name && name.is_some()
                    });
                    let all: u64 = same.map(|(_, samples)| *samples).sum();
                    assert!(name.is_none() || all == range.samples, "{name:?}");
                    seen += usize::from(name.is_some());
                }
            }
        }
    });
    assert!(seen > 0);
}
